/*
 * Code that is gone keeps its line until its range is used again: its samples are in the profile,
 * and readers take the map for all of it.
 */
#include "writer/perf_map_sink.h"

#include "writer/gate.h"
#include "writer/message.h"
#include "writer/perf_map_file.h"
#include "writer/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct perf_map_sink {
    struct sink sink;
    struct gate gate; /* to everything below */
    struct perf_map_file map;
    struct unfold_style style;
    struct unfold unfold;
    struct timeline *timeline; /* for who is there; of times it only needs the order */
    uint64_t event;
    uint64_t records;
};

static struct perf_map_sink *perf_map_of(struct sink *sink)
{
    return (struct perf_map_sink *)sink;
}

static int load_one(struct perf_map_sink *sink, const struct code *code)
{
    timeline_load(sink->timeline, code, sink->event, sink->event);
    sink->event++;
    int count = unfold_code(&sink->unfold, code, &sink->style);
    if (count < 0) {
        return count;
    }
    for (int i = 0; i < count; i++) {
        const struct unfold_entry *entry = unfold_entry(&sink->unfold, i);
        uint64_t start = code->address + entry->offset;
        const struct range range = {start, start + entry->size};
        int error = perf_map_file_put(&sink->map, range, unfold_name(&sink->unfold, entry));
        if (error) {
            return error;
        }
    }
    sink->records++;
    return 0;
}

/* Writes what the call has put, also when a part of it failed; a file that ended ends the sink. */
static int commit(struct perf_map_sink *sink, int error)
{
    int commit_error = perf_map_file_commit(&sink->map);
    sink->gate.failed = sink->map.file.fd < 0;
    return gate_leave(&sink->gate, error ? error : commit_error);
}

static int perf_map_load(struct sink *base, const struct code *code)
{
    struct perf_map_sink *sink = perf_map_of(base);
    int error = gate_enter(&sink->gate);
    if (error) {
        return error;
    }
    if (code->replayed && !code->method) {
        struct code gap = *code;
        uint64_t end = code->address + code->size;
        uint64_t gap_end = code->address;
        while (!error && timeline_next_gap(sink->timeline, gap_end, end, &gap.address, &gap_end)) {
            gap.size = gap_end - gap.address;
            error = load_one(sink, &gap);
        }
    } else if (!timeline_knows(sink->timeline, code)) {
        error = load_one(sink, code);
    }
    return commit(sink, error);
}

static int perf_map_move(struct sink *base, uint64_t from, uint64_t to, uint64_t size)
{
    struct perf_map_sink *sink = perf_map_of(base);
    int error = gate_enter(&sink->gate);
    if (error) {
        return error;
    }
    uint64_t index;
    if (!timeline_move(sink->timeline, from, to, sink->event++, &index)) {
        return gate_leave(&sink->gate, -ENOENT);
    }
    return commit(sink, perf_map_file_move(&sink->map, (struct range){from, from + size}, to));
}

static int perf_map_unload(struct sink *base, uint64_t address)
{
    struct perf_map_sink *sink = perf_map_of(base);
    int error = gate_enter(&sink->gate);
    if (error) {
        return error;
    }
    timeline_unload(sink->timeline, address, sink->event++);
    return gate_leave(&sink->gate, 0);
}

static void perf_map_stats(struct sink *base, struct sink_stats *stats)
{
    struct perf_map_sink *sink = perf_map_of(base);
    if (!gate_is_ours(&sink->gate)) {
        *stats = (struct sink_stats){.failed = true};
        return;
    }
    pthread_mutex_lock(&sink->gate.lock);
    *stats = (struct sink_stats){
        .records = sink->records,
        .bytes = sink->map.file.size,
        .dropped = sink->gate.dropped,
        .path = sink->map.file.path,
        .failed = sink->gate.failed,
    };
    pthread_mutex_unlock(&sink->gate.lock);
}

static void free_sink(struct perf_map_sink *sink)
{
    timeline_free(sink->timeline);
    unfold_free(&sink->unfold);
    gate_destroy(&sink->gate);
    free(sink);
}

static void perf_map_close(struct sink *base)
{
    struct perf_map_sink *sink = perf_map_of(base);
    if (gate_is_ours(&sink->gate)) {
        perf_map_file_close(&sink->map);
    } else {
        perf_map_file_abandon(&sink->map);
    }
    free_sink(sink);
}

static const struct sink_ops perf_map_ops = {
    .load = perf_map_load,
    .move = perf_map_move,
    .unload = perf_map_unload,
    .stats = perf_map_stats,
    .close = perf_map_close,
};

int perf_map_sink_open(const struct perf_map_sink_options *options, struct sink **out)
{
    char usual_path[64];
    snprintf(usual_path, sizeof(usual_path), "/tmp/perf-%d.map", (int)getpid());
    const char *path = options->path ? options->path : usual_path;

    struct perf_map_sink *sink = calloc(1, sizeof(*sink));
    if (!sink || gate_init(&sink->gate) != 0) {
        free(sink);
        message(MESSAGE_ERROR, "failed to start %s: out of memory", path);
        return -ENOMEM;
    }
    sink->sink.ops = &perf_map_ops;
    sink->style = options->style;
    sink->unfold = UNFOLD_INIT;
    sink->timeline = timeline_new(sink->event++);
    int error = -ENOMEM;
    if (sink->timeline) {
        error = perf_map_file_create(&sink->map, path);
    } else {
        message(MESSAGE_ERROR, "failed to start %s: out of memory", path);
    }
    if (error) {
        free_sink(sink);
        return error;
    }
    *out = &sink->sink;
    return 0;
}
