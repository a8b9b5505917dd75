/* Segments on disks that are slow, hang or fill, with and without a writer thread. */
#include "decoded_dump.h"
#include "faulty_disk.h"
#include "scratch.h"
#include "test.h"

#include "writer/disk_room.h"
#include "writer/log/log_queue.h"
#include "writer/log/record_log.h"
#include "writer/message.h"
#include "writer/occupancy/timeline.h"
#include "writer/stamp.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

/* The code that lives, as far as the records tell. */
static struct timeline *timeline;

static int set_up(void **state)
{
    timeline_free(timeline);
    timeline = timeline_new(1);
    assert_non_null(timeline);
    faulty_disk_mend();
    message_set_level(-1);
    return scratch_create(state);
}

static struct record_log *open_log(void **state, struct record_log_options options)
{
    struct record_log_header header = {.size = 40};
    static const uint32_t words[] = {0x4A695444, 1, 40, 62, 0, 7};
    struct record_log *log = NULL;
    memcpy(header.bytes, words, sizeof(words));
    options.directory = *state;
    options.directory_fd = AT_FDCWD;
    options.pid = 7;
    assert_int_equal(record_log_open(&options, &header, &log), 0);
    return log;
}

/* A record of that many bytes about code at an address. */
static int append(struct record_log *log, uint64_t address, uint32_t size)
{
    static uint8_t bytes[256 * 1024];
    const uint32_t prefix[] = {99, size};
    uint64_t stamp = address;
    memcpy(bytes, prefix, sizeof(prefix));
    memcpy(bytes + 8, &stamp, sizeof(stamp));
    struct iovec piece = {bytes, size};
    static int32_t last_id;
    struct code code = {.address = address, .size = 64, .name = "x", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = ++last_id;
    const struct stay stay = timeline_load(timeline, &code, NULL, 1, (uint64_t)last_id + 1);
    struct living_record *living = living_record_new();
    assert_non_null(living);
    int error = record_log_append(log, RECORD_LOG_DUMP, living, &piece, 1, 0);
    occupant_keep(error ? NULL : stay.occupant, &living->kept);
    return error;
}

/* How often a dump tells of the code at an address (its stamp). */
static unsigned tells_of(void **state, const char *name, uint64_t address)
{
    OWN_DECODED_DUMP dump;
    unsigned times = 0;
    decoded_dump_read(&dump, scratch_path(state, name));
    assert_false(dump.torn);
    for (size_t i = 0; i < dump.count; i++) {
        times += dump.records[i].id == 99 && dump.records[i].stamp == address;
    }
    return times;
}

/* Of so many addresses, each 64 behind the last, how many a dump tells of just once. */
static unsigned tells_once_of(void **state, const char *name, uint64_t first, unsigned count)
{
    OWN_DECODED_DUMP dump;
    unsigned times[512] = {0};
    unsigned once = 0;
    assert_true(count <= sizeof(times) / sizeof(times[0]));
    decoded_dump_read(&dump, scratch_path(state, name));
    assert_false(dump.torn);
    for (size_t i = 0; i < dump.count; i++) {
        uint64_t nth = (dump.records[i].stamp - first) / 64;
        if (dump.records[i].id == 99 && dump.records[i].stamp >= first && nth < count) {
            times[nth]++;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        once += times[i] == 1;
    }
    return once;
}

static bool is_there(void **state, const char *name)
{
    return access(scratch_path(state, name), F_OK) == 0;
}

TEST_WITH(segments_begin_with_living_code, set_up, scratch_remove)
{
    struct record_log *log = open_log(state, (struct record_log_options){.segment = 65536});
    assert_int_equal(append(log, 0x10000, 1000), 0); /* stays */
    assert_int_equal(append(log, 0x20000, 1000), 0); /* goes */
    assert_int_equal(append(log, 0x30000, 1000), 0); /* is overlapped as a whole */
    assert_int_equal(append(log, 0x40000, 1000), 0); /* in part */
    assert_int_equal(timeline_unload(timeline, 0x20000, -1, 1000), TIMELINE_GONE);
    assert_int_equal(append(log, 0x30000 - 8, 1000), 0);
    assert_int_equal(append(log, 0x40000 + 32, 1000), 0);
    assert_int_equal(append(log, 0x30000 + 8, 1000), 0);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(append(log, 0x900000, 1000), 0);
    }
    record_log_close(log);
    assert_true(is_there(state, "segment-000001/jit-7.dump"));
    assert_false(is_there(state, "segment-000003"));
    for (unsigned i = 1; i <= 2; i++) {
        char name[64];
        snprintf(name, sizeof(name), "segment-00000%u/jit-7.dump", i);
        struct stat status;
        assert_int_equal(stat(scratch_path(state, name), &status), 0);
        assert_true(status.st_size <= 65536 + 16);
        assert_int_equal(tells_of(state, name, 0x10000), 1);
        assert_int_equal(tells_of(state, name, 0x20000), i == 1);
        assert_int_equal(tells_of(state, name, 0x30000), i == 1);
        assert_int_equal(tells_of(state, name, 0x40000), 1);
        assert_int_equal(tells_of(state, name, 0x40000 + 32), 1);
    }
    assert_true(tells_of(state, "segment-000002/jit-7.dump", 0x900000) > 30);
}

TEST_WITH(of_segments_only_so_many_are_kept, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.segment = 65536, .keep = 2});
    assert_int_equal(append(log, 0x10000, 1000), 0);
    assert_int_equal(mkdir(scratch_path(state, "segment-000003"), 0700), 0); /* a stranger's */
    for (uint64_t i = 0; i < 400; i++) {
        assert_int_equal(append(log, 0x900000, 1000), 0);
    }
    record_log_close(log);
    assert_false(is_there(state, "segment-000001"));
    assert_false(is_there(state, "segment-000006"));
    assert_true(is_there(state, "segment-000003"));
    assert_int_equal(tells_of(state, "segment-000007/jit-7.dump", 0x10000), 1);
    assert_int_equal(tells_of(state, "segment-000008/jit-7.dump", 0x10000), 1);
    assert_false(is_there(state, "segment-000009"));
    /* A later session takes nothing over, and removes nothing. */
    log = open_log(state, (struct record_log_options){.segment = 65536, .keep_bytes = 65536});
    for (uint64_t i = 0; i < 400; i++) {
        assert_int_equal(append(log, 0x900000, 1000), 0);
    }
    record_log_close(log);
    assert_true(is_there(state, "segment-000007/jit-7.dump"));
    assert_false(is_there(state, "session-2/segment-000001"));
    assert_true(is_there(state, "session-2/segment-000007/jit-7.dump"));
}

