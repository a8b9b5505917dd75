/* Repairs broken dumps and keeps every complete record. */
#include "dump_builder.h"
#include "random.h"
#include "test.h"

#include "format/samply.h"
#include "jdtool/inspect/repair.h"
#include "jdtool/inspect/verify.h"
#include "jdtool/jitdump/code_index.h"

#include <fcntl.h>
#include <stdio.h>

OWNED(struct code_index *, code_index_close)

static char said[8192];

static void note(void *context, uint64_t offset, const char *what)
{
    (void)context;
    (void)offset;
    size_t used = strlen(said);
    snprintf(said + used, sizeof(said) - used, "%s\n", what);
}

static void refuse(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    (void)context;
    (void)rule;
    fail_msg("the repaired dump is broken at %#llx: %s", (unsigned long long)offset, what);
}

/* Repairs, verifies the result, and opens it. */
static struct code_index *repair(const uint8_t *bytes, size_t size, struct repair_result *result)
{
    said[0] = 0;
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open_fd(dump_fd_of(bytes, size), "broken", &reader), 0);
    int fd = memfd_create("repaired", MFD_CLOEXEC);
    assert_int_equal(repair_dump(reader, fd, note, NULL, result), 0);
    jitdump_reader_close(reader);
    assert_int_equal(jitdump_reader_open_fd(dup(fd), "repaired", &reader), 0);
    assert_int_equal(verify_dump(reader, refuse, NULL), 0);
    jitdump_reader_close(reader);
    struct code_index *index;
    assert_int_equal(code_index_follow("repaired", fd, &index), 0);
    assert_int_equal(code_index_update(index, true), 0);
    assert_null(code_index_warning(index));
    return index;
}

#define T (BUILDER_START + 5)

static void names(struct code_index *index, char *out, size_t size)
{
    out[0] = 0;
    for (uint32_t i = 0; i < code_index_blob_count(index); i++) {
        size_t used = strlen(out);
        snprintf(out + used, size - used, "%s ", code_index_blob(index, i)->name);
    }
}

static void expect_names(struct code_index *index, const char *expected)
{
    char found[512];
    names(index, found, sizeof(found));
    assert_string_equal(found, expected);
}

/* The method of a node of a blob's inline tree. */
static const struct trailer_method *method_of(struct code_index *index, uint32_t blob,
                                              uint32_t node)
{
    struct code_details details = {0};
    assert_int_equal(code_index_fetch(index, blob, &details), 0);
    assert_true(details.trailer.node_count > node);
    const struct trailer_method *method =
        trailer_names_method(code_index_names(index), details.trailer.nodes[node].method);
    code_details_free(&details);
    return method;
}

TEST(sound_dump_stays)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        OWN_DUMP_BUILDER dump = {.swapped = swapped};
        dump_header(&dump);
        dump_group(&dump, T, 0x1000, 32, 2, "a");
        dump_group(&dump, T - 2, 0x2000, 32, 3, "b");
        dump_move(&dump, T, 0x2000, 0x9000, 32, 3);
        dump_close(&dump, T + 1);

        struct jitdump_reader *reader;
        assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "sound", &reader), 0);
        int fd = memfd_create("repaired", MFD_CLOEXEC);
        struct repair_result result;
        said[0] = 0;
        assert_int_equal(repair_dump(reader, fd, note, NULL, &result), 0);
        jitdump_reader_close(reader);
        assert_string_equal(said, "");
        assert_int_equal(result.loads, 2);
        assert_int_equal(result.moves, 1);
        uint8_t *copy = malloc(dump.size + 1);
        assert_int_equal(pread(fd, copy, dump.size + 1, 0), dump.size);
        assert_memory_equal(copy, dump.bytes, dump.size);
        free(copy);
        close(fd);
    }
}

/* A flag that nobody has defined; a CLOSE that readers would take for the end of the code before it
 * has run, which it is where it is no later than the latest record: the file ends without one then,
 * as that of a JVM that was killed. */
