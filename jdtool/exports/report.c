/*
 * A profile as numbers, for scripts: each method with its own time and that of what it called, by
 * source line, and who called it. Whatever is on a stack several times counts once.
 *
 *   {"version": 1, "recording": …, "command": …, "arch": …, "samples": N,
 *    "events": [{"name", "unit", "samples", "weight"}],
 *    "methods": [{"name", "file", "first_line", "kinds": ["compiled", …],
 *                 "self", "total",                      weights, one for each event
 *                 "self_samples", "total_samples",
 *                 "lines":   [{"line", "self", "total"}],
 *                 "callers": [{"method", "total"}]}]}   method: its place in "methods"
 *
 * Methods are sorted by their own weight of the first event, then by their total.
 */
#include "jdtool/exports/export.h"
#include "jdtool/profile/method_tallies.h"
#include "jdtool/profile/profile_json.h"

#include <errno.h>
#include <stdlib.h>

struct report {
    const struct profile *profile;
    struct json_writer json;
    struct method_tallies tallies;
    uint32_t *places; /* by function: its place among the methods that are written */
};

static const char *const kind_names[RESOLVED_KINDS] = {
    [RESOLVED_UNKNOWN] = "unknown",         [RESOLVED_KERNEL] = "kernel",
    [RESOLVED_NATIVE] = "native",           [RESOLVED_STUB] = "stub",
    [RESOLVED_COMPILED] = "compiled",       [RESOLVED_INLINED] = "inlined",
    [RESOLVED_INTERPRETED] = "interpreted", [RESOLVED_SUBJECT] = "subject",
};

static void put_weights(struct report *r, const char *key, const uint64_t *weights)
{
    json_array(&r->json, key);
    for (uint32_t i = 0; i < r->tallies.events; i++) {
        json_uint(&r->json, NULL, weights[i]);
    }
    json_end(&r->json);
}

struct orders {
    uint32_t *methods, *lines, *callers, *forms;
    uint32_t *first_line, *first_caller, *first_form;
};

static void put_method(struct report *r, const struct orders *orders, uint32_t id)
{
    struct json_writer *json = &r->json;
    const struct method_tallies *t = &r->tallies;
    const struct tally *tally = &t->methods.list[id];
    const struct profile_function *function = &r->profile->functions[tally->function];
    const uint64_t *weights = method_tally_weights(t, &t->methods, id);

    json_object(json, NULL);
    json_text(json, "name", function->name);
    json_text(json, "file", function->file);
    json_uint(json, "first_line", function->first_line);
    json_array(json, "kinds");
    uint32_t kinds = 0;
    for (uint32_t i = orders->first_form[tally->function];
         i < t->forms.count && t->forms.list[orders->forms[i]].function == tally->function; i++) {
        kinds |= 1u << METHOD_FORM_KIND(t->forms.list[orders->forms[i]].what);
    }
    for (int kind = 0; kind < RESOLVED_KINDS; kind++) {
        if (kinds & 1u << kind) {
            json_text(json, NULL, kind_names[kind]);
        }
    }
    json_end(json);
    put_weights(r, "self", weights);
    put_weights(r, "total", weights + t->events);
    json_uint(json, "self_samples", tally->self_samples);
    json_uint(json, "total_samples", tally->total_samples);
    json_array(json, "lines");
    for (uint32_t i = orders->first_line[tally->function];
         i < t->lines.count && t->lines.list[orders->lines[i]].function == tally->function; i++) {
        const uint64_t *of_line = method_tally_weights(t, &t->lines, orders->lines[i]);
        json_object(json, NULL);
        json_uint(json, "line", t->lines.list[orders->lines[i]].what);
        put_weights(r, "self", of_line);
        put_weights(r, "total", of_line + t->events);
        json_end(json);
    }
    json_end(json);
    json_array(json, "callers");
    for (uint32_t i = orders->first_caller[tally->function];
         i < t->callers.count && t->callers.list[orders->callers[i]].function == tally->function;
         i++) {
        const struct tally *caller = &t->callers.list[orders->callers[i]];
        json_object(json, NULL);
        json_uint(json, "method", r->places[caller->what]);
        put_weights(r, "total",
                    method_tally_weights(t, &t->callers, orders->callers[i]) + t->events);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

static int put_methods(struct report *r)
{
    const struct method_tallies *t = &r->tallies;
    struct orders orders = {
        .methods = method_tallies_sorted(t, &t->methods, 0, false),
        .lines = method_tallies_sorted(t, &t->lines, 0, true),
        .callers = method_tallies_sorted(t, &t->callers, 0, true),
        .forms = method_tallies_sorted(t, &t->forms, 0, true),
    };
    int err = orders.methods && orders.lines && orders.callers && orders.forms ? 0 : -ENOMEM;
    if (!err) {
        orders.first_line = method_tallies_starts(t, &t->lines, orders.lines);
        orders.first_caller = method_tallies_starts(t, &t->callers, orders.callers);
        orders.first_form = method_tallies_starts(t, &t->forms, orders.forms);
        err = orders.first_line && orders.first_caller && orders.first_form ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; !err && i < t->methods.count; i++) {
        r->places[t->methods.list[orders.methods[i]].function] = i;
    }
    json_array(&r->json, "methods");
    for (uint32_t i = 0; !err && i < t->methods.count; i++) {
        put_method(r, &orders, orders.methods[i]);
    }
    json_end(&r->json);
    free(orders.methods);
    free(orders.lines);
    free(orders.callers);
    free(orders.forms);
    free(orders.first_line);
    free(orders.first_caller);
    free(orders.first_form);
    return err;
}

static int write_report(const struct profile *profile, const struct export_settings *settings,
                        struct packed_output *output)
{
    (void)settings;
    struct report r = {.profile = profile};
    r.places = calloc((size_t)profile->function_count + 1, sizeof *r.places);
    int err = r.places ? method_tallies_make(profile, &r.tallies) : -ENOMEM;
    profile_json_begin(&r.json, profile, output);
    if (!err) {
        err = put_methods(&r);
    }
    profile_json_end(&r.json);
    method_tallies_free(&r.tallies);
    free(r.places);
    return err;
}

extern const struct export_format format_report;
const struct export_format format_report = {
    .name = "report",
    .about = "methods, lines and callers with their weights, as JSON for scripts",
    .write = write_report,
};
