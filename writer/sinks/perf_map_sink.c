/*
 * Code that is gone keeps its line until its range is used again: its samples are in the profile,
 * and readers take the map for all of it.
 */
#include "writer/sinks/perf_map_sink.h"

#include "writer/message.h"
#include "writer/sinks/perf_map_log.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Inlined methods as entries of their own ---- */

static void put_text(struct buffer *names, const char *text)
{
    buffer_put(names, text, strlen(text));
}

static void put_number(struct buffer *names, uint32_t number)
{
    char digits[10];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    buffer_put(names, digits + at, sizeof(digits) - at);
}

static void put_position(struct buffer *names, const struct method *method)
{
    if (!method || !method->file || method->first_line == 0) {
        return;
    }
    const char *slash = strrchr(method->file->path, '/');
    put_text(names, "(");
    put_text(names, slash ? slash + 1 : method->file->path);
    put_text(names, ":");
    put_number(names, method->first_line);
    put_text(names, ")");
}

static const char *suffix_of(const struct code *code)
{
    if (code->facts.kind == JITDUMP_KIND_INTERPRETER) {
        return "_[0]";
    }
    if (!code->method) {
        return "";
    }
    return code->facts.tier >= 1 && code->facts.tier <= 3 ? "_[1]" : "_[j]";
}

static void put_compiled(struct buffer *names, const struct code *code,
                         const struct unfold_style *style)
{
    put_text(names, code->name);
    if (style->positions) {
        put_position(names, code->method);
    }
}

static void put_inlined(struct buffer *names, const struct method *method,
                        const struct unfold_style *style)
{
    put_text(names, method->name);
    if (style->positions) {
        put_position(names, method);
    }
}

/* From the compiled method down; the tree tells the way up, so this one recurses. */
static void put_chain(struct buffer *names, const struct code *code, uint32_t node,
                      const struct unfold_style *style)
{
    if (node == 0) {
        put_compiled(names, code, style);
        put_text(names, style->suffixes ? suffix_of(code) : "");
        return;
    }
    put_chain(names, code, code->nodes[node].parent, style);
    put_text(names, "->");
    put_inlined(names, code->nodes[node].method, style);
    put_text(names, style->suffixes ? "_[i]" : "");
}

static void put_name(struct buffer *names, const struct code *code, uint32_t node,
                     const struct unfold_style *style)
{
    if (node == 0 || style->mode == UNFOLD_ALL) {
        put_chain(names, code, node, style);
    } else {
        put_inlined(names, code->nodes[node].method, style);
        if (style->mode == UNFOLD_LEAF) {
            put_text(names, " in ");
            put_compiled(names, code, style);
        }
        put_text(names, style->suffixes ? "_[i]" : "");
    }
    buffer_put(names, "", 1);
}

/* Appends an entry that begins here, unless the one before is of the same name and goes on. */
static void begin_entry(struct unfold *unfold, const struct code *code, uint32_t offset,
                        uint32_t node, const struct unfold_style *style)
{
    size_t name = unfold->names.size;
    put_name(&unfold->names, code, node, style);
    size_t count = unfold->entries.size / sizeof(struct unfold_entry);
    if (count > 0 && !unfold->names.failed) {
        const struct unfold_entry *last = unfold_entry(unfold, (int)count - 1);
        const char *names = (const char *)unfold->names.bytes;
        if (strcmp(names + last->name, names + name) == 0) {
            unfold->names.size = name;
            return;
        }
    }
    struct unfold_entry entry = {.offset = offset, .name = (uint32_t)name};
    buffer_put(&unfold->entries, &entry, sizeof(entry));
}

int unfold_code(struct unfold *unfold, const struct code *code, const struct unfold_style *style)
{
    buffer_clear(&unfold->entries);
    buffer_clear(&unfold->names);
    bool fold = style->mode == UNFOLD_OFF || code->range_count == 0;
    if (fold) {
        begin_entry(unfold, code, 0, 0, style);
    }
    for (uint32_t i = 0; i < code->range_count && !fold; i++) {
        const struct inline_range *range = &code->ranges[i];
        if (i == 0 || range->node != range[-1].node) {
            begin_entry(unfold, code, range->offset, range->node, style);
        }
    }
    if (!fold && code->ranges_end < code->size) {
        begin_entry(unfold, code, code->ranges_end, 0, style);
    }
    if (unfold->entries.failed || unfold->names.failed) {
        return -ENOMEM;
    }
    size_t count = unfold->entries.size / sizeof(struct unfold_entry);
    struct unfold_entry *entries = (struct unfold_entry *)unfold->entries.bytes;
    for (size_t i = 0; i < count; i++) {
        uint32_t end = i + 1 < count ? entries[i + 1].offset : (uint32_t)code->size;
        entries[i].size = end - entries[i].offset;
    }
    return (int)count;
}

