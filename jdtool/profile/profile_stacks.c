/*
 * A profile's stacks: the samples' own (stack_table.h), in which processes and moments differ that
 * are the same to a reader, so that several of their nodes and locations are one here. What became
 * of each is remembered by its number; a sample whose stack was there costs one look.
 */
#include "jdtool/base/array.h"
#include "jdtool/profile/profile_private.h"

#include <errno.h>

/*
 * Sets *id to the child; PROFILE_NONE: there is no room for a further one. What a new stack adds
 * are nodes in a row, each the first child of the one before. So a node's first child is mostly
 * beside it, and only where it is not the hash map has it.
 */
static int intern_node(struct profile *profile, struct profile_node wanted, uint32_t *id)
{
    struct profile_private *private = profile->private;
    uint32_t beside = wanted.parent == PROFILE_NONE ? 0 : wanted.parent + 1;
    uint64_t hash = (uint64_t)wanted.parent << 32 | wanted.location;
    if (beside < profile->node_count) { /* else it has no child */
        const struct profile_node *first = &profile->nodes[beside];
        if (first->parent == wanted.parent && first->location == wanted.location) {
            *id = beside;
            return 0;
        }
        struct hash_map_cursor cursor = hash_map_start(&private->nodes, hash);
        while ((*id = hash_map_next(&private->nodes, &cursor)) != HASH_MAP_NONE) {
            const struct profile_node *known = &profile->nodes[*id];
            if (known->parent == wanted.parent && known->location == wanted.location) {
                return 0;
            }
        }
    }
    if (profile->node_count >= PROFILE_NODES_MAX) {
        *id = PROFILE_NONE;
        return 0;
    }
    if (array_reserve(&profile->nodes, profile->node_count, &private->node_room,
                      sizeof *profile->nodes) ||
        (beside != profile->node_count &&
         hash_map_add(&private->nodes, hash, profile->node_count))) {
        return -ENOMEM;
    }
    *id = profile->node_count++;
    profile->nodes[*id] = wanted;
    return 0;
}

static int location_of(struct profile *profile, const struct stack_table *stacks, uint32_t location,
                       uint32_t *id)
{
    uint32_t *number = (uint32_t *)profile->private->of_locations.list + location;
    if (*number == 0) {
        int err = profile_location_of(profile, stack_table_location_at(stacks, location), id);
        if (err) {
            return err;
        }
        *number = *id + 1;
    }
    *id = *number - 1;
    return 0;
}

int profile_stack_of(struct profile *profile, const struct resolved_sample *sample, uint32_t *node)
{
    struct profile_private *private = profile->private;
    const struct stack_table *stacks = sample->stacks;
    uint32_t at = sample->node;
    uint32_t depth = 0;
    *node = PROFILE_NONE;
    if (at == 0) {
        return 0;
    }
    if (stack_notes_follow(&private->of_nodes, stacks->epoch, stacks->node_count) ||
        stack_notes_follow(&private->of_locations, stacks->location_epoch,
                           stacks->locations.count)) {
        return -ENOMEM;
    }
    uint32_t *numbers = private->of_nodes.list;
    for (; at && numbers[at] == 0; at = stacks->nodes[at].caller) {
        if (array_reserve(&private->path, depth, &private->path_room, sizeof *private->path)) {
            return -ENOMEM;
        }
        private->path[depth++] = at;
    }
    *node = at ? numbers[at] - 1 : PROFILE_NONE;
    while (depth > 0) {
        struct profile_node wanted = {.parent = *node};
        uint32_t child;
        at = private->path[--depth];
        int err = location_of(profile, stacks, stacks->nodes[at].location, &wanted.location);
        err = err ? err : intern_node(profile, wanted, &child);
        if (err) {
            return err;
        }
        if (child == PROFILE_NONE) {
            profile->cut_stacks++;
            return 0;
        }
        numbers[at] = child + 1;
        *node = child;
    }
    return 0;
}
