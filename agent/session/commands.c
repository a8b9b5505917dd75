#include "agent/session/commands.h"

#include "agent/events/events.h"
#include "agent/events/probes.h"
#include "agent/session/errands.h"
#include "agent/session/jvm_log.h"
#include "agent/session/session.h"
#include "agent/session/session_clock.h"
#include "agent/threads/identity.h"
#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- The answer to `status` ---- */

/* Memory that lines are appended to. */
struct report {
    char text[(OCCUPANCY_SINKS_MAX + 1) * (PATH_MAX + 256)];
    size_t length;
};

/* What snprintf wrote, or would have written, becomes part of the text. */
static void added(struct report *report, int n)
{
    size_t room = sizeof(report->text) - report->length;
    if (n > 0) {
        report->length += (size_t)n < room ? (size_t)n : room - 1;
    }
}

#define ADD_LINE(report, ...)                                                                      \
    added(report, snprintf((report)->text + (report)->length,                                      \
                           sizeof((report)->text) - (report)->length, __VA_ARGS__))

static void describe(struct report *report, const struct session *session)
{
    if (!session) {
        ADD_LINE(report, "state=stopped\n");
        return;
    }
    for (unsigned i = 0; i < session->sinks.count; i++) {
        struct sink_stats stats;
        occupancy_stats(session->sinks.occupancy, i, &stats);
        ADD_LINE(report,
                 "state=%s mode=%s seconds=%lld records=%" PRIu64 " bytes=%" PRIu64
                 " dropped=%" PRIu64 " segments=%" PRIu64 " file=%s\n",
                 stats.failed   ? "failed"
                 : stats.paused ? "paused"
                                : "running",
                 session->sinks.names[i], (long long)(time(NULL) - session->started), stats.records,
                 stats.bytes, stats.dropped, stats.segments, stats.path ? stats.path : "-");
    }
    if (session->options.lease[0]) {
        ADD_LINE(report, "lease=%s\n", session->options.lease);
    }
}

/* The same lines in a file of their own, for a script that cannot read the JVM's stderr. */
static int write_report(const struct report *report, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t written = fd < 0 ? -1 : write(fd, report->text, report->length);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && written >= 0) {
        error = errno;
        written = -1;
    }
    if (written != (ssize_t)report->length) {
        message(MESSAGE_ERROR, "failed to write the status to %s: %s", path,
                written < 0 ? strerror(error) : "no space left");
        return written < 0 ? -error : -ENOSPC;
    }
    return 0;
}

/*
 * Says how a session stands (NULL: there is none), a line of "key=value" words for each place that
 * it reports to, the file last, and one "lease=PATH" where it has a lease: on stderr, or in a new
 * file at `path` unless that is "". Returns 0, or a negative errno after a message.
 */
static int status_tell(const struct session *session, const char *path)
{
    struct report *report = calloc(1, sizeof(*report));
    if (!report) {
        message(MESSAGE_ERROR, "failed to report the status: no memory");
        return -ENOMEM;
    }
    describe(report, session);
    int result = 0;
    if (path[0]) {
        result = write_report(report, path);
    } else {
        char *rest = report->text;
        for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
            message(MESSAGE_ERROR, "status: %s", line); /* asked for, so at any level */
        }
    }
    free(report);
    return result;
}

/* ---- Commands ---- */

/* One for all sessions: the JVM frees an environment only at its own end. */
static struct session_jvm jvm;

/* Tells the table of classes that no event has told of; on a thread of the JVM's. */
static void catch_up_table(struct session *session, bool patient, bool is_last)
{
    JNIEnv *jni = NULL;
    if (session->table && (*jvm.vm)->GetEnv(jvm.vm, (void **)&jni, JNI_VERSION_1_6) == JNI_OK) {
        methods_file_catch_up(session->table, jvm.jvmti, jni, patient, is_last);
    }
}

