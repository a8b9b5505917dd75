/*
 * A thread writes the perf map: slow, hanging or full disks, limits, and the same map as without a
 * thread.
 */
#include "faulty_disk.h"
#include "random.h"
#include "scratch.h"
#include "test.h"
#include "writer/message.h"
#include "writer/sinks/perf_map_log.h"
#include "writer/stamp.h"

#include <errno.h>

static atomic_uint asked;

static bool note_want(void *context, enum record_log_want want)
{
    (void)context;
    assert_int_equal(want, RECORD_LOG_WANTS_ALL);
    return atomic_fetch_add(&asked, 1) > 0; /* the first time it cannot be seen to */
}

static int set_up(void **state)
{
    message_set_level(-1);
    faulty_disk_mend();
    atomic_store(&asked, 0);
    return scratch_create(state);
}

static struct perf_map_log *open_log(void **state, const char *name,
                                     struct perf_map_log_options options)
{
    struct perf_map_log *log = NULL;
    options.path = scratch_path(state, name);
    assert_int_equal(perf_map_log_open(&options, &log), 0);
    perf_map_log_on_want(log, note_want, NULL);
    return log;
}

static int put(struct perf_map_log *log, uint64_t address, uint64_t size, const char *name)
{
    perf_map_log_put(log, (struct range){address, address + size}, name);
    return perf_map_log_commit(log);
}

/* How many lines the map has; each is whole. */
static unsigned lines_of(void **state, const char *name)
{
    size_t size = 0;
    unsigned count = 0;
    char *text = (char *)scratch_read(scratch_path(state, name), &size);
    assert_non_null(text);
    assert_true(size == 0 || text[size - 1] == '\n');
    for (size_t i = 0; i < size; i++) {
        count += text[i] == '\n';
    }
    free(text);
    return count;
}

TEST_WITH(a_hung_disk_holds_nobody, set_up, scratch_remove)
{
    static char name[20000];
    struct perf_map_log_stats stats;
    struct perf_map_log *log =
        open_log(state, "map", (struct perf_map_log_options){.thread = true, .waits = true});
    unsigned refused = 0;
    unsigned taken = 0;
    memset(name, 'x', sizeof(name) - 1);
    atomic_store(&faulty_disk.hangs, true);
    uint64_t before = stamp_monotonic();
    for (uint64_t i = 0; i < 1000; i++) {
        perf_map_log_make_room(log, false);
        int error = put(log, 0x10000 + 64 * i, 64, name);
        assert_true(error == 0 || error == -ENOBUFS);
        refused += error != 0;
        taken += error == 0;
    }
    assert_true(stamp_monotonic() - before < UINT64_C(5000000000));
    assert_true(refused > 100 && taken > 100);
    assert_false(perf_map_log_settle(log));
    assert_int_equal(atomic_load(&asked), 0);
    atomic_store(&faulty_disk.hangs, false);
    while (!perf_map_log_settle(log)) {
        usleep(1000);
    }
    assert_int_equal(put(log, 0x10, 1, "again"), 0);
    for (uint64_t i = 0; atomic_load(&asked) < 2; i++) { /* each batch is a chance to ask */
        assert_true(i < 30000);
        usleep(1000);
        assert_int_equal(put(log, 0x10, 1, "again"), 0); /* known: no second line */
    }
    perf_map_log_stats(log, &stats);
    assert_true(!stats.failed && !stats.paused && stats.bytes > (uint64_t)taken * sizeof(name));
    perf_map_log_close(log);
    assert_int_equal(lines_of(state, "map"), taken + 1);
}

TEST_WITH(closing_does_not_wait_for_a_hung_disk, set_up, scratch_remove)
{
    struct perf_map_log *log =
        open_log(state, "map", (struct perf_map_log_options){.thread = true, .waits = true});
    atomic_store(&faulty_disk.hangs, true);
    assert_int_equal(put(log, 0x1000, 16, "name"), 0);
    uint64_t before = stamp_monotonic();
    perf_map_log_close(log);
    assert_true(stamp_monotonic() - before < UINT64_C(5000000000));
    atomic_store(&faulty_disk.hangs, false);
    for (int ms = 0; lines_of(state, "map") == 0; ms++) {
        assert_true(ms < 30000);
        usleep(1000);
    }
    usleep(100000); /* the thread frees the log, which sanitizers watch */
}

