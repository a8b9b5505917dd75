/*
 * The guardian: a process of our own that does nothing but wait for our end. When we are killed it
 * does what we would have done: leaves the session, removes the staging directory and the probes,
 * undoes a profile that was only begun. It is in a session of its own, so that neither Ctrl-C nor
 * the terminal's end reaches it, and it ends with us.
 *
 * What it would have to do stands in memory that both share, written before each step that leaves
 * something behind.
 */
#ifndef JD_TOOL_LIVE_GUARD_H
#define JD_TOOL_LIVE_GUARD_H

#include "jdtool/live/child.h"
#include "jdtool/live/target.h"
#include "jdtool/record/probes.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

struct guarded_directory {
    char name[NAME_MAX + 1]; /* "": none */
    dev_t device;
    ino_t inode;
};

/* How a profile that was begun is undone (profile_dir.h). */
struct guarded_profile {
    atomic_bool unsettled;
    int parent; /* what they all lie in: open in both under this number */
    struct guarded_directory itself, earlier, older;
    bool made;   /* the directory itself is ours */
    bool inside; /* what is in it is */
};

enum guarded_kind {
    GUARD_NOTHING,
    GUARD_STAGING, /* there is a staging directory, or is about to be */
    GUARD_SESSION, /* and a session that is ours to leave */
};

struct guarded_session {
    _Atomic(enum guarded_kind) kind;
    bool leased;
    char staging[64];     /* as the JVM sees it; "": none */
    char agent[PATH_MAX]; /* as the JVM loads it */
};

struct guarded {
    struct guarded_session session;
    struct guarded_profile profile;
    atomic_bool has_probes;
    char probes[PROBES_GROUP_MAX]; /* the group of those that are to be removed */
    atomic_bool done;              /* we have ended by ourselves, what is above is done */
};

struct guardian {
    struct guarded *shared;
    int ours; /* what it watches: closed by the kernel when we die */
    struct child child;
};

/* Starts it. What stays open in it: the target (NULL: none), and the directory that the profile
 * lies in (-1: none). 0 or a negative errno after a message. */
int guard_start(struct guardian *guardian, const struct target *target, int directory);

/* Leaves the session of one who has died without doing so, as far as `guarded` says that there is
 * one. */
void guard_leave_session(struct guarded *guarded, const struct target *target);

/* Nothing is left to guard but probes: it may end while we go on, so that guard_end need not wait.
 */
void guard_release(struct guardian *guardian);

/* We end by ourselves, and everything is done but removing probes, if there are any: that takes it
 * half a second, and needs nobody to wait. */
void guard_end(struct guardian *guardian);

#endif