TEST_WITH(living_code_alone_may_fill_a_segment, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.segment = 65536, .keep = 2});
    for (uint64_t i = 0; i < 400; i++) {
        assert_int_equal(append(log, 0x10000 + 64 * i, 1000), 0);
    }
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(append(log, 0x900000, 1000), 0);
    }
    struct record_log_stats stats;
    record_log_stats(log, RECORD_LOG_DUMP, &stats);
    assert_true(stats.segments < 40);
    char path[PATH_MAX];
    record_log_path(log, path);
    record_log_close(log);
    assert_int_equal(tells_once_of(state, path + strlen(*state) + 1, 0x10000, 400), 400);
}

static atomic_uint asked[2];
static atomic_uint refusals; /* wishes that cannot be seen to, from now on */

static bool note_want(void *context, enum record_log_want want)
{
    (void)context;
    if (atomic_load(&refusals) > 0) {
        atomic_fetch_sub(&refusals, 1);
        return false;
    }
    atomic_fetch_add(&asked[want], 1);
    return true;
}

static void wait_until(bool (*met)(void))
{
    for (int ms = 0; !met(); ms++) {
        assert_true(ms < 20000);
        usleep(1000);
    }
}

static bool asked_for_all(void)
{
    return atomic_load(&asked[RECORD_LOG_WANTS_ALL]) > 0;
}

