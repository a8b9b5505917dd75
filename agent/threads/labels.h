/*
 * Labels that the program sets (java/io/jdagent/Labels.java), told to the journal. The class finds
 * our functions because HotSpot looks into the libraries of agents for native methods; whether it
 * calls them is up to its field `on`, which we set.
 */
#ifndef JD_AGENT_LABELS_H
#define JD_AGENT_LABELS_H

#include <jvmti.h>
#include <stdbool.h>

/* Has all loaded classes of that name call us, or not. In the live phase, on a thread of the JVM's.
 * One that is loaded later asks by itself. */
void labels_switch(jvmtiEnv *jvmti, JNIEnv *jni, bool on);

#endif
