/* The probes of jdperf record --timeline: which places of libjvm.so tell what the JVM itself does.
 */
#ifndef JD_TOOL_TIMELINE_PROBES_H
#define JD_TOOL_TIMELINE_PROBES_H

#include <stdbool.h>

/*
 * Defines GROUP:timeline at each of them (format/event_probe.h) in the libjvm.so at `path`, below
 * the directory `root` (-1: as we see it); parks: threads that park as well. 0, or a negative errno
 * after a message: there is none of them.
 */
int timeline_probes_define(const char *group, int root, const char *path, bool parks);

#endif
