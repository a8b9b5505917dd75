/*
 * Finds the latest of many stays of code that covers an address: the look-up behind code_index.h.
 */
#ifndef JD_TOOL_STAY_TREE_H
#define JD_TOOL_STAY_TREE_H

#include "jdtool/jitdump/code_index.h"

struct stay_tree {
    uint64_t *bounds; /* sorted; leaf i is [bounds[i], bounds[i + 1]) */
    size_t leaf_count;
    size_t *first;   /* of each node, into lists; leaf i is node leaf_count + i */
    uint32_t *lists; /* stays */
};

/* Builds a zeroed tree of stays, which are sorted; freed with stay_tree_free in any case. 0 or
 * -ENOMEM. */
int stay_tree_build(struct stay_tree *tree, const struct code_stay *stays, uint32_t count);
void stay_tree_free(struct stay_tree *tree);

/* The last of the first `begun` stays that covers address, plus one; 0: none does. Logarithmic. */
uint32_t stay_tree_last(const struct stay_tree *tree, uint32_t begun, uint64_t address);

#endif
