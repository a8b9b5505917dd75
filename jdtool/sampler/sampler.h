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

#include "format/event_probe.h"
#include "jdtool/sampler/counter.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct walker;

/* What of the scheduler an event tells (switches.h). */
enum sampler_follows {
    FOLLOWS_NOTHING,
    FOLLOWS_BLOCKED,   /* a thread waits for something from here on */
    FOLLOWS_PREEMPTED, /* for a processor; without stack. And who has one again is told */
    FOLLOWS_WAKING,    /* a thread wakes another one */
    FOLLOWS_WOKEN,     /* one that waits is woken, by whomever */
};

/* A tracepoint that is recorded beside the clock, each time: a probe of the recording's own, or one
 * of the scheduler's. */
struct sampler_event {
    const char *group;
    const char *event;
    bool has_stack;
    unsigned stack_size; /* as below, of its own */
    const char *filter;  /* the kernel's, by the event's fields; NULL: none. Of the scheduler's
                            events it is for perf, and this for our sampler: */
    enum sampler_follows follows;
    enum probe_arguments arguments; /* that a probe fetches */
};

#define SAMPLER_EVENTS_MAX 15

struct sampler_options {
    const pid_t *processes; /* these, and what they fork from then on; NULL: all of the machine */
    size_t process_count;
    int more; /* the numbers of further processes come from this pipe, as pid_t; 0: none do */
    bool is_for_each;    /* not what they fork; others may be added and left out while it samples */
    bool reads_no_files; /* mapped files are told by device and inode, not by build-id */
    bool is_held;        /* the processes are about to exec: what they map until then, by path */
    struct counter event;
    unsigned frequency;  /* samples a second and processor, as the kernel allows (perf_run.h) */
    unsigned period;     /* instead: one sample every so many events; 0: by the frequency */
    unsigned by_thread;  /* events on threads of `processes` (threads.h), which sample so many times
                            as often, of which one is given on; 0: events of processors */
    bool is_user_alone;  /* the kernel is not sampled */
    unsigned stack_size; /* bytes of stack copied, a multiple of 8; 0: frame pointers */
    const struct sampler_event *events;
    uint32_t event_count;
    struct walker *walker; /* walks stacks, of which those in doubt are copied; NULL: all are */
    size_t buffer;         /* bytes of each processor's ring; 0: what fits */
    int out;               /* where the recording goes */
    int go;    /* it samples when something can be read there, and is ready by then; 0: at once */
    int begun; /* a byte is written there when it samples, and when it no longer does */
    char *const *command; /* what the recording says that it was made by */
};

/* Whether samples of those processes (NULL: of the whole machine) can be taken so: NULL, or why
 * not, in words. */
const char *sampler_lacks(const pid_t *processes, size_t count);

/* The same by events on threads. */
const char *sampler_lacks_by_thread(const pid_t *processes, size_t count);

/* Whether what threads do in the kernel may be sampled, which it may where processors may be. */
bool sampler_sees_kernel(void);

/*
 * Samples until SIGINT, SIGTERM, SIGHUP or SIGQUIT comes, which the caller has blocked, or until
 * the reader has gone. Meant for a process of its own. 0 or a negative errno after a message; where
 * it cannot sample nothing was written to `out`.
 */
int sampler_run(const struct sampler_options *options);

/* ---- In a process that does other things, too ----
 *
 * sampler_new, sampler_begin; then sampler_turn whenever a descriptor of its is readable, and some
 * times a second; sampler_stop, turns until sampler_waiting is 0, sampler_free. `out`, `go` and
 * `begun` of the options are not used. Nothing here waits. All that is not void: 0 or a negative
 * errno.
 */
struct sampler;

/* Opens the events; nothing is sampled. Messages as of sampler_run. */
int sampler_new(const struct sampler_options *options, struct sampler **out);
void sampler_free(struct sampler *sampler); /* NULL is fine */

/* Begins a recording there, anew when another had begun: whoever reads that one is forgotten. It
 * begins with all that is sampled. -1: what is sampled is dropped. */
int sampler_begin(struct sampler *sampler, int out);

/* A process is sampled from now on, and told of; or no longer. Without a message. */
int sampler_add(struct sampler *sampler, pid_t process);
int sampler_remove(struct sampler *sampler, pid_t process);

/* See turn_thin_process. Without a message. */
int sampler_thin(struct sampler *sampler, pid_t process, uint32_t one_in);

/* Fills in what is to be polled; `list` has room for sampler_descriptors_max. Returns how many. */
uint32_t sampler_descriptors(const struct sampler *sampler, struct pollfd *list);
uint32_t sampler_descriptors_max(const struct sampler *sampler);

/* Gives on what was sampled. -EPIPE: nobody reads it any more. */
int sampler_turn(struct sampler *sampler);

/* Nothing is sampled from here on; and how many bytes have not left yet. */
void sampler_stop(struct sampler *sampler);
size_t sampler_waiting(const struct sampler *sampler);

#endif
