/*
 * A session of the agent in a JVM, as seen from outside: started, asked, joined, left.
 *
 * A session that a recording starts is leased (agent/session/session_clock.h): it lives as long as
 * somebody holds a lock on the lease in its staging directory. Who joins it takes a share; who
 * leaves it last stops it and removes the directory. Whatever becomes of us, the JVM ends it by
 * itself, and the guardian (guard.h) cleans up at once.
 */
#ifndef JD_TOOL_LIVE_SESSION_H
#define JD_TOOL_LIVE_SESSION_H

#include "jdtool/live/staging.h"
#include "jdtool/live/target.h"
#include "jdtool/live/wait.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define SESSION_OPTIONS_MAX ((size_t)3 * PATH_MAX)

struct guarded;

struct live_session {
    const struct target *target;
    struct waiting *waiting;
    struct guarded *guarded; /* NULL: nobody looks after us */
    const char *agent_here;  /* the agent as we see it */
    char agent[PATH_MAX];    /* as the JVM has loaded it, or is to; "": not decided */
    struct staging staging;
    char lease_path[STAGING_PATH_MAX + sizeof "/" LEASE_NAME]; /* as the JVM knows it; "": none */
    int lease;                                                 /* -1: none */
    bool joined;                                               /* somebody else has started it */
    bool leave; /* whether session_leave has something to end */
};

/* What the agent tells of itself. */
struct session_status {
    bool running;
    bool failed;
    bool has_dump;
    bool has_map;
    char dump[PATH_MAX];  /* as the JVM sees it; "": none */
    char lease[PATH_MAX]; /* "": none */
    char text[6 * PATH_MAX];
};

void session_init(struct live_session *session, const struct target *target,
                  struct waiting *waiting, struct guarded *guarded, const char *agent_here);

/* Asks the agent. 0 or a negative errno after a message. */
int session_status(struct live_session *session, struct session_status *status);

/*
 * Takes a share in a session that runs: 0; -EAGAIN: it is being ended, or was; -ENOENT: it has no
 * lease, so whoever attached it ends it. No message.
 */
int session_join(struct live_session *session, const struct session_status *status);

/* For session_start: in its staging directory, with which the dump goes. */
#define SESSION_STAGED ""

/*
 * Starts one with these options (as agent/session/options.h has them) in `dir` (absolute; NULL: the
 * agent's own place), or in the staging directory where the JVM is another user's or sees other
 * files. `leased`: for as long as we are there; else until somebody stops it. What `options` does
 * not have of `more` ("key=value,…") is added. 0; -EEXIST without a message: a leased one was asked
 * for, and another has begun meanwhile; or another negative errno after a message; the JVM is then
 * as it was.
 */
int session_start(struct live_session *session, const char *dir, bool leased, const char *options,
                  const char *more);

/* Composes the agent's options in `text`, which has SESSION_OPTIONS_MAX bytes and is empty: the
 * user's, and of dir=DIR (NULL: none) and `more` those whose keys the user has not given, for the
 * agent takes no key twice. */
void session_compose_options(char *text, const char *options, const char *dir, const char *more);

/*
 * Gives the session up: the last one to do so stops it, but no other than that which was started or
 * joined, and removes its staging directory. 0, or a
 * negative errno after a message: the JVM did not answer, and ends it by itself. Safe to call
 * again, and when nothing was started.
 */
int session_leave(struct live_session *session);

/* Stops it, whoever uses it. 0 or a negative errno after a message. */
int session_stop(struct live_session *session);

/* Takes over from one who has died: his staging directory ("": none), his share in the lease, and
 * what he would have left. For the guardian. */
void session_adopt(struct live_session *session, const char *staging, bool leased, bool leave);

/* Leaves everything as it is: a session that is to go on. Keeps the staging directory when the
 * session needs it. */
void session_keep(struct live_session *session, bool staging_needed);

/* Says that a JVM of JDK 21 or later will warn of the agent, if it will. */
void session_announce_warning(const struct target *target);

#endif
