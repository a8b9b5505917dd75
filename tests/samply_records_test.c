/* Writes samply's records field by field as documented. */
#include "test.h"

#include "writer/sinks/samply_records.h"

#include "format/samply.h"
#include "tests/inlined_code.h"

/* Walks the records in a buffer by their sizes. NULL behind the last one. */
static const struct jitdump_record *next_record(const struct buffer *buffer, size_t *at)
{
    if (*at == buffer->size) {
        return NULL;
    }
    const struct jitdump_record *record = (const void *)(buffer->bytes + *at);
    assert_true(buffer->size - *at >= sizeof(*record));
    assert_true(record->total_size <= buffer->size - *at);
    assert_int_equal(record->timestamp, 77);
    *at += record->total_size;
    return record;
}

static struct buffer records_of(const struct code *code)
{
    struct samply_records *records = samply_records_new();
    assert_non_null(records);
    struct buffer buffer = BUFFER_INIT(1 << 20);
    samply_records_put(records, &buffer, code, 77);
    assert_false(buffer.failed);
    samply_records_free(records);
    return buffer;
}

TEST(inline_tree)
{
    struct buffer buffer = records_of(&inlined_code);
    size_t at = 0;
    const struct samply_debug_info2 *info = (const void *)next_record(&buffer, &at);
    assert_int_equal(info->prefix.id, 827346259);
    assert_null(next_record(&buffer, &at)); /* no tier is known */

    static const char files[] = "pkg/Outer.java\0pkg/Left.java\0\0";
    static const char names[] =
        "pkg.Outer.outer()\0pkg.Left.left(int)\0pkg.Left.leaf()\0gen.Right.right()";
    assert_int_equal(info->file_count, 3);
    assert_int_equal(info->file_list_size, 32);
    assert_int_equal(info->function_names_count, 4);
    assert_int_equal(info->function_names_list_size, 72);
    const uint8_t *p = (const uint8_t *)(info + 1);
    assert_memory_equal(p, files, sizeof(files) - 1);
    p += 32;
    assert_memory_equal(p, names, sizeof(names));
    p += 72;

    static const struct samply_function functions[] = {
        {.name_index = 0, .file_index = 0},
        {.name_index = 1, .file_index = 1},
        {.name_index = 2, .file_index = 1},
        {.name_index = 3, .file_index = 2},
    };
    assert_int_equal(info->function_count, 4);
    assert_memory_equal(p, functions, sizeof(functions));
    p += sizeof(functions);

    static const struct samply_inline_call calls[] = {
        {.depth = 0, .range_count = 1, .function_index = 1, .call_line = 2},
        {.depth = 1, .range_count = 1, .function_index = 2, .call_line = 15},
        {.depth = 0, .range_count = 2, .function_index = 3, .call_line = 4},
    };
    assert_int_equal(info->inline_call_count, 3);
    assert_memory_equal(p, calls, sizeof(calls));
    p += sizeof(calls);

    static const struct samply_range ranges[] = {{10, 40}, {20, 10}, {50, 10}, {75, 5}};
    assert_int_equal(info->range_count, 4);
    assert_memory_equal(p, ranges, sizeof(ranges));
    p += sizeof(ranges);

    static const struct samply_line lines[] = {
        {0, 0, 1, 0},  {10, 1, 11, 0}, {20, 1, 21, 0}, {30, 1, 11, 0}, {40, 1, 12, 0},
        {50, 2, 0, 0}, {60, 0, 1, 0},  {70, 0, 3, 0},  {75, 2, 0, 0},  {80, 0, 0, 0},
    };
    assert_int_equal(info->line_count, 10);
    assert_memory_equal(p, lines, sizeof(lines));
    assert_ptr_equal(p + sizeof(lines), buffer.bytes + buffer.size);
    buffer_free(&buffer);
}

/* A call of the outer method that was inlined but left no code, and one inlined into it. */
TEST(calls_without_code_are_left_out)
{
    static const struct inline_node nodes[] = {
        {.method = &outer_method},
        {.method = &left_method, .parent = 0, .call_line = 2},
        {.method = &leaf_method, .parent = 1, .call_line = 15},
        {.method = &outer_method, .parent = 0, .call_line = 9},
    };
    static const struct inline_range ranges[] = {{.offset = 0, .node = 3, .line = 1}};
    struct code code = inlined_code;
    code.nodes = nodes;
    code.ranges = ranges;
    code.range_count = 1;
    code.ranges_end = 90;
    struct buffer buffer = records_of(&code);
    const struct samply_debug_info2 *info = (const void *)buffer.bytes;
    assert_int_equal(info->function_count, 1); /* it calls itself */
    assert_int_equal(info->inline_call_count, 1);
    assert_int_equal(info->range_count, 1);
    assert_int_equal(info->line_count, 1);
    buffer_free(&buffer);
}

TEST(rows_without_tree)
{
    static const struct code_row rows[] = {
        {.offset = 0, .line = 7, .file = &outer_file},
        {.offset = 4, .line = 9, .file = &left_file},
        {.offset = 8, .line = 9, .file = &left_file},
    };
    struct code code = {
        .size = 16, .name = "a", .method = &outer_method, .rows = rows, .row_count = 3};
    struct buffer buffer = records_of(&code);
    const struct samply_debug_info2 *info = (const void *)buffer.bytes;
    assert_int_equal(info->function_count, 1);
    assert_int_equal(info->inline_call_count, 0);
    assert_int_equal(info->file_count, 2);
    assert_int_equal(info->line_count, 2);
    buffer_free(&buffer);
}

static void assert_tier(struct code code, int32_t kind, int32_t tier, const char *name)
{
    code.facts.kind = kind;
    code.facts.tier = tier;
    struct buffer buffer = records_of(&code);
    if (!name) {
        assert_int_equal(buffer.size, 0);
    } else {
        const struct samply_tier *record = (const void *)buffer.bytes;
        assert_int_equal(record->prefix.id, 827346260);
        assert_int_equal(record->name_size % 4, 0);
        assert_int_equal(record->prefix.total_size, sizeof(*record) + record->name_size);
        assert_int_equal(buffer.size, record->prefix.total_size);
        assert_true(record->color < SAMPLY_COLOR_COUNT);
        assert_string_equal((const char *)(record + 1), name);
    }
    buffer_free(&buffer);
}

TEST(tiers_are_named)
{
    struct code stub = {.size = 16, .name = "stub", .facts = CODE_FACTS_UNKNOWN};
    struct code method = {
        .size = 16, .name = "m", .method = &outer_method, .facts = CODE_FACTS_UNKNOWN};
    assert_tier(stub, -1, -1, "Stub");
    assert_tier(stub, JITDUMP_KIND_STUB, -1, "Stub");
    assert_tier(stub, JITDUMP_KIND_INTERPRETER, -1, "Interpreter");
    assert_tier(method, JITDUMP_KIND_NATIVE_WRAPPER, 0, "Stub");
    assert_tier(method, JITDUMP_KIND_NMETHOD, 1, "C1");
    assert_tier(method, JITDUMP_KIND_NMETHOD, JITDUMP_TIER_JVMCI, "Graal");
    assert_tier(method, JITDUMP_KIND_NMETHOD, 3, "C1");
    assert_tier(method, JITDUMP_KIND_NMETHOD, 4, "C2");
    assert_tier(method, -1, -1, NULL);
}

TEST_MAIN(NULL, NULL)
