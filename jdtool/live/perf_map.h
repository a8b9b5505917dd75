/*
 * Perf maps, /tmp/perf-PID.map: the one that a JVM's agent writes, in the JVM's own /tmp and under
 * its own pid, and the one on this side, where perf, bcc and bpftrace look for it.
 */
#ifndef JD_TOOL_LIVE_PERF_MAP_H
#define JD_TOOL_LIVE_PERF_MAP_H

#include "jdtool/live/target.h"
#include "jdtool/live/wait.h"

/* Whether the JVM's map is elsewhere than where it is looked for. */
bool perf_map_is_elsewhere(const struct target *target);

/* Brings the JVM's map to this side. 0 or a negative errno after a message; -ENOENT without one:
 * there is none yet. */
int perf_map_publish(const struct target *target);

/* Makes the map on this side of a dump of the JVM's (its path as the JVM sees it). 0 or a negative
 * errno after a message. */
int perf_map_from_dump(const struct target *target, const char *dump, struct waiting *waiting);

/* How many names are in the map on this side, and its path. Negative errno: there is none. */
long perf_map_count(const struct target *target, char path[64]);

#endif
