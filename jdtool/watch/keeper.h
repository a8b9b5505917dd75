/*
 * The keeper: a process of a watch's that attaches to JVMs, one after the other, and holds their
 * sessions. It waits for JVMs, so that the watch does not; and when the watch is no more, however
 * that came, it leaves all sessions and ends.
 */
#ifndef JD_TOOL_WATCH_KEEPER_H
#define JD_TOOL_WATCH_KEEPER_H

#include "jdtool/live/child.h"
#include "jdtool/watch/watch.h"

struct keeper_notes;

struct keeper {
    struct child child;
    int orders; /* a socket; -1: there is none */
    int says;
    struct keeper_notes *notes; /* what it holds, in memory that both share */
};

#define NO_KEEPER ((struct keeper){.child = NO_CHILD, .orders = -1, .says = -1})

/* What has become of an attempt to attach. */
struct keeper_answer {
    pid_t jvm;
    int failed;
    char why[256]; /* where it failed */
};

/* 0 or a negative errno without a message. The options are the keeper's as they are now. */
int keeper_start(struct keeper *keeper, const struct watch_jvm_options *options);

/* In the place of one that has died: it leaves the sessions first that that one held. The same. */
int keeper_replace(struct keeper *keeper, const struct watch_jvm_options *options);

/* Attaches: one at a time is asked for, and answered. Leaves: not answered. Where the keeper has
 * died: -EPIPE. */
int keeper_attach(struct keeper *keeper, pid_t jvm);
int keeper_leave(struct keeper *keeper, pid_t jvm);

/* 1: an answer has come; 0: not yet; -EPIPE: it has died. */
int keeper_hear(struct keeper *keeper, struct keeper_answer *answer);

/* It leaves all sessions: returns when it has, or when it took too long, and was killed. */
void keeper_end(struct keeper *keeper);

#endif
