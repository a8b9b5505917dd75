/* The perf.data output: mappings, call chains and images. */
#include "test.h"

#include "jdtool/images/image_frames.h"
#include "jdtool/images/perf_data_sink.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/perf/perf_data.h"
#include "tests/dump_builder.h"
#include "tests/perf_file.h"
#include "tests/result_reader.h"
#include "tests/scratch.h"
#include "tests/stacks.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <sys/mman.h>

#define PID  BUILDER_PID
#define CODE UINT64_C(0x7f0000010000)

/* One JVM with the code of a dump: m at CODE, with a method inlined from its byte 4 on, `later` in
 * m's place, `far` elsewhere. */
enum { M, LATER, FAR, CODES };

struct world {
    struct perf_data *data;
    struct code_index *index;
    struct module module;
    struct resolved_method m, inlined, interpreted, stub, later;
    struct resolved_code codes[CODES];
    const struct resolved_code *also_touched; /* NULL: none */
    struct recorded_jvm jvm;
    const struct recorded_jvm *jvms[1];
    struct recording recording;
    struct source_path *source_path;
    struct sample_sink *sink;
    char image[256];
};

static struct world world;

static void open_world(void **state)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_group(&dump, 1000100, CODE, 16, 2, "a.A.m()");
    dump_load(&dump, 1000500, CODE, 32, 3, "a.A.later()");
    dump_load(&dump, 1000600, CODE + 0x10000, 16, 4, "far");
    write_bytes(scratch_path(state, "jit-4242.dump"), dump.bytes, dump.size);

    struct perf_file file = {.attr_count = 1};
    file.attrs[0] = (struct perf_event_attr){
        .size = sizeof file.attrs[0],
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN |
                       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = 1,
        .sample_stack_user = 8,
        .sample_id_all = 1,
    };
    perf_file_feature(&file, PERF_FEATURE_ARCH, "\6\0\0\0x86_64", 11);
    perf_file_feature(&file, 15 /* HEADER_BRANCH_STACK: there or not */, NULL, 0);
    perf_file_record(&file, PERF_USER_FINISHED_ROUND, 0, NULL, 0);
    perf_file_write(&file, scratch_path(state, "p.data"));
    free(file.records);

    world = (struct world){0};
    assert_int_equal(perf_data_open(scratch_path(state, "p.data"), &world.data), 0);
    assert_int_equal(code_index_open(scratch_path(state, "jit-4242.dump"), &world.index), 0);
    assert_int_equal(source_path_open(NULL, &world.source_path), 0);
    world.module = (struct module){.id = 3, .kind = MODULE_JVM, .path = "[java]", .pid = PID};
    world.m = (struct resolved_method){
        .id = 0, .kind = RESOLVED_COMPILED, .name = "a.A.m()", .file = "a/A.java", .first_line = 9};
    world.inlined = (struct resolved_method){
        .id = 1, .kind = RESOLVED_COMPILED, .name = "b.B.inlined()", .file = "b/B.java"};
    world.interpreted = (struct resolved_method){
        .id = 2, .kind = RESOLVED_INTERPRETED, .name = "c.C.slow()", .file = "c/C.java"};
    world.later =
        (struct resolved_method){.id = 3, .kind = RESOLVED_COMPILED, .name = "a.A.later()"};
    world.stub = (struct resolved_method){.id = 4, .kind = RESOLVED_STUB, .name = "far"};
    static const uint64_t places[CODES][2] = {{CODE, 16}, {CODE, 32}, {CODE + 0x10000, 16}};
    const struct resolved_method *methods[CODES] = {&world.m, &world.later, &world.stub};
    for (uint32_t i = 0; i < CODES; i++) {
        world.codes[i] = (struct resolved_code){.id = i,
                                                .address = places[i][0],
                                                .size = places[i][1],
                                                .from = code_index_blob(world.index, i)->timestamp,
                                                .symbol = methods[i]->name,
                                                .method = methods[i],
                                                .module = &world.module,
                                                .index = world.index,
                                                .blob = i};
    }
    world.jvm = (struct recorded_jvm){.pid = PID, .module = &world.module, .index = world.index};
    world.jvms[0] = &world.jvm;
    world.recording = (struct recording){.path = "p.data",
                                         .has_chains = true,
                                         .jvms = world.jvms,
                                         .jvm_count = 1,
                                         .data = world.data};
}

