/*
 * Code that is gone keeps its line until its range is used again: its samples are in the profile,
 * and readers take the map for all of it.
 */
#include "writer/perf_map_sink.h"

#include "writer/message.h"
#include "writer/perf_map_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct perf_map_sink {
    struct sink sink;
    struct perf_map_file map;
    struct unfold_style style;
    struct unfold unfold;
    uint64_t records;
};

static struct perf_map_sink *perf_map_of(struct sink *sink)
{
    return (struct perf_map_sink *)sink;
}

static int put(struct perf_map_sink *sink, const struct code *code)
{
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
    sink->sink.failed = sink->map.file.fd < 0;
    return error ? error : commit_error;
}

static int perf_map_load(struct sink *base, const struct code *code, const struct stay *stay)
{
    (void)stay;
    struct perf_map_sink *sink = perf_map_of(base);
    return commit(sink, put(sink, code));
}

static int perf_map_move(struct sink *base, uint64_t from, uint64_t to, uint64_t size,
                         const struct stay *stay)
{
    (void)stay;
    struct perf_map_sink *sink = perf_map_of(base);
    return commit(sink, perf_map_file_move(&sink->map, (struct range){from, from + size}, to));
}

static void perf_map_stats(struct sink *base, struct sink_stats *stats)
{
    const struct perf_map_sink *sink = (const struct perf_map_sink *)base;
    *stats = (struct sink_stats){
        .records = sink->records,
        .bytes = sink->map.file.size,
        .path = sink->map.file.path,
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
        perf_map_file_abandon(&sink->map);
    } else {
        perf_map_file_close(&sink->map);
    }
    free_sink(sink);
}

static const struct sink_ops perf_map_ops = {
    .load = perf_map_load,
    .move = perf_map_move,
    .stats = perf_map_stats,
    .close = perf_map_close,
};

int perf_map_sink_open(const struct perf_map_sink_options *options, struct sink **out)
{
    char usual_path[64];
    snprintf(usual_path, sizeof(usual_path), "/tmp/perf-%d.map", (int)getpid());
    const char *path = options->path ? options->path : usual_path;

    struct perf_map_sink *sink = calloc(1, sizeof(*sink));
    if (!sink) {
        message(MESSAGE_ERROR, "failed to start %s: out of memory", path);
        return -ENOMEM;
    }
    sink->sink.ops = &perf_map_ops;
    sink->style = options->style;
    sink->unfold = UNFOLD_INIT;
    int error = perf_map_file_create(&sink->map, path);
    if (error) {
        free_sink(sink);
        return error;
    }
    *out = &sink->sink;
    return 0;
}
