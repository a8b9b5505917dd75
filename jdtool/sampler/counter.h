/* The events that the kernel counts itself, by perf's names ("perf list"): what is sampled. */
#ifndef JD_TOOL_SAMPLER_COUNTER_H
#define JD_TOOL_SAMPLER_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

struct counter {
    const char *name; /* as it was given */
    bool is_known;    /* false: only what it counts may be */
    uint32_t type;    /* of perf_event_attr, as the config */
    uint64_t config;
    bool exclude_user, exclude_kernel;
    unsigned precise; /* at most: see precise_ip of perf_event_open(2) */
};

/*
 * "cycles", "page-faults:u", "LLC-load-misses", "r01c2": generic, cache, raw and software events,
 * with perf's modifiers u, k and p. `name` is borrowed. False, as `is_known`: another event, which
 * perf may know: a tracepoint, one of a certain processor, or several.
 */
bool counter_parse(const char *name, struct counter *out);

/* The processor's cycles, with whatever modifiers. */
bool counter_is_cycles(const struct counter *counter);

/* The timer, which is there without a counter of the processor's. */
bool counter_is_timer(const struct counter *counter);

/*
 * Page faults, context switches: what the kernel's software counts, and the timer is not. They come
 * in bursts, for which the kernel's frequency is no measure: with sample_freq the periods that
 * samples have add up to many times what there was.
 */
bool counter_is_software(const struct counter *counter);

/*
 * Whether samples of the timer, one each `period` of `second` parts of a second, fall on few
 * moments between the kernel's ticks. Threads are switched and woken with the tick, so what they
 * run then is what is seen: with 500 Hz beside other programs 15 to 30 % more time than there was.
 */
bool counter_is_in_step(const struct counter *counter, uint64_t period, uint64_t second);

/* The next lower rate that is not, Hz; `wanted`: it is not, or is so low that chance is more. */
unsigned counter_frequency(const struct counter *counter, unsigned wanted);

#endif
