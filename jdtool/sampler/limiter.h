/*
 * Events of uprobes that may come without bound (sampler_event::is_limited) are thinned in the
 * kernel, by a program in the place of the filter's (limit.bpf.h). It is gone when the last process
 * that has it open is, however it ends.
 */
#ifndef JD_TOOL_LIMITER_H
#define JD_TOOL_LIMITER_H

#include "jdtool/sampler/filter.h"

#include <stdint.h>

struct limiter;

/* So many of an event are kept a second, of all processors together, but on each this many. */
#define LIMIT_SECOND    5000
#define LIMIT_PROCESSOR 200

/* Loads it, and has the filter put it on uprobes. NULL, or why it cannot be had, in words: then the
 * filter is as it was. */
const char *limiter_new(struct filter *filter, struct limiter **out);
void limiter_free(struct limiter *limiter); /* NULL is fine */

/* The map of that name, which a program that walks stacks has as well (walk/program.h). */
int limiter_map(const struct limiter *limiter, const char *name);

/* Weights, and what is walked, on that processor are written into this event, a
 * PERF_COUNT_SW_BPF_OUTPUT. 0 or a negative errno. */
int limiter_output(const struct limiter *limiter, uint32_t processor, int event);

#endif
