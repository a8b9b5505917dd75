/* Which samples of a recording reach the outputs, in which order, and with which frames. */
#include "test.h"

#include "jdtool/base/clock.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/perf/walked.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/resolve/resolver.h"
#include "tests/methods_builder.h"
#include "tests/random.h"
#include "tests/recording_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <sched.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* ---- A sink that writes all down ---- */

struct text_sink {
    struct sample_sink sink; /* the first member */
    char text[1 << 18];
    size_t size;
    struct recording_counts counts;
    const struct recording *recording;
    uint32_t samples;
    uint32_t of_jvms; /* samples whose process is known by its dump */
    uint32_t frames;  /* the most of a sample */
    uint32_t codes;
    size_t most_memory;
    uint32_t fail_at; /* sample; 0: never */
    bool ended;
    bool aborted;
};

static __attribute__((format(printf, 2, 3))) void say(struct text_sink *sink, const char *format,
                                                      ...)
{
    va_list args;
    va_start(args, format);
    size_t room = sizeof sink->text - sink->size;
    int size = vsnprintf(sink->text + sink->size, room, format, args);
    va_end(args);
    sink->size += size > 0 && (size_t)size < room ? (size_t)size : 0;
}

static int text_begin(struct sample_sink *base, const struct recording *recording)
{
    struct text_sink *sink = (struct text_sink *)base;
    sink->recording = recording;
    sink->size = 0;
    sink->text[0] = '\0';
    return 0;
}

static int text_record(struct sample_sink *base, const struct perf_record *record, bool superseded)
{
    struct text_sink *sink = (struct text_sink *)base;
    if (record->type == PERF_RECORD_MMAP2) {
        say(sink, "map %s%s\n", strrchr((const char *)record->bytes + 72, '/') + 1,
            superseded ? " superseded" : "");
    } else if (record->type >= PERF_USER_FIRST) {
        say(sink, "own %" PRIu64 "\n", perf_record_u64(record, 8));
    }
    return 0;
}

static int text_code(struct sample_sink *base, const struct resolved_code *code)
{
    struct text_sink *sink = (struct text_sink *)base;
    sink->codes++;
    say(sink, "code %s\n", code->symbol);
    return 0;
}

static int text_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct text_sink *sink = (struct text_sink *)base;
    static const char kinds[RESOLVED_KINDS] = {'?', 'k', 'n', 's', 'c', 'i', 'I', 'S'};
    size_t memory = mallinfo2().uordblks + mallinfo2().hblkhd;
    sink->most_memory = memory > sink->most_memory ? memory : sink->most_memory;
    sink->samples++;
    sink->of_jvms += sample->thread.jvm != NULL && sample->thread.is_jvm;
    static struct resolved_frame frames[RESOLVED_FRAMES_MAX + 1];
    uint32_t count =
        stack_table_lines(sample->stacks, sample->node, frames, RESOLVED_FRAMES_MAX + 1);
    sink->frames = count > sink->frames ? count : sink->frames;
    if (sink->samples == sink->fail_at) {
        return -EIO;
    }
    say(sink, "%" PRIu64 " end %d", sample->time, sample->end);
    for (uint32_t i = 0; i < count; i++) {
        const struct resolved_frame *frame = &frames[i];
        assert_true(frame->kind < RESOLVED_KINDS);
        say(sink, " %c:%s:%u", kinds[frame->kind], frame->method ? frame->method->name : "-",
            frame->line);
        if (frame->unnamed) {
            say(sink, "!%u", frame->unnamed);
        }
    }
    const struct perf_sample *recorded = sample->recorded;
    if (recorded->stack && recorded->tail.size == 8) { /* what is behind the copy */
        assert_memory_equal(recorded->tail.at, &recorded->time, 8);
    }
    say(sink, "\n");
    return 0;
}

static int text_end(struct sample_sink *base)
{
    struct text_sink *sink = (struct text_sink *)base;
    sink->counts = sink->recording->counts;
    sink->ended = true;
    return 0;
}

static void text_abort(struct sample_sink *base)
{
    ((struct text_sink *)base)->aborted = true;
}

static struct text_sink text;

static size_t budget; /* of what waits; 0: the usual one */

static int run_with(const char *input, bool want_codes)
{
    static const struct sample_sink_ops ops = {.begin = text_begin,
                                               .record = text_record,
                                               .sample = text_sample,
                                               .end = text_end,
                                               .abort = text_abort};
    static const struct sample_sink_ops ops_codes = {.begin = text_begin,
                                                     .record = text_record,
                                                     .code = text_code,
                                                     .sample = text_sample,
                                                     .end = text_end,
                                                     .abort = text_abort};
    uint32_t fail_at = text.fail_at;
    memset(&text, 0, sizeof text);
    text.fail_at = fail_at;
    text.sink.ops = want_codes ? &ops_codes : &ops;
    struct sample_sink *sink = &text.sink;
    struct stream_options options = {.input = input, .budget = budget};
    struct stream_result result;
    return stream_run(&options, &sink, 1, &result);
}

static int run(void **state, const struct perf_file *file)
{
    perf_file_write(file, scratch_path(state, "p.data"));
    return run_with(scratch_path(state, "p.data"), false);
}

/* ---- Tests ---- */

