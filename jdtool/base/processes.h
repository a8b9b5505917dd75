#ifndef JD_TOOL_PROCESSES_H
#define JD_TOOL_PROCESSES_H

#include <stdbool.h>
#include <sys/types.h>

/* Calls take for every process that /proc lists, until it returns false. */
void processes_walk(bool (*take)(void *context, pid_t pid), void *context);

#endif