void unfold_free(struct unfold *unfold)
{
    buffer_free(&unfold->entries);
    buffer_free(&unfold->names);
}

/* ---- The sink ---- */

struct perf_map_sink {
    struct sink sink;
    struct perf_map_log *log;
    char path[PATH_MAX];
    struct unfold_style style;
    struct unfold unfold;
    uint64_t records;
};

static struct perf_map_sink *perf_map_of(struct sink *sink)
{
    return (struct perf_map_sink *)sink;
}

static void perf_map_make_room(struct sink *sink, bool patient)
{
    perf_map_log_make_room(perf_map_of(sink)->log, patient);
}

static bool perf_map_settle(struct sink *sink)
{
    return perf_map_log_settle(perf_map_of(sink)->log);
}

/* A log that has ended ends the sink. */
static int told(struct perf_map_sink *sink, int error)
{
    struct perf_map_log_stats stats;
    perf_map_log_stats(sink->log, &stats);
    sink->sink.failed = stats.failed;
    return error;
}

static int perf_map_load(struct sink *base, const struct code *code, const struct stay *stay)
{
    (void)stay;
    struct perf_map_sink *sink = perf_map_of(base);
    int count = unfold_code(&sink->unfold, code, &sink->style);
    if (count < 0) {
        return count;
    }
    for (int i = 0; i < count; i++) {
        const struct unfold_entry *entry = unfold_entry(&sink->unfold, i);
        uint64_t start = code->address + entry->offset;
        perf_map_log_put(sink->log, (struct range){start, start + entry->size},
                         unfold_name(&sink->unfold, entry));
    }
    int error = perf_map_log_commit(sink->log);
    sink->records += error == 0;
    return told(sink, error);
}

static int perf_map_move(struct sink *base, uint64_t from, uint64_t to, uint64_t size,
                         const struct stay *stay)
{
    (void)stay;
    struct perf_map_sink *sink = perf_map_of(base);
    int error = perf_map_log_move(sink->log, (struct range){from, from + size}, to);
    sink->records += error == 0;
    return told(sink, error);
}

static void perf_map_stats(struct sink *base, struct sink_stats *stats)
{
    struct perf_map_sink *sink = perf_map_of(base);
    struct perf_map_log_stats log;
    perf_map_log_stats(sink->log, &log);
    *stats = (struct sink_stats){
        .records = sink->records,
        .bytes = log.bytes,
        .path = sink->path,
        .failed = log.failed,
        .paused = log.paused,
        .has_paused = log.has_paused,
    };
}

static void free_sink(struct perf_map_sink *sink)
{
    unfold_free(&sink->unfold);
    free(sink);
}

static void perf_map_close(struct sink *base, bool in_fork)
{
    struct perf_map_sink *sink = perf_map_of(base);
    if (in_fork) {
        perf_map_log_abandon(sink->log);
    } else {
        perf_map_log_close(sink->log);
    }
    free_sink(sink);
}

static const struct sink_ops perf_map_ops = {
    .make_room = perf_map_make_room,
    .load = perf_map_load,
    .move = perf_map_move,
    .stats = perf_map_stats,
    .settle = perf_map_settle,
    .close = perf_map_close,
};

int perf_map_sink_open(const struct perf_map_sink_options *options, struct sink **out)
{
    char usual_path[64];
    snprintf(usual_path, sizeof(usual_path), "/tmp/perf-%d.map", (int)getpid());
    const char *path = options->log.path ? options->log.path : usual_path;

    struct perf_map_sink *sink = calloc(1, sizeof(*sink));
    if (!sink) {
        message(MESSAGE_ERROR, "failed to start %s: out of memory", path);
        return -ENOMEM;
    }
    sink->sink.ops = &perf_map_ops;
    sink->style = options->style;
    sink->unfold = UNFOLD_INIT;
    snprintf(sink->path, sizeof(sink->path), "%s", path);
    struct perf_map_log_options log = options->log;
    log.path = sink->path;
    int error = perf_map_log_open(&log, &sink->log);
    if (error) {
        free_sink(sink);
        return error;
    }
    *out = &sink->sink;
    return 0;
}

void perf_map_sink_on_want(struct sink *sink,
                           bool (*wanted)(void *context, enum record_log_want want), void *context)
{
    perf_map_log_on_want(perf_map_of(sink)->log, wanted, context);
}
