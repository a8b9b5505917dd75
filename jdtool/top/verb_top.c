/* The command line of jdperf top. */
#include "jdtool/base/message.h"
#include "jdtool/live/verbs.h"
#ifdef JD_HAS_CURSES
#include "jdtool/top/top.h"
#endif

#include <string.h>

#ifdef JD_HAS_CURSES

enum { FREQUENCY = 99, FREQUENCY_MAX = 10000, WINDOW = 10, WINDOW_MAX = 600 };

static int take_alloc(const struct verb *verb, void *context, const char *none)
{
    (void)verb;
    (void)none;
    ((struct top_options *)context)->record.alloc = "";
    return STATUS_DONE;
}

static int take_locks(const struct verb *verb, void *context, const char *none)
{
    (void)verb;
    (void)none;
    ((struct top_options *)context)->record.locks = "";
    return STATUS_DONE;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option table[] = {
        OPTION_TEXT("pid", 'p', struct top_options, record.jvm),
        OPTION_TEXTS("match", 0, struct top_options, matches),
        OPTION_NUMBER("frequency", 'F', struct top_options, record.frequency, FREQUENCY_MAX,
                      "the frequency must be a number up to 10000, not "),
        OPTION_SECONDS("window", 'w', struct top_options, window, WINDOW_MAX,
                       "the window must be a time up to 10 minutes, such as 30s, not "),
        OPTION_TEXT("event", 'e', struct top_options, record.event),
        OPTION_DO("alloc", 0, take_alloc),
        OPTION_DO("locks", 0, take_locks),
        OPTION_FLAG("exceptions", 0, struct top_options, record.exceptions),
        OPTION_FLAG("off-cpu", 0, struct top_options, record.off_cpu),
        OPTION_TEXT("source-path", 0, struct top_options, source_path),
        OPTION_TEXT("agent-options", 0, struct top_options, record.agent_options),
        OPTION_END,
    };
    static char *nothing[] = {NULL};
    static char every[] = "";
    static char *const all[] = {every, NULL};
    struct top_options options = {.record = {.frequency = FREQUENCY,
                                             .event = "cpu-clock",
                                             .stack_size = 65528,
                                             .agent_options = "",
                                             .inject_options = nothing,
                                             .perf_options = nothing,
                                             .command = nothing},
                                  .window = WINDOW};
    struct record_options *record = &options.record;
    int status = verb_options(verb, argc, argv, table, &options);
    if (!status && optind < argc && !record->jvm) {
        record->jvm = argv[optind++];
    }
    if (!status && optind < argc) {
        status = wrong_usage(verb, "unexpected argument: %s%s", argv[optind], verb->hint);
    }
    if (!status && record->jvm && options.matches.count) {
        status = wrong_usage(verb, "a JVM or --match, not both");
    }
    if (!record->jvm) {
        record->match = options.matches.count ? options.matches.list : all;
    }
    status = status ? status : top(&options);
    words_free(&options.matches);
    return status;
}

#else

static int run(const struct verb *verb, int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        return verb_help(verb);
    }
    error_message("%s: this jdtool was built without ncurses: install libncurses-dev, then build "
                  "it again",
                  verb->name);
    return STATUS_FAILED;
}

#endif

const struct verb live_top = {
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
            "      --match NAME    all JVMs whose main class or arguments contain NAME (may be\n"
            "                      repeated)\n"
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