/* Tells the journal of the threads that are there, or has the JVM log; on a thread of the JVM's. */
static void with_jni(struct session *session, void (*tell)(struct session *, JNIEnv *))
{
    JNIEnv *jni = NULL;
    if ((session->journal || session->options.log || session->options.lock_ns) &&
        (*jvm.vm)->GetEnv(jvm.vm, (void **)&jni, JNI_VERSION_1_6) == JNI_OK) {
        tell(session, jni);
    }
}

/* What the places had no room for, told once, at the end: the status goes with the JVM. */
static void tell_dropped(const struct session *session)
{
    for (unsigned i = 0; i < session->sinks.count; i++) {
        struct sink_stats stats;
        occupancy_stats(session->sinks.occupancy, i, &stats);
        if (stats.dropped > 0 && !stats.failed) { /* of a failure it has been told */
            message(stats.has_paused ? MESSAGE_INFO : MESSAGE_WARNING,
                    "%s: %llu times a piece of code could not be written to %s",
                    session->sinks.names[i], (unsigned long long)stats.dropped,
                    stats.path ? stats.path : "it");
        }
    }
}

/* At the JVM's start the VMInit event does it. */
static void prove_hotspot(void)
{
    JNIEnv *jni = NULL;
    if ((*jvm.vm)->GetEnv(jvm.vm, (void **)&jni, JNI_VERSION_1_6) == JNI_OK) {
        proof_make(jvm.proof, jvm.jvmti, jni);
    }
}

/* Has the JVM tell of nothing more, after what is told at a session's end alone; on a thread of the
 * JVM's, control held. */
static void silence(struct session *session)
{
    if (!atomic_load(&session->failed)) {
        if (!session->has_caught_up) {
            catch_up_table(session, false, true);
        }
        events_replay_stubs(session);
    }
    events_disable(jvm.jvmti);
    probes_stop(session);
    with_jni(session, identity_end);
    with_jni(session, jvm_log_end);
}

/*
 * Takes the session from the callbacks and then apart; control is held. On a thread that the JVM
 * does not know, events stay on: the next callback that finds no session turns them off.
 */
static void stop(struct session *session, bool java_thread)
{
    session_clock_cancel();
    errands_forget();
    if (java_thread) {
        silence(session);
    }
    identity_close(session);
    bool withdrawn = session_withdraw();
    if (java_thread) {
        events_relinquish(jvm.jvmti);
    }
    if (withdrawn) {
        tell_dropped(session);
        session_free(session);
    } else {
        message(MESSAGE_WARNING, "a JVM thread is still in the agent: the dump has no end mark");
    }
}

/*
 * A session whose sinks have all failed: nothing of it goes on. What is left of it answers for it
 * when somebody asks how it stands, until it is stopped or another one starts.
 */
static void end_failed(struct session *session)
{
    silence(session);
    identity_close(session);
    if (session_is_left()) {
        events_relinquish(jvm.jvmti);
        session_close_table(session);
    }
}

static void stop_current(void)
{
    struct session *session = session_current();
    if (session) {
        stop(session, true);
    }
}

/*
 * On the clock's thread, which becomes one of the JVM's for as long as it takes to ask for the
 * stubs once more. Before control is taken: a JVM that ends keeps new threads waiting for good.
 */
static bool stop_expired(uint64_t serial, enum session_end why)
{
    if (!errands_are_live()) {
        return false; /* the JVM's start takes longer than the session is to last */
    }
    bool attached = errands_attach("jdagent clock");
    bool in_control = session_take_control();
    if (in_control) {
        struct session *session = session_current();
        if (session && session->serial == serial) {
            if (why == SESSION_OVER) {
                message(MESSAGE_INFO, "stopping: duration=%u has passed",
                        (unsigned)session->options.duration);
            } else {
                message(MESSAGE_INFO, "stopping: nobody holds the lease %s any more",
                        session->options.lease);
            }
            stop(session, attached);
        }
        session_release_control();
    }
    if (attached) {
        (*jvm.vm)->DetachCurrentThread(jvm.vm);
    }
    return in_control;
}

/* ---- What a slow disk had to leave out, what a new segment's table begins with, failures ---- */

