/*
 * Finds the latest of many stays of code that covers an address: the look-up behind code_index.h.
 */
#ifndef JD_TOOL_STAY_TREE_H
#define JD_TOOL_STAY_TREE_H

#include "jdtool/jitdump/code_index.h"

/*
 * Stays in the order of time, and what finds those that cover an address. It cannot be added to:
 * what comes later is put into another tree, see struct stay_forest.
 */
struct stay_tree {
    const struct code_stay **stays; /* by `from`, those of equal stamps as they stand in the file */
    uint32_t count;
    uint64_t *bounds; /* sorted; leaf i is [bounds[i], bounds[i + 1]) */
    size_t leaf_count;
    size_t *first;   /* of each node, into lists; leaf i is node leaf_count + i */
    uint32_t *lists; /* places in stays */
};

/*
 * Trees of the stays of one dump. A dump grows, and what is new becomes a tree of its own, which is
 * merged with the one before as soon as it is half as large: so there are O(log n) of them, and all
 * building together takes O(n log^2 n). A dump that is read at once has one. Zero one to start.
 */
struct stay_forest {
    struct stay_tree trees[32];
    uint32_t count;
};

/* Adds stays, which must not move; the array is the caller's. 0 or -ENOMEM; the forest is then as
 * it was. */
int stay_forest_add(struct stay_forest *forest, const struct code_stay *const *stays,
                    uint32_t count);

/* Merges all trees into one, or none. 0 or -ENOMEM. */
int stay_forest_join(struct stay_forest *forest);

/*
 * The latest stay that began at or before the time and covers the address, NULL: none does; *until
 * gets the moment another one begins that covers it (UINT64_MAX: none does). Logarithmic.
 */
const struct code_stay *stay_forest_at(const struct stay_forest *forest, uint64_t address,
                                       uint64_t time, uint64_t *until);

void stay_forest_free(struct stay_forest *forest);

#endif
