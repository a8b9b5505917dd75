/* jdtool live: JVMs that run. Its verbs are jdperf's. */
#include "jdtool/base/message.h"
#include "jdtool/live/verbs.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct live_verb *const verbs[] = {
    &live_attach, &live_status,   &live_stop,    &live_map,    &live_record,   &live_clean,
    &live_inject, &live_doctor,   &live_jvms,    &live_top,    &live_watch,    &live_watch_slicer,
    &live_report, &live_annotate, &live_flame,   &live_diff,   &live_timeline, &live_export,
    &live_view,   &live_bundle,   &live_compare, &live_script, NULL,
};

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

int live_wrong_usage(const struct live_verb *verb, const char *before, const char *word,
                     const char *after)
{
    error_message("%s: %s%s%s", verb->name, before, word, after);
    return STATUS_USAGE;
}

int live_option(const struct live_verb *verb, int argc, char **argv, const char *letters,
                const struct option *options)
{
    return live_option_at(verb, argc, argv, letters, options, NULL);
}

int live_option_at(const struct live_verb *verb, int argc, char **argv, const char *letters,
                   const struct option *options, int *index)
{
    /* ':' tells a missing value from an unknown option, and keeps getopt silent; it stands behind
     * a '+'. */
    char silent[64];
    snprintf(silent, sizeof silent, "%s:%s", *letters == '+' ? "+" : "",
             letters + (*letters == '+'));
    int before = optind;
    int letter = getopt_long(argc, argv, silent, options, index);
    if (letter == ':') {
        live_wrong_usage(verb, "", argv[optind - 1], " needs a value");
        return '?';
    }
    if (letter == '?') {
        /* optopt is 0 at an unknown long one, which lies right before optind. Only getopt knows
         * which words are options of ours: behind a command's first word all are the command's. */
        const char *word = !optopt ? argv[optind - 1] : argv[before < argc ? before : argc - 1];
        if (optopt == 'h' || strcmp(word, "--help") == 0) {
            fputs(verb->help, stdout);
            exit(finish_output());
        }
        /* A value may be a secret. */
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
        live_wrong_usage(verb, "unknown option: ", name, verb->hint);
        return '?';
    }
    if (letter != -1 && optarg && optarg == argv[optind - 1] && optarg[0] == '-' && optarg[1]) {
        error_message("%s: %s needs a value, not %s", verb->name, argv[optind - 2], optarg);
        return '?';
    }
    return letter;
}

const char *live_one_jvm(const struct live_verb *verb, int argc, char **argv, const char *question)
{
    if (optind >= argc || !*argv[optind]) {
        error_message("%s: %s? (jdperf %s PID)", verb->name, question, verb->name);
        return NULL;
    }
    if (argc - optind > 1) {
        live_wrong_usage(verb, "one JVM at a time: ", argv[optind + 1], "");
        return NULL;
    }
    return argv[optind];
}

static int help(const struct verb *self)
{
    printf("usage: jdtool %s %s\n%s", self->name, self->usage, self->help);
    for (size_t i = 0; verbs[i]; i++) {
        printf("  jdtool live %s --help\n", verbs[i]->name);
    }
    return finish_output();
}

static int run(int argc, char **argv)
{
    int at = 1;
    message_program("jdperf");
    if (at + 1 < argc && strcmp(argv[at], "--agent") == 0) {
        snprintf(agent, sizeof agent, "%s", argv[at + 1]);
        at += 2;
    }
    if (at < argc && (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0)) {
        return help(&verb_live);
    }
    for (size_t i = 0; at < argc && verbs[i]; i++) {
        if (strcmp(verbs[i]->name, argv[at]) == 0) {
            return verbs[i]->run(verbs[i], argc - at, argv + at);
        }
    }
    if (at < argc) {
        return wrong_usage(&verb_live, "unknown verb '%s'", argv[at]);
    }
    return wrong_usage(&verb_live, "which verb?");
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
