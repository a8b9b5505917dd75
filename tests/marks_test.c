/* The JVM's own activity: HotSpot's tracing points, their samples and their sums. */
#include "test.h"

#include "format/event_probe.h"
#include "jdtool/base/verb.h"
#include "jdtool/events/event_rule.h"
#include "jdtool/events/marks.h"
#include "jdtool/profile/timeline_rows.h"
#include "jdtool/record/usdt_notes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Operands ---- */

static void expect_operand(const char *arguments, unsigned index, const char *wanted)
{
    char out[48] = "";
    bool found = usdt_operand(arguments, index, out, sizeof out);
    assert_int_equal(found, wanted != NULL);
    if (wanted) {
        assert_string_equal(out, wanted);
    }
}

TEST(test_operands_are_as_the_kernel_has_them)
{
    const char *compile = "8@%r12 8@%rax -4@%ecx 8@%rsi -4@%r9d 1@37(%r14) 8@(%rdi) 1@%dil 1@$1";
    const char *const wanted[] = {"%r12",      "%ax",     "%cx", "%si", "%r9",
                                  "+37(%r14)", "+0(%di)", "%di", "\\1"};
    for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        expect_operand(compile, i, wanted[i]);
    }
    expect_operand(compile, 9, NULL);
    expect_operand("-4@-144(%rbp)", 0, "-144(%bp)");
    expect_operand("-4@$-1", 0, "\\-1");
    expect_operand("", 0, NULL);
    /* aarch64's */
    expect_operand("8@x19 -4@w2 8@[sp, 24] 8@[x1] 4@7", 0, "%x19");
    expect_operand("8@x19 -4@w2 8@[sp, 24] 8@[x1] 4@7", 1, "%x2");
    expect_operand("8@x19 -4@w2 8@[sp, 24] 8@[x1] 4@7", 2, "+24(%sp)");
    expect_operand("8@x19 -4@w2 8@[sp, 24] 8@[x1] 4@7", 3, "+0(%x1)");
    expect_operand("8@x19 -4@w2 8@[sp, 24] 8@[x1] 4@7", 4, "\\7");
}

TEST(test_operands_that_cannot_be_fetched_are_refused)
{
    static const char *const bad[] = {"8@(%rax,%rbx,8)",
                                      "8@symbol(%rip)",
                                      "8@%xmm0",
                                      "8@%",
                                      "8@[x1",
                                      "8@[]",
                                      "8@$",
                                      "8@",
                                      "8@4(%rax",
                                      "8@(",
                                      "nothing"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char out[48];
        if (usdt_operand(bad[i], 0, out, sizeof out)) {
            fail_msg("%s became %s", bad[i], out);
        }
    }
    char small[4];
    assert_false(usdt_operand("8@-144(%rbp)", 0, small, sizeof small));
}

/* ---- Marks ---- */

struct taken {
    struct resolved_mark mark;
    char text[256], subject[1024];
    uint32_t tid;
};

static struct taken list[64];
static uint32_t count;

static int take(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    (void)context;
    assert_int_equal(pid, 7);
    struct taken *taken = &list[count++ % 64];
    taken->mark = *mark;
    taken->tid = tid;
    snprintf(taken->text, sizeof taken->text, "%s", mark->text ? mark->text : "-");
    snprintf(taken->subject, sizeof taken->subject, "%s", mark->subject ? mark->subject : "-");
    return 0;
}

static const struct mark_taker taker = {take, NULL};

/* A sample of the probe, with texts that go on behind their end as HotSpot's symbols do. */
static void tell(struct marks *marks, enum timeline_probe what, uint32_t tid, uint64_t time,
                 uint32_t number, const char *const texts[4])
{
    uint8_t bytes[1024];
    struct timeline_probe_raw raw = {.what = what, .number = number};
    size_t at = sizeof raw;
    for (int i = 0; i < TIMELINE_TEXTS && texts; i++) {
        size_t size = (size_t)snprintf((char *)bytes + at, sizeof bytes - at, "%s#?", texts[i]) + 1;
        raw.sizes[i] = (uint32_t)strlen(texts[i]);
        raw.texts[i] = (uint32_t)(at | size << 16);
        at += size;
    }
    memcpy(bytes, &raw, sizeof raw);
    struct perf_sample sample = {
        .raw = bytes, .raw_size = (uint32_t)at, .pid = 7, .tid = tid, .time = time};
    assert_int_equal(marks_add(marks, &sample, &taker), 0);
}

