/*
 * Waits of virtual threads, told to whoever has uprobes on the two functions that are called where
 * one of them gives its carrier up and where it has one again (format/event_probe.h):
 * threads=waits. At the first of these moments the thread's frames are still on the carrier's
 * stack.
 */
#ifndef JD_AGENT_VIRTUAL_WAITS_H
#define JD_AGENT_VIRTUAL_WAITS_H

#include <jvmti.h>
#include <stdbool.h>
#include <stdint.h>

/* From now on they are told, or no more. At first they are not. */
void virtual_waits_switch(bool on);

/*
 * In the event of an unmount: tells of it if the thread will come back, and does not only let
 * others run; above a limit of some by chance. `id` is its Thread.threadId(). Nothing is called in
 * the JVM but JNI's access to fields and, of a thread that is neither parking nor yielding, JVMTI's
 * GetFrameLocation.
 */
void virtual_waits_begin(jvmtiEnv *jvmti, JNIEnv *jni, jthread thread, uint64_t id);

/* In the event of a mount: tells of it where the unmount before it was told. */
void virtual_waits_end(uint64_t id);

/* ---- Threads that are waited for ---- */

/* As many wait at a time at most as have been told; in buckets, of which each is a cache line. */
#define VIRTUAL_WAITS_BITS    14
#define VIRTUAL_WAITS_BUCKETS (1 << VIRTUAL_WAITS_BITS)
#define VIRTUAL_WAITS_BUCKET  8

/* Zero one to start. Any thread may use it at any time. */
struct virtual_waits {
    _Alignas(64) _Atomic(uint64_t) ids[VIRTUAL_WAITS_BUCKETS][VIRTUAL_WAITS_BUCKET];
    _Atomic(uint32_t) costs[VIRTUAL_WAITS_BUCKETS][VIRTUAL_WAITS_BUCKET];
};

/* Keeps an id, which is not 0. Returns where to write what it cost to tell of it, in ns; NULL:
 * there is no room. */
_Atomic(uint32_t) *virtual_waits_add(struct virtual_waits *waits, uint64_t id);

/* Takes it out, and tells that cost. False: it was not there. */
bool virtual_waits_take(struct virtual_waits *waits, uint64_t id, uint32_t *cost);

#endif
