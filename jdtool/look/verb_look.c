/* The verbs of jdperf that show a profile: report, annotate, flame, timeline, export, view. */
#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/confined/confined.h"
#include "jdtool/exports/export.h"
#include "jdtool/live/child.h"
#include "jdtool/live/staging.h"
#include "jdtool/look/look.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- report ---- */

static int report(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {
        LOOK_FILTERS,
        {"lines", no_argument, NULL, LOOK_PASSES},
        {"threads", no_argument, NULL, LOOK_PASSES},
        {"callers", required_argument, NULL, LOOK_PASSES},
        {"callees", required_argument, NULL, LOOK_PASSES},
        {"limit", required_argument, NULL, LOOK_PASSES},
        {"json", no_argument, NULL, LOOK_PASSES},
        {0},
    };
    struct look look;
    int status = look_parse(&look, verb, argc, argv, "", options);
    if (!status && look.more_count) {
        status = live_wrong_usage(verb, "this option needs --perf: ", look.more[0], "");
    }
    status = status ? status : look_open_only(&look);
    if (!status) {
        opened_profile_tell_doubts(&look.profile);
        status = look_run(&look, &verb_report);
    }
    look_free(&look);
    return status;
}

const struct live_verb live_report = {
    .name = "report",
    .run = report,
    .hint = " (perf report's options need --perf)",
    .help =
        "usage: jdperf report [DIR] [OPTION…]\n"
        "       jdperf report --perf [DIR] [--lines] [--callers] [PERF-REPORT-OPTION…]\n"
        "\n"
        "Lists the hottest methods of the profile DIR (default: " PROFILE_DEFAULT_DIR "), a table\n"
        "for each event: the share of the method itself, the share including its callees,\n"
        "its hottest line, and how it ran. A method is one row, however often the JVM\n"
        "compiled it. The table is as wide as the terminal.\n"
        "\n"
        "      --lines         one row per source line\n"
        "      --threads       one row per thread\n"
        "      --callers METHOD  a tree of the callers of METHOD\n"
        "      --callees METHOD  a tree of the methods that METHOD calls\n"
        "      --limit N       rows per event (default: 40; 0: all)\n"
        "      --json          for scripts: every method with its lines and callers\n" //
    LOOK_FILTERS_HELP "\n"
        "      --perf          run perf report on the same profile: its browser in a\n"
        "                      terminal, else text. You can add perf report's options, such\n"
        "                      as --comm NAME, -g caller, --children, -s sym,srcline, "
        "--stdio\n",
};

/* ---- annotate ---- */

/* A bundle has the images that perf reads, not the dumps. */
static bool has_code(const struct opened_profile *profile)
{
    char pattern[64];
    glob_t found = {0};
    /* Its path may lead elsewhere by now. */
    snprintf(pattern, sizeof pattern, "/proc/self/fd/%d/jit-*.dump", profile->directory);
    bool has = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
    globfree(&found);
    return has || !opened_profile_has(profile, "perf.jit.data");
}

/* jdperf annotate --perf, with the same words. */
static int annotate_by_perf(int argc, char **argv)
{
    const char *jdperf = getenv("JDPERF_SELF");
    char **words = calloc((size_t)argc + 4, sizeof *words);
    if (!jdperf || !words) {
        error_message("failed to run perf annotate: use jdperf annotate --perf");
        free(words);
        return STATUS_FAILED;
    }
    info_message("this profile has no dumps: using perf annotate");
    words[0] = (char *)jdperf;
    words[1] = (char *)"annotate";
    words[2] = (char *)"--perf";
    memcpy(words + 3, argv + 1, ((size_t)argc - 1) * sizeof *words);
    execv(jdperf, words);
    error_message("failed to run %s", jdperf);
    free(words);
    return STATUS_FAILED;
}

static int annotate_words(struct look *look, const char **directory)
{
    *directory = look->word_count == 2 ? look->words[0] : PROFILE_DEFAULT_DIR;
    if (look->word_count == 1 && opened_profile_is_one(look->words[0])) {
        return live_wrong_usage(look->verb, "which method of ", look->words[0],
                                "? (jdperf annotate DIR METHOD)");
    }
    if (look->word_count < 1 || look->word_count > 2) {
        return live_wrong_usage(look->verb, "which method? (jdperf annotate DIR METHOD)", "", "");
    }
    return STATUS_DONE;
}

