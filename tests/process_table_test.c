/*
 * Which processes run and what they map, from records in the order of time. And how much memory
 * that takes.
 */
#include "test.h"

#include "jdtool/perf/process_table.h"
#include "tests/random.h"
#include "tests/recording_builder.h"
#include "tests/sanitized.h"
#include "tests/scratch.h"

#include <inttypes.h>
#include <malloc.h>

static struct process_table *table;
static struct perf_data *data;
static struct process_change change;

/* A recording without records, which tells how records look. */
static int set_up(void **state)
{
    struct perf_file file = recording();
    if (scratch_create(state)) {
        return -1;
    }
    perf_file_write(&file, scratch_path(state, "p.data"));
    return perf_data_open(scratch_path(state, "p.data"), &data);
}

static int tear_down(void **state)
{
    perf_data_close(data);
    return scratch_remove(state);
}

static int new_table(void **state)
{
    (void)state;
    table = process_table_new();
    return table ? 0 : -1;
}

static int free_table(void **state)
{
    (void)state;
    process_table_free(table);
    return 0;
}

/* Takes in the record that was put into the file last, and empties it. */
static void take(struct perf_file *file)
{
    struct perf_event_header header;
    memcpy(&header, file->records, sizeof header);
    struct perf_record record = {
        .type = header.type, .misc = header.misc, .size = header.size, .bytes = file->records};
    struct mapping mapping;
    record.id = perf_record_id(data, &record);
    record.mapping = mapping_decode(&record, &mapping) ? &mapping : NULL;
    assert_int_equal(process_table_add(table, &record, &change), 0);
    file->size = 0;
}

static void map(uint32_t pid, uint64_t start, uint64_t end, uint64_t offset, const char *path)
{
    static struct perf_file file;
    put_mmap2_of(&file, pid, 1000, start, end - start, offset, path);
    take(&file);
}

static void task(uint32_t type, uint32_t pid, uint32_t parent, uint32_t tid, uint64_t time)
{
    static struct perf_file file;
    put_task(&file, type, pid, parent, tid, time);
    take(&file);
}

static void comm(uint32_t pid, uint32_t tid, const char *name, bool exec)
{
    static struct perf_file file;
    put_comm(&file, pid, tid, 2000, name, exec);
    take(&file);
}

/* "path+offset", "-": nothing is there. */
static const char *at(uint32_t pid, uint64_t address)
{
    static char text[64];
    const struct process *process = process_table_at(table, pid);
    const struct mapped *mapped = process ? process_mapped_at(process, address) : NULL;
    if (!mapped) {
        return "-";
    }
    snprintf(text, sizeof text, "%s+%" PRIx64, mapped->file->identity.path,
             address - mapped->start + mapped->file_offset);
    return text;
}

TEST_WITH(later_mappings_cut_earlier_ones, new_table, free_table)
{
    map(7, 0x1000, 0x9000, 0x100, "/a");
    map(7, 0x3000, 0x4000, 0, "/b"); /* in the middle: two pieces are left */
    assert_string_equal(at(7, 0x2fff), "/a+20ff");
    assert_string_equal(at(7, 0x3000), "/b+0");
    assert_string_equal(at(7, 0x4000), "/a+3100");
    map(7, 0x3800, 0x5000, 0, "/c"); /* over the end of one and the beginning of another */
    assert_string_equal(at(7, 0x37ff), "/b+7ff");
    assert_string_equal(at(7, 0x3800), "/c+0");
    assert_string_equal(at(7, 0x5000), "/a+4100");
    map(7, 0x800, 0xa000, 0, "/d"); /* over all of them */
    assert_string_equal(at(7, 0x3000), "/d+2800");
    assert_string_equal(at(7, 0x7ff), "-");
    assert_string_equal(at(7, 0xa000), "-");
    assert_string_equal(at(8, 0x1000), "-");
}

/* The kernel cuts the names of its own mappings to 15 bytes in records, not in /proc/PID/maps. */
TEST_WITH(the_trampoline_of_uprobes_has_its_name, new_table, free_table)
{
    map(7, 0x1000, 0x2000, 0, "[uprobes-trampo");
    map(7, 0x2000, 0x3000, 0, "[uprobes-trampoline]");
    assert_string_equal(at(7, 0x1000), "[uprobes-trampoline]+0");
    assert_string_equal(at(7, 0x2000), "[uprobes-trampoline]+0");
}

