/*
 * What is left behind by sessions that ended badly, and by other tools. What lives is told by its
 * lease, or by the JVM that has it mapped, and is left alone.
 */
#ifndef JD_TOOL_LIVE_LEFTOVERS_H
#define JD_TOOL_LIVE_LEFTOVERS_H

#include <stdbool.h>
#include <stdint.h>

struct leftover {
    int place;        /* the directory that it is in; stays open until the call returns */
    const char *name; /* in it */
    const char *path; /* as the user reaches it */
    uint64_t bytes;
};

/* Calls `take` for each; `all`: what others may still want, too (perf maps, dumps of JVMs that have
 * ended, the files of perf inject --jit). */
void leftovers_find(bool all, void (*take)(void *context, const struct leftover *leftover),
                    void *context);

/* The bytes of disk that `name` in `place` takes, a directory's with all that is in it. */
uint64_t leftover_size(int place, const char *name);

#endif