static void start(void **state, struct perf_data_sink_options options)
{
    options.output = scratch_path(state, "r.data");
    options.inlined_suffix = options.inlined_suffix ? options.inlined_suffix : " (inlined)";
    options.interpreted_suffix = " (interpreted)";
    options.source_path = world.source_path;
    world.sink = perf_data_sink_new(&options);
    assert_non_null(world.sink);
    assert_int_equal(world.sink->ops->begin(world.sink, &world.recording), 0);
}

/* A world with a sink that has begun. */
static void start_world(void **state, struct perf_data_sink_options options)
{
    open_world(state);
    start(state, options);
}

static void close_world(void)
{
    code_index_close(world.index);
    perf_data_close(world.data);
    source_path_close(world.source_path);
}

static struct seen seen[64];
static uint32_t seen_count;

/* What the sink has written is in `seen`. */
static void finish(void **state)
{
    assert_int_equal(world.sink->ops->end(world.sink), 0);
    close_world();
    seen_count = read_result(scratch_path(state, "r.data"), seen, 64);
}

static struct test_frame frame_of(uint8_t kind, const struct resolved_method *method,
                                  uint64_t address, uint32_t line)
{
    bool generated = kind != RESOLVED_NATIVE && kind != RESOLVED_KERNEL;
    return (struct test_frame){.kind = kind,
                               .method = method,
                               .address = address,
                               .line = line,
                               .module = generated ? &world.module : NULL,
                               .code = generated ? &world.codes[M] : NULL};
}

/* Tells of a sample whose own address is the first user entry of the chain. */
static void tell(uint32_t pid, uint64_t time, const uint64_t *chain, uint32_t chain_count,
                 const struct test_frame *frames, uint32_t frame_count, bool unwound)
{
    uint64_t words[64] = {chain[1], pid | (uint64_t)pid << 32, time, chain_count};
    memcpy(words + 4, chain, chain_count * sizeof *chain);
    uint64_t at = 4 + chain_count;
    words[at++] = PERF_SAMPLE_REGS_ABI_64;
    words[at++] = 0x1234; /* the register */
    words[at++] = 8;      /* of stack */
    words[at++] = 0x5678;
    words[at++] = 8;
    uint8_t bytes[600];
    struct perf_event_header header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
                                       (uint16_t)(sizeof header + at * 8)};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, words, at * 8);
    struct perf_record record = {
        .type = header.type, .misc = header.misc, .size = header.size, .bytes = bytes};
    struct perf_sample recorded;
    assert_int_equal(perf_sample_decode(world.data, &record, &recorded), 0);
    recorded.unwound = unwound;
    struct resolved_sample sample = {.time = time,
                                     .thread = {.pid = pid, .tid = pid, .jvm = &world.module},
                                     .stacks = test_stacks(),
                                     .node = test_stack(frames, frame_count),
                                     .branches = &world.also_touched,
                                     .branch_count = world.also_touched != NULL,
                                     .recorded = &recorded};
    assert_int_equal(world.sink->ops->sample(world.sink, &sample), 0);
}

/* A sample in one of the codes and nothing else. */
static void tell_of(uint32_t pid, uint64_t time, uint32_t code)
{
    uint64_t chain[] = {PERF_CONTEXT_USER, world.codes[code].address};
    struct test_frame frame = frame_of(RESOLVED_COMPILED, world.codes[code].method, chain[1], 0);
    frame.code = &world.codes[code];
    tell(pid, time, chain, 2, &frame, 1, false);
}

