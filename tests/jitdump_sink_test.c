/* Writes every record byte by byte, with threads, failing disks, forks and kills. */
#include "decoded_dump.h"
#include "faulty_disk.h"
#include "random.h"
#include "sanitized.h"
#include "scratch.h"
#include "test.h"

#include "one_sink.h"
#include "writer/message.h"
#include "writer/stamp.h"

#include <elf.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int set_up(void **state)
{
    faulty_disk_mend();
    message_set_level(-1);
    return scratch_create(state);
}

static const char *path_of_pid(void **state, pid_t pid)
{
    char name[64];
    snprintf(name, sizeof(name), "jit-%d.dump", pid);
    return scratch_path(state, name);
}

static struct occupancy *open_dump(void **state)
{
    const struct jitdump_sink_options options = {.log.directory = *state,
                                                 .log.directory_fd = AT_FDCWD};
    struct occupancy *sink = NULL;
    assert_int_equal(open_jitdump(&options, &sink), 0);
    return sink;
}

static struct decoded_dump read_dump(void **state)
{
    struct decoded_dump dump;
    decoded_dump_read(&dump, path_of_pid(state, getpid()));
    return dump;
}

static struct decoded_dump close_dump(struct occupancy *sink, void **state)
{
    occupancy_close(sink);
    return read_dump(state);
}

/* Code whose bytes and size follow from its address, so that readers of the dump can check them. */
static uint8_t code_bytes[4096];

static struct code plain_code(uint64_t address, uint64_t size, const char *name)
{
    return (struct code){.address = address,
                         .size = size,
                         .bytes = code_bytes,
                         .name = name,
                         .facts = CODE_FACTS_UNKNOWN};
}

TEST_WITH(header_is_there_at_once_and_mapped, set_up, scratch_remove)
{
    uint64_t before = stamp_monotonic();
    struct occupancy *sink = open_dump(state);
    OWN_DECODED_DUMP dump = read_dump(state);
    assert_int_equal(dump.size, 40);
    uint8_t elf[20];
    FILE *self = fopen("/proc/self/exe", "re");
    assert_int_equal(fread(elf, 1, sizeof(elf), self), sizeof(elf));
    fclose(self);
    assert_int_equal(u32_at(dump.bytes + 12), decoded_number(elf + 18, 2));
    assert_int_equal(u32_at(dump.bytes + 20), getpid());
    assert_true(u64_at(dump.bytes + 24) >= before && u64_at(dump.bytes + 24) <= stamp_monotonic());
    assert_int_equal(u64_at(dump.bytes + 32), 0);

    char *maps = (char *)scratch_read("/proc/self/maps", NULL);
    char *line = strstr(maps, (const char *)*state);
    assert_non_null(line);
    while (line > maps && line[-1] != '\n') {
        line--;
    }
    assert_non_null(strstr(line, " r-xp 00000000 "));
    free(maps);

    occupancy_close(sink);
    maps = (char *)scratch_read("/proc/self/maps", NULL);
    assert_null(strstr(maps, (const char *)*state));
    free(maps);
}

TEST_WITH(load_has_every_field, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code code = plain_code(0x7f1122334450, 5, "java.lang.String.hashCode()");
    code.bytes = "\x55\x48\0\xc3\x90";
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    struct decoded_dump dump = read_dump(state);
    assert_int_equal(dump.count, 1);
    const uint8_t *load = dump.records[0].at;
    assert_int_equal(dump.records[0].id, DECODED_LOAD);
    assert_int_equal(dump.records[0].size, 56 + 28 + 5);
    assert_int_equal(dump.records[0].stamp, u64_at(dump.bytes + 24)); /* nobody was there */
    assert_int_equal(u32_at(load + 16), getpid());
    assert_int_equal(u32_at(load + 20), syscall(SYS_gettid));
    assert_int_equal(u64_at(load + 24), 0x7f1122334450);
    assert_int_equal(u64_at(load + 32), 0x7f1122334450);
    assert_int_equal(u64_at(load + 40), 5);
    assert_true(u64_at(load + 48) > 0);
    assert_memory_equal(load + 56, "java.lang.String.hashCode()\0\x55\x48\0\xc3\x90", 33);
    decoded_dump_free(&dump);

    occupancy_close(sink);
    dump = read_dump(state);
    assert_int_equal(dump.count, 2);
    assert_int_equal(dump.records[1].id, DECODED_CLOSE);
    assert_int_equal(dump.records[1].size, 16);
    decoded_dump_free(&dump);
}