static int annotate(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {
        LOOK_FILTERS,
        {"source-path", required_argument, NULL, LOOK_SOURCES},
        {"no-source", no_argument, NULL, LOOK_PASSES},
        {"all", no_argument, NULL, LOOK_PASSES},
        {"whole", no_argument, NULL, LOOK_PASSES},
        {0},
    };
    struct look look;
    const char *directory = NULL;
    char **given = calloc((size_t)argc + 1, sizeof *given);
    if (given) {
        memcpy(given, argv, (size_t)argc * sizeof *given); /* getopt puts them in order */
    }
    int status = look_parse(&look, verb, argc, argv, "", options);
    status = status ? status : annotate_words(&look, &directory);
    status = status ? status : opened_profile_open(directory, &look.profile);
    if (!status && !has_code(&look.profile)) {
        status = given ? annotate_by_perf(argc, given) : STATUS_FAILED;
    } else if (!status && look.more_count) {
        status = live_wrong_usage(verb, "this option needs --perf: ", look.more[0], "");
    } else if (!status) {
        status = look_open(&look, directory);
        look_add(&look, look.words[look.word_count - 1], NULL);
        status = status ? status : look_run(&look, &verb_annotate);
    }
    free(given);
    look_free(&look);
    return status;
}

const struct live_verb live_annotate = {
    .name = "annotate",
    .run = annotate,
    .hint = " (options of perf annotate stand behind --)",
    .help = "usage: jdperf annotate [DIR] METHOD [OPTION…]\n"
            "       jdperf annotate --perf [DIR] METHOD [OPTION…] [-- PERF-ANNOTATE-OPTION…]\n"
            "\n"
            "Prints the machine code of a method with its Java source: the hottest method whose\n"
            "name is METHOD, else one whose name contains it. Each instruction has its share of\n"
            "the samples, one column per event; lines of inlined methods are indented. If the\n"
            "method was inlined everywhere, you see the code of its callers. Only instructions\n"
            "with samples and those around them are shown.\n"
            "\n"
            "      --whole         all instructions\n"
            "      --source-path DIRS  source directories, separated by ':' (package roots, as\n"
            "                      in DIR/java/util/HashMap.java). The JDK's sources come from\n"
            "                      its src.zip (Debian: openjdk-N-source, for JDK N)\n"
            "      --no-source     machine code only\n"
            "      --all           all code of that name, not only the hottest (the JVM\n"
            "                      compiles a method more than once)\n"
            "      --perf          use perf annotate, which also shows native code\n" //
    LOOK_FILTERS_HELP,
};

/* ---- flame ---- */

static int flame(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {
        LOOK_FILTERS,
        {"output", required_argument, NULL, LOOK_OUTPUT},
        {"title", required_argument, NULL, LOOK_PASSES},
        {0},
    };
    struct look look;
    const char *out;
    int status = look_parse(&look, verb, argc, argv, "o:", options);
    status = status ? status : look_open_only(&look);
    status = status ? status : look_export(&look, "html", "flamegraph.html", &out);
    if (!status) {
        info_message("flame graph: %s", out);
    }
    look_free(&look);
    return status;
}

const struct live_verb live_flame = {
    .name = "flame",
    .run = flame,
    .hint = "",
    .help = "usage: jdperf flame [DIR] [-o FILE] [--title TEXT] [OPTION…]\n"
            "\n"
            "Writes a flame graph of the profile DIR (default: " PROFILE_DEFAULT_DIR ") to\n"
            "DIR/flamegraph.html or FILE: one file for any browser, without network. Colours\n"
            "distinguish compiled, inlined, interpreted, native and kernel frames. Drag over\n"
            "the heat map to select a time range. The page has buttons for search, inverted\n"
            "stacks, and roots by thread or process.\n"
            "\n" //
    LOOK_FILTERS_HELP "\n"
            "To compare two profiles, use jdperf diff.\n",
};

/* ---- timeline ---- */

static int timeline(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {
        LOOK_FILTERS,
        {"output", required_argument, NULL, LOOK_OUTPUT},
        {"json", no_argument, NULL, LOOK_OWN},
        {0},
    };
    struct look look;
    const char *out;
    int status = look_parse(&look, verb, argc, argv, "o:", options);
    status = status ? status : look_open_only(&look);
    if (!status) {
        look.output = look.output ? look.output : "-";
        status = look_export(&look, look.flag ? "timeline-json" : "timeline", "", &out);
    }
    look_free(&look);
    return status;
}

const struct live_verb live_timeline = {
    .name = "timeline",
    .run = timeline,
    .hint = "",
    .help = "usage: jdperf timeline [DIR] [--json] [-o FILE] [OPTION…]\n"
            "\n"
            "Lists what the JVM did in the profile DIR (default: " PROFILE_DEFAULT_DIR
            "), which must be\n"
            "recorded with jdperf record --timeline: pauses and their causes, garbage\n"
            "collections, compilations, methods that were compiled repeatedly, deoptimisations\n"
            "by reason and method, threads, and how full the code cache was.\n"
            "\n"
            "  --json          every event, with times in ns on the recording's clock\n"
            "  -o FILE         write to FILE instead of standard output\n"
            "  --from TIME, --to TIME  a time range from the first sample: seconds, 300ms, 5m\n"
            "  --pid PID, --comm NAME  one process of several\n"
            "  --jfr FILE      also add the JVM's own recording of that time (.jfr)\n"
            "\n"
            "The page of jdperf flame shows the same above its heat map, and jdperf export DIR\n"
            "firefox has it as markers.\n",
};

