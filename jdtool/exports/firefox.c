/*
 * Firefox Profiler's processed profile, version 65: the last one whose stack table other readers
 * (Perfetto) understand, and the first ones with the sources in the file. The front end brings it
 * to its own version. Here are its threads and its meta data; the shared tables are in
 * firefox_tables.c.
 */
#include "jdtool/exports/firefox_tables.h"
#include "jdtool/profile/tracks.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Markers ---- */

/* What the JVM itself did, as markers: of each process on its first track, where they are seen at
 * once; a thread of the JVM's may have no samples, and then no track. */

enum { PHASE_INSTANT, PHASE_INTERVAL };

#define CATEGORY_OF_MARKERS 6 /* "JVM" among firefox_put_categories */

static const char *const titles[MARK_KINDS] = {
    [MARK_SAFEPOINT] = "Pause",        [MARK_OPERATION] = "VM operation",
    [MARK_GC] = "Garbage collection",  [MARK_COMPILE] = "Compilation",
    [MARK_DEOPT] = "Deoptimisation",   [MARK_THREAD_START] = "Thread start",
    [MARK_THREAD_STOP] = "Thread end", [MARK_PARK] = "Park",
    [MARK_CODE_CACHE] = "Code cache",  [MARK_JFR] = "JFR",
};

/* Their names are among the strings, and so come before these are written. */
static void add_marker_names(struct firefox *f)
{
    for (int kind = 0; kind < MARK_KINDS && f->profile->mark_count; kind++) {
        f->marker_names[kind] = string_table_add(&f->strings, titles[kind]);
    }
    for (uint32_t i = 0; i < f->profile->mark_count; i++) {
        const struct profile_mark *mark = &f->profile->marks[i];
        if (mark->kind == MARK_JFR) { /* each of these events has a name of its own */
            (void)string_table_add(&f->strings, mark->text);
        }
    }
}

static void put_marker_schema(struct json_writer *json)
{
    static const struct {
        const char *key, *label;
    } fields[] = {{"what", "What"}, {"method", "Method"}, {"more", "More"}, {"thread", "Thread"}};
    static const char *const displays[] = {"marker-chart", "marker-table", "timeline-overview"};
    json_array(json, "markerSchema");
    json_object(json, NULL);
    json_text(json, "name", "jvm");
    json_array(json, "display");
    for (size_t i = 0; i < sizeof displays / sizeof *displays; i++) {
        json_text(json, NULL, displays[i]);
    }
    json_end(json);
    json_text(json, "chartLabel", "{marker.data.what} {marker.data.method}");
    json_text(json, "tooltipLabel", "{marker.name} {marker.data.what}");
    json_text(json, "tableLabel", "{marker.data.what} {marker.data.method} {marker.data.more}");
    json_array(json, "fields");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        json_object(json, NULL);
        json_text(json, "key", fields[i].key);
        json_text(json, "label", fields[i].label);
        json_text(json, "format", "string");
        json_end(json);
    }
    json_end(json);
    json_end(json);
    json_end(json);
}

/* What the number of a mark says, in words. */
static void describe(const struct profile_mark *mark, char text[64])
{
    text[0] = '\0';
    if (mark->kind == MARK_SAFEPOINT) {
        snprintf(text, 64, "all threads stood after %.3f ms", (double)mark->number / 1e6);
    } else if (mark->kind == MARK_CODE_CACHE) {
        snprintf(text, 64, "%" PRIu64 " bytes", mark->number);
    } else if (mark->number && mark->kind == MARK_GC) {
        snprintf(text, 64, "full");
    } else if (mark->number && mark->kind == MARK_COMPILE) {
        snprintf(text, 64, "gave nothing");
    } else if (mark->number && mark->kind == MARK_OPERATION) {
        snprintf(text, 64, "while others run on");
    }
}

static void put_data(struct json_writer *json, const struct profile *profile,
                     const struct profile_mark *mark)
{
    char more[64];
    describe(mark, more);
    json_object(json, NULL);
    json_text(json, "type", "jvm");
    bool is_jfr = mark->kind == MARK_JFR;
    json_text(json, "what", is_jfr ? "" : mark->text);
    json_text(json, "method", is_jfr ? "" : mark->subject);
    json_text(json, "more", is_jfr ? mark->subject : more);
    json_text(json, "thread", profile->threads[mark->thread].comm);
    json_end(json);
}

