/* Finds stack frames in aarch64 code as HotSpot 17 writes it. */
#include "test.h"

#include "jdtool/unwind/frames.h"
#define WALK_CODE_AARCH64 1
#include "jdtool/walk/shared.h"

#include <string.h>

static const uint32_t compiled[] = {
    0xb9400828, /* 00 ldr w8,[x1,#8] */
    0x6b08013f, /* 04 cmp w9,w8 */
    0x54000040, /* 08 b.eq 10 */
    0x15d5a31d, /* 0c b ic_miss_stub */
    0xd503201f, /* 10 nop: the verified entry */
    0xd14053e9, /* 14 sub x9,sp,#0x14,lsl 12 */
    0xf900013f, /* 18 str xzr,[x9] */
    0xd10243ff, /* 1c sub sp,sp,#0x90 */
    0xa9087bfd, /* 20 stp x29,x30,[sp,#128] */
    0x94001000, /* 24 bl */
    0x54000080, /* 28 b.eq 38 */
    0xa9487bfd, /* 2c ldp x29,x30,[sp,#128] */
    0x910243ff, /* 30 add sp,sp,#0x90 */
    0xd65f03c0, /* 34 ret */
    0xf90007e8, /* 38 str x8,[sp,#8] */
    0x95d88a4f, /* 3c bl */
    0x17fffffb, /* 40 b 2c */
    0xf941eb80, /* 44 ldr x0,[x28,#976]: an exception handler */
    0x95d88a4f, /* 48 bl */
    0xd4200000, /* 4c brk #0 */
    0xd5033fdf, /* 50 isb: a static call's stub */
    0xd61f0100, /* 54 br x8 */
};

static const uint32_t with_frame_pointer[] = {
    0xd10103ff, /* 00 sub sp,sp,#0x40 */
    0xa9037bfd, /* 04 stp x29,x30,[sp,#48] */
    0x9100c3fd, /* 08 add x29,sp,#0x30 */
    0x94001000, /* 0c bl */
    0xa9437bfd, /* 10 ldp x29,x30,[sp,#48] */
    0x910103ff, /* 14 add sp,sp,#0x40 */
    0xd65f03c0, /* 18 ret */
};

static const uint32_t call_stub[] = {
    0xa9bf7bfd, /* 00 stp x29,x30,[sp,#-16]! */
    0x910003fd, /* 04 mov x29,sp */
    0xd10343bf, /* 08 sub sp,x29,#0xd0 */
    0xf81f83a7, /* 0c stur x7,[x29,#-8] */
    0xf81f0fe0, /* 10 str x0,[sp,#-16]!: arguments, pushed in a loop */
    0x71000484, /* 14 subs w4,w4,#1 */
    0x54ffffc1, /* 18 b.ne 10 */
    0xd63f0020, /* 1c blr x1 */
    0x910003bf, /* 20 mov sp,x29 */
    0xa8c17bfd, /* 24 ldp x29,x30,[sp],#16 */
    0xd65f03c0, /* 28 ret */
};

static const uint32_t not_entrant[] = {
    0x15d5a31d, /* 00 b handle_wrong_method, over a nop */
    0xd14053e9, /* 04 sub x9,sp,#0x14,lsl 12 */
    0xf900013f, /* 08 str xzr,[x9] */
    0xd10103ff, /* 0c sub sp,sp,#0x40 */
    0xa9037bfd, /* 10 stp x29,x30,[sp,#48] */
    0x94001000, /* 14 bl */
    0xd4200000, /* 18 brk #0 */
};

static const uint32_t vectors[] = {
    0xa9bf7bfd, /* 00 stp x29,x30,[sp,#-16]! */
    0x910003fd, /* 04 mov x29,sp */
    0xd10103ff, /* 08 sub sp,sp,#0x40 */
    0x4cdf2fe0, /* 0c ld1 {v0.2d-v3.2d},[sp],#64 */
    0xa8c17bfd, /* 10 ldp x29,x30,[sp],#16 */
    0xd65f03c0, /* 14 ret */
};

static const uint32_t return_barrier[] = {
    0xf9426788, /* 00 ldr x8,[x28,#1224]: JavaThread::_cont_entry */
    0x9100011f, /* 04 mov sp,x8 */
    0x9e660008, /* 08 fmov x8,d0 */
    0xa9bf03e8, /* 0c stp x8,x0,[sp,#-16]! */
    0x52800021, /* 10 mov w1,#1 */
    0xd63f0100, /* 14 blr x8 */
    0xa8c103e8, /* 18 ldp x8,x0,[sp],#16 */
};

