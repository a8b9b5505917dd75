/*
 * Threads that wait: the sample that a thread left when it gave its processor up is kept until it
 * is back, for only then is known how long that took. Virtual threads and their carriers are the
 * same.
 *
 * A thread has one sample here at most. What they take together has a budget; beyond it waits go
 * untold, which is counted.
 */
#ifndef JD_TOOL_WAITS_H
#define JD_TOOL_WAITS_H

#include "jdtool/perf/record_queue.h"

struct waits;

/* budget: bytes that may be kept. NULL: no memory. */
struct waits *waits_new(size_t budget);
void waits_free(struct waits *waits); /* NULL is fine */

/*
 * Keeps a copy of what was queued for the thread, in place of an earlier one (whose return was
 * lost). Returns where the bytes are now, aligned to 16, for the caller to mend pointers among
 * them; NULL: there is no room, counted, and nothing is kept.
 */
void *waits_add(struct waits *waits, uint64_t thread, const struct queued_record *queued);

/* Takes out what is kept for the thread; it lives until the next call. False: nothing is. */
bool waits_take(struct waits *waits, uint64_t thread, struct queued_record *queued);

/*
 * The same for any thread of the process, or with WAITS_OF_ALL of any. *from is 0 at first, and
 * then the caller's to give back: each is looked at once.
 */
#define WAITS_OF_ALL UINT32_MAX
bool waits_take_next(struct waits *waits, uint32_t pid, uint32_t *from,
                     struct queued_record *queued);

/* Waits that are not told: without room, or of threads whose return was lost. */
uint64_t waits_lost(const struct waits *waits);

#endif
