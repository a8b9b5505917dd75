#include "jdtool/profile/frame_tree.h"

#include "jdtool/base/tree.h"

#include <errno.h>

/* Tiers are told apart only as C1 and not C1. */
static uint32_t kind_key(const struct profile_line *line)
{
    return (uint32_t)line->kind << 1 | (line->tier >= 1 && line->tier <= 3);
}

/* Sets *at to its callee. 0 or -ENOMEM. */
static int add(struct frame_tree *tree, struct hash_map *map, bool by_kind,
               const struct profile_line *line, uint32_t *at)
{
    uint32_t count = tree->count;
    uint32_t key = by_kind ? line->function << 5 | kind_key(line) : line->function;
    *at = tree_child(&tree->nodes, &tree->count, &tree->room, sizeof *tree->nodes, TREE_MOST, map,
                     *at, key);
    if (*at == HASH_MAP_NONE) {
        return -ENOMEM;
    }
    if (*at == count) { /* it is new */
        struct frame_tree_node *node = &tree->nodes[*at];
        node->function = line->function;
        node->kind = line->kind;
        node->tier = line->tier;
    }
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
            err = add(tree, &map, by_kind, &profile->lines[location->first_line + k], &at);
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
