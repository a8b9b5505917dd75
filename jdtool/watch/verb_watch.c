/* The command lines of jdperf watch, and of its slicer. */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/units.h"
#include "jdtool/live/verbs.h"
#include "jdtool/watch/doors.h"
#include "jdtool/watch/slicer.h"
#include "jdtool/watch/watch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { LINES_MAX = 8192 };

/* 49 Hz is no divisor of what programs do in even milliseconds. */
enum { USER_CPU_MAX = 100, ALL_CPU_MAX = 100 };
enum { FREQUENCY = 49, SLICE = 15, SLICE_MAX = 3600, STACK_SIZE = 65528, CPU_MAX = 10 };
#define MEMORY_MAX (UINT64_C(1) << 30)
#define NO_SHARE   "a share of a processor is a number of percent: "
#define SPOOL      (UINT64_C(64) << 20)

struct parse {
    const struct verb *verb;
    struct watch_options options;
    int pids[WATCHED_MAX + 1];
    size_t pid_count;
    struct words labels, urls, headers, matches;
    bool all, status;
};

/* ---- Values ---- */

/* "24h", "90m", "7d", or a size. */
static int take_keep(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    struct slice_files_options *files = &parse->options.files;
    unsigned seconds;
    /* A bare number would be either. */
    if (!isdigit((unsigned char)text[strlen(text) - (*text != 0)]) &&
        units_seconds(text, UINT_MAX, &seconds)) {
        files->keep_seconds = seconds;
        files->keep_bytes = 0;
        return STATUS_DONE;
    }
    files->keep_seconds = 0;
    return units_size(text, &files->keep_bytes)
               ? STATUS_DONE
               : wrong_usage(verb, "keep a time as 24h or a size as 2G, not %s", text);
}

static int take_pids(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    for (const char *at = text; *at; at += *at == ',') {
        char *end;
        long pid = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || pid <= 0 || pid > INT_MAX) {
            return wrong_usage(verb, "-p wants process numbers, not %s", text);
        }
        if (parse->pid_count == WATCHED_MAX) {
            return wrong_usage(verb, "too many processes: %s", text);
        }
        parse->pids[parse->pid_count++] = (int)pid;
        at = end;
    }
    return STATUS_DONE;
}

static int take_label(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    if (!label_is_valid(text)) {
        return wrong_usage(verb, "a label is NAME=VALUE, its name of letters, digits and _, not %s",
                           text);
    }
    if (parse->labels.count == LABELS_MAX) {
        return wrong_usage(verb, "too many labels: %s", text);
    }
    words_add(&parse->labels, "%s", text);
    return STATUS_DONE;
}

static int add_url(struct parse *parse, const char *text)
{
    char shown[256];
    push_url_shown(text, shown, sizeof shown);
    if (!push_protocol_of(text)) {
        return wrong_usage(parse->verb,
                           "--push wants pyroscope+http(s)://HOST…, otlp+http(s)://…, "
                           "parca+http(s)://… or @FILE with such lines, not %s",
                           shown);
    }
    words_add(&parse->urls, "%s", text);
    return STATUS_DONE;
}

/* What it is like is not told: it may be a secret. */
static int add_header(struct parse *parse, const char *text)
{
    if (!strchr(text, ':') || strpbrk(text, "\r\n")) {
        return wrong_usage(parse->verb, "a header is 'NAME: VALUE', or @FILE with such lines");
    }
    words_add(&parse->headers, "%s", text);
    return STATUS_DONE;
}

/* Each word, up to one of these ends, of a text that is cut up. */
static int add_words(struct parse *parse, char *text, const char *ends,
                     int (*add)(struct parse *parse, const char *text))
{
    int status = STATUS_DONE;
    char *rest = text;
    char *word;
    while (!status && (word = strsep(&rest, ends))) {
        status = *word ? add(parse, word) : STATUS_DONE;
    }
    return status;
}

/* Lines of a file, so that a password or token is in no command line. */
static int read_lines(struct parse *parse, const char *path,
                      int (*add)(struct parse *parse, const char *text))
{
    char text[LINES_MAX + 1];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    int err = n < 0 ? errno : n > LINES_MAX ? EFBIG : 0;
    descriptor_close(fd);
    if (err) {
        error_message("failed to read %s: %s", path, strerror(err));
        return STATUS_FAILED;
    }
    text[n] = '\0';
    return add_words(parse, text, "\r\n", add);
}

static int take_url(const struct verb *verb, void *parse, const char *text)
{
    (void)verb;
    return *text == '@' ? read_lines(parse, text + 1, add_url) : add_url(parse, text);
}

