/* The parts of the sampler that need no root: rings, ends of stacks, the recording it writes. */
#include "test.h"

#include "jdtool/base/clock.h"
#include "jdtool/perf/process_table.h"
#include "jdtool/sampler/filter.h"
#include "jdtool/sampler/perf_pipe.h"
#include "jdtool/sampler/present.h"
#include "jdtool/sampler/processors.h"
#include "jdtool/sampler/registers.h"
#include "jdtool/sampler/ring.h"
#include "jdtool/sampler/sampler.h"
#include "jdtool/sampler/stack_ends.h"
#include "jdtool/sampler/switches.h"
#include "jdtool/sampler/switches_shared.h"
#include "jdtool/sampler/turn.h"
#include "tests/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/bpf.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- Rings ---- */

TEST(records_wrap_around_the_end)
{
    static struct perf_event_mmap_page page;
    static _Alignas(8) uint8_t data[64];
    struct ring ring = {.page = &page, .data = data, .size = sizeof data};
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)i;
    }
    page.data_tail = 1000 * sizeof data + 48;
    page.data_head = page.data_tail + 32;
    uint64_t at = ring_from(&ring);
    assert_int_equal(ring_until(&ring) - at, 32);
    uint8_t copy[32];
    ring_copy(&ring, at, copy, sizeof copy);
    for (size_t i = 0; i < sizeof copy; i++) {
        assert_int_equal(copy[i], (48 + i) % 64);
    }
    assert_int_equal(ring_u64(&ring, at + 16), UINT64_C(0x0706050403020100));
    ring_release(&ring, at + 32);
    assert_int_equal(ring_from(&ring), ring_until(&ring));
}

/* What the ring has no room for is told in front of the next record alone; the kernel counts it. */
TEST(an_event_counts_what_its_ring_has_no_room_for)
{
    struct perf_event_attr attr = {.size = sizeof attr,
                                   .type = PERF_TYPE_SOFTWARE,
                                   .config = PERF_COUNT_SW_PAGE_FAULTS,
                                   .sample_period = 1,
                                   .exclude_kernel = 1,
                                   .read_format = ring_read_format()};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct ring ring;
    int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0 || !(attr.read_format & PERF_FORMAT_LOST)) {
        print_message("the kernel does not count them\n");
        skip();
    }
    assert_int_equal(ring_open(&ring, event, page), 0);
    for (uint32_t i = 0; i < 1000; i++) { /* samples of 8 bytes: the ring has room for fewer */
        uint8_t *mapped =
            mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(mapped != MAP_FAILED);
        *(volatile uint8_t *)mapped = 1;
        (void)munmap(mapped, page);
    }
    assert_int_equal(ioctl(event, PERF_EVENT_IOC_DISABLE, 0), 0); /* to look takes faults, too */
    struct ring_counts counts;
    assert_true(ring_read(event, &counts));
    uint64_t records = 0;
    for (uint64_t at = ring_from(&ring); at < ring_until(&ring); records++) {
        uint64_t word = ring_u64(&ring, at);
        struct perf_event_header header;
        memcpy(&header, &word, sizeof header);
        assert_int_equal(header.type, PERF_RECORD_SAMPLE);
        at += header.size;
    }
    assert_in_range(counts.value, 1000, 1100);
    assert_int_equal(records + counts.lost, counts.value);
    assert_int_equal(ring_lost(event), counts.lost);
    assert_true(counts.lost > 0);
    ring_close(&ring);
    close(event);
}

/* ---- Stacks ---- */

static uint64_t now(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

TEST(stacks_end_with_their_mapping)
{
    struct stack_ends ends;
    uint32_t pid = (uint32_t)getpid();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *guarded =
        mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(guarded != MAP_FAILED);
    assert_int_equal(mprotect(guarded + 3 * page, page, PROT_NONE), 0);
    assert_int_equal(mprotect(guarded, page, PROT_NONE), 0);
    uint64_t stack = (uintptr_t)guarded + page;
    stack_ends_new(&ends);
    assert_int_equal(stack_ends_of(&ends, pid, 7, stack, now()), stack + 2 * page);
    assert_int_equal(stack_ends_of(&ends, pid, 7, stack + 2 * page - 8, now()), stack + 2 * page);
    assert_int_equal(stack_ends_of(&ends, pid, 7, 8, now()), UINT64_MAX); /* nothing is there */

    /* What began since is not looked up in what was there before, and is when that was read again.
     */
    stack_ends_thread(&ends, 8, now());
    assert_int_equal(stack_ends_of(&ends, pid, 8, stack, now()), UINT64_MAX);
    assert_int_equal(stack_ends_of(&ends, pid, 7, stack, now()), stack + 2 * page);
    uint64_t later = now() + UINT64_C(2000000000);
    assert_int_equal(stack_ends_of(&ends, pid, 8, stack, later), stack + 2 * page);

    /* Another program has other mappings: they are read anew. */
    assert_int_equal(munmap(guarded + 2 * page, page), 0);
    assert_int_equal(stack_ends_of(&ends, pid, 7, stack, now()), stack + 2 * page);
    stack_ends_forget(&ends, pid);
    assert_int_equal(stack_ends_of(&ends, pid, 7, stack, now()), stack + page);
    munmap(guarded, 4 * page);

    /* A process that has ended has none. */
    assert_int_equal(stack_ends_of(&ends, 0x7ffffff0, 7, stack, now()), UINT64_MAX);

    /* Threads that come and go take no more and more memory. */
    for (uint32_t tid = 100; tid < 30000; tid++) {
        stack_ends_thread(&ends, tid, now());
        assert_in_range(ends.threads.list.count, 1, 10000);
    }
    stack_ends_free(&ends);
}

/* ---- The recording ---- */

static void nothing(void)
{
}

/* Whoever reads a recording takes its records to begin at multiples of eight. */
static void assert_aligned(const char *path)
{
    size_t size = 0;
    uint8_t *bytes = scratch_read(path, &size);
    struct perf_event_header header;
    for (size_t at = 16; at < size; at += header.size) {
        memcpy(&header, bytes + at, sizeof header);
        assert_true(header.size >= sizeof header && header.size % 8 == 0);
    }
    free(bytes);
}

/* Writes a recording of this process, of two events; into a pipe, and from there into the file. */
static void write_recording(const char *path, bool is_piped, bool is_finished)
{
    char *const command[] = {"jdperf", "record", NULL};
    const struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .freq = 1,
        .sample_freq = 99,
        .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
        .sample_id_all = 1,
    };
    const struct perf_pipe_event events[] = {{attr, "cpu-clock", 11},
                                             {attr, "jdagent_7:alloc", 12}};
    static char bytes[1 << 20];
    int ends[2] = {-1, -1};
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0 && pipe(ends) == 0);
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, sizeof bytes) > 0);
    struct perf_pipe pipe = {.fd = is_piped ? ends[1] : file};
    perf_pipe_describe(&pipe, events, 2, command);
    present_process(&pipe, getpid(), PRESENT_BY_BUILD_ID);
    perf_pipe_round(&pipe);
    assert_int_equal(is_finished ? perf_pipe_finish(&pipe) : perf_pipe_flush(&pipe), 0);
    assert_int_equal(perf_pipe_waiting(&pipe), 0);
    perf_pipe_free(&pipe);
    close(ends[1]);
    if (is_piped) {
        ssize_t size = 0;
        for (ssize_t n; (n = read(ends[0], bytes + size, sizeof bytes - (size_t)size)) > 0;) {
            size += n;
        }
        assert_int_equal(write(file, bytes, (size_t)size), size);
    }
    close(ends[0]);
    close(file);
}

