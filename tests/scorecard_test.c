/*
 * The scorecard's verdicts on recordings with known faults, compared with the kernel's CPU time.
 * (That functions of one name in two libraries are told apart is a matter of names, which no count
 * shows: unit.export_test.)
 */
#include "test.h"

#include "jdtool/base/verb.h"
#include "jdtool/score/scorecard_private.h"
#include "tests/recording_files.h"

#include <errno.h>
#include <getopt.h>
#include <sys/stat.h>

enum { PERIOD = 10000000 }; /* 10 ms */

#define LIBC    UINT64_C(0x7f0000100000)
#define LIBRARY UINT64_C(0x7f0000200000)

/* ---- The rule for time ---- */

TEST(test_time_is_judged_by_its_share_and_by_chance)
{
    static const struct {
        uint64_t samples;
        double accounted, more; /* s */
        enum verdict verdict;
    } cases[] = {
        {5000, 50, 0, VERDICT_GOOD},   {5000, 52, 0, VERDICT_GOOD}, /* 96 % */
        {5000, 60, 0, VERDICT_FAIR},                                /* 83 % */
        {5000, 40, 0, VERDICT_FAIR},                                /* 125 % */
        {5000, 40, 10, VERDICT_GOOD},                               /* 100 % to 125 % */
        {5000, 20, 0, VERDICT_BAD},                                 /* 250 % */
        {2000, 50, 0, VERDICT_BAD},                                 /* 40 % */
        {0, 50, 0, VERDICT_BAD},                                    /* nothing at all */
        {910, 10, 0, VERDICT_GOOD}, /* 91 %: 1,000 samples vary by 9.5 % */
        {900, 10, 0, VERDICT_FAIR},    {1090, 10, 0, VERDICT_GOOD}, {1100, 10, 0, VERDICT_FAIR},
        {4600, 49.5, 0, VERDICT_FAIR}, /* 93 %: 4,950 samples vary by 4.3 % */
        {5300, 50, 0, VERDICT_FAIR},   /* 106 % */
        {85, 1, 0, VERDICT_GOOD},      /* 85 %, of 100 samples */
        {45, 1, 0, VERDICT_FAIR},      /* 45 %: may be 66, cannot be 95 */
        {25, 1, 0, VERDICT_BAD},       /* 25 %, which cannot be 50 */
        {0, 0.02, 0, VERDICT_GOOD},    /* of two samples none: that happens */
        {3, 0, 0, VERDICT_EMPTY},      /* it had no time to compare with */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct time_account time = {.is_known = true,
                                    .ns = (uint64_t)(cases[i].accounted * 1e9),
                                    .more = (uint64_t)(cases[i].more * 1e9),
                                    .samples = cases[i].samples,
                                    .weight = cases[i].samples * PERIOD,
                                    .period = PERIOD};
        enum verdict verdict = judge_time(&time);
        if (verdict != cases[i].verdict) {
            fail_msg("case %zu is %s", i, verdict_name(verdict));
        }
        time.is_known = false;
        assert_int_equal(judge_time(&time), VERDICT_EMPTY);
    }
}

/* ---- The file ---- */

static void write_times(void **state, const char *text)
{
    scratch_write(scratch_path(state, "times"), text);
}

