/* jdperf clean: what sessions, kills and other tools left behind. */
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/live/leftovers.h"
#include "jdtool/live/staging.h"
#include "jdtool/live/verbs.h"

#include <inttypes.h>
#include <stdio.h>

struct cleaning {
    bool dry;
    unsigned count;
    uint64_t bytes;
};

/* 1.5KB, 20MB: as numfmt has it. */
static void format_size(uint64_t bytes, char text[32])
{
    static const char units[] = "BKMGTP";
    double size = (double)bytes;
    int unit = 0;
    while (size >= 1024 && unit < 5) {
        size /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(text, 32, "%" PRIu64 "B", bytes);
    } else {
        snprintf(text, 32, size < 10 ? "%.1f%cB" : "%.0f%cB", size, units[unit]);
    }
}

static void take(void *context, const struct leftover *leftover)
{
    struct cleaning *cleaning = context;
    char size[32];
    format_size(leftover->bytes, size);
    if (!cleaning->dry && remove_tree(leftover->place, leftover->name) != 0) {
        return;
    }
    fputs(cleaning->dry ? "would remove " : "removed ", stdout);
    text_print(stdout, leftover->path);
    printf(" (%s)\n", size);
    cleaning->count++;
    cleaning->bytes += leftover->bytes;
}

static int run(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option table[] = {
        {"dry-run", no_argument, NULL, 'n'},
        {"all", no_argument, NULL, 'a'},
        {0},
    };
    struct cleaning cleaning = {0};
    bool all = false;
    int letter;
    while ((letter = live_option(verb, argc, argv, "n", table)) != -1) {
        switch (letter) {
        case 'n':
            cleaning.dry = true;
            break;
        case 'a':
            all = true;
            break;
        default:
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        return live_wrong_usage(verb, "unknown argument: ", argv[optind], "");
    }
    leftovers_find(all, take, &cleaning);
    char size[32];
    format_size(cleaning.bytes, size);
    if (cleaning.count) {
        info_message("%u %s%s", cleaning.count, cleaning.dry ? "to remove, " : "", size);
    } else {
        info_message("nothing to clean");
    }
    return finish_output();
}

const struct live_verb live_clean = {
    .name = "clean",
    .run = run,
    .hint = "",
    .help = "usage: jdperf clean [-n] [--all]\n"
            "\n"
            "Removes what jdperf left behind: the directories it made in /tmp for JVMs, when\n"
            "the session is over (as root: everybody's, and those in containers that run), and\n"
            "its own when it was killed. What a recording uses is told by its lease and left\n"
            "alone, and so are profiles (-o DIR).\n"
            "\n"
            "  -n, --dry-run       only list it\n"
            "      --all           what others may still want, too: perf maps in /tmp and\n"
            "                      dumps below ~/.debug/jit of JVMs that have ended, and\n"
            "                      the files of perf inject --jit in ~/.debug\n",
};
