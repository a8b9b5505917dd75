/* jdperf diff: what changed from one profile to another, as a flame graph; from several to several,
 * beyond chance. */
#include "jdtool/base/message.h"
#include "jdtool/look/look.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { SIDE_BEFORE, SIDE_AFTER, SIDES };
enum {
    PROFILES_MAX = 200,
};

struct side {
    const char *given[PROFILES_MAX];
    struct opened_profile *profiles; /* as many */
    int count;
};

struct diff {
    struct look look; /* first: options of both are read into one */
    struct side sides[SIDES];
    const char *output, *title;
    const char *work; /* said on the command line */
    int argc;
    char **argv;
};

/* ---- One and one ---- */

static int diff_two(struct diff *diff)
{
    struct look *look = &diff->look;
    struct opened_profile before = NO_PROFILE;
    char title[2 * PATH_MAX + 8];
    const char *out;
    if (look->word_count != 2) {
        return wrong_usage(look->verb, "which two profiles? (jdperf diff BEFORE AFTER)");
    }
    int status = look_open_beside(look, look->words[0], &before);
    status = status ? status : look_open(look, look->words[1]);
    if (!status) {
        snprintf(title, sizeof title, "%s and %s", look->words[0], look->words[1]);
        words_add(&look->arguments, "--before=%s", before.path);
        words_add(&look->arguments, "--title=%s", look->title ? look->title : title);
        status = look_export(look, "html", "flamediff.html", &out);
    }
    if (!status) {
        info_message("difference: %s", out);
    }
    opened_profile_close(&before);
    return status;
}

/* ---- Several and several ---- */

/* Says how much work each run did, where all of them know. */
static void add_work(struct diff *diff)
{
    char value[64];
    char *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);
    bool all = out != NULL;
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; all && i < diff->sides[side].count; i++) {
            all = opened_profile_get(&diff->sides[side].profiles[i], "work", value, sizeof value);
            fprintf(out, "%s%s", size || side || i ? "," : "", value);
        }
    }
    if (out && fclose(out) == 0 && all) {
        words_add(&diff->look.arguments, "--work=%s", list);
    }
    free(list);
}

static int open_side(struct diff *diff, int number, const char *option)
{
    struct side *side = &diff->sides[number];
    int status = STATUS_DONE;
    int count = side->count;
    side->count = 0;
    side->profiles = calloc((size_t)count + 1, sizeof *side->profiles);
    for (int i = 0; side->profiles && i < count && !status; i++) {
        side->profiles[i] = NO_PROFILE;
        status = look_open_beside(&diff->look, side->given[i], &side->profiles[i]);
        side->count += !status;
    }
    for (int i = 0; i < side->count; i++) {
        WORDS_ADD(&diff->look.arguments, option, side->profiles[i].path);
    }
    return !side->profiles ? STATUS_FAILED : status;
}

static int diff_several(struct diff *diff)
{
    struct look *look = &diff->look;
    if (look->word_count) {
        return wrong_usage(
            look->verb,
            "is this profile from before or after the change: %s? (--before DIR… --after DIR…)",
            look->words[0]);
    }
    if (diff->sides[SIDE_BEFORE].count < 2 || diff->sides[SIDE_AFTER].count < 2) {
        return wrong_usage(
            look->verb,
            "at least 2 profiles are needed on each side; one cannot show what is chance");
    }
    int status = open_side(diff, SIDE_BEFORE, "--before");
    status = status ? status : open_side(diff, SIDE_AFTER, "--after");
    if (status) {
        return status;
    }
    if (diff->work) {
        words_add(&look->arguments, "--work=%s", diff->work);
    } else {
        add_work(diff);
    }
    if (look->output) {
        words_add(&look->arguments, "--output=%s", look->output);
    }
    if (look->title) {
        words_add(&look->arguments, "--title=%s", look->title);
    }
    return look_call(look, &verb_diff);
}

/* ---- The command line ---- */

