/*
 * The JVMs of the machine, as they come. Looking at a process costs a read of its mappings, so a
 * process that is no JVM is looked at ever more rarely: it may become one (a launcher that loads
 * libjvm.so), but late ones are rare.
 */
#ifndef JD_TOOL_WATCH_FINDER_H
#define JD_TOOL_WATCH_FINDER_H

#include "jdtool/live/target.h"

struct finder;

/* NULL: no memory. */
struct finder *finder_new(void);
void finder_free(struct finder *finder); /* NULL is fine */

/*
 * Calls take with each JVM that can be looked into and that take has not answered true for since it
 * came: true is "it is mine now", false "ask me again".
 */
void finder_look(struct finder *finder, bool (*take)(void *context, pid_t pid, const char *name),
                 void *context);

/* Forgets that it was taken. */
void finder_forget(struct finder *finder, pid_t pid);

#endif
