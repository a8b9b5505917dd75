/*
 * The sink that writes a perf map: a line "START SIZE NAME" for each piece of code, bare hex, which
 * perf, bcc and bpftrace read from /tmp/perf-PID.map.
 */
#ifndef JD_WRITER_PERF_MAP_SINK_H
#define JD_WRITER_PERF_MAP_SINK_H

#include "writer/sink.h"

/* How inlined code shows in the map (perf-map-agent's names for it). */
enum perf_map_unfold {
    UNFOLD_OFF,    /* one line for each piece of code */
    UNFOLD_LEAF,   /* a line for each range, named after the innermost method */
    UNFOLD_ALL,    /* the same, named with the whole chain: outer->inner->innermost */
    UNFOLD_SIMPLE, /* the innermost method "in" the compiled one: inner in outer */
};

struct perf_map_sink_options {
    const char *path; /* NULL: /tmp/perf-PID.map */
    enum perf_map_unfold unfold;
};

/* Creates the map under the same rules as a dump (jitdump_sink.h). 0 or a negative errno. */
int perf_map_sink_open(const struct perf_map_sink_options *options, struct sink **out);

#endif