/* A replay that another thread is at may have passed what is missing: so one more is needed. */
static errands run_errands(errands wanted)
{
    struct session *session = session_current();
    errands left = 0;
    if (!session) {
        return 0;
    }
    if (atomic_load(&session->failed)) {
        end_failed(session);
        return 0;
    }
    if (session->table && wanted & 1U << ERRAND_TABLE) {
        methods_file_forget(session->table);
    }
    if (wanted & 1U << ERRAND_ALL) {
        message(MESSAGE_INFO, "asks the JVM once more for what could not be written");
        left = events_replay(session, true) == -EBUSY ? 1U << ERRAND_ALL : 0;
    }
    /* The JVM may end any time, and what a slow disk has no room for is asked for once more. */
    catch_up_table(session, wanted != 1U << ERRAND_METHODS, false);
    session->has_caught_up = atomic_load(&session->ending);
    return left;
}

/* On the log's thread, which must not wait for the JVM. */
static bool heal(void *unused, enum record_log_want want)
{
    (void)unused;
    return errands_want(want == RECORD_LOG_WANTS_TABLE ? ERRAND_TABLE : ERRAND_ALL);
}

/*
 * VMDeath. A replay of a large code cache may be under way: the rest of it is given up, and the
 * JVM's end does not wait for it.
 */
static void stop_at_death(void)
{
    if (!session_try_control()) {
        session_end_soon();
        if (!session_take_control()) {
            return;
        }
    }
    const struct session *session = session_current();
    if (session && session->sinks.log) {
        record_log_process_ends(session->sinks.log); /* Java runs on up to its last safepoint */
    }
    stop_current();
    session_release_control();
}

/*
 * The JVMTI environment, made when it is needed first. 0, or a negative errno after a message;
 * without one -EAGAIN in a JVM that starts, whose attach listener answers before JNI_CreateJavaVM
 * has ended. Between Agent_OnLoad and the live phase HotSpot gives no environment to anybody
 * (JvmtiExport::get_jvmti_interface), and no capabilities to one from Agent_OnLoad, as there is
 * where the agent could not begin at the JVM's start.
 */
static int prepare_environment(JavaVM *vm)
{
    /* Every function we call is in JVMTI 1.0 but for the inline records, which come with 1.1. */
    jvmtiEnv *jvmti = jvm.jvmti;
    jvmtiPhase phase = JVMTI_PHASE_LIVE;
    jint error = jvmti ? JNI_OK : (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_1);
    if (error == JNI_EDETACHED ||
        (jvm.jvmti && (*jvmti)->GetPhase(jvmti, &phase) == JVMTI_ERROR_NONE &&
         (phase == JVMTI_PHASE_PRIMORDIAL || phase == JVMTI_PHASE_START))) {
        return -EAGAIN;
    }
    if (error != JNI_OK) {
        message(MESSAGE_ERROR, "failed to get a JVMTI environment: JNI error %d", (int)error);
        return -ENOTSUP;
    }
    if (jvm.jvmti) {
        return 0;
    }
    int prepared = events_prepare(jvmti, errands_live, stop_at_death);
    if (prepared != 0) {
        (*jvmti)->DisposeEnvironment(jvmti);
        return prepared;
    }
    jvm = (struct session_jvm){.vm = vm, .jvmti = jvmti, .major = events_jvm_major(jvmti)};
    errands_prepare(vm, run_errands);
    jvm.hotspot = hotspot_new((const void *)(*vm)->GetEnv, jvm.major);
    jvm.proof = proof_new(jvm.hotspot, jvm.major);
    if (!jvm.hotspot) {
        message(MESSAGE_INFO, "this JVM does not provide tiers and frame sizes");
    }
    return 0;
}

/* Has the session end by itself, where that was asked for. 0, or a negative errno after a message;
 * closes the lease then, which may be -1. */