TEST(test_times_are_written_and_read)
{
    static const struct processor_time given[] = {
        {.pid = 7, .is_known = true, .ns = 123456789012, .more = 5},
        {.pid = 8},
        {.pid = 9, .is_known = true, .ns = 1, .is_unprobed = true}};
    struct processor_time *times;
    unsigned left_out;
    assert_int_equal(processor_times_write(scratch_path(state, "times"), given, 3,
                                           LEFT_OUT_ALLOC | LEFT_OUT_TIMELINE),
                     0);
    assert_int_equal(processor_times_read(scratch_path(state, "times"), &times, &left_out), 3);
    assert_int_equal(left_out, LEFT_OUT_ALLOC | LEFT_OUT_TIMELINE);
    assert_int_equal(times[0].pid, 7);
    assert_true(times[0].is_known);
    assert_true(times[0].ns == 123456789012);
    assert_int_equal(times[0].more, 5);
    assert_int_equal(times[1].pid, 8);
    assert_false(times[1].is_known);
    assert_false(times[0].is_unprobed);
    assert_true(times[2].is_known && times[2].is_unprobed);
    free(times);
    /* Somebody else's: what is no line of ours is passed over, what is no file not read. */
    write_times(
        state, "7 1\n\n9 2 3 4\nx\n-\n11 nobody\n12 1 2 probed\n10 5 6\nwithout --locks --sleep\n");
    assert_int_equal(processor_times_read(scratch_path(state, "times"), &times, &left_out), 1);
    assert_int_equal(left_out, LEFT_OUT_LOCKS);
    assert_int_equal(times[0].pid, 10);
    free(times);
    assert_int_equal(processor_times_read(scratch_path(state, "none"), &times, &left_out), -ENOENT);
    assert_int_equal(mkfifo(scratch_path(state, "pipe"), 0600), 0);
    assert_int_equal(processor_times_read(scratch_path(state, "pipe"), &times, &left_out), -EINVAL);
    assert_int_equal(symlink("times", scratch_path(state, "link")), 0);
    assert_int_equal(processor_times_read(scratch_path(state, "link"), &times, &left_out), -ELOOP);
}

/* ---- Recordings ---- */

/* Of cpu-clock, 10 ms a sample, of a JVM with a dump, with libc and a library that is not there. */
static struct perf_file begin_recording(void **state)
{
    struct perf_file file = recording();
    file.attrs[0].type = PERF_TYPE_SOFTWARE;
    file.attrs[0].config = PERF_COUNT_SW_CPU_CLOCK;
    file.attrs[0].sample_period = PERIOD;
    write_simple_dump(state);
    put_mmap2(&file, PID, 0, CODE, 0x20000, "//anon");
    put_mmap2(&file, PID, 0, LIBC, 0x1000, "/no/libc.so.6");
    put_mmap2(&file, PID, 0, LIBRARY, 0x1000, "/no/library.so");
    put_mmap2(&file, PID, 0, 0x7f0000300000, 0x1000, "/no/libjvm.so");
    put_marker(&file, state);
    return file;
}

/* The same with a second event, 101, beside the first, 100. */
static struct perf_file begin_two_events(void **state)
{
    struct perf_file file = begin_recording(state);
    file.attr_count = 2;
    file.attrs[0].sample_type |= PERF_SAMPLE_IDENTIFIER;
    file.attrs[0].sample_id_all = 0;
    file.attrs[1] = file.attrs[0];
    file.attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS;
    return file;
}

/* So many samples whose stacks have the innermost address, and from libc on reach their root. */
static void put_samples(struct perf_file *file, uint32_t count, uint64_t address, bool rooted)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, address, LIBC + 0x10};
        put_sample(file, PID, 1000200 + i % 100, chain, rooted ? 3 : 2);
    }
}

/* Injects it, and frees it; "times" is what the kernel accounted, NULL: not known. The scorecard.
 */
static const char *card_of(void **state, struct perf_file *file, const char *times)
{
    static char text[16384];
    char paths[4][256];
    static const char *const names[] = {"p.data", "r.data", "card.json", "times"};
    for (int i = 0; i < 4; i++) {
        snprintf(paths[i], sizeof paths[i], "%s", scratch_path(state, names[i]));
    }
    char *arguments[] = {"inject",      "-q",     "-i",
                         paths[0],      "-o",     paths[1],
                         "--scorecard", paths[2], times ? "--processor-time" : NULL,
                         paths[3],      NULL};
    if (times) {
        write_times(state, times);
    }
    perf_file_write(file, paths[0]);
    free(file->records);
    optind = 0;
    assert_int_equal(verb_inject.run(&verb_inject, times ? 10 : 8, arguments), STATUS_DONE);
    scratch_read_text(paths[2], text, sizeof text);
    return text;
}

#define assert_says(text, words)                                                                   \
    do {                                                                                           \
        if (!strstr((text), (words))) {                                                            \
            fail_msg("no %s in %s", (words), (text));                                              \
        }                                                                                          \
    } while (0)

