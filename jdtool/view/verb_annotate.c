/* jdtool annotate: a method's machine code with its samples and its source. */
#include "jdtool/base/hash_map.h"
#include "jdtool/base/message.h"
#include "jdtool/pipeline/export_input.h"
#include "jdtool/resolve/source_texts.h"
#include "jdtool/view/annotate.h"
#include "jdtool/view/method_match.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLD_MAX 10 /* lines of a list in a message */

struct annotate {
    struct export_input input;
    struct export_order order;
    const char *method;
    bool all;
    bool no_source;
};

static struct annotate *the_annotate; /* an export format has no context of its own */

/* ---- Which code ---- */

static const char *name_of(const struct resolved_code *code)
{
    return code->method ? code->method->name : code->symbol;
}

static uint64_t weight_of(const struct annotation *a, uint32_t code)
{
    uint64_t weight = 0;
    for (uint32_t i = 0; i < a->events && weight == 0; i++) {
        weight = a->codes[code].weights[i];
    }
    return weight;
}

/* Codes by weight, the heaviest first. */
static int compare_codes(const void *x, const void *y, void *argument)
{
    const struct annotation *a = argument;
    uint64_t first = weight_of(a, *(const uint32_t *)x);
    uint64_t second = weight_of(a, *(const uint32_t *)y);
    if (first != second) {
        return first > second ? -1 : 1;
    }
    return *(const uint32_t *)x < *(const uint32_t *)y ? -1 : 1;
}

static double percent(const struct annotation *a, uint64_t weight, uint32_t event)
{
    return a->totals[event] ? 100.0 * (double)weight / (double)a->totals[event] : 0;
}

static void tell_codes(const struct annotation *a, const uint32_t *codes, uint32_t count,
                       const char *but)
{
    for (uint32_t i = 0, told = 0; i < count && told < TOLD_MAX; i++) {
        if (!but || strcmp(name_of(a->codes[codes[i]].code), but) != 0) {
            fprintf(stderr, "    %6.2f %%  %s\n", percent(a, weight_of(a, codes[i]), 0),
                    a->codes[codes[i]].code->symbol);
            told++;
        }
    }
}

/* Whether a location of generated code has the wanted method inlined. */
static bool has_inlined(const struct profile *profile, const struct profile_location *location,
                        const char *wanted)
{
    for (uint32_t i = 0; location->code && i + 1 < location->line_count; i++) {
        const struct profile_line *line = &profile->lines[location->first_line + i];
        if (method_match(profile->functions[line->function].name, wanted) > 0) {
            return true;
        }
    }
    return false;
}

/* The codes of which instructions of the wanted method, inlined there, were sampled: picks them, in
 * that order, and sets their shares of those samples in `hosted`, by code. Returns their number. */
static uint32_t pick_hosts(const struct annotation *a, const char *wanted, const uint32_t *order,
                           uint32_t *picked, uint64_t *hosted)
{
    const struct profile *profile = a->profile;
    struct hash_map by_code = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < a->code_count; i++) {
        hosted[i] = 0;
        hash_map_add(&by_code, (uintptr_t)a->codes[i].code, i); /* without memory fewer are found */
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct profile_location *location =
            sample->node == PROFILE_NONE
                ? NULL
                : &profile->locations[profile->nodes[sample->node].location];
        if (!location || !has_inlined(profile, location, wanted)) {
            continue;
        }
        struct hash_map_cursor cursor = hash_map_start(&by_code, (uintptr_t)location->code);
        uint32_t code;
        while (location->code && (code = hash_map_next(&by_code, &cursor)) != HASH_MAP_NONE) {
            hosted[code] += a->codes[code].code == location->code ? sample->weight : 0;
        }
    }
    for (uint32_t i = 0; i < a->code_count; i++) {
        if (hosted[order[i]]) {
            picked[count++] = order[i];
        }
    }
    /* Of a method that calls, only what it called may have been sampled. */
    for (uint32_t i = 0; profile->locations && count == 0 && i < profile->location_count; i++) {
        struct hash_map_cursor cursor =
            hash_map_start(&by_code, (uintptr_t)profile->locations[i].code);
        uint32_t code;
        if (has_inlined(profile, &profile->locations[i], wanted) &&
            (code = hash_map_next(&by_code, &cursor)) != HASH_MAP_NONE) {
            picked[count++] = code;
        }
    }
    hash_map_free(&by_code);
    return count;
}

