/*
 * The scheduler's tracepoints, for the processes that are sampled alone: programs in the kernel
 * write what they tell of these into events of ours, one for each kind and processor
 * (switches.bpf.c). They are gone when the last process that has them open is, however it ends.
 */
#ifndef JD_TOOL_SWITCHES_H
#define JD_TOOL_SWITCHES_H

#include "jdtool/sampler/sampler.h"

struct switches;

/*
 * Loads it for the events of these options, with the numbers of processes from that map of struct
 * filter; -1: all processes are followed. Nothing is written before its events are given and
 * enabled. NULL, or why it cannot be had, in words.
 */
const char *switches_new(const struct sampler_options *options, int processes,
                         struct switches **out);
void switches_free(struct switches *switches); /* NULL is fine */

/* The map of that name; a program that walks stacks has some as well (walk/program.h). */
int switches_map(const struct switches *switches, const char *name);

/* From now on that program writes what has stacks. 0 or a negative errno. */
int switches_hand_on(const struct switches *switches, int program);

/* What is told of that on that processor is written into this event, a PERF_COUNT_SW_BPF_OUTPUT. 0
 * or a negative errno. */
int switches_output(const struct switches *switches, enum sampler_follows what, uint32_t processor,
                    int event);

/* How often a thread gave its processor up and was not followed: SWITCHES_THREADS_MAX were already,
 * or there was no memory. */
uint64_t switches_left_out(const struct switches *switches);

#endif
