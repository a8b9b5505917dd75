/* jdtool annotate: a method's machine code with its samples and its source. */
#include "jdtool/base/message.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/annotate.h"
#include "jdtool/view/method_match.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define TOLD_MAX 10 /* lines of a list in a message */

struct annotate {
    struct export_input input;
    struct export_order order;
    const char *method;
    bool all;
    bool whole;
    bool no_source;
};

/* ---- Which code ---- */

static double percent(const struct annotation *a, uint64_t weight, uint32_t event)
{
    return a->totals[event] ? 100.0 * (double)weight / (double)a->totals[event] : 0;
}

/* A line: a part of a code's weight, as a share of its event. */
static void tell_share(const struct annotation *a, uint32_t code, uint64_t weight)
{
    uint32_t event = annotated_event(a, code);
    const char *name = a->profile->recording->events[event].name;
    fprintf(stderr, "    %6.2f %%  ", percent(a, weight, event));
    if (event) {
        fprintf(stderr, "of %s  ", name ? name : "another event");
    }
    fprintf(stderr, "%s\n", a->codes[code].code->symbol);
}

static void tell_codes(const struct annotation *a, const uint32_t *codes, uint32_t count,
                       const char *but)
{
    for (uint32_t i = 0, told = 0; i < count && told < TOLD_MAX; i++) {
        if (!but || strcmp(annotated_name(a, codes[i]), but) != 0) {
            tell_share(a, codes[i], a->codes[codes[i]].weights[annotated_event(a, codes[i])]);
            told++;
        }
    }
}

/* What a method of its own code is also a part of. */
static void tell_hosts(const struct annotation *a, const struct annotation_choice *choice,
                       const char *method)
{
    const uint32_t *order = choice->order;
    const uint64_t *hosted = choice->hosted;
    uint32_t told = 0;
    for (uint32_t i = 0; i < a->code_count && told < TOLD_MAX; i++) {
        bool is_picked = false;
        for (uint32_t k = 0; k < choice->count; k++) {
            is_picked |= choice->picked[k] == order[i];
        }
        if (!is_picked && hosted[order[i]]) {
            if (told++ == 0) {
                fprintf(stderr,
                        "jdtool: '%s' is also a part of these, into which it was inlined:\n",
                        method);
            }
            tell_share(a, order[i], hosted[order[i]]);
        }
    }
}

/* Where the wanted method is on stacks otherwise, for a message. */
static const char *why_none(const struct annotation *a, const char *wanted)
{
    const struct profile *profile = a->profile;
    const char *why = "no sampled method's name contains it";
    for (uint32_t i = 0; i < profile->line_count; i++) {
        const struct profile_line *line = &profile->lines[i];
        if (method_match(profile->functions[line->function].name, wanted) == 0) {
            continue;
        }
        if (line->kind == RESOLVED_INLINED) {
            return "it was inlined, into methods of which only what they call was sampled";
        }
        if (line->kind == RESOLVED_COMPILED) {
            return "only what it calls was sampled, which jdperf flame shows";
        }
        if (line->kind == RESOLVED_INTERPRETED) {
            why = "it was interpreted whenever it was sampled: it has no machine code";
        } else if (line->kind == RESOLVED_NATIVE || line->kind == RESOLVED_KERNEL) {
            why = "it is no Java method; jdperf annotate --perf shows native code";
        }
    }
    return why;
}

/* What else there is of the hottest one, and what else fits. */
static void tell_choice(const struct annotation *a, const uint32_t *picked, uint32_t count,
                        bool all)
{
    const char *name = annotated_name(a, picked[0]);
    uint32_t event = annotated_event(a, picked[0]);
    const char *of = a->profile->recording->events[event].name;
    uint64_t weight = 0;
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(annotated_name(a, picked[i]), name) == 0) {
            weight += a->codes[picked[i]].weights[event];
            pieces++;
        }
    }
    fprintf(stderr, "jdtool: %s: %.2f %% of %s", name, percent(a, weight, event),
            event && of ? of : "the samples");
    if (pieces > 1) {
        fprintf(stderr, ", in %u pieces of code%s", pieces,
                all ? "" : "; this is the hottest, --all shows all");
    }
    fputc('\n', stderr);
    if (pieces < count) {
        fputs("jdtool: also matching:\n", stderr);
        tell_codes(a, picked, count, name);
    }
}

