/*
 * The directory of a profile (what is in it is told in scripts/jdperf.d/common.sh): made without
 * harm to anything that is there, and undone when the recording comes to nothing.
 */
#ifndef JD_TOOL_LIVE_PROFILE_DIR_H
#define JD_TOOL_LIVE_PROFILE_DIR_H

#include "jdtool/live/guard.h"

#include <limits.h>
#include <sys/stat.h>

struct profile_dir {
    char path[PATH_MAX];             /* absolute */
    struct stat made;                /* the directory */
    struct guarded_profile *guarded; /* how it is undone */
};

/*
 * Makes the new directory `given`. An earlier profile there is kept as DIR.old, as perf does; an
 * empty directory is taken; anything else is left alone. Unless profile_settle is called, it is all
 * undone by profile_undo. 0, or an exit status after a message.
 */
int profile_create(struct profile_dir *profile, struct guarded_profile *guarded, const char *given);

/* Adds a line "key=value" to its file `profile`; newlines become blanks. 0 or a negative errno. */
int profile_set(const struct profile_dir *profile, const char *key, const char *value);

/* The recording goes: now the new profile takes the place of an earlier one, for good. */
void profile_settle(struct profile_dir *profile);

/* Removes nothing but what profile_create has made. Nothing when it is settled. */
void profile_undo(struct guarded_profile *guarded);

#endif
