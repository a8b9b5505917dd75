/* Detects that a dump has lines at safepoints only, and what is known between them. */
#include "test.h"

#include "jdtool/jitdump/safepoint_lines.h"
#include "tests/dump_builder.h"
#include "tests/scratch.h"

#define BLOBS  30
#define RANGES 6
#define RANGE  UINT64_C(16) /* bytes of each */

/* How a blob's ranges end: behind calls, all or but every second one. */
struct kind {
    unsigned tier;
    bool calls_only;
};

static void write_dump(const char *path, struct kind first, struct kind others)
{
    OWN_DUMP_BUILDER dump = {0};
    struct dump_builder section = {0};
    dump_header(&dump);
    for (uint64_t i = 0; i < BLOBS; i++) {
        const struct kind *kind = i ? &others : &first;
        uint64_t address = 0x7f0000000000 + i * 0x1000;
        dump_begin_debug(&dump, BUILDER_START + i, address, 0);
        dump_begin_trailer(&dump);
        dump_uleb(&section, 1);
        dump_uleb(&section, 1);
        for (int range = 0; range < RANGES; range++) {
            dump_uleb(&section, RANGE);
            dump_uleb(&section, 0);
            dump_sleb(&section, 1);
        }
        dump_section(&dump, JITDUMP_TRAILER_INLINES, &section);
        dump_uleb(&section, JITDUMP_CODE_TIER);
        dump_uleb(&section, kind->tier);
        dump_section(&dump, JITDUMP_TRAILER_CODE, &section);
        dump_end_trailer(&dump);
        dump_end(&dump);
        dump_begin(&dump, JIT_CODE_LOAD, BUILDER_START + i);
        dump_load_fields(&dump, address, RANGES * RANGE, i);
        dump_string(&dump, "m");
        for (uint64_t offset = 0; offset < RANGES * RANGE; offset++) {
            bool call = offset % RANGE == RANGE - 5 && (kind->calls_only || offset / RANGE % 2);
            dump_bytes(&dump, call ? "\xe8" : "\x90", 1);
        }
        dump_end(&dump);
    }
    write_bytes(path, dump.bytes, dump.size);
}

static bool verdict(void **state, unsigned tier, bool calls_only)
{
    struct code_index *index;
    struct kind all = {tier, calls_only};
    write_dump(scratch_path(state, "dump"), all, all);
    assert_int_equal(code_index_open(scratch_path(state, "dump"), &index), 0);
    bool answer = safepoint_lines_first(index);
    code_index_close(index);
    return answer;
}

TEST(calls_only_means_safepoints_only)
{
    assert_true(verdict(state, 3, true));
    assert_false(verdict(state, 3, false));
}

TEST(only_c1_tells)
{
    assert_false(verdict(state, 4, true));
    assert_false(verdict(state, 0, true));
}

/* 0 calls 1 at line 10 and 3 at line 30; 1 calls 2 at line 20. */
TEST(between_safepoints_is_what_both_are_in)
{
    struct trailer_node nodes[] = {{.method = 1},
                                   {.method = 2, .parent = 0, .call_line = 10},
                                   {.method = 3, .parent = 1, .call_line = 20},
                                   {.method = 4, .parent = 0, .call_line = 30}};
    struct trailer_range ranges[] = {{0, 8, 2, 100},  {8, 8, 1, 101},  {16, 8, 2, 102},
                                     {24, 8, 2, 103}, {32, 8, 3, 104}, {40, 8, 0, 105}};
    static const struct trailer_node expected[] = {
        /* node, line */
        {.method = 0, .call_line = 10}, {.method = 1, .call_line = 101},
        {.method = 1, .call_line = 20}, {.method = 2, .call_line = 103},
        {.method = 0, .call_line = 30}, {.method = 0, .call_line = 105}};
    struct trailer tree = {.nodes = nodes, .node_count = 4, .ranges = ranges, .range_count = 6};
    for (uint32_t i = 0; i < 6; i++) {
        struct trailer_range made;
        const struct trailer_range *range = safepoint_lines_between(&tree, i * 8 + 3, &made);
        assert_non_null(range);
        assert_int_equal(range->node, expected[i].method);
        assert_int_equal(range->line, expected[i].call_line);
        assert_int_equal(range->offset, i * 8);
    }
    struct trailer_range made;
    assert_null(safepoint_lines_between(&tree, 48, &made));
}

/* Code of the first moment, most of whose ranges end behind calls; an earlier agent's has more. */
TEST(later_and_denser_code_is_exact)
{
    struct code_index *index;
    struct code_details details = {0};
    write_dump(scratch_path(state, "dump"), (struct kind){4, true}, (struct kind){3, true});
    assert_int_equal(code_index_open(scratch_path(state, "dump"), &index), 0);
    assert_int_equal(code_index_fetch(index, 0, &details), 0);
    assert_true(safepoint_lines_of(index, 0, &details));
    assert_int_equal(code_index_fetch(index, 1, &details), 0);
    assert_false(safepoint_lines_of(index, 1, &details)); /* it came later */
    code_index_close(index);
    write_dump(scratch_path(state, "dump"), (struct kind){4, false}, (struct kind){3, true});
    assert_int_equal(code_index_open(scratch_path(state, "dump"), &index), 0);
    assert_int_equal(code_index_fetch(index, 0, &details), 0);
    assert_false(safepoint_lines_of(index, 0, &details));
    code_index_close(index);
    code_details_free(&details);
}

TEST_MAIN(scratch_create, scratch_remove)
