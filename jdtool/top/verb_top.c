/* The command line of jdperf top. */
#include "jdtool/base/message.h"
#include "jdtool/base/units.h"
#include "jdtool/live/verbs.h"
#ifdef JD_HAS_CURSES
#include "jdtool/top/top.h"
#endif

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef JD_HAS_CURSES

enum { FREQUENCY = 99, FREQUENCY_MAX = 10000, WINDOW = 10, WINDOW_MAX = 600 };

static int take(const struct live_verb *verb, int letter, struct top_options *options)
{
    struct record_options *record = &options->record;
    char *end;
    switch (letter) {
    case 'p':
        record->jvm = optarg;
        return STATUS_DONE;
    case 'Y':
        record->match = optarg;
        return STATUS_DONE;
    case 'F':
        record->frequency = (unsigned)strtoul(optarg, &end, 10);
        return *end || record->frequency < 1 || record->frequency > FREQUENCY_MAX
                   ? live_wrong_usage(verb, "the frequency must be a number up to 10000, not ",
                                      optarg, "")
                   : STATUS_DONE;
    case 'w':
        return units_seconds(optarg, WINDOW_MAX, &options->window)
                   ? STATUS_DONE
                   : live_wrong_usage(
                         verb, "the window must be a time up to 10 minutes, such as 30s, not ",
                         optarg, "");
    case 'e':
        record->event = optarg;
        return STATUS_DONE;
    case 'L':
        record->alloc = "";
        return STATUS_DONE;
    case 'M':
        record->locks = "";
        return STATUS_DONE;
    case 'X':
        record->exceptions = true;
        return STATUS_DONE;
    case 'O':
        record->off_cpu = true;
        return STATUS_DONE;
    case 's':
        options->source_path = optarg;
        return STATUS_DONE;
    case 'A':
        record->agent_options = optarg;
        return STATUS_DONE;
    default:
        return STATUS_USAGE;
    }
}

static int run(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option table[] = {
        {"pid", required_argument, NULL, 'p'},
        {"match", required_argument, NULL, 'Y'},
        {"frequency", required_argument, NULL, 'F'},
        {"window", required_argument, NULL, 'w'},
        {"event", required_argument, NULL, 'e'},
        {"alloc", no_argument, NULL, 'L'},
        {"locks", no_argument, NULL, 'M'},
        {"exceptions", no_argument, NULL, 'X'},
        {"off-cpu", no_argument, NULL, 'O'},
        {"source-path", required_argument, NULL, 's'},
        {"agent-options", required_argument, NULL, 'A'},
        {0},
    };
    static char *nothing[] = {NULL};
    struct top_options options = {.record = {.frequency = FREQUENCY,
                                             .event = "cpu-clock",
                                             .stack_size = 65528,
                                             .agent_options = "",
                                             .inject_options = nothing,
                                             .perf_options = nothing,
                                             .command = nothing},
                                  .window = WINDOW};
    struct record_options *record = &options.record;
    int letter;
    int status = STATUS_DONE;
    while (!status && (letter = live_option(verb, argc, argv, "p:F:w:e:", table)) != -1) {
        status = take(verb, letter, &options);
    }
    if (!status && optind < argc && !record->jvm) {
        record->jvm = argv[optind++];
    }
    if (!status && optind < argc) {
        status = live_wrong_usage(verb, "unexpected argument: ", argv[optind], verb->hint);
    }
    if (!status && record->jvm && record->match) {
        status = live_wrong_usage(verb, "a JVM or --match, not both", "", "");
    }
    record->match = record->jvm || record->match ? record->match : "";
    return status ? status : top(&options);
}

#else

static int run(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option none[] = {{0}};
    (void)live_option(verb, argc, argv, "p:F:w:e:", none); /* --help */
    error_message("%s: this jdtool was built without ncurses: install libncurses-dev, then build "
                  "it again",
                  verb->name);
    return STATUS_FAILED;
}

#endif

const struct live_verb live_top = {
    .name = "top",
    .run = run,
    .hint = " (jdperf top --help lists the options)",
    .help = "usage: jdperf top [PID[,PID…]|NAME] [OPTION…]\n"
            "\n"
            "Shows live in the terminal where JVMs spend their time: one, several, or all that\n"
            "you have the rights for. It attaches to them, and detaches when it ends. It saves\n"
            "nothing; to keep a profile, use jdperf record.\n"
            "\n"
            "The table shows the last 10 seconds. SELF is the share of a method itself, TOTAL\n"
            "includes the methods that it calls. CPU is in percent of one processor.\n"
            "\n"
            "Keys:\n"
            "  v t m l e           JVMs, threads, methods, lines of source, events\n"
            "  up, down            choose a row\n"
            "  Enter               the methods of the JVM, thread or event; callers of a method\n"
            "  s c a               callers, source, machine code of the method\n"
            "  Esc                 one step back: to all threads, to all JVMs\n"
            "  /                   only rows whose name contains what you type\n"
            "  p                   pause\n"
            "  q                   quit\n"
            "\n"
            "      --match NAME    all JVMs whose main class or arguments contain NAME\n"
            "  -p, --pid PID[,PID…]  these JVMs; the same as without -p\n"
            "  -F, --frequency HZ  samples per second and CPU (default: 99)\n"
            "  -w, --window TIME   show this much of the past (default: 10s)\n"
            "  -e, --event EVENT   event to sample (default: cpu-clock)\n"
            "      --alloc, --locks, --exceptions, --off-cpu\n"
            "                      also show these events of one JVM, as jdperf record does\n"
            "      --source-path DIRS  source directories, separated by ':'; the JDK's sources\n"
            "                      come from its src.zip\n"
            "      --agent-options OPTIONS  more options for the agent\n",
};
