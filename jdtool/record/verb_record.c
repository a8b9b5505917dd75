/* The command line of jdperf record. */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/units.h"
#include "jdtool/exports/export.h"
#include "jdtool/live/child.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/live/verbs.h"
#include "jdtool/live/wait.h"
#include "jdtool/record/record.h"
#include "jdtool/walk/walker.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The browser ---- */

/* Showing a page in the user's browser. */

/* xdg-open may stay as long as the browser does. */
#define WAIT_MS 5000

/* His settings, not root's, which sudo may have left. */
static int at_home(void *context)
{
    const struct passwd *user = getpwuid(getuid());
    (void)context;
    return user && setenv("HOME", user->pw_dir, 1) != 0;
}

/* Has xdg-open show a file: as the user who called sudo, if one did. Says where the page is where
 * that cannot be done. */
static void browser_open(const char *path, struct waiting *waiting)
{
    char *absolute = realpath(path, NULL);
    char program[] = "xdg-open";
    char *const arguments[] = {program, absolute, NULL};
    struct child_options options = {.arguments = arguments,
                                    .in = -1,
                                    .out = -1,
                                    .err = -1,
                                    .own_group = true, /* Ctrl-C is not for the browser */
                                    .prepare = at_home};
    struct child child = NO_CHILD;
    options.drop = geteuid() == 0 && output_caller(&options.uid, &options.gid);
    int err = absolute ? child_start(&child, &options) : -1;
    err = err ? err : child_wait(&child, waiting, deadline_in(WAIT_MS), true);
    if (child.pidfd < 0 || (child_ended(&child) && child.status != 0)) {
        info_message("xdg-open cannot show it: open %s%s in a browser", absolute ? "file://" : "",
                     absolute ? absolute : path);
    }
    if (child.pidfd >= 0) {
        close(child.pidfd); /* it goes on by itself */
    }
    free(absolute);
}

/* ---- The command ---- */

/*
 * Options of perf record that are handed on. What would end in another file, at another time or on
 * another clock than ours is not among them.
 */
enum { HANDED_ON = 1000 };

static const struct option handed_on[] = {
    {"count", required_argument, NULL, 'c'}, /* of which -F is left out */
    {"cpu", required_argument, NULL, HANDED_ON},
    {"cgroup", required_argument, NULL, HANDED_ON},
    {"branch-any", no_argument, NULL, HANDED_ON},
    {"branch-filter", required_argument, NULL, HANDED_ON},
    {"per-thread", no_argument, NULL, HANDED_ON},
    {"no-inherit", no_argument, NULL, HANDED_ON},
    {"filter", required_argument, NULL, HANDED_ON},
    {"uid", required_argument, NULL, HANDED_ON},
    {"realtime", required_argument, NULL, HANDED_ON},
    {"weight", no_argument, NULL, HANDED_ON},
    {"data", no_argument, NULL, HANDED_ON},
    {"phys-data", no_argument, NULL, HANDED_ON},
    {"data-page-size", no_argument, NULL, HANDED_ON},
    {"code-page-size", no_argument, NULL, HANDED_ON},
    {"sample-cpu", no_argument, NULL, HANDED_ON},
    {"raw-samples", no_argument, NULL, HANDED_ON},
    {"transaction", no_argument, NULL, HANDED_ON},
    {"all-kernel", no_argument, NULL, HANDED_ON},
    {"all-user", no_argument, NULL, HANDED_ON},
    {"kernel-callchains", no_argument, NULL, HANDED_ON},
    {"user-callchains", no_argument, NULL, HANDED_ON},
    {"strict-freq", no_argument, NULL, HANDED_ON},
    {"switch-events", no_argument, NULL, HANDED_ON},
    {"exclude-perf", no_argument, NULL, HANDED_ON},
    {"proc-map-timeout", required_argument, NULL, HANDED_ON},
    {"compression-level", required_argument, NULL, HANDED_ON},
    {"num-thread-synthesize", required_argument, NULL, HANDED_ON},
    {"mmap-flush", required_argument, NULL, HANDED_ON},
    {"affinity", required_argument, NULL, HANDED_ON},
    {"intr-regs", required_argument, NULL, HANDED_ON},
    {"group", no_argument, NULL, HANDED_ON},
};
#define HANDED_ON_COUNT (sizeof handed_on / sizeof *handed_on)