static void tell_record(uint32_t type, uint16_t misc, const uint64_t *words, size_t count,
                        bool superseded)
{
    uint8_t bytes[256];
    struct perf_event_header header = {type, misc, (uint16_t)(sizeof header + count * 8)};
    memcpy(bytes, &header, sizeof header);
    memcpy(bytes + sizeof header, words, count * 8);
    struct perf_record record = {.type = type, .misc = misc, .size = header.size, .bytes = bytes};
    struct mapping mapping;
    record.id = perf_record_id(world.data, &record);
    record.mapping = mapping_decode(&record, &mapping) ? &mapping : NULL;
    assert_int_equal(world.sink->ops->record(world.sink, &record, superseded), 0);
}

static void tell_mmap(uint32_t pid, uint64_t time, uint64_t address, uint64_t size,
                      const char *path, bool superseded)
{
    uint64_t words[16] = {pid | (uint64_t)pid << 32, address, size};
    words[7] = PROT_READ | PROT_EXEC;
    memcpy(&words[8], path, strlen(path) + 1);
    words[12] = pid | (uint64_t)pid << 32;
    words[13] = time;
    tell_record(PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, words, 14, superseded);
}

/* ---- Reading the result ---- */

/* The mapping in force for an address of a process behind the first `count` records. */
static const struct seen *mapping_at(uint32_t count, uint32_t pid, uint64_t address)
{
    const struct seen *found = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (seen[i].type == PERF_RECORD_MMAP2 && seen[i].pid == pid &&
            address - seen[i].address < seen[i].size) {
            found = &seen[i];
        }
    }
    return found;
}

static const char *name_at(uint32_t count, uint32_t pid, uint64_t address)
{
    const struct seen *mapping = mapping_at(count, pid, address);
    return mapping ? symbol_at(mapping->path, address - mapping->address + mapping->offset) : "";
}

/* ---- Tests ---- */

TEST_WITH(code_is_mapped_when_touched_with_one_difference_a_file, scratch_create, scratch_remove)
{
    start_world(state, (struct perf_data_sink_options){0});
    tell_mmap(PID, 1000010, CODE - 0x8000, 0x100000, "//anon", true);
    tell_mmap(PID, 1000020, 0x7f1000000000, 0x1000, "/lib/libc.so", false);
    tell_of(PID, 1000200, M);
    tell_of(PID, 1000300, M);
    tell_of(PID, 1000510, LATER);
    tell_of(PID, 1000610, FAR);
    tell_of(PID, 1000620, LATER);
    finish(state);
    static const struct {
        uint32_t type;
        uint64_t time;
    } expected[] = {
        {PERF_RECORD_MMAP2, 1000020},                                /* libc; not the JVM's own */
        {PERF_RECORD_MMAP2, 1000200},  {PERF_RECORD_MMAP2, 1000200}, /* the image's start, m */
        {PERF_RECORD_SAMPLE, 1000200}, {PERF_RECORD_SAMPLE, 1000300}, {PERF_RECORD_MMAP2, 1000510},
        {PERF_RECORD_MMAP2, 1000510}, /* another image: later */
        {PERF_RECORD_SAMPLE, 1000510}, {PERF_RECORD_MMAP2, 1000610},  {PERF_RECORD_MMAP2, 1000610},
        {PERF_RECORD_SAMPLE, 1000610}, {PERF_RECORD_SAMPLE, 1000620},
    };
    assert_int_equal(seen_count, sizeof expected / sizeof expected[0]);
    for (uint32_t i = 0; i < seen_count; i++) {
        assert_int_equal(seen[i].type, expected[i].type);
        assert_int_equal(seen[i].time, expected[i].time);
    }
    assert_string_equal(name_at(4, PID, CODE + 5), "a.A.m()");
    assert_string_equal(name_at(seen_count, PID, CODE + 5), "a.A.later()");
    assert_string_equal(name_at(seen_count, PID, CODE + 20), "a.A.later()");
    assert_string_equal(name_at(seen_count, PID, CODE + 0x10000), "far");
    for (uint32_t i = 1; i < seen_count; i++) {
        for (uint32_t j = 1; j < seen_count; j++) {
            if (seen[i].size && seen[j].size && strcmp(seen[i].path, seen[j].path) == 0) {
                assert_true(seen[i].address - seen[i].offset == seen[j].address - seen[j].offset);
            }
        }
    }
    assert_int_equal(seen[1].offset, 0); /* lowest, and each time a little longer */
    assert_true(seen[1].address < CODE - 0x8000);
    assert_true(seen[8].address == seen[1].address && seen[8].size > seen[1].size);
    assert_string_not_equal(seen[5].path, seen[1].path);
}

