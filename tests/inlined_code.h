/*
 * A compiled method with inlined calls, for the tests of whatever reports inline trees:
 *
 *   offset  0    10   20   30   40   50   60   70   75   80   90
 *   outer   |--1-|---------2---------|--4-|--1-|--3-|--4-|    |
 *   left         |-11-|-15-|-11-|-12-|
 *   leaf              |-21-|
 *   right                            |--?-|         |--?-|
 *
 * outer calls left at line 2, which calls leaf at line 15, and right at line 4, whose code is
 * scattered and whose lines are unknown. From 80 on, code belongs to no bytecode.
 */
#ifndef JD_TESTS_INLINED_CODE_H
#define JD_TESTS_INLINED_CODE_H

#include "writer/code.h"

static struct source_file outer_file = {.path = "pkg/Outer.java", .id = 1};
static struct source_file left_file = {.path = "pkg/Left.java", .id = 2};
static struct method outer_method = {
    .name = "pkg.Outer.outer()", .file = &outer_file, .class_name = "pkg.Outer", .id = 1};
static struct method left_method = {
    .name = "pkg.Left.left(int)", .file = &left_file, .class_name = "pkg.Left", .id = 2};
static struct method leaf_method = {
    .name = "pkg.Left.leaf()", .file = &left_file, .class_name = "pkg.Left", .id = 3};
static struct method right_method = {
    .name = "gen.Right.right()", .class_name = "gen.Right", .id = 4};

static const struct inline_node inlined_nodes[] = {
    {.method = &outer_method},
    {.method = &left_method, .parent = 0, .call_line = 2},
    {.method = &leaf_method, .parent = 1, .call_line = 15},
    {.method = &right_method, .parent = 0, .call_line = 4},
};
static const struct inline_range inlined_ranges[] = {
    {.offset = 0, .node = 0, .line = 1},   {.offset = 10, .node = 1, .line = 11},
    {.offset = 20, .node = 2, .line = 21}, {.offset = 30, .node = 1, .line = 11},
    {.offset = 40, .node = 1, .line = 12}, {.offset = 50, .node = 3, .line = 0},
    {.offset = 60, .node = 0, .line = 1},  {.offset = 70, .node = 0, .line = 3},
    {.offset = 75, .node = 3, .line = 0},
};

/* Bytes that are no code anywhere and are never run. */
static const unsigned char inlined_bytes[90] = {0xc3};

static const struct code inlined_code = {
    .address = 0x7f0000001000,
    .size = 90,
    .bytes = inlined_bytes,
    .name = "pkg.Outer.outer()",
    .method = &outer_method,
    .facts = {-1, -1, -1, -1, -1, -1, -1, -1, NULL},
    .nodes = inlined_nodes,
    .node_count = 4,
    .ranges = inlined_ranges,
    .range_count = 9,
    .ranges_end = 80,
};

#endif
