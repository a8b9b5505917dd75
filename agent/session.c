/*
 * Who may touch what, when
 *
 * `current` is the session that callbacks find. A callback counts itself in before it looks there,
 * and out when it is done; stop takes the session away first and then waits until the count is
 * zero. From then on nobody can see the session, and it can be taken apart. No lock is held during
 * a callback, so a callback may call into the JVM, and the JVM may stop at a safepoint in it.
 *
 * `control` orders the commands: start, stop, status and the JVM's end. Waits are bounded: at the
 * JVM's end threads may stay where they are for good, and then the session is left as it is rather
 * than the JVM kept from ending.
 */
#include "agent/session.h"

#include "agent/dump_directory.h"
#include "agent/events.h"
#include "writer/itt_sink.h"
#include "writer/jitdump_sink.h"
#include "writer/message.h"
#include "writer/perf_map_sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a command waits for callbacks or for another command. */
enum { PATIENCE_SECONDS = 5 };

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct session *) current;
static jvmtiEnv *environment; /* one for all sessions: the JVM frees none before its end */

static atomic_uint inside; /* callbacks */
static pthread_mutex_t inside_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t inside_zero = PTHREAD_COND_INITIALIZER;

struct session *session_enter(void)
{
    atomic_fetch_add(&inside, 1);
    struct session *session = atomic_load(&current);
    if (!session || atomic_load_explicit(&session->failed, memory_order_relaxed)) {
        session_leave();
        return NULL;
    }
    return session;
}

void session_leave(void)
{
    if (atomic_fetch_sub(&inside, 1) == 1 && !atomic_load(&current)) {
        pthread_mutex_lock(&inside_lock);
        pthread_cond_broadcast(&inside_zero);
        pthread_mutex_unlock(&inside_lock);
    }
}

static struct timespec deadline(void)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += PATIENCE_SECONDS;
    return at;
}

/* Waits until no callback has a session in hand. False: some do not end. */
static bool drain_callbacks(void)
{
    struct timespec until = deadline();
    int error = 0;
    pthread_mutex_lock(&inside_lock);
    while (atomic_load(&inside) > 0 && error == 0) {
        error = pthread_cond_timedwait(&inside_zero, &inside_lock, &until);
    }
    pthread_mutex_unlock(&inside_lock);
    return atomic_load(&inside) == 0;
}

static bool take_control(void)
{
    struct timespec until = deadline();
    return pthread_mutex_timedlock(&control, &until) == 0;
}

static void free_scratch(struct scratch *scratch)
{
    if (scratch) {
        inline_builder_free(scratch->inlines);
        method_set_destroy(&scratch->methods);
        free(scratch);
    }
}

struct scratch *session_take_scratch(struct session *session)
{
    struct scratch *scratch = atomic_exchange(&session->spare, NULL);
    if (scratch) {
        return scratch;
    }
    scratch = calloc(1, sizeof(*scratch));
    if (scratch && !(scratch->inlines = inline_builder_new())) {
        free(scratch);
        scratch = NULL;
    }
    return scratch;
}

void session_give_scratch(struct session *session, struct scratch *scratch)
{
    free_scratch(atomic_exchange(&session->spare, scratch));
}

/* When the last sink has failed there is nothing left to do, and no reason to be called. */
static void check_sinks(struct session *session)
{
    for (unsigned i = 0; i < session->sink_count; i++) {
        struct sink_stats stats;
        sink_stats(session->sinks[i], &stats);
        if (!stats.failed) {
            return;
        }
    }
    if (!atomic_exchange(&session->failed, true)) {
        events_enable(session->jvmti, false);
    }
}

void session_load(struct session *session, const struct code *code)
{
    int error = 0;
    for (unsigned i = 0; i < session->sink_count; i++) {
        error |= sink_load(session->sinks[i], code);
    }
    if (error) {
        check_sinks(session);
    }
}

void session_unload(struct session *session, uint64_t address)
{
    int error = 0;
    for (unsigned i = 0; i < session->sink_count; i++) {
        error |= sink_unload(session->sinks[i], address);
    }
    if (error) {
        check_sinks(session);
    }
}

static int open_jitdump(const struct options *options, struct sink **out)
{
    char directory[PATH_MAX];
    if (dump_directory_make(options->dir, directory) != 0) {
        return -1;
    }
    const struct jitdump_sink_options sink = {
        .directory = directory,
        .tsc = options->tsc,
        .samply = options->samply,
        .source_path = options->source_path[0] ? options->source_path : NULL,
        .max_bytes = options->max_bytes,
    };
    return jitdump_sink_open(&sink, out);
}

