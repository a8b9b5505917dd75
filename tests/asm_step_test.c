/* Disassembly that loses step because of data is in step again at the next sample. */
#include "test.h"

#include "jdtool/jitdump/code_index.h"
#include "jdtool/view/annotate.h"
#include "tests/dump_builder.h"
#include "tests/scratch.h"

OWNED(struct code_index *, code_index_close)

#define ADDRESS UINT64_C(0x7f0000000000)

/* Two bytes of data, which begin a mov of ten; then a push, a pop and a ret. */
static const uint8_t bytes[] = {0x48, 0xb8, 0x53, 0x5b, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90};

static struct code_index *make_index(void **state)
{
    OWN_DUMP_BUILDER dump = {0};
    struct code_index *index;
    dump_header(&dump);
    dump_begin(&dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(&dump, ADDRESS, sizeof bytes, 1);
    dump_string(&dump, "Interpreter");
    dump_bytes(&dump, bytes, sizeof bytes);
    dump_end(&dump);
    write_bytes(scratch_path(state, "dump"), dump.bytes, dump.size);
    assert_int_equal(code_index_open(scratch_path(state, "dump"), &index), 0);
    return index;
}

/* The text of the code with a sample at each of two offsets, which lie in calls or do not. */
static char *annotate(struct code_index *index, uint64_t first, uint64_t second, bool in_call)
{
    struct recorded_event event = {.name = "cycles", .unit = "count"};
    struct recording recording = {.arch = "x86_64", .events = &event, .event_count = 1};
    struct resolved_code code = {.address = ADDRESS,
                                 .module_address = ADDRESS,
                                 .size = sizeof bytes,
                                 .symbol = "Interpreter",
                                 .index = index};
    struct profile_location locations[] = {
        {.code = &code, .address = ADDRESS + first, .line_count = 1, .is_caller = in_call},
        {.code = &code, .address = ADDRESS + second, .line_count = 1, .is_caller = in_call},
    };
    struct profile_node nodes[] = {{PROFILE_NONE, 0}, {PROFILE_NONE, 1}};
    struct profile_sample samples[] = {
        {.weight = 3, .count = 3, .node = 0},
        {.weight = 1, .count = 1, .node = 1},
    };
    const struct resolved_code *codes[] = {&code};
    const struct profile profile = {.recording = &recording,
                                    .codes = codes,
                                    .code_count = 1,
                                    .locations = locations,
                                    .location_count = 2,
                                    .nodes = nodes,
                                    .node_count = 2,
                                    .samples = samples,
                                    .sample_count = 2,
                                    .total_count = 4};
    struct annotation annotation;
    struct packed_output *output;
    uint8_t *text = NULL;
    size_t size = 0;
    assert_int_equal(annotation_count(&profile, &annotation), 0);
    assert_int_equal(annotation.code_count, 1);
    assert_int_equal(packed_output_open_memory(false, &output), 0);
    assert_int_equal(annotation_put(&annotation, 0, true, NULL, output), 0);
    assert_int_equal(packed_output_take(output, &text, &size), 0);
    annotation_free(&annotation);
    char *copy = strndup((const char *)text, size);
    free(text);
    assert_non_null(copy);
    return copy;
}

TEST(test_in_step)
{
    OWN(code_index_close) struct code_index *index = make_index(state);
    char *text = annotate(index, 2, 4, false);
    assert_non_null(strstr(text, "|      0 | .byte 0x48\n"));
    assert_non_null(strstr(text, "|      1 | .byte 0xb8\n"));
    assert_non_null(strstr(text, "|      2 | push rbx\n"));
    assert_non_null(strstr(text, "|      3 | pop rbx\n"));
    assert_non_null(strstr(text, "|      4 | ret\n"));
    assert_non_null(strstr(text, " 75.00 |      2 |"));
    assert_non_null(strstr(text, " 25.00 |      4 |"));
    free(text);
}

/* Where nothing says otherwise, data is what it looks like. */
TEST(test_no_hint)
{
    OWN(code_index_close) struct code_index *index = make_index(state);
    char *text = annotate(index, 0, 0, false);
    assert_non_null(strstr(text, "|      0 | mov rax, 0x"));
    assert_null(strstr(text, "push rbx"));
    free(text);
}

/* Of waits and other events the innermost frame of Java may be a caller: its address lies in the
 * call, and is no instruction's. */
TEST(test_place_in_a_call)
{
    OWN(code_index_close) struct code_index *index = make_index(state);
    char *text = annotate(index, 2, 2, true);
    assert_non_null(strstr(text, "100.00 |      0 | mov rax, 0x"));
    assert_null(strstr(text, ".byte"));
    free(text);
}

TEST_MAIN(scratch_create, scratch_remove)
