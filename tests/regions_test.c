/* Regions of inlined code for Intel's API, nested and without gaps. */
#include "test.h"

#include "writer/sinks/regions.h"

#include "tests/inlined_code.h"
#include "tests/random.h"

#include <stdlib.h>

static void assert_region(const struct region *region, uint32_t node, uint32_t parent,
                          uint32_t start, uint32_t end)
{
    assert_int_equal(region->node, node);
    assert_int_equal(region->parent, parent);
    assert_int_equal(region->start, start);
    assert_int_equal(region->end, end);
}

TEST(tree_becomes_nested_regions)
{
    struct regions regions = {0};
    assert_int_equal(regions_find(&regions, &inlined_code), 0);
    assert_int_equal(regions.count, 5);
    assert_region(&regions.items[0], 0, 0, 0, 90);
    assert_region(&regions.items[1], 1, 0, 10, 50);
    assert_region(&regions.items[2], 2, 1, 20, 30);
    assert_region(&regions.items[3], 3, 0, 50, 60);
    assert_region(&regions.items[4], 3, 0, 75, 80);
    regions_free(&regions);
}

TEST(code_without_tree_is_one_region)
{
    struct regions regions = {0};
    struct code code = {.address = 16, .size = 7, .name = "stub"};
    assert_int_equal(regions_find(&regions, &code), 0);
    assert_int_equal(regions.count, 1);
    assert_region(&regions.items[0], 0, 0, 0, 7);
    regions_free(&regions);
}

/* A call deep in the tree whose callers have no code of their own there. */
TEST(callers_open_with_the_innermost)
{
    static const struct inline_node nodes[] = {
        {0}, {.parent = 0}, {.parent = 1}, {.parent = 2}, {.parent = 1}};
    static const struct inline_range ranges[] = {{.offset = 0, .node = 3},
                                                 {.offset = 4, .node = 4}};
    struct code code = {.address = 16,
                        .size = 8,
                        .name = "deep",
                        .nodes = nodes,
                        .node_count = 5,
                        .ranges = ranges,
                        .range_count = 2,
                        .ranges_end = 8};
    struct regions regions = {0};
    assert_int_equal(regions_find(&regions, &code), 0);
    assert_int_equal(regions.count, 5);
    assert_region(&regions.items[1], 1, 0, 0, 8);
    assert_region(&regions.items[2], 2, 1, 0, 4);
    assert_region(&regions.items[3], 3, 2, 0, 4);
    assert_region(&regions.items[4], 4, 1, 4, 8);
    regions_free(&regions);
}

/* The rules of the header, over random trees. */
TEST(random_trees_nest)
{
    struct regions regions = {0};
    uint64_t seed = random_seed();
    for (int round = 0; round < 2000; round++) {
        struct inline_node nodes[12] = {{0}};
        struct inline_range ranges[30];
        uint32_t node_count = 1 + random_below(&seed, 12);
        /* Depth-first: a node's parent is the one before it or one of that one's callers. */
        for (uint32_t i = 1; i < node_count; i++) {
            uint32_t parent = i - 1;
            while (parent != 0 && random_below(&seed, 2)) {
                parent = nodes[parent].parent;
            }
            nodes[i].parent = parent;
        }
        uint32_t range_count = 1 + random_below(&seed, 30);
        for (uint32_t i = 0; i < range_count; i++) {
            ranges[i] =
                (struct inline_range){.offset = i * 3, .node = random_below(&seed, node_count)};
        }
        struct code code = {.address = 16,
                            .size = 100,
                            .name = "random",
                            .nodes = nodes,
                            .node_count = node_count,
                            .ranges = ranges,
                            .range_count = range_count,
                            .ranges_end = range_count * 3};
        assert_int_equal(regions_find(&regions, &code), 0);
        for (uint32_t i = 1; i < regions.count; i++) {
            const struct region *region = &regions.items[i];
            const struct region *parent = &regions.items[region->parent];
            assert_true(region->parent < i);
            assert_true(region->start < region->end);
            assert_true(region->start >= parent->start && region->end <= parent->end);
            assert_int_equal(nodes[region->node].parent, parent->node);
            assert_true(region->start >= regions.items[i - 1].start);
            for (uint32_t k = 1; k < i; k++) {
                const struct region *other = &regions.items[k];
                assert_true(other->parent != region->parent || other->end <= region->start);
            }
        }
        /* At every range, the innermost region is the range's node. */
        for (uint32_t i = 0; i < range_count; i++) {
            uint32_t innermost = 0;
            for (uint32_t k = 0; k < regions.count; k++) {
                if (regions.items[k].start <= ranges[i].offset &&
                    ranges[i].offset < regions.items[k].end) {
                    innermost = k;
                }
            }
            assert_int_equal(regions.items[innermost].node, ranges[i].node);
        }
    }
    regions_free(&regions);
}

TEST_MAIN(NULL, NULL)
