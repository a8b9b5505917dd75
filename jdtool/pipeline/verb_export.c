/* jdtool export: a profile in other formats. */
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/export_input.h"

#include <stdlib.h>
#include <string.h>

struct export_arguments {
    struct export_input input;
    struct export_order order;
    const char *before; /* a profile that the other is compared with */
    bool has_format, no_source;
};

static int take_format(const struct verb *verb, void *context, const char *name)
{
    struct export_arguments *arguments = context;
    char names[256];
    arguments->order.format = export_format_of(name);
    arguments->has_format = true;
    if (arguments->order.format || strcmp(name, "saved") == 0) {
        return STATUS_DONE;
    }
    export_format_names(true, names, sizeof names);
    return wrong_usage(verb, "unknown format '%s' (%s, saved)", name, names);
}

static int parse(const struct verb *verb, int argc, char **argv, struct export_arguments *arguments)
{
    static const struct verb_option options[] = {
        OPTION_TABLE(export_input_options, struct export_arguments, input),
        OPTION_TEXT("output", 'o', struct export_arguments, order.settings.path),
        OPTION_TAKE("format", 'f', take_format),
        OPTION_TEXT("service", 0, struct export_arguments, order.settings.service),
        OPTION_FLAG("suffixes", 0, struct export_arguments, order.settings.suffixes),
        OPTION_FLAG("weights", 0, struct export_arguments, order.settings.weights),
        OPTION_FLAG("no-source", 0, struct export_arguments, no_source),
        OPTION_TEXT("title", 0, struct export_arguments, order.settings.title),
        OPTION_TEXT("before", 0, struct export_arguments, before),
        OPTION_END,
    };
    int status = verb_options(verb, argc, argv, options, arguments);
    if (status) {
        return status;
    }
    if (!arguments->input.input || !arguments->order.settings.path || !arguments->has_format) {
        return wrong_usage(verb, "-i RECORDING, --format FORMAT and -o RESULT are needed");
    }
    const struct export_format *format = arguments->order.format;
    if (arguments->before && (!format || strcmp(format->name, "html") != 0)) {
        return wrong_usage(verb, "--before is for --format html");
    }
    return STATUS_DONE;
}

static int export_all(void *context)
{
    struct export_arguments *arguments = context;
    struct export_memory memory = {0};
    struct export_before before = {.name = arguments->before};
    int err = 0;
    if (arguments->before) {
        struct export_order order = {.format = export_format_of("flame"),
                                     .settings = {.path = arguments->before, .memory = &memory}};
        err = export_input_write_other(&arguments->input, arguments->before, &order);
        before.bytes = memory.bytes;
        before.size = memory.size;
        arguments->order.settings.before = &before;
        arguments->order.settings.name = arguments->input.input;
    }
    err =
        err ? err : export_input_write(&arguments->input, &arguments->order, !arguments->no_source);
    free(memory.bytes);
    return err ? STATUS_FAILED : finish_output();
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    struct export_arguments arguments = {0};
    int status = parse(verb, argc, argv, &arguments);
    if (status == STATUS_DONE) {
        status = export_input_confined(&arguments.input, arguments.order.settings.path,
                                       arguments.before, false, export_all, &arguments);
    }
    export_input_free(&arguments.input);
    return status;
}

const struct verb verb_export = {
    .name = "export",
    .words = VERB_HAS_NO_WORDS,
    .run = run_verb,
    .usage = "-i RECORDING|DIR --format FORMAT -o RESULT [OPTIONS]",
    .help = "Writes a profile in another format, for other viewers and for servers:\n"
            "  html        a flame graph, one file for any browser\n"
            "  pprof       for go tool pprof, Pyroscope, Parca and others (.pb.gz)\n"
            "  firefox     for https://profiler.firefox.com and Perfetto\n"
            "  jfr         for JDK Mission Control, IntelliJ and the JDK's jfr\n"
            "  speedscope  for https://www.speedscope.app\n"
            "  collapsed   a line a stack, for flamegraph.pl, inferno and others\n"
            "  otlp        OpenTelemetry's profiles; otlp-json: as JSON\n"
            "  report      methods, lines and callers as JSON, for scripts\n"
            "  regions     code by instruction as JSON, for those who print it\n"
            "  flame       the data in that page\n"
            "  timeline    what the JVM itself did (jdperf timeline); timeline-json: as JSON\n"
            "  saved       samples with names, of which all this can be made again: -i takes them\n"
            "  -o, --output FILE         the result; - is standard output. gzipped if it ends in\n"
            "                            .gz; pprof and saved always are\n"
            "  -f, --format FORMAT       one of the above\n"
            "      --service NAME        otlp: service.name (default: the process' name)\n"
            "      --suffixes            collapsed: FlameGraph's _[j], _[i], _[0], _[1], _[k]\n"
            "      --weights             collapsed: weights (ns, bytes), not numbers of samples\n"
            "      --title TEXT          html: above the graph (default: the command)\n"
            "      --before RECORDING|DIR  html: show what differs from this profile\n"
            "      --no-source           firefox: do not put Java sources into the file\n" //
    EXPORT_INPUT_HELP,
};