/* Their short forms. */
static const char short_forms[] = "c:C:G:bj:ir:WRu:";

static const struct option ours[] = {
    {"output", required_argument, NULL, 'o'},     {"duration", required_argument, NULL, 'd'},
    {"frequency", required_argument, NULL, 'F'},  {"event", required_argument, NULL, 'e'},
    {"pid", required_argument, NULL, 'p'},        {"all", no_argument, NULL, 'a'},
    {"stacks", required_argument, NULL, 'S'},     {"stack-size", required_argument, NULL, 's'},
    {"mmap-pages", required_argument, NULL, 'm'}, {"agent-options", required_argument, NULL, 'A'},
    {"no-inject", no_argument, NULL, 'N'},        {"keep-raw", no_argument, NULL, 'K'},
    {"discard-raw", no_argument, NULL, 'D'},      {"alloc", optional_argument, NULL, 'L'},
    {"locks", optional_argument, NULL, 'M'},      {"exceptions", no_argument, NULL, 'X'},
    {"off-cpu", no_argument, NULL, 'O'},          {"wakers", no_argument, NULL, 'w'},
    {"timeline", optional_argument, NULL, 'T'},   {"export", required_argument, NULL, 'E'},
    {"threads", no_argument, NULL, 'H'},          {"sampler", required_argument, NULL, 'B'},
    {"match", required_argument, NULL, 'Y'},      {"depth", required_argument, NULL, 'Z'},
    {"jfr", required_argument, NULL, 'J'},        {"open", no_argument, NULL, 'Q'},
};
#define OURS_COUNT (sizeof ours / sizeof *ours)

struct parse {
    const struct live_verb *verb;
    struct record_options options;
    unsigned perf_count;
    unsigned inject_count;
    bool opens; /* the flame graph, in the browser */
    char *page; /* where it is; NULL: in the profile */
};

/* ---- Values ---- */

static int parse_number(const struct parse *parse, const char *what, const char *text,
                        unsigned *number)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value == 0 || value > INT_MAX) {
        error_message("%s: the %s from 1 on, not %s", parse->verb->name, what, text);
        return STATUS_USAGE;
    }
    *number = (unsigned)value;
    return STATUS_DONE;
}

static int parse_duration(struct parse *parse, const char *text)
{
    if (!units_seconds(text, INT_MAX, &parse->options.duration)) {
        return live_wrong_usage(
            parse->verb, "the duration must be a time such as 30, 30s or 5m, not ", text, "");
    }
    return STATUS_DONE;
}

static int parse_frequency(struct parse *parse, const char *text)
{
    return parse_number(parse, "frequency must be a number", text, &parse->options.frequency);
}

static int parse_stack_size(struct parse *parse, const char *text)
{
    uint64_t size;
    if (!units_size(text, &size) || size > 65528 || size % 8) {
        return live_wrong_usage(
            parse->verb, "the stack size must be a multiple of 8 up to 65528, not ", text, "");
    }
    parse->options.stack_size = (unsigned)size;
    parse->options.stack_size_given = true;
    return STATUS_DONE;
}

