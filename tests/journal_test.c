/*
 * The reader of the journal of threads gives back what threads wrote, at any moment. And broken
 * journals.
 */
#include "test.h"

#include "agent/threads/journal.h"
#include "format/threads.h"
#include "jdtool/jitdump/thread_journal.h"
#include "random.h"
#include "sanitized.h"
#include "scratch.h"
#include "writer/process.h"
#include "writer/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

static struct thread_journal *journal;

static int close_all(void **state)
{
    journal_close();
    thread_journal_close(journal);
    journal = NULL;
    return scratch_remove(state);
}

static const char *open_writer(void **state, uint64_t max_bytes)
{
    const char *path = scratch_path(state, "jit-1.threads");
    const struct journal_options options = {
        .directory = AT_FDCWD, .path = path, .pid = 1, .max_bytes = max_bytes};
    assert_int_equal(journal_open(&options), 0);
    assert_true(journal_is_open());
    return path;
}

static struct thread_identity at(uint32_t tid, uint64_t time, const char *comm)
{
    struct thread_identity found;
    assert_int_equal(thread_journal_at(journal, tid, time, comm, "java", &found), 0);
    return found;
}

/* What one thread did, with the times between. */
#define ROUNDS (SANITIZED ? 5000 : 20000)

struct truth {
    uint32_t tid;
    uint64_t first_id;
    uint64_t mounted[ROUNDS], unmounted[ROUNDS]; /* times when it was, or was not, for sure */
};

static void *mount_many(void *argument)
{
    struct truth *truth = argument;
    truth->tid = (uint32_t)process_thread_id();
    for (int i = 0; i < ROUNDS; i++) {
        journal_mount(truth->first_id + (uint64_t)i % 7);
        truth->mounted[i] = stamp_monotonic();
        while (stamp_monotonic() == truth->mounted[i]) {
        }
        journal_unmount(truth->first_id + (uint64_t)i % 7);
        truth->unmounted[i] = stamp_monotonic();
        while (stamp_monotonic() == truth->unmounted[i]) {
        }
    }
    journal_thread_end();
    return NULL;
}

TEST_WITH(many_threads_mount_at_once, scratch_create, close_all)
{
    enum { THREADS = 4 };
    static struct truth truths[THREADS];
    pthread_t threads[THREADS];
    const char *path = open_writer(state, 0);
    for (int i = 0; i < THREADS; i++) {
        truths[i].first_id = 100 * (uint64_t)(i + 1);
        assert_int_equal(pthread_create(&threads[i], NULL, mount_many, &truths[i]), 0);
    }
    assert_int_equal(thread_journal_open(path, false, &journal), 0); /* it is read as it grows */
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(thread_journal_update(journal, false) >= 0);
    }
    journal_close();
    assert_false(journal_is_open());
    assert_true(thread_journal_update(journal, true) >= 0);
    for (int i = 0; i < THREADS; i++) {
        const struct truth *truth = &truths[i];
        for (int j = 0; j < ROUNDS; j++) {
            struct thread_identity found = at(truth->tid, truth->mounted[j], "java");
            assert_false(found.is_unknown);
            assert_int_equal(found.virtual_id, truth->first_id + (uint64_t)j % 7);
            assert_int_equal(at(truth->tid, truth->unmounted[j], "java").virtual_id, 0);
        }
    }
}

