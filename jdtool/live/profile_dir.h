/*
 * The directory of a profile (what is in it is told in jdtool/look/opened_profile.h): made without
 * harm to anything that is there, and undone when the recording comes to nothing. It is held from
 * the beginning, as is the directory that it lies in: whoever may rename either has nobody write
 * elsewhere.
 */
#ifndef JD_TOOL_LIVE_PROFILE_DIR_H
#define JD_TOOL_LIVE_PROFILE_DIR_H

#include "jdtool/live/guard.h"

#include <limits.h>

#define PROFILE_DEFAULT_DIR "jdperf.profile"

struct profile_dir {
    char path[PATH_MAX]; /* absolute: as it is called to people and to the agent */
    char at[64];         /* as it is reached, by us and by programs that we run */
    char name[NAME_MAX + 1];
    int parent, directory;           /* -1: not open */
    struct guarded_profile *guarded; /* how it is undone */
};

#define NO_PROFILE_DIR ((struct profile_dir){.parent = -1, .directory = -1})

/* Looks where `given` is to be. To be done before the guardian is started, which holds that place,
 * too. 0, or an exit status after a message. */
int profile_choose(struct profile_dir *profile, const char *given);

/*
 * Makes the new directory. An earlier profile there is kept as DIR.old, as perf does; an empty
 * directory is taken; anything else is left alone. Unless profile_settle is called, it is all
 * undone by profile_undo. 0, or an exit status after a message.
 */
int profile_create(struct profile_dir *profile, struct guarded_profile *guarded, const char *given);

/* Adds a line "key=value" to the file `profile` of an open profile; newlines become blanks. 0 or a
 * negative errno. */
int profile_set(int directory, const char *key, const char *value);

/* The recording goes: now the new profile takes the place of an earlier one, for good. */
void profile_settle(struct profile_dir *profile);

/* Once that is so: removes what was called DIR.old before, which may take long. */
void profile_remove_older(const struct profile_dir *profile);

/* Removes nothing but what profile_create has made. Nothing when it is settled. */
void profile_undo(struct guarded_profile *guarded);

/* Makes a new directory for profiles, which is to be held by its descriptor, *directory. 0, or an
 * exit status after a message. */
int profiles_make(const char *given, int *directory);

void profile_dir_close(struct profile_dir *profile);

#endif
