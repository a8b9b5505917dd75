/*
 * Asks the JVM about one method.
 */
#ifndef JD_AGENT_METHOD_FETCH_H
#define JD_AGENT_METHOD_FETCH_H

#include "agent/java_method.h"

#include <jvmti.h>

/* The JVM's answer, in its own memory. */
struct fetched_method {
    char *name, *descriptor; /* modified UTF-8, as the rest */
    char *class_signature;
    char *source_file; /* NULL: unknown */
    jvmtiLineNumberEntry *lines;
    jint line_count;
    bool native;
};

/* False, after a debug message, when the JVM does not even tell the method's name. */
bool method_fetch(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id, struct fetched_method *fetched);

/* Gives the answer's memory back. */
void method_fetch_free(jvmtiEnv *jvmti, struct fetched_method *fetched);

#endif
