/* Sorts records by time in bounded memory. */
#include "test.h"

#include "jdtool/perf/record_queue.h"
#include "tests/random.h"
#include "tests/sanitized.h"

#include <malloc.h>
#include <string.h>

static uint8_t *put(struct record_queue *queue, uint64_t time, uint32_t size)
{
    const struct queued_record record = {.time = time, .size = size, .kind = 3, .pid = 4};
    uint8_t *bytes = record_queue_put(queue, &record);
    assert_non_null(bytes);
    assert_int_equal((uintptr_t)bytes % 16, 0);
    memset(bytes, (int)(time & 0xff), size);
    return bytes;
}

/* The time of the next one, 0: none is due. */
static uint64_t take(struct record_queue *queue)
{
    struct queued_record record;
    if (!record_queue_first(queue)) {
        return 0;
    }
    record_queue_take(queue, &record);
    for (uint32_t i = 0; i < record.size; i++) {
        assert_int_equal(((const uint8_t *)record.bytes)[i], record.time & 0xff);
    }
    assert_int_equal(record.kind, 3);
    assert_int_equal(record.pid, 4);
    record_queue_give_back(queue, &record);
    return record.time;
}

TEST(rounds_let_go)
{
    struct record_queue *queue = record_queue_new(1 << 20);
    put(queue, 30, 10);
    put(queue, 10, 10);
    assert_int_equal(take(queue), 0);
    record_queue_round(queue);
    assert_int_equal(take(queue), 0); /* what comes may still be older than 30 */
    put(queue, 40, 10);
    put(queue, 20, 10);
    record_queue_round(queue);
    assert_int_equal(take(queue), 10);
    assert_int_equal(take(queue), 20);
    assert_int_equal(take(queue), 30);
    assert_int_equal(take(queue), 0);
    put(queue, 40, 5); /* as old as another one: behind it */
    record_queue_finish(queue);
    const struct queued_record *first = record_queue_first(queue);
    assert_int_equal(first->size, 10);
    assert_int_equal(take(queue), 40);
    assert_int_equal(take(queue), 40);
    assert_int_equal(record_queue_late(queue), 0);
    record_queue_free(queue);
}

TEST(the_same_time_keeps_the_order_they_came_in)
{
    struct record_queue *queue = record_queue_new(1 << 20);
    for (uint32_t i = 0; i < 200; i++) {
        put(queue, i % 2 ? 40 : 30, i + 1);
    }
    record_queue_finish(queue);
    for (uint32_t i = 0; i < 200; i++) {
        const struct queued_record *first = record_queue_first(queue);
        assert_non_null(first);
        assert_int_equal(first->size, i < 100 ? i * 2 + 1 : (i - 100) * 2 + 2);
        assert_int_equal(take(queue), i < 100 ? 30 : 40);
    }
    record_queue_free(queue);
}

TEST(what_has_no_time_comes_first)
{
    struct record_queue *queue = record_queue_new(1 << 20);
    put(queue, 30, 10);
    put(queue, 0, 10);
    struct queued_record record;
    assert_non_null(record_queue_first(queue));
    record_queue_take(queue, &record);
    assert_int_equal(record.time, 0);
    record_queue_give_back(queue, &record);
    assert_null(record_queue_first(queue));
    record_queue_free(queue);
}

/* What was taken lives until it is given back, and the budget is for others meanwhile. */
TEST(what_was_taken_stays)
{
    enum { COUNT = 3000, SIZE = 1000 };
    static struct queued_record taken[COUNT];
    struct record_queue *queue = record_queue_new(1 << 20);
    for (uint32_t i = 0; i < COUNT; i++) {
        put(queue, i + 1, SIZE);
        record_queue_round(queue);
        record_queue_round(queue);
        assert_non_null(record_queue_first(queue));
        record_queue_take(queue, &taken[i]);
        assert_false(record_queue_is_full(queue));
    }
    for (uint32_t i = COUNT; i-- > 0;) {
        const uint8_t *bytes = taken[i].bytes;
        assert_int_equal(taken[i].time, i + 1);
        assert_int_equal(bytes[0], (i + 1) & 0xff);
        assert_int_equal(bytes[SIZE - 1], (i + 1) & 0xff);
        record_queue_give_back(queue, &taken[i]);
    }
    record_queue_free(queue);
}

TEST(random_records_come_out_in_order)
{
    uint64_t seed = random_seed();
    struct record_queue *queue = record_queue_new((size_t)64 << 20);
    uint64_t count = 0;
    uint64_t last = 0;
    for (uint64_t round = 1; round < (SANITIZED ? 50 : 200); round++) {
        uint32_t records = random_below(&seed, 300);
        for (uint32_t i = 0; i < records; i++) {
            put(queue, round * 1000 + random_below(&seed, 2000), random_below(&seed, 9000));
            count++;
        }
        record_queue_round(queue);
        for (uint64_t time; (time = take(queue)) != 0; count--) {
            assert_true(time >= last);
            last = time;
        }
    }
    record_queue_finish(queue);
    for (uint64_t time; (time = take(queue)) != 0; count--) {
        assert_true(time >= last);
        last = time;
    }
    assert_int_equal(count, 0);
    assert_int_equal(record_queue_late(queue), 0);
    record_queue_free(queue);
}

/* Without rounds the oldest go when there are too many, and a straggler is counted. */
TEST(a_budget_is_kept)
{
    enum { BUDGET = 4 << 20 };
    struct record_queue *queue = record_queue_new(BUDGET);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (uint64_t time = 1000; time < (SANITIZED ? 31000 : 101000); time++) {
        put(queue, time, 1000);
        if (record_queue_is_full(queue)) {
            assert_true(take(queue) != 0);
        }
        size_t taken = mallinfo2().uordblks + mallinfo2().hblkhd - before;
        assert_true(taken < 2 * BUDGET);
    }
    assert_int_equal(record_queue_late(queue), 0);
    put(queue, 1, 100);
    assert_int_equal(record_queue_late(queue), 1);
    put(queue, 200000, 3 << 20); /* larger than a block */
    record_queue_free(queue);
}

/* Of what has waited once, nothing much is kept. */
TEST(room_is_given_back)
{
    enum { WAITS = SANITIZED ? 16 << 20 : 64 << 20, SIZE = 10000, LEFT = 8 << 20 };
    struct record_queue *queue = record_queue_new(WAITS);
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    for (int round = 0; round < 2; round++) {
        uint64_t time = 1000;
        while (!record_queue_is_full(queue)) {
            put(queue, time++, SIZE);
        }
        assert_true(SANITIZED || mallinfo2().uordblks + mallinfo2().hblkhd - before > WAITS / 2);
        record_queue_round(queue);
        record_queue_round(queue);
        while (take(queue)) {
        }
        assert_true(mallinfo2().uordblks + mallinfo2().hblkhd - before < LEFT);
    }
    record_queue_free(queue);
}

TEST_MAIN(NULL, NULL)
