/*
 * A profile's stacks by function alone: addresses and lines left out, an inlined method a frame
 * like any other. For formats that know names only.
 */
#ifndef JD_TOOL_FRAME_TREE_H
#define JD_TOOL_FRAME_TREE_H

#include "jdtool/profile/profile.h"

struct frame_tree_node {
    uint32_t parent; /* PROFILE_NONE: outermost. A parent stands before its children */
    uint32_t key;    /* function, and by_kind its kind */
    uint32_t function;
    uint8_t kind; /* enum resolved_kind; by_kind off: of the first one seen */
    uint8_t tier;
};

struct frame_tree {
    struct frame_tree_node *nodes;
    uint32_t count, room;
    uint32_t *innermost; /* by node of the profile: the tree's node of its innermost line */
};

/* by_kind: a function that is compiled here and inlined there is two. tree is zeroed first; free
 * it on failure, too. 0 or -ENOMEM. */
int frame_tree_make(const struct profile *profile, bool by_kind, struct frame_tree *tree);
void frame_tree_free(struct frame_tree *tree);

#endif