TEST(header_and_end_are_mended)
{
    static const uint64_t closes[] = {1, T - 1, T, T + 1};
    for (size_t i = 0; i < 4; i++) {
        OWN_DUMP_BUILDER dump = {0};
        struct repair_result result;
        dump_header(&dump);
        dump_patch32(&dump, offsetof(struct jitdump_header, flags), 3);
        dump_group(&dump, T, 0x1000, 32, 2, "a");
        dump_close(&dump, closes[i]);
        OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
        assert_int_equal(code_index_header(index)->flags, JITDUMP_FLAGS_ARCH_TIMESTAMP);
        assert_int_equal(code_index_is_closed(index), closes[i] > T);
        assert_int_equal(strstr(said, "left out a CLOSE") == NULL, closes[i] > T);
        expect_names(index, "a ");
    }
}

static struct dump_builder four_groups(size_t *ends)
{
    struct dump_builder dump = dump_start();
    ends[0] = dump.size;
    static const char *const group_names[] = {"a", "b", "c", "d"};
    for (uint64_t i = 0; i < 4; i++) {
        dump_group(&dump, T + i, 0x1000 * (i + 1), 32, i + 2, group_names[i]);
        ends[i + 1] = dump.size;
    }
    return dump;
}

TEST(torn_at_every_offset)
{
    size_t ends[5];
    OWN_DUMP_BUILDER dump = four_groups(ends);
    for (size_t size = ends[0]; size <= dump.size; size++) {
        uint32_t whole = 0;
        while (whole < 4 && ends[whole + 1] <= size) {
            whole++;
        }
        struct repair_result result;
        OWN(code_index_close) struct code_index *index = repair(dump.bytes, size, &result);
        assert_int_equal(code_index_blob_count(index), whole);
        assert_int_equal(result.loads, whole);
        assert_true((size == ends[whole]) == (said[0] == 0));
    }
}

/* Whatever is cut out of the second group, the others survive, with all their names. */
TEST(hole_at_every_offset)
{
    size_t ends[5];
    OWN_DUMP_BUILDER dump = four_groups(ends);
    for (size_t at = ends[1]; at < ends[2]; at++) {
        for (size_t length = 1; length <= 64 && at + length <= ends[2]; length *= 4) {
            OWN_DUMP_BUILDER broken = {0};
            dump_bytes(&broken, dump.bytes, at);
            dump_bytes(&broken, dump.bytes + at + length, dump.size - at - length);
            struct repair_result result;
            OWN(code_index_close)
            struct code_index *index = repair(broken.bytes, broken.size, &result);
            char found[64];
            names(index, found, sizeof(found));
            /* Code bytes of the LOAD cannot be told from wrong ones, so "b" may well be kept. */
            if (!strstr(found, "a ") || !strstr(found, "c d ")) {
                fail_msg("a hole of %zu bytes at %zu leaves %s", length, at, found);
            }
            assert_string_equal(method_of(index, 0, 1)->name, "b.B.inlined()");
        }
    }
}

/* The group that defined method and file 2 is lost; the one that refers to them gets them. */
TEST(carries_definitions_over)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        OWN_DUMP_BUILDER dump = {.swapped = swapped};
        dump_header(&dump);
        dump_group(&dump, T, 0x1000, 32, 2, "a");
        dump_patch32(&dump, dump.record + 40, 1000); /* the LOAD's code_size (low half) */
        if (swapped) {
            dump_patch32(&dump, dump.record + 40, 0);
            dump_patch32(&dump, dump.record + 44, 1000);
        }
        dump_group(&dump, T, 0x2000, 32, 3, "b");
        struct repair_result result;
        OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
        expect_names(index, "b ");
        assert_int_equal(result.carried, 2); /* method 2 and file 2 */
        assert_string_equal(method_of(index, 0, 0)->name, "b");
        assert_string_equal(method_of(index, 0, 1)->name, "a");
        assert_string_equal(method_of(index, 0, 1)->file, "a/A.java");
    }
}

