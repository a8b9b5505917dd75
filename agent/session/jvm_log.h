/*
 * The JVM's own log of its pauses, jit-PID.log beside the dump: log=on. It is for where probes on
 * libjvm.so are not to be had, needs no rights, and tells less.
 *
 * The JVM is asked with its diagnostic command VM.log, from within: so the session that asked for
 * the log is the one that takes it back, however that ends. JDK 9 and later.
 */
#ifndef JD_AGENT_JVM_LOG_H
#define JD_AGENT_JVM_LOG_H

#include "agent/session/session.h"

#include <jvmti.h>

/* In the live phase, on a thread of the JVM's: has it log, where the session's options say so.
 * What it does not give is told, and costs the log alone. */
void jvm_log_begin(struct session *session, JNIEnv *jni);

/* On a thread of the JVM's: has it log no more, where it does. */
void jvm_log_end(struct session *session, JNIEnv *jni);

#endif