TEST_WITH(code_may_be_empty_or_left_out, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code empty = plain_code(0x1000, 0, "empty");
    struct code bare = plain_code(0x2000, 0x100, "bare");
    bare.bytes = NULL;
    assert_int_equal(occupancy_load(sink, &empty, NULL), 0);
    assert_int_equal(occupancy_load(sink, &bare, NULL), 0);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(dump.records[0].size, 56 + 6);
    assert_int_equal(u64_at(dump.records[0].at + 40), 0);
    /* perf takes the code's place as the record's end minus code_size. */
    assert_int_equal(dump.records[1].size, 56 + 5 + 0x100);
    assert_int_equal(u64_at(dump.records[1].at + 40), 0x100);
    for (size_t i = 0; i < 0x100; i++) {
        assert_int_equal(dump.records[1].at[56 + 5 + i], 0);
    }
}

/* A method with another one inlined into it, twice, and a third one into that. */
static struct source_file map_file = {.path = "java/util/HashMap.java", .id = 1};
static struct source_file objects_file = {.path = "java/util/Objects.java", .id = 2};
static struct method get = {.name = "java.util.HashMap.get(java.lang.Object)",
                            .file = &map_file,
                            .first_line = 560,
                            .id = 300};
static struct method hash = {
    .name = "java.util.HashMap.hash(java.lang.Object)", .file = &map_file, .id = 2};
static struct method check = {
    .name = "java.util.Objects.check()", .file = &objects_file, .first_line = 9, .id = 7};
static struct method stranger = {.name = "stranger", .id = 8};

static const struct code_row rows[] = {
    {0, 562, &map_file}, {12, 338, &map_file}, {20, 9, &objects_file}, {24, 562, &map_file}};
static const struct inline_node nodes[] = {
    {.method = &get},
    {.method = &hash, .parent = 0, .call_line = 562},
    {.method = &check, .parent = 1, .call_line = 338},
    {.method = &stranger, .parent = 0, .call_line = 0},
};
static const struct inline_range ranges[] = {
    {0, 0, 562}, {12, 1, 338}, {20, 2, 9}, {24, 0, 562}, {200, 3, 0}};

static struct code inlined_code(uint64_t address)
{
    struct code code = plain_code(address, 1000, get.name);
    code.method = &get;
    code.rows = rows;
    code.row_count = 4;
    code.nodes = nodes;
    code.node_count = 4;
    code.ranges = ranges;
    code.range_count = 5;
    code.ranges_end = 900;
    code.facts.kind = JITDUMP_KIND_NMETHOD;
    code.facts.tier = 4;
    code.facts.frame_size = 0;
    code.facts.compile_id = 100000;
    return code;
}

TEST_WITH(debug_info_has_rows_up_to_the_end, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code code = inlined_code(0x40000);
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    decoded_dump_check_groups(&dump);
    assert_int_equal(dump.records[0].id, DECODED_DEBUG_INFO);
    struct decoded_entry entries[8];
    struct decoded_bytes rest;
    assert_int_equal(decoded_entries(&dump.records[0], entries, 8, &rest), 5);
    for (size_t i = 0; i < 5; i++) {
        const struct code_row *row = &rows[i < 4 ? i : 3];
        assert_int_equal(entries[i].address, 0x40000 + (i < 4 ? row->offset : 1000));
        assert_int_equal(entries[i].line, row->line);
        assert_int_equal(entries[i].discriminator, 0);
        assert_string_equal(entries[i].file, row->file->path);
    }
}

static void check_definitions(struct decoded_bytes trailer)
{
    struct decoded_bytes section;
    assert_true(decoded_section(trailer, JITDUMP_TRAILER_FILES, &section));
    assert_int_equal(decoded_uleb(&section), 1);
    assert_string_equal(decoded_string(&section), "java/util/HashMap.java");
    assert_int_equal(decoded_uleb(&section), 2);
    assert_string_equal(decoded_string(&section), "java/util/Objects.java");
    assert_ptr_equal(section.at, section.end);

    static const struct method *const defined[] = {&get, &hash, &check, &stranger};
    assert_true(decoded_section(trailer, JITDUMP_TRAILER_METHODS, &section));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(decoded_uleb(&section), defined[i]->id);
        assert_int_equal(decoded_uleb(&section), defined[i]->file ? defined[i]->file->id : 0);
        assert_int_equal(decoded_uleb(&section), defined[i]->first_line);
        assert_string_equal(decoded_string(&section), defined[i]->name);
    }
    assert_ptr_equal(section.at, section.end);
}