TEST(samples_come_by_time_with_their_frames)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    put_mmap2(&file, PID, 1000010, CODE, 0x20000, "//anon");
    put_marker(&file, state);
    put_mmap2(&file, PID, 1000060, CODE, 0x20000, "//anon");
    uint64_t later[] = {PERF_CONTEXT_USER, CODE + 1};
    uint64_t stub[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER, CODE + 64,
                       CODE + 5};
    uint64_t first[] = {PERF_CONTEXT_USER, CODE + 1, CODE + 4};
    put_sample(&file, PID, 1000550, later, 2);
    put_sample(&file, PID, 1000400, stub, 5);
    put_sample(&file, PID, 1000200, first, 3);
    put_round(&file);
    assert_int_equal(run(state, &file), 0);
    assert_true(text.ended);
    assert_string_equal(text.text, "map anon\n"
                                   "map jit-4242.dump superseded\n"
                                   "map anon superseded\n"
                                   "1000200 end 5 c:a.A.m():10 c:a.A.m():10\n"
                                   "1000400 end 5 k:-:0 s:stub:0 i:b.B.inlined():11 c:a.A.m():10\n"
                                   "1000550 end 5 c:a.A.later():0\n");
    assert_int_equal(text.counts.samples, 3);
    assert_int_equal(text.of_jvms, 3);
    assert_int_equal(text.counts.late, 0);
}

TEST(all_code_is_told_of_before_it_can_be_sampled)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, PID, 1000400, chain, 2);
    perf_file_write(&file, scratch_path(state, "p.data"));
    assert_int_equal(run_with(scratch_path(state, "p.data"), true), 0);
    assert_string_equal(text.text, "map jit-4242.dump superseded\n"
                                   "code a.A.m()\n"
                                   "code stub\n"
                                   "1000400 end 5 c:a.A.m():10\n"
                                   "code a.A.later()\n"
                                   "code untouched\n");
}

/* perf's rounds: a record that comes in one is not older than the newest before the last but one.
 */
TEST(rounds_keep_the_order)
{
    OWN_PERF_FILE file = recording();
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    uint64_t expected = 0;
    for (uint64_t round = 0; round < 50; round++) {
        for (uint64_t i = 0; i < 20;
             i++) { /* each reaches back to the beginning of the one before */
            uint64_t time = 905 + round * 100 + i * 37 % 20 * 10;
            put_sample(&file, PID, time, chain, 2);
            expected++;
        }
        put_round(&file);
    }
    assert_int_equal(run(state, &file), 0);
    assert_int_equal(text.samples, expected);
    assert_int_equal(text.counts.late, 0);
    uint64_t last = 0;
    for (const char *line = text.text; *line; line = strchr(line, '\n') + 1) {
        uint64_t time = strtoull(line, NULL, 10);
        assert_true(time >= last);
        last = time;
    }
}

/* All that a run of it tells, by one processor, where nobody reads ahead, and by several. */
static void assert_the_same_with_threads(void **state, const struct perf_file *file)
{
    static struct text_sink alone;
    cpu_set_t all;
    cpu_set_t one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(run(state, file), 0);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    memcpy(&alone, &text, sizeof alone);
    assert_int_equal(run_with(scratch_path(state, "p.data"), false), 0);
    assert_true(text.size > 0 && text.size + 200 < sizeof text.text);
    assert_string_equal(text.text, alone.text);
    assert_memory_equal(&text.counts, &alone.counts, sizeof text.counts);
}

TEST(who_reads_ahead_changes_nothing)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1, CODE + 4};
    uint64_t seed = random_seed();
    uint64_t own[2] = {0};
    for (uint64_t i = 0; i < 2400; i++) {
        put_sample(&file, PID, 1000200 + i * 10 + random_below(&seed, 3000), chain, 3);
        if (i % 50 == 0 && i < 1200) { /* behind it sinks are given whole lists */
            own[0] = i;
            perf_file_record(&file, PERF_USER_ID_INDEX, 0, own, sizeof own);
            perf_file_record(&file, PERF_RECORD_SAMPLE, 0, own, 8);
            put_mmap2(&file, PID, 1000200 + i * 10, CODE, 0x20000, "//anon");
        }
        if (i % 300 == 299 && i < 1500) {
            put_round(&file);
        }
    }
    assert_the_same_with_threads(state, &file);
    budget = 600 * 1024; /* the oldest go early where no round ends */
    assert_the_same_with_threads(state, &file);
    assert_true(text.counts.late > 0);
    budget = 0;
    text.fail_at = 1000; /* with much of it read and not taken */
    assert_int_equal(run_with(scratch_path(state, "p.data"), false), -EIO);
    text.fail_at = 0;
}

TEST(a_sink_that_fails_ends_it)
{
    OWN_PERF_FILE file = recording();
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, PID, 1000400, chain, 2);
    put_sample(&file, PID, 1000401, chain, 2);
    text.fail_at = 2;
    assert_int_equal(run(state, &file), -EIO);
    text.fail_at = 0;
    assert_true(text.aborted);
    assert_false(text.ended);
    assert_int_equal(run_with(scratch_path(state, "absent"), false), -ENOENT);
    assert_true(text.aborted);
}

TEST(losses_are_counted)
{
    OWN_PERF_FILE file = recording();
    uint64_t lost[] = {1, 7, 0, 0};
    uint64_t samples[] = {11, 0, 0};
    perf_file_record(&file, PERF_RECORD_LOST, 0, lost, sizeof lost);
    perf_file_record(&file, PERF_RECORD_LOST_SAMPLES, 0, samples, sizeof samples);
    uint64_t throttled[] = {1000100, 0, 0, 0, 0};
    perf_file_record(&file, PERF_RECORD_THROTTLE, 0, throttled, sizeof throttled);
    /* What a BPF filter dropped was to be dropped. */
    perf_file_record(&file, PERF_RECORD_LOST_SAMPLES, 1u << 15, samples, sizeof samples);
    perf_file_record(&file, PERF_RECORD_SAMPLE, 0, samples, 8);
    assert_int_equal(run(state, &file), 0);
    assert_int_equal(text.counts.lost_records, 7);
    assert_int_equal(text.counts.lost_samples, 11);
    assert_int_equal(text.counts.filtered_samples, 11);
    assert_int_equal(text.counts.throttled, 1);
    assert_int_equal(text.counts.malformed, 1);
}

/* A method of `size` bytes whose inline tree is a line of `depth` nodes, with equal ranges of each
 * of the `ranges` deepest. */
