/*
 * Trees in which nothing is twice: a node is what its parent and its key make it, and its number
 * its place in an array of the caller's. Stacks are such trees, of whatever they are made of.
 *
 *     run ── main ── parse ── next      a stack is the number of its innermost node
 *      0      1        2  └── fail
 *                      3      4
 *
 * An array's elements begin with the parent's number and the key, 32 bits each; the parent of a
 * root is a number beyond the nodes, TREE_ROOT, or a first node that stands for none. A parent
 * stands before its children.
 *
 * What a new stack adds are nodes in a row, each the first child of the one before. So a node's
 * first child is mostly beside it, and only where it is not the map has it.
 */
#ifndef JD_TOOL_TREE_H
#define JD_TOOL_TREE_H

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#define TREE_ROOT     UINT32_MAX
#define TREE_MOST     (UINT32_MAX - 1)
#define TREE_KEY_SIZE (2 * sizeof(uint32_t))

/*
 * The child of that key, made when there is none, and then zeroed behind it. HASH_MAP_NONE: there
 * is no memory, or there are `most` nodes already.
 */
static inline uint32_t tree_child(void *nodes_pointer, uint32_t *count, uint32_t *room,
                                  size_t element, uint32_t most, struct hash_map *map,
                                  uint32_t parent, uint32_t key)
{
    const uint32_t wanted[] = {parent, key};
    void **nodes = nodes_pointer;
    uint64_t hash = (uint64_t)parent << 32 | key;
    uint32_t beside = parent + 1;
    if (beside < *count) { /* else it has no child */
        if (memcmp((char *)*nodes + beside * element, wanted, TREE_KEY_SIZE) == 0) {
            return beside;
        }
        struct hash_map_cursor cursor = hash_map_start(map, hash);
        uint32_t known;
        while ((known = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
            if (memcmp((char *)*nodes + known * element, wanted, TREE_KEY_SIZE) == 0) {
                return known;
            }
        }
    }
    if (*count >= most || array_reserve(nodes_pointer, *count, room, element) ||
        (beside != *count && hash_map_add(map, hash, *count))) {
        return HASH_MAP_NONE;
    }
    char *made = (char *)*nodes + *count * element;
    memset(made, 0, element);
    memcpy(made, wanted, TREE_KEY_SIZE);
    return (*count)++;
}

#endif
