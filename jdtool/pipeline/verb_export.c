/* jdtool export: a profile in other formats. */
#include "jdtool/base/message.h"
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/resolve/source_texts.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

struct export_arguments {
    struct export_input input;
    struct export_order order;
    bool has_format, no_source;
};

static int choose_format(struct export_arguments *arguments, const char *name)
{
    char names[256];
    arguments->order.format = export_format_of(name);
    arguments->has_format = true;
    if (arguments->order.format || strcmp(name, "saved") == 0) {
        return STATUS_DONE;
    }
    export_format_names(true, names, sizeof names);
    return wrong_usage(&verb_export, "unknown format '%s' (%s, saved)", name, names);
}

static int parse(int argc, char **argv, struct export_arguments *arguments)
{
    static const struct option table[] = {
        EXPORT_INPUT_OPTIONS,
        {"output", required_argument, NULL, 'o'},
        {"format", required_argument, NULL, 'f'},
        {"service", required_argument, NULL, 'v'},
        {"suffixes", no_argument, NULL, 'S'},
        {"weights", no_argument, NULL, 'w'},
        {"no-source", no_argument, NULL, 'n'},
        {0},
    };
    int letter;
    int status = STATUS_DONE;
    while (status == STATUS_DONE &&
           (letter = next_option(&verb_export, argc, argv, EXPORT_INPUT_LETTERS "o:f:", table)) !=
               -1) {
        switch (letter) {
        case 'o':
            arguments->order.settings.path = optarg;
            break;
        case 'f':
            status = choose_format(arguments, optarg);
            break;
        case 'v':
            arguments->order.settings.service = optarg;
            break;
        case 'S':
            arguments->order.settings.suffixes = true;
            break;
        case 'w':
            arguments->order.settings.weights = true;
            break;
        case 'n':
            arguments->no_source = true;
            break;
        default:
            status = export_input_option(&verb_export, &arguments->input, letter, optarg);
        }
    }
    if (status != STATUS_DONE) {
        return status;
    }
    if (optind < argc) {
        return wrong_usage(&verb_export, "unexpected argument '%s'", argv[optind]);
    }
    if (!arguments->input.input || !arguments->order.settings.path || !arguments->has_format) {
        return wrong_usage(&verb_export, "-i RECORDING, --format FORMAT and -o RESULT are needed");
    }
    return STATUS_DONE;
}

static int export_all(struct export_arguments *arguments)
{
    struct sample_sink *sink;
    int err = 0;
    if (!arguments->no_source) {
        err = source_texts_open(arguments->input.source_path, &arguments->order.settings.sources);
    }
    if (!err) {
        err = export_sink_new(&arguments->order, 1, &sink);
    }
    if (!err) {
        err = export_input_run(&arguments->input, sink);
    }
    source_texts_close(arguments->order.settings.sources);
    return err;
}

static int run_verb(int argc, char **argv)
{
    struct export_arguments arguments = {0};
    int status = parse(argc, argv, &arguments);
    if (status == STATUS_DONE) {
        status = export_all(&arguments) ? STATUS_FAILED : finish_output();
    }
    export_input_free(&arguments.input);
    return status;
}

const struct verb verb_export = {
    .name = "export",
    .run = run_verb,
    .usage = "-i RECORDING|DIR --format FORMAT -o RESULT [OPTIONS]",
    .help = "Writes a profile in another format, for other viewers and for servers:\n"
            "  pprof       for go tool pprof, Pyroscope, Parca and others (.pb.gz)\n"
            "  firefox     for https://profiler.firefox.com and Perfetto\n"
            "  speedscope  for https://www.speedscope.app\n"
            "  collapsed   a line a stack, for flamegraph.pl, inferno and others\n"
            "  otlp        OpenTelemetry's profiles; otlp-json: as JSON\n"
            "  report      methods, lines and callers as JSON, for scripts\n"
            "  regions     code by instruction as JSON, for those who print it\n"
            "  flame       what jdperf flame makes its page of\n"
            "  timeline    what the JVM itself did (jdperf timeline); timeline-json: as JSON\n"
            "  saved       samples with names, of which all this can be made again: -i takes them\n"
            "  -o, --output FILE         the result; - is standard output. gzipped if it ends in\n"
            "                            .gz; pprof and saved always are\n"
            "  -f, --format FORMAT       one of the above\n"
            "      --service NAME        otlp: service.name (default: the process' name)\n"
            "      --suffixes            collapsed: FlameGraph's _[j], _[i], _[0], _[1], _[k]\n"
            "      --weights             collapsed: weights (ns, bytes), not numbers of samples\n"
            "      --no-source           firefox: do not put Java sources into the file\n" //
    EXPORT_INPUT_HELP,
};
