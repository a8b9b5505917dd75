/* jdperf compare: runs two commands by turns, records each run, and says what differs beyond
 * chance.
 */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/live/child.h"
#include "jdtool/look/look.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIDE_BEFORE, SIDE_AFTER, SIDES };
enum { RUNS_MIN = 2, RUNS_MAX = 100, DEFAULT_RUNS = 7 };

#define DEFAULT_OUT "jdperf.compare"
#define FREQUENCY   "4999"

/* Of what a command prints: what --work-from looks through, and what is shown where it failed. */
#define LOG_MAX         ((size_t)64 << 20)
#define LOG_LINES_SHOWN 20

static const char *const side_names[] = {"before", "after"};

struct compare {
    struct look look; /* first: its options are read into it; its arguments are jdperf diff's */
    char **commands[SIDES];
    int counts[SIDES];      /* of their words */
    struct words recording; /* options of jdperf record */
    unsigned runs;
    const char *out, *work;
    regex_t work_from;
    bool has_work_from;
    int held; /* the directory of the profiles */
    struct waiting waiting;
};

/* ---- A verb of ours ---- */

static void add_verb(struct words *words, const char *verb)
{
    WORDS_ADD(words, "/proc/self/exe", "live", "--agent", live_agent(), verb);
}

/* Runs jdperf's verb with these words, which reaches the directory by its descriptor. Its exit
 * status, or one after a message. Frees the words. */
static int run_verb(struct compare *compare, struct words *words, int out, int err)
{
    const struct child_options options = {.arguments = words->list,
                                          .in = -1,
                                          .out = out,
                                          .err = err,
                                          .keep = &compare->held,
                                          .keep_count = 1,
                                          .death_signal = SIGTERM};
    int status = STATUS_FAILED;
    if (words->failed) {
        failed_to(-ENOMEM, "run jdperf");
    } else {
        status = child_run(&options, &compare->waiting);
    }
    words_free(words);
    return status;
}

/* ---- What a run has printed ---- */

/* A text of its log, NUL-terminated, for the caller to free: the end of a long one. NULL: no
 * memory. */
static char *read_log(int log)
{
    struct stat status;
    size_t size = fstat(log, &status) == 0 ? (size_t)status.st_size : 0;
    size_t wanted = size < LOG_MAX ? size : LOG_MAX;
    char *text = malloc(wanted + 1);
    ssize_t n = text ? pread(log, text, wanted, (off_t)(size - wanted)) : 0;
    for (ssize_t i = 0; i < n; i++) {
        if (!text[i]) {
            text[i] = '?';
        }
    }
    if (text) {
        text[n > 0 ? n : 0] = '\0';
    }
    return text;
}

static void show_end(int log)
{
    char *text = read_log(log);
    char *at = text ? text + strlen(text) : NULL;
    while (at && at > text && at[-1] == '\n') {
        *--at = '\0';
    }
    for (int lines = 0; at && at > text; at--) {
        if (at[-1] == '\n' && ++lines == LOG_LINES_SHOWN) {
            break;
        }
    }
    for (char *line; at && (line = strsep(&at, "\n"));) {
        detail_message("", "%s", line);
    }
    free(text);
}

/* A decimal number above 0. */
static bool is_positive(const char *text)
{
    size_t whole = strspn(text, "0123456789");
    const char *rest = text + whole + (text[whole] == '.');
    size_t part = strspn(rest, "0123456789");
    return !rest[part] && (text[whole] == '.' ? part : whole) > 0 && strpbrk(text, "123456789");
}

/* The work that the command said it did, for the caller to free; NULL after a message. */
static char *find_work(const struct compare *compare, int log, const char *run)
{
    regmatch_t found[2] = {{-1, -1}, {-1, -1}};
    char *text = read_log(log);
    char *work = NULL;
    if (text && regexec(&compare->work_from, text, 2, found, 0) == 0) {
        work = found[1].rm_so < 0
                   ? strdup("")
                   : strndup(text + found[1].rm_so, (size_t)(found[1].rm_eo - found[1].rm_so));
    }
    free(text);
    if (!work) {
        error_message("%s printed nothing that --work-from matches", run);
    } else if (!is_positive(work)) {
        error_message("%s: --work-from found no number: %s", run, work);
        free(work);
        work = NULL;
    }
    return work;
}

/* ---- A run ---- */

static void path_of(const struct compare *compare, int side, unsigned round, char path[64])
{
    snprintf(path, 64, "/proc/self/fd/%d/%s.%u", compare->held, side_names[side], round);
}

static int record(struct compare *compare, int side, const char *directory, int log)
{
    struct words words = {0};
    add_verb(&words, "record");
    words_add_list(&words, (const char *const *)compare->recording.list);
    WORDS_ADD(&words, "-o", directory, "--");
    for (int i = 0; i < compare->counts[side]; i++) {
        words_add(&words, "%s", compare->commands[side][i]);
    }
    return run_verb(compare, &words, log, log);
}

