/* The command line of jdperf record. */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
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

#define NO_DURATION  "the duration must be a time such as 30, 30s or 5m, not "
#define NO_FREQUENCY "the frequency must be a number from 1 on, not "

struct parse {
    const struct verb *verb;
    struct record_options options;
    struct words perf_options, inject_options, matches;
    char *pids; /* of several -p, with commas between */
    bool opens; /* the flame graph, in the browser */
    char *page; /* where it is; NULL: in the profile */
};

/* ---- Values ---- */

int record_take_stack_size(const struct verb *verb, const char *text, unsigned *bytes)
{
    uint64_t size;
    if (!units_size(text, &size) || size > 65528 || size % 8) {
        return wrong_usage(verb, "the stack size must be a multiple of 8 up to 65528, not %s",
                           text);
    }
    *bytes = (unsigned)size;
    return STATUS_DONE;
}

static int take_stack_size(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    parse->options.stack_size_given = true;
    return record_take_stack_size(verb, text, &parse->options.stack_size);
}

static int take_stacks(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
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
    return wrong_usage(verb, "unknown value of --stacks: %s (auto, kernel, copy, fp, none)", text);
}

int record_take_sampler(const struct verb *verb, const char *text, enum sampler_kind *sampler)
{
    static const char *const names[] = {
        [SAMPLER_AUTO] = "auto", [SAMPLER_OWN] = "own", [SAMPLER_PERF] = "perf"};
    for (int i = SAMPLER_AUTO; i <= SAMPLER_PERF; i++) {
        if (strcmp(names[i], text) == 0) {
            *sampler = (enum sampler_kind)i;
            return STATUS_DONE;
        }
    }
    return wrong_usage(verb, "unknown sampler: %s (auto, own, perf)", text);
}

static int take_sampler(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    return record_take_sampler(verb, text, &parse->options.sampler);
}

/* A number and a unit, both the agent's to understand (agent/session/options.c): what it would
 * refuse is to be known before a JVM runs. NULL: the default. */
static int parse_amount(const struct verb *verb, const char *text, const char *const *units,
                        const char *what, const char **out)
{
    size_t digits = text ? strspn(text, "0123456789") : 0;
    bool is_right = digits > 0 && digits < 10 && strtoul(text, NULL, 10) > 0;
    while (is_right && *units && strcmp(text + digits, *units) != 0) {
        units++;
    }
    if (text && (!is_right || !*units)) {
        return wrong_usage(verb, "%s%s", what, text);
    }
    *out = text ? text : "";
    return STATUS_DONE;
}

static int take_alloc(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    static const char *const units[] = {"", "K", "M", NULL};
    return parse_amount(verb, text, units,
                        "--alloc takes a number of bytes such as 64K or 1M, not ",
                        &parse->options.alloc);
}

static int take_locks(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    return parse_amount(verb, text, units, "--locks takes a time such as 100us or 1ms, not ",
                        &parse->options.locks);
}

/* What other profilers call an event, and perf does not know. */
static int take_event(const struct verb *verb, void *context, const char *text)
{
    static const char *const others[][2] = {
        {"alloc", "use --alloc"},
        {"lock", "use --locks"},
        {"exceptions", "use --exceptions"},
        {"wall", "use --off-cpu"},
        {"cpu", "omit it: processor time is the default"},
        {"itimer", "use cpu-clock"},
        {"ctimer", "use cpu-clock"},
    };
    struct parse *parse = context;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(text, others[i][0]) == 0) {
            return wrong_usage(verb, "perf has no event %s; %s", text, others[i][1]);
        }
    }
    parse->options.event = text;
    return STATUS_DONE;
}

static int take_timeline(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    if (text && strcmp(text, "parks") != 0) {
        return wrong_usage(verb, "the value of --timeline can only be parks, not %s", text);
    }
    parse->options.timeline = text ? text : "";
    return STATUS_DONE;
}

