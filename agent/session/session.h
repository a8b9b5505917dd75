/*
 * A session is one profile: from `start` to `stop`, to the JVM's end or to a fault. There is one at
 * a time. It owns the sinks, and it is what the JVMTI callbacks work on; this is the room that they
 * and the commands share. The commands have agent/session/commands.h.
 */
#ifndef JD_AGENT_SESSION_H
#define JD_AGENT_SESSION_H

#include "agent/hotspot/hotspot.h"
#include "agent/methods/inline_record.h"
#include "agent/methods/method_cache.h"
#include "agent/methods/methods_file.h"
#include "agent/methods/proof.h"
#include "agent/session/options.h"
#include "agent/session/sinks.h"

#include <jvmti.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

/* What a callback needs to work with; used again by the next one. */
struct scratch {
    struct inline_builder *inlines;
    struct method_set methods;
    struct inline_scopes scopes;
    struct hotspot_nearby *nearby;  /* NULL: no memory */
    const struct java_method *root; /* that the code was compiled from; NULL: unknown */
    char name[SYMBOL_MAX + 32];     /* a symbol with its suffixes */
};

/* The JVM that we live in. */
struct session_jvm {
    JavaVM *vm;
    jvmtiEnv *jvmti;
    struct hotspot *hotspot; /* NULL: not known */
    struct proof *proof;     /* of it */
    int major;               /* version */
};

struct session {
    struct options options;
    struct session_jvm jvm;
    uint64_t serial; /* of this process's sessions */
    time_t started;
    unsigned generation; /* of the process, see writer/process.h */
    struct sinks sinks;
    struct methods_file *table; /* NULL: not asked for, or failed */
    bool journal;               /* the journal of threads is this session's */
    bool identified;            /* the journal has been told of all threads */
    bool logs;                  /* the JVM has been asked to log its pauses */
    struct method_cache *methods;
    _Atomic(struct scratch *) spare; /* of the last callback that ended */
    atomic_bool failed;              /* every sink is closed */
    atomic_bool ending;              /* about to be stopped: what is still to come is left out */
    bool has_caught_up;              /* the table of methods, while the end waited; under control */
    atomic_bool replaying;
    pthread_t replayer;       /* the thread in GenerateEvents, while `replaying` */
    bool patient;             /* it can wait for a slow disk */
    uint64_t replay;          /* see hotspot_nearby_begin */
    atomic_flag replay_taken; /* by who is to set these */
};

/* ---- For the commands ---- */

/*
 * Commands come one at a time: who has taken control holds it until it is released, on the same
 * thread. session_take_control waits a few seconds at most; false: somebody else has it.
 */
bool session_take_control(void);
bool session_try_control(void);
void session_release_control(void);

/* Opens the sinks that `options` ask for. NULL after a message. Control is held. */
struct session *session_new(const struct session_jvm *jvm, const struct options *options);

/* Closes the sinks and frees all; callbacks must not see it. NULL is fine. */
void session_free(struct session *session);

/* The session that callbacks see, or NULL. Control is held. */
struct session *session_current(void);

/* Lets the callbacks see a session. Control is held. */
void session_publish(struct session *session);

/*
 * Takes the session from the callbacks and waits, some seconds at most, until none has it in hand.
 * False: some do not give it back, so it cannot be freed. Control is held.
 */
bool session_withdraw(void);

/* Waits, some seconds at most, until no callback has a failed session in hand, which none takes up
 * any more. False: some do not give it back. */
bool session_is_left(void);

/* Ends its table of methods, where there is one; no callback sees the session. */
void session_close_table(struct session *session);

/* Has callbacks pass the session by from now on, so that a replay ends soon. Without control. */
void session_end_soon(void);

/* ---- For callbacks ---- */

/*
 * The session, which stays as it is until session_leave; NULL when there is none, or none that
 * could do anything, in which case there is nothing to leave. Takes no lock.
 */
struct session *session_enter(void);
void session_leave(void);

/* Reports code to every sink, see occupancy_load, with what is known of frozen frames; where the
 * last sink that worked fails, the session has failed. */
void session_load(struct session *session, struct code *code, struct timeline_spot *spot);

/* Scratch memory, to be given back; NULL: no memory. */
struct scratch *session_take_scratch(struct session *session);
void session_give_scratch(struct session *session, struct scratch *scratch);

#endif