/* Where the definition itself is gone, the method is "?". */
TEST(definition_that_is_gone)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_group(&dump, T, 0x2000, 32, 3, "b");
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    assert_string_equal(method_of(index, 0, 0)->name, "b");
    assert_string_equal(method_of(index, 0, 1)->name, "?");
}

/* Two processes wrote into one file, record by record. */
TEST(two_dumps_interwoven)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_group(&dump, T, 0x1000, 32, 2, "a");
    OWN_DUMP_BUILDER other = dump_start();
    dump_patch32(&other, 20, 777);
    for (uint64_t i = 0; i < 3; i++) {
        dump_group(&other, T, 0x5000 + 0x1000 * i, 32, i + 2, "foreign");
        dump_patch32(&other, other.record + 16, 777);
    }
    dump_bytes(&dump, other.bytes, other.size);
    dump_group(&dump, T, 0x2000, 32, 3, "b");
    dump_bytes(&dump, other.bytes + sizeof(struct jitdump_header),
               other.size - sizeof(struct jitdump_header));
    dump_group(&dump, T, 0x3000, 32, 4, "c");
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    expect_names(index, "a b c ");
    assert_string_equal(method_of(index, 1, 1)->name, "a");
    assert_non_null(strstr(said, "header of another dump"));
    assert_non_null(strstr(said, "process 777"));
}

/* A writer with a lock for each record: DEBUG_INFOs before one another's LOADs. */
TEST(mixed_groups)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin_debug(&dump, T, 0x1000, 1);
    dump_entry(&dump, 0x1000, 1, "a.java");
    dump_end(&dump);
    dump_begin_debug(&dump, T, 0x2000, 1);
    dump_entry(&dump, 0x2000, 2, "b.java");
    dump_end(&dump);
    dump_load(&dump, T, 0x2000, 8, 1, "b");
    dump_load(&dump, T, 0x1000, 8, 2, "a");
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    expect_names(index, "b a ");
    struct code_details details = {0};
    assert_int_equal(code_index_fetch(index, 0, &details), 0);
    assert_string_equal(details.entries[0].file, "b.java");
    assert_int_equal(code_index_fetch(index, 1, &details), 0);
    assert_string_equal(details.entries[0].file, "a.java");
    code_details_free(&details);
}

/* Only what is wrong goes: a trailer, a DEBUG_INFO, an index. */
TEST(leaves_out_the_least)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin_debug(&dump, T, 0x1000, 1);
    dump_entry(&dump, 0x1000, 1, "a.java");
    dump_begin_trailer(&dump);
    struct dump_builder section = {0};
    dump_uleb(&section, 1);
    dump_uleb(&section, 0);
    dump_uleb(&section, 100); /* bytes, of 8 */
    dump_uleb(&section, 0);
    dump_sleb(&section, 1);
    dump_section(&dump, JITDUMP_TRAILER_INLINES, &section);
    dump_end_trailer(&dump);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 8, 1, "a");
    dump_begin_debug(&dump, T, 0x2000, 1);
    dump_entry(&dump, 0x9999, 1, "b.java");
    dump_end(&dump);
    dump_load(&dump, T, 0x2000, 8, 2, "b");
    dump_load(&dump, T, 0x3000, 8, 2, "c");
    dump_move(&dump, T, 0x3000, 0x4000, 8, 2);
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    expect_names(index, "a b c ");
    struct code_details details = {0};
    assert_int_equal(code_index_fetch(index, 0, &details), 0);
    assert_int_equal(details.entry_count, 1);
    assert_int_equal(details.trailer.node_count, 0);
    assert_int_equal(code_index_fetch(index, 1, &details), 0);
    assert_int_equal(details.entry_count, 0);
    assert_int_equal(code_index_blob(index, 2)->code_index, 3);
    assert_int_equal(code_index_at(index, 0x4000, UINT64_MAX, NULL)->blob, 2);
    assert_int_equal(result.moves, 1);
    code_details_free(&details);
}

