/*
 * The staging directory: what a JVM has to read or write for us is put into a directory of its own
 * in the JVM's /tmp (or another place that it can write to), which we reach from its root
 * directory.
 *
 * - lease: locked by everybody who uses the directory, or the session
 *   (agent/session/session_clock.h)
 * - libjdagent.so: where the JVM does not see ours
 * - jit-PID.dump and what is beside it: where the JVM cannot write into the profile
 * - status.N: an answer of the agent's
 *
 * Root fills the directory while it is root's own, and gives it to the JVM's user last. From then
 * on anything may be in it: files are opened as target.h has it, and nothing is made in it by us.
 */
#ifndef JD_TOOL_LIVE_STAGING_H
#define JD_TOOL_LIVE_STAGING_H

#include "jdtool/live/target.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define STAGING_NAME_MAX 48
#define STAGING_PATH_MAX (STAGING_NAME_MAX + 16)

/* Room for the agent and a dump. Docker's /dev/shm has twice as much. */
#define STAGING_ENOUGH (UINT64_C(32) << 20)

struct staging {
    int place;                   /* the directory that it is in; -1: there is no staging */
    int directory;               /* itself */
    char name[STAGING_NAME_MAX]; /* jdperf-PID.XXXXXXXX */
    char path[STAGING_PATH_MAX]; /* as the JVM sees it */
    bool given;                  /* to the JVM's user */
    bool noexec;                 /* no agent can be loaded from it */
    uint64_t room;               /* bytes that are free there, up to STAGING_ENOUGH */
};

#define NO_STAGING ((struct staging){.place = -1, .directory = -1})

/* Chooses where the directory will be, and its name, and makes nothing: the first of the places
 * with enough room, or the one with the most. 0 or a negative errno after a message. `name`: of an
 * earlier choice (a guardian's), or NULL. */
int staging_plan(struct staging *staging, const struct target *target, const char *path);

/* Makes it, still ours. 0 or a negative errno after a message. */
int staging_make(struct staging *staging, const struct target *target);

/* Opens one that was made (the guardian's, another's). 0 or a negative errno without a message. */
int staging_open(struct staging *staging);

/* Makes the lease in it and takes it. A descriptor, or a negative errno after a message. */
int staging_make_lease(const struct staging *staging, const struct target *target);

/* Says that its places are all mounted noexec, where neither an agent nor its dump can be. -EACCES.
 */
int staging_refuse_noexec(const struct target *target);

/* Copies the agent into it. 0 or a negative errno after a message. */
int staging_add_agent(const struct staging *staging, const struct target *target,
                      const char *agent);

/* Says what to do where that error is for want of room: in its place, whether it may be that of a
 * JVM which has refused (-ECONNREFUSED). */
void staging_tell_room(const struct staging *staging, int err);

/* Gives it to the JVM's user, the last thing before the JVM is told of it. 0 or a negative errno
 * after a message. */
int staging_give(struct staging *staging, const struct target *target);

/* Removes it with all that is in it. Does nothing where there is none. */
void staging_remove(struct staging *staging);

/* Forgets it and leaves it where it is. */
void staging_close(struct staging *staging);

/* ---- Leases ---- */

/*
 * Our side of the leases of agent/session/session_clock.h: who uses a session holds a lock on its
 * lease, and the last one to leave ends it. The kernel counts.
 */
#define LEASE_NAME "lease" /* in its staging directory */

/* Takes a share in a lease. 0; -EAGAIN: whoever is last is just ending the session; or another
 * negative errno. */
int lease_take(int lease);

/* Makes us the only one, for good: true, and the session is ours to end; false: others use it. */
bool lease_take_over(int lease);

/* Whether anybody else holds it. */
bool lease_is_held(int lease);

/* ---- For clean ---- */

/* The places where one may be, as a JVM sees them; NULL behind the last. */
extern const char *const staging_places[];

/* Whether a name is that of a staging directory. */
bool staging_is_name(const char *name);

/* Removes the directory `name` in `place` with all that is in it, on its own file system, through
 * no link. 0 or a negative errno. */
int remove_tree(int place, const char *name);

/* The same of all that is in a directory. */
void remove_contents(int directory);

#endif
