/*
 * Who runs on which thread, told to the journal (agent/threads/journal.h): the names of threads,
 * and the virtual threads that they carry. Nothing of it is asked of the JVM unless threads=on.
 *
 * A name is read when a thread starts or is found there, when it ends and when the session does.
 * A rename between is not an event of JVMTI's: the kernel is told the first 15 bytes of it when a
 * thread renames itself, which perf records, and the whole name is what was read next. Of a virtual
 * thread the name is read when it is first seen to be mounted.
 */
#ifndef JD_AGENT_IDENTITY_H
#define JD_AGENT_IDENTITY_H

#include "agent/session/session.h"

#include <jvmti.h>

/* Puts the callbacks in. */
void identity_callbacks(jvmtiEventCallbacks *callbacks);

/* Opens the journal beside the session's dump, before events are asked for. 0, or a negative errno
 * after a message; without it the profile is still worth having. */
int identity_open(struct session *session);

/*
 * In the live phase, on a thread of the JVM's: asks for the events and tells of the threads that
 * are there. What the JVM does not give costs that part, after a message. Does nothing without a
 * journal, and when it was called before in this session.
 */
void identity_begin(struct session *session, JNIEnv *jni);

/* On a thread of the JVM's: reads all names once more, and asks for no events any more. */
void identity_end(struct session *session, JNIEnv *jni);

/* Closes the journal, where it is the session's. On any thread. */
void identity_close(struct session *session);

#endif