static int start_clock(const struct session *session, int lease)
{
    struct session_clock clock = {
        .seconds = session->options.duration,
        .lease = lease,
        .session = session->serial,
        .expired = stop_expired,
    };
    int error = clock.seconds || lease >= 0 ? session_clock_start(&clock) : 0;
    if (error) {
        message(MESSAGE_ERROR, "failed to start the clock of duration=%u and lease=%s: %s",
                (unsigned)clock.seconds, session->options.lease, strerror(-error));
    }
    return error;
}

static int start_session(JavaVM *vm, const struct options *options, bool attached, int lease)
{
    int error = prepare_environment(vm);
    error = error ? error : events_acquire(jvm.jvmti);
    if (error) {
        lease_close(lease);
        return error;
    }
    struct session *session = session_new(&jvm, options);
    if (!session) {
        lease_close(lease);
        events_relinquish(jvm.jvmti);
        return -ENODEV; /* it has said why */
    }
    sinks_on_want(&session->sinks, heal, NULL);
    session_publish(session);
    if (attached) {
        errands_live();
        prove_hotspot();
    }
    /* Live events first: what is compiled during the replay must not be missed. */
    error = events_enable(jvm.jvmti, session->table != NULL);
    if (!error && attached) {
        error = events_replay(session, true);
    }
    if (error) {
        lease_close(lease);
        stop(session, true);
        return error;
    }
    if (attached) {
        catch_up_table(session, true, false);
        /* A disk that was full before everything was told: no session for anybody to count on. */
        if (!sinks_stand(&session->sinks, options->strict)) {
            message(MESSAGE_INFO, "failed to describe all code: the session ends");
            lease_close(lease);
            stop(session, true);
            return -EIO;
        }
    }
    error = start_clock(session, lease);
    if (error) {
        stop(session, true);
        return error;
    }
    probes_enable(session);
    if (attached) {
        with_jni(session, probes_begin);
        with_jni(session, identity_begin);
        with_jni(session, jvm_log_begin);
    }
    return 0;
}

static int start(JavaVM *vm, const struct options *options, bool attached)
{
    message_set_level(options->verbose);
    int lease = -1;
    if (options->lease[0] && (lease = lease_open(options->lease)) < 0) {
        return lease;
    }
    return start_session(vm, options, attached, lease);
}

jint command_start(JavaVM *vm, const struct options *options, bool attached)
{
    if (!session_take_control()) {
        message(MESSAGE_ERROR, "failed to start: another command is still at work");
        return JNI_ERR;
    }
    /* Who asks for a session of its own knows by our answer what to do, and says what is to be
     * said. */
    const bool is_told = options->lease[0];
    jint result = JNI_OK;
    struct session *running = session_current();
    if (running && atomic_load(&running->failed)) {
        stop(running, true); /* nothing left of it but its memory */
        running = NULL;
    }
    if (running) {
        message(is_told ? MESSAGE_DEBUG : MESSAGE_WARNING,
                "already running, nothing changed; to start again, stop it first");
        result = is_told ? JNI_EEXIST : JNI_OK;
    } else {
        probes_at_work(true);
        int error = start(vm, options, attached);
        probes_at_work(false);
        if (error == -EAGAIN) {
            message(is_told ? MESSAGE_DEBUG : MESSAGE_ERROR,
                    "failed to attach: the JVM has not finished starting; try again");
        }
        result = error == -EAGAIN ? JNI_EDETACHED : error ? JNI_ERR : JNI_OK;
    }
    session_release_control();
    return result;
}

void command_stop(const char *lease)
{
    if (session_take_control()) {
        const struct session *session = session_current();
        if (session && (!*lease || strcmp(lease, session->options.lease) == 0)) {
            stop_current();
        }
        session_release_control();
    }
}

int command_status(const char *path)
{
    if (!session_take_control()) {
        message(MESSAGE_ERROR, "failed to report the status: another command is still at work");
        return -EBUSY;
    }
    int result = status_tell(session_current(), path);
    session_release_control();
    return result;
}

void command_unload(void)
{
    if (session_try_control()) {
        stop_current();
        session_release_control();
    }
}
