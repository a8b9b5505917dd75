/* Giving up rights: what the process does that is to have none, before it reads anything. */
#ifndef JD_TOOL_CONFINE_H
#define JD_TOOL_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * For the rest of this process' life: limits of memory and time, no capabilities, nothing by its
 * name (Landlock, where the kernel has it), and the filter. Sets *listener to the descriptor by
 * which its parent hears of calls that it is to answer. 0 or a negative errno without a message:
 * the filter is not in force.
 */
int confine(uint32_t cpu_seconds, int *listener);

/*
 * What a program of others' may have that reads such data by itself, perf: at first what programs
 * need of the system, to read and to run. The rules' descriptor, to be closed; -ENOSYS: the kernel
 * has no Landlock.
 */
int confine_rules(void);

/* An open file, or a directory with what is below it, may be read besides, and run; `all`: anything
 * may be done with it. */
void confine_allow(int rules, int fd, bool all);

/*
 * In that program's process, before it is run: no capabilities but the one to see the kernel's
 * symbols, no file but by the rules, no sockets, no other process looked into. `of_others`: the
 * rules allow files that another user keeps for himself. 0 or a negative errno without a message.
 */
int confine_program(int rules, bool of_others);

#endif