/* A sample may touch code and what is left of older code in its place: the younger one shows. */
TEST_WITH(what_is_left_of_older_code_hides_nothing, scratch_create, scratch_remove)
{
    start_world(state, (struct perf_data_sink_options){0});
    tell_of(PID, 1000510, LATER);
    world.also_touched = &world.codes[M];
    tell_of(PID, 1000520, LATER);
    tell_of(PID, 1000530, LATER);
    finish(state);
    for (uint32_t i = 0; i < seen_count; i++) {
        if (seen[i].type == PERF_RECORD_SAMPLE) {
            assert_string_equal(name_at(i, PID, CODE + 5), "a.A.later()");
            assert_string_equal(name_at(i, PID, CODE + 20), "a.A.later()");
        }
    }
}

TEST_WITH(what_hides_code_has_it_mapped_again, scratch_create, scratch_remove)
{
    start_world(state, (struct perf_data_sink_options){0});
    tell_of(PID, 1000200, FAR);
    tell_mmap(PID, 1000210, CODE + 0x10000, 0x1000, "/lib/late.so", false);
    tell_of(PID, 1000220, FAR);
    /* A fork has what its parent had when perf hears of it; touched first by the child, it has
     * to get it itself. */
    uint64_t fork[5] = {(PID + 1) | (uint64_t)PID << 32, (PID + 1) | (uint64_t)PID << 32, 1000230,
                        (PID + 1) | (uint64_t)(PID + 1) << 32, 1000230};
    tell_record(PERF_RECORD_FORK, 0, fork, 5, false);
    tell_of(PID + 1, 1000240, M);
    tell_of(PID, 1000250, M);
    /* The pid is given to another process. */
    uint64_t exit[5] = {PID | (uint64_t)1 << 32, PID | (uint64_t)1 << 32, 1000260,
                        PID | (uint64_t)PID << 32, 1000260};
    tell_record(PERF_RECORD_EXIT, 0, exit, 5, false);
    tell_of(PID, 1000270, M);
    finish(state);
    for (uint32_t i = 0; i < seen_count; i++) {
        if (seen[i].type == PERF_RECORD_SAMPLE) {
            assert_string_equal(name_at(i, seen[i].pid, seen[i].address),
                                seen[i].address == CODE ? "a.A.m()" : "far");
        }
    }
    assert_int_equal(mapping_at(seen_count, PID, CODE)->time, 1000270);
}