/* That perf_data reads it, and the process is in it as it is. */
static void check_recording(const char *path, bool is_finished)
{
    struct perf_data *data;
    struct utsname machine;
    uname(&machine);
    assert_int_equal(perf_data_open(path, &data), 0);
    assert_int_equal(perf_data_event_count(data), 2);
    if (is_finished) {
        assert_string_equal(perf_data_event_name(data, 0), "cpu-clock");
        assert_string_equal(perf_data_event_name(data, 1), "jdagent_7:alloc");
    }
    assert_int_equal(perf_data_event(data, 0)->attr.sample_freq, 99);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(perf_data_event(data, i)->id_count, 1);
        assert_int_equal(perf_data_event(data, i)->ids[0], 11 + i);
    }
    if (is_finished) {
        size_t size;
        assert_string_equal(perf_data_string(data, PERF_FEATURE_OSRELEASE), machine.release);
        assert_string_equal(perf_data_string(data, PERF_FEATURE_ARCH), machine.machine);
        assert_non_null(perf_data_feature(data, PERF_FEATURE_CLOCK_DATA, &size));
        assert_int_equal(size, 24);
        assert_non_null(perf_data_feature(data, PERF_FEATURE_NRCPUS, &size));
        assert_non_null(perf_data_feature(data, PERF_FEATURE_CMDLINE, &size));
    }

    struct process_table *table = process_table_new();
    struct process_change change;
    struct perf_record record;
    bool round = false;
    int more;
    while ((more = perf_data_next(data, &record)) == 1) {
        round |= record.type == PERF_USER_FINISHED_ROUND;
        if (record.type < PERF_USER_FIRST) {
            assert_int_equal(record.id.time, 0);
            assert_int_equal(process_table_add(table, &record, &change), 0);
        }
    }
    assert_int_equal(more, 0);
    assert_true(round);
    const struct process *process = process_table_at(table, (uint32_t)getpid());
    assert_non_null(process);
    assert_string_equal(process_table_comm(table, (uint32_t)getpid()), "sampler_test");
    const struct mapped *here = process_mapped_at(process, (uintptr_t)nothing);
    const struct mapped *libc = process_mapped_at(process, (uintptr_t)&strtoul);
    assert_non_null(here);
    assert_non_null(strstr(here->file->identity.path, "/sampler_test"));
    assert_non_null(libc);
    assert_non_null(strstr(libc->file->identity.path, "libc"));
    assert_true(libc->file->identity.build_id_size > 0);
    process_table_free(table);
    perf_data_close(data);
}

TEST_WITH(the_recording_is_one_of_perfs, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "p.data");
    write_recording(path, true, true);
    assert_aligned(path);
    check_recording(path, true);
    write_recording(path, false, true);
    check_recording(path, true);
    write_recording(path, false, false); /* killed: without its end */
    check_recording(path, false);
}

/* What the kernel tells of a mapping that begins: device and inode, and a flag that is not ours. */
TEST(a_mapping_gets_its_build_id)
{
    struct {
        struct perf_event_header header;
        uint32_t pid, tid;
        uint64_t start, size, offset;
        uint32_t major, minor;
        uint64_t inode, generation;
        uint32_t protection, flags;
        char path[PATH_MAX];
    } record = {.header = {.type = PERF_RECORD_MMAP2, .size = sizeof record},
                .pid = (uint32_t)getpid(),
                .major = 254};
    const uint16_t id_flag = PERF_RECORD_MISC_MMAP_BUILD_ID;
    struct stat status;
    assert_true(readlink("/proc/self/exe", record.path, sizeof record.path - 1) > 0);
    assert_int_equal(stat(record.path, &status), 0);

    record.inode = status.st_ino + 1; /* replaced meanwhile */
    record.header.misc = PERF_RECORD_MISC_USER | id_flag;
    present_build_id((uint8_t *)&record);
    assert_int_equal(record.header.misc, PERF_RECORD_MISC_USER);
    assert_int_equal(record.major, 254);

    record.inode = status.st_ino;
    present_build_id((uint8_t *)&record);
    assert_int_equal(record.header.misc, PERF_RECORD_MISC_USER | id_flag);
    assert_int_equal(record.major, 20); /* SHA-1 */
    assert_int_not_equal(record.inode, status.st_ino);
}