TEST_WITH(names_are_whole_and_of_their_time, scratch_create, close_all)
{
    const char *path = open_writer(state, 0);
    const char first[] = "a worker with a long name 1";
    const char second[] = "something else altogether, number 2";
    char long_name[THREADS_TEXT_MAX + 10];
    memset(long_name, 'x', sizeof long_name);
    long_name[THREADS_TEXT_MAX - 1] = "é"[0]; /* not to be cut in halves */
    long_name[THREADS_TEXT_MAX] = "é"[1];
    journal_platform_name(7, 4711, first, strlen(first));
    uint64_t between = stamp_monotonic();
    journal_platform_name(7, 4711, second, strlen(second));
    journal_platform_name(8, 4712, long_name, sizeof long_name);
    uint64_t last = stamp_monotonic();
    journal_platform_name(9, 4711, "x", 1); /* the number was given to another thread */
    journal_close();
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
    assert_int_equal(thread_journal_pid(journal), 1);
    /* Before the first one, too: it was there. */
    assert_string_equal(at(4711, 1, "a worker with a").name, first);
    assert_string_equal(at(4711, between, "a worker with a").name, first);
    /* Renamed, and read later; as earlier kernels' JDKs shorten names and as later ones do. */
    assert_string_equal(at(4711, between, "something else ").name, second);
    assert_string_equal(at(4711, between, "somethi..mber 2").name, second);
    assert_string_equal(at(4711, last, "a worker with a").name, first);
    assert_null(at(4711, last, "never read").name);
    assert_string_equal(at(4711, last, "java").name, second); /* the kernel was never told one */
    assert_string_equal(at(4711, UINT64_MAX, "x").name, "x");
    assert_null(at(4713, last, "java").name);
    const char *cut = at(4712, last, "java").name;
    assert_int_equal(strlen(cut), THREADS_TEXT_MAX - 1 + strlen("…"));
    assert_string_equal(cut + THREADS_TEXT_MAX - 1, "…");
}

TEST_WITH(labels_stay_with_a_virtual_thread, scratch_create, close_all)
{
    const char *path = open_writer(state, 0);
    uint32_t tid = (uint32_t)process_thread_id();
    uint64_t times[8];
    journal_label_text(1, "request=a", 9);
    journal_label_text(2, "request=b", 9);
    journal_label(1); /* the platform thread's own */
    times[0] = stamp_monotonic();
    journal_mount(50);
    times[1] = stamp_monotonic();
    journal_label(2);
    times[2] = stamp_monotonic();
    journal_unmount(50);
    times[3] = stamp_monotonic();
    journal_mount(51);
    times[4] = stamp_monotonic();
    journal_unmount(51);
    journal_mount(50);
    times[5] = stamp_monotonic();
    journal_label(0);
    times[6] = stamp_monotonic();
    journal_unmount(50);
    journal_close();
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
    assert_string_equal(at(tid, times[0], "java").labels, "request=a");
    assert_null(at(tid, times[1], "java").labels);
    assert_string_equal(at(tid, times[2], "java").labels, "request=b");
    assert_string_equal(at(tid, times[3], "java").labels, "request=a");
    assert_null(at(tid, times[4], "java").labels);
    assert_string_equal(at(tid, times[5], "java").labels, "request=b");
    assert_null(at(tid, times[6], "java").labels);
}

/* At attach a thread may have been carrying one already: what it unmounts first was there. */
TEST_WITH(what_is_unmounted_was_mounted, scratch_create, close_all)
{
    const char *path = open_writer(state, 0);
    uint32_t tid = (uint32_t)process_thread_id();
    uint64_t before = stamp_monotonic();
    journal_unmount(60);
    uint64_t after = stamp_monotonic();
    journal_virtual_name(60, "sixty", 5);
    assert_false(journal_knows_virtual(60));
    assert_true(journal_knows_virtual(60));
    assert_false(journal_knows_virtual(60 + 65536)); /* in the same place */
    assert_false(journal_knows_virtual(60));
    journal_close();
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
    assert_int_equal(at(tid, before, "java").virtual_id, 60);
    assert_string_equal(at(tid, before, "java").virtual_name, "sixty");
    assert_int_equal(at(tid, after, "java").virtual_id, 0);
}

