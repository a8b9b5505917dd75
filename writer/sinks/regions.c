/*
 * One pass over the ranges. The regions that are open at a place are the last one opened and its
 * parents, so no stack is kept: from one range to the next, regions close up to the nearest node
 * that both lie in, and open from there down. A parent's index is less than its own, which finds
 * that node without a set of visited ones.
 */
#include "writer/sinks/regions.h"

#include "writer/array.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Closes regions, from `current` outwards, until one is of a node that `node` lies in (or is).
 * Returns that region; *depth is the number of nodes from there down to `node`.
 */
static uint32_t close_up_to(struct regions *regions, const struct code *code, uint32_t current,
                            uint32_t node, uint32_t offset, uint32_t *depth)
{
    *depth = 0;
    while (regions->items[current].node != node) {
        struct region *region = &regions->items[current];
        if (region->node > node) {
            region->end = offset;
            current = region->parent;
        } else {
            node = code->nodes[node].parent;
            ++*depth;
        }
    }
    return current;
}

int regions_find(struct regions *regions, const struct code *code)
{
    regions->count = 0;
    if (!ARRAY_RESERVE(regions->items, regions->room, 1)) {
        return -ENOMEM;
    }
    regions->items[0] = (struct region){.end = (uint32_t)code->size};
    regions->count = 1;
    uint32_t current = 0;
    for (uint32_t i = 0; i < code->range_count; i++) {
        const struct inline_range *range = &code->ranges[i];
        uint32_t depth;
        uint32_t parent = close_up_to(regions, code, current, range->node, range->offset, &depth);
        if (!ARRAY_RESERVE(regions->items, regions->room, regions->count + depth)) {
            regions->count = 0;
            return -ENOMEM;
        }
        current = depth ? regions->count + depth - 1 : parent;
        uint32_t node = range->node;
        for (uint32_t d = depth; d-- > 0; node = code->nodes[node].parent) {
            regions->items[regions->count + d] = (struct region){
                .node = node,
                .parent = d ? regions->count + d - 1 : parent,
                .start = range->offset,
                .first_range = i,
            };
        }
        regions->count += depth;
    }
    for (; current != 0; current = regions->items[current].parent) {
        regions->items[current].end = code->ranges_end;
    }
    return 0;
}

void regions_free(struct regions *regions)
{
    free(regions->items);
    *regions = (struct regions){0};
}
