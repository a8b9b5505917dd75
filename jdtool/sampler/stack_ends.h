/*
 * Where stacks end: the kernel's copy of a stack runs on into whatever is mapped above it, of which
 * nothing is wanted. A stack ends where its mapping does, by /proc/PID/maps as it was read last,
 * which is once a second at most. Of threads that began since then nothing is known: their stacks
 * may lie where other things lay.
 */
#ifndef JD_TOOL_SAMPLER_STACK_ENDS_H
#define JD_TOOL_SAMPLER_STACK_ENDS_H

#include "jdtool/base/numbered.h"

#include <stdint.h>

struct stack_ends {
    struct numbered processes;
    struct numbered threads; /* that began while we looked */
    uint64_t forgot;         /* until then; 0: none was */
};

void stack_ends_new(struct stack_ends *ends);
void stack_ends_free(struct stack_ends *ends);

/* A thread has begun, a process runs another program: at that time, in ns. */
void stack_ends_thread(struct stack_ends *ends, uint32_t tid, uint64_t time);
void stack_ends_forget(struct stack_ends *ends, uint32_t pid);

/* The end of the stack in which the thread's stack pointer lies; UINT64_MAX: not known. `time`: of
 * the sample, on CLOCK_MONOTONIC. */
uint64_t stack_ends_of(struct stack_ends *ends, uint32_t pid, uint32_t tid, uint64_t sp,
                       uint64_t time);

#endif
