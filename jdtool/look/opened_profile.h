/*
 * The directory of a profile, looked over once and held: whoever made it may be anybody.
 *
 *   profile          what it is: key=value lines. Its presence makes the directory a profile
 *   perf.data        as recorded            perf.jit.data    with the generated code in it
 *   jit-PID.dump     the dumps, packed      buildid/         what perf looks binaries up in
 *   scorecard.json   how good it is         src/             Java sources that annotate shows
 *   samples.saved    samples with names, for export, flame, view, annotate
 */
#ifndef JD_TOOL_OPENED_PROFILE_H
#define JD_TOOL_OPENED_PROFILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Set to anything: profiles of other users are read by root, too (jdperf --trust). */
#define TRUST_VARIABLE "JDPERF_TRUST"

struct opened_profile {
    int directory; /* -1: none */
    uid_t owner;
    char path[PATH_MAX]; /* absolute, without links */
};

#define NO_PROFILE ((struct opened_profile){.directory = -1})

/*
 * Opens it: a directory with a file 'profile', in which no link leads out of it, with something
 * recorded in it. As root only one of root's or of who called sudo, unless others' are trusted. An
 * exit status, after a message unless it is STATUS_DONE.
 */
int opened_profile_open(const char *given, struct opened_profile *profile);
void opened_profile_close(struct opened_profile *profile);

/* Whether who looks at it has made it, or who called sudo for that. */
bool opened_profile_is_ours(const struct opened_profile *profile);

/* What we make between these two is the owner's where that is who called sudo: he could not remove
 * it else. */
void opened_profile_be_owner(const struct opened_profile *profile);
void opened_profile_be_ourselves(void);

/* Whether there is such a directory with a file 'profile', for messages. */
bool opened_profile_is_one(const char *given);

/* Whether a file of it can be read. */
bool opened_profile_has(const struct opened_profile *profile, const char *name);

/* The last value of a key in its file 'profile'. False: it has none, or a longer one. */
bool opened_profile_get(const struct opened_profile *profile, const char *key, char *value,
                        size_t room);

/* Tells what its scorecard has against it; nothing where it is good, or has none. */
void opened_profile_tell_doubts(const struct opened_profile *profile);

#endif
