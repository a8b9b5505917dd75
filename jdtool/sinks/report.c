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
#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/sinks/export.h"
#include "jdtool/sinks/profile_json.h"

#include <errno.h>
#include <string.h>

/* A method, a method's line, or a method and its caller. */
struct tally {
    uint32_t function;
    uint32_t what;  /* line, or the caller's function; 0 of a method */
    uint32_t stamp; /* the last sample that was counted, so that it counts once */
    uint32_t self_samples, total_samples;
};

/* Tallies of one sort, with weights by event behind one another: selfs, then totals. */
struct tallies {
    struct tally *list;
    uint64_t *weights;
    uint32_t count, room, weights_room;
    struct hash_map map;
};

struct report {
    const struct profile *profile;
    struct json_writer json;
    uint32_t events;
    struct tallies methods, lines, callers;
    uint8_t *kinds;   /* by function: a bit for each enum resolved_kind */
    uint32_t *places; /* by function: its place among the methods that are written */
};

static uint64_t *weights_of(const struct report *r, const struct tallies *tallies, uint32_t id)
{
    return &tallies->weights[(size_t)id * 2 * r->events];
}

/* NULL: no memory. */
static struct tally *tally_of(const struct report *r, struct tallies *tallies, uint32_t function,
                              uint32_t what)
{
    uint64_t hash = (uint64_t)function << 32 | what;
    struct hash_map_cursor cursor = hash_map_start(&tallies->map, hash);
    uint32_t id;
    while (tallies->list && (id = hash_map_next(&tallies->map, &cursor)) != HASH_MAP_NONE) {
        if (tallies->list[id].function == function && tallies->list[id].what == what) {
            return &tallies->list[id];
        }
    }
    if (array_reserve(&tallies->list, tallies->count, &tallies->room, sizeof *tallies->list) ||
        array_reserve(&tallies->weights, tallies->count, &tallies->weights_room,
                      2 * (size_t)r->events * sizeof *tallies->weights) ||
        hash_map_add(&tallies->map, hash, tallies->count)) {
        return NULL;
    }
    id = tallies->count++;
    tallies->list[id] = (struct tally){.function = function, .what = what, .stamp = PROFILE_NONE};
    memset(weights_of(r, tallies, id), 0, 2 * (size_t)r->events * sizeof *tallies->weights);
    return &tallies->list[id];
}

static int count(const struct report *r, struct tallies *tallies, uint32_t function, uint32_t what,
                 uint32_t sample_id, bool is_self)
{
    const struct profile_sample *sample = &r->profile->samples[sample_id];
    struct tally *tally = tally_of(r, tallies, function, what);
    if (!tally) {
        return -ENOMEM;
    }
    uint64_t *weights = weights_of(r, tallies, (uint32_t)(tally - tallies->list));
    if (is_self) {
        tally->self_samples += sample->count;
        weights[sample->event] += sample->weight;
    }
    if (tally->stamp != sample_id) {
        tally->stamp = sample_id;
        tally->total_samples += sample->count;
        weights[r->events + sample->event] += sample->weight;
    }
    return 0;
}

static int count_sample(struct report *r, uint32_t id)
{
    const struct profile *profile = r->profile;
    uint32_t callee = PROFILE_NONE;
    int err = 0;
    for (uint32_t at = profile->samples[id].node; !err && at != PROFILE_NONE;
         at = profile->nodes[at].parent) {
        const struct profile_location *location = &profile->locations[profile->nodes[at].location];
        for (uint32_t k = 0; !err && k < location->line_count; k++) {
            const struct profile_line *line = &profile->lines[location->first_line + k];
            bool is_self = callee == PROFILE_NONE;
            r->kinds[line->function] |= (uint8_t)(1u << line->kind);
            err = count(r, &r->methods, line->function, 0, id, is_self);
            if (!err && line->line) {
                err = count(r, &r->lines, line->function, line->line, id, is_self);
            }
            if (!err && !is_self) {
                err = count(r, &r->callers, callee, line->function, id, false);
            }
            callee = line->function;
        }
    }
    return err;
}

/* ---- Writing ---- */

static const char *const kind_names[RESOLVED_KINDS] = {
    [RESOLVED_UNKNOWN] = "unknown",         [RESOLVED_KERNEL] = "kernel",
    [RESOLVED_NATIVE] = "native",           [RESOLVED_STUB] = "stub",
    [RESOLVED_COMPILED] = "compiled",       [RESOLVED_INLINED] = "inlined",
    [RESOLVED_INTERPRETED] = "interpreted", [RESOLVED_SUBJECT] = "subject",
};

static void put_weights(struct report *r, const char *key, const uint64_t *weights)
{
    json_array(&r->json, key);
    for (uint32_t i = 0; i < r->events; i++) {
        json_uint(&r->json, NULL, weights[i]);
    }
    json_end(&r->json);
}

/* The order in which tallies are written: of a method behind one another, the heaviest first. */
struct sorting {
    const struct report *report;
    const struct tallies *tallies;
    bool by_function;
};

static int compare(const void *a, const void *b, void *argument)
{
    const struct sorting *sorting = argument;
    uint32_t ids[2] = {*(const uint32_t *)a, *(const uint32_t *)b};
    const struct tally *tallies[2];
    const uint64_t *weights[2];
    for (int i = 0; i < 2; i++) {
        tallies[i] = &sorting->tallies->list[ids[i]];
        weights[i] = weights_of(sorting->report, sorting->tallies, ids[i]);
    }
    if (sorting->by_function && tallies[0]->function != tallies[1]->function) {
        return tallies[0]->function < tallies[1]->function ? -1 : 1;
    }
    uint32_t events = sorting->report->events;
    for (uint32_t i = 0; i < 2 * events; i++) {
        /* Selfs of all events, then totals. */
        if (weights[0][i] != weights[1][i]) {
            return weights[0][i] > weights[1][i] ? -1 : 1;
        }
    }
    return ids[0] < ids[1] ? -1 : ids[0] > ids[1];
}

