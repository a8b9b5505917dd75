/* The command line of jdtool inject. */
#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/inject.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

static int parse_inline_mode(const char *text, enum inline_mode *mode)
{
    static const struct {
        const char *name;
        enum inline_mode mode;
    } modes[] = {{"auto", INLINE_EXPAND},
                 {"expand", INLINE_EXPAND},
                 {"dwarf", INLINE_DWARF},
                 {"off", INLINE_OFF}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, text) == 0) {
            *mode = modes[i].mode;
            return STATUS_DONE;
        }
    }
    return wrong_usage(&verb_inject, "--inline takes auto, expand, dwarf or off, not '%s'", text);
}

static int check_export(const char *word)
{
    char names[256];
    const char *file;
    if (export_choose(word, &file)) {
        return STATUS_DONE;
    }
    export_format_names(false, names, sizeof names);
    return wrong_usage(&verb_inject, "--export takes FORMAT[=FILE], not '%s' (%s)", word, names);
}

static int parse(int argc, char **argv, struct inject_options *options)
{
    static const struct option table[] = {
        {"input", required_argument, NULL, 'i'},
        {"output", required_argument, NULL, 'o'},
        {"dump", required_argument, NULL, 'd'},
        {"inline", required_argument, NULL, 'I'},
        {"inlined-suffix", required_argument, NULL, 'S'},
        {"interpreted-suffix", required_argument, NULL, 'T'},
        {"leaf", no_argument, NULL, 'l'},
        {"source-path", required_argument, NULL, 's'},
        {"buildid-dir", required_argument, NULL, 'b'},
        {"keep-all", no_argument, NULL, 'k'},
        {"keep-stacks", no_argument, NULL, 'K'},
        {"scorecard", required_argument, NULL, 'c'},
        {"processor-time", required_argument, NULL, 'P'},
        {"save", required_argument, NULL, 'V'},
        {"export", required_argument, NULL, 'E'},
        {"jfr", required_argument, NULL, 'J'},
        {"held", required_argument, NULL, 'D'},
        {"quiet", no_argument, NULL, 'q'},
        {0},
    };
    int letter;
    while ((letter = next_option(&verb_inject, argc, argv, "i:o:q", table)) != -1) {
        switch (letter) {
        case 'i':
            options->input = optarg;
            break;
        case 'o':
            options->output = optarg;
            break;
        case 'd':
            options->dumps[options->dump_count++] = optarg;
            break;
        case 'I':
            if (parse_inline_mode(optarg, &options->inline_mode)) {
                return STATUS_USAGE;
            }
            break;
        case 'S':
            options->inlined_suffix = optarg;
            break;
        case 'T':
            options->interpreted_suffix = optarg;
            break;
        case 'l':
            options->leaf = true;
            break;
        case 's':
            options->source_path = optarg;
            break;
        case 'b':
            options->build_id_dir = optarg;
            break;
        case 'k':
            options->keep_all = true;
            break;
        case 'K':
            options->keep_stacks = true;
            break;
        case 'c':
            options->scorecard = optarg;
            break;
        case 'P':
            options->processor_time = optarg;
            break;
        case 'V':
            options->save = optarg;
            break;
        case 'E':
            if (check_export(optarg)) {
                return STATUS_USAGE;
            }
            options->exports[options->export_count++] = optarg;
            break;
        case 'J':
            if (options->jfr.count == JFR_FILES_MAX) {
                return wrong_usage(&verb_inject, "--jfr can be given %d times", JFR_FILES_MAX);
            }
            options->jfr.list[options->jfr.count++] = optarg;
            break;
        case 'D':
            options->held = optarg;
            break;
        case 'q':
            options->quiet = true;
            break;
        default:
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        return wrong_usage(&verb_inject, "unexpected argument '%s'", argv[optind]);
    }
    if (!options->input || !options->output) {
        return wrong_usage(&verb_inject, "-i RECORDING and -o RESULT are needed");
    }
    if (strcmp(options->output, "-") == 0) {
        return wrong_usage(&verb_inject, "the result is a file, it cannot go to a pipe");
    }
    return STATUS_DONE;
}

static int work(void *options)
{
    return inject(options) ? STATUS_FAILED : finish_output();
}

/* In a process without rights. */
static int run_confined(struct inject_options *options)
{
    struct rights *rights = rights_new();
    if (!rights) {
        error_message("failed to inject: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    inject_rights(options, rights);
    int status = confined_run(&(struct confined_options){
        .rights = rights,
        .what = strcmp(options->input, "-") == 0 ? "the recording" : options->input,
        .cpu_seconds = strcmp(options->input, "-") == 0 ? 0 : CONFINED_SECONDS,
        .work = work,
        .context = options,
    });
    rights_free(rights);
    return status;
}

static int run_verb(int argc, char **argv)
{
    struct inject_options options = {.inlined_suffix = " (inlined)",
                                     .interpreted_suffix = " (interpreted)"};
    options.dumps = calloc((size_t)argc + 1, sizeof *options.dumps);
    options.exports = calloc((size_t)argc + 1, sizeof(char *));
    if (!options.dumps || !options.exports) {
        free(options.dumps);
        free((void *)options.exports);
        error_message("failed to inject: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    int status = parse(argc, argv, &options);
    if (status == STATUS_DONE) {
        status = run_confined(&options);
    }
    free(options.dumps);
    free((void *)options.exports);
    return status;
}

const struct verb verb_inject = {
    .name = "inject",
    .run = run_verb,
    .usage = "-i RECORDING -o RESULT [OPTIONS]",
    .help =
        "Names a recording's frames in generated code. Dumps are found as perf finds them; each\n"
        "JVM's code goes into one ELF file next to the result; inlined methods become frames.\n"
        "  -i, --input FILE          what perf record wrote; -: from a pipe (perf record -o -)\n"
        "  -o, --output FILE         the result, for perf report, script, annotate\n"
        "      --dump FILE           use this dump for its JVM (may be repeated)\n"
        "      --jfr FILE            also the events of a JVM's own recording (.jfr), for --save "
        "and\n"
        "                            --export (may be repeated)\n"
        "      --inline MODE         expand (default): put inlined methods into the call chains;\n"
        "                            dwarf: leave that to perf 7 and later; off\n"
        "      --inlined-suffix TEXT, --interpreted-suffix TEXT\n"
        "                            put behind such methods' names (default: ' (inlined)',\n"
        "                            ' (interpreted)')\n"
        "      --leaf                self time goes to the innermost inlined method\n"
        "      --source-path DIRS    where Java sources are, separated by ':', for perf annotate\n"
        "      --buildid-dir DIR     where perf record left copies of files (default: ~/.debug), "
        "for\n"
        "                            stacks of containers that have ended\n"
        "      --keep-all            all code of the dump, not only what samples touch\n"
        "      --keep-stacks         leave stack copies (--call-graph dwarf) as they are, for "
        "perf\n"
        "                            to unwind; default: each is unwound once, here\n"
        "      --scorecard FILE      how good the profile is, as JSON\n"
        "      --processor-time FILE     what the kernel accounted to the JVMs, as jdperf record "
        "leaves it\n"
        "                            in a profile: the samples are held against it\n"
        "      --save FILE           the samples with their names, for jdtool export, annotate, "
        "view\n"
        "      --export FORMAT[=FILE]  and in this format, in the same pass (see jdtool export; "
        "may be\n"
        "                            repeated); without FILE next to the result\n"
        "  -q, --quiet               do not print the scorecard\n",
};