enum marker_column {
    MARKER_NAME,
    MARKER_START,
    MARKER_END,
    MARKER_PHASE,
    MARKER_CATEGORY,
    MARKER_DATA,
    MARKER_COLUMNS,
};

static void put_cell(struct firefox *f, struct json_writer *json, enum marker_column column,
                     const struct profile_mark *mark)
{
    bool is_interval = mark->until > mark->from;
    switch (column) {
    case MARKER_NAME:
        json_uint(json, NULL,
                  mark->kind == MARK_JFR ? string_table_add(&f->strings, mark->text)
                                         : f->marker_names[mark->kind]);
        break;
    case MARKER_START:
        json_decimal(json, NULL, (int64_t)(mark->from - f->profile->from), 6);
        break;
    case MARKER_END:
        if (is_interval) {
            json_decimal(json, NULL, (int64_t)(mark->until - f->profile->from), 6);
        } else {
            json_null(json, NULL);
        }
        break;
    case MARKER_PHASE:
        json_uint(json, NULL, is_interval ? PHASE_INTERVAL : PHASE_INSTANT);
        break;
    case MARKER_CATEGORY:
        json_uint(json, NULL, CATEGORY_OF_MARKERS);
        break;
    default:
        put_data(json, f->profile, mark);
    }
}

/* wanted: those of the process; else there are none. */
static void put_markers(struct firefox *f, uint32_t pid, bool wanted)
{
    static const char *const columns[MARKER_COLUMNS] = {
        [MARKER_NAME] = "name",   [MARKER_START] = "startTime",   [MARKER_END] = "endTime",
        [MARKER_PHASE] = "phase", [MARKER_CATEGORY] = "category", [MARKER_DATA] = "data",
    };
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;
    uint32_t length = 0;
    for (uint32_t i = 0; wanted && i < profile->mark_count; i++) {
        length += profile->threads[profile->marks[i].thread].pid == pid;
    }
    json_object(json, "markers");
    json_uint(json, "length", length);
    for (int column = 0; column < MARKER_COLUMNS; column++) {
        json_array(json, columns[column]);
        for (uint32_t i = 0; length && i < profile->mark_count; i++) {
            if (profile->threads[profile->marks[i].thread].pid == pid) {
                put_cell(f, json, (enum marker_column)column, &profile->marks[i]);
            }
        }
        json_end(json);
    }
    json_end(json);
}

/* ---- The profile ---- */

#define VERSION        65
#define TRACKS_VISIBLE 20 /* at first; the others can be shown */

/* Times are milliseconds; ours have nanoseconds. */
static void put_time(struct json_writer *json, const char *key, uint64_t time)
{
    json_decimal(json, key, (int64_t)time, 6);
}

static void put_extra(struct json_writer *json, const char *label, const char *value)
{
    if (value && value[0]) {
        json_object(json, NULL);
        json_text(json, "label", label);
        json_text(json, "format", "string");
        json_text(json, "value", value);
        json_end(json);
    }
}