TEST(test_a_whole_profile_is_good)
{
    struct perf_file file = begin_recording(state);
    put_samples(&file, 1000, CODE, true);
    const char *card = card_of(state, &file, "4242 10100000000 0\n7 100000000 0\n");
    assert_says(card, "\"verdict\": \"good\"");
    assert_says(card, "\"verdict_reason\": \"\"");
    assert_says(card, "\"time_accounted_share\": 0.980392,");
    assert_says(card, "{\"accounted\": 10200000000, \"at_most_more\": 0, "
                      "\"in_profile\": 10000000000, \"samples\": 1000, \"jvms_unknown\": 0}");
    assert_says(card, "{\"pid\": 4242, \"time_accounted_share\": 0.990099, \"dump\": ");
}

/* A clock that was not read at the JVM's end: more time than it tells may be in the profile. */
TEST(test_time_that_may_be_unknown_is_told)
{
    static const struct {
        const char *times;
        bool is_told;
    } cases[] = {{"4242 8000000000 400000000\n", false}, {"4242 8000000000 3000000000\n", true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[4096];
        struct perf_file file = begin_recording(state);
        put_samples(&file, 1000, CODE, true);
        (void)card_of(state, &file, cases[i].times);
        char *arguments[] = {"inject",
                             "-i",
                             strdup(scratch_path(state, "p.data")),
                             "-o",
                             strdup(scratch_path(state, "r.data")),
                             "--processor-time",
                             strdup(scratch_path(state, "times")),
                             NULL};
        FILE *out = stdout;
        stdout = fopen(scratch_path(state, "said"), "w");
        optind = 0;
        int status = verb_inject.run(&verb_inject, 7, arguments);
        fclose(stdout);
        stdout = out;
        assert_int_equal(status, STATUS_DONE);
        scratch_read_text(scratch_path(state, "said"), text, sizeof text);
        bool is_told = strstr(text, "may be unknown, at most       3.00");
        assert_int_equal(is_told, cases[i].is_told);
        free(arguments[2]);
        free(arguments[4]);
        free(arguments[6]);
    }
}

/* Where nobody has read the clocks nothing is held against the profile, and it says so. */
TEST(test_time_that_is_not_known_is_not_judged)
{
    static const char *const times[] = {NULL, "", "4242 unknown\n", "77 5000000000 0\n"};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        struct perf_file file = begin_recording(state);
        put_samples(&file, 1000, CODE, true);
        const char *card = card_of(state, &file, times[i]);
        if (i < 3) {
            assert_says(card, "\"verdict\": \"good\"");
            assert_says(card, "\"time_accounted_share\": null,");
        } else { /* a JVM that has no sample at all */
            assert_says(card, "\"verdict\": \"bad\"");
            assert_says(card, "0.00 of 5.00 s of processor time are in the profile");
        }
        assert_true(strstr(card, "\"jvms_unknown\": 1") ? i == 2 : i != 2);
    }
    /* Nor where the event leaves the kernel's time out. */
    struct perf_file file = begin_recording(state);
    file.attrs[0].exclude_kernel = 1;
    put_samples(&file, 100, CODE, true);
    const char *card = card_of(state, &file, "4242 10000000000 0\n");
    assert_says(card, "\"verdict\": \"good\"");
    assert_says(card, "\"time_accounted_share\": null,");
}

/* Where the time is not known, samples that are known to be lost are what is missing. Where it is
 * there, they are those of events, and the profile is not bad. */