TEST_WITH(hung_disk_holds_nobody, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.thread = true, .waits = true});
    record_log_on_want(log, note_want, NULL);
    atomic_store(&asked[RECORD_LOG_WANTS_ALL], 0);
    atomic_store(&faulty_disk.hangs, true);
    uint64_t before = stamp_monotonic();
    unsigned refused = 0;
    unsigned taken = 0;
    for (uint64_t i = 0; i < 200; i++) {
        record_log_make_room(log, false);
        int error = append(log, 0x10000 + 64 * i, 100000);
        assert_true(error == 0 || error == -ENOBUFS);
        refused += error != 0;
        taken += error == 0;
    }
    assert_true(stamp_monotonic() - before < UINT64_C(5000000000));
    assert_true(refused > 100 && taken > 20);
    assert_false(record_log_settle(log));
    assert_int_equal(atomic_load(&asked[RECORD_LOG_WANTS_ALL]), 0);
    atomic_store(&faulty_disk.hangs, false);
    wait_until(asked_for_all);
    for (uint64_t i = 0; i < 200; i++) {
        record_log_make_room(log, true);
        assert_int_equal(append(log, 0x20000 + 64 * i, 100000), 0);
    }
    assert_true(record_log_settle(log));
    record_log_close(log);
    assert_int_equal(tells_once_of(state, "jit-7.dump", 0x20000, 200), 200);
}

/* Whether who is in a hurry was held. */
static bool waits_for_room(struct log_queue *queue)
{
    struct rusage before;
    struct rusage after;
    assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
    log_queue_make_room(queue, false);
    assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
    return after.ru_nvcsw > before.ru_nvcsw;
}

static void post(struct log_queue *queue)
{
    static uint8_t bytes[600];
    struct iovec piece = {bytes, sizeof(bytes)};
    assert_true(log_queue_post(queue, &(struct log_head){0}, &piece, 1));
}

/* Each write of a slow disk is progress, but none for those who wait. */
TEST_WITH(slow_disk_holds_nobody_twice, set_up, scratch_remove)
{
    struct log_queue *queue = log_queue_new(1000);
    struct log_batch batch;
    assert_non_null(queue);
    post(queue);
    assert_true(log_queue_take(queue, &batch));
    assert_false(waits_for_room(queue)); /* there is room */
    for (int i = 0; i < 3; i++) {
        post(queue);
        assert_true(waits_for_room(queue));
        for (int write = 0; write < 3; write++) {
            log_queue_progress(queue);
            assert_false(waits_for_room(queue));
        }
        log_queue_release(queue);
        assert_true(log_queue_take(queue, &batch));
        assert_false(waits_for_room(queue)); /* and may wait again */
    }
    log_queue_free(queue);
}

/* Takes what there is, and works on for a second without a word. */
static void *work_for_a_second(void *argument)
{
    struct log_queue *queue = argument;
    struct log_batch batch;
    while (log_queue_take(queue, &batch)) {
        log_queue_release(queue);
    }
    for (uint64_t from = stamp_monotonic(); stamp_monotonic() - from < UINT64_C(1000000000);) {
    }
    (void)log_queue_ended(queue);
    return NULL;
}

/* A thread that could run, and on a busy machine may not, is no disk that does not respond. */
TEST_WITH(a_thread_without_a_processor_is_waited_for, set_up, scratch_remove)
{
    struct log_queue *queue = log_queue_new(1000);
    pthread_t thread;
    assert_non_null(queue);
    post(queue);
    assert_int_equal(pthread_create(&thread, NULL, work_for_a_second, queue), 0);
    assert_true(log_queue_stop(queue, thread, "a disk"));
    log_queue_free(queue);
}

static bool is_closed(void)
{
    return faulty_disk.calls > 1; /* the end, behind the record */
}