/* What a method of its own code is also a part of. */
static void tell_hosts(const struct annotation *a, const uint32_t *order, const uint32_t *picked,
                       uint32_t picked_count, const uint64_t *hosted)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < a->code_count && told < TOLD_MAX; i++) {
        bool is_picked = false;
        for (uint32_t k = 0; k < picked_count; k++) {
            is_picked |= picked[k] == order[i];
        }
        if (!is_picked && hosted[order[i]]) {
            if (told++ == 0) {
                fprintf(stderr,
                        "jdtool: '%s' is also a part of these, into which it was inlined:\n",
                        the_annotate->method);
            }
            fprintf(stderr, "    %6.2f %%  %s\n", percent(a, hosted[order[i]], 0),
                    a->codes[order[i]].code->symbol);
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

static uint32_t pick_codes(const struct annotation *a, const char *wanted, const uint32_t *order,
                           uint32_t *picked)
{
    uint32_t count = 0;
    for (int rank = 3; rank > 0 && count == 0; rank--) {
        for (uint32_t i = 0; i < a->code_count; i++) {
            if (method_match(name_of(a->codes[order[i]].code), wanted) == rank) {
                picked[count++] = order[i];
            }
        }
    }
    return count;
}

/* What else there is of the hottest one, and what else fits. */
static void tell_choice(const struct annotation *a, const uint32_t *picked, uint32_t count,
                        bool all)
{
    const char *name = name_of(a->codes[picked[0]].code);
    uint64_t weight = 0;
    uint32_t pieces = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(name_of(a->codes[picked[i]].code), name) == 0) {
            weight += weight_of(a, picked[i]);
            pieces++;
        }
    }
    fprintf(stderr, "jdtool: %s: %.2f %% of the samples", name, percent(a, weight, 0));
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

static int put_chosen(const struct annotation *a, uint32_t *order, uint32_t *picked,
                      uint32_t *hosts, uint64_t *hosted, struct packed_output *output)
{
    const struct annotate *annotate = the_annotate;
    for (uint32_t i = 0; i < a->code_count; i++) {
        order[i] = i;
    }
    qsort_r(order, a->code_count, sizeof *order, compare_codes, (void *)a);
    uint32_t count = pick_codes(a, annotate->method, order, picked);
    uint32_t host_count = pick_hosts(a, annotate->method, order, hosts, hosted);
    if (count == 0 && host_count > 0) {
        fprintf(stderr,
                "jdtool: '%s' was inlined wherever it was sampled; this is the code of what it was "
                "inlined into:\n",
                annotate->method);
        memcpy(picked, hosts, host_count * sizeof *picked);
        count = host_count;
    }
    if (count == 0) {
        error_message("failed to find code of '%s': %s. The hottest are:", annotate->method,
                      why_none(a, annotate->method));
        tell_codes(a, order, a->code_count, NULL);
        return -ENOENT;
    }
    tell_choice(a, picked, count, annotate->all);
    tell_hosts(a, order, picked, count, hosted);
    const char *name = name_of(a->codes[picked[0]].code);
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        if (i == 0 || (annotate->all && strcmp(name_of(a->codes[picked[i]].code), name) == 0)) {
            packed_output_text(output, i ? "\n" : "");
            err = annotation_put(a, picked[i], annotate->order.settings.sources, output);
        }
    }
    return err;
}

/* In the place of an export's writing. */
static int write_annotation(const struct profile *profile, const struct export_settings *settings,
                            struct packed_output *output)
{
    struct annotation annotation;
    int err = annotation_count(profile, &annotation);
    for (uint32_t i = 0; settings->sources && !err && i < profile->module_count; i++) {
        err = source_texts_add_jdk(settings->sources, profile->modules[i]);
    }
    size_t count = (size_t)annotation.code_count + 1;
    uint32_t *lists = calloc(3 * count, sizeof *lists);
    uint64_t *hosted = calloc(count, sizeof *hosted);
    if (!err) {
        err = lists && hosted
                  ? put_chosen(&annotation, lists, lists + count, lists + 2 * count, hosted, output)
                  : -ENOMEM;
    }
    free(lists);
    free(hosted);
    annotation_free(&annotation);
    return err;
}

/* ---- The command line ---- */

static int parse(int argc, char **argv, struct annotate *annotate)
{
    static const struct option table[] = {
        EXPORT_INPUT_OPTIONS,
        {"all", no_argument, NULL, 'a'},
        {"no-source", no_argument, NULL, 'n'},
        {0},
    };
    int letter;
    int status = STATUS_DONE;
    while (status == STATUS_DONE &&
           (letter = next_option(&verb_annotate, argc, argv, EXPORT_INPUT_LETTERS, table)) != -1) {
        switch (letter) {
        case 'a':
            annotate->all = true;
            break;
        case 'n':
            annotate->no_source = true;
            break;
        default:
            status = export_input_option(&verb_annotate, &annotate->input, letter, optarg);
        }
    }
    if (status != STATUS_DONE) {
        return status;
    }
    if (!annotate->input.input || optind + 1 != argc || !argv[optind][0]) {
        return wrong_usage(&verb_annotate, "-i RECORDING and one METHOD are needed");
    }
    annotate->method = argv[optind];
    return STATUS_DONE;
}

static int annotate_all(void *context)
{
    struct annotate *annotate = context;
    struct sample_sink *sink;
    int err = 0;
    if (!annotate->no_source) {
        err = source_texts_open(annotate->input.source_path, &annotate->order.settings.sources);
    }
    if (!err) {
        err = export_sink_new(&annotate->order, 1, &sink);
    }
    if (!err) {
        err = export_input_run(&annotate->input, sink);
    }
    source_texts_close(annotate->order.settings.sources);
    return err ? STATUS_FAILED : finish_output();
}

static int run_verb(int argc, char **argv)
{
    static const struct export_format format = {
        .name = "annotate", .reads_code = true, .write = write_annotation};
    struct annotate annotate = {.input = {.wants_code = true}, .order = {&format, {.path = "-"}}};
    int status = parse(argc, argv, &annotate);
    if (status == STATUS_DONE) {
        the_annotate = &annotate;
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
        "lines it was made of, inlined methods' indented.\n"
        "      --all                 all code of that name, not only the hottest\n"
        "      --no-source           no source lines\n" //
    EXPORT_INPUT_HELP,
};
