/*
 * The JVM's own log of its pauses (-Xlog, or the agent's log=on), made into marks: safepoints with
 * their operation, and collections. Its lines begin with "[NANOSECONDSns][TID][TAGS]", on
 * CLOCK_MONOTONIC; others are passed over.
 */
#ifndef JD_TOOL_JVM_LOG_H
#define JD_TOOL_JVM_LOG_H

#include "jdtool/events/mark.h"

#include <stdio.h>

/* So long a line may be; the rest of a longer one is passed over. */
#define JVM_LOG_LINE_MAX 1024

/* One line's mark, which is without a thread, and that thread as the JVM numbers it. `line` is
 * changed, and what the mark points to lies in it. False: the line tells of nothing. */
bool jvm_log_line(char *line, struct resolved_mark *mark, uint32_t *tid);

/* Calls `take` with each mark of the file, from where it stands. 0 or what `take` returned. */
int jvm_log_read(FILE *file,
                 int (*take)(void *context, uint32_t tid, const struct resolved_mark *mark),
                 void *context);

#endif
