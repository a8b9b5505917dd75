/*
 * A profile's stacks: the samples' own (stack_table.h), in which processes and moments differ that
 * are the same to a reader, so that several of their nodes and locations are one here. What became
 * of each is remembered by its number; a sample whose stack was there costs one look.
 */
#include "jdtool/base/tree.h"
#include "jdtool/profile/profile_private.h"

#include <errno.h>

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
        uint32_t location;
        at = private->path[--depth];
        int err = location_of(profile, stacks, stacks->nodes[at].location, &location);
        if (err) {
            return err;
        }
        uint32_t child =
            tree_child(&profile->nodes, &profile->node_count, &private->node_room,
                       sizeof *profile->nodes, PROFILE_NODES_MAX, &private->nodes, *node, location);
        if (child == HASH_MAP_NONE) {
            profile->cut_stacks++;
            return profile->node_count < PROFILE_NODES_MAX ? -ENOMEM : 0;
        }
        numbers[at] = child + 1;
        *node = child;
    }
    return 0;
}
