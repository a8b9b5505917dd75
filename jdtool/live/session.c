#include "jdtool/live/session.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/child.h"
#include "jdtool/live/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

void session_init(struct live_session *session, const struct target *target,
                  struct waiting *waiting, struct guarded *guarded, const char *agent_here)
{
    *session = (struct live_session){
        .target = target,
        .waiting = waiting,
        .guarded = guarded,
        .agent_here = agent_here,
        .staging = NO_STAGING,
        .lease = -1,
    };
}

void session_announce_warning(const struct target *target)
{
    char path[PATH_MAX];
    if (target->java >= 21 && !target_agent(target, path) &&
        !process_has_argument(&target->process, "-XX:+EnableDynamicAgentLoading") &&
        !process_has_argument(&target->process, "-XX:-EnableDynamicAgentLoading")) {
        info_message("the JVM (JDK %d) will print a warning about the agent; start it with "
                     "-XX:+EnableDynamicAgentLoading to avoid that",
                     target->java);
    }
}

/* ---- The agent's place ---- */

/* Whether the target's user can read our file. */
static bool user_can_read(struct live_session *session, const char *path)
{
    char *const arguments[] = {"test", "-r", (char *)path, NULL};
    struct child_options options = {
        .arguments = arguments,
        .drop = true,
        .uid = session->target->uid,
        .gid = session->target->gid,
    };
    char answer[64];
    int status = 1;
    if (session->target->uid == geteuid()) {
        return access(path, R_OK) == 0;
    }
    return child_talk(&options, session->waiting, deadline_in(5000), answer, sizeof answer,
                      &status) == 0 &&
           status == 0;
}

static int need_agent(const struct live_session *session)
{
    if (access(session->agent_here, R_OK) != 0) {
        failed_to(-errno, "find the agent at %s", session->agent_here);
        return -ENOENT;
    }
    return 0;
}

/*
 * Decides where the JVM loads the agent from. One that is loaded already is used again, by the very
 * same path: another path would be another agent. *copy: it has to be put into the staging
 * directory first.
 */
static int choose_agent(struct live_session *session, bool *copy)
{
    *copy = false;
    if (session->agent[0] || target_agent(session->target, session->agent)) {
        return 0;
    }
    int err = need_agent(session);
    if (err) {
        return err;
    }
    if (session->target->same_files && user_can_read(session, session->agent_here)) {
        snprintf(session->agent, sizeof session->agent, "%s", session->agent_here);
    } else {
        *copy = true;
    }
    return 0;
}

/* ---- The staging directory ---- */

static void guard_note(struct live_session *session, enum guarded_kind kind, bool leased)
{
    if (!session->guarded) {
        return;
    }
    struct guarded_session *note = &session->guarded->session;
    note->leased = leased;
    snprintf(note->staging, sizeof note->staging, "%s",
             session->staging.place >= 0 ? session->staging.path : "");
    snprintf(note->agent, sizeof note->agent, "%s", session->agent);
    atomic_store(&note->kind, kind);
}

static void guard_forget(struct live_session *session)
{
    if (session->guarded) {
        atomic_store(&session->guarded->session.kind, GUARD_NOTHING);
    }
}

static void close_lease(struct live_session *session)
{
    descriptor_close(session->lease);
    session->lease = -1;
}

/* Makes the staging directory, with what is to be in it, and gives it to the JVM. */
static int make_staging(struct live_session *session, bool copy_agent, bool leased)
{
    struct staging *staging = &session->staging;
    int err = staging_plan(staging, session->target, NULL);
    if (err) {
        return err;
    }
    if (copy_agent) {
        snprintf(session->agent, sizeof session->agent, "%s/libjdagent.so", staging->path);
    }
    guard_note(session, leased ? GUARD_SESSION : GUARD_STAGING, leased);
    err = staging_make(staging, session->target);
    if (!err && copy_agent) {
        err = staging_add_agent(staging, session->target, session->agent_here);
    }
    if (!err) {
        session->lease = staging_make_lease(staging, session->target);
        err = session->lease < 0 ? session->lease : 0;
    }
    if (!err) {
        err = staging_give(staging, session->target);
    }
    if (err) {
        if (copy_agent) {
            session->agent[0] = '\0';
        }
        session_leave(session);
    }
    return err;
}

/* How the session is known that is ours to end. */
static void remember_lease(struct live_session *session, const char *staging)
{
    snprintf(session->lease_path, sizeof session->lease_path, "%.*s/" LEASE_NAME,
             STAGING_PATH_MAX - 1, staging);
}

/* ---- Asking ---- */