static int open_map(const struct options *options, struct sink **out)
{
    const struct perf_map_sink_options sink = {.style = options->unfold};
    return perf_map_sink_open(&sink, out);
}

static int open_itt(const struct options *options, struct sink **out)
{
    (void)options;
    const struct itt_sink_options sink = {.method_module = "Java", .stub_module = "JVM"};
    return itt_sink_open(&sink, out);
}

/* The places where code is reported; a new one is a line here and a word in options.c. */
static const struct {
    enum mode mode;
    const char *name;
    int (*open)(const struct options *options, struct sink **out);
} places[] = {
    {MODE_JITDUMP, "jitdump", open_jitdump},
    {MODE_MAP, "map", open_map},
    {MODE_ITT, "itt", open_itt},
};
_Static_assert(sizeof(places) / sizeof(*places) <= SESSION_MAX_SINKS, "room for every sink");

static void free_session(struct session *session)
{
    if (!session) {
        return;
    }
    for (unsigned i = 0; i < session->sink_count; i++) {
        sink_close(session->sinks[i]);
    }
    free_scratch(atomic_load(&session->spare));
    method_cache_free(session->methods);
    free(session);
}

static struct session *new_session(JavaVM *vm, const struct options *options)
{
    struct session *session = calloc(1, sizeof(*session));
    const struct method_cache_options methods = {
        .names = options->names,
        .normalize = options->normalize,
    };
    if (!session || !(session->methods = method_cache_new(&methods))) {
        message(MESSAGE_ERROR, "failed to start: no memory");
        free_session(session);
        return NULL;
    }
    session->options = *options;
    session->vm = vm;
    session->jvmti = environment;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        if (!(options->modes & places[i].mode)) {
            continue;
        }
        if (places[i].open(&session->options, &session->sinks[session->sink_count]) == 0) {
            session->sink_count++;
        } else if (options->strict) {
            free_session(session);
            return NULL;
        }
    }
    if (session->sink_count == 0) { /* one that is left is better than none */
        free_session(session);
        return NULL;
    }
    return session;
}

/* The JVMTI environment, made when it is needed first. 0, or -1 after a message. */
static int prepare_environment(JavaVM *vm)
{
    if (environment) {
        return 0;
    }
    /* Every function we call is in JVMTI 1.0 but for the inline records, which come with 1.1. */
    jint error = (*vm)->GetEnv(vm, (void **)&environment, JVMTI_VERSION_1_1);
    if (error != JNI_OK) {
        message(MESSAGE_ERROR, "failed to get a JVMTI environment: JNI error %d", (int)error);
        environment = NULL;
        return -1;
    }
    if (events_prepare(environment) != 0) {
        (*environment)->DisposeEnvironment(environment);
        environment = NULL;
        return -1;
    }
    return 0;
}

/* Takes the session from the callbacks and then apart; control is held. */
static void stop(struct session *session)
{
    events_enable(session->jvmti, false);
    atomic_store(&current, NULL);
    if (!drain_callbacks()) {
        message(MESSAGE_WARNING, "a JVM thread did not leave the agent: the dump has no end mark");
        return;
    }
    free_session(session);
}

static int start(JavaVM *vm, const struct options *options, bool attached)
{
    message_set_level(options->verbose);
    if (prepare_environment(vm) != 0) {
        return -1;
    }
    struct session *session = new_session(vm, options);
    if (!session) {
        return -1;
    }
    atomic_store(&current, session);
    /* Live events first: what is compiled during the replay must not be missed. */
    if (events_enable(environment, true) != 0 || (attached && events_replay(session) != 0)) {
        stop(session);
        return -1;
    }
    return 0;
}

int session_start(JavaVM *vm, const struct options *options, bool attached)
{
    if (!take_control()) {
        message(MESSAGE_ERROR, "failed to start: another command is still at work");
        return -1;
    }
    int result = 0;
    struct session *running = atomic_load(&current);
    if (running && atomic_load(&running->failed)) {
        stop(running); /* nothing left of it but its memory */
        running = NULL;
    }
    if (running) {
        message(MESSAGE_WARNING, "is running already, and goes on as it is; stop it first to start "
                                 "anew");
    } else {
        result = start(vm, options, attached);
    }
    pthread_mutex_unlock(&control);
    return result;
}

void session_stop(void)
{
    if (!take_control()) {
        return;
    }
    struct session *session = atomic_load(&current);
    if (session) {
        stop(session);
    }
    pthread_mutex_unlock(&control);
}

void session_status(void)
{
}