TEST_WITH(a_full_disk_is_waited_for, set_up, scratch_remove)
{
    struct perf_map_log_stats stats;
    struct perf_map_log *log =
        open_log(state, "map", (struct perf_map_log_options){.thread = true, .waits = true});
    faulty_disk.room = 20;
    faulty_disk.error = ENOSPC;
    assert_int_equal(put(log, 0x1000, 16, "first"), 0); /* 14 bytes */
    assert_true(perf_map_log_settle(log));
    assert_int_equal(put(log, 0x2000, 16, "second"), 0);
    assert_false(perf_map_log_settle(log));
    perf_map_log_stats(log, &stats);
    assert_true(stats.paused && stats.has_paused && !stats.failed);
    assert_int_equal(lines_of(state, "map"), 1);
    faulty_disk.room = SIZE_MAX;
    while (!perf_map_log_settle(log)) {
        usleep(1000);
    }
    perf_map_log_stats(log, &stats);
    assert_true(!stats.paused && stats.has_paused && !stats.failed);
    assert_int_equal(put(log, 0x1008, 16, "third"), 0); /* of which the first has a part */
    perf_map_log_close(log);
    char *text = (char *)scratch_read(scratch_path(state, "map"), NULL);
    assert_string_equal(text, "1000 8 first\n1008 10 third\n2000 10 second\n");
    free(text);
}

TEST_WITH(the_reserve_is_left_to_others, set_up, scratch_remove)
{
    struct perf_map_log_stats stats;
    struct perf_map_log *log = open_log(
        state, "map",
        (struct perf_map_log_options){.thread = true, .waits = true, .reserve = UINT64_MAX / 2});
    assert_int_equal(put(log, 0x1000, 16, "name"), 0);
    assert_false(perf_map_log_settle(log));
    perf_map_log_stats(log, &stats);
    assert_true(stats.paused && !stats.failed && stats.bytes == 0);
    assert_int_equal(lines_of(state, "map"), 0);
    perf_map_log_close(log);
    log = open_log(state, "other", (struct perf_map_log_options){.reserve = UINT64_MAX / 2});
    assert_int_equal(put(log, 0x1000, 16, "name"), -ENOSPC);
    assert_int_equal(put(log, 0x1000, 16, "name"), -EPIPE);
    perf_map_log_close(log);
    assert_int_equal(lines_of(state, "other"), 0);
}

TEST_WITH(max_ends_the_map, set_up, scratch_remove)
{
    for (int thread = 0; thread < 2; thread++) {
        struct perf_map_log_stats stats = {.failed = false};
        const char *file = thread ? "with" : "without";
        struct perf_map_log *log = open_log(
            state, file,
            (struct perf_map_log_options){.thread = thread, .waits = true, .max_bytes = 1000});
        uint64_t count = 0;
        for (; !stats.failed; count++) {
            assert_true(count < 1000);
            (void)put(log, 0x10000 + 64 * count, 64, "one of many names");
            assert_true(perf_map_log_settle(log));
            perf_map_log_stats(log, &stats);
        }
        assert_int_equal(put(log, 0x1000, 16, "late"), -EPIPE);
        perf_map_log_close(log);
        assert_true(stats.bytes <= 1000 && stats.bytes > 900);
        assert_int_equal(lines_of(state, file), count - 1);
    }
}

/* Line for line, whatever a thread has been told in one go. */
TEST_WITH(a_thread_makes_the_same_map, set_up, scratch_remove)
{
    uint64_t random = random_seed();
    struct perf_map_log *logs[] = {
        open_log(state, "with", (struct perf_map_log_options){.thread = true}),
        open_log(state, "without", (struct perf_map_log_options){0})};
    for (unsigned i = 0; i < 5000; i++) {
        uint64_t start = 0x1000 + random_below(&random, 4096);
        uint64_t size = 1 + random_below(&random, 64);
        uint64_t to = 0x1000 + random_below(&random, 4096);
        bool moves = random_below(&random, 5) == 0;
        char name[32];
        snprintf(name, sizeof(name), "name%u", i);
        for (int which = 0; which < 2; which++) {
            perf_map_log_make_room(logs[which], true);
            const struct range range = {start, start + size};
            assert_int_equal(moves ? perf_map_log_move(logs[which], range, to)
                                   : put(logs[which], start, size, name),
                             0);
        }
    }
    perf_map_log_close(logs[0]);
    perf_map_log_close(logs[1]);
    char *with = (char *)scratch_read(scratch_path(state, "with"), NULL);
    char *without = (char *)scratch_read(scratch_path(state, "without"), NULL);
    assert_string_equal(with, without);
    assert_true(lines_of(state, "with") > 100);
    free(with);
    free(without);
}

TEST_MAIN(NULL, NULL)
