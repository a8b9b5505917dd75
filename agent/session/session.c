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
 * than the JVM kept from ending. Those who wait look again and again; so callbacks, which are many,
 * need not wake commands, which are few.
 */
#include "agent/session/session.h"

#include "agent/session/errands.h"
#include "agent/threads/identity.h"
#include "format/methods.h"
#include "writer/message.h"
#include "writer/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a command waits for callbacks or for another command. */
enum { PATIENCE_MS = 5000 };

static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct session *) current;
static atomic_uint inside; /* callbacks */

static bool wait_for(bool (*met)(void))
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    for (int ms = 0; !met(); ms++) {
        if (ms == PATIENCE_MS) {
            return false;
        }
        nanosleep(&millisecond, NULL);
    }
    return true;
}

/* ---- Commands ---- */

bool session_try_control(void)
{
    return pthread_mutex_trylock(&control) == 0;
}

bool session_take_control(void)
{
    return wait_for(session_try_control);
}

void session_release_control(void)
{
    pthread_mutex_unlock(&control);
}

struct session *session_current(void)
{
    return atomic_load(&current);
}

void session_publish(struct session *session)
{
    atomic_store(&current, session);
}

static bool nobody_inside(void)
{
    return atomic_load(&inside) == 0;
}

bool session_withdraw(void)
{
    atomic_store(&current, NULL);
    return wait_for(nobody_inside);
}

bool session_is_left(void)
{
    return wait_for(nobody_inside);
}

void session_close_table(struct session *session)
{
    if (session->table) {
        record_log_end(session->sinks.log, RECORD_LOG_TABLE);
        methods_file_close(session->table);
        session->table = NULL;
    }
}

void session_end_soon(void)
{
    struct session *session = session_enter();
    if (session) {
        atomic_store(&session->ending, true);
        session_leave();
    }
}

/*
 * What the JVM runs, as its launcher tells it (java.c: SetJavaCommandLineProp): the main class, or
 * the jar's name; not the arguments, which may be secret. "" where another program made the JVM.
 */
static void read_program(jvmtiEnv *jvmti, char program[METHODS_PROGRAM_MAX])
{
    char *command = NULL;
    program[0] = '\0';
    if ((*jvmti)->GetSystemProperty(jvmti, "sun.java.command", &command) == JVMTI_ERROR_NONE) {
        command[strcspn(command, " ")] = '\0';
        const char *slash = strrchr(command, '/');
        snprintf(program, METHODS_PROGRAM_MAX, "%s", slash ? slash + 1 : command);
        (*jvmti)->Deallocate(jvmti, (unsigned char *)command);
    }
}

/* Where there is a dump, beside it. Without the table the profile is still worth having. */
static void open_table(struct session *session, const struct method_cache_options *names)
{
    char program[METHODS_PROGRAM_MAX];
    struct methods_file_options options = {
        .program = program,
        .names = *names,
        .hotspot = session->jvm.hotspot,
        .proof = session->jvm.proof,
        .tsc = session->options.tsc,
        .log = session->sinks.log,
    };
    if (options.log) {
        read_program(session->jvm.jvmti, program);
        (void)methods_file_open(&options, &session->table);
    }
}

static enum hotspot_bond bond(void *hotspot, struct hotspot_nearby *nearby, uint64_t vm_method,
                              jmethodID id, uint64_t *class_key)
{
    return hotspot_bond(hotspot, nearby, vm_method, (uint64_t)(uintptr_t)id, class_key);
}

static bool read_method(void *hotspot, struct hotspot_nearby *nearby, uint64_t vm_method,
                        struct hotspot_methods *methods)
{
    return hotspot_one_method(hotspot, nearby, vm_method, methods);
}

struct session *session_new(const struct session_jvm *jvm, const struct options *options)
{
    struct session *session = calloc(1, sizeof(*session));
    const struct method_cache_options methods = {
        .names = options->names,
        .normalize = options->normalize,
        .bond = bond,
        .read = read_method,
        .context = jvm->hotspot,
    };
    if (!session || !(session->methods = method_cache_new(&methods))) {
        message(MESSAGE_ERROR, "failed to start: no memory");
        session_free(session);
        return NULL;
    }
    static uint64_t last_serial;
    session->serial = ++last_serial;
    session->started = time(NULL);
    atomic_flag_clear(&session->replay_taken);
    session->options = *options;
    session->jvm = *jvm;
    if (sinks_open(&session->sinks, &session->options) != 0) {
        session_free(session);
        return NULL;
    }
    session->generation = process_generation(); /* which the sinks watch */
    if (options->methods) {
        open_table(session, &methods);
        if (!session->table && options->strict) {
            session_free(session);
            return NULL;
        }
    }
    if (options->threads && identity_open(session) != 0 && options->strict) {
        session_free(session);
        return NULL;
    }
    if (options->tier && !jvm->hotspot) {
        message(MESSAGE_WARNING, "tier=on: this JVM does not provide tiers; names have none");
    }
    return session;
}

static void free_scratch(struct scratch *scratch)
{
    if (scratch) {
        inline_builder_free(scratch->inlines);
        method_set_destroy(&scratch->methods);
        inline_scopes_free(&scratch->scopes);
        hotspot_nearby_free(scratch->nearby);
        free(scratch);
    }
}

void session_free(struct session *session)
{
    if (!session) {
        return;
    }
    identity_close(session);
    methods_file_close(session->table);
    sinks_close(&session->sinks);
    free_scratch(atomic_load(&session->spare));
    method_cache_free(session->methods);
    free(session);
}

/* ---- Callbacks ---- */

/* A fork of the JVM has its locks as they were, perhaps taken for ever, and none of its files. */
static bool is_of_use(const struct session *session)
{
    return !atomic_load_explicit(&session->failed, memory_order_relaxed) &&
           !atomic_load_explicit(&session->ending, memory_order_relaxed) &&
           session->generation == process_generation();
}

struct session *session_enter(void)
{
    atomic_fetch_add(&inside, 1);
    struct session *session = atomic_load(&current);
    if (!session || !is_of_use(session)) {
        session_leave();
        return NULL;
    }
    return session;
}

void session_leave(void)
{
    atomic_fetch_sub(&inside, 1);
}

void session_load(struct session *session, struct code *code, struct timeline_spot *spot)
{
    code->facts.frozen = proof_frozen(session->jvm.proof);
    struct occupancy *occupancy = session->sinks.occupancy;
    if (occupancy_load(occupancy, code, spot) != 0 && occupancy_is_dead(occupancy) &&
        !atomic_exchange(&session->failed, true)) {
        (void)errands_want(ERRAND_END); /* else who stops it, or the JVM's end, does */
    }
}

struct scratch *session_take_scratch(struct session *session)
{
    struct scratch *scratch = atomic_exchange(&session->spare, NULL);
    if (scratch) {
        return scratch;
    }
    scratch = calloc(1, sizeof(*scratch));
    if (scratch &&
        (!inline_scopes_init(&scratch->scopes) || !(scratch->inlines = inline_builder_new()))) {
        free_scratch(scratch);
        scratch = NULL;
    }
    if (scratch && session->jvm.hotspot) {
        scratch->nearby = hotspot_nearby_new();
    }
    return scratch;
}

void session_give_scratch(struct session *session, struct scratch *scratch)
{
    free_scratch(atomic_exchange(&session->spare, scratch));
}