TEST_WITH(sessions_follow_each_other, scratch_create, close_all)
{
    uint32_t tid = (uint32_t)process_thread_id();
    for (int i = 0; i < 40; i++) {
        const char *path = open_writer(state, 0);
        journal_mount((uint64_t)i + 1);
        uint64_t time = stamp_monotonic();
        journal_close();
        journal_mount(99); /* to nobody */
        assert_int_equal(thread_journal_open(path, true, &journal), 0);
        assert_int_equal(at(tid, time, "java").virtual_id, i + 1);
        assert_int_equal(at(tid, UINT64_MAX, "java").virtual_id, i + 1);
        thread_journal_close(journal);
        journal = NULL;
        assert_int_equal(unlink(path), 0);
    }
}

/* ---- Very many ---- */

enum { MANY = SANITIZED ? 5000 : JOURNAL_CHUNKS + 600 };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t all_told;
    pthread_cond_t may_end;
    unsigned told;
    bool go_on;
} many = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .all_told = PTHREAD_COND_INITIALIZER,
          .may_end = PTHREAD_COND_INITIALIZER};

static void *tell_and_live(void *argument)
{
    uint32_t *tid = argument;
    *tid = (uint32_t)process_thread_id();
    journal_mount(*tid);
    pthread_mutex_lock(&many.lock);
    many.told++;
    pthread_cond_signal(&many.all_told);
    while (!many.go_on) {
        pthread_cond_wait(&many.may_end, &many.lock);
    }
    pthread_mutex_unlock(&many.lock);
    return NULL;
}

/* Those that have nothing to tell at the moment hold nothing. */
TEST_WITH(threads_that_live_are_any_number, scratch_create, close_all)
{
    static uint32_t tids[MANY];
    static pthread_t threads[MANY];
    pthread_attr_t small;
    unsigned count = 0;
    const char *path = open_writer(state, 0);
    many.told = 0;
    many.go_on = false;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, SANITIZED ? 256 * 1024 : 32 * 1024);
    while (count < MANY &&
           pthread_create(&threads[count], &small, tell_and_live, &tids[count]) == 0) {
        count++;
    }
    pthread_mutex_lock(&many.lock);
    while (many.told < count) {
        pthread_cond_wait(&many.all_told, &many.lock);
    }
    uint64_t all = stamp_monotonic();
    many.go_on = true;
    pthread_cond_broadcast(&many.may_end);
    pthread_mutex_unlock(&many.lock);
    for (unsigned i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
    journal_close();
    if (count < MANY) {
        print_message("only %u threads can be had here\n", count);
        skip();
    }
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
    for (unsigned i = 0; i < MANY; i++) {
        struct thread_identity found = at(tids[i], all, "java");
        assert_false(found.is_unknown);
        assert_int_equal(found.virtual_id, tids[i]);
    }
}

/* A thread that was idle for so long that its chunk is another's goes on where it was. */
TEST_WITH(who_was_idle_goes_on, scratch_create, close_all)
{
    enum { TIMES = 4 };
    const char *path = open_writer(state, 0);
    uint32_t tid = (uint32_t)process_thread_id();
    uint64_t times[TIMES];
    uint32_t other = 0;
    pthread_t thread;
    many.go_on = true;
    for (uint64_t i = 0; i < TIMES; i++) {
        struct stat before;
        struct stat now;
        assert_int_equal(stat(path, &before), 0);
        journal_mount(i + 1);
        times[i] = stamp_monotonic();
        do { /* until it is in the file, and then two rounds of idleness */
            assert_int_equal(stat(path, &now), 0);
        } while (now.st_size == before.st_size);
        const struct timespec rounds = {.tv_nsec = 120000000};
        nanosleep(&rounds, NULL);
        assert_int_equal(pthread_create(&thread, NULL, tell_and_live, &other), 0);
        pthread_join(thread, NULL);
    }
    journal_close();
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
    for (uint64_t i = 0; i < TIMES; i++) {
        assert_int_equal(at(tid, times[i], "java").virtual_id, i + 1);
    }
    assert_int_equal(at(other, UINT64_MAX, "java").virtual_id, other);
}

