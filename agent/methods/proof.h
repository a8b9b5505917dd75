/*
 * HotSpot's structures (agent/hotspot/hotspot.h) held against JVMTI, once: what of them takes JVMTI
 * or JNI is here.
 */
#ifndef JD_AGENT_PROOF_H
#define JD_AGENT_PROOF_H

#include "agent/hotspot/hotspot.h"

#include <jvmti.h>

struct proof;

/* Of the JVM of that major version, for as long as that lives: for the caller to free, who never
 * does. NULL: no memory, or hotspot is. */
struct proof *proof_new(struct hotspot *hotspot, int major);

/*
 * Holds what is read of a class against what JVMTI says of it, in the live phase and on a thread of
 * the JVM's: until then nothing of methods is believed, and when the two differ nothing ever is.
 * Does nothing the second time. proof may be NULL.
 */
void proof_make(struct proof *proof, jvmtiEnv *jvmti, JNIEnv *jni);

/*
 * The Klasses of so many classes, HOTSPOT_CLASSES_MAX at most, for hotspot_class_methods; false
 * where one is not to be had, and before they are believed. proof may be NULL.
 */
bool proof_klasses(const struct proof *proof, JNIEnv *jni, const jclass *classes, size_t count,
                   uint64_t *klasses);

/* How frozen frames are found (code_facts.frozen); NULL: not known, as before proof_make. proof may
 * be NULL. */
const int32_t *proof_frozen(const struct proof *proof);

#endif
