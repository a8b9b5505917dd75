/* jdperf clean: what sessions, kills and other tools left behind. */
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/live/leftovers.h"
#include "jdtool/live/staging.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/probes.h"

#include <stdio.h>

struct cleaning {
    bool dry, all;
    unsigned count;
    uint64_t bytes;
};

static void take(void *context, const struct leftover *leftover)
{
    struct cleaning *cleaning = context;
    char size[TEXT_SIZE_MAX];
    text_size(leftover->bytes, size);
    if (!cleaning->dry && remove_tree(leftover->place, leftover->name) != 0) {
        return;
    }
    fputs(cleaning->dry ? "would remove " : "removed ", stdout);
    text_print(stdout, leftover->path);
    printf(" (%s)\n", size);
    cleaning->count++;
    cleaning->bytes += leftover->bytes;
}

/* The kernel's probes of recordings that were killed together with their guardian. */
static void take_probes(void *context, const char *group)
{
    struct cleaning *cleaning = context;
    if (!cleaning->dry) {
        probes_remove(group);
    }
    printf("%s the probes %s\n", cleaning->dry ? "would remove" : "removed", group);
    cleaning->count++;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        OPTION_FLAG("dry-run", 'n', struct cleaning, dry),
        OPTION_FLAG("all", 0, struct cleaning, all),
        OPTION_END,
    };
    struct cleaning cleaning = {0};
    int status = verb_options(verb, argc, argv, options, &cleaning);
    if (status) {
        return status;
    }
    if (optind < argc) {
        return wrong_usage(verb, "unknown argument: %s", argv[optind]);
    }
    leftovers_find(cleaning.all, take, &cleaning);
    probes_find_left(take_probes, &cleaning);
    char size[TEXT_SIZE_MAX];
    text_size(cleaning.bytes, size);
    if (cleaning.count) {
        info_message("%u %s%s, %s", cleaning.count, cleaning.count == 1 ? "leftover" : "leftovers",
                     cleaning.dry ? " to remove" : "", size);
    } else {
        info_message("nothing to clean");
    }
    return finish_output();
}

const struct verb live_clean = {
    .name = "clean",
    .run = run,
    .help = "usage: jdperf clean [-n] [--all]\n"
            "\n"
            "Removes leftovers of earlier runs: directories in /tmp of sessions that have ended\n"
            "and of a jdperf that was killed, and probes in the kernel. As root, it removes those\n"
            "of all users and in running containers. It never removes running recordings and\n"
            "profiles (-o DIR).\n"
            "\n"
            "  -n, --dry-run       only list them\n"
            "      --all           also remove perf maps in /tmp and dumps below ~/.debug/jit of\n"
            "                      JVMs that have ended, and the files of perf inject --jit in\n"
            "                      ~/.debug; other tools may still use these\n",
};
