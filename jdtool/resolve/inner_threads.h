/*
 * The threads of a process in a container, as it numbers them itself: perf records the numbers that
 * its own namespace of pids gives, and the journal of threads has the process' own. /proc knows
 * both while the thread lives, so a thread is asked for when it is noticed, and when it is first
 * met in a sample; what ended before has no number here.
 */
#ifndef JD_TOOL_INNER_THREADS_H
#define JD_TOOL_INNER_THREADS_H

#include "jdtool/base/numbered.h"

#include <stdbool.h>
#include <stdint.h>

/* Of one process; inner_threads_init starts it. A zero one may be freed. */
struct inner_threads {
    struct numbered list;
    uint32_t pid;       /* as perf sees the process */
    uint32_t inner_pid; /* as it sees itself; 0: as perf does, and nobody has to be asked */
    bool told;          /* that it is gone */
};

void inner_threads_init(struct inner_threads *threads, uint32_t pid, uint32_t inner_pid);
void inner_threads_free(struct inner_threads *threads);

/* A thread with that tid has just begun, as is read; the time of that need not have come. 0 or
 * -ENOMEM. */
int inner_threads_notice(struct inner_threads *threads, uint32_t tid);

/*
 * The number that the process itself has for a thread of its; 0: not to be had. number: which of
 * the threads that had this tid one after the other it is (process_table_thread_number); time: on
 * CLOCK_MONOTONIC, when it ran: one that began later is another. 0 or -ENOMEM.
 */
int inner_threads_tid(struct inner_threads *threads, uint32_t tid, uint32_t number, uint64_t time,
                      uint32_t *out);

#endif