static int parse_stacks(struct parse *parse, const char *text)
{
    static const struct {
        const char *name;
        enum stacks stacks;
    } names[] = {{"auto", STACKS_AUTO},       {"kernel", STACKS_KERNEL}, {"copy", STACKS_COPY},
                 {"dwarf", STACKS_COPY}, /* as copy was called */
                 {"compare", STACKS_COMPARE}, {"fp", STACKS_FP},         {"none", STACKS_NONE}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i].name, text) == 0) {
            parse->options.stacks = names[i].stacks;
            return STATUS_DONE;
        }
    }
    return live_wrong_usage(parse->verb, "unknown value of --stacks: ", text,
                            " (auto, kernel, copy, fp, none)");
}

static int parse_depth(struct parse *parse, const char *text)
{
    int status =
        parse_number(parse, "depth must be a number of frames", text, &parse->options.depth);
    if (!status && parse->options.depth > WALK_DEPTH_MAX) {
        return live_wrong_usage(parse->verb, "the depth must be at most 10000 frames: ", text, "");
    }
    return status;
}

static int parse_sampler(struct parse *parse, const char *text)
{
    static const char *const names[] = {
        [SAMPLER_AUTO] = "auto", [SAMPLER_OWN] = "own", [SAMPLER_PERF] = "perf"};
    for (int i = SAMPLER_AUTO; i <= SAMPLER_PERF; i++) {
        if (strcmp(names[i], text) == 0) {
            parse->options.sampler = (enum sampler_kind)i;
            return STATUS_DONE;
        }
    }
    return live_wrong_usage(parse->verb, "unknown sampler: ", text, " (auto, own, perf)");
}

/* A number and a unit, both the agent's to understand (agent/session/options.c): what it would
 * refuse is to be known before a JVM runs. NULL: the default. */
static int parse_amount(const struct parse *parse, const char *text, const char *const *units,
                        const char *what, const char **out)
{
    size_t digits = text ? strspn(text, "0123456789") : 0;
    bool is_right = digits > 0 && digits < 10 && strtoul(text, NULL, 10) > 0;
    while (is_right && *units && strcmp(text + digits, *units) != 0) {
        units++;
    }
    if (text && (!is_right || !*units)) {
        return live_wrong_usage(parse->verb, what, text, "");
    }
    *out = text ? text : "";
    return STATUS_DONE;
}

static int parse_alloc(struct parse *parse, const char *text)
{
    static const char *const units[] = {"", "K", "M", NULL};
    return parse_amount(parse, text, units,
                        "--alloc takes a number of bytes such as 64K or 1M, not ",
                        &parse->options.alloc);
}

static int parse_locks(struct parse *parse, const char *text)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return parse_amount(parse, text, units, "--locks takes a time such as 100us or 1ms, not ",
                        &parse->options.locks);
}

static int parse_timeline(struct parse *parse, const char *text)
{
    if (text && strcmp(text, "parks") != 0) {
        return live_wrong_usage(parse->verb, "the value of --timeline can only be parks, not ",
                                text, "");
    }
    parse->options.timeline = text ? text : "";
    return STATUS_DONE;
}

static int parse_buffer(struct parse *parse, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || (text[digits] && (!strchr("BKMG", text[digits]) || text[digits + 1]))) {
        return live_wrong_usage(parse->verb,
                                "the buffer must be a number of pages, or a size such as 8M, not ",
                                text, "");
    }
    parse->options.buffer = text;
    return STATUS_DONE;
}

/* A result that cannot be written is told before there is one. */
static int check_place(const struct parse *parse, const char *file)
{
    char directory[PATH_MAX];
    const char *slash = strrchr(file, '/');
    snprintf(directory, sizeof directory, "%.*s", slash ? (int)(slash - file) + 1 : 1,
             slash ? file : ".");
    if (access(directory, W_OK | X_OK) != 0) {
        error_message("%s: failed to write %s: %s", parse->verb->name, file, strerror(errno));
        return STATUS_FAILED;
    }
    return output_path_check(file) ? STATUS_FAILED : STATUS_DONE;
}