TEST_WITH(a_limit_ends_it, scratch_create, close_all)
{
    const char *path = open_writer(state, 100000);
    for (int i = 0; journal_is_open() && i < 100000000; i++) {
        journal_mount(1);
        journal_unmount(1);
    }
    assert_false(journal_is_open());
    journal_close();
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    assert_true(about.st_size <= 100000);
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
}

TEST_WITH(broken_journals_are_read_as_far_as_they_go, scratch_create, close_all)
{
    const char *path = open_writer(state, 0);
    uint64_t random = random_seed();
    for (int i = 0; i < 300; i++) {
        journal_mount((uint64_t)i % 5 + 1);
        journal_label((uint64_t)i % 3);
        journal_label_text((uint64_t)i % 3, "key=a value of some length", 26);
        journal_platform_name(3, 1000 + (uint32_t)i % 4, "some name of a thread", 21);
        journal_unmount((uint64_t)i % 5 + 1);
    }
    journal_close();
    size_t size = 0;
    uint8_t *whole = scratch_read(path, &size);
    uint8_t *bytes = malloc(size);
    assert_non_null(whole);
    assert_non_null(bytes);
    const char *broken = scratch_path(state, "broken.threads");
    for (int round = 0; round < (SANITIZED ? 500 : 2000); round++) {
        memcpy(bytes, whole, size);
        size_t kept = round % 3 ? size : random_below(&random, (uint32_t)size);
        for (uint32_t i = random_below(&random, 8); i > 0 && kept; i--) {
            size_t where = random_below(&random, (uint32_t)kept);
            bytes[where] = (uint8_t)random_below(&random, 256);
        }
        write_bytes(broken, bytes, kept);
        int err = thread_journal_open(broken, round % 2, &journal);
        assert_true(err == 0 || err == -EINVAL);
        for (uint32_t tid = 999; !err && tid < 1005; tid++) {
            (void)at(tid, stamp_monotonic(), "some name of a ");
            (void)at((uint32_t)process_thread_id(), tid % 2 ? 0 : UINT64_MAX, "java");
        }
        thread_journal_close(journal);
        journal = NULL;
    }
    free(whole);
    free(bytes);
    assert_int_equal(thread_journal_open(scratch_path(state, "none"), true, &journal), -ENOENT);
}

/* ---- Without end ---- */

static void append(FILE *file, uint32_t tid, uint64_t base, const struct threads_slot *slots,
                   uint32_t count)
{
    const struct threads_block head = {.tid = tid, .slots = count, .base = base};
    assert_int_equal(fwrite(&head, sizeof head, 1, file), 1);
    assert_int_equal(fwrite(slots, sizeof *slots, count, file), count);
    assert_int_equal(fflush(file), 0);
}

static void fill_text(struct threads_slot *slots, uint64_t kind, uint64_t value, uint32_t tid,
                      const char *text)
{
    const struct threads_text head = {.tid = tid, .length = (uint16_t)strlen(text)};
    slots[0] = (struct threads_slot){kind, value};
    memcpy(&slots[1], &head, sizeof head);
    slots[2] = (struct threads_slot){0};
    memcpy(&slots[2], text, strlen(text));
}

/* A block: twenty virtual threads, one after the other, each named when it is mounted. */
enum { EACH = 20, SECOND = 1000000000 };

static void append_virtuals(FILE *file, uint64_t number)
{
    struct threads_slot slots[EACH * 5];
    for (uint64_t i = 0; i < EACH; i++) {
        struct threads_slot *at = &slots[i * 5];
        char name[16];
        snprintf(name, sizeof name, "v%" PRIu64, number * EACH + i);
        fill_text(at, THREADS_VIRTUAL | i << 8, number * EACH + i, 0, name);
        at[3] = (struct threads_slot){i << 8 | THREADS_MOUNT, number * EACH + i};
        at[4] = (struct threads_slot){i << 8 | THREADS_UNMOUNT, number * EACH + i};
    }
    append(file, 50, number * SECOND, slots, EACH * 5);
}

