/* Reads damaged dumps: cut, torn, in the other byte order, with wrong sizes. */
#include "dump_builder.h"
#include "test.h"

#include "jdtool/base/text.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/jitdump/trailer.h"

#include <elf.h>
#include <errno.h>

OWNED(struct jitdump_reader *, jitdump_reader_close)

static struct jitdump_reader *open_dump(const struct dump_builder *dump)
{
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open_fd(dump_fd(dump), "test", &reader), 0);
    return reader;
}

/* All kinds of records, in one byte order or the other, say what was put into them. */
static void reads_every_record(bool swapped)
{
    OWN_DUMP_BUILDER dump = {.swapped = swapped};
    dump_header(&dump);
    dump_group(&dump, BUILDER_START + 1, 0x7000, 16, 2, "a.A.first()");
    dump_begin(&dump, JIT_CODE_UNWINDING_INFO, BUILDER_START + 2);
    dump_u64(&dump, 8);
    dump_u64(&dump, 3);
    dump_u64(&dump, 0);
    dump_bytes(&dump, "12345678", 8);
    dump_end(&dump);
    dump_load(&dump, BUILDER_START + 2, 0x8000, 0, 7, "empty");
    dump_move(&dump, BUILDER_START + 3, 0x7000, 0x9000, 16, 2);
    dump_begin(&dump, 99, BUILDER_START + 4);
    dump_bytes(&dump, "xyz", 3);
    dump_end(&dump);
    dump_close(&dump, BUILDER_START + 5);

    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    assert_int_equal(jitdump_reader_swapped(reader), swapped);
    const struct jitdump_header *header = jitdump_reader_header(reader);
    assert_int_equal(header->version, 1);
    assert_int_equal(header->elf_mach, 62);
    assert_int_equal(header->pid, BUILDER_PID);
    assert_int_equal(header->timestamp, BUILDER_START);

    struct jitdump_record_view record;
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.id, JIT_CODE_DEBUG_INFO);
    assert_int_equal(record.debug_info.code_addr, 0x7000);
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 1);
    assert_int_equal(entry.address, 0x7000);
    assert_int_equal(entry.line, 10);
    assert_string_equal(entry.file, "a/A.java");
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 1);
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 1);
    assert_int_equal(entry.address, 0x7010);
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 0);

    struct trailer_names *names = trailer_names_new();
    struct trailer trailer = {0};
    const char *why = NULL;
    assert_int_equal(trailer_decode(reader, record.debug_info.entries + walk.at,
                                    record.debug_info.entries_size - walk.at, names, &trailer,
                                    &why),
                     0);
    assert_int_equal(trailer.node_count, 2);
    assert_int_equal(trailer.nodes[1].call_line, 10);
    assert_int_equal(trailer.range_count, 2);
    assert_int_equal(trailer.ranges[1].offset, 4);
    assert_int_equal(trailer.ranges[1].size, 12);
    assert_int_equal(trailer.ranges[1].line, 11);
    assert_int_equal(trailer.facts[JITDUMP_CODE_TIER], 4);
    assert_int_equal(trailer.facts[JITDUMP_CODE_FRAME_SIZE], -1);
    assert_string_equal(trailer_names_method(names, 2)->name, "a.A.first()");
    assert_string_equal(trailer_names_method(names, 1)->file, "b/B.java");
    assert_string_equal(trailer_names_method(names, 3)->name, "?");
    assert_ptr_equal(trailer_range_at(&trailer, 3), &trailer.ranges[0]);
    assert_ptr_equal(trailer_range_at(&trailer, 4), &trailer.ranges[1]);
    assert_ptr_equal(trailer_range_at(&trailer, 15), &trailer.ranges[1]);
    assert_null(trailer_range_at(&trailer, 16));
    trailer_free(&trailer);
    trailer_names_free(names);

    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.id, JIT_CODE_LOAD);
    assert_int_equal(record.timestamp, BUILDER_START + 1);
    assert_int_equal(record.load.pid, BUILDER_PID);
    assert_int_equal(record.load.tid, BUILDER_PID + 1);
    assert_int_equal(record.load.code_addr, 0x7000);
    assert_int_equal(record.load.code_size, 16);
    assert_int_equal(record.load.code_index, 2);
    assert_string_equal(record.load.name, "a.A.first()");
    assert_int_equal(record.load.bytes[15], 15);

    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.id, JIT_CODE_UNWINDING_INFO);
    assert_int_equal(record.unwinding_info.data_size, 8);
    assert_int_equal(record.unwinding_info.eh_frame_hdr_size, 3);
    assert_memory_equal(record.unwinding_info.data, "12345678", 8);

    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.load.code_size, 0);

    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.id, JIT_CODE_MOVE);
    assert_int_equal(record.move.old_code_addr, 0x7000);
    assert_int_equal(record.move.new_code_addr, 0x9000);
    assert_int_equal(record.move.code_index, 2);

    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.id, 99);
    assert_int_equal(record.payload_size, 3);
    assert_memory_equal(record.payload, "xyz", 3);

    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.id, JIT_CODE_CLOSE);
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_END);
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_END);
}