TEST(nothing_is_told_of_who_has_ended)
{
    struct perf_pipe pipe = {.fd = -1};
    present_process(&pipe, 0x7ffffff0, PRESENT_BY_BUILD_ID);
    assert_int_equal(perf_pipe_waiting(&pipe), 0);
    const pid_t process = 0x7ffffff0;
    assert_non_null(sampler_lacks(&process, 1));
}

/* Who reads has gone, or its disk is full: what follows goes nowhere, and the first error stays. */
TEST(an_error_stays)
{
    struct perf_pipe pipe = {.fd = -1};
    uint8_t *much = calloc(1, 1 << 20);
    perf_pipe_round(&pipe);
    perf_pipe_put(&pipe, much, 1 << 20);
    assert_int_equal(pipe.err, -EBADF);
    assert_int_equal(perf_pipe_flush(&pipe), -EBADF);
    assert_int_equal(perf_pipe_waiting(&pipe), 0);
    perf_pipe_free(&pipe);
    free(much);
}

/* Who reads is slow: nothing waits for him, and all of it comes in the end. */
TEST(a_slow_reader_gets_all)
{
    enum { WORDS = 100000 };
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    struct perf_pipe pipe = {.fd = ends[1]};
    for (uint64_t i = 0; i < WORDS; i++) {
        perf_pipe_put(&pipe, &i, sizeof i);
    }
    assert_int_equal(perf_pipe_flush(&pipe), 0);
    assert_true(perf_pipe_waiting(&pipe) > WORDS * sizeof(uint64_t) / 2);
    uint64_t read_so_far = 0;
    uint64_t word;
    while (read(ends[0], &word, sizeof word) == sizeof word) {
        assert_int_equal(word, read_so_far++);
        assert_int_equal(perf_pipe_flush(&pipe), 0);
    }
    assert_int_equal(read_so_far, WORDS);
    assert_int_equal(perf_pipe_waiting(&pipe), 0);
    perf_pipe_free(&pipe);
    close(ends[0]);
    close(ends[1]);
}

/* ---- Counters ---- */

static void is_counter(const char *name, uint32_t type, uint64_t config)
{
    struct counter counter;
    assert_true(counter_parse(name, &counter));
    assert_string_equal(counter.name, name);
    assert_int_equal(counter.type, type);
    assert_int_equal(counter.config, config);
}

