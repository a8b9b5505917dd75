/* An occupancy with one sink. Each returns what opening the sink returned. */
#ifndef JD_TESTS_ONE_SINK_H
#define JD_TESTS_ONE_SINK_H

#include "writer/occupancy/occupancy.h"
#include "writer/sinks/itt_sink.h"
#include "writer/sinks/jitdump_sink.h"
#include "writer/sinks/perf_map_sink.h"

#include <errno.h>

static inline int one_sink_opened(int error, struct occupancy *occupancy, struct sink *sink,
                                  struct occupancy **out)
{
    if (error) {
        occupancy_close(occupancy);
        return error;
    }
    occupancy_add(occupancy, sink);
    *out = occupancy;
    return 0;
}

static inline int open_jitdump(const struct jitdump_sink_options *options, struct occupancy **out)
{
    struct occupancy *occupancy;
    struct sink *sink = NULL;
    if (occupancy_new(options->log.tsc, &occupancy) != 0) {
        return -ENOMEM;
    }
    struct jitdump_sink_options with_start = *options;
    with_start.log.start = occupancy_start(occupancy);
    int error = jitdump_sink_open(&with_start, &sink);
    return one_sink_opened(error, occupancy, sink, out);
}

static inline int open_perf_map(const struct perf_map_sink_options *options, struct occupancy **out)
{
    struct occupancy *occupancy;
    struct sink *sink = NULL;
    if (occupancy_new(false, &occupancy) != 0) {
        return -ENOMEM;
    }
    int error = perf_map_sink_open(options, &sink);
    return one_sink_opened(error, occupancy, sink, out);
}

static inline int open_itt(const struct itt_sink_options *options, struct occupancy **out)
{
    struct occupancy *occupancy;
    struct sink *sink = NULL;
    if (occupancy_new(false, &occupancy) != 0) {
        return -ENOMEM;
    }
    int error = itt_sink_open(options, &sink);
    return one_sink_opened(error, occupancy, sink, out);
}

#endif
