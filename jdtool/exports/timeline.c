/* What the JVM itself did, as people read it (jdperf timeline). */
#include "jdtool/base/array.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/timeline_rows.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    LONGEST_SHOWN = 10, /* pauses */
    ROWS_SHOWN = 15,
    LOOKS_SHOWN = 10, /* into the code cache */
    ONCE_EACH = 4,    /* by C1 and C2, as a whole and for a loop that runs: that is no repetition */
};

struct timeline {
    const struct profile *profile;
    struct packed_output *output;
    int err;
};

static double milliseconds(uint64_t time)
{
    return (double)time / 1e6;
}

/* Behind the first sample; what began before it is behind it by less than nothing. */
static double seconds_behind(const struct timeline *timeline, uint64_t time)
{
    return (double)(int64_t)(time - timeline->profile->from) / 1e9;
}

static struct timeline_rows rows_of(struct timeline *timeline, enum mark_kind kind,
                                    enum timeline_key key, enum timeline_order order)
{
    struct timeline_rows rows;
    int err = timeline_rows_make(timeline->profile, kind, key, order, &rows);
    timeline->err = timeline->err ? timeline->err : err;
    return rows;
}

/* All marks of a kind as one row; its count is 0 when there are none. */
static struct timeline_row sum_of(struct timeline *timeline, enum mark_kind kind)
{
    struct timeline_rows rows = rows_of(timeline, kind, TIMELINE_BY_KIND, TIMELINE_MOST_FIRST);
    struct timeline_row sum = rows.count ? rows.list[0] : (struct timeline_row){.name = ""};
    free(rows.list);
    return sum;
}

static void tell_left(struct timeline *timeline, uint32_t count)
{
    if (count > ROWS_SHOWN) {
        packed_output_printf(timeline->output, "    and %" PRIu32 " more\n", count - ROWS_SHOWN);
    }
}

/* ---- Pauses ---- */

static int compare_lengths(const void *a, const void *b)
{
    const struct profile_mark *first = *(const struct profile_mark *const *)a;
    const struct profile_mark *second = *(const struct profile_mark *const *)b;
    uint64_t one = first->until - first->from;
    uint64_t other = second->until - second->from;
    return ORDER(other, one);
}

static void put_longest_pauses(struct timeline *timeline)
{
    const struct profile_mark **list;
    uint32_t count;
    timeline->err = timeline_marks_of(timeline->profile, MARK_SAFEPOINT, &list, &count);
    if (timeline->err) {
        return;
    }
    qsort((void *)list, count, sizeof(struct profile_mark *), compare_lengths);
    packed_output_text(timeline->output,
                       "  the longest:     at s        ms   ms until all stood\n");
    for (uint32_t i = 0; i < count && i < LONGEST_SHOWN; i++) {
        packed_output_printf(
            timeline->output, "    %17.6f %9.3f %9.3f  %s%s\n",
            seconds_behind(timeline, list[i]->from), milliseconds(list[i]->until - list[i]->from),
            milliseconds(list[i]->number), list[i]->text, list[i]->is_open ? " (did not end)" : "");
    }
    free((void *)list);
}

/* How often and how long, by what the marks say; nothing where there are none. */
static void put_times(struct timeline *timeline, enum mark_kind kind, const char *heading)
{
    struct timeline_rows rows = rows_of(timeline, kind, TIMELINE_BY_TEXT, TIMELINE_LONGEST_FIRST);
    if (rows.count) {
        packed_output_text(timeline->output, heading);
    }
    for (uint32_t i = 0; i < rows.count && i < ROWS_SHOWN; i++) {
        packed_output_printf(timeline->output, "    %17" PRIu64 " %12.3f %11.3f  %s\n",
                             rows.list[i].count, milliseconds(rows.list[i].total),
                             milliseconds(rows.list[i].longest), rows.list[i].name);
    }
    tell_left(timeline, rows.count);
    free(rows.list);
}

static void put_pauses(struct timeline *timeline)
{
    const struct profile *profile = timeline->profile;
    struct timeline_row all = sum_of(timeline, MARK_SAFEPOINT);
    uint64_t span = profile->until > profile->from ? profile->until - profile->from : 1;
    packed_output_printf(timeline->output,
                         "Pauses: %" PRIu64 ", together %.3f ms (%.2f %% of the time), the longest "
                         "%.3f ms\n",
                         all.count, milliseconds(all.total), 100 * (double)all.total / (double)span,
                         milliseconds(all.longest));
    if (all.count == 0) {
        return;
    }
    put_times(timeline, MARK_SAFEPOINT, "  by operation:   count  together ms  longest ms\n");
    put_longest_pauses(timeline);
}