TEST(counters_have_perfs_names)
{
    is_counter("cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    is_counter("cpu-cycles:u", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
    is_counter("branch-misses:pp", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES);
    is_counter("cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
    is_counter("LLC-load-misses", PERF_TYPE_HW_CACHE,
               PERF_COUNT_HW_CACHE_LL | PERF_COUNT_HW_CACHE_OP_READ << 8 |
                   PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
    is_counter("L1-icache-prefetches:k", PERF_TYPE_HW_CACHE,
               PERF_COUNT_HW_CACHE_L1I | PERF_COUNT_HW_CACHE_OP_PREFETCH << 8);
    is_counter("dTLB-stores", PERF_TYPE_HW_CACHE,
               PERF_COUNT_HW_CACHE_DTLB | PERF_COUNT_HW_CACHE_OP_WRITE << 8);
    is_counter("r01c2", PERF_TYPE_RAW, 0x1c2);

    struct counter counter;
    static const char *const others[] = {"",
                                         "cycle",
                                         "cycles,instructions",
                                         "sched:sched_switch",
                                         "cycles:",
                                         "cycles:G",
                                         "cycles:uh",
                                         "cycles:ux",
                                         "cycles:pppp",
                                         "LLC-",
                                         "LLC-loads ",
                                         "r",
                                         "rg",
                                         "r1,r2",
                                         "cpu/cycles/",
                                         "r11112222333344445",
                                         "{cycles}"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(counter_parse(others[i], &counter));
        assert_false(counter_is_timer(&counter) || counter_is_software(&counter));
    }
}

TEST(modifiers_leave_out_the_kernel_or_the_program)
{
    struct counter counter;
    assert_true(counter_parse("cycles", &counter));
    assert_true(!counter.exclude_user && !counter.exclude_kernel && counter.precise == 3);
    assert_true(counter_parse("cycles:u", &counter));
    assert_true(!counter.exclude_user && counter.exclude_kernel);
    assert_true(counter_parse("instructions:kpp", &counter));
    assert_true(counter.exclude_user && !counter.exclude_kernel && counter.precise == 2);
    assert_true(counter_parse("cpu-clock:uk", &counter));
    assert_true(!counter.exclude_user && !counter.exclude_kernel && counter.precise == 0);
    assert_true(counter_is_timer(&counter) && !counter_is_software(&counter));
    assert_true(counter_parse("page-faults:u", &counter));
    assert_true(!counter_is_timer(&counter) && counter_is_software(&counter));
}

TEST(samples_of_the_timer_are_not_in_step_with_the_kernels_tick)
{
    static const unsigned rates[][2] = {
        {1, 1},     {10, 10},    {16, 16},     {25, 23},      {49, 49},      {60, 59},
        {99, 99},   {100, 99},   {250, 249},   {300, 299},    {500, 499},    {750, 749},
        {997, 997}, {1000, 999}, {4000, 3999}, {10000, 9999}, {20000, 20000}};
    struct counter timer, cycles;
    assert_true(counter_parse("cpu-clock:u", &timer) && counter_parse("cycles", &cycles));
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        assert_int_equal(counter_frequency(&timer, rates[i][0]), rates[i][1]);
        assert_int_equal(counter_frequency(&cycles, rates[i][0]), rates[i][0]);
    }
    assert_true(counter_is_in_step(&timer, 2000000, 1000000000)); /* -c, in ns */
    assert_true(counter_is_in_step(&timer, 3000000, 1000000000));
    assert_false(counter_is_in_step(&timer, 1960001, 1000000000));
    assert_false(counter_is_in_step(&cycles, 2000000, 1000000000));
}

/* ---- Processors ---- */

TEST(processors_are_read_from_the_kernels_list)
{
    bool online[6];
    assert_true(processors_parse("0\n", online, 6));
    assert_true(online[0] && !online[1] && !online[5]);
    assert_true(processors_parse("0-1,3,5-9\n", online, 6));
    assert_true(online[0] && online[1] && !online[2] && online[3] && !online[4] && online[5]);
    assert_true(processors_parse("2", online, 6));
    assert_true(!online[0] && online[2]);
    static const char *const wrong[] = {"", "\n", "x", "1-", "3-1", "0,", "0;1", "-1", "0-1-2"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_false(processors_parse(wrong[i], online, 6));
    }
    assert_true(processors_read(online, 6));
}

/* ---- Turns ---- */

/* Processors without a kernel. */
struct fake_processor {
    struct perf_event_mmap_page side_band, samples;
    _Alignas(8) uint8_t data[2][4096];
};

static void fake_open(struct fake_processor *fake, struct turn_rings *rings)
{
    rings->side_band = (struct ring){
        .page = &fake->side_band, .data = fake->data[0], .size = sizeof fake->data[0]};
    rings->samples =
        (struct ring){.page = &fake->samples, .data = fake->data[1], .size = sizeof fake->data[1]};
}

/* A record of that many words, the trailer of four among them. */
static void fake_put(const struct ring *ring, uint32_t type, const uint64_t *words, size_t count)
{
    struct perf_event_header header = {.type = type,
                                       .size = (uint16_t)(sizeof header + count * sizeof *words)};
    uint8_t *to = (uint8_t *)ring->data + ring->page->data_head;
    memcpy(to, &header, sizeof header);
    memcpy(to + sizeof header, words, count * sizeof *words);
    ring->page->data_head += header.size;
}

static uint64_t two(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

static void fake_fork(const struct ring *ring, uint32_t pid, uint32_t parent, uint64_t time)
{
    const uint64_t words[] = {
        two(pid, parent), two(pid, parent), time, two(parent, parent), time, 0, 77};
    fake_put(ring, PERF_RECORD_FORK, words, 7);
}

static void fake_exit(const struct ring *ring, uint32_t pid, uint32_t tid, uint64_t time)
{
    const uint64_t words[] = {two(pid, 1), two(tid, 1), time, two(pid, tid), time, 0, 77};
    fake_put(ring, PERF_RECORD_EXIT, words, 7);
}

static void fake_mapping(const struct ring *ring, uint32_t pid, uint64_t time)
{
    const uint64_t words[] = {two(pid, pid), 0x1000,        0x1000, 0, 0, 0, 0, 0,
                              0x612f,        two(pid, pid), time,   0, 77};
    fake_put(ring, PERF_RECORD_MMAP2, words, 13);
}

/* IDENTIFIER, IP, TID, TIME, CPU, PERIOD, an empty chain. */
static void fake_sample(const struct ring *ring, uint32_t pid, uint64_t time)
{
    const uint64_t words[] = {77, 0x1010, two(pid, pid), time, 0, 1, 0};
    fake_put(ring, PERF_RECORD_SAMPLE, words, 7);
}

/* What was given on: "fork 7\n", "map 7\n", "sample 7\n", "lost 3\n"; all with the id 5. */
static char *given_on(int from)
{
    static char text[4096];
    static uint8_t all[16384];
    size_t used = 0;
    ssize_t size = read(from, all, sizeof all);
    text[0] = '\0';
    for (ssize_t at = 0; at < size;) {
        struct perf_event_header header;
        uint64_t id;
        uint32_t word[6];
        memcpy(&header, all + at, sizeof header);
        memcpy(word, all + at + 8, sizeof word);
        memcpy(&id, all + at + (header.type == PERF_RECORD_SAMPLE ? 8 : header.size - 8),
               sizeof id);
        const char *what = header.type == PERF_RECORD_FORK           ? "fork"
                           : header.type == PERF_RECORD_EXIT         ? "exit"
                           : header.type == PERF_RECORD_MMAP2        ? "map"
                           : header.type == PERF_RECORD_SAMPLE       ? "sample"
                           : header.type == PERF_RECORD_LOST_SAMPLES ? "lost"
                           : header.type == PERF_RECORD_THROTTLE     ? "throttled"
                                                                     : NULL;
        if (what) {
            assert_int_equal(id, 5);
            used += (size_t)snprintf(text + used, sizeof text - used, "%s %" PRIu32 "\n", what,
                                     word[header.type == PERF_RECORD_SAMPLE ? 4 : 0]);
        }
        at += header.size;
    }
    return text;
}

/* A turn that writes into a pipe, which is read at ends[0]. */
static struct turn *piped_turn(int ends[2])
{
    struct turn *turn = calloc(1, sizeof *turn);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    turn_new(turn, ends[1]);
    return turn;
}

static void piped_turn_free(struct turn *turn, const int ends[2])
{
    turn_free(turn);
    free(turn);
    close(ends[0]);
    close(ends[1]);
}

/* What is known of a process' stacks goes with it, and not with a thread of its. */
TEST(stacks_go_with_their_process)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    uint32_t pid = (uint32_t)getpid();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *mapped =
        mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(mapped != MAP_FAILED);
    assert_int_equal(mprotect(mapped + 2 * page, page, PROT_NONE), 0);
    uint64_t stack = (uintptr_t)mapped;
    int ends[2];
    struct turn *turn = piped_turn(ends);
    fake_open(&fake, &rings);
    assert_int_equal(stack_ends_of(&turn->ends, pid, 7, stack, now()), stack + 2 * page);
    assert_int_equal(munmap(mapped + page, page), 0);
    for (uint32_t tid = pid + 1; tid >= pid; tid--) {
        assert_int_equal(stack_ends_of(&turn->ends, pid, 7, stack, now()), stack + 2 * page);
        fake_exit(&rings.side_band, pid, tid, 100);
        assert_int_equal(turn_take(turn, &rings, 1), 0);
    }
    assert_int_equal(stack_ends_of(&turn->ends, pid, 7, stack, now()), stack + page);
    munmap(mapped, 3 * page);
    piped_turn_free(turn, ends);
}

/* A JVM's threads may end between the last turn and the moment when it is no longer sampled. */
TEST(ends_of_threads_are_told_of_who_was_sampled)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    int ends[2];
    struct turn *turn = piped_turn(ends);
    turn->events->id = 5;
    fake_open(&fake, &rings);
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_exit(&rings.side_band, 10, 12, 100);
    fake_mapping(&rings.side_band, 10, 110);
    fake_exit(&rings.side_band, 11, 11, 120); /* another's */
    assert_int_equal(turn_sample_process(turn, 10, false), 0);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_string_equal(given_on(ends[0]), "exit 10\n");
    piped_turn_free(turn, ends);
}

/* The processor whose ring is read first writes what a child maps, another one that it was forked;
 * and so does the child of a child. */
TEST(a_child_is_known_by_all_processors)
{
    static struct fake_processor fakes[2];
    static struct turn_rings rings[2];
    int ends[2];
    struct turn *turn = piped_turn(ends);
    turn->events->id = 5;
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fakes[0], &rings[0]);
    fake_open(&fakes[1], &rings[1]);
    fake_fork(&rings[0].side_band, 12, 11, 200);
    fake_mapping(&rings[0].side_band, 11, 120);
    fake_mapping(&rings[0].side_band, 12, 220);
    fake_mapping(&rings[0].side_band, 13, 230); /* another's */
    fake_fork(&rings[1].side_band, 11, 10, 100);
    turn->begun = 240;
    fake_sample(&rings[0].samples, 12, 239); /* when nobody had read its clock yet */
    fake_sample(&rings[0].samples, 12, 240);
    fake_sample(&rings[0].samples, 13, 241);
    assert_int_equal(turn_take(turn, rings, 2), 0);
    assert_string_equal(given_on(ends[0]), "fork 12\nmap 11\nmap 12\nfork 11\nsample 12\n");

    /* Its number goes to a process that is none of ours. */
    fake_fork(&rings[1].side_band, 12, 1, 300);
    fake_mapping(&rings[0].side_band, 12, 310);
    fake_sample(&rings[0].samples, 12, 320);
    assert_int_equal(turn_take(turn, rings, 2), 0);
    assert_string_equal(given_on(ends[0]), "");

    /* One that is off line has no rings. */
    memset(&rings[1], 0, sizeof rings[1]);
    fake_sample(&rings[0].samples, 11, 330);
    assert_int_equal(turn_take(turn, rings, 2), 0);
    assert_string_equal(given_on(ends[0]), "sample 11\n");

    /* Of the whole machine everybody is. */
    turn->is_for_all = true;
    fake_mapping(&rings[0].side_band, 14, 340);
    fake_sample(&rings[0].samples, 14, 350);
    assert_int_equal(turn_take(turn, rings, 2), 0);
    assert_string_equal(given_on(ends[0]), "map 14\nsample 14\n");
    piped_turn_free(turn, ends);
}