static void check_inlines(struct decoded_bytes trailer)
{
    struct decoded_bytes section;
    assert_true(decoded_section(trailer, JITDUMP_TRAILER_INLINES, &section));
    assert_int_equal(decoded_uleb(&section), 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(decoded_uleb(&section), nodes[i].method->id);
        if (i > 0) {
            assert_int_equal(decoded_uleb(&section), nodes[i].parent);
            assert_int_equal(decoded_uleb(&section), nodes[i].call_line);
        }
    }
    int64_t line = 0;
    for (size_t i = 0; i < 5; i++) {
        uint64_t end = i < 4 ? ranges[i + 1].offset : 900;
        assert_int_equal(decoded_uleb(&section), end - ranges[i].offset);
        assert_int_equal(decoded_uleb(&section), ranges[i].node);
        line += decoded_sleb(&section);
        assert_int_equal(line, ranges[i].line);
    }
    assert_ptr_equal(section.at, section.end);
}

TEST_WITH(trailer_defines_each_method_once_a_dump, set_up, scratch_remove)
{
    for (int session = 0; session < 2; session++) {
        struct occupancy *sink = open_dump(state);
        struct code first = inlined_code(0x40000);
        struct code second = inlined_code(0x50000);
        first.replayed = second.replayed = true; /* or a slow machine is ms late */
        assert_int_equal(occupancy_load(sink, &first, NULL), 0);
        assert_int_equal(occupancy_load(sink, &second, NULL), 0);
        OWN_DECODED_DUMP dump = close_dump(sink, state);
        struct decoded_entry entries[8];
        struct decoded_bytes trailer;
        decoded_entries(&dump.records[0], entries, 8, &trailer);
        check_definitions(trailer);
        check_inlines(trailer);
        struct decoded_bytes section;
        assert_true(decoded_section(trailer, JITDUMP_TRAILER_CODE, &section));
        assert_memory_equal(section.at, "\1\1\2\4\3\0\7\xa0\x8d\6", 10);
        assert_int_equal(section.end - section.at, 10);

        decoded_entries(&dump.records[2], entries, 8, &trailer);
        assert_false(decoded_section(trailer, JITDUMP_TRAILER_FILES, &section));
        assert_false(decoded_section(trailer, JITDUMP_TRAILER_METHODS, &section));
        check_inlines(trailer);
        assert_int_equal(unlink(path_of_pid(state, getpid())), 0);
    }
}

TEST_WITH(stub_has_a_trailer_without_entries, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code code = plain_code(0x1000, 16, "stub");
    code.facts.kind = JITDUMP_KIND_STUB;
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    struct decoded_entry entries[1];
    struct decoded_bytes trailer;
    assert_int_equal(decoded_entries(&dump.records[0], entries, 1, &trailer), 0);
    struct decoded_bytes section;
    assert_true(decoded_section(trailer, JITDUMP_TRAILER_CODE, &section));
    assert_memory_equal(section.at, "\1\3", 2);
    assert_false(decoded_section(trailer, JITDUMP_TRAILER_INLINES, &section));
}

TEST_WITH(move_tells_whose_code_it_is, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code code = plain_code(0x1000, 0x100, "mover");
    occupancy_load(sink, &code, NULL);
    assert_int_equal(occupancy_move(sink, 0x1000, 0x3000, 0x100), 0);
    assert_int_equal(occupancy_move(sink, 0x1000, 0x5000, 0x100), -ENOENT);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(dump.count, 3);
    const uint8_t *move = dump.records[1].at;
    assert_int_equal(dump.records[1].id, DECODED_MOVE);
    assert_int_equal(dump.records[1].size, 64);
    assert_true(dump.records[1].stamp > dump.records[0].stamp);
    assert_int_equal(u32_at(move + 16), getpid());
    assert_int_equal(u32_at(move + 20), syscall(SYS_gettid));
    assert_int_equal(u64_at(move + 24), 0x3000);
    assert_int_equal(u64_at(move + 32), 0x1000);
    assert_int_equal(u64_at(move + 40), 0x3000);
    assert_int_equal(u64_at(move + 48), 0x100);
    assert_int_equal(u64_at(move + 56), u64_at(dump.records[0].at + 48));
}