static int take_header(const struct verb *verb, void *parse, const char *text)
{
    (void)verb;
    return *text == '@' ? read_lines(parse, text + 1, add_header) : add_header(parse, text);
}

/* JDPERF_PUSH: servers, with blanks between, where the command line names none. */
static int take_environment(struct parse *parse)
{
    const char *urls = getenv("JDPERF_PUSH");
    char *copy = parse->urls.count || !urls ? NULL : strdup(urls);
    int status = copy ? add_words(parse, copy, " \t\n", add_url) : STATUS_DONE;
    free(copy);
    return status;
}

static void warn_of_open_secrets(const struct parse *parse)
{
    bool has_secret = false;
    char shown[256];
    for (uint32_t i = 0; i < parse->headers.count; i++) {
        has_secret |= strncasecmp(parse->headers.list[i], "authorization:", 14) == 0;
    }
    for (uint32_t i = 0; i < parse->urls.count; i++) {
        if (push_url_is_open(parse->urls.list[i], has_secret)) {
            push_url_shown(parse->urls.list[i], shown, sizeof shown);
            warning_message("%s: credentials go there unencrypted: use https", shown);
        }
    }
}

static int take_stack_size(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    return record_take_stack_size(verb, text, &parse->options.jvm.stack_size);
}

static int take_service_from(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    if (!labels_service_from_is_valid(text)) {
        return wrong_usage(verb, "--service-from wants some of unit,container,env, not %s", text);
    }
    parse->options.jvm.service_from = text;
    return STATUS_DONE;
}

static int take_sampler(const struct verb *verb, void *context, const char *text)
{
    struct parse *parse = context;
    return record_take_sampler(verb, text, &parse->options.jvm.sampler);
}

static const struct verb_option watch_options_table[] = {
    OPTION_TAKE("pid", 'p', take_pids),
    OPTION_FLAG("all", 'a', struct parse, all),
    OPTION_TEXTS("match", 0, struct parse, matches),
    OPTION_SECONDS("slice", 0, struct parse, options.jvm.slice, SLICE_MAX,
                   "a slice is a time in whole seconds, 1 h at most, as 15s: "),
    OPTION_NUMBER("frequency", 'F', struct parse, options.jvm.frequency, 10000,
                  "frequency must be a number up to 10000: "),
    OPTION_TEXT("event", 'e', struct parse, options.jvm.event),
    OPTION_TAKE("sampler", 0, take_sampler),
    OPTION_TAKE("stack-size", 0, take_stack_size),
    OPTION_TEXT("mmap-pages", 'm', struct parse, options.jvm.buffer),
    OPTION_TEXT("output", 'o', struct parse, options.files.directory),
    OPTION_TAKE("keep", 0, take_keep),
    OPTION_TAKE("push", 0, take_url),
    OPTION_TAKE("header", 0, take_header),
    OPTION_TEXT("ca", 0, struct parse, options.push.ca),
    OPTION_SIZE("spool", 0, struct parse, options.push.spool, "a spool is a size as 64M, not "),
    OPTION_TAKE("label", 0, take_label),
    OPTION_FLAG("threads", 0, struct parse, options.jvm.threads),
    OPTION_TEXT("listen", 0, struct parse, options.listen),
    OPTION_FLAG("status", 0, struct parse, status),
    OPTION_TEXT("name", 0, struct parse, options.name),
    OPTION_SECONDS("duration", 'd', struct parse, options.duration, INT_MAX,
                   "duration is a time in whole seconds, as 30s or 12h: "),
    OPTION_NUMBER("max-cpu", 0, struct parse, options.cpu_max, 10000, NO_SHARE),
    OPTION_NUMBER("max-cpu-user", 0, struct parse, options.user_cpu_max, 100000, NO_SHARE),
    OPTION_NUMBER("max-cpu-all", 0, struct parse, options.all_cpu_max, 100000, NO_SHARE),
    OPTION_TAKE("service-from", 0, take_service_from),
    OPTION_SIZE("max-memory", 0, struct parse, options.memory_max,
                "memory is a size as 256M, not "),
    OPTION_TEXT("agent-options", 0, struct parse, options.jvm.agent_options),
    OPTION_END,
};

/* Which exports the destinations want. */
static void choose_formats(struct parse *parse)
{
    struct watch_options *options = &parse->options;
    bool pprof = options->files.directory != NULL;
    bool otlp = false;
    for (uint32_t i = 0; i < parse->urls.count; i++) {
        const char *format = push_protocol_of(parse->urls.list[i])->format;
        pprof |= strcmp(format, "pprof") == 0;
        otlp |= strcmp(format, "otlp") == 0;
    }
    if (pprof) {
        options->jvm.formats[options->jvm.format_count++] = export_format_of("pprof");
    }
    if (otlp) {
        options->jvm.formats[options->jvm.format_count++] = export_format_of("otlp");
    }
}