TEST(test_losses_are_judged)
{
    static const struct {
        uint64_t lost;
        const char *times, *verdict;
    } cases[] = {
        {50, NULL, "\"verdict\": \"good\""},
        {56, NULL, "\"verdict\": \"fair\""},
        {999, NULL, "\"verdict\": \"fair\""},
        {1001, NULL, "\"verdict\": \"bad\""},
        {50, "4242 10000000000 0\n", "\"verdict\": \"good\""},
        {1001, "4242 10000000000 0\n", "\"verdict\": \"fair\""},
        {1001, "4242 12000000000 0\n",
         "\"verdict_reason\": \"10.00 of 12.00 s of processor time are in the profile\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_file file = begin_recording(state);
        put_samples(&file, 1000, CODE, true);
        const uint64_t words[] = {cases[i].lost, 0, 0};
        perf_file_record(&file, PERF_RECORD_LOST_SAMPLES, 0, words, sizeof words);
        const char *card = card_of(state, &file, cases[i].times);
        assert_says(card, cases[i].verdict);
        assert_says(card, "samples and 0 records were lost; record with a lower frequency (-F)");
    }
}

/* What perf on tasks saw of threads that live for 5 ms (149 samples of main's, 2 of theirs, where
 * there were 313 and 720): all stacks whole, all names there. */
TEST(test_short_threads_without_samples_are_bad)
{
    struct perf_file file = begin_recording(state);
    put_samples(&file, 151, CODE, true);
    const char *card = card_of(state, &file, "4242 10330000000 0\n");
    assert_says(card, "\"verdict\": \"bad\"");
    assert_says(card, "\"verdict_reason\": \"1.51 of 10.33 s of processor time are in the "
                      "profile\"");
    assert_says(card, "\"unnamed_frames_share\": 0.000000");
    assert_says(card, "\"rooted_share\": 1.000000");
    /* Without perf's version the recording is our own sampler's. */
    assert_says(card, "process 4242: 1.51 of 10.33 s of processor time are in the profile: the "
                      "kernel took fewer samples than asked for (it limits what they may cost, "
                      "and takes none while a virtual machine stands still), or threads often woke "
                      "idle processors, which is time of theirs without samples");
    file = begin_recording(state);
    static const char version[] = "\4\0\0\0006.1";
    perf_file_feature(&file, PERF_FEATURE_VERSION, version, sizeof version);
    put_samples(&file, 151, CODE, true);
    card = card_of(state, &file, "4242 10330000000 0\n");
    assert_says(card, "in the profile: perf takes too few samples of threads that live for a few");
}

/* The recording loses a living JVM: from then on it knows nothing of its process, as if that had
 * become another program. */
TEST(test_a_jvm_that_is_lost_is_bad)
{
    struct perf_file file = begin_recording(state);
    put_samples(&file, 622, CODE, true);
    put_comm(&file, PID, PID, 1000400, "java", true);
    for (uint32_t i = 0; i < 364; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, CODE, LIBC + 0x10};
        put_sample(&file, PID, 1000450, chain, 3);
    }
    const char *card = card_of(state, &file, "4242 9900000000 0\n");
    assert_says(card, "\"verdict\": \"bad\"");
    assert_says(card, "36.9 % of the frames in generated code are samples in code of no file or "
                      "dump that could be read; 63.1 % of the stacks reach their thread's root\"");
    assert_says(card, "\"samples_in_jvms\": 986,");
    assert_says(card, "\"samples_in_no_file_or_dump\": 364,");
    assert_says(card, "364 samples of JVMs are at addresses that belong to no file and no dump");
}

/* A library that was replaced before it was looked into: its stacks are one frame long, and none of
 * that is Java's. */
TEST(test_stacks_without_java_frames_count)
{
    struct perf_file file = begin_recording(state);
    put_samples(&file, 151, CODE, true);
    put_samples(&file, 100, LIBRARY + 0x10, false);
    for (uint32_t i = 0; i < 21; i++) { /* the same while the kernel works for it */
        uint64_t chain[] = {PERF_CONTEXT_KERNEL, UINT64_C(0xffffffff81000010), PERF_CONTEXT_USER,
                            LIBRARY + 0x10};
        put_sample(&file, PID, 1000400, chain, 4);
    }
    const char *card = card_of(state, &file, NULL);
    assert_says(card, "\"verdict\": \"bad\"");
    assert_says(card, "55.5 % of the stacks reach their thread's root");
    assert_says(card, "\"stacks\": 272,");
    assert_says(card, "\"stacks_rooted\": 151,");
    assert_says(card, "\"samples_in_unreadable_files\": 121,");
    assert_says(card, "121 samples are in files that cannot be read");
}

static void assert_judged(const char *card, const char *verdict, const char *reason)
{
    char text[64];
    snprintf(text, sizeof text, "\"verdict\": \"%s\",", verdict);
    assert_says(card, text);
    assert_says(card, reason);
}

/* The JVM's dump has a method at CODE, and 64 bytes behind it this. */
static void write_dump_with(void **state, const char *name)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, 1000100, CODE, 16, 1, "a.A.m()");
    dump_load(&dump, 1000100, CODE + 64, 16, 2, name);
    write_dump(state, &dump, "jit-4242.dump");
}

