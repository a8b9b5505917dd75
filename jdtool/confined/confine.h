/* Giving up rights: what the process does that is to have none, before it reads anything. */
#ifndef JD_TOOL_CONFINE_H
#define JD_TOOL_CONFINE_H

#include <stdint.h>

/*
 * For the rest of this process' life: limits of memory and time, no capabilities, nothing by its
 * name (Landlock, where the kernel has it), and the filter. Sets *listener to the descriptor by
 * which its parent hears of calls that it is to answer. 0 or a negative errno without a message:
 * the filter is not in force.
 */
int confine(uint32_t cpu_seconds, int *listener);

/* The calls that the parent answers; ends with -1. */
extern const int confine_asked[];

#endif