static void write_deep_dump(void **state, uint64_t depth, uint64_t ranges, uint64_t size)
{
    struct dump_builder dump = dump_start();
    dump_begin_debug(&dump, 1000100, CODE, 0);
    dump_begin_trailer(&dump);
    struct dump_builder section = {0};
    dump_method(&section, 1, 0, 0, "a.A.deep()");
    dump_section(&dump, JITDUMP_TRAILER_METHODS, &section);
    dump_uleb(&section, depth);
    dump_uleb(&section, 1);
    for (uint64_t i = 1; i < depth; i++) {
        dump_uleb(&section, 1);
        dump_uleb(&section, i - 1);
        dump_uleb(&section, 7);
    }
    for (uint64_t i = 0; i < ranges; i++) {
        dump_uleb(&section, size / ranges);
        dump_uleb(&section, depth - 1 - i);
        dump_sleb(&section, 0);
    }
    dump_section(&dump, JITDUMP_TRAILER_INLINES, &section);
    dump_end_trailer(&dump);
    dump_end(&dump);
    dump_load(&dump, 1000100, CODE, size, 1, "a.A.deep()");
    write_dump(state, &dump, "jit-4242.dump");
}

/* A tree as deep as the dump is long: frames to a limit, and it is told. */
TEST(a_deep_inline_tree_is_cut)
{
    write_deep_dump(state, 100000, 1024, 1024);
    OWN_PERF_FILE file = recording();
    put_marker(&file, state);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE + i};
        put_sample(&file, PID, 1000400 + i, chain, 2);
    }
    assert_int_equal(run(state, &file), 0);
    assert_int_equal(text.samples, 1000);
    assert_int_equal(text.frames, 257);
    assert_int_equal(text.counts.inlines_cut, 1000);
}

/* More frames than a sample may have are left out at the outer end, and told. */
TEST(a_deep_stack_is_cut)
{
    write_deep_dump(state, 200, 1, 16);
    OWN_PERF_FILE file = recording();
    put_marker(&file, state);
    uint64_t chain[500] = {PERF_CONTEXT_USER};
    for (int i = 1; i < 500; i++) {
        chain[i] = CODE + 5;
    }
    file.attrs[0].sample_max_stack = 1000; /* perf itself has cut nothing */
    put_sample(&file, PID, 1000399, chain, 20);
    put_sample(&file, PID, 1000400, chain, 500);
    assert_int_equal(run(state, &file), 0);
    assert_int_equal(text.frames, 65536);
    assert_int_equal(text.counts.frames_cut, 499 * 200 - 65536);
    assert_non_null(strstr(text.text, "1000400 end 6 "));
    assert_non_null(strstr(text.text, "1000399 end 5 "));
}

/* As deep as perf was told to go, or by default the kernel goes. */
TEST(a_chain_as_long_as_may_be_is_cut)
{
    static const struct {
        uint16_t max_stack;
        size_t count;
        const char *end;
    } chains[] = {{4, 3, "end 5 "}, {4, 4, "end 6 "}, {0, 126, "end 5 "}, {0, 127, "end 6 "}};
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        OWN_PERF_FILE file = recording();
        write_simple_dump(state);
        put_marker(&file, state);
        uint64_t chain[200] = {PERF_CONTEXT_USER};
        for (size_t k = 1; k < chains[i].count; k++) {
            chain[k] = CODE + 1;
        }
        file.attrs[0].sample_max_stack = chains[i].max_stack;
        put_sample(&file, PID, 1000400, chain, chains[i].count);
        assert_int_equal(run(state, &file), 0);
        assert_non_null(strstr(text.text, chains[i].end));
    }
}

/* What a chain says of a hypervisor or a guest is neither the kernel's nor the process'. */
TEST(other_contexts_are_neither)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_HV,    0xffffffff81000000, PERF_CONTEXT_KERNEL,
                        0xffffffff81000000, PERF_CONTEXT_USER,  CODE + 1};
    put_sample(&file, PID, 1000200, chain, 6);
    assert_int_equal(run(state, &file), 0);
    assert_non_null(strstr(text.text, " ?:-:0 k:-:0 c:a.A.m():10\n"));
}

/* --call-graph fp,defer: one user part for all samples of a thread since it came into the kernel.
 */
TEST(late_user_parts_are_joined)
{
    enum { OTHER = PID + 1 };
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t in_kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER_DEFERRED, 7};
    uint64_t in_user[] = {PERF_CONTEXT_USER_DEFERRED, 7};
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    uint64_t late[] = {PERF_CONTEXT_USER, CODE + 4, CODE + 65};
    put_sample(&file, PID, 1000340, in_kernel, 4);
    put_sample(&file, PID, 1000350, in_user, 2);
    put_sample(&file, OTHER, 1000360, chain, 2);
    put_late_chain(&file, OTHER, 1000365, 7, late, 3); /* of another thread: belongs to none */
    put_late_chain(&file, PID, 1000510, 7, late, 3);   /* other code is at its addresses by now */
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(text.text, "map jit-4242.dump superseded\n"
                                   "1000360 end 3 ?:-:0\n"
                                   "1000365 end 3 ?:-:0 ?:-:0\n"
                                   "1000340 end 5 k:-:0 i:b.B.inlined():11 c:a.A.m():10 s:stub:0\n"
                                   "1000350 end 5 i:b.B.inlined():11 c:a.A.m():10 s:stub:0\n");
    assert_int_equal(text.counts.samples, 3);
}

