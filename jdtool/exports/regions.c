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
#include "jdtool/base/json_writer.h"
#include "jdtool/base/text.h"
#include "jdtool/exports/export.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/profile/profile.h"
#include "jdtool/unwind/disassembly.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The instructions of a piece of generated code around those that samples hit. */

/* What samples hit at one address. */
struct region_hit {
    uint32_t offset;        /* in the code */
    const uint64_t *counts; /* samples by event, then weights by event */
};

/* How many instructions before and behind a hit one are written. */
enum { MARGIN = 24 };

struct region_code {
    struct json_writer *json;
    const struct recording *recording;
    const struct resolved_code *code;
    struct code_details details;
    const struct region_hit *hits;
    uint32_t hit_count;
};

/* ---- Where instructions come from: a stack for each range of the inline tree ---- */

static void put_frame(struct json_writer *json, const char *method, const char *file, uint32_t line)
{
    json_array(json, NULL);
    json_text(json, NULL, method);
    json_text(json, NULL, file);
    json_uint(json, NULL, line);
    json_end(json);
}

/* The stack of a range, innermost first; parents stand before their children. */
static void put_stack(struct region_code *region, const struct trailer_range *range)
{
    const struct trailer *trailer = &region->details.trailer;
    const struct trailer_names *names = code_index_names(region->code->index);
    uint32_t line = range->line;
    json_array(region->json, NULL);
    for (uint32_t node = range->node; node < trailer->node_count;) {
        const struct trailer_method *method =
            trailer_names_method(names, trailer->nodes[node].method);
        put_frame(region->json, method->name, method->file, line);
        line = trailer->nodes[node].call_line;
        node = node == 0 ? trailer->node_count : trailer->nodes[node].parent;
    }
    json_end(region->json);
}

static void put_stacks(struct region_code *region)
{
    const struct code_details *details = &region->details;
    json_array(region->json, "stacks");
    if (details->trailer.range_count > 0) {
        for (uint32_t i = 0; i < details->trailer.range_count; i++) {
            put_stack(region, &details->trailer.ranges[i]);
        }
    } else { /* somebody else's dump, without a tree */
        for (uint32_t i = 0; i < details->entry_count; i++) {
            const struct jitdump_entry *entry = &details->entries[i];
            json_array(region->json, NULL);
            put_frame(region->json, region->code->method ? region->code->method->name : NULL,
                      entry->file, entry->line);
            json_end(region->json);
        }
    }
    json_end(region->json);
}

/* Which of the stacks is that of an offset; -1: none. */
static int64_t stack_at(const struct region_code *region, uint32_t offset)
{
    const struct code_details *details = &region->details;
    const struct trailer_range *range = trailer_range_at(&details->trailer, offset);
    if (range) {
        return range - details->trailer.ranges;
    }
    const struct code_blob *blob = code_index_blob(region->code->index, region->code->blob);
    int64_t found = -1;
    for (uint32_t i = 0; details->trailer.range_count == 0 && i < details->entry_count; i++) {
        if (details->entries[i].address <= blob->address + offset) {
            found = i;
        }
    }
    return found;
}

/* ---- Instructions ---- */

/* The name of the code that a branch leads to, when it is not this. */
static const char *target_of(const struct region_code *region, uint64_t target)
{
    const struct resolved_code *code = region->code;
    if (!target || target - code->address < code->size) {
        return NULL;
    }
    const struct code_stay *stay = code_index_at(code->index, target, UINT64_MAX - 1, NULL);
    return stay ? code_index_blob(code->index, stay->blob)->name : NULL;
}

/* The hits [from, to) together. */
static void put_hit_counts(struct region_code *region, uint32_t from, uint32_t to)
{
    uint32_t events = region->recording->event_count;
    for (uint32_t what = 0; what < 2; what++) {
        json_array(region->json, what ? "weight" : "samples");
        for (uint32_t i = 0; i < events; i++) {
            uint64_t sum = 0;
            for (uint32_t k = from; k < to; k++) {
                sum += region->hits[k].counts[what * events + i];
            }
            json_uint(region->json, NULL, sum);
        }
        json_end(region->json);
    }
}

static void put_instruction(struct region_code *region, const struct instruction *instruction,
                            uint32_t hits_from, uint32_t hits_to)
{
    struct json_writer *json = region->json;
    char bytes[2 * 16 + 1];
    text_hex(region->details.bytes + instruction->offset,
             instruction->size < 16 ? instruction->size : 16, bytes);
    json_object(json, NULL);
    json_uint(json, "offset", instruction->offset);
    json_text(json, "bytes", bytes);
    json_text(json, "text", instruction->text);
    const char *target = target_of(region, instruction->target);
    if (target) {
        json_text(json, "target", target);
    }
    int64_t stack = stack_at(region, instruction->offset);
    if (stack >= 0) {
        json_int(json, "stack", stack);
    }
    if (hits_from < hits_to) {
        put_hit_counts(region, hits_from, hits_to);
    }
    json_end(json);
}