static const char *const *list_of(const struct words *words)
{
    static const char *const none[] = {NULL};
    return words->list ? (const char *const *)words->list : none;
}

static int check_together(struct parse *parse, int argc, char **argv)
{
    struct watch_options *options = &parse->options;
    options->match = parse->matches.list;
    if (optind < argc) {
        char shown[256];
        push_url_shown(argv[optind], shown, sizeof shown);
        return wrong_usage(parse->verb, "unexpected word: %s%s", shown, parse->verb->hint);
    }
    if (parse->pid_count && (parse->all || options->match)) {
        return wrong_usage(parse->verb, "-p excludes -a and --match");
    }
    for (const char *at = options->name; *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at)) {
            return wrong_usage(parse->verb,
                               "a watch's name has letters, digits, - _ . alone, not %s",
                               options->name);
        }
    }
    if (strlen(options->name) > 32) {
        return wrong_usage(parse->verb, "a watch's name has 32 letters at most: %s", options->name);
    }
    if (!options->files.directory && parse->urls.count == 0) {
        options->files.directory = "jdperf.watch";
    }
    if (parse->labels.failed || parse->urls.failed || parse->headers.failed) {
        failed_to(-ENOMEM, "start");
        return STATUS_FAILED;
    }
    options->jvm.labels = list_of(&parse->labels);
    options->push.urls = list_of(&parse->urls);
    options->push.headers = list_of(&parse->headers);
    if (parse->pid_count) {
        options->pids = parse->pids;
    }
    choose_formats(parse);
    return STATUS_DONE;
}

static struct parse *new_parse(const struct verb *verb)
{
    struct parse *parse = calloc(1, sizeof *parse);
    if (!parse) {
        failed_to(-ENOMEM, "start");
        return NULL;
    }
    parse->verb = verb;
    parse->options = (struct watch_options){
        .name = "",
        .cpu_max = CPU_MAX,
        .user_cpu_max = USER_CPU_MAX,
        .all_cpu_max = ALL_CPU_MAX,
        .memory_max = MEMORY_MAX,
        .jvm =
            {
                .service_from = LABELS_SERVICE_FROM,
                .slice = SLICE,
                .frequency = FREQUENCY,
                .stack_size = STACK_SIZE,
                .agent_options = "",
            },
        .files = {.keep_seconds = 86400},
        .push = {.spool = SPOOL},
    };
    return parse;
}

static void free_parse(struct parse *parse)
{
    if (parse) {
        words_free(&parse->labels);
        words_free(&parse->urls);
        words_free(&parse->headers);
        words_free(&parse->matches);
    }
    free(parse);
}

static int run_watch(const struct verb *verb, int argc, char **argv)
{
    struct parse *parse = new_parse(verb);
    int status = parse ? verb_options(verb, argc, argv, watch_options_table, parse) : STATUS_FAILED;
    status = status ? status : take_environment(parse);
    status = status ? status : check_together(parse, argc, argv);
    if (!status && parse->status) {
        status = doors_ask(parse->options.name) ? STATUS_FAILED : finish_output();
    } else if (!status) {
        warn_of_open_secrets(parse);
        status = watch(&parse->options);
    }
    free_parse(parse);
    return status;
}

