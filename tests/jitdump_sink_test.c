#include "scratch.h"

#include "writer/jitdump_sink.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void smoke(void **state)
{
    struct jitdump_sink_options options = {.directory = *state};
    struct sink *sink;
    assert_int_equal(jitdump_sink_open(&options, &sink), 0);
    struct source_file file = {.path = "a/B.java", .id = 1};
    struct method method = {.name = "a.B.c()", .file = &file, .first_line = 3, .id = 1};
    struct code_row rows[] = {{0, 3, &file}, {4, 5, &file}};
    struct inline_node nodes[] = {{.method = &method}};
    struct inline_range ranges[] = {{0, 0, 3}, {4, 0, 5}};
    struct code code = {
        .address = 0x1000,
        .size = 8,
        .bytes = "12345678",
        .name = "a.B.c()",
        .method = &method,
        .facts = CODE_FACTS_UNKNOWN,
        .rows = rows,
        .row_count = 2,
        .nodes = nodes,
        .node_count = 1,
        .ranges = ranges,
        .range_count = 2,
        .ranges_end = 8,
    };
    assert_int_equal(sink_load(sink, &code), 0);
    sink_close(sink);
    char name[64];
    snprintf(name, sizeof(name), "jit-%d.dump", getpid());
    size_t size;
    uint8_t *bytes = scratch_read(scratch_path(state, name), &size);
    assert_non_null(bytes);
    assert_true(size > 200);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(smoke, scratch_create, scratch_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