/* A method entry and a return bytecode of the interpreter. */
static const uint32_t entry_codelet[] = {
    0xf9400583, /* 00 ldr x3,[x12,#8] */
    0xcb236fe8, /* 04 sub x8,sp,x3,uxtx #3 */
    0x927ced1f, /* 08 and sp,x8,#-16 */
    0xa9b45bf4, /* 0c stp x20,x22,[sp,#-192]!: some pairs */
    0xa9057bfd, /* 10 stp x29,x30,[sp,#80] */
    0x910143fd, /* 14 add x29,sp,#0x50 */
    0xa90437ff, /* 18 stp xzr,x13,[sp,#64]: the sender's sp */
    0xd61f0100, /* 1c br x8 */
};

static const uint32_t return_codelet[] = {
    0xf85f83b4, /* 00 ldur x20,[x29,#-8] */
    0x910003bf, /* 04 mov sp,x29 */
    0xa8c17bfd, /* 08 ldp x29,x30,[sp],#16 */
    0x927cee9f, /* 0c and sp,x20,#-16 */
    0xd65f03c0, /* 10 ret */
};

static struct frames frames;

static int teardown(void **state)
{
    (void)state;
    frames_free(&frames);
    return 0;
}

static void analyse(const void *words, size_t size, enum frames_shape shape)
{
    struct frames_code code = {.bytes = words,
                               .size = (uint32_t)size,
                               .address = 0x5513ef4000,
                               .shape = shape,
                               .verified_entry = -1,
                               .osr_entry = -1,
                               .entry_frame = 0x60};
    assert_int_equal(frames_aarch64(&code, &frames), 0);
}

/* The return address still in x30, sp this far below the caller's. */
static void check_leaf(uint32_t offset, int32_t cfa)
{
    const struct frame_row *row = frames_at(&frames, offset);
    assert_non_null(row);
    assert_int_equal(row->cfa, FRAME_CFA_SP);
    assert_int_equal(row->cfa_offset, cfa);
    assert_int_equal(row->ra, FRAME_IN_REG);
    assert_int_equal(row->ra_reg, 30);
    assert_int_equal(row->fp, FRAME_SAME);
}

/* Both saved at the top of the frame. */
static void check_frame(uint32_t offset, enum frame_cfa cfa, int32_t cfa_offset)
{
    const struct frame_row *row = frames_at(&frames, offset);
    assert_non_null(row);
    assert_int_equal(row->cfa, cfa);
    assert_int_equal(row->cfa_offset, cfa_offset);
    assert_int_equal(row->ra, FRAME_AT_CFA);
    assert_int_equal(row->ra_offset, -8);
    assert_int_equal(row->fp, FRAME_AT_CFA);
    assert_int_equal(row->fp_offset, -16);
}

TEST_WITH(test_compiled, NULL, teardown)
{
    analyse(compiled, sizeof compiled, FRAMES_COMPILED);
    check_leaf(0x00, 0);
    check_leaf(0x10, 0);
    check_leaf(0x1c, 0);
    check_leaf(0x20, 0x90);
    check_frame(0x24, FRAME_CFA_SP, 0x90);
    check_frame(0x2c, FRAME_CFA_SP, 0x90);
    check_leaf(0x34, 0);
    check_frame(0x3c, FRAME_CFA_SP, 0x90);
    check_frame(0x48, FRAME_CFA_SP, 0x90); /* nothing branches there */
    check_leaf(0x54, 0);
    assert_int_equal(frames.frame_size, 0x90);
    assert_int_equal(frames.undecodable, 0);
}

TEST_WITH(test_frame_pointer, NULL, teardown)
{
    analyse(with_frame_pointer, sizeof with_frame_pointer, FRAMES_COMPILED);
    check_frame(0x08, FRAME_CFA_SP, 0x40);
    check_frame(0x0c, FRAME_CFA_SP, 0x40);
    check_leaf(0x18, 0);
}

TEST_WITH(test_conflict_falls_back_to_fp, NULL, teardown)
{
    analyse(call_stub, sizeof call_stub, FRAMES_STUB);
    check_frame(0x04, FRAME_CFA_SP, 16);
    check_frame(0x0c, FRAME_CFA_SP, 0xe0);
    check_frame(0x1c, FRAME_CFA_FP, 16);
    check_frame(0x24, FRAME_CFA_SP, 16);
    check_leaf(0x28, 0);
}

TEST_WITH(test_not_entrant, NULL, teardown)
{
    analyse(not_entrant, sizeof not_entrant, FRAMES_COMPILED);
    check_frame(0x14, FRAME_CFA_SP, 0x40);
    assert_int_equal(frames.frame_size, 0x40);
}

TEST_WITH(test_vectors, NULL, teardown)
{
    analyse(vectors, sizeof vectors, FRAMES_STUB);
    check_frame(0x0c, FRAME_CFA_SP, 0x50);
    check_frame(0x10, FRAME_CFA_SP, 16);
    check_leaf(0x14, 0);
}

