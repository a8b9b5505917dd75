/* The command lines of jdperf watch, and of the process that it starts for each JVM. */
#include "jdtool/base/message.h"
#include "jdtool/live/verbs.h"
#include "jdtool/watch/doors.h"
#include "jdtool/watch/watch.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORDS_MAX = 64, HEADER_MAX = 8192, HEADERS_MAX = 32 };

/* 49 Hz is no divisor of what programs do in even milliseconds. */
enum { FREQUENCY = 49, SLICE = 15, SLICE_MAX = 3600, STACK_SIZE = 65528, CPU_MAX = 10 };
#define MEMORY_MAX (UINT64_C(256) << 20)
#define SPOOL      (UINT64_C(64) << 20)

static const struct option options_table[] = {
    {"pid", required_argument, NULL, 'p'},
    {"all", no_argument, NULL, 'a'},
    {"match", required_argument, NULL, 'M'},
    {"slice", required_argument, NULL, 's'},
    {"frequency", required_argument, NULL, 'F'},
    {"event", required_argument, NULL, 'e'},
    {"stack-size", required_argument, NULL, 'S'},
    {"mmap-pages", required_argument, NULL, 'm'},
    {"output", required_argument, NULL, 'o'},
    {"keep", required_argument, NULL, 'k'},
    {"push", required_argument, NULL, 'P'},
    {"header", required_argument, NULL, 'H'},
    {"ca", required_argument, NULL, 'C'},
    {"spool", required_argument, NULL, 'O'},
    {"label", required_argument, NULL, 'l'},
    {"threads", no_argument, NULL, 't'},
    {"listen", required_argument, NULL, 'L'},
    {"status", no_argument, NULL, 'T'},
    {"name", required_argument, NULL, 'n'},
    {"duration", required_argument, NULL, 'd'},
    {"max-cpu", required_argument, NULL, 'c'},
    {"max-memory", required_argument, NULL, 'r'},
    {"agent-options", required_argument, NULL, 'A'},
    {0},
};

struct parse {
    const struct live_verb *verb;
    struct watch_options options;
    int pids[WATCHED_MAX + 1];
    size_t pid_count, label_count, url_count, header_count;
    const char *labels[LABELS_MAX + 1];
    const char *urls[WORDS_MAX + 1];
    const char *headers[HEADERS_MAX + 1];
    char *header_lines[HEADERS_MAX]; /* read from files */
    size_t header_line_count;
    bool all, status;
};

/* ---- Values ---- */

static int wrong(const struct parse *parse, const char *what, const char *value)
{
    return live_wrong_usage(parse->verb, what, value, "");
}

static int take_number(const struct parse *parse, const char *what, const char *text, uint64_t most,
                       unsigned *number)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || value == 0 || value > most) {
        return wrong(parse, what, text);
    }
    *number = (unsigned)value;
    return STATUS_DONE;
}

/* "64M": bytes; false: it is none. */
static bool parse_size(const char *text, uint64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (!isdigit((unsigned char)*text) || (*end && (!unit || end[1])) || value == 0 ||
        value > (UINT64_MAX >> 1 >> shift)) {
        return false;
    }
    *bytes = (uint64_t)value << shift;
    return true;
}

static int take_size(const struct parse *parse, const char *what, const char *text, uint64_t *bytes)
{
    return parse_size(text, bytes) ? STATUS_DONE : wrong(parse, what, text);
}

/* "24h", "90m", "7d", or a size. */
static int take_keep(struct parse *parse, const char *text)
{
    static const char units[] = "smhd";
    static const uint64_t seconds[] = {1, 60, 3600, 86400};
    struct slice_files_options *files = &parse->options.files;
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (isdigit((unsigned char)*text) && unit && !end[1] && value > 0 && value < 1000000) {
        files->keep_seconds = value * seconds[unit - units];
        files->keep_bytes = 0;
        return STATUS_DONE;
    }
    files->keep_seconds = 0;
    return take_size(parse, "keep a time as 24h or a size as 2G, not ", text, &files->keep_bytes);
}

static int take_pids(struct parse *parse, const char *text)
{
    for (const char *at = text; *at; at += *at == ',') {
        char *end;
        long pid = strtol(at, &end, 10);
        if (end == at || (*end && *end != ',') || pid <= 0 || pid > INT_MAX) {
            return wrong(parse, "-p wants process numbers, not ", text);
        }
        if (parse->pid_count == WATCHED_MAX) {
            return wrong(parse, "too many processes: ", text);
        }
        parse->pids[parse->pid_count++] = (int)pid;
        at = end;
    }
    return STATUS_DONE;
}