TEST_WITH(frames_without_code_are_addresses_of_their_image, scratch_create, scratch_remove)
{
    start_world(state, (struct perf_data_sink_options){.expand = true, .leaf = true});
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 4, 0x400000, CODE + 5};
    struct test_frame frames[] = {
        frame_of(RESOLVED_INLINED, &world.inlined, CODE + 4, 11),
        frame_of(RESOLVED_COMPILED, &world.m, CODE + 4, 10),
        frame_of(RESOLVED_NATIVE, NULL, 0x400000 - 1, 0),
        frame_of(RESOLVED_INLINED, &world.inlined, CODE + 4, 12),
        frame_of(RESOLVED_COMPILED, &world.m, CODE + 4, 10),
    };
    tell(PID, 1000200, chain, 4, frames, 5, false);
    /* Unwound: the chain is the kernel's part, the frames go on behind it. */
    uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000000, PERF_CONTEXT_USER};
    struct test_frame unwound[] = {
        frame_of(RESOLVED_KERNEL, NULL, kernel[1], 0),
        frame_of(RESOLVED_INTERPRETED, &world.interpreted, CODE + 8, 7),
        frame_of(RESOLVED_INTERPRETED, &world.stub, CODE + 0x10001, 0),
        frame_of(RESOLVED_INLINED, &world.inlined, CODE + 4, 11),
        frame_of(RESOLVED_COMPILED, &world.m, CODE + 4, 10),
        frame_of(RESOLVED_NATIVE, NULL, 0x400000 - 1, 0),
    };
    tell(PID, 1000300, kernel, 3, unwound, 6, true);
    finish(state);
    assert_int_equal(seen_count, 5); /* two mappings of code, one of frames, the samples */
    const struct seen *sample = &seen[3];
    assert_int_equal(sample->chain_count, 6);
    assert_string_equal(name_at(3, PID, sample->chain[1]), "b.B.inlined() (inlined)");
    assert_int_equal(sample->address, sample->chain[1]); /* leaf */
    assert_int_equal(sample->chain[2], CODE + 4);
    assert_int_equal(sample->chain[3], 0x400000); /* as recorded */
    assert_string_equal(name_at(3, PID, sample->chain[4]), "b.B.inlined() (inlined)");
    assert_int_not_equal(sample->chain[4], sample->chain[1]); /* another line */
    assert_int_equal(sample->chain[5], CODE + 4);             /* in the call */

    uint64_t inlined = sample->chain[1];
    sample = &seen[4];
    assert_int_equal(sample->chain_count, 8);
    assert_memory_equal(sample->chain, kernel, sizeof kernel);
    assert_string_equal(name_at(4, PID, sample->chain[3]), "c.C.slow() (interpreted)");
    assert_int_equal(sample->chain[4], CODE + 0x10001);
    assert_int_equal(sample->chain[5], inlined);
    assert_int_equal(sample->chain[6], CODE + 4);
    assert_int_equal(sample->chain[7], 0x400000 - 1);
}

TEST_WITH(without_expansion_inlined_frames_are_left_out, scratch_create, scratch_remove)
{
    open_world(state);
    world.recording.unwound = true;
    start(state, (struct perf_data_sink_options){.inlines = true});
    uint64_t chain[] = {PERF_CONTEXT_USER, CODE + 4};
    struct test_frame frames[] = {
        frame_of(RESOLVED_INLINED, &world.inlined, CODE + 4, 11),
        frame_of(RESOLVED_COMPILED, &world.m, CODE + 4, 10),
    };
    tell(PID, 1000200, chain, 2, frames, 2, false);
    finish(state);
    assert_int_equal(seen_count, 3);
    assert_int_equal(seen[2].chain_count, 2);
    assert_int_equal(seen[2].chain[1], CODE + 4);
    assert_false(seen[2].has & (PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER));

    uint64_t offset = seen[1].offset;
    int fd = open(seen[1].path, O_RDONLY | O_CLOEXEC);
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    Dwarf_Die unit;
    Dwarf_Die *found, *scopes;
    assert_non_null(dwarf);
    assert_non_null(dwarf_addrdie(dwarf, offset + 5, &unit));
    assert_true(dwarf_getscopes(&unit, offset + 5, &found) > 1);
    assert_int_equal(dwarf_getscopes_die(&found[0], &scopes), 3);
    assert_string_equal(dwarf_diename(&scopes[0]), "b.B.inlined()");
    assert_string_equal(dwarf_diename(&scopes[1]), "a.A.m()");
    free(found);
    free(scopes);
    dwarf_end(dwarf);
    close(fd);
}

static uint64_t number_of(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    assert_non_null(dwarf_attr(die, name, &attribute));
    assert_int_equal(dwarf_formudata(&attribute, &number), 0);
    return number;
}