TEST(reads_native_order)
{
    reads_every_record(false);
}

TEST(reads_foreign_order)
{
    reads_every_record(true);
}

/* Dumps of machines that this one is not: big-endian s390x, 32-bit arm. */
TEST(other_machines)
{
    for (int big = 0; big < 2; big++) {
        OWN_DUMP_BUILDER dump = {.swapped = big}; /* as seen from a little-endian machine */
        dump_header(&dump);
        dump_patch32(&dump, 12, big ? EM_S390 : EM_ARM);
        dump_group(&dump, BUILDER_START, 0x7fff0000, 16, 2, "a.A.a()");
        OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
        assert_string_equal(text_machine(jitdump_reader_header(reader)->elf_mach),
                            big ? "s390x" : "arm");
        struct jitdump_record_view record;
        assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
        assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
        assert_int_equal(record.load.code_addr, 0x7fff0000);
        assert_int_equal(record.load.bytes[15], 15);
    }
}

TEST(same_file_marker)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin_debug(&dump, BUILDER_START, 0x1000, 2);
    dump_entry(&dump, 0x1000, 1, "x/X.java");
    dump_entry(&dump, 0x1001, 2, "\xff");
    dump_end(&dump);
    dump_begin_debug(&dump, BUILDER_START, 0x1000, 1);
    dump_entry(&dump, 0x1000, 1, "\xff");
    dump_end(&dump);
    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    struct jitdump_record_view record;
    struct jitdump_entry entry;
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    struct jitdump_entry_walk walk = {0};
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 1);
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 1);
    assert_string_equal(entry.file, "x/X.java");
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), 0);
    /* Nothing came before it that it could stand for. */
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    walk = (struct jitdump_entry_walk){0};
    assert_int_equal(jitdump_entry_next(reader, &record, &walk, &entry), -EINVAL);
}

/* One record made by `make` stands before a sound LOAD; the reader calls it broken and goes on. */
static void expect_broken(void (*make)(struct dump_builder *dump))
{
    OWN_DUMP_BUILDER dump = dump_start();
    make(&dump);
    dump_end(&dump);
    dump_load(&dump, BUILDER_START, 0x5000, 4, 1, "behind");
    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    struct jitdump_record_view record;
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_BROKEN);
    assert_true(strlen(jitdump_reader_error(reader)) > 0);
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_string_equal(record.load.name, "behind");
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_END);
}

static void load_without_fields(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_LOAD, BUILDER_START);
    dump_u64(dump, 0);
}

static void load_without_nul(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(dump, 0x1000, 0, 1);
    dump_bytes(dump, "abc", 3);
}

static void load_with_too_little_code(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(dump, 0x1000, 100, 1);
    dump_string(dump, "name");
    dump_bytes(dump, "code", 4);
}

static void load_with_huge_code(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(dump, 0, UINT64_MAX, 1);
    dump_string(dump, "name");
    dump_bytes(dump, "code", 4);
}

static void load_that_wraps(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(dump, UINT64_MAX - 2, 4, 1);
    dump_string(dump, "name");
    dump_bytes(dump, "code", 4);
}

static void load_that_wraps_without_code(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(dump, 0x1000, UINT64_MAX, 1);
    dump_string(dump, "name");
}

static void move_cut_short(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_MOVE, BUILDER_START);
    dump_load_fields(dump, 0, 0, 0);
}

static void move_that_wraps(struct dump_builder *dump)
{
    dump_move(dump, BUILDER_START, 0, UINT64_MAX - 1, 16, 1);
}

static void debug_without_fields(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_DEBUG_INFO, BUILDER_START);
}

static void debug_with_huge_count(struct dump_builder *dump)
{
    dump_begin_debug(dump, BUILDER_START, 0x1000, UINT64_MAX);
    dump_entry(dump, 0x1000, 1, "f");
}

static void unwinding_too_large(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_UNWINDING_INFO, BUILDER_START);
    dump_u64(dump, UINT64_MAX);
    dump_u64(dump, 0);
    dump_u64(dump, 0);
}

static void unwinding_header_too_large(struct dump_builder *dump)
{
    dump_begin(dump, JIT_CODE_UNWINDING_INFO, BUILDER_START);
    dump_u64(dump, 4);
    dump_u64(dump, 5);
    dump_u64(dump, 0);
    dump_bytes(dump, "1234", 4);
}

TEST(broken_records)
{
    expect_broken(load_without_fields);
    expect_broken(load_without_nul);
    expect_broken(load_with_too_little_code);
    expect_broken(load_with_huge_code);
    expect_broken(load_that_wraps);
    expect_broken(load_that_wraps_without_code);
    expect_broken(move_cut_short);
    expect_broken(move_that_wraps);
    expect_broken(debug_without_fields);
    expect_broken(debug_with_huge_count);
    expect_broken(unwinding_too_large);
    expect_broken(unwinding_header_too_large);
}