/* Between good and bad it is fair, and tells which limit is not kept. */
TEST(test_limits_of_names_and_roots)
{
    static const struct {
        uint32_t unnamed, unrooted; /* of 200 */
        const char *verdict, *reason;
    } cases[] = {
        {2, 10, "good", "\"\""},
        {3, 0, "fair", "\"1.5 % of the frames in generated code have no name\""},
        {10, 0, "fair", "\"5.0 % of the frames in generated code have no name\""},
        {11, 0, "bad", "\"5.5 % of the frames in generated code have no name\""},
        {0, 11, "fair", "\"94.5 % of the stacks reach their thread's root\""},
        {0, 100, "fair", "\"50.0 % of the stacks reach their thread's root\""},
        {0, 101, "bad", "\"49.5 % of the stacks reach their thread's root\""},
        {3, 101, "bad", "have no name; 49.5 % of the stacks reach"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_file file = begin_recording(state);
        put_samples(&file, cases[i].unnamed, CODE + 1024, true);
        put_samples(&file, cases[i].unrooted, CODE, false);
        put_samples(&file, 200 - cases[i].unnamed - cases[i].unrooted, CODE, true);
        const char *card = card_of(state, &file, NULL);
        assert_judged(card, cases[i].verdict, cases[i].reason);
        bool has_remedy = strstr(card, "in code that the JVM did not report");
        assert_int_equal(has_remedy, cases[i].unnamed > 2);
    }
}

/* Stacks that end where a virtual thread's callers are in the heap lack them, whoever is to blame:
 * such a profile is not good, and never bad. */
TEST(test_frozen_callers_are_judged)
{
    static const struct {
        uint32_t frozen; /* of 200 */
        const char *verdict, *reason;
    } cases[] = {
        {2, "good", "\"\""},
        {10, "good", "\"\""},
        {11, "fair", "\"5.5 % of the stacks lack callers, which are frozen in the heap\""},
        {200, "fair", "\"100.0 % of the stacks lack callers"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_file file = begin_recording(state);
        write_dump_with(state, "Stub Generator cont_returnBarrier_stub");
        put_samples(&file, 200 - cases[i].frozen, CODE, true);
        for (uint32_t k = 0; k < cases[i].frozen; k++) {
            uint64_t chain[] = {PERF_CONTEXT_USER, CODE, CODE + 64 + 1, LIBC + 0x10};
            put_sample(&file, PID, 1000300, chain, 4);
        }
        const char *card = card_of(state, &file, NULL);
        assert_judged(card, cases[i].verdict, cases[i].reason);
        bool is_told = strstr(card, "are of virtual threads that resumed");
        assert_int_equal(is_told, cases[i].frozen > 2);
    }
}

/* Allocations that this user may not have: all else is whole. */
TEST(test_events_that_were_left_out_are_judged)
{
    struct perf_file file = begin_recording(state);
    put_samples(&file, 1000, CODE, true);
    const char *card = card_of(state, &file, "4242 10100000000 0\nwithout --alloc --locks\n");
    assert_judged(card, "fair", "\"asked for, but not recorded: --alloc --locks\"");
}

/* A frame that says no more than Interpreter is none that has a name, where the stack could tell
 * its method: frame pointers never do. */
TEST(test_interpreted_frames_without_a_method_are_judged)
{
    static const struct {
        uint32_t stubs; /* of 200 */
        bool copies;
        const char *verdict, *reason, *says;
    } cases[] = {
        {2, true, "good", "\"\"", "\"interpreted_frames\": 2,"},
        {3, true, "fair", "\"1.5 % of the frames in generated code are Interpreter, without a",
         "max="},
        {10, true, "fair", "\"5.0 % of the frames", "methods=on"},
        {11, true, "bad", "\"5.5 % of the frames", "methods=on"},
        {10, false, "good", "\"\"", "frame pointers do not tell their methods"},
        {109, false, "fair", "\"54.5 % of the frames", "\"interpreted_frames_named\": 0,"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_file file = begin_recording(state);
        write_dump_with(state, "Interpreter");
        if (cases[i].copies) {
            file.attrs[0].sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        }
        for (uint32_t k = 0; k < 200; k++) {
            const uint64_t words[] = {
                CODE,        (uint64_t)PID << 32 | PID, 1000200,
                3,           PERF_CONTEXT_USER,         k < cases[i].stubs ? CODE + 64 : CODE,
                LIBC + 0x10, PERF_SAMPLE_REGS_ABI_NONE, 0 /* bytes of the stack */};
            perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words,
                             sizeof words - (cases[i].copies ? 0 : 2 * sizeof words[0]));
        }
        const char *card = card_of(state, &file, NULL);
        assert_judged(card, cases[i].verdict, cases[i].reason);
        assert_says(card, cases[i].says);
    }
}

/* So many samples of one of two events, whose stacks reach their root or do not. */
static void put_event(struct perf_file *file, uint64_t id, uint32_t count, bool rooted)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t words[] = {id,
                                  CODE,
                                  (uint64_t)PID << 32 | PID,
                                  1000200 + i % 100,
                                  rooted ? 3 : 2,
                                  PERF_CONTEXT_USER,
                                  CODE,
                                  LIBC + 0x10};
        perf_file_record(file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words,
                         sizeof words - (rooted ? 0 : sizeof words[0]));
    }
}

