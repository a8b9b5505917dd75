/*
 * Samples taken from the kernel's rings without perf: one event a processor, filtered by process
 * (filter.h), and what processes map, fork and are called (the side-band) in rings of its own,
 * which stacks cannot push out. What leaves is what perf record would have written into a pipe,
 * with the copies of stacks cut where stacks end.
 *
 * Events of processors see every thread alike, however short it lives; events on tasks, which perf
 * opens for a process, do not: an inherited one begins with a whole period.
 */
#ifndef JD_TOOL_SAMPLER_H
#define JD_TOOL_SAMPLER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct walker;

struct sampler_options {
    const pid_t *processes; /* these, and what they fork from then on; NULL: all of the machine */
    size_t process_count;
    int more; /* the numbers of further processes come from this pipe, as pid_t; 0: none do */
    bool counts_cycles;    /* by the hardware; else by the timer cpu-clock */
    unsigned frequency;    /* samples a second and processor */
    unsigned stack_size;   /* bytes of stack copied, a multiple of 8; 0: frame pointers */
    struct walker *walker; /* walks stacks, of which those in doubt are copied; NULL: all are */
    size_t buffer;         /* bytes of each processor's ring; 0: what fits */
    int out;               /* where the recording goes */
    int begun;             /* a byte is written there when it samples, and when it no longer does */
    char *const *command;  /* what the recording says that it was made by */
};

/* Whether samples of those processes (NULL: of the whole machine) can be taken so: NULL, or why
 * not, in words. */
const char *sampler_lacks(const pid_t *processes, size_t count);

/*
 * Samples until SIGINT, SIGTERM, SIGHUP or SIGQUIT comes, which the caller has blocked, or until
 * the reader has gone. Meant for a process of its own. 0 or a negative errno after a message; where
 * it cannot sample nothing was written to `out`.
 */
int sampler_run(const struct sampler_options *options);

#endif
