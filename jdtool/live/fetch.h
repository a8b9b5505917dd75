/* Bringing a JVM's dump and its table of methods into the profile. */
#ifndef JD_TOOL_LIVE_FETCH_H
#define JD_TOOL_LIVE_FETCH_H

#include "jdtool/live/target.h"

#include <limits.h>
#include <stdbool.h>

/* The files beside a dump: its table of methods, the journal of threads, the JVM's own log. */
enum { FETCH_METHODS, FETCH_THREADS, FETCH_LOG, FETCH_BESIDE };

/* Of one file; a dump of a large JVM takes a tenth of it. */
#define FETCH_DATA_MAX (4ULL << 30)

/* A dump and those, held open from when they are found: then they can be had even when the JVM and
 * its file system are gone, or somebody has removed them. */
struct fetch {
    int dump, beside[FETCH_BESIDE]; /* -1: not there (yet) */
    int directory;                  /* of all */
    char name[64];                  /* of the dump: "jit-PID.dump" */
    pid_t pid;                      /* as we see it */
    bool in_profile;                /* it is written there */
    uid_t owner;
};

#define NO_FETCH ((struct fetch){.dump = -1, .beside = {-1, -1, -1}, .directory = -1})

/* Finds them: `dump` as the JVM sees it. 0 or a negative errno without a message. */
int fetch_find(struct fetch *fetch, const struct target *target, const char *dump,
               const char *profile);

/* Takes hold of the files beside the dump, which may come later than it. Before the session's end,
 * with which their directory may go. */
void fetch_find_rest(struct fetch *fetch);

/*
 * Copies them into the profile, below a directory of its own where another JVM's dump has that name
 * already; at most FETCH_DATA_MAX of a file; what is written there already becomes a copy of its
 * own when `detach`. 0 or a negative errno after a message.
 */
int fetch_copy(struct fetch *fetch, const char *profile, bool detach);

void fetch_close(struct fetch *fetch);

#endif