/* Many whole stacks of one event hide no broken ones of another, but for a few of those. */
TEST(test_each_event_is_judged)
{
    static const struct {
        uint32_t rooted, unrooted;
        const char *verdict, *reason;
    } cases[] = {
        {90, 10, "fair", "\"90.0 % of the stacks of event reach their thread's root\""},
        {49, 51, "bad", "\"49.0 % of the stacks of event reach their thread's root\""},
        {95, 5, "good", "\"\""},
        {9, 10, "good", "\"\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_file file = begin_two_events(state);
        put_event(&file, 101, 10000, true);
        put_event(&file, 100, cases[i].rooted, true);
        put_event(&file, 100, cases[i].unrooted, false);
        const char *card = card_of(state, &file, NULL);
        assert_judged(card, cases[i].verdict, cases[i].reason);
        bool has_remedy = strstr(card, "many stacks do not reach their thread's root; run");
        assert_int_equal(has_remedy, strcmp(cases[i].verdict, "good") != 0);
    }
}

/* Of an event without frames in generated code none lacks a name: waits of HotSpot's own threads.
 */
TEST(test_names_of_an_event_without_java_frames)
{
    struct perf_file file = begin_two_events(state);
    put_event(&file, 100, 10, true);
    const uint64_t native[] = {
        101, LIBC + 0x10, (uint64_t)PID << 32 | PID, 1000200, 2, PERF_CONTEXT_USER, LIBC + 0x10};
    perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, native, sizeof native);
    char data[256];
    char result[256];
    snprintf(data, sizeof data, "%s", scratch_path(state, "p.data"));
    snprintf(result, sizeof result, "%s", scratch_path(state, "r.data"));
    char *arguments[] = {"inject", "-i", data, "-o", result, NULL};
    perf_file_write(&file, data);
    free(file.records);
    FILE *told = tmpfile();
    int terminal = dup(STDOUT_FILENO);
    assert_true(told && terminal >= 0 && fflush(stdout) == 0);
    assert_true(dup2(fileno(told), STDOUT_FILENO) >= 0);
    optind = 0;
    int status = verb_inject.run(&verb_inject, 5, arguments);
    (void)fflush(stdout);
    assert_true(dup2(terminal, STDOUT_FILENO) >= 0);
    close(terminal);
    rewind(told);
    assert_int_equal(status, STATUS_DONE);
    char card[4096];
    card[fread(card, 1, sizeof card - 1, told)] = 0;
    fclose(told);
    assert_says(card, " 10 samples, 0.10 s, names 100.00 %, rooted 100.00 %\n");
    assert_says(card, " 1 samples, 10000000 count, rooted 100.00 %\n");
}

