/*
 * The agent reports events at random up to its limit, and their weights stand for all. The
 * functions that it calls for each begin with what the kernel probes cheaply.
 */
#include "test.h"

#include "agent/events/probes.h"
#include "agent/threads/virtual_waits.h"

#include "format/event_probe.h"

#include <string.h>

/* Asks `count` times in each window. Returns how many were told in the last one. */
static uint32_t ask(struct probe_limit *limit, uint32_t windows, uint32_t count, uint64_t *sum)
{
    uint32_t told = 0;
    *sum = 0;
    for (uint32_t w = 1; w <= windows; w++) {
        told = 0;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t scale;
            uint64_t now = w * PROBE_LIMIT_WINDOW + i;
            if (probe_limit_passes(limit, now, &scale)) {
                told++;
                *sum += scale;
            }
        }
    }
    return told;
}

TEST(test_few_are_all_told)
{
    struct probe_limit limit = {0};
    uint64_t sum;
    assert_int_equal(ask(&limit, 10, PROBE_LIMIT_TOLD, &sum), PROBE_LIMIT_TOLD);
    assert_int_equal(sum, 10 * PROBE_LIMIT_TOLD);
}

TEST(test_many_are_told_by_chance_and_stand_for_all)
{
    struct probe_limit limit = {0};
    const uint32_t count = 100 * PROBE_LIMIT_TOLD;
    uint64_t sum;
    uint32_t told = ask(&limit, 100, count, &sum);
    assert_in_range(told, 1, 3 * PROBE_LIMIT_TOLD);
    double share = (double)sum / (100.0 * count);
    if (share < 0.97 || share > 1.03) {
        fail_msg("what was told stands for %.3f of all", share);
    }
    /* When it is quiet again all are told again. */
    for (uint64_t w = 200; w < 240; w++) {
        uint32_t scale;
        (void)probe_limit_passes(&limit, w * PROBE_LIMIT_WINDOW, &scale);
    }
    uint32_t scale = 0;
    assert_true(probe_limit_passes(&limit, 240 * PROBE_LIMIT_WINDOW, &scale));
    assert_int_equal(scale, 1);
}

TEST(test_short_waits_are_told_in_fair_shares)
{
    const uint64_t always = 1000000;
    uint64_t told = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        told += probe_wait_passes(10000, always, i); /* one of a hundred */
    }
    assert_in_range(told, 900, 1100);
    assert_true(probe_wait_passes(always, always, 7));
    assert_false(probe_wait_passes(0, always, 7));
}

TEST(test_functions_begin_with_a_nop)
{
    jdagent_event_alloc(1, 2, 3, "nothing happens", 0);
    jdagent_event_lock(1, 2, 3, "");
    jdagent_event_unmount(1, 2, 3, "");
    jdagent_event_mount(1, 2, 3, "");
#ifdef __x86_64__
    static const uint8_t code[] = {0x0f, 0x1f, 0x44, 0x00, 0x00, 0xc3};
    probe_function *const pointers[] = {(probe_function *)(void (*)(void))jdagent_event_alloc,
                                        jdagent_event_lock, jdagent_event_unmount,
                                        jdagent_event_mount};
    const void *functions[sizeof pointers / sizeof *pointers];
    memcpy(functions, pointers, sizeof functions);
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
        assert_memory_equal(functions[i], code, sizeof code);
    }
#endif
}

/* Descriptor above, root a gap below it, frame further down. */
TEST(test_a_stack_is_far_that_a_small_copy_does_not_hold)
{
    const uintptr_t thread = 0x7f0000100000;
    const uintptr_t gap = 4000;
    const uintptr_t root = thread - gap;
    assert_false(probe_stack_is_far(thread, gap, root - 100));
    assert_false(probe_stack_is_far(thread, gap, root - EVENT_STACK_NEAR + 1024));
    assert_true(probe_stack_is_far(thread, gap, root - EVENT_STACK_NEAR + 1023));
    assert_true(probe_stack_is_far(thread, gap, root - 100000));
    assert_true(probe_stack_is_far(thread, gap, 0x7fff00000000)); /* the first thread's */
    assert_true(probe_stack_is_far(0x555500000000, gap, root - 100));
}

static struct virtual_waits waits;

/* With its cost, which is the id here. */
static bool found(uint64_t id)
{
    uint32_t cost = 0;
    bool is_there = virtual_waits_take(&waits, id, &cost);
    assert_true(!is_there || cost == id);
    return is_there;
}

static bool kept(uint64_t id)
{
    _Atomic(uint32_t) *cost = virtual_waits_add(&waits, id);
    if (cost) {
        *cost = (uint32_t)id;
    }
    return cost != NULL;
}

/* Each that was taken in is found once; as many fit as the buckets hold, and no more. */
TEST(test_ids_are_kept_until_they_are_taken)
{
    const uint64_t most = UINT64_C(2) * VIRTUAL_WAITS_BUCKETS * VIRTUAL_WAITS_BUCKET;
    uint64_t count = 0;
    assert_false(found(1));
    for (uint64_t id = 1; id <= VIRTUAL_WAITS_BUCKETS; id++) { /* an eighth of the room */
        assert_true(kept(id));
    }
    assert_true(kept(1)); /* there already */
    for (uint64_t id = VIRTUAL_WAITS_BUCKETS; id > 0; id--) {
        assert_true(found(id));
        assert_false(found(id));
    }
    for (uint64_t id = 1; id <= most; id++) {
        count += kept(id);
    }
    assert_in_range(count, most / 3, most / 2);
    for (uint64_t id = 1; id <= most; id++) {
        count -= found(id);
    }
    assert_int_equal(count, 0);
}

TEST_MAIN(NULL, NULL)
