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
#include <unistd.h>

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
