/* jdtool live: JVMs that run. Its verbs are jdperf's. */
#include "jdtool/base/message.h"
#include "jdtool/live/verbs.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct verb *const verbs[] = {
    &live_attach, &live_status,   &live_stop,         &live_map,    &live_record,   &live_clean,
    &live_inject, &live_doctor,   &live_jvms,         &live_top,    &live_watch,    &live_bundle,
    &live_script, &live_compare,  &live_watch_slicer, &live_report, &live_annotate, &live_flame,
    &live_diff,   &live_timeline, &live_export,       &live_view,   NULL,
};
/* From this one on they look at no process, and start none that they wait for. */
static const struct verb *const first_that_reads = &live_report;

static char agent[PATH_MAX];

const char *live_agent(void)
{
    static const char *const places[] = {"libjdagent.so", "../lib/libjdagent.so",
                                         "../lib64/libjdagent.so"};
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = length > 0 ? (program[length] = '\0', strrchr(program, '/')) : NULL;
    for (size_t i = 0; !agent[0] && slash && i < sizeof places / sizeof *places; i++) {
        char candidate[PATH_MAX + 32];
        snprintf(candidate, sizeof candidate, "%.*s/%s", (int)(slash - program), program,
                 places[i]);
        if (access(candidate, R_OK) == 0 && !realpath(candidate, agent)) {
            agent[0] = '\0';
        }
    }
    return agent[0] ? agent : "libjdagent.so";
}

const char *live_one_jvm(const struct verb *verb, int argc, char **argv, const char *question)
{
    if (optind >= argc || !*argv[optind]) {
        error_message("%s: %s? (jdperf %s PID)", verb->name, question, verb->name);
        return NULL;
    }
    if (argc - optind > 1) {
        wrong_usage(verb, "one JVM at a time: %s", argv[optind + 1]);
        return NULL;
    }
    return argv[optind];
}

static int help(const struct verb *self)
{
    (void)verb_help(self);
    for (size_t i = 0; verbs[i]; i++) {
        printf("  jdtool live %s --help\n", verbs[i]->name);
    }
    return finish_output();
}

/* What holds a process, so that its number cannot become another's. */
static int look_for_pidfds(const struct verb *verb)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0) {
        close(fd);
        return STATUS_DONE;
    }
    failed_to(-errno, "%s: pidfd_open", verb->name);
    detail_message("", "Linux has it from 5.3 on, and filters of containers may refuse it. Without "
                       "it: load the agent into the");
    detail_message("",
                   "JVM (-agentpath:%s), record with 'perf record -k mono -g', then run "
                   "'jdtool inject'",
                   live_agent());
    return STATUS_FAILED;
}

static int run(const struct verb *self, int argc, char **argv)
{
    int at = 1;
    message_program("jdperf");
    if (at + 1 < argc && strcmp(argv[at], "--agent") == 0) {
        snprintf(agent, sizeof agent, "%s", argv[at + 1]);
        at += 2;
    }
    if (at < argc && (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)) {
        return help(self);
    }
    bool reads = false;
    for (size_t i = 0; at < argc && verbs[i]; i++) {
        reads |= verbs[i] == first_that_reads;
        if (strcmp(verbs[i]->name, argv[at]) == 0) {
            verb_typed(verbs[i]);
            int status = reads ? STATUS_DONE : look_for_pidfds(verbs[i]);
            return status == STATUS_DONE ? verbs[i]->run(verbs[i], argc - at, argv + at) : status;
        }
    }
    if (at < argc) {
        return wrong_usage(self, "unknown verb '%s'", argv[at]);
    }
    return wrong_usage(self, "which verb?");
}

const struct verb verb_live = {
    .name = "live",
    .run = run,
    .usage = "[--agent FILE] VERB ...",
    .help = "Looks after JVMs that run. Its verbs are those of jdperf, which hands its command\n"
            "line over; each explains itself:\n"
            "      --agent FILE          libjdagent.so (default: where jdtool is)\n",
    .has_verbs = true,
};