TEST_WITH(code_counts_from_when_its_range_was_given_up, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code old = plain_code(0x1000, 0x100, "old");
    struct code new = plain_code(0x1080, 0x100, "new");
    occupancy_load(sink, &old, NULL);
    uint64_t before = stamp_monotonic();
    occupancy_unload(sink, 0x1000, -1);
    uint64_t behind = stamp_monotonic();
    occupancy_load(sink, &new, NULL);
    occupancy_load(sink, &old, NULL); /* reaches into the new one, which nobody reported as gone */
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(dump.count, 4);
    assert_true(dump.records[1].stamp >= before && dump.records[1].stamp <= behind);
    assert_true(dump.records[2].stamp > dump.records[1].stamp);
}

TEST_WITH(replay_and_events_do_not_double, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code method = inlined_code(0x1000);
    struct code stub = plain_code(0x8000, 0x100, "stub");
    occupancy_load(sink, &method, NULL);
    occupancy_load(sink, &stub, NULL);
    method.replayed = true;
    stub.replayed = true;
    occupancy_load(sink, &method, NULL);
    occupancy_load(sink, &stub, NULL);
    method.replayed = false;
    occupancy_load(sink, &method,
                   NULL); /* the same compilation: the event of what was replayed before */
    struct code around = plain_code(0x7f80, 0x200, "stubs");
    around.replayed = true;
    around.facts.kind = JITDUMP_KIND_STUB;
    occupancy_load(sink, &around, NULL);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(decoded_dump_check_groups(&dump), 4);
    const uint8_t *left = dump.records[4].at;
    const uint8_t *right = dump.records[6].at;
    assert_int_equal(u64_at(left + 32), 0x7f80);
    assert_int_equal(u64_at(left + 40), 0x80);
    assert_memory_equal(left + 56 + 6, code_bytes, 0x80);
    assert_int_equal(u64_at(right + 32), 0x8100);
    assert_memory_equal(right + 56 + 6, code_bytes + 0x180, 0x80);
}

TEST_WITH(indices_are_unique_in_the_process, set_up, scratch_remove)
{
    uint64_t indices[2];
    for (int session = 0; session < 2; session++) {
        struct occupancy *sink = open_dump(state);
        struct code code = plain_code(0x1000, 8, "x");
        occupancy_load(sink, &code, NULL);
        OWN_DECODED_DUMP dump = close_dump(sink, state);
        indices[session] = u64_at(dump.records[0].at + 48);
        assert_int_equal(unlink(path_of_pid(state, getpid())), 0);
    }
    assert_true(indices[0] < indices[1]);
}

/* Threads */

enum { THREADS = 8, LOADS_PER_THREAD = SANITIZED ? 600 : 2000 };

struct loader {
    pthread_t thread;
    struct occupancy *sink;
    uint64_t base;
};

static void *load_many(void *argument)
{
    struct loader *loader = argument;
    for (uint64_t i = 0; i < LOADS_PER_THREAD; i++) {
        struct code code = inlined_code(loader->base + i % 500 * 4096);
        code.facts.compile_id = (int32_t)(loader->base + i);
        if (i % 3 == 0) {
            occupancy_unload(loader->sink, code.address, -1);
        }
        if (occupancy_load(loader->sink, &code, NULL) != 0) {
            return "failed";
        }
    }
    return NULL;
}