/*
 * A ring of the last instructions, so that those before a hit can still be written. A hit is at an
 * instruction's first byte, as processors and timers have it; one that is not goes with the
 * instruction that it lies in.
 */
static void put_instructions(struct region_code *region)
{
    struct instruction ring[MARGIN];
    uint32_t in_ring = 0;
    uint32_t behind = 0; /* how many more are written */
    uint32_t next = 0;   /* hit */
    uint64_t size = region->code->size;
    json_array(region->json, "instructions");
    for (uint32_t at = 0; at < size && (behind > 0 || next < region->hit_count);) {
        struct instruction instruction = disassemble(region->recording->arch, region->details.bytes,
                                                     size, at, region->code->address);
        at += instruction.size;
        uint32_t first = next;
        while (next < region->hit_count && region->hits[next].offset < at) {
            next++;
        }
        if (first < next) {
            for (uint32_t i = in_ring > MARGIN ? in_ring - MARGIN : 0; i < in_ring; i++) {
                put_instruction(region, &ring[i % MARGIN], 0, 0);
            }
            put_instruction(region, &instruction, first, next);
            in_ring = 0;
            behind = MARGIN;
        } else if (behind > 0) {
            put_instruction(region, &instruction, 0, 0);
            behind--;
        } else {
            ring[in_ring++ % MARGIN] = instruction;
        }
    }
    json_end(region->json);
}

/*
 * Writes the keys "stacks" and "instructions" of the region's object; where the dump has no bytes
 * of the code, neither. Hits stand in the order of their offsets. 0 or -ENOMEM.
 */
static int region_code_put(struct json_writer *json, const struct recording *recording,
                           const struct resolved_code *code, const struct region_hit *hits,
                           uint32_t hit_count)
{
    struct region_code region = {
        .json = json, .recording = recording, .code = code, .hits = hits, .hit_count = hit_count};
    int err = code->index ? code_index_fetch(code->index, code->blob, &region.details) : 0;
    if (err == 0 && region.details.bytes && code->size < UINT32_MAX) {
        put_stacks(&region);
        put_instructions(&region);
    }
    code_details_free(&region.details);
    return err == -ENOMEM ? err : 0;
}

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
    uint32_t *by_code, *by_function; /* by their numbers: that of the region + 1; 0: none yet */
    uint64_t *sums;                  /* by region, `events` samples, then as many weights */
    uint64_t *counts;                /* the same by location */
    uint32_t *region_of;             /* by location; PROFILE_NONE: no sample hit it */
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
    uint32_t function = own_line(r, location)->function;
    uint32_t *number =
        location->code ? &r->by_code[location->code_number] : &r->by_function[function];
    if (*number == 0) {
        if (ARRAY_RESERVE(r->list, r->count, r->room)) {
            return PROFILE_NONE;
        }
        r->list[r->count] = (struct region){location->code, function, location, r->count};
        *number = ++r->count;
    }
    return *number - 1;
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
            json_text(&r->json, "kind", export_kind_name(id / TIERS));
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
        if (ARRAY_RESERVE(hits, *count, room)) {
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
    return ORDER(left->offset, right->offset);
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
    json_text(&r->json, "kind", export_kind_name(line->kind));
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
    int order = 0;
    for (uint32_t i = r->events; i < 2 * r->events && !order; i++) {
        order = ORDER(counts_of(r->sums, r, right)[i], counts_of(r->sums, r, left)[i]);
    }
    return order ?: ORDER(left, right);
}

static int put_regions(struct regions *r)
{
    uint32_t *order = array_sorted(r->count, compare, r);
    int err = order ? 0 : -ENOMEM;
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
    r.by_code = calloc((size_t)profile->code_count + 1, sizeof *r.by_code);
    r.by_function = calloc((size_t)profile->function_count + 1, sizeof *r.by_function);
    int err = r.counts && r.region_of && r.by_code && r.by_function ? 0 : -ENOMEM;
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
    free(r.by_code);
    free(r.by_function);
    return err;
}

extern const struct export_format format_regions;
const struct export_format format_regions = {
    .name = "regions",
    .about = "JSON: where the processor was, by instruction",
    .reads_code = true,
    .write = regions_write,
};