/* ---- export ---- */

static int export_words(struct look *look, const struct export_format **format)
{
    char names[256];
    char after[320];
    export_format_names(false, names, sizeof names);
    snprintf(after, sizeof after, " (%s)", names);
    if (look->word_count < 1 || look->word_count > 2) {
        return live_wrong_usage(look->verb, "which format? (jdperf export DIR FORMAT: ", names,
                                ")");
    }
    *format = export_format_of(look->words[look->word_count - 1]);
    if (!*format || !(*format)->file) {
        return live_wrong_usage(look->verb, "unknown format: ", look->words[look->word_count - 1],
                                after);
    }
    return STATUS_DONE;
}

static int export(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {
        LOOK_FILTERS,
        {"output", required_argument, NULL, LOOK_OUTPUT},
        {"source-path", required_argument, NULL, LOOK_SOURCES},
        {0},
    };
    struct look look;
    const struct export_format *format = NULL;
    const char *out;
    int status = look_parse(&look, verb, argc, argv, "o:", options);
    status = status ? status : export_words(&look, &format);
    status = status ? status
                    : look_open(&look, look.word_count == 2 ? look.words[0] : PROFILE_DEFAULT_DIR);
    for (int i = 0; !status && i < look.more_count; i++) {
        look_add(&look, "%s", look.more[i]);
    }
    status = status ? status : look_export(&look, format->name, format->file, &out);
    if (!status && strcmp(out, "-") != 0) {
        info_message("%s: %s", format->name, out);
    }
    look_free(&look);
    return status;
}

const struct live_verb live_export = {
    .name = "export",
    .run = export,
    .hint = " (options of jdtool export stand behind --)",
    .help =
        "usage: jdperf export [DIR] FORMAT [-o FILE] [OPTION…] [-- JDTOOL-EXPORT-OPTION…]\n"
        "\n"
        "Writes the profile DIR (default: " PROFILE_DEFAULT_DIR ") as FORMAT, into DIR or to FILE\n"
        "(- is standard output):\n"
        "\n"
        "  html        flamegraph.html: the page of jdperf flame\n"
        "  pprof       profile.pb.gz: go tool pprof, Pyroscope, Parca, Cloud Profiler\n"
        "  firefox     profile.firefox.json.gz: https://profiler.firefox.com, Perfetto\n"
        "  jfr         profile.jfr: JDK Mission Control, IntelliJ, the JDK's jfr\n"
        "  speedscope  profile.speedscope.json: https://www.speedscope.app\n"
        "  collapsed   stacks.collapsed.txt: flamegraph.pl, inferno\n"
        "  otlp        profile.otlp.pb: OpenTelemetry, for POST to /v1development/profiles\n"
        "  otlp-json   profile.otlp.json\n"
        "\n"
        "      --source-path DIRS  Java source directories, for firefox\n"
        "      --jfr FILE      also add the JVM's own recording of that time (.jfr), as\n"
        "                      markers for firefox\n" //
    LOOK_FILTERS_HELP "\n"
        "Options of jdtool export follow --, such as -- --suffixes.\n",
};

/* ---- view ---- */

static int view(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {
        LOOK_FILTERS,
        {"front-end", required_argument, NULL, LOOK_PASSES},
        {"port", required_argument, NULL, LOOK_PASSES},
        {"idle", required_argument, NULL, LOOK_PASSES},
        {"source-path", required_argument, NULL, LOOK_SOURCES},
        {0},
    };
    struct look look;
    int status = look_parse(&look, verb, argc, argv, "", options);
    status = status ? status : look_open_only(&look);
    status = status ? status : look_run(&look, &verb_view);
    look_free(&look);
    return status;
}

const struct live_verb live_view = {
    .name = "view",
    .run = view,
    .hint = "",
    .help = "usage: jdperf view [DIR] [--front-end URL] [--port PORT] [OPTION…]\n"
            "\n"
            "Opens the profile DIR (default: " PROFILE_DEFAULT_DIR
            ") in the Firefox Profiler: threads\n"
            "over time, call tree, flame graph, Java source and machine code with their samples.\n"
            "It prints the address to open, and how to open it from another machine. It serves\n"
            "the profile until Ctrl-C, only on 127.0.0.1.\n"
            "\n"
            "      --front-end URL     a copy of the front end, if the browser cannot reach\n"
            "                      https://profiler.firefox.com (jdperf flame DIR needs no\n"
            "                      network at all)\n"
            "      --port PORT     port to listen on (default: any)\n"
            "      --idle TIME     end after this time without requests\n"
            "      --source-path DIRS  Java source directories, separated by ':'\n"
            "      --jfr FILE      also add the JVM's own recording of that time (.jfr)\n" //
    LOOK_FILTERS_HELP,
};