TEST_WITH(groups_stay_whole_with_many_threads, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct loader loaders[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        loaders[i] = (struct loader){.sink = sink, .base = (i + 1) << 24};
        assert_int_equal(pthread_create(&loaders[i].thread, NULL, load_many, &loaders[i]), 0);
    }
    struct sink_stats stats;
    for (size_t i = 0; i < THREADS; i++) {
        occupancy_stats(sink, 0, &stats);
        void *result;
        pthread_join(loaders[i].thread, &result);
        assert_null(result);
    }
    occupancy_stats(sink, 0, &stats);
    assert_int_equal(stats.records, THREADS * LOADS_PER_THREAD);
    assert_int_equal(stats.dropped, 0);
    assert_string_equal(stats.path, path_of_pid(state, getpid()));
    uint64_t bytes = stats.bytes;
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(dump.size, bytes + 16);
    assert_int_equal(decoded_dump_check_groups(&dump), THREADS * LOADS_PER_THREAD);
    assert_int_equal(dump.count, 2 * THREADS * LOADS_PER_THREAD + 1);
    size_t definitions = 0;
    for (size_t i = 0; i < dump.count - 1; i += 2) {
        struct decoded_entry entries[8];
        struct decoded_bytes trailer;
        struct decoded_bytes section;
        decoded_entries(&dump.records[i], entries, 8, &trailer);
        definitions += decoded_section(trailer, JITDUMP_TRAILER_METHODS, &section);
        if (i > 0) {
            assert_int_equal(definitions, 1); /* by the first group, and before any use */
        }
    }
}

/* Faults */

TEST_WITH(bad_disk_leaves_whole_groups, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code code = inlined_code(0x10000);
    faulty_disk.chunk = 7;
    faulty_disk.interrupt = true;
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    faulty_disk.chunk = 0;
    faulty_disk.error = ENOSPC;
    faulty_disk.room = 900; /* the DEBUG_INFO and a part of the LOAD */
    code = inlined_code(0x20000);
    assert_int_equal(occupancy_load(sink, &code, NULL), -ENOSPC);
    faulty_disk.error = 0;
    assert_int_equal(occupancy_load(sink, &code, NULL), -EPIPE);
    assert_true(occupancy_is_dead(sink));
    assert_int_equal(occupancy_move(sink, 0x10000, 0x30000, 1000), -EPIPE);
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    assert_true(stats.failed);
    assert_int_equal(stats.records, 1);
    assert_int_equal(stats.dropped, 2);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_false(dump.torn);
    assert_int_equal(dump.count, 2); /* and no CLOSE */
}

TEST_WITH(max_is_kept_at_a_record_boundary, set_up, scratch_remove)
{
    const struct jitdump_sink_options options = {
        .log.directory = *state, .log.directory_fd = AT_FDCWD, .log.max_bytes = 5000};
    struct occupancy *sink = NULL;
    assert_int_equal(open_jitdump(&options, &sink), 0);
    int error = 0;
    for (uint64_t i = 0; i < 10 && !error; i++) {
        struct code code = inlined_code(0x10000 + i * 0x1000);
        code.facts.compile_id = (int32_t)i;
        error = occupancy_load(sink, &code, NULL);
    }
    assert_int_equal(error, -EFBIG);
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    assert_true(stats.failed);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_true(dump.size <= 5000 && dump.size > 5000 - 1500);
    decoded_dump_check_groups(&dump);
    assert_int_equal(dump.records[dump.count - 1].id, DECODED_CLOSE);
}

/* To the byte, and with room for the CLOSE. */
TEST_WITH(max_counts_the_end_mark, set_up, scratch_remove)
{
    /* header 40, a LOAD 56 + 2 + 16, CLOSE 16 */
    for (uint64_t max = 40 + 74 + 15; max <= 40 + 74 + 16; max++) {
        const struct jitdump_sink_options options = {
            .log.directory = *state, .log.directory_fd = AT_FDCWD, .log.max_bytes = max};
        struct occupancy *sink = NULL;
        assert_int_equal(open_jitdump(&options, &sink), 0);
        struct code code = plain_code(0x1000, 16, "x");
        assert_int_equal(occupancy_load(sink, &code, NULL), max == 40 + 74 + 16 ? 0 : -EFBIG);
        OWN_DECODED_DUMP dump = close_dump(sink, state);
        assert_true(dump.size <= max);
        assert_int_equal(dump.records[dump.count - 1].id, DECODED_CLOSE);
        assert_int_equal(unlink(path_of_pid(state, getpid())), 0);
    }
}

/* Readers take the CLOSE's stamp for the end of all code: it is the moment of closing, of the
 * dump's clock. */