/* A path that is given to another file is another file. */
TEST_WITH(files_differ_by_their_inodes, new_table, free_table)
{
    static struct perf_file file;
    for (uint64_t inode = 1; inode <= 3; inode++) {
        put_mmap2_of(&file, 7, 1000, inode << 16, 0x1000, 0, "/a");
        memcpy(file.records + sizeof(struct perf_event_header) + 40, &inode, sizeof inode);
        take(&file);
    }
    put_mmap2_of(&file, 7, 1000, 0x40000, 0x1000, 0, "/a");
    uint64_t first = 1;
    memcpy(file.records + sizeof(struct perf_event_header) + 40, &first, sizeof first);
    take(&file);
    const struct process *process = process_table_at(table, 7);
    const struct mapped_file *one = process_mapped_at(process, 0x10000)->file;
    assert_int_equal(one->identity.inode, 1);
    assert_ptr_not_equal(process_mapped_at(process, 0x20000)->file, one);
    assert_int_equal(process_mapped_at(process, 0x30000)->file->identity.inode, 3);
    assert_ptr_equal(process_mapped_at(process, 0x40000)->file, one);
}

/* Who keeps what he found there has to see that it has changed. */
TEST_WITH(each_mapping_changes_the_state, new_table, free_table)
{
    map(7, 0x1000, 0x2000, 0, "/a");
    uint64_t before = process_mappings_state(process_table_at(table, 7));
    map(7, 0x3000, 0x4000, 0, "/a");
    uint64_t behind = process_mappings_state(process_table_at(table, 7));
    assert_true(behind != before);
    map(7, 0x3000, 0x4000, 0, "/b");
    assert_true(process_mappings_state(process_table_at(table, 7)) != behind);
}

/* More threads than may live at a time come and go, and are forgotten: too many for a sanitizer's
 * patience. */
#if !SANITIZED
TEST_WITH(threads_that_ended_do_not_count, new_table, free_table)
{
    map(1, 0x1000, 0x2000, 0, "/a");
    for (uint32_t i = 0; i < THREADS_MAX + 10; i++) {
        task(PERF_RECORD_FORK, 1, 1, 1000 + i % 1000, 7);
        task(PERF_RECORD_EXIT, 1, 1, 1000 + i % 1000, 8);
    }
    comm(1, 77, "the last", false);
    assert_string_equal(process_table_comm(table, 77), "the last");
}
#endif

TEST_WITH(random_mappings_are_those_of_an_array, new_table, free_table)
{
    uint64_t seed = random_seed();
    static struct {
        int file; /* plus one */
        uint64_t offset;
    } page[64];
    for (int step = 0; step < 3000; step++) {
        uint64_t first = random_below(&seed, 60);
        uint64_t count = 1 + random_below(&seed, (uint32_t)(64 - first));
        char path[8];
        snprintf(path, sizeof path, "/%d", step % 10);
        map(9, first << 12, (first + count) << 12, 0x5000, path);
        for (uint64_t i = 0; i < count; i++) {
            page[first + i].file = step % 10 + 1;
            page[first + i].offset = 0x5000 + (i << 12);
        }
        for (uint64_t i = 0; i < 64; i++) {
            char expected[64] = "-";
            if (page[i].file) {
                snprintf(expected, sizeof expected, "/%d+%llx", page[i].file - 1,
                         (unsigned long long)page[i].offset + 5);
            }
            assert_string_equal(at(9, (i << 12) + 5), expected);
        }
    }
}

TEST_WITH(a_fork_keeps_what_its_parent_had, new_table, free_table)
{
    map(1, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_FORK, 2, 1, 2, 5);
    assert_true(change.is_new);
    assert_int_equal(change.process->pid, 2);
    uint64_t shared = process_mappings_state(change.process);
    assert_int_equal(process_mappings_state(process_table_at(table, 1)), shared);
    map(1, 0x1000, 0x2000, 0, "/b");
    assert_string_equal(at(2, 0x1000), "/a+0");
    assert_string_equal(at(1, 0x1000), "/b+0");
    assert_int_equal(process_mappings_state(process_table_at(table, 2)), shared);
    map(2, 0x1800, 0x2000, 0, "/c");
    assert_string_equal(at(2, 0x1000), "/a+0");
    assert_string_equal(at(2, 0x1800), "/c+0");
    comm(2, 2, "program", true); /* it runs another one */
    assert_string_equal(at(2, 0x1000), "-");
    assert_string_equal(process_table_comm(table, 2), "program");
    assert_string_equal(process_table_comm(table, 3), "");
}

