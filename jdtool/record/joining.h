/*
 * The session that a recording uses in a JVM that runs already: one that is there is joined, else
 * one is started, and the dump is held open.
 */
#ifndef JD_TOOL_LIVE_JOINING_H
#define JD_TOOL_LIVE_JOINING_H

#include "jdtool/live/fetch.h"
#include "jdtool/live/session.h"

struct joining {
    struct live_session session;
    bool joined; /* a session that is not ours to end */
    struct fetch fetch;
};

#define NO_JOINING                                                                                 \
    ((struct joining){.session = {.lease = -1, .staging = NO_STAGING}, .fetch = NO_FETCH})

struct joining_options {
    const char *dir;           /* of the profile; NULL: none, the dump goes with the session */
    const char *at;            /* by which we reach it */
    const char *agent_options; /* the user's; "": none */
    const char *more;          /* added where the user has not said else */
};

/* 0 or a negative errno after a message; session_leave ends it, after a failure, too. */
int joining_start(struct joining *joining, const struct target *target, struct waiting *waiting,
                  struct guarded *guarded, const struct joining_options *options);

#endif
