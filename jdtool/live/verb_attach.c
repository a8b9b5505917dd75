/* jdperf attach, status, stop: a session by hand. */
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/by_hand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* 0 with a JVM that answers; else an exit status. */
static int begin(struct by_hand *work, const char *word)
{
    if (waiting_start(&work->waiting) || target_find(&work->target, word, &work->waiting)) {
        return STATUS_FAILED;
    }
    if (ask_prepare(&work->target) || guard_start(&work->guardian, &work->target, -1)) {
        return STATUS_FAILED;
    }
    session_init(&work->session, &work->target, &work->waiting, work->guardian.shared,
                 live_agent());
    return ask_whether_it_answers(&work->target, &work->waiting) ? STATUS_FAILED : STATUS_DONE;
}

int by_hand(const struct verb *verb, int argc, char **argv, const struct verb_option *options,
            void *context, const char *question,
            int (*deal)(const struct verb *verb, struct by_hand *work, const void *context))
{
    int status = verb_options(verb, argc, argv, options, context);
    const char *word = status ? NULL : live_one_jvm(verb, argc, argv, question);
    struct by_hand *work = word ? calloc(1, sizeof *work) : NULL;
    if (!word) {
        return STATUS_USAGE;
    }
    if (!work) {
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    work->target = NO_TARGET;
    status = begin(work, word);
    if (!status) {
        status = deal(verb, work, context);
        int written = finish_output();
        status = status ? status : written;
    }
    guard_end(&work->guardian);
    target_close(&work->target);
    if (work->waiting.ended_by && status) {
        status = 128 + work->waiting.ended_by;
    }
    free(work);
    return status;
}

/* What the agent says, a line each; names in it may be anything. */
static void print_status(const struct session_status *status)
{
    char line[PATH_MAX + 256];
    const char *rest = status->text;
    size_t length;
    for (const char *at; (at = text_line(&rest, &length));) {
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        text_print(stdout, line);
        putchar('\n');
    }
}

/* ---- attach ---- */

/* A directory below JITDUMPDIR, as the agent makes one below its own. */
static int make_dump_directory(const char *base, char directory[PATH_MAX])
{
    static const char *const parts[] = {"", "/.debug", "/.debug/jit"};
    char day[16];
    char path[PATH_MAX];
    time_t now = time(NULL);
    struct tm local;
    strftime(day, sizeof day, "%Y%m%d", localtime_r(&now, &local));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        snprintf(path, sizeof path, "%.*s%s", PATH_MAX - 64, base, parts[i]);
        if (mkdir(path, 0700) != 0 && errno != EEXIST) {
            break;
        }
    }
    snprintf(path, sizeof path, "%.*s/.debug/jit/java-jit-%s.XXXXXX", PATH_MAX - 64, base, day);
    if (!mkdtemp(path) || !realpath(path, directory)) {
        failed_to(-errno, "make a directory below %s", base);
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

static int choose_directory(const struct verb *verb, const struct by_hand *work, const char *given,
                            char directory[PATH_MAX])
{
    /* The agent would look into the JVM's environment, not into ours. */
    const char *base = getenv("JITDUMPDIR");
    bool like_us = target_is_like_us(&work->target);
    struct stat status;
    directory[0] = '\0';
    if (given && !like_us) {
        error_message("process %d cannot write to %s: it is another user's, or in a container; "
                      "leave -o out",
                      (int)work->target.process.pid, given);
        return STATUS_FAILED;
    }
    if (given &&
        (stat(given, &status) != 0 || !S_ISDIR(status.st_mode) || !realpath(given, directory))) {
        return wrong_usage(verb, "there is no directory %s", given);
    }
    return !given && base && *base && like_us ? make_dump_directory(base, directory) : STATUS_DONE;
}

struct attach {
    const char *directory, *options;
};

static int attach(const struct verb *verb, struct by_hand *work, const void *context)
{
    const struct attach *given = context;
    char directory[PATH_MAX];
    if (session_status(&work->session, &work->status)) {
        return STATUS_FAILED;
    }
    if (work->status.running) {
        info_message("a session already runs in process %d; nothing changed:",
                     (int)work->target.process.pid);
        print_status(&work->status);
        return STATUS_DONE;
    }
    int status = choose_directory(verb, work, given->directory, directory);
    if (status) {
        return status;
    }
    session_announce_warning(&work->target);
    struct live_session *session = &work->session;
    if (session_start(session, directory[0] ? directory : NULL, false, given->options, NULL)) {
        return STATUS_FAILED;
    }
    if (session_status(session, &work->status)) {
        session_leave(session);
        return STATUS_FAILED;
    }
    print_status(&work->status);
    size_t length = strlen(session->staging.path);
    session_keep(session, session->staging.place >= 0 &&
                              (strncmp(work->status.dump, session->staging.path, length) == 0 ||
                               strncmp(session->agent, session->staging.path, length) == 0));
    return STATUS_DONE;
}

static int run_attach(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_TEXT("output", 'o', struct attach, directory),
        OPTION_TEXT("agent-options", 0, struct attach, options),
        OPTION_END,
    };
    struct attach given = {.options = ""};
    return by_hand(verb, argc, argv, options, &given, "to which JVM", attach);
}

const struct verb live_attach = {
    .name = "attach",
    .run = run_attach,
    .help = "usage: jdperf attach PID [-o DIR] [--agent-options LIST]\n"
            "\n"
            "Starts the agent in a running JVM. It describes all existing generated code, then\n"
            "all new code, until jdperf stop PID. PID is a process id, or a unique part of a\n"
            "JVM's main class or arguments. As root, you can use JVMs of other users and in\n"
            "containers.\n"
            "\n"
            "  -o DIR              an existing directory for the dump (default: one below\n"
            "                      $JITDUMPDIR, else the agent's own, below $HOME of the\n"
            "                      JVM; for another user's JVM or in a container, one in\n"
            "                      its /tmp)\n"
            "      --agent-options LIST  key=value,… for the agent\n"
            "\n"
            "jdperf record PID attaches, records and detaches in one step.\n",
};

/* ---- status, stop ---- */

static int status_of(const struct verb *verb, struct by_hand *work, const void *context)
{
    (void)verb;
    (void)context;
    if (session_status(&work->session, &work->status)) {
        return STATUS_FAILED;
    }
    print_status(&work->status);
    return work->status.running ? STATUS_DONE : STATUS_FAILED;
}

static int run_status(const struct verb *verb, int argc, char **argv)
{
    return by_hand(verb, argc, argv, NULL, NULL, "of which JVM", status_of);
}

const struct verb live_status = {
    .name = "status",
    .run = run_status,
    .help = "usage: jdperf status PID\n"
            "\n"
            "Shows the state of the agent in a JVM (running, failed, stopped, absent), its\n"
            "output, seconds, records, bytes, dropped records, the file, and the lease of the\n"
            "recording that started it.\n"
            "Exit status: 0 if a session runs, else 1.\n",
};

static int stop(const struct verb *verb, struct by_hand *work, const void *context)
{
    char path[PATH_MAX];
    int pid = (int)work->target.process.pid;
    (void)verb;
    (void)context;
    if (!target_agent(&work->target, path)) {
        error_message("there is no agent in process %d", pid);
        return STATUS_FAILED;
    }
    bool has_dump = target_dump(&work->target, path);
    if (session_stop(&work->session)) {
        return STATUS_FAILED;
    }
    fputs("state=stopped", stdout);
    if (has_dump) {
        fputs(" file=", stdout);
        if (!work->target.same_files) {
            printf("/proc/%d/root", pid);
        }
        text_print(stdout, path);
    }
    putchar('\n');
    return STATUS_DONE;
}

static int run_stop(const struct verb *verb, int argc, char **argv)
{
    return by_hand(verb, argc, argv, NULL, NULL, "in which JVM", stop);
}

const struct verb live_stop = {
    .name = "stop",
    .run = run_stop,
    .help = "usage: jdperf stop PID\n"
            "\n"
            "Stops the agent in a JVM and closes its dump. The agent stays loaded, without\n"
            "effect or cost.\n",
};