static int parse_export(struct parse *parse, const char *text)
{
    char *word = NULL;
    char names[256];
    const char *file;
    if (!export_choose(text, &file)) {
        export_format_names(false, names, sizeof names);
        error_message("%s: --export takes FORMAT[=FILE], not %s (%s)", parse->verb->name, text,
                      names);
        return STATUS_USAGE;
    }
    if (strncmp(text, "html", 4) == 0 && file) {
        free(parse->page);
        parse->page = strdup(file); /* without memory it is not shown */
    }
    int status = file ? check_place(parse, file) : STATUS_DONE;
    if (!status && asprintf(&word, "--export=%s", text) < 0) {
        error_message("failed to start: %s", strerror(ENOMEM));
        status = STATUS_FAILED;
    }
    if (!status) {
        parse->options.inject_options[parse->inject_count++] = word;
    }
    return status;
}

/* A recording of the JVM's own, which may not be there yet: its whole path is what may be opened
 * later. */
static int parse_jfr(struct parse *parse, const char *file)
{
    char here[PATH_MAX] = "";
    char *word;
    bool is_whole = *file == '/' || !getcwd(here, sizeof here);
    if (asprintf(&word, "--jfr=%s%s%s", here, is_whole ? "" : "/", file) < 0) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    parse->options.inject_options[parse->inject_count++] = word;
    return STATUS_DONE;
}

/* A directory for the profile, or a file for one of the formats. */
static int parse_output(struct parse *parse, const char *path)
{
    struct stat status;
    const struct export_format *format = export_by_ending(path);
    if (!format || (stat(path, &status) == 0 && S_ISDIR(status.st_mode))) {
        parse->options.out = path;
        return STATUS_DONE;
    }
    char *word;
    if (asprintf(&word, "%s=%s", format->name, path) < 0) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    int result = parse_export(parse, word);
    free(word);
    return result;
}

/* A recording needs a dump. */
static int check_mode(const struct parse *parse)
{
    static const char key[] = "mode=";
    const char *at = parse->options.agent_options;
    while (*at && strncmp(at, key, sizeof key - 1) != 0) {
        at += strcspn(at, ",");
        at += *at == ',';
    }
    if (!*at) {
        return STATUS_DONE;
    }
    at += sizeof key - 1;
    size_t length = strcspn(at, ",");
    for (const char *word = at; word < at + length; word += strcspn(word, "+,") + 1) {
        if (strncmp(word, "jitdump", 7) == 0 && strchr("+,", word[7])) {
            return STATUS_DONE;
        }
    }
    error_message("%s: mode=%.*s writes no dump, which a recording needs: leave it out, or "
                  "mode=jitdump+%.*s",
                  parse->verb->name, (int)length, at, (int)length, at);
    return STATUS_USAGE;
}

/* ---- Options ---- */

static int hand_on(struct parse *parse, int letter, int index)
{
    char **list = parse->options.perf_options;
    char *word = NULL;
    int n;
    if (index >= 0 && optarg) {
        n = asprintf(&word, "--%s=%s", handed_on[index].name, optarg);
    } else if (index >= 0) {
        n = asprintf(&word, "--%s", handed_on[index].name);
    } else {
        n = asprintf(&word, "-%c%s", letter, optarg ? optarg : "");
    }
    if (n < 0) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    list[parse->perf_count++] = word;
    return STATUS_DONE;
}