/* Its record was lost, or the recording ended before: the sample is told without it. */
TEST(user_parts_that_never_come_are_not_waited_for)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER_DEFERRED, 7};
    uint64_t late[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, PID, 1000310, chain, 4);
    chain[3] = 8;
    put_sample(&file, PID, 1000320, chain, 4);
    put_late_chain(&file, PID, 1000330, 7, late, 2);
    put_late_chain(&file, PID, 1000340, 8, late, 2);
    put_late_chain(&file, PID, 1000350, 8, late, 2);
    chain[3] = 9;
    put_sample(&file, PID, 1000360, chain, 4);
    put_sample(&file, PID, 1000370, chain + 3, 1); /* no marker: an address as any */
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(text.text, "map jit-4242.dump superseded\n"
                                   "1000310 end 8 k:-:0\n"
                                   "1000330 end 5 c:a.A.m():10\n"
                                   "1000320 end 5 k:-:0 c:a.A.m():10\n"
                                   "1000350 end 5 c:a.A.m():10\n"
                                   "1000370 end 3 ?:-:0\n"
                                   "1000360 end 8 k:-:0\n");
    assert_int_equal(text.counts.samples, 4);
}

/* ---- Stack copies ---- */

static struct perf_file recording_of_copies(void **state)
{
    struct perf_file file = recording();
    struct dump_builder dump = dump_start();
    dump_frame_code(&dump, 1000100, CODE, "a.A.m()");
    write_dump(state, &dump, "jit-4242.dump");
    file.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    file.attrs[0].sample_regs_user = 0x1c0; /* bp, sp, ip of x86-64 */
    put_marker(&file, state);
    return file;
}

/* In the method's body; `frames` return addresses into it, and behind them 0. */
static void put_copy(struct perf_file *file, uint64_t time, int frames, uint64_t size,
                     uint64_t valid)
{
    uint64_t payload[2600] = {CODE + 6,
                              PID | (uint64_t)PID << 32,
                              time,
                              0,
                              PERF_SAMPLE_REGS_ABI_64,
                              0,
                              0x7ffd00001000,
                              CODE + 6,
                              size};
    for (int i = 0; i < frames; i++) {
        payload[9 + i * 4 + 3] = CODE + 9;
    }
    payload[9 + size / 8] = valid;
    payload[10 + size / 8] = time; /* as of a field that we do not know */
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, 88 + size);
}

TEST(a_stack_copy_says_how_it_ended)
{
#ifndef __x86_64__
    skip(); /* registers of a recording that names no machine are this one's; these are x86-64's */
#endif
    OWN_PERF_FILE file = recording_of_copies(state);
    put_copy(&file, 1000201, 2, 128, 128);
    put_copy(&file, 1000202, 4, 128, 128); /* the fifth frame lies behind the copy */
    put_copy(&file, 1000203, 2, 128, 64);  /* the kernel copied less than was asked for */
    put_copy(&file, 1000204, 0, 0, 0);
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(strchr(text.text, '\n') + 1,
                        "1000201 end 5 c:a.A.m():0 c:a.A.m():0 c:a.A.m():0\n"
                        "1000202 end 1 c:a.A.m():0 c:a.A.m():0 c:a.A.m():0 c:a.A.m():0 "
                        "c:a.A.m():0\n"
                        "1000203 end 2 c:a.A.m():0 c:a.A.m():0 c:a.A.m():0\n"
                        "1000204 end 1 c:a.A.m():0\n");
}

/* ---- Stacks that were walked in the kernel ---- */

/* A method whose frame the JVM told: sub rsp,0x18; mov [rsp+0x10],rbp; nop...; add rsp,0x10; pop
 * rbp; ret. */
static void put_told_method(struct dump_builder *dump, uint64_t address, const char *name)
{
    static const uint8_t code[] = {0x48, 0x83, 0xec, 0x18, 0x48, 0x89, 0x6c, 0x24, 0x10, 0x90,
                                   0x90, 0x90, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3};
    struct dump_builder section = {0};
    dump_begin_debug(dump, 1000100, address, 0);
    dump_begin_trailer(dump);
    dump_uleb(&section, JITDUMP_CODE_KIND);
    dump_uleb(&section, JITDUMP_KIND_NMETHOD);
    dump_uleb(&section, JITDUMP_CODE_FRAME_SIZE);
    dump_uleb(&section, 0x20);
    dump_section(dump, JITDUMP_TRAILER_CODE, &section);
    dump_end_trailer(dump);
    dump_end(dump);
    dump_begin(dump, JIT_CODE_LOAD, 1000100);
    dump_load_fields(dump, address, sizeof code, 1);
    dump_string(dump, name);
    dump_bytes(dump, code, sizeof code);
    dump_end(dump);
}

/* A walk to the root that assumed so many bytes of the leaf's frame set up, of 32. */
static void put_walk(struct perf_file *file, uint64_t time, uint64_t leaf, uint64_t caller,
                     uint32_t assumed)
{
    struct {
        struct walked_head head;
        uint32_t words[8];
    } walk = {{.magic = WALKED_MAGIC, .words = 7, .frames = 2, .end = WALKED_ROOT},
              {WALKED_WIDE | WALKED_ASSUMED, (uint32_t)leaf, (uint32_t)(leaf >> 32), assumed,
               WALKED_WIDE | WALKED_IS_CALLER, (uint32_t)caller, (uint32_t)(caller >> 32)}};
    uint64_t payload[32] = {leaf, PID | (uint64_t)PID << 32, time,
                            0,    PERF_SAMPLE_REGS_ABI_NONE, sizeof walk};
    memcpy(payload + 6, &walk, sizeof walk);
    payload[6 + sizeof walk / 8] = sizeof walk;
    perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, 56 + sizeof walk);
}

/* Where a prologue has made room and not stored rbp yet, the walk knows a wrong rbp. It matters
 * only to a caller that is found by it. At the method's entry rbp is the caller's. */
