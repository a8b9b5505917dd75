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

#include <errno.h>
#include <stdlib.h>

struct report {
    const struct profile *profile;
    struct json_writer json;
    struct method_tallies tallies;
    uint32_t *places; /* by function: its place among the methods that are written */
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
    struct tallies_order methods, lines, callers, forms;
};

static void put_method(struct report *r, const struct orders *orders, uint32_t id)
{
    struct json_writer *json = &r->json;
    const struct method_tallies *t = &r->tallies;
    const struct tally *method = &t->methods.list[id];
    const uint32_t number = method->function;
    const struct profile_function *function = &r->profile->functions[number];
    const uint64_t *weights = method_tally_weights(t, &t->methods, id);
    const struct tally *tally;

    json_object(json, NULL);
    json_text(json, "name", function->name);
    json_text(json, "file", function->file);
    json_uint(json, "first_line", function->first_line);
    json_array(json, "kinds");
    uint32_t kinds = 0;
    for (uint32_t i = orders->forms.first[number];
         (tally = tally_at(&t->forms, &orders->forms, i, number)); i++) {
        kinds |= 1u << METHOD_FORM_KIND(tally->what);
    }
    for (int kind = 0; kind < RESOLVED_KINDS; kind++) {
        if (kinds & 1u << kind) {
            json_text(json, NULL, export_kind_name(kind));
        }
    }
    json_end(json);
    put_weights(r, "self", weights);
    put_weights(r, "total", weights + t->events);
    json_uint(json, "self_samples", method->self_samples);
    json_uint(json, "total_samples", method->total_samples);
    json_array(json, "lines");
    for (uint32_t i = orders->lines.first[number];
         (tally = tally_at(&t->lines, &orders->lines, i, number)); i++) {
        weights = method_tally_weights(t, &t->lines, orders->lines.list[i]);
        json_object(json, NULL);
        json_uint(json, "line", tally->what);
        put_weights(r, "self", weights);
        put_weights(r, "total", weights + t->events);
        json_end(json);
    }
    json_end(json);
    json_array(json, "callers");
    for (uint32_t i = orders->callers.first[number];
         (tally = tally_at(&t->callers, &orders->callers, i, number)); i++) {
        weights = method_tally_weights(t, &t->callers, orders->callers.list[i]);
        json_object(json, NULL);
        json_uint(json, "method", r->places[tally->what]);
        put_weights(r, "total", weights + t->events);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

static int put_methods(struct report *r)
{
    const struct method_tallies *t = &r->tallies;
    struct orders orders = {0};
    int err = method_tallies_order(t, &t->methods, 0, false, &orders.methods);
    err = err ? err : method_tallies_order(t, &t->lines, 0, true, &orders.lines);
    err = err ? err : method_tallies_order(t, &t->callers, 0, true, &orders.callers);
    err = err ? err : method_tallies_order(t, &t->forms, 0, true, &orders.forms);
    for (uint32_t i = 0; !err && i < t->methods.count; i++) {
        r->places[t->methods.list[orders.methods.list[i]].function] = i;
    }
    json_array(&r->json, "methods");
    for (uint32_t i = 0; !err && i < t->methods.count; i++) {
        put_method(r, &orders, orders.methods.list[i]);
    }
    json_end(&r->json);
    tallies_order_free(&orders.methods);
    tallies_order_free(&orders.lines);
    tallies_order_free(&orders.callers);
    tallies_order_free(&orders.forms);
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
