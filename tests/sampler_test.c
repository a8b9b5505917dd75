/* What our own sampler is made of, as far as nobody has to be root for it: rings that wrap, where
 * stacks end, the recording as perf would have written it, and what it tells of a process. */
#include "jdtool/perf/process_table.h"
#include "jdtool/sampler/perf_pipe.h"
#include "jdtool/sampler/present.h"
#include "jdtool/sampler/ring.h"
#include "jdtool/sampler/sampler.h"
#include "jdtool/sampler/stack_ends.h"
#include "tests/scratch.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Rings ---- */

static void records_wrap_around_the_end(void **state)
{
    (void)state;
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

/* ---- Stacks ---- */

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static void stacks_end_with_their_mapping(void **state)
{
    (void)state;
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
    stack_ends_free(&ends);
}

/* ---- The recording ---- */

static void nothing(void)
{
}

/* What is written is what perf_data reads, and the process is in it as it is. */
static void the_recording_is_one_of_perfs(void **state)
{
    static struct perf_pipe pipe;
    static const uint64_t ids[] = {11, 12, 13, 14};
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
    const char *path = scratch_path(state, "p.data");
    pipe = (struct perf_pipe){.fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
    assert_true(pipe.fd >= 0);
    perf_pipe_describe(&pipe, &attr, "cpu-clock", ids, 4, command);
    present_process(&pipe, getpid());
    perf_pipe_round(&pipe);
    assert_int_equal(perf_pipe_flush(&pipe), 0);
    close(pipe.fd);

    struct perf_data *data;
    struct utsname machine;
    uname(&machine);
    assert_int_equal(perf_data_open(path, &data), 0);
    assert_int_equal(perf_data_event_count(data), 1);
    assert_string_equal(perf_data_event_name(data, 0), "cpu-clock");
    assert_int_equal(perf_data_event(data, 0)->attr.sample_freq, 99);
    assert_int_equal(perf_data_event(data, 0)->id_count, 4);
    assert_string_equal(perf_data_string(data, PERF_FEATURE_OSRELEASE), machine.release);
    assert_string_equal(perf_data_string(data, PERF_FEATURE_ARCH), machine.machine);
    size_t size;
    assert_non_null(perf_data_feature(data, PERF_FEATURE_CLOCK_DATA, &size));
    assert_int_equal(size, 24);
    assert_non_null(perf_data_feature(data, PERF_FEATURE_NRCPUS, &size));
    assert_non_null(perf_data_feature(data, PERF_FEATURE_CMDLINE, &size));

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
    assert_non_null(strstr(here->file->path, "/sampler_test"));
    assert_non_null(libc);
    assert_non_null(strstr(libc->file->path, "libc"));
    assert_true(libc->file->build_id_size > 0);
    process_table_free(table);
    perf_data_close(data);
}

static void nothing_is_told_of_who_has_ended(void **state)
{
    (void)state;
    static struct perf_pipe pipe;
    pipe.fd = -1;
    present_process(&pipe, 0x7ffffff0);
    assert_int_equal(pipe.filled, 0);
    assert_non_null(sampler_lacks(0x7ffffff0));
}

/* Who reads has gone, or its disk is full: what follows goes nowhere, and the first error stays. */
static void an_error_stays(void **state)
{
    (void)state;
    static struct perf_pipe pipe;
    static uint8_t much[sizeof pipe.room + 1];
    pipe.fd = -1;
    perf_pipe_round(&pipe);
    perf_pipe_put(&pipe, much, sizeof much);
    assert_int_equal(pipe.err, -EBADF);
    assert_int_equal(perf_pipe_flush(&pipe), -EBADF);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_wrap_around_the_end),
        cmocka_unit_test(stacks_end_with_their_mapping),
        cmocka_unit_test_setup_teardown(the_recording_is_one_of_perfs, scratch_create,
                                        scratch_remove),
        cmocka_unit_test(nothing_is_told_of_who_has_ended),
        cmocka_unit_test(an_error_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