/* The columns of whatever can begin at one address. Returns how many. */
static unsigned columns_at(const char *path, uint64_t offset, uint64_t *columns)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Dwarf *dwarf = dwarf_begin(fd, DWARF_C_READ);
    Dwarf_Die unit;
    Dwarf_Die *found, *scopes;
    unsigned count = 0;
    int column;
    assert_non_null(dwarf);
    assert_non_null(dwarf_addrdie(dwarf, offset, &unit));
    assert_true(dwarf_getscopes(&unit, offset, &found) > 1);
    int depth = dwarf_getscopes_die(&found[0], &scopes);
    for (int i = 0; i + 1 < depth; i++) {
        if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine) {
            columns[count++] = number_of(&scopes[i], DW_AT_call_column);
        }
        columns[count++] = number_of(&scopes[i], DW_AT_decl_column);
    }
    Dwarf_Line *line = dwarf_getsrc_die(&unit, offset);
    assert_non_null(line);
    assert_int_equal(dwarf_linecol(line, &column), 0);
    columns[count++] = (uint64_t)column;
    free(found);
    free(scopes);
    dwarf_end(dwarf);
    close(fd);
    return count;
}

/* KDAB hotspot knows a place by its address, file, line and column: a sample at the first byte of
 * an inlined method, or of a function, must not be taken for the call or the function itself. */
TEST_WITH(what_begins_at_one_address_has_columns_of_its_own, scratch_create, scratch_remove)
{
    uint64_t columns[16];
    start_world(state, (struct perf_data_sink_options){.inlines = true});
    tell_of(PID, 1000200, M);
    tell_of(PID, 1000550, LATER);
    finish(state);
    unsigned total = 0;
    for (uint32_t i = 0; i < seen_count; i++) {
        if (seen[i].type == PERF_RECORD_MMAP2 && seen[i].address == CODE &&
            strstr(seen[i].path, "-java.")) {
            total +=
                columns_at(seen[i].path, seen[i].offset + (total == 0 ? 4 : 0), columns + total);
        }
    }
    /* a.A.m(), the call of b.B.inlined() and its code, a.A.later(), and a row of each image. */
    assert_int_equal(total, 6);
    for (unsigned i = 0; i < total; i++) {
        for (unsigned j = 0; j < i; j++) {
            assert_int_not_equal(columns[i], columns[j]);
        }
    }
}

/* Whether the image has the bytes of the code, and not a hole. */
static bool has_bytes(const struct seen *mapping, uint64_t address)
{
    uint8_t bytes[8] = {0};
    static const uint8_t none[sizeof bytes];
    int fd = open(mapping->path, O_RDONLY | O_CLOEXEC);
    ssize_t n =
        pread(fd, bytes, sizeof bytes, (off_t)(address - mapping->address + mapping->offset));
    close(fd);
    return n == sizeof bytes && memcmp(bytes, none, sizeof bytes) != 0;
}