static int put_chosen(const struct annotate *annotate, const struct annotation *a,
                      const struct annotation_choice *choice, struct packed_output *output)
{
    const uint32_t *picked = choice->picked;
    uint32_t count = choice->count;
    if (choice->are_hosts) {
        fprintf(stderr,
                "jdtool: '%s' was inlined wherever it was sampled; this is the code of what it was "
                "inlined into:\n",
                annotate->method);
    }
    if (count == 0) {
        error_message("failed to find code of '%s': %s. The hottest are:", annotate->method,
                      why_none(a, annotate->method));
        tell_codes(a, choice->order, a->code_count, NULL);
        return -ENOENT;
    }
    tell_choice(a, picked, count, annotate->all);
    tell_hosts(a, choice, annotate->method);
    const char *name = annotated_name(a, picked[0]);
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        if (i == 0 || (annotate->all && strcmp(annotated_name(a, picked[i]), name) == 0)) {
            packed_output_text(output, i ? "\n" : "");
            err = annotation_put(a, picked[i], annotate->whole, annotate->order.settings.sources,
                                 output);
        }
    }
    return err;
}

/* In the place of an export's writing. */
static int write_annotation(const struct profile *profile, const struct export_settings *settings,
                            struct packed_output *output)
{
    const struct annotate *annotate = settings->context;
    struct annotation annotation;
    int err = annotation_count(profile, &annotation);
    for (uint32_t i = 0; settings->sources && !err && i < profile->module_count; i++) {
        err = source_texts_add_jdk(settings->sources, profile->modules[i]);
    }
    struct annotation_choice choice = {0};
    err = err ? err : annotation_choose(&annotation, annotate->method, &choice);
    err = err ? err : put_chosen(annotate, &annotation, &choice, output);
    annotation_choice_free(&choice);
    annotation_free(&annotation);
    return err;
}

/* ---- The command line ---- */

static int parse(const struct verb *verb, int argc, char **argv, struct annotate *annotate)
{
    static const struct verb_option options[] = {
        OPTION_TABLE(export_input_options, struct annotate, input),
        OPTION_FLAG("all", 0, struct annotate, all),
        OPTION_FLAG("whole", 0, struct annotate, whole),
        OPTION_FLAG("no-source", 0, struct annotate, no_source),
        OPTION_END,
    };
    int status = verb_options(verb, argc, argv, options, annotate);
    if (!status && (!annotate->input.input || optind + 1 != argc || !argv[optind][0])) {
        status = wrong_usage(verb, "-i RECORDING and one METHOD are needed");
    }
    annotate->method = argv[optind];
    return status;
}

static int annotate_all(void *context)
{
    struct annotate *annotate = context;
    int err = export_input_write(&annotate->input, &annotate->order, !annotate->no_source);
    return err ? STATUS_FAILED : finish_output();
}

static int run_verb(const struct verb *verb, int argc, char **argv)
{
    static const struct export_format format = {
        .name = "annotate", .reads_code = true, .write = write_annotation};
    struct annotate annotate = {.input = {.wants_code = true}, .order = {&format, {.path = "-"}}};
    int status = parse(verb, argc, argv, &annotate);
    if (status == STATUS_DONE) {
        annotate.order.settings.context = &annotate;
        status = export_input_confined(&annotate.input, NULL, NULL, false, annotate_all, &annotate);
    }
    export_input_free(&annotate.input);
    return status;
}

const struct verb verb_annotate = {
    .name = "annotate",
    .run = run_verb,
    .usage = "-i RECORDING|DIR [OPTIONS] METHOD",
    .help =
        "Prints the machine code of the hottest method whose name is METHOD, or else contains it:\n"
        "each instruction with its share of the samples, a column for each event, and the Java\n"
        "lines it was made of, inlined methods' indented. What is far from any sample is left\n"
        "out.\n"
        "      --whole               all of it\n"
        "      --all                 all code of that name, not only the hottest\n"
        "      --no-source           no source lines\n" //
    EXPORT_INPUT_HELP,
};
