#include "agent/sinks.h"

#include "agent/dump_directory.h"
#include "writer/itt_sink.h"
#include "writer/jitdump_sink.h"
#include "writer/perf_map_sink.h"

#include <unistd.h>

static int open_jitdump(const struct options *options, struct sink **out)
{
    char directory[PATH_MAX];
    int fd = dump_directory_make(options->dir, directory);
    if (fd < 0) {
        return -1;
    }
    const struct jitdump_sink_options sink = {
        .directory = directory,
        .directory_fd = fd,
        .tsc = options->tsc,
        .samply = options->samply,
        .source_path = options->source_path[0] ? options->source_path : NULL,
        .no_debug_info = !options->lines,
        .max_bytes = options->max_bytes,
    };
    int error = jitdump_sink_open(&sink, out);
    close(fd);
    return error;
}

static int open_map(const struct options *options, struct sink **out)
{
    const struct perf_map_sink_options sink = {.style = options->unfold};
    return perf_map_sink_open(&sink, out);
}

static int open_itt(const struct options *options, struct sink **out)
{
    (void)options;
    const struct itt_sink_options sink = {.method_module = "Java", .stub_module = "JVM"};
    return itt_sink_open(&sink, out);
}

/* A new place is a line here and a word in options.c. */
static const struct {
    enum mode mode;
    const char *name;
    int (*open)(const struct options *options, struct sink **out);
} places[] = {
    {MODE_JITDUMP, "jitdump", open_jitdump},
    {MODE_MAP, "map", open_map},
    {MODE_ITT, "itt", open_itt},
};
_Static_assert(sizeof(places) / sizeof(*places) <= SINKS_MAX, "room for every sink");

int sinks_open(struct sinks *sinks, const struct options *options)
{
    *sinks = (struct sinks){0};
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        if (!(options->modes & places[i].mode)) {
            continue;
        }
        if (places[i].open(options, &sinks->sinks[sinks->count]) == 0) {
            sinks->names[sinks->count++] = places[i].name;
        } else if (options->strict) {
            sinks_close(sinks);
            return -1;
        }
    }
    return sinks->count > 0 ? 0 : -1;
}

static unsigned count_failed(const struct sinks *sinks)
{
    unsigned failed = 0;
    for (unsigned i = 0; i < sinks->count; i++) {
        struct sink_stats stats;
        sink_stats(sinks->sinks[i], &stats);
        failed += stats.failed;
    }
    return failed;
}

bool sinks_any_failed(const struct sinks *sinks)
{
    return count_failed(sinks) > 0;
}

/* After an error: whether there is still one that works. */
static bool any_works(const struct sinks *sinks)
{
    return count_failed(sinks) < sinks->count;
}

bool sinks_load(struct sinks *sinks, const struct code *code)
{
    int error = 0;
    for (unsigned i = 0; i < sinks->count; i++) {
        error |= sink_load(sinks->sinks[i], code);
    }
    return !error || any_works(sinks);
}

bool sinks_unload(struct sinks *sinks, uint64_t address)
{
    int error = 0;
    for (unsigned i = 0; i < sinks->count; i++) {
        error |= sink_unload(sinks->sinks[i], address);
    }
    return !error || any_works(sinks);
}

void sinks_swept(struct sinks *sinks)
{
    for (unsigned i = 0; i < sinks->count; i++) {
        sink_swept(sinks->sinks[i]);
    }
}

void sinks_close(struct sinks *sinks)
{
    for (unsigned i = 0; i < sinks->count; i++) {
        sink_close(sinks->sinks[i]);
    }
    sinks->count = 0;
}
