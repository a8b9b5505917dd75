/*
 * Tells whether a JVM had DebugNonSafepoints off: then HotSpot keeps lines and inlined methods for
 * safepoints only, and a sample between two of them gets those of the next one.
 */
#ifndef JD_TOOL_SAFEPOINT_LINES_H
#define JD_TOOL_SAFEPOINT_LINES_H

#include "jdtool/jitdump/code_index.h"

/*
 * True when the code that was there first has lines at calls only. False, too, when the dump does
 * not tell enough (little code, no trailers, a machine we do not know). A dump that cannot be read
 * gives false after a message.
 */
bool has_lines_at_safepoints_only(struct code_index *index);

#endif