TEST_WITH(closing_does_not_wait_for_a_hung_disk, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.thread = true, .waits = true});
    faulty_disk.calls = 0;
    atomic_store(&faulty_disk.hangs, true);
    assert_int_equal(append(log, 0x10000, 1000), 0);
    uint64_t before = stamp_monotonic();
    record_log_close(log);
    assert_true(stamp_monotonic() - before < UINT64_C(5000000000));
    atomic_store(&faulty_disk.hangs, false);
    wait_until(is_closed);
    usleep(100000); /* the thread frees the log, which sanitizers watch */
    assert_int_equal(tells_of(state, "jit-7.dump", 0x10000), 1);
}

TEST_WITH(full_disk_is_waited_for, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.thread = true, .waits = true});
    struct record_log_stats stats;
    faulty_disk.room = 1500;
    faulty_disk.error = ENOSPC;
    assert_int_equal(append(log, 0x10000, 1000), 0);
    assert_true(record_log_settle(log));
    assert_int_equal(append(log, 0x20000, 1000), 0);
    assert_false(record_log_settle(log));
    record_log_stats(log, RECORD_LOG_DUMP, &stats);
    assert_true(stats.paused && stats.has_paused && !stats.failed);
    /* Cut back to where a record ends. */
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "jit-7.dump"), &status), 0);
    assert_int_equal(status.st_size, 40 + 1000);
    faulty_disk.room = SIZE_MAX;
    for (int i = 0; !record_log_settle(log); i++) {
        assert_true(i < 20000);
        usleep(1000);
    }
    record_log_stats(log, RECORD_LOG_DUMP, &stats);
    assert_true(!stats.paused && stats.has_paused && stats.lost == 0);
    record_log_close(log);
    assert_int_equal(tells_of(state, "jit-7.dump", 0x10000), 1);
    assert_int_equal(tells_of(state, "jit-7.dump", 0x20000), 1);
}

/* The pause has lasted longer than anybody's patience, and yet the log ends by itself. */
TEST_WITH(closing_ends_a_pause, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.thread = true, .waits = true});
    faulty_disk.room = 0;
    faulty_disk.error = ENOSPC;
    faulty_disk.calls = 0;
    assert_int_equal(append(log, 0x10000, 1000), 0);
    assert_false(record_log_settle(log));
    usleep(600000);
    record_log_close(log);
    unsigned calls = faulty_disk.calls;
    usleep(100000);
    assert_int_equal(faulty_disk.calls, calls); /* nobody is left who writes */
    assert_int_equal(tells_of(state, "jit-7.dump", 0x10000), 0);
}

TEST_WITH(reserve_is_left_to_others, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.waits = true, .reserve = UINT64_MAX - 1});
    assert_int_equal(append(log, 0x10000, 1000), -ENOBUFS);
    record_log_close(log);
    assert_int_equal(tells_of(state, "jit-7.dump", 0x10000), 0);
    int fd = open("/tmp", O_RDONLY | O_CLOEXEC);
    uint64_t room;
    uint64_t left;
    do { /* others write to that disk meanwhile */
        room = disk_room(fd, 0);
        left = disk_room(fd, DISK_ROOM_DEFAULT);
    } while (disk_room(fd, 0) != room);
    assert_in_range(left, 0, room);
    assert_in_range(room - left, 0, UINT64_C(1) << 30);
    close(fd);
}