const struct verb live_watch = {
    .name = "watch",
    .run = run_watch,
    .hint = " (jdperf watch --help lists them)",
    .help =
        "usage: jdperf watch [OPTION…]\n"
        "       jdperf watch --status\n"
        "\n"
        "Profiles the JVMs of this machine continuously: running ones, later ones, and\n"
        "those in containers, as far as you have the rights (root: all). It writes or\n"
        "pushes a profile of each JVM at regular intervals. Only the agent runs in a JVM.\n"
        "Its session ends with the watch, even if that is killed.\n"
        "\n"
        "  -p, --pid PID       only these JVMs (may be repeated, or PID,PID)\n"
        "  -a, --all           all JVMs of the machine (the default)\n"
        "      --match NAME    JVMs whose main class or arguments contain NAME (may be repeated)\n"
        "      --slice TIME    length of a profile (default: 15s)\n"
        "  -F, --frequency HZ  samples per second and CPU (default: 49)\n"
        "  -e, --event EVENT   event to sample (default: cycles; cpu-clock if the machine\n"
        "                      has no counters)\n"
        "      --stack-size N  bytes of stack to copy (default: 65528)\n"
        "      --sampler KIND  own: one sampler for all JVMs; perf: one perf record, which\n"
        "                      restarts whenever a new JVM starts; auto (the default): own if\n"
        "                      you have the rights, else perf\n"
        "  -m, --mmap-pages SIZE  buffer per CPU (default: 2M; perf's own if you are not root)\n"
        "  -o DIR              write profiles as files, for go tool pprof and others;\n"
        "                      without --push the default is jdperf.watch\n"
        "      --keep TIME|SIZE  how long, or how much, to keep files (default: 24h)\n"
        "      --push URL|@FILE  push to a server (may be repeated): https, or\n"
        "                      pyroscope+http://HOST:4040, otlp+http://HOST:4318,\n"
        "                      parca+http://HOST:7070; @FILE: the lines of a file\n"
        "                      (default: $JDPERF_PUSH)\n"
        "      --header LINE|@FILE  add a header to each request; @FILE: the lines of a file\n"
        "      --ca FILE       certificates to trust (default: the system's)\n"
        "      --spool SIZE    memory for profiles that a server has not yet accepted\n"
        "                      (default: 64M); the oldest are dropped when it is full\n"
        "      --label NAME=VALUE  add a label to each profile, besides service_name,\n"
        "                      main_class, container, pod, unit, host, pid; an empty value\n"
        "                      removes one\n"
        "      --service-from LIST  where the service's name comes from, the first that exists:\n"
        "                      env (OTEL_SERVICE_NAME, which the JVM's user sets), unit,\n"
        "                      container (default: env,unit)\n"
        "      --threads       separate threads in files, Pyroscope and Parca, which then have\n"
        "                      a series per name (OpenTelemetry always separates them); with\n"
        "                      whole names, virtual threads and the program's labels\n"
        "      --listen [ADDRESS:]PORT  serve metrics for Prometheus at /metrics (ADDRESS:\n"
        "                      127.0.0.1)\n"
        "      --max-cpu PERCENT  limit per JVM, in percent of one CPU (default: 10); above it,\n"
        "                      jdperf takes fewer samples, and the JVM's profiles say so\n"
        "      --max-cpu-user PERCENT  the same limit for all JVMs of a user together\n"
        "                      (default: 100)\n"
        "      --max-cpu-all PERCENT  the same limit for all JVMs together (default: 100)\n"
        "      --max-memory SIZE  limit for all processes of the watch (default: 1G); above it,\n"
        "                      the watch forgets what it knows of the JVMs and reads it again\n"
        "  -d, --duration TIME  end after this time, such as 30s or 12h\n"
        "      --agent-options LIST  key=value,… for the agent\n"
        "      --status        show the state of the running watch\n"
        "      --name NAME     name of this watch, if you run several\n"
        "\n"
        "Exit status: 0 ended by you, 1 failed, 2 wrong usage.\n",
};

/* ---- The slicer ---- */

static int take_format(const struct verb *verb, void *context, const char *name)
{
    struct slicer_options *slicer = context;
    const struct export_format *format = export_format_of(name);
    if (!format || slicer->format_count == SLICE_FORMATS_MAX) {
        return wrong_usage(verb, "unknown format: %s", name);
    }
    slicer->formats[slicer->format_count++] = format;
    return STATUS_DONE;
}

static int run_watch_slicer(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option table[] = {
        OPTION_NUMBER("parent", 0, struct slicer_options, parent, INT_MAX, "no descriptor: "),
        OPTION_NUMBER("orders", 0, struct slicer_options, orders, INT_MAX, "no descriptor: "),
        OPTION_NUMBER("out", 0, struct slicer_options, out, INT_MAX, "no descriptor: "),
        OPTION_NUMBER("at-work", 0, struct slicer_options, at_work, INT_MAX, "no descriptor: "),
        OPTION_SECONDS("slice", 0, struct slicer_options, slice, SLICE_MAX, "no slice: "),
        OPTION_TAKE("format", 0, take_format),
        OPTION_FLAG("threads", 0, struct slicer_options, threads),
        OPTION_END,
    };
    struct slicer_options options = {.parent = -1, .orders = -1, .out = -1, .at_work = -1};
    int status = verb_options(verb, argc, argv, table, &options);
    if (!status && (options.parent < 0 || options.orders < 0 || options.out < 0 ||
                    options.at_work < 0 || !options.slice || options.format_count == 0)) {
        status = wrong_usage(verb, "jdperf watch starts this");
    }
    return status ? status : slicer(&options);
}

const struct verb live_watch_slicer = {
    .name = "watch-slicer",
    .run = run_watch_slicer,
    .help = "usage: jdtool live watch-slicer OPTION…\n"
            "\n"
            "What jdperf watch starts to have samples resolved: it reads them from its standard\n"
            "input.\n",
};
