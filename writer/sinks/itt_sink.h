/*
 * The sink that reports code to a collector of Intel's JIT Profiling API (format/itt.h), such as
 * VTune's.
 *
 * Each piece of code is one METHOD_LOAD_FINISHED_V2, followed by an INLINE_LOAD_FINISHED for each
 * region of inlined code (regions.h), parents before children, every one under an id of its own: a
 * call whose code is scattered shows as several regions, since the API's regions have no gaps. A
 * line table tells the lines of the region's own method: where more was inlined, that of the call.
 *
 * V3 of the load event exists for code of another architecture than the process, which no JVM
 * generates. The API has no event for moved code and takes none without bytes: a move is an unload,
 * an empty function is counted as dropped.
 */
#ifndef JD_WRITER_ITT_SINK_H
#define JD_WRITER_ITT_SINK_H

#include "writer/sinks/sink.h"

struct itt_sink_options {
    const char *method_module; /* the module that methods are shown in; NULL: the collector's own */
    const char *stub_module;   /* the same for code without a method */
};

/*
 * Loads the collector that the environment names and starts it. On success *out is the sink and 0
 * is returned, else a negative errno after one message: -ENOENT when no collector is named,
 * -ELIBBAD when it cannot be loaded, -EBUSY when it says that it does not collect. The strings of
 * the options have to live as long as the sink.
 */
int itt_sink_open(const struct itt_sink_options *options, struct sink **out);

#endif
