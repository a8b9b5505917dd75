/* Records of stacks that were walked in the kernel. */
#include "test.h"

#include "jdtool/perf/walked.h"

struct written {
    struct walked_head head;
    uint32_t words[64];
};

static size_t size_of(const struct written *written)
{
    return sizeof written->head + (size_t)4 * written->head.words;
}

static void put(struct written *written, uint32_t word)
{
    written->words[written->head.words++] = word;
}

static void put_wide(struct written *written, uint64_t word)
{
    put(written, (uint32_t)word);
    put(written, (uint32_t)(word >> 32));
}

static uint32_t delta(int64_t bytes)
{
    return (uint32_t)((uint64_t)bytes << WALKED_DELTA_SHIFT);
}

TEST(test_addresses)
{
    struct written written = {.head = {.magic = WALKED_MAGIC, .end = WALKED_CUT}};
    struct walked walked;
    struct walked_frame frame;
    put(&written, WALKED_WIDE);
    put_wide(&written, 0x7f0012345678);
    put(&written, delta(-0x1000));
    put(&written, delta(WALKED_DELTA_MAX - 1));
    put(&written, delta(-WALKED_DELTA_MAX));
    put(&written, WALKED_WIDE | WALKED_IS_CALLER | WALKED_FROZEN);
    put_wide(&written, 0x55aa00000001);
    assert_true(walked_begin((const uint8_t *)&written, size_of(&written), &walked));
    assert_int_equal(walked.head.end, WALKED_CUT);
    const uint64_t pcs[] = {0x7f0012345678, 0x7f0012344678, 0x7f0012344678 + 0xfffffff,
                            0x7f0012344678 - 1, 0x55aa00000001};
    for (size_t i = 0; i < sizeof pcs / sizeof *pcs; i++) {
        assert_true(walked_next(&walked, &frame));
        assert_int_equal(frame.pc, pcs[i]);
        assert_int_equal(frame.caller, i > 0);
        assert_false(frame.interpreted);
        assert_int_equal(frame.frozen, i == 4);
    }
    assert_false(walked_next(&walked, &frame));
}

TEST(test_interpreted)
{
    struct written written = {.head = {.magic = WALKED_MAGIC}};
    struct walked walked;
    struct walked_frame frame;
    put(&written, WALKED_WIDE | WALKED_INTERPRETED);
    put_wide(&written, 0x7f0012345678);
    put(&written, 0x80000010); /* Method and bytecode, then the leaf's registers */
    put(&written, 0x7f01 | WALKED_LEAF);
    put(&written, (uint32_t)-0x20);
    put_wide(&written, 0x7f0180000000);
    put_wide(&written, 0x7f0180000010);
    put(&written, delta(8) | WALKED_INTERPRETED);
    put(&written, 0x40);
    put(&written, 0x7f01 | WALKED_BCP_WIDE);
    put_wide(&written, 0x7a0000000000);
    put(&written, delta(16));
    assert_true(walked_begin((const uint8_t *)&written, size_of(&written), &walked));
    assert_true(walked_next(&walked, &frame));
    assert_true(frame.interpreted);
    assert_int_equal(frame.method, 0x7f0180000010);
    assert_int_equal(frame.bcp, 0x7f017ffffff0);
    assert_int_equal(frame.bcp_register, 0x7f0180000000);
    assert_int_equal(frame.method_register, 0x7f0180000010);
    assert_true(walked_next(&walked, &frame));
    assert_true(frame.interpreted && frame.caller);
    assert_int_equal(frame.method, 0x7f0100000040);
    assert_int_equal(frame.bcp, 0x7a0000000000);
    assert_int_equal(frame.bcp_register, 0);
    assert_true(walked_next(&walked, &frame));
    assert_int_equal(frame.pc, 0x7f0012345678 + 24);
    assert_false(frame.interpreted);
    assert_false(walked_next(&walked, &frame));
}

/* A frame that was assumed has its size behind the pc, and is not the same as one that was not. */
TEST(test_assumed)
{
    struct written written = {.head = {.magic = WALKED_MAGIC}};
    struct walked walked;
    struct walked_frame leaf;
    struct walked_frame caller;
    put(&written, WALKED_WIDE | WALKED_ASSUMED);
    put_wide(&written, 0x7f0012345678);
    put(&written, 96);
    put(&written, delta(-0x10));
    assert_true(walked_begin((const uint8_t *)&written, size_of(&written), &walked));
    assert_true(walked_next(&walked, &leaf));
    assert_int_equal(leaf.assumed, 96);
    assert_true(walked_next(&walked, &caller));
    assert_int_equal(caller.pc, 0x7f0012345668);
    assert_int_equal(caller.assumed, 0);
    uint64_t key = walked_key(&leaf);
    leaf.assumed = 104;
    assert_int_not_equal(walked_key(&leaf), key);
    leaf.assumed = 0;
    assert_int_not_equal(walked_key(&leaf), key);
    uint64_t packed = walked_packed(0x7f0012345678, 96);
    assert_int_equal(walked_packed_pc(packed), 0x7f0012345678);
    assert_int_equal(walked_packed_assumed(packed), 96);
    assert_int_equal(walked_packed(0x7f0012345678, 0), 0x7f0012345678);
}

/* Kernel addresses stand in front; what is cut off or none is not read. */
TEST(test_bounds)
{
    struct written written = {.head = {.magic = WALKED_MAGIC}};
    struct walked walked;
    struct walked_frame frame;
    put(&written, 1);
    put(&written, 2); /* a kernel address */
    put(&written, WALKED_WIDE | WALKED_INTERPRETED);
    put_wide(&written, 0x7f0012345678);
    put(&written, 0x10);
    size_t size = size_of(&written);
    written.head.kernel = 1;
    written.head.words -= 2;
    assert_true(walked_begin((const uint8_t *)&written, size, &walked));
    assert_false(walked_next(&walked, &frame)); /* its Method is cut off */
    for (size_t less = 1; less <= size; less++) {
        assert_false(walked_begin((const uint8_t *)&written, size - less, &walked));
    }
    written.head.magic++;
    assert_false(walked_begin((const uint8_t *)&written, size, &walked));
}

TEST(test_keys)
{
    struct walked_frame frames[] = {
        {.pc = 0x1000, .caller = true},
        {.pc = 0x1000},
        {.pc = 0x1000, .caller = true, .interpreted = true},
        {.pc = 0x1000, .interpreted = true},
        {.pc = 0x1000, .caller = true, .interpreted = true, .method = 8},
        {.pc = 0x1000, .caller = true, .interpreted = true, .bcp = 8},
        {.pc = 0x1000, .caller = true, .interpreted = true, .method = 8, .bcp = 8},
        {.pc = 0x1000, .interpreted = true, .method_register = 8},
        {.pc = 0x1000, .interpreted = true, .bcp_register = 8},
        {.pc = 0x1008, .interpreted = true, .bcp_register = 8},
    };
    size_t count = sizeof frames / sizeof *frames;
    assert_int_equal(walked_key(&frames[0]), 0x1000); /* as in a chain of the kernel's */
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal(walked_key(&frames[i]), walked_key(&frames[k]));
        }
    }
}

TEST_MAIN(NULL, NULL)
