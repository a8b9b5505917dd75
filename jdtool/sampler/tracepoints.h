/* Tracepoints, a recording's own probes among them: where the kernel tells of them, and what
 * readers are to be told. */
#ifndef JD_TOOL_TRACEPOINTS_H
#define JD_TOOL_TRACEPOINTS_H

#include "jdtool/sampler/perf_pipe.h"
#include "jdtool/sampler/sampler.h"

/* Where tracefs is; mounted there, as perf does, when we may. NULL: nowhere. */
const char *tracefs_path(void);

/* What the attributes of an event call GROUP:EVENT. A negative errno: it is not there, or not for
 * us. */
int64_t tracepoint_id(const char *group, const char *event);

/* The formats of these events, without which perf does not open a recording that has some. One that
 * cannot be read is left out. */
void tracepoints_describe(struct perf_pipe *pipe, const struct sampler_event *events,
                          uint32_t count);

#endif
