/* Every rule of jdtool verify, kept and broken. */
#include "dump_builder.h"
#include "test.h"

#include "format/samply.h"
#include "jdtool/inspect/verify.h"

struct findings {
    uint32_t count[RULE_COUNT];
    uint32_t total;
};

static void count_finding(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    struct findings *findings = context;
    assert_true(strlen(what) > 0);
    (void)offset;
    findings->count[rule]++;
    findings->total++;
    print_message("  %s: %s\n", verify_rule_text(rule), what);
}

enum { SOUND = RULE_COUNT };

/* Just this rule is broken, once, or none; frees the dump. */
static void expect_of(struct dump_builder dump, int rule)
{
    struct findings findings = {0};
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open_fd(dump_fd(&dump), "test", &reader), 0);
    assert_int_equal(verify_dump(reader, count_finding, &findings), 0);
    jitdump_reader_close(reader);
    dump_free(&dump);
    assert_int_equal(findings.total, rule != SOUND);
    assert_int_equal(rule == SOUND ? 0 : findings.count[rule], rule != SOUND);
}

/* The same; then it is a new one, with its header. */
static void expect(struct dump_builder *dump, int rule)
{
    expect_of(*dump, rule);
    *dump = dump_start();
}

#define T (BUILDER_START + 5)

static void unwinding(struct dump_builder *dump, uint64_t header, uint64_t mapped)
{
    dump_begin(dump, JIT_CODE_UNWINDING_INFO, T);
    dump_u64(dump, 8);
    dump_u64(dump, header);
    dump_u64(dump, mapped);
    dump_bytes(dump, "12345678", 8);
    dump_end(dump);
}

TEST(sound)
{
    for (int swapped = 0; swapped < 2; swapped++) {
        struct dump_builder dump = {.swapped = swapped};
        dump_header(&dump);
        dump_group(&dump, T, 0x1000, 32, 2, "a.A.a()");
        unwinding(&dump, 4, 8);
        dump_group(&dump, T + 1, 0x2000, 32, 3, "a.A.b()");
        dump_group(&dump, T - 1, 0x3000, 32, 4, "a.A.stamped_back()");
        dump_load(&dump, T, 0x4000, 0, 9, "empty");
        dump_move(&dump, T, 0x2000, 0x9000, 32, 3);
        dump_move(&dump, T, 0x9000, 0x2000, 32, 3);
        dump_close(&dump, T + 2);
        expect_of(dump, SOUND);
    }
}

TEST(header)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_patch32(&dump, 32, 6); /* flags */
    expect(&dump, RULE_HEADER);
    dump_patch32(&dump, 12, 0); /* e_machine */
    expect(&dump, RULE_HEADER);
    dump_patch32(&dump, 8, 48);
    dump_u64(&dump, 0);
    expect(&dump, RULE_HEADER);
}

TEST(torn)
{
    OWN_DUMP_BUILDER whole = dump_start();
    dump_group(&whole, T, 0x1000, 32, 2, "a.A.a()");
    size_t first = whole.size;
    dump_group(&whole, T, 0x2000, 32, 3, "a.A.b()");
    for (size_t size = sizeof(struct jitdump_header); size <= whole.size; size++) {
        struct dump_builder dump = {0};
        dump_bytes(&dump, whole.bytes, size);
        bool is_whole =
            size == sizeof(struct jitdump_header) || size == first || size == whole.size;
        expect_of(dump, is_whole ? SOUND : (int)RULE_TORN);
    }
}

TEST(records)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin(&dump, JIT_CODE_LOAD, T);
    dump_load_fields(&dump, UINT64_MAX, 4, 1);
    dump_string(&dump, "wraps");
    dump_bytes(&dump, "code", 4);
    dump_end(&dump);
    expect(&dump, RULE_RECORD);
    dump_begin(&dump, JIT_CODE_CLOSE, T); /* of 0 bytes */
    expect(&dump, RULE_RECORD);
    dump_begin_debug(&dump, T, 0x1000, 2);
    dump_entry(&dump, 0x1000, 1, "only one, and then no NUL any more");
    dump_bytes(&dump, "12345678901234567890", 20);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_RECORD);
    dump_begin(&dump, 77, T);
    dump_end(&dump);
    expect(&dump, RULE_ID);
}

TEST(close_is_last)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_close(&dump, T);
    dump_load(&dump, T, 0x1000, 4, 1, "behind");
    expect(&dump, RULE_CLOSE);
    dump_close(&dump, T);
    dump_load(&dump, T, 0x1000, 4, 1, "behind");
    dump_load(&dump, T, 0x2000, 4, 2, "this, too: it is told once");
    expect(&dump, RULE_CLOSE);
    dump_begin(&dump, JIT_CODE_CLOSE, T);
    dump_u64(&dump, 0);
    dump_end(&dump);
    expect(&dump, RULE_CLOSE);
}

