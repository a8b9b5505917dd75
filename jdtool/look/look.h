/*
 * What jdperf's verbs share that show a profile: their command line, and how it becomes that of the
 * verb of jdtool that does the work, whose samples and files are those of the profile.
 */
#ifndef JD_TOOL_LOOK_H
#define JD_TOOL_LOOK_H

#include "jdtool/base/text.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/live/verbs.h"
#include "jdtool/look/opened_profile.h"

#include <stdbool.h>
#include <stddef.h>

/* Options that the verbs of jdtool take as they are, and --source-path. */
extern const struct verb_option look_filters[];
extern const struct verb_option look_source_path[];

/* clang-format off */
#define LOOK_FILTERS     {.kind = OPTION_INCLUDES, .options = look_filters}
#define LOOK_SOURCE_PATH {.kind = OPTION_INCLUDES, .options = look_source_path}
/* clang-format on */

/* One more of jdtool's, and the file that is written. */
#define LOOK_PASS(name)       OPTION_WORD(name, 0, struct look, arguments)
#define LOOK_PASS_VALUE(name) OPTION_WORDS(name, 0, struct look, arguments)
#define LOOK_OUTPUT           OPTION_TEXT("output", 'o', struct look, output)

#define LOOK_FILTERS_HELP                                                                          \
    "      --from TIME, --to TIME  a time range from the first sample: seconds, 300ms, 5m\n"       \
    "      --thread NAME|TID, --comm NAME, --pid PID  threads, processes by name (with\n"          \
    "                      wildcards * and ?), a process\n"                                        \
    "      --label KEY[=VALUE]  samples with this label (record --threads)\n"                      \
    "      --by thread|virtual|process|label:KEY  group samples by this\n"                         \
    "      --include REGEX, --exclude REGEX  stacks with, or without, a matching frame\n"          \
    "      --event EVENT   one event of several\n"                                                 \
    "      --trust         as root, open a profile that another user has made\n"

struct look {
    const struct verb *verb;
    struct opened_profile profile;
    const char *output, *title; /* NULL: not given */
    char *source_path;          /* the same */
    bool flag;                  /* the verb's own */
    char **words;               /* of the command line that are no options */
    int word_count;
    char **more; /* behind "--" */
    int more_count;
    struct words arguments; /* for jdtool */
};

/* The same in steps, for verbs that have more to read: what argc is without what stands behind
 * "--".
 */
int look_begin(struct look *look, const struct verb *verb, int argc, char **argv);

/* Reads a verb's command line. An exit status, after a message. Free it in any case. */
int look_parse(struct look *look, const struct verb *verb, int argc, char **argv,
               const struct verb_option *options);
void look_free(struct look *look);

/* Opens the profile, of which there are samples that jdtool can read. An exit status, after a
 * message. */
int look_open(struct look *look, const char *given);

/* Opens one of which there is what perf can read: names its code first, if need be. */
int look_open_data(struct look *look, const char *given);

/* Opens a further profile of that kind, which jdtool's verb is told of, the caller's to close. */
int look_open_beside(struct look *look, const char *given, struct opened_profile *profile);
/* Opens the one word, or the default. */
int look_open_only(struct look *look);

/* Has jdtool's verb do it, with what was added: that alone, or with the profile. Its exit status.
 */
int look_call(struct look *look, const struct verb *verb);
int look_run(struct look *look, const struct verb *verb);

/* Has the profile exported to `output`, or where that is NULL to the file of that name in it. Sets
 * *out to the path, which lives as long as `look`. */
int look_export(struct look *look, const char *format, const char *name, const char **out);

/* What of jdperf's report and annotate perf does (--perf). */

/* The verb's whole command line, NULL behind it; it is rearranged. An exit status. */
int report_by_perf(const struct verb *verb, char **argv);

/* The command line is read, the profile is not open yet. An exit status. */
int annotate_by_perf(struct look *look, const char *given, const char *method);

#endif
