/*
 * Allocations and contended monitors, told to whoever has a uprobe on the functions that are called
 * for each (format/event_probe.h). Nothing of it is asked of the JVM unless a session's options do.
 */
#ifndef JD_AGENT_PROBES_H
#define JD_AGENT_PROBES_H

#include "agent/session/session.h"

#include <jvmti.h>
#include <stdint.h>

/* Puts the callbacks in. */
void probes_callbacks(jvmtiEventCallbacks *callbacks);

/*
 * Gets the capabilities that the session's options need, at the JVM's start or later, and asks for
 * the events. What the JVM does not give costs those events, after a message, and nothing else.
 */
void probes_enable(const struct session *session);

/* Finds out what only a thread of the JVM's can, once the JVM is live. */
void probes_begin(struct session *session, JNIEnv *jni);

/* Asks for none any more, where the session's options had. Does nothing in phases that do not allow
 * it. */
void probes_stop(const struct session *session);

/* Says whose allocations this thread's are from now on: `ours`, which are not told, or the
 * program's. */
void probes_at_work(bool ours);

/* ---- The functions ---- */

typedef void probe_function(uint64_t value, uint64_t base, uint32_t scale, const char *name);

__attribute__((visibility("protected"))) void
jdagent_event_alloc(uint64_t value, uint64_t base, uint32_t scale, const char *name, uint32_t far);
__attribute__((visibility("protected"))) probe_function jdagent_event_lock;
__attribute__((visibility("protected"))) probe_function jdagent_event_unmount;
__attribute__((visibility("protected"))) probe_function jdagent_event_mount;

/*
 * Whether from a function's frame on to the root of its thread's stack there is more than
 * EVENT_STACK_NEAR holds. thread: pthread_self; gap: from a thread's root up to that.
 */
bool probe_stack_is_far(uintptr_t thread, uintptr_t gap, uintptr_t frame);

/* ---- A limit on how many are told ---- */

/*
 * Lets events through as long as they are few; then one of `scale`, by chance, so that what is told
 * times its scale is what there was. Zero one to start. Any thread may ask at any time.
 */
struct probe_limit {
    _Atomic(uint64_t) window;
    _Atomic(uint32_t) told; /* in this window */
    _Atomic(uint32_t) scale;
    _Atomic(uint64_t) asked; /* ever; what chance is made of */
};

/* So many are told in a window of so many ns. */
#define PROBE_LIMIT_WINDOW UINT64_C(100000000)
#define PROBE_LIMIT_TOLD   500

/* Whether an event at this time is to be told, and the scale then. */
bool probe_limit_passes(struct probe_limit *limit, uint64_t now, uint32_t *scale);

/* Whether a wait is told: always from `always` on, else with the probability duration/always. */
bool probe_wait_passes(uint64_t duration, uint64_t always, uint64_t chance);

#endif
