/*
 * A session is one profile: from `start` to `stop`, to the JVM's end or to a fault. There is one at
 * a time. It owns the sinks, and it is what the JVMTI callbacks work on.
 */
#ifndef JD_AGENT_SESSION_H
#define JD_AGENT_SESSION_H

#include "agent/hotspot.h"
#include "agent/inlines.h"
#include "agent/method_table.h"
#include "agent/methods.h"
#include "agent/options.h"
#include "agent/sinks.h"

#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* What a callback needs to work with; used again by the next one. */
struct scratch {
    struct inline_builder *inlines;
    struct method_set methods;
    char name[SYMBOL_MAX + 32]; /* a symbol with its suffixes */
};

struct session {
    struct options options;
    JavaVM *vm;
    jvmtiEnv *jvmti;
    struct hotspot *hotspot; /* NULL: not known */
    uint64_t serial;         /* of this process's sessions */
    time_t started;
    struct sinks sinks;
    struct method_table *table; /* NULL: not asked for, or failed */
    struct method_cache *methods;
    _Atomic(struct scratch *) spare; /* of the last callback that ended */
    atomic_bool failed;              /* every sink is closed; events are off */
    atomic_bool replaying;
    pthread_t replayer; /* the thread in GenerateEvents, while `replaying` */
};

/*
 * Starts a session; when one is running, says so and leaves it alone. `attached`: in a JVM that
 * runs already, so what it has compiled is asked for. Returns 0 or -1, after a message; the JVM is
 * then as it was.
 */
int session_start(JavaVM *vm, const struct options *options, bool attached);

/*
 * Stops the session that is running, if there is one: events off, callbacks drained, sinks closed,
 * memory freed. On a thread of the JVM's, in any phase.
 */
void session_stop(void);

/*
 * Says how the session stands, a line for each place it reports to: on stderr, or in a new file at
 * `path` unless that is "". Returns 0, or -1 after a message.
 */
int session_status(const char *path);

/*
 * For callbacks: the session, which stays as it is until session_leave; NULL when there is none, in
 * which case there is nothing to leave.
 */
struct session *session_enter(void);
void session_leave(void);

/* For callbacks that found no session: has the JVM send no more of them. */
void session_stray_event(jvmtiEnv *jvmti);

/* Sends an event to every sink; where that was the last one that worked, ends the session. */
void session_load(struct session *session, const struct code *code);
void session_unload(struct session *session, uint64_t address);

/* Scratch memory, to be given back; NULL: no memory. */
struct scratch *session_take_scratch(struct session *session);
void session_give_scratch(struct session *session, struct scratch *scratch);

#endif