static const char *const collect[] = {"G1CollectForAllocation", "", "", ""};

TEST(test_a_pause_is_told_with_what_it_was_for)
{
    struct marks *marks = marks_new();
    count = 0;
    tell(marks, TIMELINE_SAFEPOINT_END, 1, 50, 0, NULL); /* that began before the recording */
    tell(marks, TIMELINE_SAFEPOINT_BEGIN, 1, 100, 0, NULL);
    tell(marks, TIMELINE_OPERATION_BEGIN, 1, 130, 0, collect);
    tell(marks, TIMELINE_GC_BEGIN, 1, 140, 0xffffff01, NULL);
    tell(marks, TIMELINE_GC_END, 1, 180, 0, NULL);
    tell(marks, TIMELINE_OPERATION_END, 1, 190, 0, collect);
    tell(marks, TIMELINE_SAFEPOINT_END, 1, 200, 0, NULL);
    assert_int_equal(count, 3);
    assert_int_equal(list[0].mark.kind, MARK_GC);
    assert_int_equal(list[0].mark.number, 1); /* a bool's byte of what was fetched */
    assert_int_equal(list[1].mark.kind, MARK_OPERATION);
    assert_int_equal(list[2].mark.kind, MARK_SAFEPOINT);
    assert_string_equal(list[2].text, "G1CollectForAllocation");
    assert_int_equal(list[2].mark.from, 100);
    assert_int_equal(list[2].mark.until, 200);
    assert_int_equal(list[2].mark.number, 30);
    assert_int_equal(marks_lost(marks), 0);
    marks_free(marks);
}

TEST(test_a_collection_that_became_full_is_a_full_one)
{
    static const char *const young[] = {"Copy", "Eden Space", "", ""};
    static const char *const old[] = {"MarkSweepCompact", "Tenured Gen", "", ""};
    struct marks *marks = marks_new();
    count = 0;
    tell(marks, TIMELINE_GC_MEMORY, 1, 90, 0, old); /* of one that began before the recording */
    tell(marks, TIMELINE_GC_BEGIN, 1, 100, 0, NULL);
    tell(marks, TIMELINE_GC_MEMORY, 1, 110, 0, young);
    tell(marks, TIMELINE_GC_MEMORY, 2, 115, 0, old); /* another JVM's */
    tell(marks, TIMELINE_GC_END, 1, 120, 0, NULL);
    tell(marks, TIMELINE_GC_BEGIN, 1, 200, 0, NULL);
    tell(marks, TIMELINE_GC_MEMORY, 1, 210, 0, young);
    tell(marks, TIMELINE_GC_MEMORY, 1, 220, 0, old);
    tell(marks, TIMELINE_GC_MEMORY, 1, 230, 0, young);
    tell(marks, TIMELINE_GC_END, 1, 240, 0, NULL);
    assert_int_equal(count, 2);
    assert_int_equal(list[0].mark.number, 0);
    assert_int_equal(list[1].mark.number, 1);
    marks_free(marks);
}

TEST(test_threads_compile_at_once)
{
    static const char *const first[] = {"c2", "p/Q$R", "m", "(I[[Ljava/lang/String;J)V"};
    static const char *const second[] = {"c1", "p/Q", "<init>", "()V"};
    struct marks *marks = marks_new();
    count = 0;
    tell(marks, TIMELINE_COMPILE_BEGIN, 1, 100, 0, first);
    tell(marks, TIMELINE_COMPILE_BEGIN, 2, 110, 0, second);
    tell(marks, TIMELINE_COMPILE_END, 1, 150, 1, NULL);
    tell(marks, TIMELINE_COMPILE_END, 2, 160, 0x100, NULL);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].text, "C2");
    assert_string_equal(list[0].subject, "p.Q$R.m(int, java.lang.String[][], long)");
    assert_int_equal(list[0].mark.number, 0);
    assert_string_equal(list[1].subject, "p.Q.<init>()");
    assert_int_equal(list[1].mark.number, 1); /* it gave nothing */
    marks_free(marks);
}

