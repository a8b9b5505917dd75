#include "jdtool/exports/region_code.h"

#include "jdtool/jitdump/code_index.h"
#include "jdtool/view/disassembly.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
static void put_counts(struct region_code *region, uint32_t from, uint32_t to)
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
    char bytes[2 * 16 + 1] = "";
    for (uint32_t i = 0; i < instruction->size && i < 16; i++) {
        snprintf(bytes + 2 * (size_t)i, 3, "%02x", region->details.bytes[instruction->offset + i]);
    }
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
        put_counts(region, hits_from, hits_to);
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

int region_code_put(struct json_writer *json, const struct recording *recording,
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
