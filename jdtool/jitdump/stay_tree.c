/*
 * How the look-up stays logarithmic: the stays are sorted by time, and a segment tree over the
 * addresses where stays begin and end holds, in each node, the stays that cover the node's whole
 * span, ascending. Whoever covers an address stands in one of the nodes between its leaf and the
 * root; the last one of the right time in each of them is found by bisection, and the latest of
 * those is the answer. A stay is in O(log n) nodes, so the tree takes O(n log n) memory whatever
 * the addresses are.
 */
#include "jdtool/jitdump/stay_tree.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The number of bounds at or below address; so its leaf plus one. */
static size_t bounds_up_to(const struct stay_tree *tree, uint64_t address)
{
    size_t low;
    ARRAY_FIRST(low, tree->leaf_count + 1, tree->bounds[low] <= address);
    return low;
}

static int find_bounds(struct stay_tree *tree)
{
    tree->bounds = malloc(((size_t)tree->count * 2 + 1) * sizeof *tree->bounds);
    if (!tree->bounds) {
        return -ENOMEM;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < tree->count; i++) {
        const struct code_stay *stay = tree->stays[i];
        if (stay->size > 0) {
            tree->bounds[count++] = stay->address;
            tree->bounds[count++] = stay->address + stay->size;
        }
    }
    qsort(tree->bounds, count, sizeof *tree->bounds, compare_u64);
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
static void enter_stay(struct stay_tree *tree, uint32_t stay, size_t *next, bool count_only)
{
    const struct code_stay *entered = tree->stays[stay];
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

static void free_tree(struct stay_tree *tree)
{
    free(tree->stays);
    free(tree->bounds);
    free(tree->first);
    free(tree->lists);
    memset(tree, 0, sizeof *tree);
}

/* Of tree->stays, which are in order. */
static int build(struct stay_tree *tree)
{
    int err = find_bounds(tree);
    if (err || tree->leaf_count == 0) {
        return err;
    }
    size_t node_count = tree->leaf_count * 2;
    tree->first = calloc(node_count + 1, sizeof *tree->first);
    size_t *next = calloc(node_count, sizeof *next);
    if (!tree->first || !next) {
        free(next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < tree->count; i++) {
        enter_stay(tree, i, next, true);
    }
    for (size_t i = 0; i < node_count; i++) {
        tree->first[i + 1] = tree->first[i] + next[i];
        next[i] = tree->first[i];
    }
    tree->lists = malloc((tree->first[node_count] + 1) * sizeof *tree->lists);
    if (!tree->lists) {
        free(next);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < tree->count; i++) {
        enter_stay(tree, i, next, false);
    }
    free(next);
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct code_stay *a = *(const struct code_stay *const *)left;
    const struct code_stay *b = *(const struct code_stay *const *)right;
    return ORDER(a->from, b->from) ?: ORDER(a->number, b->number);
}

/* A tree of the stays of all trees from `first` on, and of those given, in the place of these. */
static int replace(struct stay_forest *forest, uint32_t first, const struct code_stay *const *stays,
                   uint32_t count)
{
    struct stay_tree made = {0};
    size_t all = count;
    for (uint32_t i = first; i < forest->count; i++) {
        all += forest->trees[i].count;
    }
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements are pointers.
    made.stays = malloc((all + 1) * sizeof *made.stays);
    if (!made.stays) {
        return -ENOMEM;
    }
    for (uint32_t i = first; i < forest->count; i++) {
        const struct stay_tree *tree = &forest->trees[i];
        // NOLINTNEXTLINE(bugprone-sizeof-expression)
        memcpy(made.stays + made.count, tree->stays, tree->count * sizeof *tree->stays);
        made.count += tree->count;
    }
    if (count) {
        // NOLINTNEXTLINE(bugprone-sizeof-expression)
        memcpy(made.stays + made.count, stays, count * sizeof *stays);
        made.count += count;
        // NOLINTNEXTLINE(bugprone-sizeof-expression)
        qsort(made.stays, made.count, sizeof *made.stays, by_time);
    }
    int err = build(&made);
    if (err) {
        free_tree(&made);
        return err;
    }
    for (uint32_t i = first; i < forest->count; i++) {
        free_tree(&forest->trees[i]);
    }
    forest->trees[first] = made;
    forest->count = first + 1;
    return 0;
}

int stay_forest_add(struct stay_forest *forest, const struct code_stay *const *stays,
                    uint32_t count)
{
    uint64_t size = count;
    uint32_t first = forest->count;
    while (first > 0 && forest->trees[first - 1].count <= size * 2) {
        size += forest->trees[--first].count;
    }
    return count ? replace(forest, first, stays, count) : 0;
}

int stay_forest_join(struct stay_forest *forest)
{
    if (forest->count <= 1) {
        return 0;
    }
    /* Sorted anew: each is in order, all together are not. */
    struct stay_tree last = forest->trees[forest->count - 1];
    forest->count--;
    int err = replace(forest, 0, last.stays, last.count);
    if (err) {
        forest->trees[forest->count++] = last;
    } else {
        free_tree(&last);
    }
    return err;
}

/* How many stays began at or before the time. */
static uint32_t begun_at(const struct stay_tree *tree, uint64_t time)
{
    uint32_t low;
    ARRAY_FIRST(low, tree->count, tree->stays[low]->from <= time);
    return low;
}

/* Of the stays that cover the address, the last one of the first `begun`, and the first one behind
 * these: their places plus one, 0: there is none. */
static void find(const struct stay_tree *tree, uint32_t begun, uint64_t address, uint32_t *last,
                 uint32_t *next)
{
    *last = 0;
    *next = 0;
    size_t leaf = tree->leaf_count ? bounds_up_to(tree, address) : 0;
    if (leaf == 0 || leaf > tree->leaf_count) {
        return;
    }
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
        if (low > tree->first[node] && tree->lists[low - 1] + 1 > *last) {
            *last = tree->lists[low - 1] + 1;
        }
        if (low < tree->first[node + 1] && (*next == 0 || tree->lists[low] + 1 < *next)) {
            *next = tree->lists[low] + 1;
        }
    }
}

const struct code_stay *stay_forest_at(const struct stay_forest *forest, uint64_t address,
                                       uint64_t time, uint64_t *until)
{
    const struct code_stay *best = NULL;
    *until = UINT64_MAX;
    for (uint32_t i = 0; i < forest->count; i++) {
        const struct stay_tree *tree = &forest->trees[i];
        uint32_t last;
        uint32_t next;
        find(tree, begun_at(tree, time), address, &last, &next);
        if (last && (!best || by_time(&tree->stays[last - 1], &best) > 0)) {
            best = tree->stays[last - 1];
        }
        if (next && tree->stays[next - 1]->from < *until) {
            *until = tree->stays[next - 1]->from;
        }
    }
    return best;
}

void stay_forest_free(struct stay_forest *forest)
{
    for (uint32_t i = 0; i < forest->count; i++) {
        free_tree(&forest->trees[i]);
    }
    forest->count = 0;
}
