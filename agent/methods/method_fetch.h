/*
 * Asks the JVM about one method or one class.
 */
#ifndef JD_AGENT_METHOD_FETCH_H
#define JD_AGENT_METHOD_FETCH_H

#include "agent/methods/java_method.h"

#include <jvmti.h>

/* The JVM's answers, in its own memory; all text is modified UTF-8. */
struct fetched_class {
    char *signature;
    char *source_file; /* NULL: unknown */
    char *source_map;  /* the SourceDebugExtension; NULL: none */
};
struct fetched_method {
    char *name, *descriptor;
    jvmtiLineNumberEntry *lines;
    jint line_count;
    bool native;
    bool is_private_static; /* only asked of methods with a '$' in their names */
};

/* False, after a debug message, when the JVM does not even tell the class's signature. */
bool class_fetch(jvmtiEnv *jvmti, jclass klass, struct fetched_class *fetched);

/* The same for the class that a method belongs to. jni may be NULL where few are asked for. */
bool class_fetch_of_method(jvmtiEnv *jvmti, JNIEnv *jni, jmethodID id,
                           struct fetched_class *fetched);

/* False, after a debug message, when the JVM does not even tell the method's name. */
bool method_fetch(jvmtiEnv *jvmti, jmethodID id, struct fetched_method *fetched);

/*
 * Copies the line table, without entries that make no sense, into the order of line_table_sort.
 * `lines` has room for line_count entries; returns how many there are.
 */
uint32_t method_fetch_lines(const struct fetched_method *fetched, struct line_entry *lines);

/* Give the answers' memory back. */
void class_fetch_free(jvmtiEnv *jvmti, struct fetched_class *fetched);
void method_fetch_free(jvmtiEnv *jvmti, struct fetched_method *fetched);

/*
 * The field of that name and type (JVMS 4.3.2; NULL: of any) that a prepared class itself declares;
 * NULL: it has none, or it is not to be had. JNI's own look-up would throw then, which whoever
 * traces exceptions would see. Takes no lock; may be called where GetFieldID may be.
 */
jfieldID field_fetch(jvmtiEnv *jvmti, jclass klass, const char *name, const char *type);

#endif