/* What there is of the profile, in which the log belongs. An exit status. */
static int keep(struct compare *compare, const struct opened_profile *profile, int log,
                const char *run, const char *name)
{
    char *found = compare->has_work_from ? find_work(compare, log, run) : NULL;
    const char *work = compare->has_work_from ? found : compare->work;
    int status = compare->has_work_from && !found ? STATUS_FAILED : STATUS_DONE;
    int err = !status && work ? profile_set(profile->directory, "work", work) : 0;
    if (!status && !err && renameat(compare->held, name, profile->directory, "log") != 0) {
        err = -errno;
    }
    if (err) {
        failed_to(err, "write into %s", profile->path);
        status = STATUS_FAILED;
    }
    free(found);
    return status;
}

static int run_once(struct compare *compare, int side, unsigned round)
{
    char run[64];
    char name[32];
    char directory[64];
    struct opened_profile profile = NO_PROFILE;
    info_message("run %u of %u: %s", round, compare->runs, side_names[side]);
    snprintf(run, sizeof run, "run %u of %s", round, side_names[side]);
    path_of(compare, side, round, directory);
    snprintf(name, sizeof name, "%s.%u.log", side_names[side], round);
    int log = openat(compare->held, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (log < 0) {
        failed_to(-errno, "write %s/%s", compare->out, name);
        return STATUS_FAILED;
    }
    int status = record(compare, side, directory, log);
    if ((status && status != STATUS_BAD_PROFILE) || compare->waiting.ended_by) {
        show_end(log);
        error_message("%s ended with status %d (%s/%s has its output)", run, status, compare->out,
                      name);
        status = compare->waiting.ended_by ? 128 + compare->waiting.ended_by : STATUS_FAILED;
    } else {
        status = opened_profile_open(directory, &profile);
        if (!status) {
            opened_profile_tell_doubts(&profile);
            status = keep(compare, &profile, log, run, name);
        }
        opened_profile_close(&profile);
    }
    close(log);
    return status;
}

/* ---- All of them ---- */

/* Who goes first changes: a machine that becomes slower meets both alike. */
static int run_all(struct compare *compare)
{
    int status = STATUS_DONE;
    for (unsigned round = 1; round <= compare->runs && !status; round++) {
        int first = round % 2 ? SIDE_BEFORE : SIDE_AFTER;
        status = run_once(compare, first, round);
        status = status ? status : run_once(compare, SIDES - 1 - first, round);
    }
    return status;
}

static int tell_difference(struct compare *compare)
{
    struct words words = {0};
    char directory[64];
    add_verb(&words, "diff");
    for (int side = 0; side < SIDES; side++) {
        words_add(&words, "--%s", side_names[side]);
        for (unsigned round = 1; round <= compare->runs; round++) {
            path_of(compare, side, round, directory);
            WORDS_ADD(&words, directory);
        }
    }
    const struct words *more = &compare->look.arguments;
    words_add_list(&words, more->count ? (const char *const *)more->list + 1 : NULL);
    int status = run_verb(compare, &words, STDOUT_FILENO, STDERR_FILENO);
    return status == 128 + SIGPIPE ? STATUS_DONE : status; /* its reader has seen enough */
}

/* ---- The command line ---- */

static int take_regex(const struct verb *verb, void *context, const char *text)
{
    struct compare *compare = context;
    if (compare->has_work_from) {
        regfree(&compare->work_from);
    }
    compare->has_work_from = regcomp(&compare->work_from, text, REG_EXTENDED) == 0;
    if (!compare->has_work_from || compare->work_from.re_nsub == 0) {
        return wrong_usage(verb, "--work-from needs a regular expression with a group, such as "
                                 "'did ([0-9]+)'");
    }
    return STATUS_DONE;
}

static int take_runs(const struct verb *verb, void *context, const char *text)
{
    struct compare *compare = context;
    size_t digits = strspn(text, "0123456789");
    compare->runs = digits < 4 && !text[digits] ? (unsigned)strtoul(text, NULL, 10) : 0;
    return compare->runs < RUNS_MIN || compare->runs > RUNS_MAX
               ? wrong_usage(verb, "-n is a number from 2 to 100, not %s", text)
               : STATUS_DONE;
}

static int take_work(const struct verb *verb, void *context, const char *text)
{
    ((struct compare *)context)->work = text;
    return is_positive(text) ? STATUS_DONE : wrong_usage(verb, "--work is a number, not %s", text);
}

static int take_flame(const struct verb *verb, void *context, const char *file)
{
    (void)verb;
    words_add(&((struct look *)context)->arguments, "--output=%s", file);
    return STATUS_DONE;
}

static const struct verb_option options[] = {
    LOOK_FILTERS,
    LOOK_PASS("all"),
    LOOK_PASS("json"),
    LOOK_PASS_VALUE("threshold"),
    OPTION_TAKE("flame", 0, take_flame),
    OPTION_TEXT("output", 'o', struct compare, out),
    OPTION_TAKE("work", 0, take_work),
    OPTION_TAKE("work-from", 0, take_regex),
    OPTION_TAKE(NULL, 'n', take_runs),
    OPTION_WORDS("duration", 'd', struct compare, recording),
    OPTION_WORDS("frequency", 'F', struct compare, recording),
    OPTION_WORDS(NULL, 'e', struct compare, recording),
    OPTION_WORDS("stacks", 0, struct compare, recording),
    OPTION_WORDS("sampler", 0, struct compare, recording),
    OPTION_WORD("alloc", 0, struct compare, recording),
    OPTION_WORD("locks", 0, struct compare, recording),
    OPTION_END,
};

/* "-- BEFORE… -- AFTER…", of which the first "--" is gone. */
static int split_commands(struct compare *compare)
{
    int side = SIDE_BEFORE;
    for (int i = 0; i < compare->look.more_count; i++) {
        char **word = compare->look.more + i;
        if (side == SIDE_BEFORE && strcmp(*word, "--") == 0) {
            side = SIDE_AFTER;
        } else {
            compare->commands[side] = compare->counts[side]++ ? compare->commands[side] : word;
        }
    }
    return compare->counts[SIDE_BEFORE] && compare->counts[SIDE_AFTER]
               ? STATUS_DONE
               : wrong_usage(compare->look.verb,
                             "which two commands? (jdperf compare -- BEFORE… -- AFTER…)");
}

static int parse(struct compare *compare, const struct verb *verb, int argc, char **argv)
{
    argc = look_begin(&compare->look, verb, argc, argv);
    WORDS_ADD(&compare->recording, "--frequency=" FREQUENCY); /* the last one counts */
    int status = verb_options(verb, argc, argv, options, compare);
    if (!status && optind < argc) {
        status = wrong_usage(verb, "unexpected argument: %s (jdperf compare -- BEFORE… -- AFTER…)",
                             argv[optind]);
    }
    status = status ? status : split_commands(compare);
    if (!status && compare->work && compare->has_work_from) {
        status = wrong_usage(verb, "--work or --work-from, not both");
    }
    return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct compare compare = {.out = DEFAULT_OUT, .runs = DEFAULT_RUNS, .held = -1};
    int status = parse(&compare, verb, argc, argv);
    if (!status) {
        /* Whatever stands at its path later, it is reached by this. */
        status = profiles_make(compare.out, &compare.held);
    }
    if (!status && waiting_start(&compare.waiting)) {
        status = STATUS_FAILED;
    }
    status = status ? status : run_all(&compare);
    status = status ? status : tell_difference(&compare);
    descriptor_close(compare.held);
    if (compare.has_work_from) {
        regfree(&compare.work_from);
    }
    words_free(&compare.recording);
    look_free(&compare.look);
    return status;
}

const struct verb live_compare = {
    .name = "compare",
    .run = run,
    .help =
        "usage: jdperf compare [OPTION…] -- BEFORE… -- AFTER…\n"
        "\n"
        "Records both commands several times and lists the methods that changed by more\n"
        "than chance. The runs alternate, so that other load on the machine affects both\n"
        "commands alike. The profiles stay in DIR: before.1, after.1, before.2, …\n"
        "The first 2 s of each run are left out, because the JIT compiles then; not if\n"
        "a run is shorter than 4 s, or with --work or --from.\n"
        "\n"
        "  -n N                runs of each command, 2 to 100 (default: 7)\n"
        "  -o DIR              for the profiles, must not exist (default: " DEFAULT_OUT ")\n"
        "      --flame FILE    also write a flame graph; frames that changed have colours\n"
        "      --work N        units of work that each run does: compares time per unit of work\n"
        "      --work-from REGEX  the same, with the number that the first group of REGEX\n"
        "                      matches in the command's output\n"
        "  -F, --frequency HZ  samples per second and CPU (default: " FREQUENCY
        "); more find smaller\n"
        "                      changes\n"
        "  -d, --duration TIME, -e, --stacks KIND, --sampler KIND, --alloc, --locks\n"
        "                      as for jdperf record\n"
        "      --threshold PERCENT  ignore smaller losses (default: 0)\n"
        "      --all           also list what did not change beyond chance\n"
        "      --json          for scripts: every comparison with the values of each run\n"
        "      --from, --to, --thread, --comm, --pid, --label, --by, --include, --exclude,\n"
        "      --event         compare some of the samples, as jdperf diff does\n"
        "\n"
        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 if something became slower. To\n"
        "repeat the comparison: jdperf diff --before DIR/before.* --after DIR/after.*\n",
};
