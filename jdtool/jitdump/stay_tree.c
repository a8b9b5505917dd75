/*
 * How the look-up stays logarithmic: the stays are sorted by time, and a segment tree over the
 * addresses where stays begin and end holds, in each node, the stays that cover the node's whole
 * span, ascending. Whoever covers an address stands in one of the nodes between its leaf and the
 * root; the last one of the right time in each of them is found by bisection, and the latest of
 * those is the answer. A stay is in O(log n) nodes, so the tree takes O(n log n) memory whatever
 * the addresses are.
 */
#include "jdtool/jitdump/stay_tree.h"

#include <errno.h>
#include <stdlib.h>

static int by_value(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The number of bounds at or below address; so its leaf plus one. */
static size_t bounds_up_to(const struct stay_tree *tree, uint64_t address)
{
    size_t low = 0;
    size_t high = tree->leaf_count + 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (tree->bounds[middle] <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static int find_bounds(struct stay_tree *tree, const struct code_stay *stays, uint32_t stay_count)
{
    tree->bounds = malloc(((size_t)stay_count * 2 + 1) * sizeof(*tree->bounds));
    if (!tree->bounds) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < stay_count; i++) {
        if (stays[i].size > 0) {
            tree->bounds[count++] = stays[i].address;
            tree->bounds[count++] = stays[i].address + stays[i].size;
        }
    }
    qsort(tree->bounds, count, sizeof(*tree->bounds), by_value);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept == 0 || tree->bounds[kept - 1] != tree->bounds[i]) {
            tree->bounds[kept++] = tree->bounds[i];
        }
    }
    tree->leaf_count = kept ? kept - 1 : 0;
    return 0;
}

/* Calls for each node that makes up the stay's span: counts it, or enters the stay in its list. */
static void enter_stay(struct stay_tree *tree, const struct code_stay *stays, uint32_t stay,
                       size_t *next, bool count_only)
{
    const struct code_stay *entered = &stays[stay];
    if (entered->size == 0) {
        return;
    }
    size_t left = bounds_up_to(tree, entered->address) - 1 + tree->leaf_count;
    size_t right = bounds_up_to(tree, entered->address + entered->size) - 1 + tree->leaf_count;
    for (; left < right; left /= 2, right /= 2) {
        size_t nodes[2];
        int count = 0;
        if (left & 1) {
            nodes[count++] = left++;
        }
        if (right & 1) {
            nodes[count++] = --right;
        }
        while (count-- > 0) {
            if (count_only) {
                next[nodes[count]]++;
            } else {
                tree->lists[next[nodes[count]]++] = stay;
            }
        }
    }
}

int stay_tree_build(struct stay_tree *tree, const struct code_stay *stays, uint32_t count)
{
    int error = find_bounds(tree, stays, count);
    if (error || tree->leaf_count == 0) {
        return error;
    }
    size_t node_count = tree->leaf_count * 2;
    tree->first = calloc(node_count + 1, sizeof(*tree->first));
    size_t *next = calloc(node_count, sizeof(*next));
    if (!tree->first || !next) {
        free(next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        enter_stay(tree, stays, i, next, true);
    }
    for (size_t i = 0; i < node_count; i++) {
        tree->first[i + 1] = tree->first[i] + next[i];
        next[i] = tree->first[i];
    }
    tree->lists = malloc((tree->first[node_count] + 1) * sizeof(*tree->lists));
    if (!tree->lists) {
        free(next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        enter_stay(tree, stays, i, next, false);
    }
    free(next);
    return 0;
}

uint32_t stay_tree_last(const struct stay_tree *tree, uint32_t begun, uint64_t address)
{
    if (tree->leaf_count == 0) {
        return 0;
    }
    size_t leaf = bounds_up_to(tree, address);
    if (leaf == 0 || leaf > tree->leaf_count) {
        return 0;
    }
    uint32_t best = 0;
    for (size_t node = leaf - 1 + tree->leaf_count; node >= 1; node /= 2) {
        size_t low = tree->first[node];
        size_t end = tree->first[node + 1];
        while (low < end) {
            size_t middle = low + (end - low) / 2;
            if (tree->lists[middle] < begun) {
                low = middle + 1;
            } else {
                end = middle;
            }
        }
        if (low > tree->first[node] && tree->lists[low - 1] + 1 > best) {
            best = tree->lists[low - 1] + 1;
        }
    }
    return best;
}

void stay_tree_free(struct stay_tree *tree)
{
    free(tree->bounds);
    free(tree->first);
    free(tree->lists);
}