TEST_WITH(a_process_ends_with_its_last_thread, new_table, free_table)
{
    map(1, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_FORK, 1, 1, 11, 5);
    task(PERF_RECORD_EXIT, 1, 0, 1, 6);
    for (uint32_t i = 100; i < 1000; i++) { /* others that come and go */
        task(PERF_RECORD_FORK, i, 1, i, 7);
        task(PERF_RECORD_EXIT, i, 1, i, 8);
    }
    assert_string_equal(at(1, 0x1000), "/a+0");
    assert_null(process_table_at(table, 100));    /* forgotten */
    assert_string_equal(at(999, 0x1000), "/a+0"); /* not yet: samples may be late */
    task(PERF_RECORD_EXIT, 1, 0, 11, 9);
    for (uint32_t i = 100; i < 1000; i++) {
        task(PERF_RECORD_FORK, i, 1, i, 10);
        task(PERF_RECORD_EXIT, i, 1, i, 11);
    }
    assert_null(process_table_at(table, 1));
}

/* Others that come and go, of which the last are kept: enough that what has ended before is not. */
static void others_end(uint32_t from)
{
    for (uint32_t i = from; i < from + 900; i++) {
        task(PERF_RECORD_FORK, i, 1, i, 7);
        task(PERF_RECORD_EXIT, i, 1, i, 8);
    }
}

/* 'perf record -p' tells of the threads that it finds by COMM alone, before or behind mappings. */
TEST_WITH(threads_told_by_name_keep_their_process, new_table, free_table)
{
    comm(5, 5, "java", false);
    map(5, 0x1000, 0x2000, 0, "/a");
    for (uint32_t tid = 50; tid < 60; tid++) {
        comm(5, tid, "pool", false);
    }
    for (uint32_t i = 0; i < 2000; i++) { /* as many threads as may have ended and be kept */
        task(PERF_RECORD_FORK, 5, 5, 2000 + i, 7);
        task(PERF_RECORD_EXIT, 5, 5, 2000 + i, 8);
    }
    for (uint32_t tid = 50; tid < 60; tid++) {
        task(PERF_RECORD_EXIT, 5, 5, tid, 9);
        task(PERF_RECORD_EXIT, 5, 5, tid, 9); /* told twice */
    }
    others_end(10000);
    assert_string_equal(at(5, 0x1000), "/a+0"); /* its first thread lives */
    task(PERF_RECORD_EXIT, 5, 5, 5, 10);
    others_end(20000);
    assert_null(process_table_at(table, 5));
}

/* Where nobody follows it goes with time: a JVM's dump is held as long as its process. */
TEST_WITH(an_ended_process_goes_with_time, new_table, free_table)
{
    const uint64_t second = UINT64_C(1000000000);
    map(5, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_EXIT, 5, 5, 5, 100 * second);
    task(PERF_RECORD_FORK, 6, 1, 6, 109 * second);
    assert_string_equal(at(5, 0x1000), "/a+0"); /* samples of it may come still */
    task(PERF_RECORD_FORK, 6, 6, 61, 0);        /* an older record tells no time */
    assert_string_equal(at(5, 0x1000), "/a+0");
    task(PERF_RECORD_FORK, 6, 6, 62, 111 * second);
    assert_null(process_table_at(table, 5));
    assert_non_null(process_table_at(table, 6));
}

/* The kernel takes a thread apart after its EXIT: it has its name still, until others have ended.
 */
TEST_WITH(an_ended_thread_keeps_its_name_for_a_while, new_table, free_table)
{
    comm(5, 5, "java", false);
    comm(5, 51, "pool", false);
    task(PERF_RECORD_EXIT, 5, 5, 51, 6);
    assert_string_equal(process_table_comm(table, 51), "pool");
    others_end(10000);
    assert_string_equal(process_table_comm(table, 51), "");
    comm(5, 52, "pool", false);
    uint32_t number = process_table_thread_number(table, 52);
    task(PERF_RECORD_EXIT, 5, 5, 52, 7);
    comm(5, 52, "another", false); /* its number was given again */
    assert_int_not_equal(process_table_thread_number(table, 52), number);
    others_end(20000);
    assert_string_equal(process_table_comm(table, 52), "another");
}