/* The value of " key=" in a line, up to a blank, or to the line's end for a path. */
static bool value_in(const char *line, const char *end, const char *key, bool path, char *value,
                     size_t size)
{
    size_t length = strlen(key);
    for (const char *at = line; at && at + length <= end;
         at = memchr(at, ' ', (size_t)(end - at))) {
        at += *at == ' ';
        if ((size_t)(end - at) > length && strncmp(at, key, length) == 0 && at[length] == '=') {
            at += length + 1;
            size_t n = path ? (size_t)(end - at) : strcspn(at, " \n");
            if (n >= size) {
                return false;
            }
            memcpy(value, at, n);
            value[n] = '\0';
            return true;
        }
    }
    return false;
}

static void parse_status(struct session_status *status)
{
    for (const char *line = status->text; *line;) {
        const char *end = strchrnul(line, '\n');
        char state[32] = "";
        char mode[32] = "";
        if (strncmp(line, "lease=", 6) == 0) {
            value_in(line, end, "lease", true, status->lease, sizeof status->lease);
        }
        value_in(line, end, "state", false, state, sizeof state);
        value_in(line, end, "mode", false, mode, sizeof mode);
        bool runs = strcmp(state, "running") == 0;
        status->running |= runs;
        status->failed |= strcmp(state, "failed") == 0;
        status->has_map |= runs && strcmp(mode, "map") == 0;
        if (runs && strcmp(mode, "jitdump") == 0) {
            status->has_dump = true;
            value_in(line, end, "file", true, status->dump, sizeof status->dump);
        }
        line = *end ? end + 1 : end;
    }
}

/* Reads and removes the answer that the agent has left. */
static int read_answer(const struct live_session *session, const char *name,
                       struct session_status *status)
{
    const struct staging *staging = &session->staging;
    int fd = open_file_below(staging->directory, name, session->target->uid, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, status->text, sizeof status->text - 1) : -1;
    descriptor_close(fd);
    (void)unlinkat(staging->directory, name, 0);
    status->text[n > 0 ? n : 0] = '\0';
    return n > 0 ? 0 : -ENODATA;
}

int session_status(struct live_session *session, struct session_status *status)
{
    *status = (struct session_status){0};
    char loaded[PATH_MAX];
    if (!target_agent(session->target, loaded)) {
        snprintf(status->text, sizeof status->text, "state=absent\n");
        return 0;
    }
    bool copy;
    int err = choose_agent(session, &copy);
    bool own_staging = session->staging.place < 0;
    if (!err && own_staging) {
        err = make_staging(session, false, false);
    }
    if (err) {
        return err;
    }
    uint32_t number = 0;
    char name[32];
    char options[128];
    (void)!getrandom(&number, sizeof number, 0);
    snprintf(name, sizeof name, "status.%" PRIu32, number);
    snprintf(options, sizeof options, "status=%s/%s", session->staging.path, name);
    err = ask_to_load(session->target, session->agent, options, session->waiting, 10000);
    if (!err && (err = read_answer(session, name, status)) != 0) {
        error_message("the agent in process %d does not answer", (int)session->target->process.pid);
    }
    if (own_staging) {
        close_lease(session);
        staging_remove(&session->staging);
        guard_forget(session);
    }
    parse_status(status);
    return err;
}

/* ---- Joining and starting ---- */

int session_join(struct live_session *session, const struct session_status *status)
{
    char directory[PATH_MAX];
    char *slash;
    if (!status->lease[0]) {
        return -ENOENT;
    }
    snprintf(directory, sizeof directory, "%s", status->lease);
    slash = strrchr(directory, '/');
    if (!slash || strcmp(slash + 1, LEASE_NAME) != 0) {
        return -ENOENT;
    }
    *slash = '\0';
    slash = strrchr(directory, '/');
    if (!slash || !staging_is_name(slash + 1)) {
        return -ENOENT;
    }
    struct staging staging;
    int err = staging_plan(&staging, session->target, directory);
    if (!err) {
        err = staging_open(&staging);
    }
    int lease =
        err ? err : open_file_below(staging.directory, LEASE_NAME, session->target->uid, O_RDWR);
    if (lease >= 0) {
        err = lease_take(lease);
    }
    /* It may have been ended between the question and the lock. */
    char dump[PATH_MAX];
    if (lease < 0 || err || (status->has_dump && !target_dump(session->target, dump))) {
        descriptor_close(lease);
        staging_close(&staging);
        return -EAGAIN;
    }
    session->staging = staging;
    session->lease = lease;
    remember_lease(session, staging.path);
    session->joined = true;
    session->leave = true;
    bool copy;
    (void)choose_agent(session, &copy);
    guard_note(session, GUARD_SESSION, true);
    return 0;
}