TEST(a_walk_is_refuted_only_where_it_went_wrong)
{
#ifndef __x86_64__
    skip(); /* the code is x86-64's */
#endif
    OWN_PERF_FILE file = recording();
    struct dump_builder dump = dump_start();
    put_told_method(&dump, CODE, "a.A.leaf()");
    put_told_method(&dump, CODE + 64, "a.A.caller()");
    dump_frame_code(&dump, 1000100, CODE + 128, "Interpreter");
    write_dump(state, &dump, "jit-4242.dump");
    file.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    put_marker(&file, state);
    put_walk(&file, 1000201, CODE + 9, CODE + 64 + 10, 0x20); /* in the body */
    put_walk(&file, 1000202, CODE + 4, CODE + 64 + 10, 0x20);
    put_walk(&file, 1000203, CODE + 4, CODE + 128 + 10, 0x20);
    put_walk(&file, 1000204, CODE, CODE + 64 + 10, 0x20);
    put_walk(&file, 1000205, CODE, CODE + 128 + 10, WALKED_ENTRY_FRAME);
    put_walk(&file, 1000206, CODE + 9, CODE + 64 + 10, WALKED_ENTRY_FRAME);
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(strchr(text.text, '\n') + 1,
                        "1000201 end 5 c:a.A.leaf():0 c:a.A.caller():0\n"
                        "1000202 end 5 c:a.A.leaf():0 c:a.A.caller():0\n"
                        "1000203 end 5 c:a.A.leaf():0\n"
                        "1000204 end 5 c:a.A.leaf():0\n"
                        "1000205 end 5 c:a.A.leaf():0 s:Interpreter:0\n"
                        "1000206 end 5 c:a.A.leaf():0\n");
    assert_int_equal(text.counts.refuted, 3);
}

/* A thread is at CODE in a method and at CODE + 256 in a stub, both called from outside. */
static void run_with_stub(void **state, const char *method, const char *stub, uint64_t inner,
                          uint64_t outer)
{
    OWN_PERF_FILE file = recording();
    struct dump_builder dump = dump_start();
    dump_load(&dump, 1000100, CODE, 16, 1, method);
    dump_load(&dump, 1000100, CODE + 256, 64, 2, stub);
    write_dump(state, &dump, "jit-4242.dump");
    put_mmap2(&file, PID, 0, 0x7f0000100000, 0x1000, "/no/libc.so.6");
    put_marker(&file, state);
    uint64_t chain[] = {PERF_CONTEXT_USER, inner, outer, 0x7f0000100010};
    put_sample(&file, PID, 1000200, chain, 4);
    assert_int_equal(run(state, &file), 0);
}

/* A virtual thread's stack goes on where its frozen frames are thawed: it is whole as far as it was
 * there. */
TEST(a_stack_behind_a_return_barrier_is_frozen)
{
    run_with_stub(state, "a.A.m()", "Stub Generator cont_returnBarrier_stub", CODE + 1, CODE + 256);
    assert_non_null(strstr(text.text, "1000200 end 7 c:a.A.m():0 s:Stub"));
}

/* The same while they are thawed, of which the JVM tells agents: none of them was called from
 * there. */
TEST(a_stack_in_a_thaw_is_frozen)
{
    run_with_stub(state, "a.A.run()", "cont_thaw", CODE + 257, CODE + 9);
    assert_non_null(strstr(text.text, "1000200 end 7 s:cont_thaw:0 c:a.A.run():0"));
}

/* What is behind the valid part of a copy does not wait with it. */
TEST(copies_wait_without_what_is_not_valid)
{
    OWN_PERF_FILE file = recording_of_copies(state);
    for (uint64_t i = 0; i < 10000; i++) { /* 45 MB, 3 MB of them valid */
        put_copy(&file, 1000200 + i, 2, 4608, 128);
    }
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    perf_file_write(&file, scratch_path(state, "p.data"));
    text.most_memory = 0;
    assert_int_equal(run_with(scratch_path(state, "p.data"), false), 0);
    assert_int_equal(text.samples, 10000);
    if (before > 0) { /* a sanitizer's malloc tells nothing */
        assert_true(text.most_memory > before);
        assert_true(text.most_memory - before < (size_t)24 << 20);
    }
}

/* Those that were left in the file are read ahead. */
TEST(who_reads_copies_ahead_changes_nothing)
{
    OWN_PERF_FILE file = recording_of_copies(state);
    for (uint64_t i = 0; i < 300; i++) {
        put_copy(&file, 1000200 + i, 2, 20480, 128 + i * 64 + i % 2 * 8);
    }
    assert_the_same_with_threads(state, &file);
    assert_int_equal(text.samples, 300);
}

/* --call-graph lbr: the user's frames are the calls that the processor remembers. */
TEST(branch_stacks_are_call_chains)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    file.attrs[0].sample_type |= PERF_SAMPLE_BRANCH_STACK;
    file.attrs[0].branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK;
    put_marker(&file, state);
    uint64_t payload[] = {CODE + 66,
                          PID | (uint64_t)PID << 32,
                          1000350,
                          4,
                          PERF_CONTEXT_KERNEL,
                          0xffffffff81000000,
                          PERF_CONTEXT_USER,
                          CODE + 66,
                          2,
                          CODE + 5,
                          CODE + 64,
                          0,
                          CODE + 2,
                          CODE + 4,
                          0};
    perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, sizeof payload);
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(strchr(text.text, '\n') + 1,
                        "1000350 end 5 k:-:0 s:stub:0 i:b.B.inlined():11 c:a.A.m():10 "
                        "c:a.A.m():10\n");
}

/* Stacks too deep to be remembered for the thread's next one: their callers' addresses lie in the
 * call, too. */
TEST(callers_of_deep_stacks_lie_in_the_call)
{
    enum { DEPTH = 2100 };
    static uint64_t payload[5 + DEPTH] = {CODE + 4, PID | (uint64_t)PID << 32, 1000200, DEPTH + 1,
                                          PERF_CONTEXT_USER};
    for (int i = 5; i < 5 + DEPTH; i++) {
        payload[i] = CODE + 4; /* where an inlined method begins, which called nothing before */
    }
    OWN_PERF_FILE file = recording_of_jvm(state);
    perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload, sizeof payload);
    assert_int_equal(run(state, &file), 0);
    const char *at = strstr(text.text, " i:b.B.inlined():11 c:a.A.m():10");
    assert_non_null(at);
    assert_null(strstr(at + 1, " i:b.B"));
}

