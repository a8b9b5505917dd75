/*
 * A method's bytecodes as text (bytecodes.h), asked of the JVM.
 */
#ifndef JD_AGENT_METHOD_LISTING_H
#define JD_AGENT_METHOD_LISTING_H

#include "agent/java_method.h"

#include <jvmti.h>

/* Asks for the capabilities that method_listing needs. False, after a message: there are none. */
bool method_listing_prepare(jvmtiEnv *jvmti);

/* The text, which the caller frees; NULL: the method has no bytecodes, or no memory. */
char *method_listing(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id, const struct java_method *method);

#endif
