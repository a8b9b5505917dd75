/*
 * JVMTI's events: what the JVM tells of its generated code, made into struct code for the session's
 * sinks.
 */
#ifndef JD_AGENT_EVENTS_H
#define JD_AGENT_EVENTS_H

#include "agent/session/session.h"

#include <jvmti.h>

/*
 * Sets the callbacks of a new environment; `live` is called at the end of VMInit, `death` in
 * VMDeath. 0, or a negative errno after a message.
 */
int events_prepare(jvmtiEnv *jvmti, void (*live)(void), void (*death)(void));

/* The JVM's major version, 8, 17, 25…; INT_MAX when it does not tell. */
int events_jvm_major(jvmtiEnv *jvmti);

/* Gets the capabilities that a session needs, before anything is asked of the JVM for it. 0, or a
 * negative errno after a message. At the JVM's start or in its live phase. */
int events_acquire(jvmtiEnv *jvmti);

/*
 * Asks for the events, with `classes` for those of classes that are prepared, too. 0, or a negative
 * errno after a message. At the JVM's start or in its live phase.
 */
int events_enable(jvmtiEnv *jvmti, bool classes);

/* Asks for none any more. On a thread of the JVM's; does nothing in phases that do not allow it. */
void events_disable(jvmtiEnv *jvmti);

/* Gives all capabilities back, the probes' as well: some only one agent can have. Where
 * events_disable can be called, and after it. */
void events_relinquish(jvmtiEnv *jvmti);

/* Has the JVM tell of all the code it has; `patient`: this thread can wait for a slow disk.
 * -EBUSY: another thread is at it, and nothing was done. 0, or another negative errno after a
 * message. Live phase only. */
int events_replay(struct session *session, bool patient);

/*
 * The same for stubs alone, at a session's end: HotSpot drops the event of a vtable or itable stub
 * that is made where it could not post it (JvmtiExport::post_dynamic_code_generated_while_holding_
 * locks), and nothing else tells of it. Does nothing in a phase that does not allow it.
 */
void events_replay_stubs(struct session *session);

#endif
