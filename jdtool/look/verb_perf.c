/* What perf makes of a profile: jdperf report --perf and script. */
#include "jdtool/look/look.h"

#include "jdtool/base/message.h"
#include "jdtool/look/perf_view.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * The profile is the first word, unless that is an option; the rest is for perf. Which of perf's
 * options take a value we do not know, so a profile is not looked for behind them.
 */
static int split(const struct verb *verb, const char *name, char **words, const char **given,
                 char ***options)
{
    bool has = words[0] && words[0][0] != '-';
    *given = has ? words[0] : PROFILE_DEFAULT_DIR;
    *options = words + has;
    for (char **word = *options; *word; word++) {
        if (strcmp(*word, "-h") == 0 || strcmp(*word, "--help") == 0) {
            fputs(verb->help, stdout);
            return -1;
        }
        if (**word != '-' && opened_profile_is_one(*word)) {
            error_message("%s: the profile comes first: jdperf %s %s …", name, name, *word);
            return STATUS_USAGE;
        }
    }
    return STATUS_DONE;
}

/* ---- report --perf ---- */

static bool is_one_of(const char *word, const char *const *list)
{
    while (*list && strcmp(word, *list) != 0) {
        list++;
    }
    return *list != NULL;
}

/* The last -s counts, but "-g none" is not taken back by a later -g. */
static void put_options(char *const *given, struct words *words)
{
    static const char *const fields[] = {"-F", "--fields", NULL};
    static const char *const graphs[] = {"-g",         "--call-graph", "-G",
                                         "--inverted", "--children",   NULL};
    const char *sort = "overhead,comm,dso,sym";
    bool has_fields = false;
    bool has_graph = false;
    WORDS_ADD(words, "--no-children");
    for (char *const *word = given; *word; word++) {
        if (strcmp(*word, "--lines") == 0) {
            sort = "overhead,srcline,sym";
            WORDS_ADD(words, "-w9,40");
        } else if (strcmp(*word, "--callers") == 0) {
            sort = "overhead,comm,sym"; /* perf filters symbols beside comm only */
            has_graph = true;
        }
        has_fields |= is_one_of(*word, fields);
        has_graph |= is_one_of(*word, graphs);
    }
    if (!has_fields) {
        WORDS_ADD(words, "-s", sort);
    }
    if (!has_graph) {
        WORDS_ADD(words, "-g", "none");
    }
    for (char *const *word = given; *word; word++) {
        if (strcmp(*word, "--callers") == 0) {
            WORDS_ADD(words, "-g", "callee");
        } else if (strcmp(*word, "--lines") != 0) {
            WORDS_ADD(words, *word);
        }
    }
}

/* words: all behind the verb, NULL behind them. */
static int show(const struct verb *verb, const char *name, char **words)
{
    struct look look = {.verb = verb, .profile = NO_PROFILE};
    struct perf_view view;
    struct words arguments = {0};
    bool is_report = verb != &live_script;
    bool as_text = is_report && !isatty(STDOUT_FILENO);
    const char *given;
    char **options;
    int status = split(verb, name, words, &given, &options);
    if (status) {
        return status < 0 ? finish_output() : status;
    }
    status = perf_view_open(&view, &look, given, options);
    if (!status) {
        if (is_report) {
            put_options(options, &arguments);
        } else {
            words_add_list(&arguments, (const char *const *)options);
        }
        if (as_text) {
            WORDS_ADD(&arguments, "--stdio");
        }
        status = perf_view_show(&view, verb->name, &arguments, as_text);
    }
    perf_view_close(&view);
    look_free(&look);
    return status;
}

int report_by_perf(const struct verb *verb, char **argv)
{
    int count = 0;
    for (char **word = argv + 1; *word; word++) {
        if (strcmp(*word, "--perf") != 0) {
            argv[count++] = *word;
        }
    }
    argv[count] = NULL;
    return show(verb, "report --perf", argv);
}

static int script(const struct verb *verb, int argc, char **argv)
{
    (void)argc;
    return show(verb, "script", argv + 1);
}

const struct verb live_script = {
    .name = "script",
    .run = script,
    .help = "usage: jdperf script [DIR] [PERF-SCRIPT-OPTION…]\n"
            "\n"
            "Prints every sample of the profile DIR (default: " PROFILE_DEFAULT_DIR ") with its\n"
            "stack, as perf script does, for speedscope, FlameGraph and your own tools. perf\n"
            "may read the profile, programs and libraries, and the files that you name; it may\n"
            "not write files, unless the profile is yours and you add --trust.\n",
};
