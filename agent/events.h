/*
 * JVMTI's events: what the JVM tells of its generated code, made into struct code for the session's
 * sinks.
 */
#ifndef JD_AGENT_EVENTS_H
#define JD_AGENT_EVENTS_H

#include "agent/session.h"

#include <jvmti.h>
#include <stdbool.h>

/* Gets the capabilities and sets the callbacks of a new environment. 0, or -1 after a message. */
int events_prepare(jvmtiEnv *jvmti);

/* Asks for the events, or no longer. 0, or -1 after a message. In any phase but the dead one. */
int events_enable(jvmtiEnv *jvmti, bool enable);

/* Has the JVM tell of all the code it has. 0, or -1 after a message. Live phase only. */
int events_replay(struct session *session);

#endif