TEST_WITH(the_end_mark_bears_the_moment_of_closing, set_up, scratch_remove)
{
#ifdef __x86_64__
    const bool clocks[] = {false, true};
#else
    const bool clocks[] = {false};
#endif
    for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
        const struct jitdump_sink_options options = {
            .log.directory = *state, .log.directory_fd = AT_FDCWD, .log.tsc = clocks[i]};
        struct occupancy *sink = NULL;
        assert_int_equal(open_jitdump(&options, &sink), 0);
        const struct code code = plain_code(0x1000, 16, "counts from the dump's beginning");
        assert_int_equal(occupancy_load(sink, &code, NULL), 0);
        uint64_t before = stamp_now(clocks[i]);
        OWN_DECODED_DUMP dump = close_dump(sink, state);
        assert_int_equal(dump.count, 2);
        assert_true(dump.records[0].stamp < before);
        assert_int_equal(dump.records[1].id, DECODED_CLOSE);
        assert_in_range(dump.records[1].stamp, before, stamp_now(clocks[i]));
        assert_int_equal(unlink(path_of_pid(state, getpid())), 0);
    }
}

TEST_WITH(thousands_of_methods_are_defined_once_each, set_up, scratch_remove)
{
    enum { METHODS = SANITIZED ? 2000 : 5000 };
    static struct method methods[METHODS];
    struct occupancy *sink = open_dump(state);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < METHODS; i++) {
            methods[i].name = "m"; /* all else stays the dump's from the first round on */
            methods[i].id = i + 1;
            struct inline_node node = {.method = &methods[i]};
            struct inline_range range = {.offset = 0, .node = 0, .line = 1};
            struct code code = plain_code(0x10000 + (uint64_t)i * 64, 16, round ? "n" : "m");
            code.method = &methods[i];
            code.nodes = &node;
            code.node_count = 1;
            code.ranges = &range;
            code.range_count = 1;
            code.ranges_end = 16;
            assert_int_equal(occupancy_load(sink, &code, NULL), 0);
        }
    }
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    size_t defined = 0;
    for (size_t i = 0; i < dump.count; i++) {
        struct decoded_entry entries[1];
        struct decoded_bytes trailer;
        struct decoded_bytes section;
        if (dump.records[i].id == DECODED_DEBUG_INFO) {
            decoded_entries(&dump.records[i], entries, 1, &trailer);
            defined += decoded_section(trailer, JITDUMP_TRAILER_METHODS, &section);
        }
    }
    assert_int_equal(defined, METHODS);
}

TEST_WITH(giant_is_left_out_and_its_definitions_come_later, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code giant = inlined_code(0x10000);
    giant.size = UINT64_C(1) << 40;
    assert_int_equal(occupancy_load(sink, &giant, NULL), -ENOMEM);
    struct code code = inlined_code(0x10000);
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(decoded_dump_check_groups(&dump), 1);
    struct decoded_entry entries[8];
    struct decoded_bytes trailer;
    decoded_entries(&dump.records[0], entries, 8, &trailer);
    check_definitions(trailer);
}

TEST_WITH(open_says_what_is_wrong, set_up, scratch_remove)
{
    struct jitdump_sink_options options = {.log.directory = scratch_path(state, "missing"),
                                           .log.directory_fd = AT_FDCWD};
    struct occupancy *sink = NULL;
    assert_int_equal(open_jitdump(&options, &sink), -ENOENT);
    const char *path = path_of_pid(state, getpid());
    assert_int_equal(symlink("/dev/null", path), 0);
    options.log.directory = *state;
    assert_int_equal(open_jitdump(&options, &sink), -EISDIR);
    assert_int_equal(unlink(path), 0);
    scratch_write(scratch_path(state, "theirs"), "a file of somebody's");
    assert_int_equal(symlink("theirs", path), 0); /* nor is a link to a file followed */
    assert_int_equal(open_jitdump(&options, &sink), -EISDIR);
    assert_int_equal(unlink(path), 0);
    faulty_disk.error = ENOSPC;
    assert_int_equal(open_jitdump(&options, &sink), -ENOSPC);
    assert_int_equal(access(path, F_OK), -1);
}