/* An address where nothing can be is no frame of the interpreter's, nor has it a name. */
TEST(garbage_addresses_have_no_names)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1, UINT64_C(0x1000000000000004),
                        UINT64_C(0x1000000100000008), 0};
    put_sample(&file, PID, 1000200, chain, 5);
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(strchr(text.text, '\n') + 1,
                        "1000200 end 3 c:a.A.m():10 ?:-:0 ?:-:0 ?:-:0\n");
}

/* ---- Processes, and what cannot be named ---- */

/* What a fork runs before it executes something else is its parent's code as of then. */
TEST(a_fork_has_its_parents_code)
{
    OWN_PERF_FILE file = recording_of_jvm(state);
    put_task(&file, PERF_RECORD_FORK, PID + 1, PID, PID + 1, 1000450);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, PID + 1, 1000700, chain, 2);
    put_sample(&file, PID, 1000700, chain, 2);
    put_comm(&file, PID + 1, PID + 1, 1000800, "sh", true);
    put_sample(&file, PID + 1, 1000900, chain, 2);
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(text.text, "map jit-4242.dump superseded\n"
                                   "1000700 end 5 c:a.A.m():10\n"
                                   "1000700 end 5 c:a.A.later():0\n"
                                   "1000900 end 3 ?:-:0\n");
}

/* Samples of a program whose code comes, goes and is mapped over while its stack grows and shrinks:
 * of one thread, or each of another. */
static void put_changing_samples(struct perf_file *file, void **state, bool one_thread)
{
    uint64_t seed = random_seed();
    uint64_t chain[40] = {PERF_CONTEXT_USER};
    uint32_t depth = 0;
    put_marker(file, state);
    for (uint32_t i = 0; i < 400; i++) {
        uint64_t time = 1000090 + i * 2;
        uint32_t kept = depth ? random_below(&seed, depth + 1) : 0;
        uint32_t added = random_below(&seed, kept ? 6 : 30);
        added = kept + added > 30 ? 30 - kept : added;
        uint64_t outer[40];
        memcpy(outer, chain + 1 + (depth - kept), kept * sizeof *outer);
        for (uint32_t at = 0; at < added; at++) { /* in code that others replace, in all other */
            uint64_t bases[] = {CODE, CODE + 64, OTHER_CODE, 0x7f0000200000};
            chain[1 + at] = bases[random_below(&seed, 4)] + random_below(&seed, 20);
        }
        memcpy(chain + 1 + added, outer, kept * sizeof *outer);
        depth = added + kept;
        if (depth > 2 && i % 50 == 7) { /* a kernel's part, and a marker further out */
            uint64_t other[44] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000};
            memcpy(other + 2, chain, (1 + depth) * sizeof *chain);
            other[4] = i % 100 == 7 ? PERF_CONTEXT_USER : other[4];
            put_sample_of(file, PID, one_thread ? PID : PID + i, time, other, depth + 3);
        } else {
            put_sample_of(file, PID, one_thread ? PID : PID + i, time, chain, depth + 1);
        }
        if (i % 60 == 40) {
            const char *path = i % 120 == 40 ? "/no/one.so" : "//anon";
            put_mmap2(file, PID, time + 1, 0x7f0000200000, 0x1000, path);
        }
    }
}

/* What a thread's last stack tells of its next one is what would be found without it. */
TEST(a_stack_is_the_same_of_one_thread_or_of_many)
{
    static char of_many[sizeof text.text];
    for (int one_thread = 0; one_thread < 2; one_thread++) {
        OWN_PERF_FILE file = recording();
        write_simple_dump(state);
        put_changing_samples(&file, state, one_thread);
        assert_int_equal(run(state, &file), 0);
        assert_int_equal(text.samples, 400);
        assert_true(text.size < sizeof text.text - 1000);
        if (one_thread) {
            assert_string_equal(text.text, of_many);
        }
        memcpy(of_many, text.text, sizeof of_many);
    }
}

TEST(what_has_no_name_says_why)
{
    OWN_PERF_FILE file = recording();
    write_simple_dump(state);
    put_mmap2(&file, PID, 0, CODE, 0x20000, "//anon");
    put_mmap2(&file, PID + 7, 0, CODE, 0x20000, "//anon");
    put_mmap2(&file, PID + 7, 0, 0x7f0000200000, 0x1000, "/no/libjvm.so");
    put_marker(&file, state);
    static const struct {
        uint32_t pid;
        uint64_t time;
        uint64_t address;
    } samples[] = {
        {PID, 999000, CODE},         /* before the dump */
        {PID, 1000200, CODE + 64},   /* before its LOAD */
        {PID, 1000201, CODE + 1024}, /* never heard of */
        {PID + 7, 1000202, CODE},    /* a JVM without a dump */
        {PID + 8, 1000203, CODE},    /* no JVM at all */
        {PID, 1000700, CODE + 1024}, /* behind the dump's last record */
    };
    for (size_t i = 0; i < sizeof samples / sizeof samples[0]; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, samples[i].address};
        put_sample(&file, samples[i].pid, samples[i].time, chain, 2);
    }
    assert_int_equal(run(state, &file), 0);
    assert_string_equal(strstr(text.text, "999000"), "999000 end 3 ?:-:0!1\n"
                                                     "map jit-4242.dump superseded\n"
                                                     "1000200 end 3 ?:-:0!4\n"
                                                     "1000201 end 3 ?:-:0!5\n"
                                                     "1000202 end 3 ?:-:0!1\n"
                                                     "1000203 end 3 ?:-:0\n"
                                                     "1000700 end 3 ?:-:0!3\n");
}