static int take_label(struct parse *parse, const char *text)
{
    if (!label_is_valid(text)) {
        return wrong(parse, "a label is NAME=VALUE, its name of letters, digits and _, not ", text);
    }
    if (parse->label_count == LABELS_MAX) {
        return wrong(parse, "too many labels: ", text);
    }
    parse->labels[parse->label_count++] = text;
    return STATUS_DONE;
}

static int take_url(struct parse *parse, const char *text)
{
    if (!push_protocol_of(text)) {
        return wrong(parse,
                     "--push wants pyroscope+http(s)://HOST…, otlp+http(s)://… or "
                     "parca+http(s)://…, not ",
                     text);
    }
    if (parse->url_count == WORDS_MAX) {
        return wrong(parse, "too many servers: ", text);
    }
    parse->urls[parse->url_count++] = text;
    return STATUS_DONE;
}

/* Lines of a file, so that a token is in no command line. */
static int read_headers(struct parse *parse, const char *path)
{
    char text[HEADER_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (n < 0) {
        error_message("failed to read %s: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    char *rest = text;
    char *line;
    while (n > 0 && (line = strsep(&rest, "\r\n"))) {
        char *copy = *line && parse->header_count < HEADERS_MAX ? strdup(line) : NULL;
        if (copy) {
            parse->header_lines[parse->header_line_count++] = copy;
            parse->headers[parse->header_count++] = copy;
        }
    }
    return n < 0 ? STATUS_FAILED : STATUS_DONE;
}

static int take_header(struct parse *parse, const char *text)
{
    if (*text == '@') {
        return read_headers(parse, text + 1);
    }
    if (!strchr(text, ':') || strpbrk(text, "\r\n") || parse->header_count == HEADERS_MAX) {
        return wrong(parse, "a header is 'NAME: VALUE', or @FILE with such lines, not ", text);
    }
    parse->headers[parse->header_count++] = text;
    return STATUS_DONE;
}

static int take_stack_size(struct parse *parse, const char *text)
{
    static const char what[] = "the stack size must be a multiple of 8 up to 65528: ";
    unsigned *size = &parse->options.jvm.stack_size;
    int status = take_number(parse, what, text, 65528, size);
    return status || *size % 8 == 0 ? status : wrong(parse, what, text);
}

static int take_format(struct parse *parse, const char *text)
{
    struct watch_jvm_options *jvm = &parse->options.jvm;
    const struct export_format *format = export_format_of(text);
    if (!format || jvm->format_count == SLICE_FORMATS_MAX) {
        return wrong(parse, "unknown format: ", text);
    }
    jvm->formats[jvm->format_count++] = format;
    return STATUS_DONE;
}

/* ---- Options ---- */

static int take_profile_option(struct parse *parse, int letter)
{
    struct watch_jvm_options *jvm = &parse->options.jvm;
    switch (letter) {
    case 's':
        return take_number(parse, "a slice is a number of seconds up to 3600: ", optarg, SLICE_MAX,
                           &jvm->slice);
    case 'F':
        return take_number(parse, "frequency must be a number up to 10000: ", optarg, 10000,
                           &jvm->frequency);
    case 'e':
        jvm->event = optarg;
        return STATUS_DONE;
    case 'S':
        return take_stack_size(parse, optarg);
    case 'm':
        jvm->buffer = optarg;
        return STATUS_DONE;
    case 'c':
        return take_number(parse, "a share of a processor is a number of percent: ", optarg, 10000,
                           &jvm->cpu_max);
    case 'r':
        return take_size(parse, "memory is a size as 256M, not ", optarg, &jvm->memory_max);
    case 'A':
        jvm->agent_options = optarg;
        return STATUS_DONE;
    case 't':
        jvm->threads = true;
        return STATUS_DONE;
    case 'l':
        return take_label(parse, optarg);
    default:
        return STATUS_USAGE;
    }
}

static int take_option(struct parse *parse, int letter)
{
    struct watch_options *options = &parse->options;
    uint64_t bytes;
    int status;
    switch (letter) {
    case 'p':
        return take_pids(parse, optarg);
    case 'a':
        parse->all = true;
        return STATUS_DONE;
    case 'M':
        options->match = optarg;
        return STATUS_DONE;
    case 'o':
        options->files.directory = optarg;
        return STATUS_DONE;
    case 'k':
        return take_keep(parse, optarg);
    case 'P':
        return take_url(parse, optarg);
    case 'H':
        return take_header(parse, optarg);
    case 'C':
        options->push.ca = optarg;
        return STATUS_DONE;
    case 'O':
        status = take_size(parse, "a spool is a size as 64M, not ", optarg, &bytes);
        options->push.spool = status ? 0 : (size_t)bytes;
        return status;
    case 'L':
        options->listen = optarg;
        return STATUS_DONE;
    case 'T':
        parse->status = true;
        return STATUS_DONE;
    case 'n':
        options->name = optarg;
        return STATUS_DONE;
    case 'd':
        return take_number(parse, "duration must be a number of seconds: ", optarg, INT_MAX,
                           &options->duration);
    default:
        return take_profile_option(parse, letter);
    }
}

/* Which exports the destinations want. */
static void choose_formats(struct parse *parse)
{
    struct watch_options *options = &parse->options;
    bool pprof = options->files.directory != NULL;
    bool otlp = false;
    for (size_t i = 0; i < parse->url_count; i++) {
        const char *format = push_protocol_of(parse->urls[i])->format;
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

static int check_together(struct parse *parse, int argc, char **argv)
{
    struct watch_options *options = &parse->options;
    if (optind < argc) {
        return live_wrong_usage(parse->verb, "unexpected word: ", argv[optind], parse->verb->hint);
    }
    if (parse->pid_count && (parse->all || options->match)) {
        return live_wrong_usage(parse->verb, "-p stands alone, without -a or --match", "", "");
    }
    for (const char *at = options->name; *at; at++) {
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at)) {
            return wrong(parse, "a watch's name has letters, digits, - _ . alone, not ",
                         options->name);
        }
    }
    if (strlen(options->name) > 32) {
        return wrong(parse, "a watch's name has 32 letters at most: ", options->name);
    }
    if (!options->files.directory && parse->url_count == 0) {
        options->files.directory = "jdperf.watch";
    }
    if (parse->pid_count) {
        options->pids = parse->pids;
    }
    choose_formats(parse);
    return STATUS_DONE;
}

static struct parse *new_parse(const struct live_verb *verb)
{
    struct parse *parse = calloc(1, sizeof *parse);
    if (!parse) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return NULL;
    }
    parse->verb = verb;
    parse->options = (struct watch_options){
        .name = "",
        .jvm =
            {
                .slice = SLICE,
                .frequency = FREQUENCY,
                .stack_size = STACK_SIZE,
                .cpu_max = CPU_MAX,
                .memory_max = MEMORY_MAX,
                .agent_options = "",
                .out = -1,
                .labels = parse->labels,
            },
        .files = {.keep_seconds = 86400},
        .push = {.urls = parse->urls, .headers = parse->headers, .spool = SPOOL},
    };
    return parse;
}

static void free_parse(struct parse *parse)
{
    for (size_t i = 0; parse && i < parse->header_line_count; i++) {
        free(parse->header_lines[i]);
    }
    free(parse);
}

static int run_watch(const struct live_verb *verb, int argc, char **argv)
{
    struct parse *parse = new_parse(verb);
    int status = parse ? STATUS_DONE : STATUS_FAILED;
    int letter;
    while (!status &&
           (letter = live_option(verb, argc, argv, "p:aF:e:m:o:d:", options_table)) != -1) {
        status = take_option(parse, letter);
    }
    status = status ? status : check_together(parse, argc, argv);
    if (!status && parse->status) {
        status = doors_ask(parse->options.name) ? STATUS_FAILED : finish_output();
    } else if (!status) {
        status = watch(&parse->options);
    }
    free_parse(parse);
    return status;
}

const struct live_verb live_watch = {
    .name = "watch",
    .run = run_watch,
    .hint = " (jdperf watch --help lists them)",
    .help = "usage: jdperf watch [OPTION…]\n"
            "       jdperf watch --status\n"
            "\n"
            "Profiles the JVMs of this machine for as long as it runs: those that run, those\n"
            "that start later, and those in containers, as far as you may (root: all). Each\n"
            "JVM's profile is written, or pushed to servers, every slice. Nothing runs in a\n"
            "JVM but the agent, which writes down what code there is; the session ends with\n"
            "the watch, however that ends.\n"
            "\n"
            "  -p, --pid PID       these JVMs alone (may be repeated, or PID,PID)\n"
            "  -a, --all           all of the machine (the default)\n"
            "      --match NAME    those whose main class or arguments contain it\n"
            "      --slice SECONDS how long a profile is (default: 15)\n"
            "  -F, --frequency HZ  samples a second and processor (default: 49)\n"
            "  -e, --event EVENT   what to sample on (default: cycles; cpu-clock where the\n"
            "                      machine has no counters)\n"
            "      --stack-size N  bytes of stack copied (default: 65528)\n"
            "  -m, --mmap-pages SIZE  perf's buffer for each processor (default: 2M for root,\n"
            "                      else perf's own)\n"
            "  -o DIR              profiles as files for go tool pprof and others; without\n"
            "                      --push the default is jdperf.watch\n"
            "      --keep TIME|SIZE  how long, or how much, files are kept (default: 24h)\n"
            "      --push URL      to a server (may be repeated): pyroscope+http://HOST:4040,\n"
            "                      otlp+http://HOST:4318, parca+http://HOST:7070, or https\n"
            "      --header LINE|@FILE  for each request; @FILE: the lines of a file\n"
            "      --ca FILE       certificates to trust (default: the system's)\n"
            "      --spool SIZE    memory for what a server has not taken yet (default: 64M);\n"
            "                      the oldest profiles go when it is full\n"
            "      --label NAME=VALUE  said of each profile, beside service_name, main_class,\n"
            "                      container, pod, unit, host, pid; an empty value removes one\n"
            "      --threads       keep threads apart in files, Pyroscope and Parca, which make\n"
            "                      a series of each name (OpenTelemetry has them always); with\n"
            "                      whole names, virtual threads, and the program's labels\n"
            "      --listen [ADDRESS:]PORT  metrics for Prometheus at /metrics (ADDRESS:\n"
            "                      127.0.0.1)\n"
            "      --max-cpu PERCENT  of one processor, for each JVM: it is not sampled for the\n"
            "                      rest of the time when that is used up (default: 10)\n"
            "      --max-memory SIZE  of ours for each JVM: its part is started anew beyond it\n"
            "                      (default: 256M)\n"
            "  -d, --duration SECONDS  ends by itself\n"
            "      --agent-options LIST  key=value,… for the agent\n"
            "      --status        tells how the watch that runs stands\n"
            "      --name NAME     of this watch, where a user has several\n"
            "\n"
            "Exit status: 0 when it was ended, 1 failed, 2 wrong usage.\n",
};

/* ---- The process for one JVM ---- */

static int take_inner_option(struct parse *parse, int letter)
{
    unsigned number = 0;
    int status;
    switch (letter) {
    case 'p':
        parse->options.jvm.jvm = optarg;
        return STATUS_DONE;
    case 'o':
        status = take_number(parse, "no descriptor: ", optarg, INT_MAX, &number);
        parse->options.jvm.out = (int)number;
        return status;
    case 'f':
        return take_format(parse, optarg);
    default:
        return take_profile_option(parse, letter);
    }
}

static int run_watch_jvm(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option table[] = {
        {"pid", required_argument, NULL, 'p'},
        {"out", required_argument, NULL, 'o'},
        {"format", required_argument, NULL, 'f'},
        {"slice", required_argument, NULL, 's'},
        {"frequency", required_argument, NULL, 'F'},
        {"event", required_argument, NULL, 'e'},
        {"stack-size", required_argument, NULL, 'S'},
        {"mmap-pages", required_argument, NULL, 'm'},
        {"label", required_argument, NULL, 'l'},
        {"threads", no_argument, NULL, 't'},
        {"max-cpu", required_argument, NULL, 'c'},
        {"max-memory", required_argument, NULL, 'r'},
        {"agent-options", required_argument, NULL, 'A'},
        {0},
    };
    struct parse *parse = new_parse(verb);
    int status = parse ? STATUS_DONE : STATUS_FAILED;
    int letter;
    while (!status && (letter = live_option(verb, argc, argv, "", table)) != -1) {
        status = take_inner_option(parse, letter);
    }
    const struct watch_jvm_options *jvm = parse ? &parse->options.jvm : NULL;
    if (!status && (!jvm->jvm || jvm->out < 0 || jvm->format_count == 0)) {
        status = live_wrong_usage(verb, "jdperf watch starts this", "", "");
    }
    if (!status) {
        /* perf and the guardian must not hold it open. */
        fcntl(jvm->out, F_SETFD, FD_CLOEXEC);
        status = watch_jvm(jvm);
    }
    free_parse(parse);
    return status;
}

const struct live_verb live_watch_jvm = {
    .name = "watch-jvm",
    .run = run_watch_jvm,
    .hint = "",
    .help = "usage: jdtool live watch-jvm OPTION…\n"
            "\n"
            "What jdperf watch starts for each JVM: it hands its slices over through a pipe.\n",
};
