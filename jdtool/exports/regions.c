/*
 * Where the processor was, by instruction: for those who print machine code, such as JMH's
 * profiler.
 *
 *   {"version": 1, "recording": …, "command": …, "arch": …, "samples": N,
 *    "events":  [{"name", "unit", "samples", "weight"}],
 *    "shares":  [{"kind": "compiled", "tier": 4, "samples", "weight"}],   of the innermost frames
 *    "regions": [{"kind", "name", "file", "module", "pid", "tier", "osr", "samples", "weight",
 *                 "address": "0x…", "size",                                of generated code
 *                 "stacks":       [[[method, file, line], …], …],          innermost first
 *                 "instructions": [{"offset", "bytes", "text", "target", "stack",
 *                                   "samples", "weight"}]}]}
 *
 * A region is a piece of generated code, or else a function. "samples" and "weight" have a number
 * for each event. Of instructions those near to where samples hit are there, in order, so that
 * there are gaps; "stack" is the place in "stacks", "target" the name of other generated code that
 * is called. Only the hottest regions have instructions.
 */
#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/exports/export.h"
#include "jdtool/exports/profile_json.h"
#include "jdtool/exports/region_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many regions have instructions. */
enum { SHOWN = 40 };

struct region {
    const struct resolved_code *code; /* NULL: a function */
    uint32_t function;
    const struct profile_location *location; /* one of its */
    uint32_t id;
};

struct regions {
    const struct profile *profile;
    struct json_writer json;
    uint32_t events;
    struct region *list;
    uint32_t count, room;
    struct hash_map map;
    uint64_t *sums;      /* by region, `events` samples, then as many weights */
    uint64_t *counts;    /* the same by location */
    uint32_t *region_of; /* by location; PROFILE_NONE: no sample hit it */
};

static const struct profile_line *own_line(const struct regions *r,
                                           const struct profile_location *location)
{
    return &r->profile->lines[location->first_line + location->line_count - 1];
}

static uint64_t *counts_of(uint64_t *counts, const struct regions *r, uint32_t id)
{
    return &counts[(size_t)id * 2 * r->events];
}

/* The region of a location; PROFILE_NONE: no memory. */
static uint32_t region_of(struct regions *r, const struct profile_location *location)
{
    struct region wanted = {
        .code = location->code, .function = own_line(r, location)->function, .location = location};
    uint64_t hash = wanted.code ? (uintptr_t)wanted.code : wanted.function;
    struct hash_map_cursor cursor = hash_map_start(&r->map, hash);
    uint32_t at;
    while (r->list && (at = hash_map_next(&r->map, &cursor)) != HASH_MAP_NONE) {
        if (r->list[at].code == wanted.code &&
            (wanted.code || r->list[at].function == wanted.function)) {
            return at;
        }
    }
    if (array_reserve(&r->list, r->count, &r->room, sizeof *r->list) ||
        hash_map_add(&r->map, hash, r->count)) {
        return PROFILE_NONE;
    }
    wanted.id = r->count;
    r->list[r->count] = wanted;
    return r->count++;
}

static int count_samples(struct regions *r)
{
    const struct profile *profile = r->profile;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        if (sample->node == PROFILE_NONE) {
            continue;
        }
        uint32_t location = profile->nodes[sample->node].location;
        uint64_t *counts = counts_of(r->counts, r, location);
        counts[sample->event] += sample->count;
        counts[r->events + sample->event] += sample->weight;
        if (r->region_of[location] == PROFILE_NONE) {
            r->region_of[location] = region_of(r, &profile->locations[location]);
            if (r->region_of[location] == PROFILE_NONE) {
                return -ENOMEM;
            }
        }
    }
    r->sums = calloc((size_t)r->count * 2 * r->events + 1, sizeof *r->sums);
    for (uint32_t i = 0; r->sums && i < profile->location_count; i++) {
        uint64_t *counts = counts_of(r->counts, r, i);
        for (uint32_t k = 0; r->region_of[i] != PROFILE_NONE && k < 2 * r->events; k++) {
            counts_of(r->sums, r, r->region_of[i])[k] += counts[k];
        }
    }
    return r->sums ? 0 : -ENOMEM;
}

/* ---- Writing ---- */

static const char *const kind_names[RESOLVED_KINDS] = {
    [RESOLVED_UNKNOWN] = "unknown",         [RESOLVED_KERNEL] = "kernel",
    [RESOLVED_NATIVE] = "native",           [RESOLVED_STUB] = "stub",
    [RESOLVED_COMPILED] = "compiled",       [RESOLVED_INLINED] = "inlined",
    [RESOLVED_INTERPRETED] = "interpreted", [RESOLVED_SUBJECT] = "subject",
};

static void put_counts(struct regions *r, const uint64_t *counts)
{
    for (uint32_t what = 0; what < 2; what++) {
        json_array(&r->json, what ? "weight" : "samples");
        for (uint32_t i = 0; i < r->events; i++) {
            json_uint(&r->json, NULL, counts[what * r->events + i]);
        }
        json_end(&r->json);
    }
}