TEST_WITH(bytes_are_of_code_that_was_hit, scratch_create, scratch_remove)
{
    static const struct {
        bool keeps_all;
        uint64_t samples; /* of which one is in the code */
        bool is_hit;
    } cases[] = {{false, 9999, true}, {false, 10000, false}, {true, 10000, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool keeps_all = cases[i].keeps_all;
        start_world(state, (struct perf_data_sink_options){.keep_all = keeps_all});
        uint64_t chain[] = {PERF_CONTEXT_USER, world.codes[M].address,
                            world.codes[FAR].address + 1};
        struct test_frame frames[] = {
            frame_of(RESOLVED_COMPILED, &world.m, chain[1], 0),
            frame_of(RESOLVED_STUB, &world.stub, chain[2], 0),
        };
        frames[1].code = &world.codes[FAR];
        tell(PID, 1000700, chain, 3, frames, 2, false);
        world.recording.counts.samples = cases[i].samples;
        finish(state);
        uint64_t caller = world.codes[FAR].address;
        assert_string_equal(name_at(seen_count, PID, caller), "far");
        assert_int_equal(has_bytes(mapping_at(seen_count, PID, CODE), CODE), cases[i].is_hit);
        assert_int_equal(has_bytes(mapping_at(seen_count, PID, caller), caller), keeps_all);
    }
}

static void note_image(void *image, const struct module *module, const char *path)
{
    assert_ptr_equal(module, &world.module);
    snprintf(image, sizeof world.image, "%s", path);
}

/* The features of the recording, with the images' build-ids among them. */
TEST_WITH(features_stay_and_build_ids_come_in, scratch_create, scratch_remove)
{
    start_world(state, (struct perf_data_sink_options){.written = note_image,
                                                       .written_context = world.image});
    tell_of(PID, 1000200, M);
    finish(state);
    assert_non_null(strstr(world.image, "/r-java.so"));
    struct perf_data *data;
    assert_int_equal(perf_data_open(scratch_path(state, "r.data"), &data), 0);
    assert_string_equal(perf_data_string(data, PERF_FEATURE_ARCH), "x86_64");
    assert_true(perf_data_has_feature(data, 15));
    size_t size;
    const uint8_t *ids = perf_data_feature(data, PERF_FEATURE_BUILD_ID, &size);
    assert_non_null(ids);
    assert_true(size >= 36 + 64);
    assert_non_null(strstr((const char *)ids + 36, "/r-java.so"));
    perf_data_close(data);
}

TEST_WITH(an_aborted_sink_leaves_nothing, scratch_create, scratch_remove)
{
    start_world(state, (struct perf_data_sink_options){0});
    tell_of(PID, 1000200, M);
    world.sink->ops->abort(world.sink);
    assert_int_equal(access(scratch_path(state, "r.data"), F_OK), -1);
    assert_int_equal(access(scratch_path(state, "r-java.so"), F_OK), -1);
    close_world();
}

/* More lines than a block has room for, and more frames than a record has. */
TEST_WITH(what_does_not_fit_is_still_named_or_told, scratch_create, scratch_remove)
{
    open_world(state);
    struct image_frames *frames = image_frames_new(0);
    uint64_t first = 0;
    uint64_t last = 0;
    for (uint32_t line = 1; line <= 1000; line++) {
        const struct resolved_frame frame = {
            .kind = RESOLVED_INLINED, .method = &world.inlined, .line = line};
        int err = 0;
        uint64_t address = image_frames_address(frames, &frame, &err);
        assert_int_equal(err, 0);
        assert_int_not_equal(address, 0);
        assert_int_not_equal(address, last);
        assert_int_equal(image_frames_address(frames, &frame, &err), address);
        first = first ? first : address;
        last = address;
    }
    uint8_t build_id[BUILD_ID_MAX];
    const char *path = scratch_path(state, "frames.so");
    assert_int_equal(
        image_frames_write(frames, EM_X86_64, "", "", world.source_path, path, build_id), 0);
    assert_string_equal(symbol_at(path, last - image_frames_start(frames)), "b.B.inlined()");
    /* Also for readers that look for a caller one byte before where it goes on. */
    assert_string_equal(symbol_at(path, first - image_frames_start(frames)), "b.B.inlined()");
    assert_string_equal(symbol_at(path, first - 1 - image_frames_start(frames)), "b.B.inlined()");
    image_frames_free(frames);

    start(state, (struct perf_data_sink_options){.expand = true});
    static struct test_frame many[9000];
    for (uint32_t i = 0; i < 9000; i++) {
        many[i] = frame_of(RESOLVED_NATIVE, NULL, 0x400000 + i, 0);
    }
    uint64_t kernel[] = {PERF_CONTEXT_KERNEL, 0};
    tell(PID, 1000200, kernel, 1, many, 9000, true);
    assert_int_equal(world.sink->ops->end(world.sink), 0);
    struct perf_data *data;
    struct perf_record record;
    uint32_t samples = 0;
    assert_int_equal(perf_data_open(scratch_path(state, "r.data"), &data), 0);
    while (perf_data_next(data, &record) > 0) {
        samples += record.type == PERF_RECORD_SAMPLE && record.size > 60000;
    }
    assert_int_equal(samples, 1);
    perf_data_close(data);
    close_world();
}

TEST_MAIN(NULL, NULL)
