/* What the JVM itself did, as markers: of each process on its first track, where they are seen at
 * once; a thread of the JVM's may have no samples, and then no track. */
#include "jdtool/exports/firefox_tables.h"

#include <inttypes.h>
#include <stdio.h>

enum { PHASE_INSTANT, PHASE_INTERVAL };

#define CATEGORY_OF_MARKERS 6 /* "JVM" among firefox_put_categories */

static const char *const titles[MARK_KINDS] = {
    [MARK_SAFEPOINT] = "Pause",        [MARK_OPERATION] = "VM operation",
    [MARK_GC] = "Garbage collection",  [MARK_COMPILE] = "Compilation",
    [MARK_DEOPT] = "Deoptimisation",   [MARK_THREAD_START] = "Thread start",
    [MARK_THREAD_STOP] = "Thread end", [MARK_PARK] = "Park",
    [MARK_CODE_CACHE] = "Code cache",  [MARK_JFR] = "JFR",
};

void firefox_add_marker_names(struct firefox *f)
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

void firefox_put_marker_schema(struct json_writer *json)
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

void firefox_put_markers(struct firefox *f, uint32_t pid, bool wanted)
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
