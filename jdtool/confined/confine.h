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

/*
 * Before a program of others' is run that reads such data by itself, perf: no capabilities but the
 * one to see the kernel's symbols, nothing is changed but below the directory `place`, no sockets,
 * no other process looked into. It reads what its user may read, and has nowhere to bring it. 0 or
 * a negative errno without a message.
 */
int confine_program(int place);

/* The calls that the parent answers; ends with -1. */
extern const int confine_asked[];

#endif
