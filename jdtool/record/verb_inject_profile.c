/* The naming of a profile again, for jdperf inject, which has looked the profile over. */
#include "jdtool/live/verbs.h"
#include "jdtool/record/machine.h"
#include "jdtool/record/naming.h"

static int run(const struct live_verb *verb, int argc, char **argv)
{
    struct waiting waiting;
    struct naming naming;
    struct dump_list dumps;
    static const struct option none[] = {{0}};
    if (live_option(verb, argc, argv, "+", none) != -1 || optind >= argc) {
        return live_wrong_usage(verb, "which profile?", "", "");
    }
    argv += optind - 1;
    if (waiting_start(&waiting) || dump_list_read(&dumps, argv[1])) {
        return STATUS_FAILED;
    }
    struct naming_options options = {
        .profile = argv[1],
        .in = -1,
        .dumps = (const char *const *)dumps.paths,
        .dump_count = dumps.count,
        .more = argv + 2,
    };
    int status = naming_start(&naming, &options) ? STATUS_FAILED
                                                 : naming_finish(&naming, &waiting, NULL, false);
    dump_list_free(&dumps);
    return status;
}

const struct live_verb live_inject = {
    .name = "inject",
    .run = run,
    .hint = "",
    .help = "usage: jdtool live inject PROFILE [JDTOOL-INJECT-OPTION…]\n"
            "\n"
            "Makes perf.jit.data of a profile's perf.data and dumps, and judges it: for jdperf\n"
            "inject, which looks the profile over first.\n",
};
