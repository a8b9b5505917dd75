/* A sink that writes resolved samples into a file (saved_format.h), as they come. */
#ifndef JD_TOOL_SAVED_SINK_H
#define JD_TOOL_SAVED_SINK_H

#include "jdtool/sinks/sample_sink.h"

/* path is kept, not copied. 0 or a negative errno after a message. */
int saved_sink_new(const char *path, struct sample_sink **out);

#endif
