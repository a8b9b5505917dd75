/*
 * Events on threads, for who may not sample processors: those of the processes' threads, and by
 * inheritance all that these start. An inherited event begins with a whole period, so a thread that
 * lives for a few periods has all its samples but the first, and one that is shorter has none:
 * hence the sampler asks for more samples than are wanted, and gives on some (turn.h).
 *
 * A processor's ring belongs to an event of our own process: one on a thread would end with it.
 */
#ifndef JD_TOOL_SAMPLER_THREADS_H
#define JD_TOOL_SAMPLER_THREADS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct threads {
    int *events;
    uint32_t count;
    uint32_t room;
};

/* Whether one's own threads may be sampled, in user space alone or in the kernel as well. */
bool threads_may_be_sampled(bool in_kernel);

/*
 * Opens an event on each thread that a process has now, on that processor; `output` is the event
 * with the ring. One that is started meanwhile by a thread that comes later in the list is missed,
 * and so are its own. 0 or a negative errno; a process or a thread that has ended is no error.
 */
int threads_add(struct threads *threads, pid_t process, int processor,
                const struct perf_event_attr *attr, int output);

/* How many samples they have lost, where the kernel counts them (ring_lost). */
uint64_t threads_lost(const struct threads *threads);

/* They sample no more. */
void threads_disable(const struct threads *threads);
void threads_free(struct threads *threads);

#endif