/* Dumps of revisions up to a237d26 end with the stamp of their latest record. */
TEST(close_is_later_than_code)
{
    OWN_DUMP_BUILDER dump = dump_start();
    for (uint64_t later = 0; later < 3; later++) {
        dump_load(&dump, T + 1, 0x1000, 4, 1, "x");
        dump_load(&dump, T, 0x2000, 4, 2, "stamped back");
        dump_close(&dump, T + later);
        expect(&dump, later < 2 ? (int)RULE_CLOSE_STAMP : SOUND);
    }
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    dump_move(&dump, T + 1, 0x1000, 0x2000, 4, 1);
    dump_close(&dump, T + 1);
    expect(&dump, RULE_CLOSE_STAMP);
    dump_close(&dump, BUILDER_START); /* no code, none to end */
    expect(&dump, SOUND);
}

TEST(groups)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_begin_debug(&dump, T, 0x1000, 0);
    dump_end(&dump);
    dump_close(&dump, T);
    expect(&dump, RULE_GROUP);
    dump_begin_debug(&dump, T, 0x1000, 0);
    dump_end(&dump);
    dump_begin_debug(&dump, T, 0x1000, 0);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_GROUP);
    unwinding(&dump, 4, 0);
    dump_close(&dump, T);
    expect(&dump, RULE_GROUP);
    unwinding(&dump, 4, 0);
    unwinding(&dump, 4, 0);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_GROUP);
    dump_begin_debug(&dump, T, 0x2000, 0);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_ADDRESS);
}

TEST(stamps)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_load(&dump, BUILDER_START - 1, 0x1000, 4, 1, "x");
    expect(&dump, RULE_STAMP);
    dump_begin_debug(&dump, T + 1, 0x1000, 0);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_STAMP);
}

TEST(loads)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    dump_load(&dump, T, 0x2000, 4, 1, "y");
    expect(&dump, RULE_CODE_INDEX);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    dump_patch32(&dump, dump.record + 16, 1);
    expect(&dump, RULE_PID);
    dump_load(&dump, T, 0x1000, 4, 1, "");
    expect(&dump, RULE_NAME);
    dump_load(&dump, T, 0x1000, 4, 1, "\xc3(");
    expect(&dump, RULE_NAME);
    dump_load(&dump, T, 0x1000, 4, 1, "\xed\xa0\x80"); /* half of a surrogate pair */
    expect(&dump, RULE_NAME);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    dump_u32(&dump, 0);
    dump_end(&dump);
    expect(&dump, RULE_EXCESS);
}

TEST(moves)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_move(&dump, T, 0x1000, 0x2000, 4, 1);
    expect(&dump, RULE_MOVE);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    dump_move(&dump, T, 0x1001, 0x2000, 4, 1);
    expect(&dump, RULE_MOVE);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    dump_move(&dump, T, 0x1000, 0x2000, 5, 1);
    expect(&dump, RULE_MOVE);
}

static struct dump_builder with_rows(uint64_t first, uint64_t second, uint32_t line,
                                     const char *file)
{
    struct dump_builder dump = dump_start();
    dump_begin_debug(&dump, T, 0x1000, 2);
    dump_entry(&dump, first, 1, "f");
    dump_entry(&dump, second, line, file);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 16, 1, "x");
    return dump;
}

TEST(rows)
{
    expect_of(with_rows(0x1000, 0x1010, 1, "f"), SOUND);
    expect_of(with_rows(0x1008, 0x1007, 1, "f"), RULE_ROW_ORDER);
    expect_of(with_rows(0xfff, 0x1010, 1, "f"), RULE_ROW_INSIDE);
    expect_of(with_rows(0x1000, 0x1011, 1, "f"), RULE_ROW_INSIDE);
    expect_of(with_rows(0x1000, 0x1008, 0, "f"), RULE_ROW_LINE);
    expect_of(with_rows(0x1000, 0x1008, 1, ""), RULE_NAME);
}

TEST(unwinding_rules)
{
    OWN_DUMP_BUILDER dump = dump_start();
    unwinding(&dump, 0, 0);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_UNWINDING);
    unwinding(&dump, 4, 9);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    expect(&dump, RULE_UNWINDING);
}

/* A group whose trailer has one section. */
static struct dump_builder with_section(uint64_t tag, struct dump_builder section)
{
    struct dump_builder dump = dump_start();
    dump_begin_debug(&dump, T, 0x1000, 0);
    dump_begin_trailer(&dump);
    dump_section(&dump, tag, &section);
    dump_end_trailer(&dump);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 16, 1, "x");
    return dump;
}

