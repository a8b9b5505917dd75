/*
 * A range of the inline tree ends at a pc that HotSpot describes. With DebugNonSafepoints off these
 * are return addresses, and in C1's code, which has few implicit null checks, hardly anything else:
 * 97 % of the ends against 47 % with it on (JDK 17, a program of streams). Only the code at the
 * dump's beginning counts: an attached agent switches the flag on for what is compiled later.
 */
#include "jdtool/jitdump/safepoint_lines.h"

#include "hotspot/call.h"

#define MAX_ENDS   1000
#define MAX_BLOBS  500
#define MIN_ENDS   100
#define MIN_RANGES 4 /* a method without calls tells nothing */
#define CALL_SHARE 0.8
#define BLOB_SHARE 0.65 /* of C2's code, too: 0.71 in 95 of 100 blobs, with the flag 0.6 in one */

static void count_ends(unsigned machine, const struct code_details *details, uint64_t size,
                       uint64_t *ends, uint64_t *calls)
{
    const struct trailer *tree = &details->trailer;
    for (uint32_t r = 0; r < tree->range_count; r++) {
        uint64_t end = (uint64_t)tree->ranges[r].offset + tree->ranges[r].size;
        if (end <= size) {
            (*ends)++;
            *calls += is_behind_call(machine, details->bytes, (uint32_t)end);
        }
    }
}

static bool is_known_machine(unsigned machine)
{
    return machine == EM_X86_64 || machine == EM_AARCH64;
}

static bool is_of_c1(int64_t tier)
{
    return tier >= 1 && tier <= 3;
}

/* Most code need not be fetched to be passed over. */
static bool tells_nothing(const struct code_blob *blob)
{
    return !blob->debug_offset ||
           (blob->is_described && (!is_of_c1(blob->tier) || blob->range_count < MIN_RANGES));
}

bool safepoint_lines_first(struct code_index *index)
{
    struct code_ends *seen = code_index_first_ends(index);
    unsigned machine = code_index_header(index)->elf_mach;
    struct code_details details = {0};
    if (!is_known_machine(machine)) {
        return false;
    }
    for (; seen->next < code_index_blob_count(index) && seen->blobs < MAX_BLOBS &&
           seen->ends < MAX_ENDS;
         seen->next++) {
        const struct code_blob *blob = code_index_blob(index, seen->next);
        if (tells_nothing(blob)) {
            continue;
        }
        if (code_index_fetch(index, seen->next, &details)) {
            seen->blobs = MAX_BLOBS;
            break;
        }
        int64_t tier = details.trailer.facts[JITDUMP_CODE_TIER];
        if (details.bytes && details.trailer.range_count >= MIN_RANGES && is_of_c1(tier)) {
            seen->blobs++;
            count_ends(machine, &details, blob->size, &seen->ends, &seen->calls);
        }
    }
    code_details_free(&details);
    return seen->ends >= MIN_ENDS && (double)seen->calls >= CALL_SHARE * (double)seen->ends;
}

bool safepoint_lines_of(struct code_index *index, uint32_t blob, const struct code_details *details)
{
    unsigned machine = code_index_header(index)->elf_mach;
    uint64_t ends = 0;
    uint64_t calls = 0;
    const struct code_blob *of = code_index_blob(index, blob);
    if (!is_known_machine(machine) || !details->bytes || details->trailer.range_count == 0 ||
        of->timestamp != code_index_blob(index, 0)->timestamp) {
        return false;
    }
    count_ends(machine, details, of->size, &ends, &calls);
    return (ends < MIN_RANGES || (double)calls >= BLOB_SHARE * (double)ends) &&
           safepoint_lines_first(index);
}

const struct trailer_range *safepoint_lines_between(const struct trailer *tree, uint32_t offset,
                                                    struct trailer_range *made)
{
    const struct trailer_range *next = trailer_range_at(tree, offset);
    if (!next) {
        return NULL;
    }
    *made = *next;
    uint32_t before = next > tree->ranges ? next[-1].node : 0;
    /* A node stands behind its parent: the later of two cannot be the other one's. */
    while (before != made->node) {
        if (before > made->node) {
            before = tree->nodes[before].parent;
        } else {
            made->line = tree->nodes[made->node].call_line;
            made->node = tree->nodes[made->node].parent;
        }
    }
    return made;
}