/* ---- For the verbs that are scripts ---- */

/* A place for the program's files, which goes away with it. */
static int make_scratch(const struct child_options *options, char path[PATH_MAX], int *place)
{
    const char *directory = getenv("TMPDIR");
    directory = directory && *directory ? directory : "/tmp";
    *place = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, PATH_MAX, "%s/jdperf.XXXXXXXX", directory);
    if (*place < 0 || !mkdtemp(path)) {
        error_message("failed to make a directory in %s: %s", directory, strerror(errno));
        return STATUS_FAILED;
    }
    (void)!(options->drop && lchown(path, options->uid, options->gid));
    setenv("TMPDIR", path, 1);
    setenv("JDPERF_SCRATCH", path, 1);
    return STATUS_DONE;
}

/* Its exit status. Ctrl-C is the terminal's to tell it. */
static int run_on(const struct child_options *options)
{
    struct waiting waiting;
    struct child child = NO_CHILD;
    int err = waiting_start(&waiting);
    err = err ? err : child_start(&child, options);
    while (!err && (err = child_wait(&child, &waiting, NO_DEADLINE, false)) == -EINTR) {
        if (waiting.ended_by != SIGINT && waiting.ended_by != SIGQUIT) {
            child_signal(&child, waiting.ended_by);
        }
        err = 0;
    }
    int status = child.status;
    child_end(&child);
    if (err) {
        error_message("failed to run %s: %s", options->arguments[0], strerror(-err));
    }
    return err ? STATUS_FAILED : status;
}

/* The program, which reaches a directory by an open descriptor. */
static struct child_options program_of(const struct look *look, const int *held)
{
    char number[16];
    snprintf(number, sizeof number, "%d", *held);
    setenv("JDPERF_HELD", number, 1);
    return (struct child_options){.arguments = look->more,
                                  .in = STDIN_FILENO,
                                  .out = STDOUT_FILENO,
                                  .err = STDERR_FILENO,
                                  .keep = held,
                                  .keep_count = 1,
                                  .death_signal = SIGTERM};
}

static int run_on_new(const struct look *look)
{
    int held = profiles_make(look->words[0]);
    struct child_options options = program_of(look, &held);
    return held < 0 ? STATUS_FAILED : run_on(&options);
}

static int run_on_opened(struct look *look)
{
    char scratch[PATH_MAX];
    opened_profile_tell_doubts(&look->profile);
    struct confined_program confined = {.what = look->profile.path, .place = -1};
    int place = -1;
    int held = fcntl(look->profile.directory, F_DUPFD_CLOEXEC, 10);
    struct child_options options = program_of(look, &held);
    options.prepare = getenv(TRUST_VARIABLE) ? NULL : confined_prepare;
    options.context = &confined;
    /* What root looks at for who called sudo is read as that user. */
    options.drop = output_caller(&options.uid, &options.gid) && look->profile.owner == options.uid;
    (void)prctl(PR_SET_KEEPCAPS, options.drop, 0, 0, 0);
    int status = make_scratch(&options, scratch, &place);
    if (!status) {
        confined.place = open(scratch, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        status = run_on(&options);
        (void)remove_tree(place, strrchr(scratch, '/') + 1);
        close(confined.place);
    }
    close(place);
    return status;
}

/* Looks a profile over, or makes a directory for some, and runs a program on it. */
static int profile(const struct live_verb *verb, int argc, char **argv)
{
    static const struct option options[] = {{"new", no_argument, NULL, LOOK_OWN}, {0}};
    struct look look;
    int status = look_parse(&look, verb, argc, argv, "", options);
    if (!status && (look.word_count != 1 || look.more_count == 0)) {
        status = live_wrong_usage(verb, "which profile, for which program?", "", "");
    }
    if (!status && look.flag) {
        status = run_on_new(&look);
    } else if (!status) {
        status = look_open_data(&look, look.words[0]);
        status = status ? status : run_on_opened(&look);
    }
    look_free(&look);
    return status;
}

const struct live_verb live_profile = {
    .name = "profile",
    .run = profile,
    .hint = "",
    .help =
        "usage: jdtool live profile [--new] DIR -- PROGRAM…\n"
        "\n"
        "Runs a program on a profile that it has looked over: nothing in it leads out of it,\n"
        "and as root it is one's own. JDPERF_HELD is the number of its descriptor. Unless the\n"
        "profile is trusted, the program may change nothing but what is in JDPERF_SCRATCH. For\n"
        "jdperf's scripts.\n"
        "\n"
        "      --new           DIR is a new directory, for profiles\n",
};
