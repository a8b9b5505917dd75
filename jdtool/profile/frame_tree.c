#include "jdtool/profile/frame_tree.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#include <errno.h>

/* Tiers are told apart only as C1 and not C1. */
static uint32_t kind_key(const struct frame_tree_node *node)
{
    return (uint32_t)node->kind << 1 | (node->tier >= 1 && node->tier <= 3);
}

static bool is_wanted(const struct frame_tree_node *known, const struct frame_tree_node *wanted,
                      bool by_kind)
{
    return known->parent == wanted->parent && known->function == wanted->function &&
           (!by_kind || kind_key(known) == kind_key(wanted));
}

static int add(struct frame_tree *tree, struct hash_map *map, bool by_kind,
               struct frame_tree_node wanted, uint32_t *id)
{
    uint32_t beside = wanted.parent == PROFILE_NONE ? 0 : wanted.parent + 1;
    uint64_t hash =
        hash_pair(hash_pair(wanted.function, by_kind ? kind_key(&wanted) : 0), wanted.parent);
    if (beside < tree->count) { /* as in profile_stacks.c: its first child, which no map has */
        *id = beside;
        if (is_wanted(&tree->nodes[beside], &wanted, by_kind)) {
            return 0;
        }
        struct hash_map_cursor cursor = hash_map_start(map, hash);
        while ((*id = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
            if (is_wanted(&tree->nodes[*id], &wanted, by_kind)) {
                return 0;
            }
        }
    }
    if (array_reserve(&tree->nodes, tree->count, &tree->room, sizeof *tree->nodes) ||
        (beside != tree->count && hash_map_add(map, hash, tree->count))) {
        return -ENOMEM;
    }
    *id = tree->count++;
    tree->nodes[*id] = wanted;
    return 0;
}

int frame_tree_make(const struct profile *profile, bool by_kind, struct frame_tree *tree)
{
    struct hash_map map = {0};
    *tree = (struct frame_tree){0};
    tree->innermost = calloc((size_t)profile->node_count + 1, sizeof *tree->innermost);
    int err = tree->innermost ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        const struct profile_location *location = &profile->locations[node->location];
        uint32_t at = node->parent == PROFILE_NONE ? PROFILE_NONE : tree->innermost[node->parent];
        for (uint32_t k = location->line_count; !err && k-- > 0;) {
            const struct profile_line *line = &profile->lines[location->first_line + k];
            struct frame_tree_node wanted = {at, line->function, line->kind, line->tier};
            err = add(tree, &map, by_kind, wanted, &at);
        }
        tree->innermost[i] = at;
    }
    hash_map_free(&map);
    return err;
}

void frame_tree_free(struct frame_tree *tree)
{
    free(tree->nodes);
    free(tree->innermost);
    *tree = (struct frame_tree){0};
}