static int take(struct parse *parse, int letter, int index)
{
    struct record_options *options = &parse->options;
    switch (letter) {
    case 'o':
        return parse_output(parse, optarg);
    case 'd':
        return parse_duration(parse, optarg);
    case 'F':
        return parse_frequency(parse, optarg);
    case 'e':
        options->event = optarg;
        return STATUS_DONE;
    case 'p':
        options->jvm = optarg;
        return STATUS_DONE;
    case 'Z':
        return parse_depth(parse, optarg);
    case 'Y':
        options->match = optarg;
        return STATUS_DONE;
    case 'a':
        options->all = true;
        return STATUS_DONE;
    case 'S':
        return parse_stacks(parse, optarg);
    case 's':
        return parse_stack_size(parse, optarg);
    case 'm':
        return parse_buffer(parse, optarg);
    case 'A':
        options->agent_options = optarg;
        return STATUS_DONE;
    case 'N':
        options->no_inject = true;
        return STATUS_DONE;
    case 'K':
        options->keep_raw = true;
        return STATUS_DONE;
    case 'D':
        options->discard_raw = true;
        return STATUS_DONE;
    case 'E':
        return parse_export(parse, optarg);
    case 'J':
        return parse_jfr(parse, optarg);
    case 'Q':
        parse->opens = true;
        return STATUS_DONE;
    case 'c':
        options->period = optarg;
        return STATUS_DONE;
    case 'L':
        return parse_alloc(parse, optarg);
    case 'M':
        return parse_locks(parse, optarg);
    case 'X':
        options->exceptions = true;
        return STATUS_DONE;
    case 'T':
        return parse_timeline(parse, optarg);
    case 'O':
        options->off_cpu = true;
        return STATUS_DONE;
    case 'w':
        options->wakers = true;
        return STATUS_DONE;
    case 'B':
        return parse_sampler(parse, optarg);
    case 'H':
        options->threads = true;
        return STATUS_DONE;
    case '?':
        return STATUS_USAGE;
    default:
        return hand_on(parse, letter, index);
    }
}

static int parse_environment(struct parse *parse)
{
    const char *seconds = getenv("PERF_RECORD_SECONDS");
    const char *frequency = getenv("PERF_RECORD_FREQ");
    int status = seconds && *seconds ? parse_duration(parse, seconds) : STATUS_DONE;
    return status || !frequency || !*frequency ? status : parse_frequency(parse, frequency);
}

/* Ids of processes where a command could stand, but not behind "--". */
static bool is_pids(const char *word, const char *previous)
{
    return *word >= '0' && *word <= '9' && !word[strspn(word, "0123456789,")] &&
           strcmp(previous, "--") != 0;
}

static int parse_options(struct parse *parse, int argc, char **argv)
{
    struct option table[OURS_COUNT + HANDED_ON_COUNT + 1] = {0};
    char letters[64];
    memcpy(table, ours, sizeof ours);
    memcpy(table + OURS_COUNT, handed_on, sizeof handed_on);
    snprintf(letters, sizeof letters, "+o:d:F:e:p:am:%s", short_forms);
    int status = STATUS_DONE;
    int letter;
    int index = -1;
    while (!status &&
           (letter = live_option_at(parse->verb, argc, argv, letters, table, &index)) != -1) {
        int at = index - (int)OURS_COUNT;
        status = take(parse, letter, index >= 0 && at >= 0 ? at : -1);
        index = -1;
    }
    return status;
}

static int parse_all(struct parse *parse, int argc, char **argv)
{
    int status = parse_environment(parse);
    status = status ? status : parse_options(parse, argc, argv);
    if (!status && !parse->options.jvm && argv[optind] && is_pids(argv[optind], argv[optind - 1])) {
        parse->options.jvm = argv[optind++];
        status = parse_options(parse, argc, argv);
    }
    parse->options.command = argv + optind;
    return status ? status : check_mode(parse);
}