static struct dump_builder values(size_t count, ...)
{
    struct dump_builder section = {0};
    va_list args;
    va_start(args, count);
    for (size_t i = 0; i < count; i++) {
        dump_uleb(&section, (uint64_t)va_arg(args, int));
    }
    va_end(args);
    return section;
}

TEST(trailers)
{
    struct dump_builder section = {0};
    dump_bytes(&section, "\1no NUL", 7);
    expect_of(with_section(JITDUMP_TRAILER_FILES, section), RULE_TRAILER);

    /* Tags and versions of the future are left alone. */
    expect_of(with_section(1000, values(2, 1, 2)), SOUND);

    /* One id, two paths. */
    section = (struct dump_builder){0};
    dump_file(&section, 1, "a");
    dump_file(&section, 1, "a");
    expect_of(with_section(JITDUMP_TRAILER_FILES, section), SOUND);
    section = (struct dump_builder){0};
    dump_file(&section, 1, "a");
    dump_file(&section, 1, "b");
    expect_of(with_section(JITDUMP_TRAILER_FILES, section), RULE_TRAILER);

    section = (struct dump_builder){0};
    dump_method(&section, 1, 5, 1, "of a file that nobody defines");
    expect_of(with_section(JITDUMP_TRAILER_METHODS, section), RULE_TRAILER_NAMES);
    section = (struct dump_builder){0};
    dump_method(&section, 1, 0, 1, "\xff");
    expect_of(with_section(JITDUMP_TRAILER_METHODS, section), RULE_TRAILER_NAMES);

    /* More nodes than bytes; a parent behind its child; a range of no node; a line below 0. */
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(1, 100)), RULE_TRAILER);
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 2, 0, 0, 1, 1)), RULE_TRAILER);
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 1, 0, 4, 1, 1)), RULE_TRAILER);
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 1, 0, 4, 0, 0x7f)), RULE_TRAILER);

    /* Ranges that together are longer than any code. */
    section = (struct dump_builder){0};
    dump_uleb(&section, 1);
    dump_uleb(&section, 0);
    for (int i = 0; i < 2; i++) {
        dump_uleb(&section, UINT32_MAX);
        dump_uleb(&section, 0);
        dump_sleb(&section, 1);
    }
    expect_of(with_section(JITDUMP_TRAILER_INLINES, section), RULE_TRAILER);

    /* Method 9 is not defined. */
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 1, 9, 16, 0, 1)), RULE_TRAILER_NAMES);

    /* 0 -> 1, 0 -> 2, 1 -> 3 is breadth-first. */
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(11, 4, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1)),
              RULE_TRAILER_TREE);
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(11, 4, 0, 0, 0, 1, 0, 1, 1, 0, 0, 1)),
              SOUND);
    /* An empty range; ranges beyond the code. */
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 1, 0, 0, 0, 1)), RULE_TRAILER_TREE);
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 1, 0, 17, 0, 1)), RULE_TRAILER_TREE);
    expect_of(with_section(JITDUMP_TRAILER_INLINES, values(5, 1, 0, 16, 0, 1)), SOUND);

    expect_of(with_section(JITDUMP_TRAILER_CODE, values(2, JITDUMP_CODE_KIND, 5)),
              RULE_TRAILER_FACTS);
    expect_of(
        with_section(JITDUMP_TRAILER_CODE, values(2, JITDUMP_CODE_TIER, JITDUMP_TIER_JVMCI + 1)),
        RULE_TRAILER_FACTS);
    expect_of(with_section(JITDUMP_TRAILER_CODE, values(2, JITDUMP_CODE_FRAME_COMPLETE, 17)),
              RULE_TRAILER_FACTS);
    expect_of(with_section(JITDUMP_TRAILER_CODE, values(2, 99, 1)), SOUND);
}

/* What a DEBUG_INFO2 of two functions says; each test changes one thing. */
struct inlines {
    uint32_t pad;
    uint32_t name_index;
    uint32_t depth;
    uint32_t ranges;
    uint32_t function;
    uint32_t range_size;
    uint32_t line_offset;
    uint32_t line_file;
    uint32_t functions;
};
static const struct inlines right = {.pad = 2,
                                     .name_index = 1,
                                     .depth = 1,
                                     .ranges = 1,
                                     .function = 1,
                                     .range_size = 8,
                                     .line_offset = 4,
                                     .line_file = 0,
                                     .functions = 2};

