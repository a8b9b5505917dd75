#include "agent/session/sinks.h"

#include "agent/session/dump_directory.h"
#include "writer/message.h"
#include "writer/sinks/itt_sink.h"
#include "writer/sinks/jitdump_sink.h"
#include "writer/sinks/perf_map_sink.h"

#include <errno.h>
#include <unistd.h>

static int open_jitdump(const struct options *options, uint64_t start, struct sink **out)
{
    char directory[PATH_MAX];
    int fd = dump_directory_make(options->dir, directory);
    if (fd < 0) {
        return fd;
    }
    const struct jitdump_sink_options sink = {
        .log = {.start = start,
                .tsc = options->tsc,
                .directory = directory,
                .directory_fd = fd,
                .thread = true,
                .waits = true,
                .reserve = options->reserve,
                .max_bytes = options->max_bytes,
                .segment = options->segment,
                .keep = options->keep,
                .keep_bytes = options->keep_bytes},
        .samply = options->samply,
        .tree_lines = options->tree_lines,
    };
    int error = jitdump_sink_open(&sink, out);
    close(fd);
    return error;
}

static int open_map(const struct options *options, uint64_t start, struct sink **out)
{
    (void)start;
    const struct perf_map_sink_options sink = {
        .style = options->unfold,
        .log = {.thread = true,
                .waits = true,
                .reserve = options->reserve,
                .max_bytes = options->max_bytes},
    };
    return perf_map_sink_open(&sink, out);
}

static int open_itt(const struct options *options, uint64_t start, struct sink **out)
{
    (void)start;
    (void)options;
    const struct itt_sink_options sink = {.method_module = "Java", .stub_module = "JVM"};
    return itt_sink_open(&sink, out);
}

/* A new place is a line here and a word in options.c. */
static const struct {
    enum mode mode;
    const char *name;
    int (*open)(const struct options *options, uint64_t start, struct sink **out);
} places[] = {
    {MODE_JITDUMP, "jitdump", open_jitdump},
    {MODE_MAP, "map", open_map},
    {MODE_ITT, "itt", open_itt},
};
_Static_assert(sizeof(places) / sizeof(*places) <= OCCUPANCY_SINKS_MAX, "room for every sink");

int sinks_open(struct sinks *sinks, const struct options *options)
{
    *sinks = (struct sinks){0};
    if (occupancy_new(options->tsc, &sinks->occupancy) != 0) {
        message(MESSAGE_ERROR, "failed to start: no memory");
        return -ENOMEM;
    }
    int failed = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places) && !(failed && options->strict); i++) {
        struct sink *sink;
        if (!(options->modes & places[i].mode)) {
            continue;
        }
        int error = places[i].open(options, occupancy_start(sinks->occupancy), &sink);
        if (error == 0) {
            occupancy_add(sinks->occupancy, sink);
            sinks->names[sinks->count++] = places[i].name;
            if (places[i].mode == MODE_JITDUMP) {
                sinks->log = jitdump_sink_log(sink);
            } else if (places[i].mode == MODE_MAP) {
                sinks->map = sink;
            }
        } else {
            failed = error;
        }
    }
    if (sinks->count == 0 || (failed && options->strict)) {
        sinks_close(sinks);
        return failed ? failed : -EINVAL;
    }
    return 0;
}

void sinks_on_want(const struct sinks *sinks,
                   bool (*wanted)(void *context, enum record_log_want want), void *context)
{
    if (sinks->log) {
        record_log_on_want(sinks->log, wanted, context);
    }
    if (sinks->map) {
        perf_map_sink_on_want(sinks->map, wanted, context);
    }
}

bool sinks_stand(const struct sinks *sinks, bool all)
{
    unsigned standing = 0;
    bool settled = occupancy_settle(sinks->occupancy);
    for (unsigned i = 0; i < sinks->count; i++) {
        struct sink_stats stats;
        occupancy_stats(sinks->occupancy, i, &stats);
        standing += !stats.failed && !stats.paused;
    }
    return settled && (all ? standing == sinks->count : standing > 0);
}

void sinks_close(struct sinks *sinks)
{
    occupancy_close(sinks->occupancy);
    *sinks = (struct sinks){0};
}