TEST(test_what_has_not_ended_is_told_as_such)
{
    struct marks *marks = marks_new();
    count = 0;
    tell(marks, TIMELINE_PARK_BEGIN, 1, 100, 0, NULL);
    tell(marks, TIMELINE_PARK_BEGIN, 1, 120, 0, NULL); /* the end between them was lost */
    assert_int_equal(marks_end(marks, 300, &taker), 0);
    assert_int_equal(marks_end(marks, 400, &taker), 0);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].mark.from, 120);
    assert_int_equal(list[0].mark.until, 300);
    assert_true(list[0].mark.is_open);
    assert_int_equal(marks_lost(marks), 1);
    marks_free(marks);
}

/* A JVM ends at a safepoint, whose memory the kernel may take away for long after it. */
TEST(test_what_a_thread_has_not_ended_lasts_as_long_as_it_does)
{
    struct marks *marks = marks_new();
    count = 0;
    assert_int_equal(marks_end_thread(marks, 1, 50, &taker), 0);
    tell(marks, TIMELINE_SAFEPOINT_BEGIN, 1, 100, 0, NULL);
    tell(marks, TIMELINE_PARK_BEGIN, 2, 110, 0, NULL);
    assert_int_equal(marks_end_thread(marks, 3, 150, &taker), 0);
    assert_int_equal(marks_end_thread(marks, 1, 200, &taker), 0);
    assert_int_equal(marks_end_thread(marks, 1, 250, &taker), 0);
    assert_int_equal(count, 1);
    assert_int_equal(list[0].mark.kind, MARK_SAFEPOINT);
    assert_int_equal(list[0].mark.until, 200);
    assert_true(list[0].mark.is_open);
    assert_int_equal(marks_end(marks, 300, &taker), 0);
    assert_int_equal(count, 2);
    assert_int_equal(list[1].mark.until, 300);
    marks_free(marks);
}

TEST(test_raw_data_may_be_anything)
{
    struct marks *marks = marks_new();
    uint8_t bytes[128];
    count = 0;
    for (uint32_t what = 0; what < TIMELINE_PROBES + 2; what++) {
        for (uint32_t size = 0; size <= sizeof bytes; size++) {
            memset(bytes, (int)(size * 37), sizeof bytes);
            memcpy(bytes + offsetof(struct timeline_probe_raw, what), &what, sizeof what);
            uint8_t *copy = malloc(size + 1); /* nothing behind its end is read */
            memcpy(copy, bytes, size);
            struct perf_sample sample = {
                .raw = copy, .raw_size = size, .pid = 7, .tid = 3, .time = size};
            assert_int_equal(marks_add(marks, &sample, &taker), 0);
            free(copy);
        }
    }
    static const char *const hostile[] = {"a\033[31m\n", "", "", ""};
    tell(marks, TIMELINE_THREAD_START, 1, 100, 0, hostile);
    assert_string_equal(list[(count - 1) % 64].text, "a?[31m?");
    marks_free(marks);
}

/* ---- Reasons ---- */

TEST(test_reasons_have_names_or_numbers)
{
    static struct deopt_names names;
    char text[64];
    /* unstable_if of JDK 25 with reinterpret; its library is not there. */
    deopt_name(&names, NULL, ~(23 << 3 | 2), text, sizeof text);
    assert_string_equal(text, "[reason 23, reinterpret]");
    deopt_name(&names, NULL, ~(1 << 3 | 7), text, sizeof text);
    assert_string_equal(text, "[reason 1, unknown]");
    deopt_name(&names, NULL, 12, text, sizeof text); /* a constant, whose class is not loaded yet */
    assert_string_equal(text, "[unloaded, reinterpret]");
}

/* ---- Sums ---- */

