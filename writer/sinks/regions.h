/*
 * The inline tree of a piece of code as nested address ranges, for consumers that want ranges
 * rather than a node for each instruction.
 *
 * A region is a run of code without a gap that belongs to one node or to what was inlined into it.
 * A node whose code is scattered has several. Region 0 is the whole piece of code, and every other
 * one lies inside its parent's, which stands before it; regions with the same parent never overlap.
 */
#ifndef JD_WRITER_REGIONS_H
#define JD_WRITER_REGIONS_H

#include "writer/code.h"

struct region {
    uint32_t node;
    uint32_t parent; /* index of an earlier region; 0 for region 0 */
    uint32_t start;  /* offsets from the code's start */
    uint32_t end;
    uint32_t first_range; /* the first of code->ranges in it */
};

/* Start zeroed, use again and again, free with regions_free. */
struct regions {
    struct region *items;
    uint32_t count;
    size_t room;
};

/*
 * Finds the regions of code, sorted by start. Code without a tree has region 0 alone. 0, or -ENOMEM
 * with no regions at all.
 */
int regions_find(struct regions *regions, const struct code *code);

void regions_free(struct regions *regions);

#endif
