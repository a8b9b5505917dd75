/*
 * A treap: a binary search tree by address that is at the same time a heap by a random priority
 * that each node draws once. Whatever the order of insertion, it has the shape of a tree that was
 * built in random order, whose depth is logarithmic; keeping it needs no bookkeeping beyond one
 * comparison of priorities on the way.
 *
 * A node stands in front of its item.
 */
#include "writer/occupancy/range_map.h"

#include "writer/pool.h"

#include <stdlib.h>
#include <string.h>

struct node {
    struct node *left;
    struct node *right;
    uint64_t priority;
    struct range item[]; /* and what the caller has behind it */
};

struct range_map {
    struct node *root;
    struct pool nodes;
    size_t item_size;
    uint64_t random;
};

struct range_map *range_map_new(size_t item_size)
{
    struct range_map *map = calloc(1, sizeof(*map));
    if (map) {
        map->item_size = item_size;
        map->nodes = POOL_INIT(sizeof(struct node) + item_size);
        map->random = UINT64_C(0x9E3779B97F4A7C15);
    }
    return map;
}

void range_map_free(struct range_map *map)
{
    if (map) {
        pool_free(&map->nodes);
        free(map);
    }
}

bool range_map_reserve(struct range_map *map, size_t n)
{
    return pool_reserve(&map->nodes, n);
}

/* Marsaglia's xorshift64: nobody plays against us, any even spread will do. */
static uint64_t next_random(struct range_map *map)
{
    map->random ^= map->random << 13;
    map->random ^= map->random >> 7;
    map->random ^= map->random << 17;
    return map->random;
}

/* Splits a tree into the nodes before an address and those from it on. */
static void split(struct node *tree, uint64_t address, struct node **before, struct node **from)
{
    while (tree) {
        if (tree->item->start < address) {
            *before = tree;
            before = &tree->right;
            tree = tree->right;
        } else {
            *from = tree;
            from = &tree->left;
            tree = tree->left;
        }
    }
    *before = NULL;
    *from = NULL;
}

/* Makes one tree of two, all of the left one's nodes being before the right one's. */
static struct node *merge(struct node *left, struct node *right)
{
    struct node *tree;
    struct node **at = &tree;
    while (left && right) {
        if (left->priority > right->priority) {
            *at = left;
            at = &left->right;
            left = left->right;
        } else {
            *at = right;
            at = &right->left;
            right = right->left;
        }
    }
    *at = left ? left : right;
    return tree;
}

void *range_map_insert(struct range_map *map, struct range range)
{
    struct node *node = pool_take(&map->nodes);
    if (!node) {
        return NULL;
    }

    node->priority = next_random(map);
    memset(node->item, 0, map->item_size);
    *node->item = range;

    struct node **at = &map->root;
    while (*at && (*at)->priority > node->priority) {
        at = (*at)->item->start < range.start ? &(*at)->right : &(*at)->left;
    }
    split(*at, range.start, &node->left, &node->right);
    *at = node;
    return node->item;
}

void range_map_remove(struct range_map *map, void *item)
{
    struct node *node = (struct node *)((char *)item - offsetof(struct node, item));
    struct node **at = &map->root;
    while (*at != node) {
        at = (*at)->item->start < node->item->start ? &(*at)->right : &(*at)->left;
    }
    *at = merge(node->left, node->right);
    pool_give_back(&map->nodes, node);
}

void *range_map_at(const struct range_map *map, uint64_t address)
{
    struct node *found = NULL;
    for (struct node *node = map->root; node;) {
        if (node->item->end > address) {
            found = node;
            node = node->left;
        } else {
            node = node->right;
        }
    }
    return found ? found->item : NULL;
}