TEST(test_marks_are_added_up)
{
    struct profile *profile = profile_new(true);
    const struct resolved_thread thread = {
        .pid = 7, .tid = 8, .comm = "C2", .process_name = "java"};
    static const struct {
        uint64_t from, until;
        const char *subject;
    } compiled[] = {{100, 130, "a"}, {110, 120, "b"}, {125, 200, "a"}, {200, 210, "a"}};
    for (size_t i = 0; i < 4; i++) {
        struct resolved_mark mark = {.kind = MARK_COMPILE,
                                     .from = compiled[i].from,
                                     .until = compiled[i].until,
                                     .thread = &thread,
                                     .subject = compiled[i].subject};
        assert_int_equal(profile_add_mark(profile, &mark), 0);
    }
    struct timeline_rows rows;
    assert_int_equal(
        timeline_rows_make(profile, MARK_COMPILE, TIMELINE_BY_SUBJECT, TIMELINE_MOST_FIRST, &rows),
        0);
    assert_int_equal(rows.count, 2);
    assert_string_equal(rows.list[0].name, "a");
    assert_int_equal(rows.list[0].count, 3);
    assert_int_equal(rows.list[0].total, 115);
    assert_int_equal(rows.list[0].longest, 75);
    free(rows.list);
    assert_int_equal(timeline_most_at_once(profile, MARK_COMPILE), 2);
    assert_int_equal(timeline_most_at_once(profile, MARK_GC), 0);
    profile_free(profile);
}

TEST(test_rules_go_by_name)
{
    assert_int_equal(event_rule_of("jdagent_12:timeline", false).kind, EVENT_TIMELINE);
    assert_int_equal(event_rule_of("jdagent_12:deopt", false).kind, EVENT_DEOPT);
    assert_int_equal(event_rule_of("other:timeline", false).kind, EVENT_SAMPLED);
}

/* ---- The JVM's own log ---- */

static bool read_line(const char *text, struct resolved_mark *mark)
{
    static char line[JVM_LOG_LINE_MAX];
    uint32_t tid = 0;
    snprintf(line, sizeof line, "%s\n", text);
    bool told = jvm_log_line(line, mark, &tid);
    assert_int_equal(told ? tid : 29752, 29752);
    return told;
}

TEST(test_the_log_tells_of_pauses)
{
    struct resolved_mark mark;
    assert_true(
        read_line("[75382880357255ns][29752][safepoint] Safepoint "
                  "\"G1CollectForAllocation\", Time since last: 207631310 ns, Reaching "
                  "safepoint: 97886 ns, At safepoint: 12280566 ns, Leaving safepoint: 23845 "
                  "ns, Total: 12402297 ns, Threads: 1 runnable, 10 total",
                  &mark));
    assert_int_equal(mark.kind, MARK_SAFEPOINT);
    assert_string_equal(mark.text, "G1CollectForAllocation");
    assert_int_equal(mark.until, 75382880357255);
    assert_int_equal(mark.until - mark.from, 12402297);
    assert_int_equal(mark.number, 97886);
    assert_true(read_line("[75383109205707ns][29752][gc       ] GC(1) Pause Young (Normal) (G1 "
                          "Evacuation Pause) 41M->27M(96M) 8.710ms",
                          &mark));
    assert_int_equal(mark.kind, MARK_GC);
    assert_int_equal((mark.until - mark.from + 500) / 1000, 8710);
    assert_int_equal(mark.number, 0);
    assert_true(
        read_line("[5ns][29752][gc] GC(7) Pause Full (System.gc()) 9M->1M(8M) 1.5ms", &mark));
    assert_int_equal(mark.number, 1);
    assert_int_equal(mark.from, 0); /* it cannot have begun before all time */
}

TEST(test_lines_of_the_log_may_be_anything)
{
    static const char *const bad[] = {
        "",
        "[",
        "[1ns]",
        "[1ns][2][gc",
        "[1ns][29752][gc] Using G1",
        "[1ns][29752][gc] GC(3) Concurrent Mark Cycle 12.5ms",
        "[1ns][29752][gc] GC(3) Pause Remark",
        "[1ns][29752][gc] GC(3) Pause Remark nanms",
        "[1ns][29752][gc] GC(3) Pause Remark -5ms",
        "[1s][29752][gc] GC(3) Pause Remark 1M->1M(1M) 1.0ms",
        "[1ns][29752][gc,start] GC(3) Pause Remark 1M->1M(1M) 1.0ms",
        "[1ns][29752][safepoint] Safepoint \"",
        "[1ns][29752][safepoint] Safepoint \"x\", Reaching safepoint: 1, Total: 2 ns",
        "[1ns][29752][safepoint] Safepoint \"x\", Reaching safepoint: 1 ns",
    };
    struct resolved_mark mark;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(read_line(bad[i], &mark));
    }
}

TEST_MAIN(NULL, NULL)