/* An option's value and all words behind it, up to the next option. */
static int take_side(struct diff *diff, int number, const char *given)
{
    struct side *side = &diff->sides[number];
    do {
        if (side->count == PROFILES_MAX) {
            return wrong_usage(diff->look.verb, "too many profiles: %s", given);
        }
        side->given[side->count++] = given;
        given = optind < diff->argc && diff->argv[optind][0] != '-' ? diff->argv[optind++] : NULL;
    } while (given);
    return STATUS_DONE;
}

static int take_before(const struct verb *verb, void *diff, const char *given)
{
    (void)verb;
    return take_side(diff, SIDE_BEFORE, given);
}

static int take_after(const struct verb *verb, void *diff, const char *given)
{
    (void)verb;
    return take_side(diff, SIDE_AFTER, given);
}

static const struct verb_option options[] = {
    LOOK_FILTERS,
    LOOK_OUTPUT,
    OPTION_TEXT("title", 0, struct look, title),
    OPTION_TAKE("before", 0, take_before),
    OPTION_TAKE("after", 0, take_after),
    LOOK_PASS("all"),
    LOOK_PASS("json"),
    LOOK_PASS_VALUE("threshold"),
    OPTION_TEXT("work", 0, struct diff, work),
    OPTION_END,
};

static int parse(struct diff *diff, const struct verb *verb, int argc, char **argv)
{
    struct look *look = &diff->look;
    diff->argc = look_begin(look, verb, argc, argv);
    diff->argv = argv;
    if (look->more_count) {
        return wrong_usage(verb, "unexpected word: %s", look->more[0]);
    }
    int status = verb_options(verb, diff->argc, argv, options, diff);
    look->words = argv + optind;
    look->word_count = diff->argc - optind;
    return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct diff *diff = calloc(1, sizeof *diff);
    if (!diff) {
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    int status = parse(diff, verb, argc, argv);
    if (!status) {
        status = diff->sides[SIDE_BEFORE].count || diff->sides[SIDE_AFTER].count
                     ? diff_several(diff)
                     : diff_two(diff);
    }
    for (int side = 0; side < SIDES; side++) {
        for (int i = 0; i < diff->sides[side].count && diff->sides[side].profiles; i++) {
            opened_profile_close(&diff->sides[side].profiles[i]);
        }
        free(diff->sides[side].profiles);
    }
    look_free(&diff->look);
    free(diff);
    return status;
}

const struct verb live_diff = {
    .name = "diff",
    .run = run,
    .help = "usage: jdperf diff BEFORE AFTER [-o FILE] [--title TEXT] [OPTION…]\n"
            "       jdperf diff --before DIR… --after DIR… [-o FILE] [OPTION…]\n"
            "\n"
            "Writes a flame graph of the difference between the profiles BEFORE and AFTER, one\n"
            "HTML file that needs no network: AFTER/flamediff.html or FILE. Red frames grew,\n"
            "blue frames shrank, each measured as a share of all samples. Names of lambdas and\n"
            "hidden classes are compared without their numbers, which change from run to run.\n"
            "\n"
            "Two profiles always differ by chance. Give several of each to see what changed by\n"
            "more than that:\n"
            "\n"
            "      --before DIR…, --after DIR…  at least 2 profiles on each side; 5 or more are\n"
            "                      better. Lists methods that changed, with 95 % intervals. In\n"
            "                      the flame graph FILE only frames that changed have a colour.\n"
            "                      The first 2 s of each run are left out, because the JIT\n"
            "                      compiles then; not if a run is shorter than 4 s, or with\n"
            "                      --work or --from\n"
            "      --work N[,N…]   how much work each run did, in the order of the profiles; 1 if\n"
            "                      all did the same. Compares time per unit of work\n"
            "      --threshold PERCENT   ignore smaller losses (default: 0)\n"
            "      --all           also list what did not change beyond chance\n"
            "      --json          for scripts: every comparison with the values of each run\n" //
    LOOK_FILTERS_HELP "\n"
            "Exit status of a comparison of several: 3 if something became slower.\n",
};
