/*
 * Naming a profile's code: jdtool inject as a child, from a pipe while perf records, or from
 * perf.data afterwards.
 */
#ifndef JD_TOOL_LIVE_NAMING_H
#define JD_TOOL_LIVE_NAMING_H

#include "jdtool/live/child.h"

#include <stdbool.h>
#include <stddef.h>

struct naming_options {
    const char *profile;      /* its directory, absolute */
    int directory;            /* the same, open */
    int in;                   /* what perf writes; -1: perf.data of the profile */
    const char *const *dumps; /* files; further ones are found as perf finds them */
    size_t dump_count;
    const int *keep; /* descriptors that `dumps` lead through */
    size_t keep_count;
    char *const *more; /* further options of jdtool inject, NULL-terminated; NULL: none */
};

struct naming {
    struct child child;
    int says; /* its words, a file in memory */
    const char *profile;
    int directory;
    bool from_pipe; /* it cannot be done a second time */
};

#define NO_NAMING ((struct naming){.child = NO_CHILD, .says = -1})

/* 0 or a negative errno after a message. */
int naming_start(struct naming *naming, const struct naming_options *options);

/*
 * Waits for its end, and says how long it takes. A signal ends it, but not while `others` lives
 * (NULL: none), whom it is meant for, and of what comes through a pipe only the second one. Tells
 * what it says, and judges. An exit status: 0, 1 failed, 2 its options are wrong, 3 the profile is
 * there, but bad, 128 + N ended by signal N.
 */
int naming_finish(struct naming *naming, struct waiting *waiting, struct child *others);

/* Both, of the profile's perf.data, with all dumps that are in the profile: so many. */
int naming_of_file(struct naming *naming, struct naming_options options, struct waiting *waiting,
                   struct child *others, size_t *dump_count);

/* Ends it, and there is no result. */
void naming_abort(struct naming *naming);

#endif