/* As of a JVM of the same number, in another container, on the same volume. */
TEST_WITH(dump_of_another_process_is_left_alone, set_up, scratch_remove)
{
    const char *path = path_of_pid(state, getpid());
    scratch_write(path, "another's");
    for (int i = 2; i < 4; i++) {
        struct occupancy *sink = open_dump(state);
        struct sink_stats stats;
        occupancy_stats(sink, 0, &stats);
        char expected[256];
        snprintf(expected, sizeof(expected), "%s/session-%d/jit-%d.dump", (const char *)*state, i,
                 getpid());
        assert_string_equal(stats.path, expected);
        occupancy_close(sink);
        OWN_DECODED_DUMP dump;
        decoded_dump_read(&dump, expected);
        assert_int_equal(unlink(expected), 0);
    }
    char *text = (char *)scratch_read(path, NULL);
    assert_string_equal(text, "another's");
    free(text);
    /* Nor is a table of methods taken to be ours. */
    assert_int_equal(unlink(path), 0);
    char table[64];
    snprintf(table, sizeof(table), "jit-%d.methods", getpid());
    scratch_write(scratch_path(state, table), "another's");
    struct occupancy *sink = open_dump(state);
    assert_int_equal(access(path, F_OK), -1);
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    assert_int_equal(unlink(stats.path), 0);
    occupancy_close(sink);
}

TEST_WITH(fork_writes_nothing, set_up, scratch_remove)
{
    struct occupancy *sink = open_dump(state);
    struct code code = inlined_code(0x10000);
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        struct code other = inlined_code(0x20000);
        bool refused = occupancy_load(sink, &other, NULL) == -EPIPE && occupancy_is_dead(sink);
        occupancy_close(sink);
        /* A session of the child's own has its own thread id. */
        struct occupancy *own = open_dump(state);
        refused = refused && occupancy_load(own, &other, NULL) == 0;
        occupancy_close(own);
        _exit(refused ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct decoded_dump dump = read_dump(state);
    assert_int_equal(dump.count, 2);
    decoded_dump_free(&dump);
    decoded_dump_read(&dump, path_of_pid(state, child));
    assert_int_equal(dump.count, 3);
    assert_int_equal(u32_at(dump.records[1].at + 16), child);
    assert_int_equal(u32_at(dump.records[1].at + 20), child);
    decoded_dump_free(&dump);

    struct code more = inlined_code(0x30000);
    assert_int_equal(occupancy_load(sink, &more, NULL), 0);
    occupancy_close(sink);
}

TEST_WITH(tsc_is_the_processors_clock, set_up, scratch_remove)
{
#ifdef __x86_64__
    const struct jitdump_sink_options options = {
        .log.directory = *state, .log.directory_fd = AT_FDCWD, .log.tsc = true};
    struct occupancy *sink = NULL;
    uint64_t before = __builtin_ia32_rdtsc();
    assert_int_equal(open_jitdump(&options, &sink), 0);
    OWN_DECODED_DUMP dump = close_dump(sink, state);
    assert_int_equal(u64_at(dump.bytes + 32), 1);
    assert_true(u64_at(dump.bytes + 24) >= before);
    assert_true(dump.records[0].stamp <= __builtin_ia32_rdtsc());
#else
    skip();
#endif
}

/* Kills */

static void load_until_killed(void **state, atomic_uint *done)
{
    struct occupancy *sink = open_dump(state);
    for (uint64_t i = 1;; i++) {
        struct code code = inlined_code(i % 1000 * 4096);
        code.facts.compile_id = (int32_t)i;
        occupancy_load(sink, &code, NULL);
        atomic_store(done, (unsigned)i);
    }
}

TEST_WITH(kill_loses_no_group_that_was_written, set_up, scratch_remove)
{
    uint64_t seed = random_seed();
    atomic_uint *done =
        mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(done, MAP_FAILED);
    for (int i = 0; i < 50; i++) {
        atomic_store(done, 0);
        pid_t child = fork();
        if (child == 0) {
            load_until_killed(state, done);
        }
        while (atomic_load(done) == 0) {
        }
        struct timespec delay = {.tv_nsec = random_below(&seed, 5000000)};
        nanosleep(&delay, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        OWN_DECODED_DUMP dump;
        const char *path = path_of_pid(state, child);
        decoded_dump_read(&dump, path);
        size_t loads = decoded_dump_check_groups(&dump);
        assert_true(loads >= atomic_load(done) && loads <= atomic_load(done) + 1);
        unlink(path);
    }
    munmap(done, sizeof(*done));
}

int main(void)
{
    for (size_t i = 0; i < sizeof(code_bytes); i++) {
        code_bytes[i] = (uint8_t)(i * 7 + i / 256);
    }
    return tests_run(NULL, NULL);
}