static int check_together(const struct parse *parse)
{
    const struct record_options *options = &parse->options;
    if (!options->command[0] && !options->all && !options->jvm && !options->match) {
        return live_wrong_usage(
            parse->verb, "nothing to record: give a command, a PID, --match NAME or -a", "", "");
    }
    if (options->jvm && (options->command[0] || options->all || options->match)) {
        return live_wrong_usage(parse->verb, "a PID excludes a command, --match and -a", "", "");
    }
    if (options->match && (options->command[0] || options->all)) {
        return live_wrong_usage(parse->verb, "--match excludes a command and -a", "", "");
    }
    if (options->wakers && !options->off_cpu) {
        return live_wrong_usage(parse->verb, "--wakers needs --off-cpu", "", "");
    }
    if (options->off_cpu && (options->stacks == STACKS_FP || options->stacks == STACKS_NONE)) {
        return live_wrong_usage(
            parse->verb,
            "--off-cpu needs copied stacks, because libc keeps no frame pointers; omit --stacks",
            "", "");
    }
    bool others = options->alloc || options->locks || options->exceptions || options->off_cpu;
    if (others && options->stacks == STACKS_NONE) {
        return live_wrong_usage(parse->verb, "events need copied stacks: omit --stacks", "", "");
    }
    if (options->no_inject && parse->inject_count) {
        return live_wrong_usage(parse->verb,
                                "--export needs names of generated code: omit --no-inject", "", "");
    }
    return STATUS_DONE;
}

static void open_page(const struct parse *parse)
{
    struct waiting waiting;
    char inside[PATH_MAX];
    snprintf(inside, sizeof inside, "%s/flamegraph.html", parse->options.out);
    if (waiting_start(&waiting) == 0) {
        browser_open(parse->page ? parse->page : inside, &waiting);
    }
}