/* Reads from a descriptor as from a pipe. */
static int run_pipe(int end)
{
    int saved = dup(STDIN_FILENO);
    dup2(end, STDIN_FILENO);
    close(end);
    int err = run_with("-", false);
    dup2(saved, STDIN_FILENO);
    close(saved);
    return err;
}

/* Some file with symbols and rows. */
static void copy_program(const char *path)
{
    int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    struct stat status;
    assert_int_equal(fstat(from, &status), 0);
    assert_int_equal(sendfile(to, from, NULL, (size_t)status.st_size), status.st_size);
    close(from);
    close(to);
}

/* Whether our parent has opened a file of that name. */
static bool parent_has_mapped(const char *name)
{
    char path[64];
    char line[4096];
    bool has = false;
    snprintf(path, sizeof path, "/proc/%d/maps", (int)getppid());
    FILE *maps = fopen(path, "re");
    while (maps && !has && fgets(line, sizeof line, maps)) {
        has = strstr(line, name) != NULL;
    }
    if (maps) {
        fclose(maps);
    }
    return has;
}

/* A pipe whose JVM (this test) is alive: the code is told of after the sample has come. Files that
 * others were taken in are opened meanwhile. */
TEST(a_sample_waits_for_its_dump)
{
    OWN_PERF_FILE file = recording();
    OWN_DUMP_BUILDER dump = {0};
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint32_t pid = (uint32_t)getpid();
    dump_header(&dump);
    size_t header = dump.size;
    dump_load(&dump, now - 1000, CODE, 16, 1, "a.A.told_late()");
    write_bytes(scratch_path(state, "jit-1.dump"), dump.bytes, header + 20); /* and part of it */
    put_mmap2(&file, pid, now - 2000, 0x7f0000000000, 4096, scratch_path(state, "jit-1.dump"));
    char library[PATH_MAX];
    snprintf(library, sizeof library, "%s", scratch_path(state, "waited_for.so"));
    copy_program(library);
    put_mmap2(&file, pid, now - 2000, 0x7f0000100000, 4096, library);
    put_round(&file);
    put_round(&file);
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    uint64_t native[] = {PERF_CONTEXT_USER, 0x7f0000100080};
    put_sample(&file, pid, now, chain, 2);
    put_sample(&file, pid, now + 1, native, 2);
    put_round(&file);
    put_round(&file);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE *out = fdopen(ends[1], "w");
    perf_file_write_pipe(&file, out);
    pid_t child = fork();
    if (child == 0) { /* perf goes on for a while; the JVM tells */
        bool has = false;
        for (int tries = 0; tries < 40; tries++) {
            usleep(10000);
            has = has || parent_has_mapped("/waited_for.so");
            tries = has && tries >= 10 ? 40 : tries;
        }
        write_bytes(scratch_path(state, "jit-1.dump"), dump.bytes, dump.size);
        usleep(100000);
        _exit(has ? 0 : 1);
    }
    fclose(out);
    int err = run_pipe(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(err, 0);
    assert_int_equal(status, 0); /* it was open while the samples waited */
    assert_non_null(strstr(text.text, "c:a.A.told_late():0\n"));
    assert_int_equal(text.counts.let_go_early, 0);
}

/* A library is removed as soon as it is mapped, and no sample has been in it: it is open by then.
 */
TEST(a_removed_file_is_open_in_time)
{
    OWN_PERF_FILE file = recording();
    char library[PATH_MAX];
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    struct stat about;
    snprintf(library, sizeof library, "%s", scratch_path(state, "removed.so"));
    copy_program(library);
    assert_int_equal(stat(library, &about), 0);
    size_t record = file.size;
    put_mmap2(&file, (uint32_t)getpid(), now, 0x7f0000100000, 4096, library);
    uint64_t inode = about.st_ino;
    memcpy(file.records + record + 48, &inode, sizeof inode); /* its place in MMAP2 */
    put_round(&file);
    put_round(&file);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE *out = fdopen(ends[1], "w");
    perf_file_write_pipe(&file, out);
    pid_t child = fork();
    if (child == 0) {
        bool has = false;
        for (int tries = 0; tries < 1000 && !has; tries++) {
            usleep(10000);
            has = parent_has_mapped("/removed.so");
        }
        _exit(has ? 0 : 1);
    }
    fclose(out);
    int err = run_pipe(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(err, 0);
    assert_int_equal(status, 0);
}

/* A JVM that takes long to start cannot tell of its methods meanwhile. */
TEST(a_sample_waits_for_the_jvms_start)
{
    OWN_PERF_FILE file = recording();
    OWN_DUMP_BUILDER dump = {0};
    struct methods_builder table;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint32_t pid = (uint32_t)getpid();
    dump_header(&dump);
    size_t header = dump.size;
    dump_load(&dump, now - 1000, CODE, 16, 1, "a.A.told_late()");
    methods_start(&table);
    size_t table_header = table.size;
    methods_begin(&table, METHODS_FOUND, now, "a/A.java");
    methods_add(&table, 0x1000, 0x1100, 16, "a.A.interpreted()", NULL);
    methods_end(&table);
    write_bytes(scratch_path(state, "jit-1.methods"), table.bytes, table_header);
    write_bytes(scratch_path(state, "jit-1.dump"), dump.bytes, header);
    put_mmap2(&file, pid, now - 2000, 0x7f0000000000, 4096, scratch_path(state, "jit-1.dump"));
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1};
    put_sample(&file, pid, now, chain, 2);
    put_round(&file);
    put_round(&file);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    FILE *out = fdopen(ends[1], "w");
    perf_file_write_pipe(&file, out);
    pid_t child = fork();
    if (child == 0) { /* perf goes on for a while; the JVM tells */
        usleep(1000000);
        write_bytes(scratch_path(state, "jit-1.methods"), table.bytes, table.size);
        usleep(300000);
        write_bytes(scratch_path(state, "jit-1.dump"), dump.bytes, dump.size);
        methods_all(&table, now);
        write_bytes(scratch_path(state, "jit-1.methods"), table.bytes, table.size);
        usleep(300000);
        _exit(0);
    }
    fclose(out);
    int err = run_pipe(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(scratch_path(state, "jit-1.methods")); /* other tests have none */
    assert_int_equal(err, 0);
    assert_non_null(strstr(text.text, "c:a.A.told_late():0\n"));
    assert_int_equal(text.counts.let_go_early, 0);
}

/* What a thread's last stack and the places of its frames tell is thrown away where a dump that
 * grows tells of newer code there, or of code that has left. */
TEST(a_dump_that_grows_changes_what_is_known)
{
    enum { PHASES = 3 };
    OWN_PERF_FILE file = recording();
    OWN_DUMP_BUILDER dump = {0};
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint32_t pid = (uint32_t)getpid();
    const uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 1, OTHER_CODE + 5, OTHER_CODE + 0x3009};
    size_t told[PHASES];
    char *piped[PHASES];
    size_t piped_size[PHASES];
    dump_header(&dump);
    dump_load(&dump, now - 1000, CODE, 16, 1, "a.A.first()");
    dump_load(&dump, now - 900, OTHER_CODE, 16, 2, "a.A.moved()");
    dump_load(&dump, now - 800, OTHER_CODE + 0x3000, 16, 3, "a.A.outer()");
    told[0] = dump.size;
    dump_load(&dump, now + 500, CODE, 16, 4, "a.A.second()");
    told[1] = dump.size;
    dump_move(&dump, now + 1500, OTHER_CODE, OTHER_CODE + 0x5000, 16, 2);
    told[2] = dump.size;
    const char *path = scratch_path(state, "jit-1.dump");
    write_bytes(path, dump.bytes, told[0]);
    put_mmap2(&file, pid, now - 2000, 0x7f0000000000, 4096, path);
    for (int i = 0; i < PHASES; i++) {
        put_sample(&file, pid, now + 1000 * (uint64_t)i, chain, 4);
        put_round(&file);
        put_round(&file);
        FILE *out = open_memstream(&piped[i], &piped_size[i]);
        perf_file_write_pipe(&file, out);
        fclose(out);
    }
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) { /* each sample goes before the next one comes */
        FILE *grows = fopen(path, "ae");
        for (int i = 0; i < PHASES; i++) {
            size_t before = i ? piped_size[i - 1] : 0;
            if (i) {
                usleep(800000);
                fwrite(dump.bytes + told[i - 1], 1, told[i] - told[i - 1], grows);
                fflush(grows);
            }
            (void)!write(ends[1], piped[i] + before, piped_size[i] - before);
        }
        _exit(0);
    }
    close(ends[1]);
    int err = run_pipe(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(err, 0);
    static const char *const stacks[] = {"c:a.A.first():0 c:a.A.moved():0 c:a.A.outer():0\n",
                                         "c:a.A.second():0 c:a.A.moved():0 c:a.A.outer():0\n",
                                         "c:a.A.second():0 ?:-:0 c:a.A.outer():0\n"};
    for (int i = 0; i < PHASES; i++) {
        char wanted[128];
        snprintf(wanted, sizeof wanted, "%" PRIu64 " end 5 %s", now + 1000 * (uint64_t)i,
                 stacks[i]);
        if (!strstr(text.text, wanted)) {
            fail_msg("no %s in %s", wanted, text.text);
        }
        free(piped[i]);
    }
}

/* Each look at a dump asks whether its JVM lives. */
static uint32_t dumps_asked;

int kill(pid_t pid, int signal)
{
    dumps_asked++;
    return (int)syscall(SYS_kill, pid, signal);
}

/* More than may wait: samples go early, and none of them costs a look at every dump. */
TEST(an_overload_does_not_ask_dumps_for_each_sample)
{
    enum { SAMPLES = 1000, RAW = 6000 };
    static uint64_t payload[(4 * 8 + 4 + RAW) / 8 + 1];
    OWN_PERF_FILE file = recording();
    OWN_DUMP_BUILDER dump = {0};
    uint32_t pid = (uint32_t)getpid();
    uint32_t raw = RAW + 4; /* with its size whole words */
    dump_header(&dump);
    dump_load(&dump, BUILDER_START, CODE, 16, 1, "a.A.m()");
    write_bytes(scratch_path(state, "jit-1.dump"), dump.bytes, dump.size);
    file.attrs[0].sample_type |= PERF_SAMPLE_RAW;
    put_mmap2(&file, pid, BUILDER_START, 0x7f0000000000, 4096, scratch_path(state, "jit-1.dump"));
    payload[0] = CODE + 1;
    payload[1] = pid | (uint64_t)pid << 32;
    memcpy(&payload[4], &raw, sizeof raw);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        FILE *out = fdopen(ends[1], "w");
        for (uint64_t i = 0; i < SAMPLES; i++) {
            payload[2] = BUILDER_START + 1 + i;
            perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, payload,
                             4 * 8 + 4 + raw);
        }
        perf_file_write_pipe(&file, out);
        fclose(out);
        _exit(0);
    }
    close(ends[1]);
    int saved = dup(STDIN_FILENO);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    dumps_asked = 0;
    budget = (size_t)1 << 20;
    int err = run_with("-", false);
    budget = 0;
    dup2(saved, STDIN_FILENO);
    close(saved);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(err, 0);
    assert_int_equal(text.samples, SAMPLES);
    /* On a busy machine the writer may be slower than the samples' wait, and there is no overload.
     */
    assert_true(text.counts.let_go_early <= SAMPLES);
    assert_true(text.counts.let_go_early == 0 || dumps_asked < SAMPLES / 10);
}

TEST_MAIN(scratch_create, scratch_remove)