TEST(load_without_code_is_sound)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin(&dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(&dump, 0x1000, 64, 1);
    dump_string(&dump, "code=off");
    dump_end(&dump);
    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    struct jitdump_record_view record;
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_int_equal(record.load.code_size, 64);
    assert_null(record.load.bytes);
}

TEST(impossible_size_stops)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin(&dump, JIT_CODE_CLOSE, BUILDER_START);
    dump_patch32(&dump, dump.record + 4, 15);
    dump_load(&dump, BUILDER_START, 0x5000, 4, 1, "behind");
    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    struct jitdump_record_view record;
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_BAD);
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_BAD);
    assert_true(jitdump_reader_resync(reader, UINT64_MAX));
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
    assert_string_equal(record.load.name, "behind");
}

/* Cut anywhere, a dump reads up to the record that the cut is in, and says torn there. */
TEST(torn_at_every_offset)
{
    OWN_DUMP_BUILDER dump = {0};
    size_t ends[16];
    size_t end_count = 0;
    dump_header(&dump);
    ends[end_count++] = dump.size;
    for (uint64_t i = 0; i < 4; i++) {
        dump_group(&dump, BUILDER_START + i, 0x1000 * (i + 1), 32, i + 2, "a.A.method()");
        ends[end_count++] = dump.record;
        ends[end_count++] = dump.size;
    }
    for (size_t size = 0; size <= dump.size; size++) {
        struct jitdump_reader *reader;
        int error = jitdump_reader_open_fd(dump_fd_of(dump.bytes, size), "torn", &reader);
        if (size < sizeof(struct jitdump_header)) {
            assert_int_equal(error, -22);
            continue;
        }
        assert_int_equal(error, 0);
        size_t whole = 0;
        while (whole + 1 < end_count && ends[whole + 1] <= size) {
            whole++;
        }
        struct jitdump_record_view record;
        for (size_t i = 0; i < whole; i++) {
            assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
        }
        assert_int_equal(jitdump_reader_next(reader, &record),
                         ends[whole] == size ? JITDUMP_END : JITDUMP_TORN);
        assert_int_equal(jitdump_reader_offset(reader), ends[whole]);
        jitdump_reader_close(reader);
    }
}

TEST(refuses_what_is_no_dump)
{
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open("/nonexistent/jit-1.dump", &reader), -2);
    assert_int_equal(jitdump_reader_open("/dev/null", &reader), -22);
    assert_int_equal(jitdump_reader_open("/tmp", &reader), -22);

    OWN_DUMP_BUILDER dump = dump_start();
    dump_patch32(&dump, 4, 2); /* a version of the future */
    assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "version", &reader), -22);
    dump_patch32(&dump, 4, 1);
    dump_patch32(&dump, 8, 41); /* a header longer than the file */
    assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "size", &reader), -22);
    dump_patch32(&dump, 8, 39);
    assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "size", &reader), -22);
    dump_patch32(&dump, 0, 0);
    assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "magic", &reader), -22);
}

/* Records beyond the read-ahead window come whole, and so do those behind them. */
TEST(large_records)
{
    OWN_DUMP_BUILDER dump = dump_start();
    for (uint64_t i = 0; i < 5; i++) {
        dump_load(&dump, BUILDER_START, 0x100000 * (i + 1), 300000 + i, i, "large");
        dump_load(&dump, BUILDER_START, 0x1000 * (i + 1), 5, i + 100, "small");
    }
    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    struct jitdump_record_view record;
    for (uint64_t i = 0; i < 5; i++) {
        assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
        assert_int_equal(record.load.bytes[299999], (uint8_t)299999);
        assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
        assert_string_equal(record.load.name, "small");
        assert_int_equal(record.load.bytes[4], 4);
    }
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_END);
}

/* One that rests between any two records reads the same, large ones too. */
TEST(rests_between_records)
{
    OWN_DUMP_BUILDER dump = dump_start();
    for (uint64_t i = 0; i < 20; i++) {
        dump_load(&dump, BUILDER_START, 0x100000 * (i + 1), i % 5 ? 30 : 300000, i, "code");
    }
    OWN(jitdump_reader_close) struct jitdump_reader *reader = open_dump(&dump);
    struct jitdump_record_view record;
    for (uint64_t i = 0; i < 20; i++) {
        jitdump_reader_rest(reader);
        assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_RECORD);
        assert_int_equal(record.load.code_index, i);
        assert_int_equal(record.load.bytes[29], 29);
    }
    jitdump_reader_rest(reader);
    jitdump_reader_refresh(reader);
    assert_int_equal(jitdump_reader_next(reader, &record), JITDUMP_END);
}

TEST_MAIN(NULL, NULL)