static void put_collections(struct timeline *timeline)
{
    struct timeline_row all = sum_of(timeline, MARK_GC);
    packed_output_printf(timeline->output,
                         "\nPauses of garbage collection: %" PRIu64 " (%" PRIu64
                         " full), together %.3f ms, the longest %.3f ms\n",
                         all.count, all.number, milliseconds(all.total), milliseconds(all.longest));
}

/* ---- Compilations ---- */

static void put_compilations(struct timeline *timeline)
{
    struct timeline_rows rows =
        rows_of(timeline, MARK_COMPILE, TIMELINE_BY_TEXT, TIMELINE_LONGEST_FIRST);
    struct timeline_row all = sum_of(timeline, MARK_COMPILE);
    packed_output_printf(
        timeline->output,
        "\nCompilations: %" PRIu64 ", at most %" PRIu32 " at once, %" PRIu64 " gave nothing\n",
        all.count, timeline_most_at_once(timeline->profile, MARK_COMPILE), all.number);
    for (uint32_t i = 0; i < rows.count && i < ROWS_SHOWN; i++) {
        packed_output_printf(timeline->output,
                             "    %-3s %10" PRIu64 ", together %.3f ms, the longest %.3f ms\n",
                             rows.list[i].name, rows.list[i].count,
                             milliseconds(rows.list[i].total), milliseconds(rows.list[i].longest));
    }
    free(rows.list);
    rows = rows_of(timeline, MARK_COMPILE, TIMELINE_BY_SUBJECT, TIMELINE_MOST_FIRST);
    if (rows.count && rows.list[0].count > ONCE_EACH) {
        packed_output_text(timeline->output, "  compiled again and again:\n");
        for (uint32_t i = 0; i < rows.count && i < ROWS_SHOWN && rows.list[i].count > ONCE_EACH;
             i++) {
            packed_output_printf(timeline->output, "    %17" PRIu64 " %12.3f ms  %s\n",
                                 rows.list[i].count, milliseconds(rows.list[i].total),
                                 rows.list[i].name);
        }
    }
    free(rows.list);
}

/* ---- The rest ---- */

static void put_counts(struct timeline *timeline, enum mark_kind kind, enum timeline_key key,
                       const char *title)
{
    struct timeline_rows rows = rows_of(timeline, kind, key, TIMELINE_MOST_FIRST);
    packed_output_text(timeline->output, title);
    for (uint32_t i = 0; i < rows.count && i < ROWS_SHOWN; i++) {
        packed_output_printf(timeline->output, "    %17" PRIu64 "  %s\n", rows.list[i].count,
                             rows.list[i].name);
    }
    tell_left(timeline, rows.count);
    free(rows.list);
}

static void put_deoptimisations(struct timeline *timeline)
{
    struct timeline_row all = sum_of(timeline, MARK_DEOPT);
    packed_output_printf(timeline->output, "\nDeoptimisations: %" PRIu64 "\n", all.count);
    if (all.count) {
        put_counts(timeline, MARK_DEOPT, TIMELINE_BY_TEXT, "  by reason and what became of it:\n");
        put_counts(timeline, MARK_DEOPT, TIMELINE_BY_SUBJECT, "  by method and line:\n");
    }
}

static void put_threads(struct timeline *timeline)
{
    struct timeline_row parks = sum_of(timeline, MARK_PARK);
    packed_output_printf(timeline->output, "\nThreads: %" PRIu64 " started, %" PRIu64 " ended\n",
                         sum_of(timeline, MARK_THREAD_START).count,
                         sum_of(timeline, MARK_THREAD_STOP).count);
    if (parks.count) {
        packed_output_printf(timeline->output, "Parks: %" PRIu64 ", together %.3f s\n", parks.count,
                             (double)parks.total / 1e9);
    }
}

/* Of the JVM's own recording. */
static void put_jfr(struct timeline *timeline)
{
    put_times(timeline, MARK_JFR,
              "\nEvents of the JVM's own recording (JFR):\n"
              "                       count  together ms  longest ms\n");
}

static void put_code_cache(struct timeline *timeline)
{
    const struct profile_mark **list;
    uint32_t count;
    int err = timeline_marks_of(timeline->profile, MARK_CODE_CACHE, &list, &count);
    if (err || count == 0) {
        timeline->err = timeline->err ? timeline->err : err;
        free((void *)list);
        return;
    }
    packed_output_text(timeline->output, "\nCode in the code cache:    at s        KB\n");
    uint32_t step = count > LOOKS_SHOWN ? (count - 1) / LOOKS_SHOWN : 1;
    for (uint32_t i = 0; i < count; i += step) {
        packed_output_printf(timeline->output, "    %27.3f %9.1f\n",
                             seconds_behind(timeline, list[i]->from),
                             (double)list[i]->number / 1024);
    }
    free((void *)list);
}

