#include "jdtool/look/look.h"

#include "jdtool/base/message.h"
#include "jdtool/base/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The command line ---- */

/* "A:B:C", each a directory; kept absolute, since perf runs in another one. */
static int take_source_path(const struct verb *verb, void *context, const char *list)
{
    struct look *look = context;
    char *copy = strdup(list);
    struct stat status;
    int result = copy ? STATUS_DONE : STATUS_FAILED;
    (void)verb;
    free(look->source_path);
    look->source_path = NULL;
    for (char *rest = copy, *path; !result && (path = path_list_next(&rest));) {
        char *absolute = realpath(*path ? path : ".", NULL);
        if (!absolute || stat(absolute, &status) != 0 || !S_ISDIR(status.st_mode)) {
            error_message("no directory %s (--source-path)", path);
            result = STATUS_USAGE;
        } else {
            char *before = look->source_path;
            look->source_path = path_list_with(before, absolute, ".");
            result = look->source_path ? STATUS_DONE : STATUS_FAILED;
            free(before);
        }
        free(absolute);
    }
    free(copy);
    return result;
}

const struct verb_option look_source_path[] = {OPTION_TAKE("source-path", 0, take_source_path),
                                               OPTION_END};

const struct verb_option look_filters[] = {
    LOOK_PASS_VALUE("from"),  LOOK_PASS_VALUE("to"),      LOOK_PASS_VALUE("thread"),
    LOOK_PASS_VALUE("label"), LOOK_PASS_VALUE("by"),      LOOK_PASS_VALUE("comm"),
    LOOK_PASS_VALUE("pid"),   LOOK_PASS_VALUE("include"), LOOK_PASS_VALUE("exclude"),
    LOOK_PASS_VALUE("event"), LOOK_PASS_VALUE("jfr"),     OPTION_END,
};

int look_begin(struct look *look, const struct verb *verb, int argc, char **argv)
{
    *look = (struct look){.verb = verb, .profile = NO_PROFILE};
    WORDS_ADD(&look->arguments, verb->name);
    /* getopt would mix what is behind with the words before. */
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            look->more = argv + i + 1;
            look->more_count = argc - i - 1;
            argc = i;
        }
    }
    return argc;
}

int look_parse(struct look *look, const struct verb *verb, int argc, char **argv,
               const struct verb_option *options)
{
    argc = look_begin(look, verb, argc, argv);
    int status = verb_options(verb, argc, argv, options, look);
    look->words = argv + optind;
    look->word_count = argc - optind;
    return status;
}

void look_free(struct look *look)
{
    free(look->source_path);
    look->source_path = NULL;
    words_free(&look->arguments);
    opened_profile_close(&look->profile);
}

/* ---- The profile ---- */

static int open_with_samples(const char *given, struct opened_profile *profile)
{
    int status = opened_profile_open(given, profile);
    if (!status && !opened_profile_has(profile, "samples.saved") &&
        !opened_profile_has(profile, "perf.data")) {
        error_message("the profile %s has neither samples.saved nor perf.data: record again",
                      given);
        status = STATUS_FAILED;
    }
    return status;
}

int look_open(struct look *look, const char *given)
{
    opened_profile_close(&look->profile);
    return open_with_samples(given, &look->profile);
}

int look_open_data(struct look *look, const char *given)
{
    char path[PATH_MAX];
    int status = opened_profile_open(given, &look->profile);
    if (status || opened_profile_has(&look->profile, "perf.jit.data")) {
        return status;
    }
    snprintf(path, sizeof path, "%s", look->profile.path);
    opened_profile_close(&look->profile);
    char *words[] = {(char *)live_inject.name, path, NULL};
    optind = 0;
    status = live_inject.run(&live_inject, 2, words);
    return status && status != STATUS_BAD_PROFILE ? status
                                                  : opened_profile_open(path, &look->profile);
}

static void hold(struct look *look, const struct opened_profile *profile)
{
    char held[PATH_MAX + 16];
    snprintf(held, sizeof held, "%d:%s", profile->directory, profile->path);
    words_add(&look->arguments, "--held=%s", held);
}

int look_open_beside(struct look *look, const char *given, struct opened_profile *profile)
{
    int status = open_with_samples(given, profile);
    if (!status) {
        hold(look, profile);
    }
    return status;
}

int look_open_only(struct look *look)
{
    if (look->word_count > 1) {
        return wrong_usage(look->verb, "one profile at a time: %s", look->words[1]);
    }
    if (look->more_count > 0) {
        return wrong_usage(look->verb, "unexpected word: %s", look->more[0]);
    }
    return look_open(look, look->word_count ? look->words[0] : PROFILE_DEFAULT_DIR);
}

static void add_sources(struct look *look)
{
    if (opened_profile_has(&look->profile, "src")) {
        char *both = path_list_with(look->source_path, look->profile.path, "src");
        words_add(&look->arguments, "--source-path=%s", both ? both : "");
        look->arguments.failed |= !both;
        free(both);
    } else if (look->source_path) {
        words_add(&look->arguments, "--source-path=%s", look->source_path);
    }
}

int look_call(struct look *look, const struct verb *verb)
{
    if (look->arguments.failed) {
        failed_to(-ENOMEM, "start %s", look->verb->name);
        return STATUS_FAILED;
    }
    optind = 0; /* from the beginning */
    return verb->run(verb, (int)look->arguments.count, look->arguments.list);
}

int look_run(struct look *look, const struct verb *verb)
{
    hold(look, &look->profile);
    words_add(&look->arguments, "--input=%s", look->profile.path);
    words_add(&look->arguments, "--buildid-dir=%s/buildid", look->profile.path);
    add_sources(look);
    return look_call(look, verb);
}

int look_export(struct look *look, const char *format, const char *name, const char **out)
{
    words_add(&look->arguments, "--format=%s", format);
    if (look->output) {
        words_add(&look->arguments, "--output=%s", look->output);
    } else {
        char place[NAME_MAX + 16];
        snprintf(place, sizeof place, "--output=%%s/%s", name);
        words_add(&look->arguments, place, look->profile.path);
    }
    *out = look->arguments.failed
               ? ""
               : strchr(look->arguments.list[look->arguments.count - 1], '=') + 1;
    return look_run(look, &verb_export);
}
