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

#include "agent/duration.h"
#include "agent/events.h"
#include "agent/method_listing.h"
#include "agent/status.h"
#include "writer/message.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a command waits for callbacks or for another command. */
enum { PATIENCE_SECONDS = 5 };

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct session *) current;
/* One for all sessions: the JVM frees an environment only at its own end. */
static jvmtiEnv *environment;
static struct hotspot *hotspot;

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

void session_stray_event(jvmtiEnv *jvmti)
{
    /* Under control, for a session that is about to start wants its events. */
    if (pthread_mutex_trylock(&control) == 0) {
        if (!atomic_load(&current)) {
            events_disable(jvmti);
        }
        pthread_mutex_unlock(&control);
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

/* Nothing is left to report to, so there is no reason to be called. */
static void give_up(struct session *session)
{
    if (!atomic_exchange(&session->failed, true)) {
        events_disable(session->jvmti);
    }
}

void session_load(struct session *session, const struct code *code)
{
    if (!sinks_load(&session->sinks, code)) {
        give_up(session);
    }
}

void session_unload(struct session *session, uint64_t address)
{
    if (!sinks_unload(&session->sinks, address)) {
        give_up(session);
    }
}

static void free_session(struct session *session)
{
    if (!session) {
        return;
    }
    method_table_close(session->table);
    sinks_close(&session->sinks);
    free_scratch(atomic_load(&session->spare));
    method_cache_free(session->methods);
    free(session);
}

/* Where there is a dump, beside it. Without the table the profile is still worth having. */
static void open_table(struct session *session, const struct method_cache_options *names)
{
    struct method_table_options options = {
        .names = *names,
        .hotspot = session->hotspot,
        .tsc = session->options.tsc,
        .max_bytes = session->options.max_bytes,
    };
    for (unsigned i = 0; i < session->sinks.count && !session->table; i++) {
        struct sink_stats stats;
        sink_stats(session->sinks.sinks[i], &stats);
        if (strcmp(session->sinks.names[i], "jitdump") == 0 && stats.path) {
            options.dump = stats.path;
            (void)method_table_open(&options, &session->table);
            return;
        }
    }
}

/* Tells the table of classes that no event has told of; on a thread of the JVM's. */
static void catch_up_table(struct session *session)
{
    JNIEnv *jni = NULL;
    if (session->table &&
        (*session->vm)->GetEnv(session->vm, (void **)&jni, JNI_VERSION_1_6) == JNI_OK) {
        method_table_catch_up(session->table, session->jvmti, jni);
    }
}

/* The methods of a class, and only they, lead to its constant pool. */
static const void *class_key(void *vm, jmethodID id)
{
    struct hotspot_method method;
    return hotspot_method(vm, id, &method) ? method.constant_pool : NULL;
}

static struct session *new_session(JavaVM *vm, const struct options *options)
{
    struct session *session = calloc(1, sizeof(*session));
    bool listings = options->samply && options->modes & MODE_JITDUMP;
    bool ids_are_pointers = hotspot && events_jvm_major(environment) <= 25;
    const struct method_cache_options methods = {
        .names = options->names,
        .normalize = options->normalize,
        .listings = listings && method_listing_prepare(environment),
        .source_path = session ? session->options.source_path : NULL,
        .ids_are_pointers = ids_are_pointers,
        .class_key = ids_are_pointers && hotspot_knows_methods(hotspot) ? class_key : NULL,
        .context = hotspot,
    };
    if (!session || !(session->methods = method_cache_new(&methods))) {
        message(MESSAGE_ERROR, "failed to start: no memory");
        free_session(session);
        return NULL;
    }
    static uint64_t last_serial;
    session->serial = ++last_serial;
    session->started = time(NULL);
    session->options = *options;
    session->vm = vm;
    session->jvmti = environment;
    session->hotspot = hotspot;
    if (sinks_open(&session->sinks, &session->options) != 0) {
        free_session(session);
        return NULL;
    }
    if (options->methods) {
        open_table(session, &methods);
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
    hotspot = hotspot_new(vm);
    if (!hotspot) {
        message(MESSAGE_INFO, "this JVM does not tell tiers and frame sizes");
    }
    return 0;
}

/*
 * Takes the session from the callbacks and then apart; control is held. On a thread that the JVM
 * does not know, events stay on: the next callback that finds no session turns them off.
 */
static void stop(struct session *session, bool java_thread)
{
    duration_cancel();
    if (java_thread) {
        catch_up_table(session);
        events_disable(session->jvmti);
    }
    atomic_store(&current, NULL);
    if (!drain_callbacks()) {
        message(MESSAGE_WARNING, "a JVM thread did not leave the agent: the dump has no end mark");
        return;
    }
    free_session(session);
}

static void stop_expired(uint64_t serial)
{
    if (!take_control()) {
        return;
    }
    struct session *session = atomic_load(&current);
    if (session && session->serial == serial) {
        message(MESSAGE_INFO, "stops: duration=%u is over", (unsigned)session->options.duration);
        stop(session, false);
    }
    pthread_mutex_unlock(&control);
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
    if (events_enable(environment, session->table != NULL) != 0 ||
        (attached && events_replay(session) != 0)) {
        stop(session, true);
        return -1;
    }
    if (attached) {
        catch_up_table(session);
    }
    int error =
        options->duration ? duration_start(options->duration, stop_expired, session->serial) : 0;
    if (error) {
        message(MESSAGE_ERROR, "failed to start the clock of duration=%u: %s",
                (unsigned)options->duration, strerror(-error));
        stop(session, true);
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
        stop(running, true); /* nothing left of it but its memory */
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
        stop(session, true);
    }
    pthread_mutex_unlock(&control);
}

int session_status(const char *path)
{
    if (!take_control()) {
        message(MESSAGE_ERROR, "failed to tell the status: another command is still at work");
        return -1;
    }
    int result = status_tell(atomic_load(&current), path);
    pthread_mutex_unlock(&control);
    return result;
}
