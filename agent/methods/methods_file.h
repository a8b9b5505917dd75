/*
 * The table of methods (format/methods.h): what names interpreted frames. Written while the JVM
 * runs, a record a class, because a class may be unloaded and its memory be used again.
 */
#ifndef JD_AGENT_METHODS_FILE_H
#define JD_AGENT_METHODS_FILE_H

#include "agent/hotspot/hotspot.h"
#include "agent/methods/method_cache.h"
#include "format/methods.h"
#include "writer/log/record_log.h"

#include <jvmti.h>

struct methods_file;

struct methods_file_options {
    struct record_log *log; /* of the dump that the table goes beside; lives longer */
    struct method_cache_options names;
    struct hotspot *hotspot;
    const struct proof *proof; /* of it */
    bool tsc;                  /* stamp as the dump does */
    const char *program;       /* what the JVM runs; NULL or "": not known */
};

/* 0, or a negative errno after a message: where HotSpot does not tell of its methods, too. */
int methods_file_open(const struct methods_file_options *options, struct methods_file **out);

/* Tells of a class in its ClassPrepare event. On any thread, also at the same time. */
void methods_file_prepared(struct methods_file *table, jvmtiEnv *jvmti, JNIEnv *jni, jclass klass);

/*
 * Tells of all loaded classes with methods that it has not told of yet: those from before the
 * session, and methods that redefinition brought. In the live phase; does nothing in others.
 * `patient`: this thread can wait for a slow disk. `is_last`: it is not asked to again.
 */
void methods_file_catch_up(struct methods_file *table, jvmtiEnv *jvmti, JNIEnv *jni, bool patient,
                           bool is_last);

/*
 * Whether nothing has told of the method at that address or of one that was asked for before,
 * though all classes have been told of: so a redefinition has brought it, of which JVMTI has no
 * event, and to catch up tells of all that it brought. Once for each address, and only as often as
 * little processor time is spent on it: until then it is kept in mind.
 */
bool methods_file_lacks(struct methods_file *table, uint64_t method);

/* Says that the JVM does not provide these events, a set of enum methods_lack. */
void methods_file_tell_lacks(struct methods_file *table, unsigned events);

/* The file has begun anew: nothing has been told of. */
void methods_file_forget(struct methods_file *table);

/* Frees the table; no call may be under way. The file ends with its log. NULL is fine. */
void methods_file_close(struct methods_file *table);

#endif
