/*
 * Samples whose user part the kernel records later (perf record --call-graph fp,defer): their chain
 * ends in PERF_CONTEXT_USER_DEFERRED and a cookie, and one PERF_RECORD_CALLCHAIN_DEFERRED with the
 * same cookie, written when the thread goes back to user mode, completes all of them.
 *
 * A thread has samples of one cookie here at most: with another one the earlier record was lost.
 */
#ifndef JD_TOOL_LATE_CHAINS_H
#define JD_TOOL_LATE_CHAINS_H

#include "jdtool/perf/perf_data.h"
#include "jdtool/perf/record_queue.h"

struct late_chains;

/* One sample that was kept; the caller's from late_chains_take on, to be freed by free(). */
struct late_sample {
    struct late_sample *next; /* the one that was kept after it */
    struct queued_record queued;
    uint64_t weight; /* the caller's */
    uint64_t bytes[];
};

/* budget: bytes that may be kept. NULL: no memory. */
struct late_chains *late_chains_new(size_t budget);
void late_chains_free(struct late_chains *chains); /* NULL is fine */

/* Whether its user part comes in a record of its own; with which cookie. */
bool late_chain_awaits(const struct perf_sample *sample, uint64_t *cookie);

/* Keeps a copy of what was queued. False: there is no room, and the sample stays as it is. Samples
 * of the thread with another cookie have to be taken out first. */
bool late_chains_keep(struct late_chains *chains, uint32_t tid, uint64_t cookie,
                      const struct queued_record *queued, uint64_t weight);

/* The thread's samples, the first that was kept first, with the cookie, or with any other than it.
 * NULL: there are none. */
struct late_sample *late_chains_take(struct late_chains *chains, uint32_t tid, uint64_t cookie);
struct late_sample *late_chains_take_others(struct late_chains *chains, uint32_t tid,
                                            uint64_t cookie);

/* Those of any thread. */
struct late_sample *late_chains_take_any(struct late_chains *chains);

/*
 * The chain of a sample without the marker and with the late part's behind it; it lives until the
 * next call. Returns 0, or -ENOMEM.
 */
int late_chain_join(struct late_chains *chains, struct perf_sample *sample,
                    const struct perf_sample *part);

#endif