TEST_WITH(table_begins_anew_with_each_segment, set_up, scratch_remove)
{
    struct record_log *log =
        open_log(state, (struct record_log_options){.segment = 65536, .thread = true});
    const struct record_log_header header = {.size = 32};
    record_log_on_want(log, note_want, NULL);
    atomic_store(&asked[RECORD_LOG_WANTS_TABLE], 0);
    atomic_store(&refusals, 1);
    assert_int_equal(record_log_add_table(log, &header), 0);
    static uint8_t row[1000];
    for (uint64_t i = 0; i < 100; i++) {
        struct iovec piece = {row, sizeof(row)};
        assert_int_equal(record_log_append(log, RECORD_LOG_TABLE, NULL, &piece, 1, 0), 0);
        assert_true(record_log_settle(log));
    }
    record_log_close(log);
    struct stat status;
    assert_int_equal(stat(scratch_path(state, "segment-000002/jit-7.methods"), &status), 0);
    assert_true(status.st_size < 65536 && (status.st_size - 32) % 1000 == 0);
    assert_int_equal(atomic_load(&asked[RECORD_LOG_WANTS_TABLE]), 1);
    assert_true(is_there(state, "segment-000002/jit-7.dump"));
}

/* Also where the clock is coarse, and stamps have run ahead of it to differ. */
TEST_WITH(the_end_is_later_than_any_record, set_up, scratch_remove)
{
    const uint64_t ahead = stamp_monotonic() + UINT64_C(1000000000000);
    struct record_log *log = open_log(state, (struct record_log_options){.thread = true});
    assert_int_equal(append(log, ahead, 1000), 0);
    assert_int_equal(append(log, 0x10000, 1000), 0);
    record_log_close(log);
    OWN_DECODED_DUMP dump;
    decoded_dump_read(&dump, scratch_path(state, "jit-7.dump"));
    assert_int_equal(dump.count, 3);
    assert_int_equal(dump.records[2].id, DECODED_CLOSE);
    assert_int_equal(dump.records[2].stamp, ahead + 1);
}

/* Whoever can move a directory has no say in where the files of the session go. */
TEST_WITH(files_go_where_the_dump_is, set_up, scratch_remove)
{
    for (unsigned segments = 0; segments < 2; segments++) {
        struct record_log *log = NULL;
        const struct record_log_header header = {.size = 32};
        char given[PATH_MAX];
        char moved[PATH_MAX];
        char path[PATH_MAX + 64];
        struct stat by_name;
        struct stat by_fd;
        snprintf(given, sizeof(given), "%s", scratch_path(state, segments ? "segments" : "plain"));
        snprintf(moved, sizeof(moved), "%s", scratch_path(state, segments ? "moved" : "elsewhere"));
        assert_int_equal(mkdir(given, 0700), 0);
        int fd = open(given, O_PATH | O_DIRECTORY | O_CLOEXEC);
        const struct record_log_options options = {
            .directory = given, .directory_fd = fd, .pid = 7, .segment = segments ? 65536 : 0};
        assert_int_equal(record_log_open(&options, &header, &log), 0);
        close(fd);
        assert_int_equal(rename(given, moved), 0);
        assert_int_equal(mkdir(given, 0700), 0);
        assert_int_equal(record_log_add_table(log, &header), 0);
        snprintf(path, sizeof(path), "%s%s/jit-7.methods", moved,
                 segments ? "/segment-000001" : "");
        assert_int_equal(stat(path, &by_name), 0);
        assert_int_equal(fstat(record_log_beside(log, "threads", path), &by_fd), 0);
        assert_int_equal(stat(moved, &by_name), 0);
        assert_int_equal(by_fd.st_ino, by_name.st_ino);
        assert_string_equal(path + strlen(given), "/jit-7.threads");
        record_log_close(log);
        assert_int_equal(rmdir(given), 0); /* nothing is in it */
    }
}

/* A JVM tells of its death before its threads stop. */
TEST_WITH(the_end_of_a_process_is_later, set_up, scratch_remove)
{
    struct record_log *log = open_log(state, (struct record_log_options){.thread = true});
    assert_int_equal(append(log, 0x10000, 1000), 0);
    record_log_process_ends(log);
    record_log_close(log);
    OWN_DECODED_DUMP dump;
    decoded_dump_read(&dump, scratch_path(state, "jit-7.dump"));
    assert_true(dump.records[1].stamp > stamp_monotonic() + UINT64_C(1000000000));
}

TEST_MAIN(NULL, NULL)