static void put_meta(struct json_writer *json, const struct profile *profile, uint32_t track_count)
{
    const struct recording *recording = profile->recording;
    uint64_t period = recording->event_count ? export_event_period(&recording->events[0]) : 0;
    bool is_time = recording->event_count && event_is_time(&recording->events[0]);

    json_object(json, "meta");
    put_time(json, "interval", is_time && period ? period : 1000000);
    put_time(json, "startTime", export_wall_time(profile, profile->from));
    json_uint(json, "startTimeAsClockMonotonicNanosecondsSinceBoot", profile->from);
    json_uint(json, "processType", 0);
    json_text(json, "product", "jdagent");
    json_text(json, "importedFrom", "perf.data");
    json_uint(json, "stackwalk", 1);
    json_uint(json, "version", 24);
    json_uint(json, "preprocessedProfileVersion", VERSION);
    json_bool(json, "symbolicated", true);
    json_bool(json, "debug", false);
    json_bool(json, "usesOnlyOneStackType", true);
    json_bool(json, "sourceCodeIsNotOnSearchfox", true);
    json_bool(json, "keepProfileThreadOrder", true);
    if (recording->command_line) {
        json_text(json, "arguments", recording->command_line);
    }
    if (recording->os_release) {
        json_text(json, "oscpu", recording->os_release);
        json_text(json, "platform", "Linux");
    }
    if (recording->cpu) {
        json_text(json, "CPUName", recording->cpu);
    }
    if (recording->cpu_count) {
        json_uint(json, "logicalCPUs", recording->cpu_count);
    }
    firefox_put_categories(json);
    put_marker_schema(json);
    json_array(json, "pausedRanges");
    json_end(json);
    json_object(json, "sampleUnits");
    json_text(json, "time", "ms");
    json_text(json, "eventDelay", "ms");
    json_text(json, "threadCPUDelta", "ns");
    json_end(json);
    json_object(json, "extensions");
    json_uint(json, "length", 0);
    json_fill(json, "baseURL", "", 0);
    json_fill(json, "id", "", 0);
    json_fill(json, "name", "", 0);
    json_end(json);
    json_array(json, "extra");
    json_object(json, NULL);
    json_text(json, "label", "Recording");
    json_array(json, "entries");
    put_extra(json, "Host", recording->hostname);
    put_extra(json, "Architecture", recording->arch);
    put_extra(json, "perf", recording->perf_version);
    put_extra(json, "Verdict", recording->verdict);
    for (uint32_t i = 0; i < recording->event_count; i++) {
        put_extra(json, "Event", recording->events[i].name);
    }
    json_end(json);
    json_end(json);
    json_end(json);
    json_array(json, "initialVisibleThreads");
    for (uint32_t i = 0; i < track_count && i < TRACKS_VISIBLE; i++) {
        json_uint(json, NULL, i);
    }
    json_end(json);
    json_array(json, "initialSelectedThreads");
    json_uint(json, NULL, 0);
    json_end(json);
    json_end(json);
}

/*
 * An event of which each is told weighs what it stands for: the front end knows bytes, milliseconds
 * and numbers. A clock's ticks are its own unit; what they weigh is the processor's time, which a
 * wait has none of.
 */
static void put_weights(struct json_writer *json, const struct profile *profile,
                        const struct track_samples *track)
{
    const struct recorded_event *event = &profile->recording->events[track->event];
    bool is_time = event_is_time(event);
    bool is_each = event->period == 1 && event->frequency == 0;
    bool is_wait = is_each && is_time;
    bool is_bytes = is_each && event_is_bytes(event);

    json_text(json, "weightType", is_wait ? "tracing-ms" : is_bytes ? "bytes" : "samples");
    if (is_each) {
        json_array(json, "weight");
    } else if (is_time) {
        json_null(json, "weight");
        json_array(json, "threadCPUDelta");
    } else {
        json_null(json, "weight");
        return;
    }
    for (uint32_t i = 0; i < track->count; i++) {
        uint64_t weight = profile->samples[track->samples[i]].weight;
        if (is_wait) {
            put_time(json, NULL, weight);
        } else {
            json_uint(json, NULL, weight);
        }
    }
    json_end(json);
}

static void put_samples(struct firefox *f, const struct track_samples *track)
{
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;

    json_object(json, "samples");
    json_uint(json, "length", track->count);
    put_weights(json, profile, track);
    json_array(json, "stack");
    for (uint32_t i = 0; i < track->count; i++) {
        uint32_t node = profile->samples[track->samples[i]].node;
        if (node == PROFILE_NONE) {
            json_null(json, NULL);
        } else {
            json_uint(json, NULL, f->stack_of_node[node]);
        }
    }
    json_end(json);
    json_array(json, "time");
    for (uint32_t i = 0; i < track->count; i++) {
        put_time(json, NULL, profile->samples[track->samples[i]].time - profile->from);
    }
    json_end(json);
    json_end(json);
}

/* A track that has its process' markers is there as long as they are: the JVM tells of what it did
 * before the first sample, and behind the last. */