static void count_one(void *context, uint32_t pid)
{
    (void)pid;
    ++*(uint32_t *)context;
}

static void count_ours(void *context, uint32_t pid)
{
    *(uint32_t *)context += pid == (uint32_t)getpid();
}

/* What a shell starts in hours has ended: there is room for who comes then. */
TEST(processes_that_have_ended_are_forgotten)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    enum { FIRST = 1 << 23, ALL = FILTER_PROCESSES_MAX * 3 / 2 }; /* above any that there is */
    struct turn *turn = calloc(1, sizeof *turn);
    uint32_t sampled = 0;
    uint32_t most = 0;
    turn_new(turn, open("/dev/null", O_WRONLY | O_CLOEXEC));
    turn->events->id = 5;
    if (filter_load(&turn->filter, FILTER_PLAIN)) {
        print_message("without a BPF program\n");
    }
    assert_int_equal(turn_sample_process(turn, (uint32_t)getpid(), true), 0);
    fake_open(&fake, &rings);
    for (uint32_t i = 0; i < ALL;) {
        fake.side_band.data_head = fake.side_band.data_tail = 0; /* what is read does not wrap */
        rings.forks_end = 0;
        for (int k = 0; k < 32; k++, i++) {
            fake_fork(&rings.side_band, FIRST + i, (uint32_t)getpid(), 100 + i);
        }
        assert_int_equal(turn_take(turn, &rings, 1), 0);
        sampled = 0;
        turn_each_process(turn, count_one, &sampled);
        most = sampled > most ? sampled : most;
    }
    assert_int_equal(turn->left_out, 0);
    assert_in_range(most, 32, FILTER_PROCESSES_MAX);
    sampled = 0;
    turn_each_process(turn, count_ours, &sampled);
    assert_int_equal(sampled, 1); /* we live */
    close(turn->pipe.fd);
    turn_free(turn);
    free(turn);
}

static bool are_told(const struct filter *filter)
{
    struct pollfd told = {.fd = filter->forks.told, .events = POLLIN};
    return poll(&told, 1, 0) == 1;
}

static void fork_one(void)
{
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
}