static bool has_key(const char *options, const char *key, size_t length)
{
    for (const char *at = options; *at; at += strcspn(at, ","), at += *at == ',') {
        if (strncmp(at, key, length) == 0 &&
            (at[length] == '=' || at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static void add_option(char *options, const char *option, size_t length)
{
    size_t used = strlen(options);
    if (used + length + 2 <= SESSION_OPTIONS_MAX) {
        snprintf(options + used, SESSION_OPTIONS_MAX - used, "%s%.*s", used ? "," : "", (int)length,
                 option);
    }
}

/* Adds those of `more` whose keys are not there: the agent takes no key twice. */
static void add_options(char *options, const char *more)
{
    while (more && *more) {
        size_t length = strcspn(more, ",");
        if (!has_key(options, more, strcspn(more, "=,"))) {
            add_option(options, more, length);
        }
        more += length + (more[length] == ',');
    }
}

static void add_path(char *options, const char *key, const char *path)
{
    char option[PATH_MAX + 32];
    int length = snprintf(option, sizeof option, "%s=%s", key, path);
    if (!has_key(options, key, strlen(key))) {
        add_option(options, option, (size_t)length);
    }
}

void session_compose_options(char *text, const char *options, const char *dir, const char *more)
{
    add_options(text, options);
    if (dir) {
        add_path(text, "dir", dir);
    }
    add_options(text, more);
}

int session_start(struct live_session *session, const char *dir, bool leased, const char *options,
                  const char *more)
{
    char *text = calloc(1, SESSION_OPTIONS_MAX);
    bool copy = false;
    int err = text ? choose_agent(session, &copy) : -ENOMEM;
    bool staged = dir && !*dir;
    bool here = dir && !staged && target_is_like_us(session->target);
    bool elsewhere = staged || !target_is_like_us(session->target);
    if (!err && (copy || leased || elsewhere)) {
        err = make_staging(session, copy, leased);
    }
    if (!err && elsewhere && session->staging.noexec && !strstr(options, "mode=map")) {
        /* The agent maps its dump executable. */
        err = staging_refuse_noexec(session->target);
        session_leave(session);
    }
    if (err) {
        free(text);
        return err;
    }
    session_compose_options(text, options,
                            here        ? dir
                            : elsewhere ? session->staging.path
                                        : NULL,
                            more);
    if (leased && !has_key(text, "lease", strlen("lease"))) {
        remember_lease(session, session->staging.path);
        add_path(text, "lease", session->lease_path);
    }
    /* Before the answer: the JVM acts on the request even if we are ended while it is under way. */
    session->leave = true;
    guard_note(session, GUARD_SESSION, leased);
    err = ask_to_load(session->target, session->agent, text, session->waiting, ASK_LOAD_MS);
    free(text);
    if (err) {
        staging_tell_room(&session->staging, err);
        /* One with a lease ends itself, for nobody holds that; to ask once more would take as long
         * again. */
        session->leave = !leased && (err == -EINTR || err == -ETIMEDOUT);
        session_leave(session);
    }
    return err;
}

/* ---- Leaving ---- */

/* `lease`: of the session that is meant, "": whichever runs. */
static int stop(struct live_session *session, const char *lease)
{
    char options[sizeof "stop,lease=" + sizeof session->lease_path];
    /* Not broken off by the signal that makes us stop; a JVM that is silent does not keep us. */
    struct waiting patient = {.signals = -1};
    bool copy;
    int err = choose_agent(session, &copy);
    if (err || copy) {
        return err;
    }
    snprintf(options, sizeof options, "stop%s%s", *lease ? ",lease=" : "", lease);
    return ask_to_load(session->target, session->agent, options, &patient, 10000);
}

int session_stop(struct live_session *session)
{
    return stop(session, "");
}

int session_leave(struct live_session *session)
{
    int err = 0;
    bool last = session->lease < 0 ? !session->joined : lease_take_over(session->lease);
    if (last && session->leave && process_lives(&session->target->process)) {
        err = stop(session, session->lease_path);
    }
    if (last) {
        staging_remove(&session->staging);
    } else {
        staging_close(&session->staging);
    }
    close_lease(session);
    session->leave = false;
    guard_forget(session);
    return err;
}

void session_adopt(struct live_session *session, const char *staging, bool leased, bool leave)
{
    session->leave = leave;
    if (staging[0] && staging_plan(&session->staging, session->target, staging) == 0 &&
        staging_open(&session->staging) == 0 && leased) {
        session->lease =
            open_file_below(session->staging.directory, LEASE_NAME, session->target->uid, O_RDWR);
    }
    if (staging[0] && leased) {
        remember_lease(session, staging);
    }
}

void session_keep(struct live_session *session, bool staging_needed)
{
    close_lease(session);
    if (staging_needed) {
        staging_close(&session->staging);
    } else {
        staging_remove(&session->staging);
    }
    session->leave = false;
    guard_forget(session);
}