static int take_buffer(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || (text[digits] && (!strchr("BKMG", text[digits]) || text[digits + 1]))) {
        return wrong_usage(
            verb, "the buffer must be a number of pages, or a size such as 8M, not %s", text);
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
    if (!status) {
        words_add(&parse->inject_options, "--export=%s", text);
    }
    return status;
}

/* A recording of the JVM's own, which may not be there yet: its whole path is what may be opened
 * later. */
static int take_jfr(const struct verb *verb, void *context, const char *file)
{
    char path[2 * PATH_MAX] = "";
    bool is_whole = *file == '/' || !getcwd(path, PATH_MAX);
    (void)verb;
    size_t length = is_whole ? 0 : strlen(path);
    snprintf(path + length, sizeof path - length, "%s%s", is_whole ? "" : "/", file);
    words_add(&((struct parse *)context)->inject_options, "--jfr=%s", path);
    return STATUS_DONE;
}

static int take_pid(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    char *both = NULL;
    (void)verb;
    if (parse->options.jvm && asprintf(&both, "%s,%s", parse->options.jvm, text) < 0) {
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    free(parse->pids);
    parse->pids = both;
    parse->options.jvm = both ? both : text;
    return STATUS_DONE;
}

static int take_export(const struct verb *verb, void *parse, const char *text)
{
    (void)verb;
    return parse_export(parse, text);
}

/* What a picture or an archive is called, and no directory. */
static bool is_called_like_a_file(const char *path)
{
    static const char *const endings[] = {".svg", ".png", ".pdf", ".htm", ".pb",
                                          ".gz",  ".zip", ".xml", ".csv"};
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t size = strlen(endings[i]);
        if (length > size && strcmp(path + length - size, endings[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* A directory for the profile, or a file for one of the formats. */
static int take_output(const struct verb *verb, void *context, const char *path)
{
    struct parse *parse = context;
    struct stat status;
    const struct export_format *format = export_by_ending(path);
    bool is_directory = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if (!format && !is_directory && is_called_like_a_file(path)) {
        return wrong_usage(verb, "unknown kind of file: %s (.html, .jfr, .pb.gz, .json, .txt)",
                           path);
    }
    if (!format || is_directory) {
        parse->options.out = path;
        return STATUS_DONE;
    }
    char word[PATH_MAX + 64];
    snprintf(word, sizeof word, "%s=%s", format->name, path);
    return parse_export(parse, word);
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

#define HANDED_ON(name, letter)       OPTION_WORD(name, letter, struct parse, perf_options)
#define HANDED_ON_VALUE(name, letter) OPTION_WORDS(name, letter, struct parse, perf_options)

static const struct verb_option options_table[] = {
    OPTION_TAKE("output", 'o', take_output),
    OPTION_SECONDS("duration", 'd', struct parse, options.duration, INT_MAX, NO_DURATION),
    OPTION_NUMBER("frequency", 'F', struct parse, options.frequency, INT_MAX, NO_FREQUENCY),
    OPTION_TAKE("event", 'e', take_event),
    OPTION_TAKE("pid", 'p', take_pid),
    OPTION_FLAG("all", 'a', struct parse, options.all),
    OPTION_TAKE("stacks", 0, take_stacks),
    OPTION_TAKE("stack-size", 0, take_stack_size),
    OPTION_TAKE("mmap-pages", 'm', take_buffer),
    OPTION_TEXT("agent-options", 0, struct parse, options.agent_options),
    OPTION_FLAG("no-inject", 0, struct parse, options.no_inject),
    OPTION_FLAG("keep-raw", 0, struct parse, options.keep_raw),
    OPTION_FLAG("discard-raw", 0, struct parse, options.discard_raw),
    OPTION_MAY_TAKE("alloc", 0, take_alloc),
    OPTION_MAY_TAKE("locks", 0, take_locks),
    OPTION_FLAG("exceptions", 0, struct parse, options.exceptions),
    OPTION_FLAG("off-cpu", 0, struct parse, options.off_cpu),
    OPTION_FLAG("wakers", 0, struct parse, options.wakers),
    OPTION_MAY_TAKE("timeline", 0, take_timeline),
    OPTION_TAKE("export", 0, take_export),
    OPTION_FLAG("threads", 0, struct parse, options.threads),
    OPTION_TAKE("sampler", 0, take_sampler),
    OPTION_TEXTS("match", 0, struct parse, matches),
    OPTION_NUMBER("depth", 0, struct parse, options.depth, WALK_DEPTH_MAX,
                  "the depth must be a number of frames from 1 to 10000, not "),
    OPTION_TAKE("jfr", 0, take_jfr),
    OPTION_FLAG("open", 0, struct parse, opens),
    OPTION_TEXT("count", 'c', struct parse, options.period), /* of which -F is left out */
    /* What would end in another file, at another time or on another clock than ours is not among
     * those of perf record that are handed on. */
    HANDED_ON_VALUE("cpu", 'C'),
    HANDED_ON_VALUE("cgroup", 'G'),
    HANDED_ON("branch-any", 'b'),
    HANDED_ON_VALUE("branch-filter", 'j'),
    HANDED_ON("per-thread", 0),
    HANDED_ON("no-inherit", 'i'),
    HANDED_ON_VALUE("filter", 0),
    HANDED_ON_VALUE("uid", 'u'),
    HANDED_ON_VALUE("realtime", 'r'),
    HANDED_ON("weight", 'W'),
    HANDED_ON("data", 0),
    HANDED_ON("phys-data", 0),
    HANDED_ON("data-page-size", 0),
    HANDED_ON("code-page-size", 0),
    HANDED_ON("sample-cpu", 0),
    HANDED_ON("raw-samples", 'R'),
    HANDED_ON("transaction", 0),
    HANDED_ON("all-kernel", 0),
    HANDED_ON("all-user", 0),
    HANDED_ON("kernel-callchains", 0),
    HANDED_ON("user-callchains", 0),
    HANDED_ON("strict-freq", 0),
    HANDED_ON("switch-events", 0),
    HANDED_ON("exclude-perf", 0),
    HANDED_ON_VALUE("proc-map-timeout", 0),
    HANDED_ON_VALUE("compression-level", 0),
    HANDED_ON_VALUE("num-thread-synthesize", 0),
    HANDED_ON_VALUE("mmap-flush", 0),
    HANDED_ON_VALUE("affinity", 0),
    HANDED_ON_VALUE("intr-regs", 0),
    HANDED_ON("group", 0),
    OPTION_END,
};

static int parse_environment(struct parse *parse)
{
    const char *seconds = getenv("PERF_RECORD_SECONDS");
    const char *frequency = getenv("PERF_RECORD_FREQ");
    struct record_options *options = &parse->options;
    if (seconds && *seconds && !units_seconds(seconds, INT_MAX, &options->duration)) {
        return wrong_usage(parse->verb, NO_DURATION "%s", seconds);
    }
    if (frequency && *frequency && !units_number(frequency, INT_MAX, &options->frequency)) {
        return wrong_usage(parse->verb, NO_FREQUENCY "%s", frequency);
    }
    return STATUS_DONE;
}

/* Ids of processes where a command could stand, but not behind "--". */
static bool is_pids(const char *word, const char *previous)
{
    return *word >= '0' && *word <= '9' && !word[strspn(word, "0123456789,")] &&
           strcmp(previous, "--") != 0;
}

static int parse_all(struct parse *parse, int argc, char **argv)
{
    int status = parse_environment(parse);
    status = status ? status : verb_options(parse->verb, argc, argv, options_table, parse);
    while (!status && argv[optind] && is_pids(argv[optind], argv[optind - 1])) {
        status = take_pid(parse->verb, parse, argv[optind++]);
        status = status ? status : verb_options(parse->verb, argc, argv, options_table, parse);
    }
    parse->options.match = parse->matches.list;
    parse->options.command = argv + optind;
    return status ? status : check_mode(parse);
}

static int check_together(const struct parse *parse)
{
    const struct record_options *options = &parse->options;
    if (!options->command[0] && !options->all && !options->jvm && !options->match) {
        return wrong_usage(parse->verb,
                           "nothing to record: give a command, a PID, --match NAME or -a");
    }
    if (options->jvm && (options->command[0] || options->all || options->match)) {
        return wrong_usage(parse->verb, "a PID excludes a command, --match and -a");
    }
    if (options->match && (options->command[0] || options->all)) {
        return wrong_usage(parse->verb, "--match excludes a command and -a");
    }
    if (options->wakers && !options->off_cpu) {
        return wrong_usage(parse->verb, "--wakers needs --off-cpu");
    }
    if (options->off_cpu && (options->stacks == STACKS_FP || options->stacks == STACKS_NONE)) {
        return wrong_usage(
            parse->verb,
            "--off-cpu needs copied stacks, because libc keeps no frame pointers; omit --stacks");
    }
    bool others = options->alloc || options->locks || options->exceptions || options->off_cpu;
    if (others && options->stacks == STACKS_NONE) {
        return wrong_usage(parse->verb, "events need copied stacks: omit --stacks");
    }
    if (options->no_inject && parse->inject_options.count) {
        return wrong_usage(parse->verb, "--export needs names of generated code: omit --no-inject");
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

static int run(const struct verb *verb, int argc, char **argv)
{
    static char *nothing[] = {NULL};
    struct parse parse = {
        .verb = verb,
        .options = {.out = PROFILE_DEFAULT_DIR, .stack_size = 65528, .agent_options = ""},
    };
    int status = parse_all(&parse, argc, argv);
    status = status ? status : check_together(&parse);
    if (!status && parse.opens && !parse.page) {
        status = parse_export(&parse, "html");
    }
    if (parse.perf_options.failed || parse.inject_options.failed || parse.matches.failed) {
        failed_to(-ENOMEM, "start");
        status = STATUS_FAILED;
    }
    parse.options.perf_options = parse.perf_options.list ? parse.perf_options.list : nothing;
    parse.options.inject_options = parse.inject_options.list ? parse.inject_options.list : nothing;
    status = status ? status : record(&parse.options);
    if (parse.opens && (status == STATUS_DONE || status == STATUS_BAD_PROFILE)) {
        open_page(&parse);
    }
    words_free(&parse.perf_options);
    words_free(&parse.inject_options);
    words_free(&parse.matches);
    free(parse.pids);
    free(parse.page);
    return status;
}

const struct verb live_record = {
    .name = "record",
    .takes_command = true,
    .run = run,
    .hint = " (jdperf record --help lists them)",
    .help = "usage: jdperf record [OPTION…] PID…                or: jdperf [OPTION…] PID\n"
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
            "                      arguments that no other JVM has (may be repeated)\n"
            "      --match NAME    all JVMs whose main class or arguments contain NAME (may be\n"
            "                      repeated)\n"
            "  -a, --all           the whole machine; JVMs need the agent (jdperf attach PID)\n"
            "      --stacks KIND   copy: copy stacks and unwind them as they arrive; kernel:\n"
            "                      walk them in the kernel, which is cheaper and has no 64 KB\n"
            "                      limit (root, Linux 5.17); auto (default): copy the\n"
            "                      first 300, then walk where possible; fp: follow frame\n"
            "                      pointers, which a JVM started by jdperf then keeps; none:\n"
            "                      no stacks\n"
            "      --depth N       most frames of a walked stack (default: 1000; deeper\n"
            "                      stacks are copied where that gives more of them)\n"
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