TEST(forks_are_told_of_who_is_sampled_alone)
{
    struct filter filter;
    int err = filter_load(&filter, FILTER_PLAIN);
    err = err ? err : filter_tell_forks(&filter);
    if (err) {
        filter_close(&filter);
        print_message("no BPF program: %s\n", strerror(-err));
        skip();
    }
    fork_one();
    assert_false(are_told(&filter));
    assert_int_equal(filter_add(&filter, getpid(), 1), 0);
    for (int i = 0; i < 600; i++) { /* more than there is room for */
        fork_one();
    }
    assert_true(are_told(&filter));
    filter_forks_seen(&filter);
    assert_false(are_told(&filter));
    fork_one();
    assert_true(are_told(&filter));
    filter_forks_seen(&filter);
    assert_int_equal(filter_remove(&filter, getpid()), 0);
    fork_one();
    assert_false(are_told(&filter));
    filter_close(&filter);
    assert_int_equal(filter_tell_forks(&filter), -ENOENT);
}

static void wait_a_moment(void)
{
    assert_int_equal(poll(NULL, 0, 1), 0);
}

/* Of more threads than there is room for no waits are recorded, and these are counted. */
TEST(threads_that_are_not_followed_are_counted)
{
    const struct sampler_options options = {0};
    struct switches *switches;
    const char *lacks = switches_new(&options, -1, &switches);
    if (lacks) {
        print_message("%s\n", lacks);
        skip();
    }
    wait_a_moment();
    assert_int_equal(switches_left_out(switches), 0);
    union bpf_attr attr = {.map_fd = (uint32_t)switches_map(switches, "away")};
    uint64_t ids = 0;
    uint32_t thread = 1 << 30; /* above any that there is */
    long err = 0;
    attr.key = (uintptr_t)&thread;
    attr.value = (uintptr_t)&ids;
    for (; err == 0 && thread < (1 << 30) + 2 * SWITCHES_THREADS_MAX; thread++) {
        err = syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &attr, sizeof attr);
    }
    assert_int_equal(err, -1);
    assert_int_equal(errno, E2BIG);
    for (int i = 0; i < 1000 && switches_left_out(switches) == 0; i++) {
        wait_a_moment();
    }
    assert_true(switches_left_out(switches) > 0);
    switches_free(switches);
}

/* Where each process is chosen by itself, what it forks is not. */
TEST(a_child_is_left_out_where_each_is_chosen)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    int ends[2];
    struct turn *turn = piped_turn(ends);
    turn->events->id = 5;
    turn->is_for_each = true;
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fake, &rings);
    fake_fork(&rings.side_band, 11, 10, 100);
    fake_mapping(&rings.side_band, 11, 120);
    fake_sample(&rings.samples, 11, 130);
    fake_sample(&rings.samples, 10, 130);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_string_equal(given_on(ends[0]), "sample 10\n");
    piped_turn_free(turn, ends);
}

/* How many samples came, and what they weigh together. */
static void sum_weights(int from, uint64_t *count, uint64_t *weight)
{
    static uint8_t all[1 << 20];
    ssize_t size = read(from, all, sizeof all);
    *count = *weight = 0;
    for (ssize_t at = 0; at < size;) {
        struct perf_event_header header;
        uint64_t period;
        memcpy(&header, all + at, sizeof header);
        memcpy(&period, all + at + 48, sizeof period);
        if (header.type == PERF_RECORD_SAMPLE) {
            ++*count;
            *weight += period;
        }
        at += header.size;
    }
}

/* One in four, by chance, and each weighs four; what was taken before is as it was. */
TEST(thinned_samples_weigh_more)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    uint64_t before = now();
    uint64_t count = 0;
    uint64_t weight = 0;
    uint64_t total = 0;
    int ends[2];
    struct turn *turn = piped_turn(ends);
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    assert_int_equal(turn_thin_process(turn, 11, 4), -ESRCH);
    assert_int_equal(turn_thin_process(turn, 10, 4), 0);
    fake_open(&fake, &rings);
    fake_sample(&rings.samples, 10, before);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    sum_weights(ends[0], &count, &weight);
    assert_int_equal(count, 1);
    assert_int_equal(weight, 1);
    for (int i = 0; i < 1000; i++) {
        memset(&fake.samples, 0, sizeof fake.samples);
        for (int k = 0; k < 4; k++) {
            fake_sample(&rings.samples, 10, now());
        }
        assert_int_equal(turn_take(turn, &rings, 1), 0);
        sum_weights(ends[0], &count, &weight);
        assert_int_equal(weight, 4 * count);
        total += count;
    }
    assert_in_range(total, 850, 1150); /* 5 sigma; the draws are the same each time */
    assert_int_equal(turn_sample_process(turn, 10, false), 0);
    assert_int_equal(turn_sample_process(turn, 10, true), 0); /* anew, it is not thinned */
    memset(&fake.samples, 0, sizeof fake.samples);
    fake_sample(&rings.samples, 10, now());
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    sum_weights(ends[0], &count, &weight);
    assert_int_equal(weight, 1);
    piped_turn_free(turn, ends);
}

/* A sample of a probe has its event's id, the same of all processors; behind what the probe tells
 * the copy of the stack is cut: where the kernel found a page that was never touched it stays
 * larger than what is valid of it, and where the stack ends it does not. */