/* Of a process that only a mapping has told of the first thread lives, as far as is known. */
TEST_WITH(a_mapped_process_has_a_thread, new_table, free_table)
{
    map(5, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_EXIT, 5, 5, 51, 6); /* nobody told that it began */
    task(PERF_RECORD_FORK, 5, 5, 52, 7);
    task(PERF_RECORD_EXIT, 5, 5, 52, 8);
    others_end(10000);
    assert_string_equal(at(5, 0x1000), "/a+0");
}

/* The end of its last thread was told too early: records of other processors' buffers. */
TEST_WITH(a_process_with_a_thread_again_is_kept, new_table, free_table)
{
    map(5, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_EXIT, 5, 5, 5, 6);
    task(PERF_RECORD_FORK, 5, 5, 51, 7);
    others_end(10000);
    assert_string_equal(at(5, 0x1000), "/a+0");
    task(PERF_RECORD_EXIT, 5, 5, 51, 8); /* and now it ends, once */
    others_end(20000);
    assert_null(process_table_at(table, 5));
}

/* The threads of a process that has run another program, or is gone, are not its successor's. */
TEST_WITH(late_ends_are_those_of_the_process_before, new_table, free_table)
{
    map(5, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_FORK, 5, 5, 51, 5);
    comm(5, 5, "other", true);
    map(5, 0x1000, 0x2000, 0, "/b");
    task(PERF_RECORD_EXIT, 5, 5, 51, 6);
    others_end(10000);
    assert_string_equal(at(5, 0x1000), "/b+0");
    task(PERF_RECORD_FORK, 7, 1, 5, 7); /* a tid that is another process' now */
    others_end(20000);
    assert_null(process_table_at(table, 5));
}

/* A thread whose process is forgotten ends nobody's who has got its place. */
TEST_WITH(late_ends_are_nobodys, new_table, free_table)
{
    task(PERF_RECORD_FORK, 5, 1, 5, 4);
    task(PERF_RECORD_FORK, 5, 5, 51, 5);
    task(PERF_RECORD_FORK, 5, 1, 5, 6);
    for (uint32_t i = 0; i < 900; i++) { /* each of these gets the place of one that is forgotten */
        task(PERF_RECORD_FORK, 10000 + i, 1, 10000 + i, 7);
        task(PERF_RECORD_EXIT, 10000 + i, 1, 10000 + i, 7);
        map(30000 + i, 0x1000, 0x2000, 0, "/a");
    }
    task(PERF_RECORD_EXIT, 5, 5, 51, 8);
    others_end(10000);
    for (uint32_t i = 0; i < 900; i++) {
        assert_string_equal(at(30000 + i, 0x1000), "/a+0");
    }
}

TEST_WITH(a_process_is_forgotten_once, new_table, free_table)
{
    map(5, 0x1000, 0x2000, 0, "/a");
    task(PERF_RECORD_EXIT, 5, 5, 5, 6);
    task(PERF_RECORD_FORK, 5, 5, 51, 7);
    task(PERF_RECORD_EXIT, 5, 5, 51, 8);
    others_end(10000);
    others_end(20000);
    for (uint32_t i = 0; i < 900; i++) {
        map(30000 + i, 0x1000, 0x2000, 0, "/a");
    }
    for (uint32_t i = 0; i < 900; i++) {
        const struct process *process = process_table_at(table, 30000 + i);
        assert_non_null(process);
        assert_int_equal(process->pid, 30000 + i);
    }
}

TEST_WITH(a_pid_is_given_again, new_table, free_table)
{
    map(5, 0x1000, 0x2000, 0, "/old");
    uint32_t number = process_table_at(table, 5)->number;
    task(PERF_RECORD_FORK, 5, 1, 5, 100);
    assert_string_equal(at(5, 0x1000), "-");
    assert_int_not_equal(process_table_at(table, 5)->number, number);
    assert_int_equal(process_table_at(table, 5)->from, 100);
}