TEST_WITH(test_continuation, NULL, teardown)
{
    analyse(return_barrier, sizeof return_barrier, FRAMES_CONTINUATION);
    check_frame(0x00, FRAME_CFA_SP, 0x60);
    check_frame(0x08, FRAME_CFA_FP, 16);
    check_frame(0x18, FRAME_CFA_FP, 16);
    assert_true(frames_is_return_barrier("cont return barrier")); /* as JDK 21 has it on aarch64 */
    assert_int_equal(frames_shape_of("cont return barrier exception handler", 3),
                     FRAMES_CONTINUATION);
}

static size_t put_codelet(uint8_t *blob, size_t at, const uint32_t *words, size_t size,
                          int32_t code)
{
    uint64_t description = 0x5500012345;
    uint32_t whole = (uint32_t)((64 + size + 63) & ~(size_t)63);
    memcpy(blob + at, &description, sizeof description);
    memcpy(blob + at + 8, &whole, sizeof whole);
    memcpy(blob + at + 12, &code, sizeof code);
    memcpy(blob + at + 64, words, size);
    return at + whole;
}

TEST_WITH(test_interpreter, NULL, teardown)
{
    uint8_t blob[512] = {0};
    size_t second = put_codelet(blob, 0, entry_codelet, sizeof entry_codelet, -1);
    size_t end = put_codelet(blob, second, return_codelet, sizeof return_codelet, 0xb1);
    analyse(blob, end, FRAMES_INTERPRETER);
    check_leaf(64, 0);
    assert_int_equal(frames_at(&frames, 64 + 0x0c)->ra, FRAME_IN_REG); /* sp was aligned */
    const struct frame_row *row = frames_at(&frames, 64 + 0x14);
    assert_int_equal(row->ra, FRAME_AT_SP);
    assert_int_equal(row->ra_offset, 88);
    check_frame(64 + 0x18, FRAME_CFA_SP, 96);
    assert_int_equal(frames_at(&frames, 64 + 0x1c)->cfa, FRAME_CFA_INTERPRETER);

    uint32_t ret = (uint32_t)second + 64;
    assert_int_equal(frames_at(&frames, ret)->cfa, FRAME_CFA_INTERPRETER);
    row = frames_at(&frames, ret + 8);
    assert_int_equal(row->cfa, FRAME_CFA_REG);
    assert_int_equal(row->cfa_reg, 20);
    assert_int_equal(row->ra, FRAME_AT_SP);
    assert_int_equal(row->ra_offset, 8);
    assert_int_equal(frames_at(&frames, ret + 0x0c)->ra, FRAME_IN_REG);
}

TEST_WITH(test_truncated_code, NULL, teardown)
{
    for (size_t size = 1; size < sizeof compiled; size++) {
        uint8_t *exact = test_malloc(size);
        memcpy(exact, compiled, size);
        analyse(exact, size, FRAMES_COMPILED);
        check_leaf(0, 0);
        test_free(exact);
    }
}

/* The code tells what the rows do, but where a leaf calls. */
static void check_code_tells(const uint32_t *words, uint32_t count, uint32_t from, uint32_t frame)
{
    analyse(words, 4 * (size_t)count, FRAMES_COMPILED);
    for (uint32_t i = from; i < count; i++) {
        struct walk_code code = {i ? words[i - 1] : 0, words[i], i + 1 < count ? words[i + 1] : 0};
        bool calls = (words[i] & 0xfc000000) == 0x94000000;
        bool is_body = frame_row_is_body(frames_at(&frames, 4 * i), frame);
        assert_int_equal(code_is_off_body(&code, frame), calls || !is_body);
    }
    frames_free(&frames);
}

TEST_WITH(test_code_tells_bodies, NULL, teardown)
{
    static const uint32_t with_poll[] = {
        0xd10103ff, /* 00 sub sp,sp,#0x40 */
        0xa9037bfd, /* 04 stp x29,x30,[sp,#48] */
        0xb9000fe1, /* 08 str w1,[sp,#12] */
        0xa9437bfd, /* 0c ldp x29,x30,[sp,#48] */
        0x910103ff, /* 10 add sp,sp,#0x40 */
        0xf9422b88, /* 14 ldr x8,[x28,#1104] */
        0xeb2863ff, /* 18 cmp sp,x8 */
        0x54000048, /* 1c b.hi 24 */
        0xd65f03c0, /* 20 ret */
    };
    check_code_tells(compiled, 0x44 / 4, 0x14 / 4, 0x90);
    check_code_tells(with_frame_pointer, sizeof with_frame_pointer / sizeof *with_frame_pointer, 0,
                     0x40);
    check_code_tells(with_poll, sizeof with_poll / sizeof *with_poll, 0, 0x40);
    struct walk_code popping = {.at = 0xa8c103e8}; /* ldp x8,x0,[sp],#16 */
    assert_true(code_is_popping(&popping));
}

TEST_MAIN(NULL, NULL)