TEST(samples_of_probes_are_cut_as_well)
{
    enum { CHAIN = 1, RAW = 4, STACK = 4, BEFORE = 6 + 1 + CHAIN + RAW };
    static struct fake_processor fake;
    static struct turn_rings rings;
    uint64_t words[BEFORE + 1 + REGISTER_COUNT + 1 + STACK + 1] = {
        88, 0x1010, two(10, 10), 1, 0, 1, CHAIN, PERF_CONTEXT_KERNEL, two(4 + 8 * (RAW - 1), 0x61)};
    uint64_t got[64] = {0};
    int ends[2];
    words[BEFORE] = PERF_SAMPLE_REGS_ABI_64;
    words[BEFORE + 1 + STACK_POINTER] = 0x7000;
    words[BEFORE + 1 + REGISTER_COUNT] = 8 * STACK;
    words[BEFORE + 1 + REGISTER_COUNT + 1 + STACK] = 16; /* that are valid */
    struct turn *turn = piped_turn(ends);
    turn->event_count = 2;
    turn->events[0].id = 5;
    turn->events[1] =
        (struct turn_event){.id = 6, .has_stack = true, .has_copies = true, .has_raw = true};
    rings.ids[1] = 88;
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fake, &rings);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, words, sizeof words / sizeof *words);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    ssize_t size = read(ends[0], got, sizeof got);
    const size_t expected = sizeof words + 8 - 8 * (STACK - 3); /* with its head */
    struct perf_event_header header;
    memcpy(&header, got, sizeof header);
    assert_int_equal(header.size, expected);
    assert_true(size >= (ssize_t)expected);
    assert_int_equal(got[1], 6);
    assert_memory_equal(got + 2, words + 1, 8 * (BEFORE + REGISTER_COUNT));
    assert_int_equal(got[1 + BEFORE + 1 + REGISTER_COUNT], 24);
    assert_int_equal(got[1 + BEFORE + 1 + REGISTER_COUNT + 4], 16);

    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *stack =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(stack != MAP_FAILED);
    assert_int_equal(mprotect(stack + page, page, PROT_NONE), 0);
    words[2] = two((uint32_t)getpid(), (uint32_t)getpid());
    words[BEFORE + 1 + STACK_POINTER] = (uintptr_t)stack + page - 16;
    assert_int_equal(turn_sample_process(turn, (uint32_t)getpid(), true), 0);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, words, sizeof words / sizeof *words);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_true(read(ends[0], got, sizeof got) >= (ssize_t)(expected - 8));
    assert_int_equal(got[1 + BEFORE + 1 + REGISTER_COUNT], 16);
    assert_int_equal(got[1 + BEFORE + 1 + REGISTER_COUNT + 3], 16);
    munmap(stack, 2 * page);
    piped_turn_free(turn, ends);
}

/* Of events that may come without bound some are kept: the weight of a thread's next sample is told
 * before it, and is of that one alone, and of no other event's. */
TEST(weights_of_probes_are_told_before_them)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    struct {
        uint64_t before[4]; /* IDENTIFIER, TID, TIME, CPU */
        uint32_t size;
        struct walked_head head;
        uint32_t none;
    } __attribute__((packed))
    told = {.before = {99, two(10, 10), 7, 0},
            .size = sizeof told - sizeof told.before - 4,
            .head = {.magic = WALKED_MAGIC, .flags = WALKED_WEIGHS, .period = UINT64_C(5) << 32}};
    uint64_t words[] = {88, 0x1010, two(10, 10), 7, 0, 1, 0, two(4, 0x61)};
    uint64_t count = 0;
    uint64_t weight = 0;
    int ends[2];
    uint64_t record[sizeof told / 8];
    _Static_assert(sizeof told % 8 == 0, "a record is whole words");
    memcpy(record, &told, sizeof told);
    struct turn *turn = piped_turn(ends);
    turn->event_count = 3;
    turn->events[1] = (struct turn_event){.id = 6, .has_raw = true, .is_limited = true};
    turn->events[2] = (struct turn_event){.id = 7, .has_raw = true};
    rings.walked_id = 99;
    rings.ids[1] = 88;
    rings.ids[2] = 89;
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fake, &rings);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, record, sizeof told / 8);
    words[0] = 89; /* another event of that thread's comes between */
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, words, sizeof words / 8);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    sum_weights(ends[0], &count, &weight);
    assert_int_equal(count, 1);
    assert_int_equal(weight, 1);
    words[0] = 88;
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, words, sizeof words / 8);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, words, sizeof words / 8); /* nothing told of it */
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    sum_weights(ends[0], &count, &weight);
    assert_int_equal(count, 2);
    assert_int_equal(weight, (UINT64_C(5) << 32) + 1);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, record, sizeof told / 8);
    words[2] = two(10, 11);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, words, sizeof words / 8);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    sum_weights(ends[0], &count, &weight);
    assert_int_equal(weight, 1);
    piped_turn_free(turn, ends);
}

/* What was walked at a probe is a sample of that probe's: what it tells is there, and what was
 * walked stands where a copy would. Such without that are nobody's. */
TEST(what_was_walked_at_a_probe_is_its_sample)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    struct {
        uint64_t before[4]; /* IDENTIFIER, TID, TIME, CPU */
        uint32_t size;
        uint8_t head[sizeof(struct walked_head)];
        uint32_t raw[5];
        uint32_t words[3];
        uint32_t none;
    } walked = {.before = {99, two(10, 10), 7, 0},
                .size = sizeof walked - sizeof walked.before - 4,
                .raw = {0x61, 0x62, 0x63, 0x64, 0x65},
                .words = {WALKED_WIDE, 0x1234, 0}};
    struct walked_head head = {
        .magic = WALKED_MAGIC, .words = 3, .frames = 1, .event = 1, .raw = sizeof walked.raw};
    uint64_t got[64] = {0};
    int ends[2];
    _Static_assert(sizeof walked % 8 == 0, "a record is whole words");
    struct turn *turn = piped_turn(ends);
    turn->event_count = 2;
    turn->events[1] =
        (struct turn_event){.id = 6, .has_stack = true, .has_copies = true, .has_raw = true};
    rings.walked_id = 99;
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fake, &rings);
    for (int i = 0; i < 3; i++) { /* of which one is sound */
        head.event = i == 0 ? 2 : 1;
        head.raw = i == 1 ? 16 : sizeof walked.raw;
        memcpy(walked.head, &head, sizeof head);
        fake_put(&rings.samples, PERF_RECORD_SAMPLE, (const uint64_t *)&walked, sizeof walked / 8);
    }
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    /* Its head, 6 words and an empty chain, what it tells, no registers, the copy and what is valid
     * of that; then the end of the round. */
    const size_t expected = 8 + 7 * 8 + 24 + 8 + 8 + 40 + 8;
    struct perf_event_header header;
    assert_true(read(ends[0], got, sizeof got) >= (ssize_t)expected);
    memcpy(&header, got, sizeof header);
    assert_int_equal(header.size, expected);
    assert_int_equal(got[1], 6);
    assert_int_equal(got[2], 0x1234);
    assert_int_equal(got[3], two(10, 10));
    assert_int_equal(got[6], 1); /* it counts once */
    assert_int_equal(got[7], 0);
    assert_int_equal(got[8], two(sizeof walked.raw, 0x61));
    assert_int_equal(got[10], two(0x64, 0x65));
    assert_int_equal(got[11], PERF_SAMPLE_REGS_ABI_NONE);
    assert_int_equal(got[12], 40);
    memcpy(&head, &got[13], sizeof head);
    assert_int_equal(head.raw, 0);
    assert_int_equal(head.words, 3);
    assert_int_equal(got[16], two(WALKED_WIDE, 0x1234));
    assert_int_equal(got[18], sizeof head + sizeof walked.words);
    memcpy(&header, &got[19], sizeof header);
    assert_int_not_equal(header.type, PERF_RECORD_SAMPLE);
    piped_turn_free(turn, ends);
}