/* NULL: no memory. */
static uint32_t *sorted(const struct report *r, const struct tallies *tallies, bool by_function)
{
    uint32_t *order = calloc((size_t)tallies->count + 1, sizeof *order);
    struct sorting sorting = {r, tallies, by_function};
    for (uint32_t i = 0; order && i < tallies->count; i++) {
        order[i] = i;
    }
    if (order) {
        qsort_r(order, tallies->count, sizeof *order, compare, &sorting);
    }
    return order;
}

/* By function: where its tallies begin in an order that is by function. NULL: no memory. */
static uint32_t *starts(const struct report *r, const struct tallies *tallies,
                        const uint32_t *order)
{
    uint32_t *first = malloc(((size_t)r->profile->function_count + 1) * sizeof *first);
    for (uint32_t i = 0; first && i <= r->profile->function_count; i++) {
        first[i] = tallies->count;
    }
    for (uint32_t i = tallies->count; first && i-- > 0;) {
        first[tallies->list[order[i]].function] = i;
    }
    return first;
}

struct orders {
    uint32_t *methods, *lines, *callers;
    uint32_t *first_line, *first_caller;
};

static void put_method(struct report *r, const struct orders *orders, uint32_t id)
{
    struct json_writer *json = &r->json;
    const struct tally *tally = &r->methods.list[id];
    const struct profile_function *function = &r->profile->functions[tally->function];
    const uint64_t *weights = weights_of(r, &r->methods, id);

    json_object(json, NULL);
    json_text(json, "name", function->name);
    json_text(json, "file", function->file);
    json_uint(json, "first_line", function->first_line);
    json_array(json, "kinds");
    for (int kind = 0; kind < RESOLVED_KINDS; kind++) {
        if (r->kinds[tally->function] & 1u << kind) {
            json_text(json, NULL, kind_names[kind]);
        }
    }
    json_end(json);
    put_weights(r, "self", weights);
    put_weights(r, "total", weights + r->events);
    json_uint(json, "self_samples", tally->self_samples);
    json_uint(json, "total_samples", tally->total_samples);
    json_array(json, "lines");
    for (uint32_t i = orders->first_line[tally->function];
         i < r->lines.count && r->lines.list[orders->lines[i]].function == tally->function; i++) {
        const uint64_t *of_line = weights_of(r, &r->lines, orders->lines[i]);
        json_object(json, NULL);
        json_uint(json, "line", r->lines.list[orders->lines[i]].what);
        put_weights(r, "self", of_line);
        put_weights(r, "total", of_line + r->events);
        json_end(json);
    }
    json_end(json);
    json_array(json, "callers");
    for (uint32_t i = orders->first_caller[tally->function];
         i < r->callers.count && r->callers.list[orders->callers[i]].function == tally->function;
         i++) {
        const struct tally *caller = &r->callers.list[orders->callers[i]];
        json_object(json, NULL);
        json_uint(json, "method", r->places[caller->what]);
        put_weights(r, "total", weights_of(r, &r->callers, orders->callers[i]) + r->events);
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

static int put_methods(struct report *r)
{
    struct orders orders = {
        .methods = sorted(r, &r->methods, false),
        .lines = sorted(r, &r->lines, true),
        .callers = sorted(r, &r->callers, true),
    };
    int err = orders.methods && orders.lines && orders.callers ? 0 : -ENOMEM;
    if (!err) {
        orders.first_line = starts(r, &r->lines, orders.lines);
        orders.first_caller = starts(r, &r->callers, orders.callers);
        err = orders.first_line && orders.first_caller ? 0 : -ENOMEM;
    }
    for (uint32_t i = 0; !err && i < r->methods.count; i++) {
        r->places[r->methods.list[orders.methods[i]].function] = i;
    }
    json_array(&r->json, "methods");
    for (uint32_t i = 0; !err && i < r->methods.count; i++) {
        put_method(r, &orders, orders.methods[i]);
    }
    json_end(&r->json);
    free(orders.methods);
    free(orders.lines);
    free(orders.callers);
    free(orders.first_line);
    free(orders.first_caller);
    return err;
}

static void release(struct tallies *tallies)
{
    free(tallies->list);
    free(tallies->weights);
    hash_map_free(&tallies->map);
}

static int put_report(struct report *r, struct packed_output *output)
{
    const struct profile *profile = r->profile;
    r->kinds = calloc((size_t)profile->function_count + 1, sizeof *r->kinds);
    r->places = calloc((size_t)profile->function_count + 1, sizeof *r->places);
    int err = r->kinds && r->places ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < profile->sample_count; i++) {
        err = count_sample(r, i);
    }
    profile_json_begin(&r->json, profile, output);
    if (!err) {
        err = put_methods(r);
    }
    profile_json_end(&r->json);
    return err;
}

static int write_report(const struct profile *profile, const struct export_settings *settings,
                        struct packed_output *output)
{
    (void)settings;
    struct report *r = calloc(1, sizeof *r);
    if (!r) {
        return -ENOMEM;
    }
    *r = (struct report){.profile = profile, .events = profile->recording->event_count};
    int err = put_report(r, output);
    release(&r->methods);
    release(&r->lines);
    release(&r->callers);
    free(r->kinds);
    free(r->places);
    free(r);
    return err;
}

extern const struct export_format format_report;
const struct export_format format_report = {
    .name = "report",
    .about = "methods, lines and callers with their weights, as JSON for scripts",
    .write = write_report,
};