static void extend_to_marks(const struct profile *profile, uint32_t pid, int64_t *first,
                            int64_t *last)
{
    for (uint32_t i = 0; i < profile->mark_count; i++) {
        const struct profile_mark *mark = &profile->marks[i];
        int64_t from = (int64_t)(mark->from - profile->from);
        int64_t until = (int64_t)(mark->until - profile->from);
        if (profile->threads[mark->thread].pid == pid) {
            *first = from < *first ? from : *first;
            *last = until > *last ? until : *last;
        }
    }
}

static void put_thread(struct firefox *f, const struct track_samples *track, bool has_markers)
{
    struct json_writer *json = &f->json;
    const struct profile *profile = f->profile;
    const struct profile_track *known = &profile->tracks[track->track];
    const struct profile_thread *thread = &profile->threads[known->thread];
    const char *event = profile->recording->events[track->event].name;
    int64_t first = (int64_t)(profile->samples[track->samples[0]].time - profile->from);
    int64_t last =
        (int64_t)(profile->samples[track->samples[track->count - 1]].time - profile->from);
    bool is_first_event = track->event == f->first_event;
    char text[128];

    if (has_markers) {
        extend_to_marks(profile, known->pid, &first, &last);
    }
    json_object(json, NULL);
    json_text(json, "processType", "default");
    put_time(json, "processStartupTime", 0);
    json_null(json, "processShutdownTime");
    put_time(json, "registerTime", first);
    put_time(json, "unregisterTime", last);
    json_array(json, "pausedRanges");
    json_end(json);
    snprintf(text, sizeof text, is_first_event ? "%s" : "%s (%s)",
             thread->comm[0] ? thread->comm : "[unknown]", event);
    json_text(json, "name", text);
    json_bool(json, "isMainThread", known->pid == known->tid && is_first_event);
    json_text(json, "processName", profile_process(thread));
    snprintf(text, sizeof text, "%u", known->pid);
    json_text(json, "pid", text);
    if (is_first_event) {
        json_uint(json, "tid", known->tid);
    } else {
        snprintf(text, sizeof text, "%u-%u", known->tid, track->event);
        json_text(json, "tid", text);
    }
    json_bool(json, "showMarkersInTimeline", true);
    put_samples(f, track);
    put_markers(f, known->pid, has_markers);
    json_end(json);
}

static bool is_first_of_process(const struct profile *profile, const struct tracks *tracks,
                                uint32_t index)
{
    uint32_t pid = profile->tracks[tracks->list[index].track].pid;
    for (uint32_t i = 0; i < index; i++) {
        if (profile->tracks[tracks->list[i].track].pid == pid) {
            return false;
        }
    }
    return true;
}

static int write_firefox(const struct profile *profile, const struct export_settings *settings,
                         struct packed_output *output)
{
    struct firefox f = {.profile = profile, .settings = settings};
    struct tracks tracks;
    json_start(&f.json, output);
    int err = tracks_make(profile, &tracks);
    int tables_err = firefox_prepare(&f);
    err = err ? err : tables_err;
    if (!err) {
        f.first_event = tracks.list[0].event;
        add_marker_names(&f);
        json_object(&f.json, NULL);
        put_meta(&f.json, profile, tracks.count);
        firefox_put_libs(&f);
        json_fill(&f.json, "pages", "", 0);
        json_fill(&f.json, "counters", "", 0);
        json_fill(&f.json, "profilerOverhead", "", 0);
        err = firefox_put_shared(&f);
        json_array(&f.json, "threads");
        for (uint32_t i = 0; i < tracks.count; i++) {
            put_thread(&f, &tracks.list[i], is_first_of_process(profile, &tracks, i));
        }
        json_end(&f.json);
        json_end(&f.json);
    }
    firefox_release(&f);
    tracks_free(&tracks);
    return err;
}

extern const struct export_format format_firefox;
const struct export_format format_firefox = {
    .name = "firefox",
    .file = "profile.firefox.json.gz",
    .about = "for https://profiler.firefox.com and Perfetto: threads over time, sources",
    .keeps_times = true,
    .write = write_firefox,
};