/* What the program that follows the scheduler tells: a thread is back, of which whoever runs at
 * that moment is not; another one wakes a thread that is sampled. */
TEST(who_is_back_and_woken_is_told)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    const uint64_t back[] = {88, 0x1010, two(99, 99), 7, 1, 0, 20, two(0, 11), two(10, 0)};
    const uint64_t woken[] = {89, 0x1010, two(99, 99), 8, 1, 0, two(12, 0x61), 0};
    uint64_t got[64] = {0};
    int ends[2];
    struct turn *turn = piped_turn(ends);
    turn->event_count = 3;
    turn->events[0].id = 5;
    turn->events[1] = (struct turn_event){.id = 6, .has_raw = true, .has_backs = true};
    turn->events[2] = (struct turn_event){.id = 7, .has_raw = true, .is_of_another = true};
    rings.ids[1] = 88;
    rings.ids[2] = 89;
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fake, &rings);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, back, 9);
    fake_put(&rings.samples, PERF_RECORD_SAMPLE, woken, 8);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_true(read(ends[0], got, sizeof got) >= (ssize_t)(8 * (5 + 9)));
    struct perf_event_header header;
    memcpy(&header, got, sizeof header);
    assert_int_equal(header.type, PERF_RECORD_SWITCH);
    assert_int_equal(header.misc, 0);
    assert_int_equal(header.size, 40);
    assert_int_equal(got[1], two(10, 11));
    assert_int_equal(got[2], 7); /* time */
    assert_int_equal(got[3], 1); /* processor */
    assert_int_equal(got[4], 5);
    memcpy(&header, got + 5, sizeof header);
    assert_int_equal(header.type, PERF_RECORD_SAMPLE);
    assert_int_equal(got[6], 7);
    assert_int_equal(got[5 + 6], 1); /* what a program writes has no period */
    piped_turn_free(turn, ends);
}

/* A ring that has samples alone loses samples; the kernel's word that it holds back is given on. */
TEST(losses_are_those_of_samples)
{
    static struct fake_processor fake;
    static struct turn_rings rings;
    const uint64_t lost[] = {77, 3, 0, 1, 0, 77};
    const uint64_t throttled[] = {9, 77, 1, 0, 1, 0, 77};
    int ends[2];
    struct turn *turn = piped_turn(ends);
    turn->events->id = 5;
    fake_open(&fake, &rings);
    fake_put(&rings.samples, PERF_RECORD_LOST, lost, 6);
    fake_put(&rings.samples, PERF_RECORD_THROTTLE, throttled, 7);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_string_equal(given_on(ends[0]), "lost 3\nthrottled 9\n");

    /* Of those one in so many would have been given on. */
    turn->one_in = 4;
    fake_put(&rings.samples, PERF_RECORD_LOST, lost, 6);
    fake_put(&rings.samples, PERF_RECORD_LOST, lost, 6);
    fake_put(&rings.samples, PERF_RECORD_LOST, lost, 6);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_string_equal(given_on(ends[0]), "lost 0\nlost 1\nlost 1\n");

    /* Behind the last record more were lost. */
    turn_tell_lost(turn, 12);
    turn_tell_lost(turn, 12 + 7);
    assert_int_equal(perf_pipe_flush(&turn->pipe), 0);
    assert_string_equal(given_on(ends[0]), "lost 2\n");
    piped_turn_free(turn, ends);
}

/* While who reads is slow, samples wait where they are, and no round ends; the side-band does not.
 */
TEST(a_slow_reader_costs_no_side_band)
{
    static struct fake_processor fake;
    enum { MUCH = 40 << 20 };
    uint8_t *much = calloc(1, MUCH);
    static struct turn_rings rings;
    int ends[2];
    struct turn *turn = piped_turn(ends);
    assert_int_equal(turn_sample_process(turn, 10, true), 0);
    fake_open(&fake, &rings);
    perf_pipe_put(&turn->pipe, much, MUCH);
    free(much);
    size_t before = perf_pipe_waiting(&turn->pipe);
    fake_mapping(&rings.side_band, 10, 100);
    fake_sample(&rings.samples, 10, 110);
    assert_int_equal(turn_take(turn, &rings, 1), 0);
    assert_int_equal(perf_pipe_waiting(&turn->pipe), before + 112);
    assert_int_equal(ring_from(&rings.side_band), ring_until(&rings.side_band));
    assert_int_equal(ring_from(&rings.samples), 0);
    piped_turn_free(turn, ends);
}

TEST_MAIN(NULL, NULL)