/* What is new is known, what holds still too, and what is neither takes no memory. */
TEST_WITH(what_is_old_is_forgotten, scratch_create, close_all)
{
    enum { BLOCKS = SANITIZED ? 6000 : 30000 }; /* 49 MB */
    const char *path = scratch_path(state, "jit-1.threads");
    const struct threads_header header = {.magic = THREADS_MAGIC,
                                          .version = THREADS_VERSION,
                                          .total_size = sizeof header,
                                          .pid = 1,
                                          .flags = THREADS_FLAGS_ENDLESS};
    struct threads_slot slots[3];
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(&header, sizeof header, 1, file), 1);
    fill_text(slots, THREADS_PLATFORM, 3, 40, "a worker");
    append(file, 40, SECOND, slots, 3);
    fill_text(slots, THREADS_PLATFORM, 4, 41, "ends soon");
    append(file, 41, SECOND, slots, 3);
    slots[0] = (struct threads_slot){THREADS_END, 0};
    append(file, 41, 2 * (uint64_t)SECOND, slots, 1);
    assert_int_equal(thread_journal_open(path, false, &journal), 0);
    assert_string_equal(at(41, SECOND, "ends soon").name, "ends soon");
    size_t most = 0;
    for (uint64_t i = 1; i <= BLOCKS; i++) {
        append_virtuals(file, i);
        if (i % 1000 == 0) {
            assert_int_equal(thread_journal_update(journal, false), 1);
            size_t held = mallinfo2().uordblks;
            most = i <= BLOCKS / 2 || held > most ? held : most;
            assert_true(i <= BLOCKS / 2 || held <= most + most / 4);
        }
    }
    const uint64_t newest = BLOCKS * (uint64_t)SECOND + EACH - 1;
    assert_string_equal(at(40, newest, "a worker").name, "a worker");
    assert_null(at(41, newest, "ends soon").name);
    assert_int_equal(at(50, newest - 1, "java").virtual_id, 0); /* it was unmounted again */
    struct thread_identity found;
    thread_journal_virtual_at(journal, (uint64_t)BLOCKS * EACH + 3, newest, &found);
    char last[32];
    snprintf(last, sizeof last, "v%d", BLOCKS * EACH + 3);
    assert_string_equal(found.virtual_name, last);
    thread_journal_virtual_at(journal, UINT64_C(5) * EACH, newest, &found);
    assert_string_equal(found.virtual_name, ""); /* told again if it is mounted again */
    assert_int_equal(fclose(file), 0);
}

/* The file grows, and takes no more of the disk. */
TEST_WITH(the_newest_is_kept, scratch_create, close_all)
{
    const char *path = scratch_path(state, "jit-1.threads");
    const struct journal_options options = {
        .directory = AT_FDCWD, .path = path, .pid = 1, .endless = true};
    const uint64_t most = THREADS_KEPT + (UINT64_C(4) << 20);
    char text[THREADS_TEXT_MAX];
    struct stat about = {0};
    memset(text, 'x', sizeof text);
    assert_int_equal(journal_open(&options), 0);
    for (uint64_t i = 0; (uint64_t)about.st_size < THREADS_KEPT + (UINT64_C(16) << 20); i++) {
        journal_label_text(i, text, sizeof text);
        if (i % 2000 == 0) { /* 2 MB; there is room for eight */
            off_t before = about.st_size;
            for (int tries = 0; about.st_size < before + (off_t)2000 * 1024 && i && tries < 2000;
                 tries++) {
                const struct timespec pause = {.tv_nsec = 5000000};
                nanosleep(&pause, NULL);
                assert_int_equal(stat(path, &about), 0);
            }
            assert_int_equal(stat(path, &about), 0);
        }
    }
    assert_true((uint64_t)about.st_blocks * 512 <= most);
    assert_true(journal_is_open());
    journal_close();
    /* Who comes so late finds the header, and a hole. */
    assert_int_equal(thread_journal_open(path, true, &journal), 0);
}

TEST_MAIN(NULL, NULL)