/* As a build machine has them: 200,000 short processes, each with a dozen mappings. */
TEST_WITH(many_short_processes_take_little_memory, new_table, free_table)
{
    enum { PROCESSES = SANITIZED ? 5000 : 200000, MAPPINGS = 12 };
    for (int ends = 1; ends >= 0; ends--) {
        size_t before = mallinfo2().uordblks;
        for (uint32_t pid = 1000; pid < 1000 + PROCESSES; pid++) {
            task(PERF_RECORD_FORK, pid, 1, pid, pid);
            comm(pid, pid, "sh", true);
            for (uint64_t i = 0; i < MAPPINGS; i++) {
                map(pid, (i + 1) << 20, ((i + 1) << 20) + 0x1000, 0, "/usr/lib/libsome.so");
            }
            if (ends) {
                task(PERF_RECORD_EXIT, pid, 1, pid, pid);
            }
        }
        size_t taken = mallinfo2().uordblks - before;
        assert_true(taken < (ends ? (size_t)1 << 20 : (size_t)200 << 20));
        assert_int_equal(process_table_left_out(table), 0);
    }
}

/* Whoever keeps something of processes and files has an array by their index. */
struct kept {
    uint32_t processes[4096]; /* number of the one that has the index; 0: none */
    uint32_t files[4096];
    uint32_t process_count, file_count;
};

static void forget_process(void *context, const struct process *process)
{
    struct kept *kept = context;
    kept->process_count -= kept->processes[process->index] == process->number;
    kept->processes[process->index] = 0;
}

static void forget_file(void *context, const struct mapped_file *file)
{
    struct kept *kept = context;
    assert_true(kept->files[file->index] == 0 || kept->files[file->index] == file->number);
    kept->file_count -= kept->files[file->index] != 0;
    kept->files[file->index] = 0;
}

static void keep(struct kept *kept)
{
    assert_in_range(change.process->index, 0, 4095);
    kept->process_count += kept->processes[change.process->index] == 0;
    assert_true(!kept->processes[change.process->index] ||
                kept->processes[change.process->index] == change.process->number);
    kept->processes[change.process->index] = change.process->number;
    if (change.mapped) {
        assert_in_range(change.mapped->index, 0, 4095);
        kept->file_count += kept->files[change.mapped->index] == 0;
        kept->files[change.mapped->index] = change.mapped->number;
    }
}

/* The lives of containers, each with names and files of its own: some map over them, some fork.
 * Whatever is gone is told of, and neither memory nor the indexes grow. */
TEST_WITH(what_nobody_refers_to_is_gone, new_table, free_table)
{
    enum { LIVES = SANITIZED ? 3000 : 30000 };
    static struct kept kept;
    const struct process_listener listener = {forget_process, forget_file, &kept};
    char name[64];
    size_t before = 0;
    process_table_tell(table, &listener);
    for (uint32_t life = 0; life < LIVES; life++) {
        uint32_t pid = 1000 + life * 2;
        before = life == LIVES / 10 ? mallinfo2().uordblks : before;
        task(PERF_RECORD_FORK, pid, 1, pid, life);
        keep(&kept);
        snprintf(name, sizeof name, "life-%u", life);
        comm(pid, pid, name, true);
        keep(&kept);
        for (uint64_t i = 0; i < 4; i++) {
            snprintf(name, sizeof name, "/containers/%u/lib%u.so", life, (unsigned)i % 3);
            map(pid, 0x1000 + i * 0x800, 0x2000 + i * 0x800, 0, name);
            keep(&kept);
        }
        task(PERF_RECORD_FORK, pid + 1, pid, pid + 1, life);
        keep(&kept);
        task(PERF_RECORD_EXIT, pid, 1, pid, life);
        if (life % 2) {
            map(pid + 1, 0, 0x1000000, 0, name); /* over all that it has from its parent */
            keep(&kept);
        }
        snprintf(name, sizeof name, "/containers/%u/lib0.so+%x", life, life % 2 ? 0x2800 : 0);
        assert_string_equal(at(pid + 1, 0x2800), name);
        task(PERF_RECORD_EXIT, pid + 1, pid, pid + 1, life);
    }
    assert_in_range(kept.process_count, 1, 600);
    assert_in_range(kept.file_count, 1, 1800);
    assert_true(mallinfo2().uordblks < before + (64 << 10));
    process_table_tell(table, NULL);
}

TEST_WITH(limits_are_told, new_table, free_table)
{
    for (uint64_t i = 0; i < PROCESS_MAPPINGS_MAX + 10; i++) {
        map(3, (i + 1) * 0x2000, (i + 1) * 0x2000 + 0x1000, 0, "/a");
    }
    assert_int_equal(process_table_left_out(table), 10);
    assert_string_equal(at(3, 0x2000), "/a+0");
}

TEST_MAIN(set_up, tear_down)