/* Where it is not whole the remedy is that event's, whose copies are smaller than the clock's. */
TEST(test_the_remedy_is_that_of_the_event)
{
    static const struct {
        uint64_t pc;
        uint32_t copy;
        const char *says;
    } cases[] = {{CODE, 16384, "--stack-size 65528"},
                 {CODE, 65528, "deeper than the largest copy"},
                 {LIBRARY + 0x10, 65528, "many stacks end in library.so, in code without call-"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct perf_file file = begin_recording(state);
        file.attr_count = 2;
        file.attrs[0].sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
                                    PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER |
                                    PERF_SAMPLE_STACK_USER;
        file.attrs[0].sample_regs_user = 1u << 7 | 1u << 8; /* PERF_REG_X86_SP, _IP */
        file.attrs[0].sample_stack_user = 65528;
        file.attrs[0].sample_id_all = 0;
        file.attrs[1] = file.attrs[0];
        file.attrs[1].config = PERF_COUNT_SW_PAGE_FAULTS;
        file.attrs[1].sample_stack_user = cases[i].copy;
        for (uint32_t k = 0; k < 100; k++) { /* the whole copy is there, and not the caller */
            const uint64_t words[] = {101,
                                      cases[i].pc,
                                      (uint64_t)PID << 32 | PID,
                                      1000200,
                                      PERF_SAMPLE_REGS_ABI_64,
                                      0x7ffc0000,
                                      cases[i].pc,
                                      0};
            perf_file_record(&file, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, words, sizeof words);
        }
        assert_says(card_of(state, &file, NULL), cases[i].says);
    }
}

/* ---- The verdict in exports ---- */

static void run(const struct verb *verb, char **arguments)
{
    int count = 0;
    while (arguments[count]) {
        count++;
    }
    optind = 0;
    assert_int_equal(verb->run(verb, count, arguments), STATUS_DONE);
}

static void assert_export_says(const char *path, const char *words)
{
    static char text[65536];
    scratch_read_text(path, text, sizeof text);
    assert_says(text, words);
}

/* An export made beside the scorecard has its verdict, so have saved samples; of a recording it is
 * made for the export, of all samples, and says what cannot be known. */
TEST(test_exports_tell_the_verdict)
{
#define FAIR "\"stringValue\":\"fair: 94.5 % of the stacks reach their thread's root"
    char recording[256];
    char result[256];
    char made[256];
    char saved[256];
    char times[256];
    char option[300];
    snprintf(recording, sizeof recording, "%s", scratch_path(state, "perf.data"));
    snprintf(result, sizeof result, "%s", scratch_path(state, "r.data"));
    snprintf(made, sizeof made, "%s", scratch_path(state, "made"));
    snprintf(saved, sizeof saved, "%s", scratch_path(state, "saved"));
    snprintf(times, sizeof times, "%s", scratch_path(state, PROCESSOR_TIME_FILE));
    snprintf(option, sizeof option, "otlp-json=%s", made);
    OWN_PERF_FILE file = begin_recording(state);
    put_samples(&file, 11, CODE, false);
    put_samples(&file, 189, CODE, true);
    perf_file_write(&file, recording);
    scratch_write(times, "4242 2000000000 0\n");
    run(&verb_inject, (char *[]){"inject", "-q", "-i", recording, "-o", result, "--save", saved,
                                 "--export", option, "--processor-time", times, NULL});
    assert_export_says(made, FAIR "\"");
    char *const inputs[] = {saved, (char *)*state, recording};
    for (size_t i = 0; i < 3; i++) {
        run(&verb_export, (char *[]){"export", "-i", inputs[i], "--format", "otlp-json", "-o", made,
                                     "--to", "1", NULL});
        assert_export_says(made,
                           i < 2 ? FAIR "\"" : FAIR "; the missing processor time is unknown");
    }
}

/* What another process does is not the JVM's. */
TEST(test_only_jvms_count)
{
    struct perf_file file = begin_recording(state);
    put_samples(&file, 1000, CODE, true);
    for (uint32_t i = 0; i < 5000; i++) {
        uint64_t chain[] = {PERF_CONTEXT_USER, 0x1000};
        put_sample(&file, PID + 1, 1000200, chain, 2);
    }
    const char *card = card_of(state, &file, "4242 10000000000 0\n");
    assert_says(card, "\"verdict\": \"good\"");
    assert_says(card, "\"samples_in_jvms\": 1000,");
    assert_says(card, "\"time_accounted_share\": 1.000000,");
}

TEST_MAIN(scratch_create, scratch_remove)
