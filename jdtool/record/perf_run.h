/*
 * perf record at work: its arguments, its start, when it samples, and what it says.
 */
#ifndef JD_TOOL_LIVE_PERF_RUN_H
#define JD_TOOL_LIVE_PERF_RUN_H

#include "jdtool/base/text.h"
#include "jdtool/live/child.h"

#include <stddef.h>

struct perf_run {
    struct child child;
    int (*work)(void *context); /* what does perf's work in a child instead; NULL: perf */
    void *context;              /* for it */
    int child_control;          /* its ends of both, while it starts */
    int child_ack;
    bool closes; /* work has written all, and goes on alone to close its events */
    int says;    /* its standard error, a file in memory; -1: none */
    int control, ack;
    struct words arguments;
};

#define NO_PERF ((struct perf_run){.says = -1, .control = -1, .ack = -1, .child = NO_CHILD})

/* The perf to run: PERF, or "perf". */
const char *perf_program(void);

/* Whether perf may sample the kernel: by root, by the machine's setting, or by capabilities of its
 * file. */
bool perf_sees_kernel(void);

/* At most as many samples a second as the kernel allows: it refuses events of more, and lowers this
 * itself when its interrupts took long (kernel.perf_event_max_sample_rate). */
unsigned perf_allowed_frequency(unsigned wanted);

/* Whether the machine has a counter for cycles. */
bool perf_counts_cycles(void);

/* 0, or -ENOENT after a message: there is none. */
int perf_check(void);

/*
 * Chooses what to sample on when `event` is NULL, or cycles that the machine does not count: the
 * event's name, for the caller to free; NULL: no memory. Says what is not as asked for.
 */
char *perf_choose_event(const char *event);

/* perf's -m, a size with its unit or pages, in bytes; 0: NULL. */
size_t perf_buffer_bytes(const char *buffer);

/* Says that the kernel is not sampled. */
void tell_of_no_kernel(void);

/*
 * For --proc-map-timeout, milliseconds: how long perf may take to read a process's mappings, where
 * it leaves the rest out otherwise, and with them the names of what is there. Its own 500 are not
 * enough for a JVM on a busy machine.
 */
#define PERF_MAPS_TIMEOUT "20000"

/*
 * For a recording of tasks. For events of BPF programs perf opens one more event on each task,
 * which the task's children do not inherit, and with that the kernel no longer hands a timer on
 * from a thread to the next one (inherit_task_group, perf_event_context_sched_out): threads that
 * live shorter than a period would have no sample at all.
 */
#define PERF_OF_TASKS "--no-bpf-event"

/* Whether these options of its have it sample some processors, users or groups only. */
bool perf_leaves_out(char *const *options);

/* Adds --buildid-mmap where the kernel can do that (Linux 5.12), else nothing. */
void perf_add_build_ids(struct perf_run *run);

/* Starts it with its standard output going to `out`. 0 or a negative errno after a message. */
int perf_start(struct perf_run *run, int out);

/*
 * Waits until it samples. 0; -ECHILD: it has ended instead, -EINTR: a signal has come, without a
 * message.
 */
int perf_wait_until_it_samples(struct perf_run *run, struct waiting *waiting);

/* Has it take no more samples, and waits until it does not; what it has is still to be written. */
void perf_stop_sampling(struct perf_run *run, struct waiting *waiting);

/* Asks it to end (as Ctrl-C does), and waits: the first signal to us has it hurry, after that it is
 * killed. `work` is waited for until it has written all. */
void perf_end(struct perf_run *run, struct waiting *waiting);

/* What a child has said into the file `says` (-1: none), NUL-terminated, at most 256 KiB, for the
 * caller to free. NULL: nothing, or no memory. */
char *perf_words(int says);

/* Says why it cannot sample, when it has ended for that reason. Returns an exit status. */
int perf_explain_failure(const struct perf_run *run, const char *event);

/* Passes on what it says beside its usual two lines: no space left, chunks lost, throttled. */
void perf_tell_words(const struct perf_run *run);

void perf_free(struct perf_run *run);

#endif
