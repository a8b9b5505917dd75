/* Detects that a dump has lines at safepoints only. */
#include "jdtool/score/safepoint_lines.h"
#include "tests/dump_builder.h"
#include "tests/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BLOBS  30
#define RANGES 6
#define RANGE  UINT64_C(16) /* bytes of each */

/* Blobs of a tier, whose ranges end behind calls, all or but every second one. */
static void write_dump(const char *path, unsigned tier, bool calls_only)
{
    struct dump_builder dump = {0};
    struct dump_builder section = {0};
    dump_header(&dump);
    for (uint64_t i = 0; i < BLOBS; i++) {
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
        dump_uleb(&section, tier);
        dump_section(&dump, JITDUMP_TRAILER_CODE, &section);
        dump_end_trailer(&dump);
        dump_end(&dump);
        dump_begin(&dump, JIT_CODE_LOAD, BUILDER_START + i);
        dump_load_fields(&dump, address, RANGES * RANGE, i);
        dump_string(&dump, "m");
        for (uint64_t offset = 0; offset < RANGES * RANGE; offset++) {
            bool call = offset % RANGE == RANGE - 5 && (calls_only || offset / RANGE % 2);
            dump_bytes(&dump, call ? "\xe8" : "\x90", 1);
        }
        dump_end(&dump);
    }
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_int_equal(fwrite(dump.bytes, 1, dump.size, out), dump.size);
    fclose(out);
    dump_free(&dump);
}

static bool verdict(void **state, unsigned tier, bool calls_only)
{
    struct code_index *index;
    write_dump(scratch_path(state, "dump"), tier, calls_only);
    assert_int_equal(code_index_open(scratch_path(state, "dump"), &index), 0);
    bool answer = has_lines_at_safepoints_only(index);
    code_index_close(index);
    return answer;
}

static void calls_only_means_safepoints_only(void **state)
{
    assert_true(verdict(state, 3, true));
    assert_false(verdict(state, 3, false));
}

static void only_c1_tells(void **state)
{
    assert_false(verdict(state, 4, true));
    assert_false(verdict(state, 0, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_only_means_safepoints_only),
        cmocka_unit_test(only_c1_tells),
    };
    return cmocka_run_group_tests(tests, scratch_create, scratch_remove);
}