TEST(records_behind_close_and_unknown_ones)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_group(&dump, T, 0x1000, 32, 2, "a");
    dump_close(&dump, T);
    dump_begin(&dump, 4711, T);
    dump_u64(&dump, 1);
    dump_end(&dump);
    dump_group(&dump, T, 0x2000, 32, 3, "b");
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    expect_names(index, "a b ");
    assert_non_null(strstr(said, "unknown kind 4711"));
}

/* Behind broken bytes, samply's records are recognized like any other. */
TEST(samply_behind_broken_bytes)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_bytes(&dump, "some bytes that are nothing", 27);
    dump_load(&dump, T, 0x1000, 8, 1, "a");
    for (int i = 0; i < 2; i++) {
        dump_begin(&dump, SAMPLY_JIT_TIER, T);
        dump_u32(&dump, SAMPLY_COLOR_RED);
        dump_u32(&dump, 4);
        dump_bytes(&dump, "C2\0", 4);
        dump_end(&dump);
        dump_load(&dump, T, 0x2000, 8, 2 + (uint64_t)i, i ? "c" : "b");
        if (i == 0) {
            dump_bytes(&dump, "and some more", 13);
        }
    }
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    expect_names(index, "a b c ");
    assert_int_equal(result.dropped_bytes, 40);
    assert_null(strstr(said, "TIER"));
}

/* A record that claims more than it holds must not hide those that it swallows. */
TEST(size_that_swallows_others)
{
    size_t ends[5];
    OWN_DUMP_BUILDER dump = four_groups(ends);
    uint32_t size;
    memcpy(&size, dump.bytes + ends[1] + 4, sizeof(size));
    dump_patch32(&dump, ends[1] + 4, (uint32_t)(ends[3] - ends[1])); /* DEBUG_INFO of "b" */
    struct repair_result result;
    OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
    expect_names(index, "a b c d ");
    assert_string_equal(method_of(index, 1, 1)->name, "a");
}

/* Random damage: the result is always sound, and undamaged groups far from it survive. */
TEST(random_damage)
{
    uint64_t seed = random_seed();
    for (int round = 0; round < 400; round++) {
        OWN_DUMP_BUILDER dump = {.swapped = round & 1};
        dump_header(&dump);
        for (uint64_t i = 0; i < 10; i++) {
            dump_group(&dump, T + i, 0x1000 * (i + 1), 16 + random_below(&seed, 50), i + 2, "m");
        }
        uint32_t faults = 1 + random_below(&seed, 4);
        for (uint32_t i = 0; i < faults; i++) {
            size_t at = sizeof(struct jitdump_header) +
                        random_below(&seed, (uint32_t)(dump.size - sizeof(struct jitdump_header)));
            uint32_t length = 1 + random_below(&seed, 8);
            for (size_t k = at; k < at + length && k < dump.size; k++) {
                dump.bytes[k] = (uint8_t)random_next(&seed);
            }
        }
        struct repair_result result;
        OWN(code_index_close) struct code_index *index = repair(dump.bytes, dump.size, &result);
        /* A fault on the edge of two groups costs both. */
        assert_true(code_index_blob_count(index) + (size_t)2 * faults >= 10);
    }
}

TEST(full_disk)
{
    size_t ends[5];
    OWN_DUMP_BUILDER dump = four_groups(ends);
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "sound", &reader), 0);
    struct repair_result result;
    int fd = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW), 0);
    assert_true(repair_dump(reader, fd, note, NULL, &result) < 0);
    close(fd);
    jitdump_reader_close(reader);
}

TEST_MAIN(NULL, NULL)
