/* What jdperf doctor wants to know of a JVM, a "key=value" a line. */
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/session.h"
#include "jdtool/live/verbs.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct probe {
    struct waiting waiting;
    struct target target;
    struct live_session session;
    struct session_status status;
};

static void tell(const char *key, const char *value)
{
    printf("%s=", key);
    text_print(stdout, value);
    putchar('\n');
}

static void tell_flag(struct probe *probe, const char *name)
{
    int value = ask_flag(&probe->target, name, &probe->waiting);
    tell(name, value == 1 ? "true" : value == 0 ? "false" : "unknown");
}

static void tell_who(const struct probe *probe)
{
    static const struct mapped_name libjvm = {.prefix = "libjvm", .suffix = ".so"};
    const struct target *target = &probe->target;
    const struct passwd *user = getpwuid(target->uid);
    char text[PATH_MAX + 32];
    char path[PATH_MAX];
    snprintf(text, sizeof text, "%d", (int)target->process.pid);
    tell("pid", text);
    snprintf(text, sizeof text, "uid %u", (unsigned)target->uid);
    tell("user", user ? user->pw_name : text);
    snprintf(text, sizeof text, "%d", target->java);
    tell("java", target->java ? text : "?");
    snprintf(text, sizeof text, "%d", (int)target->ns_pid);
    tell("elsewhere", target->same_files ? "" : text);
    tell("like_us", target_is_like_us(target) ? "yes" : "");
    snprintf(text, sizeof text, "/proc/%d/root", (int)target->process.pid);
    tell("root", target->same_files ? "" : text);
    if (process_mapped(&target->process, &libjvm, path)) {
        tell("libjvm", path);
    }
    tell("loading_allowed_by_argument",
         process_has_argument(&target->process, "-XX:+EnableDynamicAgentLoading") ? "yes" : "");
}

static int probe_jvm(struct probe *probe, const char *word)
{
    if (waiting_start(&probe->waiting) || target_find(&probe->target, word, &probe->waiting)) {
        return STATUS_FAILED;
    }
    tell_who(probe);
    fflush(stdout);
    if (ask_prepare(&probe->target) || ask_whether_it_answers(&probe->target, &probe->waiting)) {
        return STATUS_DONE; /* that it does not answer is an answer here */
    }
    tell("answers", "yes");
    tell_flag(probe, "EnableDynamicAgentLoading");
    tell_flag(probe, "PreserveFramePointer");
    tell_flag(probe, "DebugNonSafepoints");
    session_init(&probe->session, &probe->target, &probe->waiting, NULL, live_agent());
    if (session_status(&probe->session, &probe->status) == 0) {
        probe->status.text[strcspn(probe->status.text, "\n")] = '\0';
        tell("session", probe->status.text);
    }
    return STATUS_DONE;
}

static int run(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option table[] = {{0}};
    if (live_option(verb, argc, argv, "", table) != -1) {
        return STATUS_USAGE;
    }
    const char *word = live_one_jvm(verb, argc, argv, "which JVM");
    struct probe *probe = word ? calloc(1, sizeof *probe) : NULL;
    if (!probe) {
        if (word) {
            error_message("failed to start: %s", strerror(ENOMEM));
        }
        return word ? STATUS_FAILED : STATUS_USAGE;
    }
    probe->target.root = probe->target.process.pidfd = probe->target.process.directory = -1;
    int status = probe_jvm(probe, word);
    target_close(&probe->target);
    free(probe);
    return status ? status : finish_output();
}

const struct live_verb live_probe = {
    .name = "probe",
    .run = run,
    .hint = "",
    .help = "usage: jdtool live probe PID\n"
            "\n"
            "Tells what jdperf doctor wants to know of a JVM, a key=value a line.\n",
};