static int write_timeline(const struct profile *profile, const struct export_settings *settings,
                          struct packed_output *output)
{
    (void)settings;
    struct timeline timeline = {.profile = profile, .output = output};
    if (profile->mark_count == 0) {
        packed_output_text(output,
                           "Nothing of what the JVM itself did is in this profile. Either it "
                           "did nothing in that time,\nor the profile was made without "
                           "jdperf record --timeline.\n");
        return 0;
    }
    put_jfr(&timeline);
    if (sum_of(&timeline, MARK_JFR).count == profile->mark_count) {
        return timeline.err; /* nothing was recorded of ours */
    }
    put_pauses(&timeline);
    put_collections(&timeline);
    /* Probes tell of an operation at each pause, the log of none. */
    if (sum_of(&timeline, MARK_SAFEPOINT).count && !sum_of(&timeline, MARK_OPERATION).count) {
        packed_output_text(output, "\nThis is from the JVM's own log, which has nothing of "
                                   "compilations, deoptimisations and threads.\n");
    } else {
        put_compilations(&timeline);
        put_deoptimisations(&timeline);
        put_threads(&timeline);
    }
    put_code_cache(&timeline);
    return timeline.err;
}

extern const struct export_format format_timeline;
const struct export_format format_timeline = {
    .name = "timeline",
    .about = "what jdperf timeline prints",
    .keeps_times = true,
    .of_marks = true,
    .write = write_timeline,
};

/* ---- For scripts ---- */

/* What the JVM itself did, for scripts: each mark, in the order of their beginnings. */

static void put_mark(struct json_writer *json, const struct profile *profile,
                     const struct profile_mark *mark)
{
    const struct profile_thread *thread = &profile->threads[mark->thread];
    json_object(json, NULL);
    json_uint(json, "time", mark->from);
    if (mark->until > mark->from || mark->kind <= MARK_COMPILE || mark->kind == MARK_PARK) {
        json_uint(json, "duration", mark->until - mark->from);
    }
    if (mark->is_open) {
        json_bool(json, "open", true);
    }
    json_uint(json, "pid", thread->pid);
    json_uint(json, "tid", thread->tid);
    json_text(json, "thread", thread->comm);
    switch (mark->kind) {
    case MARK_SAFEPOINT:
        json_text(json, "operation", mark->text);
        json_uint(json, "until_all_stood", mark->number);
        break;
    case MARK_OPERATION:
        json_text(json, "operation", mark->text);
        json_bool(json, "concurrent", mark->number != 0);
        break;
    case MARK_GC:
        json_bool(json, "full", mark->number != 0);
        break;
    case MARK_COMPILE:
        json_text(json, "compiler", mark->text);
        json_text(json, "method", mark->subject);
        json_bool(json, "failed", mark->number != 0);
        break;
    case MARK_DEOPT:
        json_text(json, "reason", mark->text);
        json_text(json, "method", mark->subject);
        break;
    case MARK_THREAD_START:
    case MARK_THREAD_STOP:
        json_text(json, "name", mark->text);
        json_uint(json, "java_id", mark->number);
        break;
    case MARK_CODE_CACHE:
        json_uint(json, "bytes", mark->number);
        break;
    case MARK_JFR:
        json_text(json, "event", mark->text);
        json_text(json, "fields", mark->subject);
        break;
    default:
        break;
    }
    json_end(json);
}

static int put_kind(struct json_writer *json, const struct profile *profile, enum mark_kind kind)
{
    const struct profile_mark **list;
    uint32_t count;
    int err = timeline_marks_of(profile, kind, &list, &count);
    if (err) {
        return err;
    }
    json_array(json, mark_kind_name(kind));
    for (uint32_t i = 0; i < count; i++) {
        put_mark(json, profile, list[i]);
    }
    json_end(json);
    free((void *)list);
    return 0;
}

static int write_json(const struct profile *profile, const struct export_settings *settings,
                      struct packed_output *output)
{
    (void)settings;
    struct json_writer json;
    int err = 0;
    json_start(&json, output);
    json_object(&json, NULL);
    json_uint(&json, "from", profile->from);
    json_uint(&json, "until", profile->until);
    if (profile->recording->has_wall) {
        json_int(&json, "wall_offset", profile->recording->wall_offset);
    }
    for (int kind = 0; kind < MARK_KINDS && !err; kind++) {
        err = put_kind(&json, profile, (enum mark_kind)kind);
    }
    json_end(&json);
    packed_output_text(output, "\n");
    return err;
}

extern const struct export_format format_timeline_json;
const struct export_format format_timeline_json = {
    .name = "timeline-json",
    .about = "what jdperf timeline --json prints",
    .keeps_times = true,
    .of_marks = true,
    .write = write_json,
};