/* By kind of the innermost frame's code, compiled methods by tier. */
static int put_shares(struct regions *r)
{
    enum { TIERS = 8 };
    uint64_t *shares = calloc((size_t)RESOLVED_KINDS * TIERS * 2 * r->events + 1, sizeof *shares);
    if (!shares) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        const struct profile_line *line = own_line(r, r->list[i].location);
        uint64_t *share = counts_of(shares, r, line->kind * TIERS + line->tier % TIERS);
        for (uint32_t k = 0; k < 2 * r->events; k++) {
            share[k] += counts_of(r->sums, r, i)[k];
        }
    }
    json_array(&r->json, "shares");
    for (uint32_t id = 0; id < RESOLVED_KINDS * TIERS; id++) {
        uint64_t *share = counts_of(shares, r, id);
        uint64_t samples = 0;
        for (uint32_t k = 0; k < r->events; k++) {
            samples += share[k];
        }
        if (samples > 0) {
            json_object(&r->json, NULL);
            json_text(&r->json, "kind", kind_names[id / TIERS]);
            json_uint(&r->json, "tier", id % TIERS);
            put_counts(r, share);
            json_end(&r->json);
        }
    }
    json_end(&r->json);
    free(shares);
    return 0;
}

/* Of the region's locations, in the order of their addresses. NULL: no memory, or none. */
static struct region_hit *hits_of(const struct regions *r, const struct region *region,
                                  uint32_t *count)
{
    struct region_hit *hits = NULL;
    uint32_t room = 0;
    *count = 0;
    for (uint32_t i = 0; i < r->profile->location_count; i++) {
        if (r->region_of[i] != region->id) {
            continue;
        }
        if (array_reserve(&hits, *count, &room, sizeof *hits)) {
            free(hits);
            return NULL;
        }
        uint64_t offset = r->profile->locations[i].address - region->code->module_address;
        hits[(*count)++] = (struct region_hit){
            .offset = offset < region->code->size ? (uint32_t)offset : UINT32_MAX,
            .counts = counts_of(r->counts, r, i),
        };
    }
    return hits;
}

static int by_offset(const void *a, const void *b)
{
    const struct region_hit *left = a;
    const struct region_hit *right = b;
    return (left->offset > right->offset) - (left->offset < right->offset);
}

static int put_code(struct regions *r, const struct region *region, bool is_shown)
{
    char address[32];
    uint32_t count = 0;
    snprintf(address, sizeof address, "0x%" PRIx64, region->code->address);
    json_text(&r->json, "address", address);
    json_uint(&r->json, "size", region->code->size);
    if (!is_shown) {
        return 0;
    }
    struct region_hit *hits = hits_of(r, region, &count);
    if (!hits) {
        return -ENOMEM;
    }
    qsort(hits, count, sizeof *hits, by_offset);
    int err = region_code_put(&r->json, r->profile->recording, region->code, hits, count);
    free(hits);
    return err;
}

static int put_region(struct regions *r, uint32_t id, bool is_shown)
{
    const struct region *region = &r->list[id];
    const struct profile_line *line = own_line(r, region->location);
    const struct profile_function *function = &r->profile->functions[line->function];
    const struct module *module = region->location->module;
    int err = 0;
    json_object(&r->json, NULL);
    json_text(&r->json, "kind", kind_names[line->kind]);
    json_text(&r->json, "name", function->name);
    json_text(&r->json, "file", function->file);
    json_text(&r->json, "module", module ? module->path : NULL);
    if (module && module->kind == MODULE_JVM) {
        json_uint(&r->json, "pid", module->pid);
    }
    json_uint(&r->json, "tier", line->tier);
    json_bool(&r->json, "osr", line->is_osr);
    put_counts(r, counts_of(r->sums, r, id));
    if (region->code) {
        err = put_code(r, region, is_shown);
    }
    json_end(&r->json);
    return err;
}

/* The heaviest first: by the first event, then by the others. */
static int compare(const void *a, const void *b, void *argument)
{
    const struct regions *r = argument;
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    for (uint32_t i = 0; i < r->events; i++) {
        uint64_t of_left = counts_of(r->sums, r, left)[r->events + i];
        uint64_t of_right = counts_of(r->sums, r, right)[r->events + i];
        if (of_left != of_right) {
            return of_left > of_right ? -1 : 1;
        }
    }
    return left < right ? -1 : left > right;
}

static int put_regions(struct regions *r)
{
    uint32_t *order = calloc((size_t)r->count + 1, sizeof *order);
    int err = order ? 0 : -ENOMEM;
    for (uint32_t i = 0; order && i < r->count; i++) {
        order[i] = i;
    }
    if (order) {
        qsort_r(order, r->count, sizeof *order, compare, r);
    }
    json_array(&r->json, "regions");
    for (uint32_t i = 0; !err && i < r->count; i++) {
        err = put_region(r, order[i], i < SHOWN);
    }
    json_end(&r->json);
    free(order);
    return err;
}

static int put_all(struct regions *r, struct packed_output *output)
{
    profile_json_begin(&r->json, r->profile, output);
    int err = put_shares(r);
    if (!err) {
        err = put_regions(r);
    }
    profile_json_end(&r->json);
    return err;
}

static int regions_write(const struct profile *profile, const struct export_settings *settings,
                         struct packed_output *output)
{
    (void)settings;
    struct regions r = {.profile = profile, .events = profile->recording->event_count};
    size_t locations = (size_t)profile->location_count + 1;
    r.counts = calloc(locations * 2 * (r.events ? r.events : 1), sizeof *r.counts);
    r.region_of = malloc(locations * sizeof *r.region_of);
    int err = r.counts && r.region_of ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < profile->location_count; i++) {
        r.region_of[i] = PROFILE_NONE;
    }
    if (!err) {
        err = count_samples(&r);
    }
    if (!err) {
        err = put_all(&r, output);
    }
    free(r.list);
    free(r.sums);
    free(r.counts);
    free(r.region_of);
    hash_map_free(&r.map);
    return err;
}

extern const struct export_format format_regions;
const struct export_format format_regions = {
    .name = "regions",
    .about = "JSON: where the processor was, by instruction",
    .reads_code = true,
    .write = regions_write,
};
