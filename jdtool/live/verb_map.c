/* jdperf map: a perf map for tools that read nothing else. */
#include "jdtool/base/message.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/guard.h"
#include "jdtool/live/perf_map.h"
#include "jdtool/live/session.h"
#include "jdtool/live/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
    struct waiting waiting;
    struct target target;
    struct guardian guardian;
    struct live_session session;
    struct session_status status;
    char dump[PATH_MAX]; /* of a session that writes no map; "": it writes one */
    bool follow;
};

static int refresh(struct work *work)
{
    return work->dump[0] ? perf_map_from_dump(&work->target, work->dump, &work->waiting)
                         : perf_map_publish(&work->target);
}

/* Says what there is, and keeps it up to date until a signal or the JVM's end. */
static int show(struct work *work)
{
    char path[64];
    int err = refresh(work);
    long count = err ? err : perf_map_count(&work->target, path);
    if (count < 0) {
        if (err == -ENOENT || !err) {
            error_message("there is no perf map of process %d", (int)work->target.process.pid);
        }
        return STATUS_FAILED;
    }
    info_message("%ld names in %s", count, path);
    if (!work->follow) {
        return STATUS_DONE;
    }
    info_message("keeping it up to date until Ctrl-C");
    while (!work->waiting.ended_by) {
        struct pollfd ends = {.fd = work->target.process.pidfd, .events = POLLIN};
        if (wait_for(&work->waiting, &ends, 1, deadline_in(1000), true) == 0) {
            break;
        }
        err = refresh(work);
        if (err && err != -EINTR && err != -ENOENT) {
            return STATUS_FAILED;
        }
    }
    return STATUS_DONE;
}

static int others_session(struct work *work)
{
    int pid = (int)work->target.process.pid;
    /* Its end is not ours to decide, but while we look at it it is not to end. */
    (void)session_join(&work->session, &work->status);
    if (work->status.has_map) {
        info_message("a session in process %d already updates the map", pid);
    } else if (work->status.dump[0]) {
        /* It cannot be joined by one that writes a map; its dump holds all that one needs. */
        memcpy(work->dump, work->status.dump, sizeof work->dump);
        info_message("a session runs in process %d: making the map from its dump", pid);
    } else {
        error_message("the session in process %d writes neither a map nor a dump: jdperf stop %d "
                      "first",
                      pid, pid);
        return STATUS_FAILED;
    }
    int status = show(work);
    (void)session_leave(&work->session);
    return status;
}

static int own_session(struct work *work, const char *options)
{
    char text[SESSION_OPTIONS_MAX];
    session_announce_warning(&work->target);
    snprintf(text, sizeof text, "mode=map%s%s", *options ? "," : "", options);
    int err = session_start(&work->session, NULL, true, text, NULL);
    if (err == -EEXIST) { /* begun since we have asked */
        return session_status(&work->session, &work->status) ? STATUS_FAILED : others_session(work);
    }
    if (err) {
        return STATUS_FAILED;
    }
    int status = show(work);
    if (session_leave(&work->session)) {
        status = STATUS_FAILED;
    }
    /* What the agent has written at its end. */
    if (process_lives(&work->target.process)) {
        (void)perf_map_publish(&work->target);
    }
    return status;
}

static int map(struct work *work, const char *word, const char *options)
{
    if (waiting_start(&work->waiting) || target_find(&work->target, word, &work->waiting) ||
        ask_prepare(&work->target) || guard_start(&work->guardian, &work->target)) {
        return STATUS_FAILED;
    }
    session_init(&work->session, &work->target, &work->waiting, work->guardian.shared,
                 live_agent());
    if (ask_whether_it_answers(&work->target, &work->waiting) ||
        session_status(&work->session, &work->status)) {
        return STATUS_FAILED;
    }
    return work->status.running ? others_session(work) : own_session(work, options);
}

/* perf-map-agent's PERF_MAP_OPTIONS are parted by blanks. */
static char *options_of(const char *text)
{
    char *options = strdup(text ? text : "");
    char *to = options;
    for (const char *at = options; at && *at; at++) {
        bool blank = *at == ' ' || *at == '\t' || *at == '\n';
        if (!blank || (to > options && to[-1] != ',')) {
            *to = *at;
            if (blank) {
                *to = ',';
            }
            to++;
        }
    }
    while (to && to > options && to[-1] == ',') {
        to--;
    }
    if (to) {
        *to = '\0';
    }
    return options;
}

static int run(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option table[] = {
        {"follow", no_argument, NULL, 'f'},
        {"agent-options", required_argument, NULL, 'A'},
        {0},
    };
    const char *given = getenv("PERF_MAP_OPTIONS");
    struct work *work = calloc(1, sizeof *work);
    if (!work) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    work->target = NO_TARGET;
    int letter;
    int status = STATUS_DONE;
    while (!status && (letter = live_option(verb, argc, argv, "", table)) != -1) {
        switch (letter) {
        case 'f':
            work->follow = true;
            break;
        case 'A':
            given = optarg;
            break;
        default:
            status = STATUS_USAGE;
        }
    }
    const char *word = status ? NULL : live_one_jvm(verb, argc, argv, "of which JVM");
    char *options = options_of(given);
    if (!word || !options) {
        status = STATUS_USAGE;
    } else {
        status = map(work, word, options);
        if (status && work->waiting.ended_by) {
            status = 128 + work->waiting.ended_by;
        }
    }
    free(options);
    guard_end(&work->guardian);
    target_close(&work->target);
    free(work);
    return status;
}

const struct live_verb live_map = {
    .name = "map",
    .run = run,
    .hint = "",
    .help = "usage: jdperf map PID [--follow] [--agent-options LIST]\n"
            "\n"
            "Writes the perf map of a JVM, /tmp/perf-PID.map, for perf top, perf report, bcc\n"
            "and bpftrace. A map has no times: it is right for the moment, and wrong for code\n"
            "that came and went.\n"
            "\n"
            "      --follow        keep it up to date until Ctrl-C\n"
            "      --agent-options LIST  names=…, unfold=…, suffixes=on and other options\n"
            "                      for the agent (default: $PERF_MAP_OPTIONS)\n"
            "\n"
            "For a JVM in a container, the map is also copied to the host's /tmp under the\n"
            "host's pid. perf top and perf report as root need -f (--force) for a map that\n"
            "belongs to another user.\n",
};
