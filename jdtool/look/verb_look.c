/* The verbs of jdperf that show a profile: report, annotate, flame, timeline, export, view. */
#include "jdtool/base/message.h"
#include "jdtool/exports/export.h"
#include "jdtool/look/look.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

/* ---- report ---- */

/* Further options are perf's, then, which only perf knows. */
static bool wants_perf(char *const *words)
{
    while (*words && strcmp(*words, "--") != 0 && strcmp(*words, "--perf") != 0) {
        words++;
    }
    return *words && strcmp(*words, "--perf") == 0;
}

static int report(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        LOOK_FILTERS,
        LOOK_PASS("lines"),
        LOOK_PASS("threads"),
        LOOK_PASS_VALUE("callers"),
        LOOK_PASS_VALUE("callees"),
        LOOK_PASS_VALUE("limit"),
        LOOK_PASS("json"),
        OPTION_END,
    };
    struct look look;
    if (wants_perf(argv)) {
        return report_by_perf(verb, argv);
    }
    int status = look_parse(&look, verb, argc, argv, options);
    if (!status && look.more_count) {
        status = wrong_usage(verb, "this option needs --perf: %s", look.more[0]);
    }
    status = status ? status : look_open_only(&look);
    if (!status) {
        opened_profile_tell_doubts(&look.profile);
        status = look_run(&look, &verb_report);
    }
    look_free(&look);
    return status;
}

const struct verb live_report = {
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
        "      --threads       one row per thread; --by alone: one per group\n"
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

static int annotate_words(struct look *look, const char **directory)
{
    *directory = look->word_count == 2 ? look->words[0] : PROFILE_DEFAULT_DIR;
    if (look->word_count == 1 && opened_profile_is_one(look->words[0])) {
        return wrong_usage(look->verb, "which method of %s? (jdperf annotate DIR METHOD)",
                           look->words[0]);
    }
    if (look->word_count < 1 || look->word_count > 2) {
        return wrong_usage(look->verb, "which method? (jdperf annotate DIR METHOD)");
    }
    return STATUS_DONE;
}

static int annotate(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        LOOK_FILTERS,     LOOK_SOURCE_PATH,   LOOK_PASS("no-source"),
        LOOK_PASS("all"), LOOK_PASS("whole"), OPTION_FLAG("perf", 0, struct look, flag),
        OPTION_END,
    };
    struct look look;
    const char *directory = NULL;
    int status = look_parse(&look, verb, argc, argv, options);
    status = status ? status : annotate_words(&look, &directory);
    const char *method = status ? NULL : look.words[look.word_count - 1];
    if (!status && !look.flag) {
        status = opened_profile_open(directory, &look.profile);
        look.flag = !status && !has_code(&look.profile);
        if (look.flag) {
            info_message("this profile has no dumps: using perf annotate");
        }
        opened_profile_close(&look.profile);
    }
    if (!status && look.flag) {
        status = annotate_by_perf(&look, directory, method);
    } else if (!status && look.more_count) {
        status = wrong_usage(verb, "this option needs --perf: %s", look.more[0]);
    } else if (!status) {
        status = look_open(&look, directory);
        WORDS_ADD(&look.arguments, method);
        status = status ? status : look_run(&look, &verb_annotate);
    }
    look_free(&look);
    return status;
}

const struct verb live_annotate = {
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

static int flame(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        LOOK_FILTERS,
        LOOK_OUTPUT,
        LOOK_PASS_VALUE("title"),
        OPTION_END,
    };
    struct look look;
    const char *out;
    int status = look_parse(&look, verb, argc, argv, options);
    status = status ? status : look_open_only(&look);
    status = status ? status : look_export(&look, "html", "flamegraph.html", &out);
    if (!status) {
        info_message("flame graph: %s", out);
    }
    look_free(&look);
    return status;
}

const struct verb live_flame = {
    .name = "flame",
    .run = flame,
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

static int timeline(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        LOOK_FILTERS,
        LOOK_OUTPUT,
        OPTION_FLAG("json", 0, struct look, flag),
        OPTION_END,
    };
    struct look look;
    const char *out;
    int status = look_parse(&look, verb, argc, argv, options);
    status = status ? status : look_open_only(&look);
    if (!status) {
        look.output = look.output ? look.output : "-";
        status = look_export(&look, look.flag ? "timeline-json" : "timeline", "", &out);
    }
    look_free(&look);
    return status;
}

const struct verb live_timeline = {
    .name = "timeline",
    .run = timeline,
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
        return wrong_usage(look->verb, "which format? (jdperf export DIR FORMAT: %s)", names);
    }
    if (look->word_count == 2 && !export_format_of(look->words[1]) &&
        export_format_of(look->words[0])) { /* in whichever order it was typed */
        char *directory = look->words[1];
        look->words[1] = look->words[0];
        look->words[0] = directory;
    }
    *format = export_format_of(look->words[look->word_count - 1]);
    if (!*format || !(*format)->file) {
        return wrong_usage(look->verb, "unknown format: %s%s", look->words[look->word_count - 1],
                           after);
    }
    return STATUS_DONE;
}

static int export(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        LOOK_FILTERS,
        LOOK_OUTPUT,
        LOOK_SOURCE_PATH,
        OPTION_END,
    };
    struct look look;
    const struct export_format *format = NULL;
    const char *out;
    int status = look_parse(&look, verb, argc, argv, options);
    status = status ? status : export_words(&look, &format);
    status = status ? status
                    : look_open(&look, look.word_count == 2 ? look.words[0] : PROFILE_DEFAULT_DIR);
    words_add_list(&look.arguments, (const char *const *)look.more);
    status = status ? status : look_export(&look, format->name, format->file, &out);
    if (!status && strcmp(out, "-") != 0) {
        info_message("%s: %s", format->name, out);
    }
    look_free(&look);
    return status;
}

const struct verb live_export = {
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

static int view(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option options[] = {
        LOOK_FILTERS,
        LOOK_PASS_VALUE("front-end"),
        LOOK_PASS_VALUE("port"),
        LOOK_PASS_VALUE("idle"),
        LOOK_SOURCE_PATH,
        OPTION_END,
    };
    struct look look;
    int status = look_parse(&look, verb, argc, argv, options);
    status = status ? status : look_open_only(&look);
    status = status ? status : look_run(&look, &verb_view);
    look_free(&look);
    return status;
}

const struct verb live_view = {
    .name = "view",
    .run = view,
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
