/*
 * The sinks get samples from a thread of their own, while the next ones are resolved:
 *
 *   resolver: [samples] ── pass ──> thread: sink, sink, ...
 *             [samples] <── done ──'
 *
 * There are two lists: one is filled while the other is worked on. What each sink gets, and in
 * which order, is the same as without the thread.
 *
 * Samples point to what others own. So whoever changes or frees something that samples of the last
 * two lists point to calls sink_thread_wait before:
 *
 *     1. Records, marks and code are given by the caller, and the stack table is cleared, when
 *        the thread has nothing to do.
 *     2. Nodes and locations are added to the table meanwhile, so what is there does not move
 *        (stack_table_reserve). The thread sees the table as it was when the list was passed.
 *     3. What `recorded` points to lives until the list behind its own has been passed.
 */
#ifndef JD_TOOL_SINK_THREAD_H
#define JD_TOOL_SINK_THREAD_H

#include "jdtool/resolve/sample_sink.h"

struct sink_thread;

/* Borrows the sinks, which have begun. NULL: none can be had, they are then given samples by the
 * caller. */
struct sink_thread *sink_thread_new(struct sample_sink *const *sinks, uint32_t count);

/* Waits as below, and frees it. NULL is fine: 0. */
int sink_thread_free(struct sink_thread *thread);

/* All of these: 0, or what the first sink that failed returned. */

/* Puts a sample, without branches, into the list. */
int sink_thread_give(struct sink_thread *thread, const struct resolved_sample *sample);

/* Passes the list when the one before is done. */
int sink_thread_pass(struct sink_thread *thread);

/* The same, and waits until the sinks have had all. */
int sink_thread_wait(struct sink_thread *thread);

#endif