static int run(const struct live_verb *verb, int argc, char **argv)
{
    struct parse parse = {
        .verb = verb,
        .options = {.out = PROFILE_DEFAULT_DIR,
                    .stack_size = 65528,
                    .depth = WALK_DEPTH_DEFAULT,
                    .agent_options = ""},
    };
    parse.options.perf_options = calloc((size_t)argc + 1, sizeof(char *));
    parse.options.inject_options = calloc((size_t)argc + 1, sizeof(char *));
    if (!parse.options.perf_options || !parse.options.inject_options) {
        free(parse.options.perf_options);
        free(parse.options.inject_options);
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    int status = parse_all(&parse, argc, argv);
    status = status ? status : check_together(&parse);
    if (!status && parse.opens && !parse.page) {
        status = parse_export(&parse, "html");
    }
    status = status ? status : record(&parse.options);
    if (parse.opens && (status == STATUS_DONE || status == STATUS_BAD_PROFILE)) {
        open_page(&parse);
    }
    for (unsigned i = 0; i < parse.perf_count; i++) {
        free(parse.options.perf_options[i]);
    }
    for (unsigned i = 0; i < parse.inject_count; i++) {
        free(parse.options.inject_options[i]);
    }
    free(parse.options.inject_options);
    free(parse.options.perf_options);
    free(parse.page);
    return status;
}

const struct live_verb live_record = {
    .name = "record",
    .run = run,
    .hint = " (jdperf record --help lists them)",
    .help = "usage: jdperf record [OPTION…] PID[,PID…]          or: jdperf [OPTION…] PID\n"
            "       jdperf record [OPTION…] [--] COMMAND [ARGUMENT…]\n"
            "       jdperf record [OPTION…] --match NAME | -a\n"
            "\n"
            "Profiles a running JVM or a command, names the generated code, and reports how\n"
            "complete the profile is. jdperf attaches to a running JVM and detaches afterwards.\n"
            "A java command gets the agent as an argument. Any other command (mvn, a start\n"
            "script) passes it to its JVMs through JAVA_TOOL_OPTIONS. Ctrl-C ends the\n"
            "recording and completes the profile.\n"
            "\n"
            "  -o DIR              directory of the profile (default: jdperf.profile); an\n"
            "                      earlier profile is renamed to DIR.old\n"
            "  -o FILE             also write FILE; the end of its name is the format: .html\n"
            "                      (flame graph), .jfr, .pb.gz (pprof), .json (Firefox), .txt\n"
            "                      (collapsed stacks)\n"
            "      --open          show the flame graph in the browser\n"
            "  -d, --duration TIME  stop recording after this time, such as 30s or 5m; the\n"
            "                      command continues\n"
            "  -F, --frequency HZ  samples per second and CPU (default: 99; 997 with --stacks\n"
            "                      fp or none)\n"
            "  -e, --event EVENT   event to sample (default: cycles; cpu-clock if the machine\n"
            "                      has no counters)\n"
            "      --alloc[=BYTES] also sample allocations, one every so many bytes (default:\n"
            "                      512K), by class and weighted by bytes; needs root\n"
            "      --locks[=TIME]  also record waits for contended monitors: each of this time\n"
            "                      or longer (default: 1ms), some shorter ones; needs root\n"
            "      --exceptions    also record each new exception, by class; needs root\n"
            "      --off-cpu       also record where threads wait, and how long; with --threads\n"
            "                      virtual threads too; needs root\n"
            "      --wakers        with --off-cpu: also record who wakes a thread\n"
            "      --threads       record whole thread names, virtual threads, and the labels\n"
            "                      of the program, for --thread, --label and --by of other verbs\n"
            "      --timeline[=parks]  also record what the JVM does: pauses, VM operations,\n"
            "                      compilations, deoptimisations, threads (and each park); see\n"
            "                      jdperf timeline; without root only pauses\n"
            "      --jfr FILE      also add the events of the JVM's own recording (.jfr) as\n"
            "                      markers; FILE must exist when jdperf stops recording\n"
            "  -p, --pid PID|NAME  a running JVM by its id, or by a part of its main class or\n"
            "                      arguments that no other JVM has\n"
            "      --match NAME    all JVMs whose main class or arguments contain NAME\n"
            "  -a, --all           the whole machine; JVMs need the agent (jdperf attach PID)\n"
            "      --stacks KIND   auto (default) and copy: copy stacks and unwind them as they\n"
            "                      arrive; kernel: walk them in the kernel, which is cheaper and\n"
            "                      has no 64 KB limit (x86-64, root, Linux 5.17); fp: follow\n"
            "                      frame pointers, which a JVM started by jdperf then keeps;\n"
            "                      none: no stacks\n"
            "      --depth N       most frames that --stacks kernel walks (default: 1000)\n"
            "      --stack-size N  bytes of stack to copy (default: 65528)\n"
            "      --sampler KIND  auto (default): jdperf samples itself where it can, and then\n"
            "                      sees short-lived threads; own: the same, and says why if it\n"
            "                      cannot; perf: always perf record\n"
            "      --keep-raw      keep perf.data, the recording with the copied stacks\n"
            "  -m, --mmap-pages SIZE  perf's buffer per CPU, in pages or as a size such as 8M;\n"
            "                      samples that do not fit are lost (default: 4M with copied\n"
            "                      stacks for root, else perf's own)\n"
            "      --agent-options LIST  key=value,… for the agent, see libjdagent(7)\n"
            "      --export FORMAT[=FILE]  also write this format (may be repeated): html,\n"
            "                      pprof, firefox, jfr, speedscope, collapsed, otlp,\n"
            "                      otlp-json; into the profile or to FILE\n"
            "      --no-inject     do not name generated code; jdperf inject does it later\n"
            "      --discard-raw   remove perf.data once a good perf.jit.data exists\n"
            "  -c, --count PERIOD  a sample every so many events. Also passed to perf record:\n"
            "                      -C, --cgroup, -b, -j, --per-thread, --filter, --weight,\n"
            "                      --all-user and others that change what is sampled\n"
            "\n"
            "You can shorten long options: --off is --off-cpu, --time is --timeline.\n"
            "PERF_RECORD_SECONDS and PERF_RECORD_FREQ are defaults for -d and -F; PERF is the\n"
            "perf to run. Exit status: the command's own; else 0 done, 1 failed, 2 wrong usage,\n"
            "3 the profile is bad: too many frames without a name, or too few stacks that reach\n"
            "their root.\n",
};
