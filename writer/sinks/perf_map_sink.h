/*
 * The sink that writes a perf map: a line "START SIZE NAME" for each piece of code, bare hex, which
 * perf, bcc and bpftrace read from /tmp/perf-PID.map.
 */
#ifndef JD_WRITER_PERF_MAP_SINK_H
#define JD_WRITER_PERF_MAP_SINK_H

#include "writer/sinks/perf_map_log.h"
#include "writer/sinks/sink.h"
#include "writer/sinks/unfold.h"

struct perf_map_sink_options {
    struct perf_map_log_options log; /* path NULL: /tmp/perf-PID.map */
    struct unfold_style style;       /* zeroed: each piece of code once, under its own name */
};

/* Creates the map under the same rules as a dump (jitdump_sink.h). 0 or a negative errno. */
int perf_map_sink_open(const struct perf_map_sink_options *options, struct sink **out);

/* As record_log_on_want. */
void perf_map_sink_on_want(struct sink *sink,
                           bool (*wanted)(void *context, enum record_log_want want), void *context);

#endif
