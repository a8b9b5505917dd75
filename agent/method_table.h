/*
 * The table of methods (format/methods.h): what names interpreted frames. Written while the JVM
 * runs, a record a class, because a class may be unloaded and its memory be used again.
 */
#ifndef JD_AGENT_METHOD_TABLE_H
#define JD_AGENT_METHOD_TABLE_H

#include "agent/hotspot.h"
#include "agent/methods.h"

#include <jvmti.h>

struct method_table;

struct method_table_options {
    const char *dump; /* path of the dump that the table goes beside */
    struct method_cache_options names;
    struct hotspot *hotspot;
    bool tsc;           /* stamp as the dump does */
    uint64_t max_bytes; /* 0: no limit */
};

/* 0 or -1 after a message: where ids do not lead to HotSpot's methods, too. */
int method_table_open(const struct method_table_options *options, struct method_table **out);

/* Tells of a class in its ClassPrepare event. On any thread, also at the same time. */
void method_table_prepared(struct method_table *table, jvmtiEnv *jvmti, JNIEnv *jni, jclass klass);

/*
 * Tells of all loaded classes with methods that it has not told of yet: those from before the
 * session, and methods that redefinition brought. In the live phase; does nothing in others.
 */
void method_table_catch_up(struct method_table *table, jvmtiEnv *jvmti, JNIEnv *jni);

/* Closes the file and frees the table; no call may be under way. NULL is fine. */
void method_table_close(struct method_table *table);

#endif
