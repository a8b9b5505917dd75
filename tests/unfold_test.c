/* Inlined ranges as entries of a perf map, in each mode. */
#include "test.h"

#include "writer/sinks/perf_map_sink.h"

#include "tests/inlined_code.h"

#include <errno.h>
#include <stdio.h>

/* Unfolds, and compares with what a perf map would say, offsets for addresses. */
static void assert_map(const struct code *code, struct unfold_style style, const char *expected)
{
    struct unfold unfold = UNFOLD_INIT;
    int count = unfold_code(&unfold, code, &style);
    assert_true(count > 0);
    char map[4096] = "";
    size_t length = 0;
    for (int i = 0; i < count; i++) {
        const struct unfold_entry *entry = unfold_entry(&unfold, i);
        length += (size_t)snprintf(map + length, sizeof(map) - length, "%u %u %s\n", entry->offset,
                                   entry->size, unfold_name(&unfold, entry));
    }
    assert_string_equal(map, expected);
    unfold_free(&unfold);
}

TEST(folded_is_one_entry)
{
    assert_map(&inlined_code, (struct unfold_style){0}, "0 90 pkg.Outer.outer()\n");
}

TEST(leaf_names_both_ends)
{
    assert_map(&inlined_code, (struct unfold_style){.mode = UNFOLD_LEAF},
               "0 10 pkg.Outer.outer()\n"
               "10 10 pkg.Left.left(int) in pkg.Outer.outer()\n"
               "20 10 pkg.Left.leaf() in pkg.Outer.outer()\n"
               "30 20 pkg.Left.left(int) in pkg.Outer.outer()\n"
               "50 10 gen.Right.right() in pkg.Outer.outer()\n"
               "60 15 pkg.Outer.outer()\n"
               "75 5 gen.Right.right() in pkg.Outer.outer()\n"
               "80 10 pkg.Outer.outer()\n");
}

TEST(all_names_the_chain)
{
    assert_map(&inlined_code, (struct unfold_style){.mode = UNFOLD_ALL},
               "0 10 pkg.Outer.outer()\n"
               "10 10 pkg.Outer.outer()->pkg.Left.left(int)\n"
               "20 10 pkg.Outer.outer()->pkg.Left.left(int)->pkg.Left.leaf()\n"
               "30 20 pkg.Outer.outer()->pkg.Left.left(int)\n"
               "50 10 pkg.Outer.outer()->gen.Right.right()\n"
               "60 15 pkg.Outer.outer()\n"
               "75 5 pkg.Outer.outer()->gen.Right.right()\n"
               "80 10 pkg.Outer.outer()\n");
}

TEST(simple_names_the_innermost)
{
    assert_map(&inlined_code, (struct unfold_style){.mode = UNFOLD_SIMPLE},
               "0 10 pkg.Outer.outer()\n"
               "10 10 pkg.Left.left(int)\n"
               "20 10 pkg.Left.leaf()\n"
               "30 20 pkg.Left.left(int)\n"
               "50 10 gen.Right.right()\n"
               "60 15 pkg.Outer.outer()\n"
               "75 5 gen.Right.right()\n"
               "80 10 pkg.Outer.outer()\n");
}

TEST(suffixes_tell_the_tier)
{
    struct code code = inlined_code;
    code.range_count = 3;
    code.ranges_end = 30;
    code.name = "pkg.Outer.outer() [C2]";
    assert_map(&code, (struct unfold_style){.mode = UNFOLD_ALL, .suffixes = true},
               "0 10 pkg.Outer.outer() [C2]_[j]\n"
               "10 10 pkg.Outer.outer() [C2]_[j]->pkg.Left.left(int)_[i]\n"
               "20 10 pkg.Outer.outer() [C2]_[j]->pkg.Left.left(int)_[i]->pkg.Left.leaf()_[i]\n"
               "30 60 pkg.Outer.outer() [C2]_[j]\n");
    code.name = "pkg.Outer.outer()";
    code.facts.tier = 3;
    assert_map(&code, (struct unfold_style){.mode = UNFOLD_LEAF, .suffixes = true},
               "0 10 pkg.Outer.outer()_[1]\n"
               "10 10 pkg.Left.left(int) in pkg.Outer.outer()_[i]\n"
               "20 10 pkg.Left.leaf() in pkg.Outer.outer()_[i]\n"
               "30 60 pkg.Outer.outer()_[1]\n");
    struct code interpreter = {
        .size = 8, .name = "Interpreter", .facts = {.kind = JITDUMP_KIND_INTERPRETER}};
    assert_map(&interpreter, (struct unfold_style){.suffixes = true}, "0 8 Interpreter_[0]\n");
    struct code stub = {.size = 8, .name = "stub", .facts = CODE_FACTS_UNKNOWN};
    assert_map(&stub, (struct unfold_style){.suffixes = true}, "0 8 stub\n");
}

TEST(positions_stand_behind_each_method)
{
    outer_method.first_line = 17;
    left_method.first_line = 4294967295;
    struct code code = inlined_code;
    code.range_count = 3;
    code.ranges_end = 90;
    assert_map(&code, (struct unfold_style){.mode = UNFOLD_ALL, .positions = true},
               "0 10 pkg.Outer.outer()(Outer.java:17)\n"
               "10 10 pkg.Outer.outer()(Outer.java:17)->pkg.Left.left(int)(Left.java:4294967295)\n"
               "20 70 pkg.Outer.outer()(Outer.java:17)->"
               "pkg.Left.left(int)(Left.java:4294967295)->pkg.Left.leaf()\n");
    outer_method.first_line = 0;
    left_method.first_line = 0;
}

/* Different calls of one method that follow each other have one name, so they are one entry. */
TEST(neighbours_differ)
{
    static const struct inline_node nodes[] = {
        {.method = &outer_method}, {.method = &left_method}, {.method = &left_method}};
    static const struct inline_range ranges[] = {{0, 1, 1}, {4, 2, 1}, {8, 1, 2}, {12, 0, 1}};
    struct code code = inlined_code;
    code.size = 16;
    code.nodes = nodes;
    code.ranges = ranges;
    code.range_count = 4;
    code.ranges_end = 14;
    assert_map(&code, (struct unfold_style){.mode = UNFOLD_ALL},
               "0 12 pkg.Outer.outer()->pkg.Left.left(int)\n12 4 pkg.Outer.outer()\n");
}

TEST(no_memory_is_an_error)
{
    struct unfold unfold = {.entries = BUFFER_INIT(1 << 20), .names = BUFFER_INIT(16)};
    struct unfold_style style = {.mode = UNFOLD_ALL};
    assert_int_equal(unfold_code(&unfold, &inlined_code, &style), -ENOMEM);
    unfold_free(&unfold);
}

TEST_MAIN(NULL, NULL)
