/*
 * Samples that are held back until something else is known: of a thread that gave its processor up,
 * until it is back, for only then is known how long that took (of virtual threads and their
 * carriers the same); and of one whose user part the kernel records later, until that is there
 * (perf record
 * --call-graph fp,defer: one PERF_RECORD_CALLCHAIN_DEFERRED, written when the thread goes back to
 * user mode, completes all samples with its cookie).
 *
 * They are held by a number of the caller's, a thread's; what they take together has a budget.
 */
#ifndef JD_TOOL_HELD_H
#define JD_TOOL_HELD_H

#include "jdtool/perf/perf_data.h"

struct held;

/* One of them; the caller's from held_take on, to be freed by free(). */
struct held_sample {
    struct held_sample *next; /* of the same thread, the one that came after it */
    struct perf_sample *sample;
    uint64_t since; /* the sample's time at first; then, and so the weight, the caller's */
    uint64_t weight;
    size_t size; /* what it takes */
};

/* budget: bytes that may be held. NULL: no memory. */
struct held *held_new(size_t budget);
void held_free(struct held *held); /* NULL is fine */

/* Holds a copy, behind others of the thread. False: there is no room. */
bool held_add(struct held *held, uint64_t thread, const struct perf_sample *sample,
              uint64_t weight);

/* The thread's first, which stays. NULL: it has none. */
struct held_sample *held_first(const struct held *held, uint64_t thread);

/* Takes out all that the thread has. NULL: nothing. */
struct held_sample *held_take(struct held *held, uint64_t thread);

/*
 * The same for any thread of the process, or with HELD_OF_ALL of any. *from is 0 at first, and then
 * the caller's to give back: each is looked at once.
 */
#define HELD_OF_ALL UINT32_MAX
struct held_sample *held_take_next(struct held *held, uint32_t pid, uint32_t *from);

#endif