static struct dump_builder with_inlines(struct inlines wanted)
{
    struct dump_builder dump = dump_start();
    dump_begin(&dump, SAMPLY_JIT_CODE_DEBUG_INFO2, T);
    dump_u32(&dump, 1);
    dump_u32(&dump, 2 + wanted.pad);
    dump_u32(&dump, 2);
    dump_u32(&dump, 4);
    dump_u32(&dump, wanted.functions);
    dump_u32(&dump, 2); /* inline calls */
    dump_u32(&dump, 2); /* ranges */
    dump_u32(&dump, 2); /* lines */
    dump_string(&dump, "f");
    dump_bytes(&dump, "\0\0\0\0\0\0\0\0", wanted.pad);
    dump_string(&dump, "o");
    dump_string(&dump, "i");
    for (uint32_t i = 0; i < wanted.functions; i++) {
        dump_u32(&dump, i ? wanted.name_index : 0);
        for (int k = 0; k < 4; k++) {
            dump_u32(&dump, 0);
        }
    }
    for (uint32_t i = 0; i < 2; i++) {
        dump_u32(&dump, i ? wanted.depth : 0);
        dump_u32(&dump, i ? wanted.ranges : 1);
        dump_u32(&dump, i ? wanted.function : 1);
        dump_u32(&dump, 1);
        dump_u32(&dump, 0);
    }
    dump_u32(&dump, 0);
    dump_u32(&dump, 16);
    dump_u32(&dump, 8);
    dump_u32(&dump, wanted.range_size);
    for (uint32_t i = 0; i < 2; i++) {
        dump_u32(&dump, i ? wanted.line_offset : 2);
        dump_u32(&dump, i ? wanted.line_file : 0);
        dump_u32(&dump, 1);
        dump_u32(&dump, 0);
    }
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 16, 1, "x");
    return dump;
}

#define EXPECT_WRONG(field, value)                                                                 \
    do {                                                                                           \
        struct inlines wrong = right;                                                              \
        wrong.field = value;                                                                       \
        expect_of(with_inlines(wrong), RULE_SAMPLY);                                               \
    } while (0)

TEST(samply_inlines)
{
    expect_of(with_inlines(right), SOUND);
    EXPECT_WRONG(pad, 6);
    EXPECT_WRONG(pad, 1);
    EXPECT_WRONG(name_index, 2);
    EXPECT_WRONG(depth, 2);
    EXPECT_WRONG(ranges, 0);
    EXPECT_WRONG(ranges, 2);
    EXPECT_WRONG(function, 2);
    EXPECT_WRONG(range_size, 9);
    EXPECT_WRONG(line_offset, 1);
    EXPECT_WRONG(line_offset, 17);
    EXPECT_WRONG(line_file, 1);
    /* More lists than bytes. */
    struct dump_builder dump = with_inlines(right);
    dump_patch32(&dump, sizeof(struct jitdump_header) + 44, UINT32_MAX);
    expect_of(dump, RULE_SAMPLY);
    /* No LOAD behind it. */
    dump = with_inlines(right);
    dump.size = dump.record;
    dump_close(&dump, T);
    expect_of(dump, RULE_GROUP);
}

static struct dump_builder with_tier(uint32_t color, uint32_t name_size)
{
    struct dump_builder dump = dump_start();
    dump_begin(&dump, SAMPLY_JIT_TIER, T);
    dump_u32(&dump, color);
    dump_u32(&dump, name_size);
    dump_bytes(&dump, "C1\0", 4);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    return dump;
}

static struct dump_builder with_source(uint32_t path_size, uint32_t text_size)
{
    struct dump_builder dump = dump_start();
    dump_begin(&dump, SAMPLY_EMBEDDED_SOURCE_FILE, T);
    dump_u32(&dump, path_size);
    dump_u32(&dump, text_size);
    dump_bytes(&dump, "A.j\0class A {}\0\0", 16);
    dump_end(&dump);
    dump_load(&dump, T, 0x1000, 4, 1, "x");
    return dump;
}

TEST(samply_tiers_and_sources)
{
    expect_of(with_tier(SAMPLY_COLOR_RED, 4), SOUND);
    expect_of(with_tier(SAMPLY_COLOR_COUNT, 4), RULE_SAMPLY);
    expect_of(with_tier(SAMPLY_COLOR_RED, 8), RULE_SAMPLY);
    expect_of(with_tier(SAMPLY_COLOR_RED, 3), RULE_SAMPLY);
    expect_of(with_source(4, 10), SOUND);
    expect_of(with_source(4, 13), RULE_SAMPLY);
    expect_of(with_source(UINT32_MAX, 10), RULE_SAMPLY);
    expect_of(with_source(4, 8), RULE_SAMPLY);
}

TEST_MAIN(NULL, NULL)
