/* The reader gives back the random code that the writer wrote. */
#include "random.h"
#include "scratch.h"
#include "test.h"

#include "jdtool/inspect/convert.h"
#include "jdtool/inspect/repair.h"
#include "jdtool/inspect/verify.h"
#include "jdtool/jitdump/code_index.h"
#include "one_sink.h"

#include <sys/mman.h>

#define CODES   300
#define METHODS 60
#define FILES   12
#define MAX     24 /* rows, nodes and ranges of one piece of code */

/* Everything that one piece of code points to. */
struct sample {
    struct code code;
    uint8_t bytes[400];
    char name[64];
    struct code_row rows[MAX];
    struct inline_node nodes[MAX];
    struct inline_range ranges[MAX];
};

static struct source_file files[FILES];
static struct method methods[METHODS];
static char names[METHODS][40];
static char paths[FILES][40];
static struct sample samples[CODES];

static void make_methods(uint64_t *seed)
{
    for (uint32_t i = 0; i < FILES; i++) {
        snprintf(paths[i], sizeof(paths[i]), "pkg%u/Kl\xc3\xa4sse%u.java", i % 3, i);
        files[i] = (struct source_file){.path = paths[i], .id = i + 1};
    }
    for (uint32_t i = 0; i < METHODS; i++) {
        snprintf(names[i], sizeof(names[i]), "pkg.Klasse.m%u()", i);
        methods[i] = (struct method){.name = names[i], .id = i + 1};
        if (random_below(seed, 8)) {
            methods[i].file = &files[random_below(seed, FILES)];
            methods[i].first_line = random_below(seed, 1000);
        }
    }
}

static void make_rows(struct sample *sample, uint64_t *seed)
{
    uint32_t offset = 0;
    uint32_t count = random_below(seed, MAX);
    for (uint32_t i = 0; i < count && offset < sample->code.size; i++) {
        sample->rows[sample->code.row_count++] =
            (struct code_row){.offset = offset,
                              .line = 2 * random_below(seed, 500) + 1 + i % 2,
                              .file = &files[i % 2]};
        offset += 1 + random_below(seed, 30);
    }
}

static void make_tree(struct sample *sample, uint64_t *seed)
{
    uint32_t count = 1 + random_below(seed, MAX - 1);
    for (uint32_t i = 0; i < count; i++) {
        /* Depth-first: below the node before, or below one of its ancestors. */
        uint32_t parent = i ? i - 1 : 0;
        while (parent && random_below(seed, 3) == 0) {
            parent = sample->nodes[parent].parent;
        }
        sample->nodes[i] = (struct inline_node){.method = &methods[random_below(seed, METHODS)],
                                                .parent = parent,
                                                .call_line = i ? random_below(seed, 2000) : 0};
    }
    sample->nodes[0].method = sample->code.method;
    sample->code.node_count = count;
    uint32_t offset = 0;
    uint32_t ranges = random_below(seed, MAX);
    for (uint32_t i = 0; i < ranges && offset < sample->code.size; i++) {
        sample->ranges[sample->code.range_count++] =
            (struct inline_range){.offset = offset,
                                  .node = random_below(seed, count),
                                  .line = random_below(seed, 3) ? random_below(seed, 70000) : 0};
        offset += 1 + random_below(seed, 30);
    }
    sample->code.ranges_end = offset < sample->code.size ? offset : (uint32_t)sample->code.size;
}

/* Where the code at an offset comes from, by format/jitdump.h's "Rows from the tree". */
static bool line_in_tree(const struct sample *sample, uint32_t offset, struct code_row *row)
{
    const struct code *code = &sample->code;
    uint32_t node = 0;
    uint32_t line = 0;
    for (uint32_t i = 0; i < code->range_count && sample->ranges[i].offset <= offset; i++) {
        node = sample->ranges[i].node;
        line = sample->ranges[i].line;
    }
    const struct method *root = sample->nodes[0].method;
    if (offset >= code->ranges_end) {
        node = 0;
        line = root->first_line;
    }
    while (node && !(line && sample->nodes[node].method->file)) {
        line = sample->nodes[node].call_line;
        node = sample->nodes[node].parent;
    }
    row->file = sample->nodes[node].method->file;
    row->line = node || line ? line : root->first_line;
    return row->file && row->line;
}

/* Rows that the tree gives as well, in the place of others. */
static void make_tree_rows(struct sample *sample)
{
    struct code *code = &sample->code;
    code->row_count = 0;
    for (uint32_t offset = 0; offset < code->size; offset++) {
        struct code_row row = {.offset = code->row_count ? offset : 0};
        const struct code_row *last = code->row_count ? &sample->rows[code->row_count - 1] : NULL;
        if (line_in_tree(sample, offset, &row) &&
            !(last && last->file == row.file && last->line == row.line)) {
            sample->rows[code->row_count++] = row;
        }
    }
}

/* What is known of frozen frames from the middle of the dump on: told there, and not again. */
static const int32_t frozen[JITDUMP_CODE_FROZEN_COUNT] = {32, 40, 12, 24, 28, -1, 48, 4};

static void make_sample(struct sample *sample, uint32_t number, uint64_t *seed)
{
    memset(sample, 0, sizeof(*sample));
    struct code *code = &sample->code;
    /* Some places are used again and again. */
    code->address = UINT64_C(0x7f0000000000) + UINT64_C(1024) * random_below(seed, CODES / 2);
    code->size = random_below(seed, 10) ? 1 + random_below(seed, 399) : 0;
    for (size_t i = 0; i < sizeof(sample->bytes); i++) {
        sample->bytes[i] = (uint8_t)random_next(seed);
    }
    code->bytes = random_below(seed, 5) ? sample->bytes : NULL;
    snprintf(sample->name, sizeof(sample->name), "code %u", number);
    code->name = sample->name;
    code->facts = CODE_FACTS_UNKNOWN;
    code->facts.kind = JITDUMP_KIND_STUB;
    code->facts.frozen = number < CODES / 2 ? NULL : frozen;
    code->rows = sample->rows;
    code->nodes = sample->nodes;
    code->ranges = sample->ranges;
    if (code->size && random_below(seed, 4)) {
        code->method = &methods[random_below(seed, METHODS)];
        code->facts.kind = JITDUMP_KIND_NMETHOD;
        code->facts.tier = (int32_t)random_below(seed, JITDUMP_TIER_JVMCI + 1);
        code->facts.frame_size = (int32_t)random_below(seed, 100000);
        code->facts.verified_entry = (int32_t)random_below(seed, (uint32_t)code->size);
        make_rows(sample, seed);
        make_tree(sample, seed);
    }
}

static void check_rows(const struct sample *sample, const struct code_details *details)
{
    uint32_t count = sample->code.row_count;
    assert_int_equal(details->entry_count, count ? count + 1 : 0);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(details->entries[i].address,
                         sample->code.address + sample->rows[i].offset);
        assert_int_equal(details->entries[i].line, sample->rows[i].line);
        assert_string_equal(details->entries[i].file, sample->rows[i].file->path);
    }
    if (count) {
        assert_int_equal(details->entries[count].address, sample->code.address + sample->code.size);
    }
}

static void check_tree(const struct sample *sample, const struct code_details *details,
                       const struct trailer_names *defined)
{
    const struct trailer *trailer = &details->trailer;
    assert_int_equal(trailer->node_count, sample->code.node_count);
    for (uint32_t i = 0; i < trailer->node_count; i++) {
        const struct inline_node *node = &sample->nodes[i];
        const struct trailer_method *method =
            trailer_names_method(defined, trailer->nodes[i].method);
        assert_string_equal(method->name, node->method->name);
        assert_int_equal(method->first_line, node->method->first_line);
        if (node->method->file) {
            assert_string_equal(method->file, node->method->file->path);
        } else {
            assert_null(method->file);
        }
        if (i) {
            assert_int_equal(trailer->nodes[i].parent, node->parent);
            assert_int_equal(trailer->nodes[i].call_line, node->call_line);
        }
    }
    assert_int_equal(trailer->range_count, sample->code.range_count);
    for (uint32_t i = 0; i < trailer->range_count; i++) {
        uint32_t end =
            i + 1 < trailer->range_count ? sample->ranges[i + 1].offset : sample->code.ranges_end;
        assert_int_equal(trailer->ranges[i].offset, sample->ranges[i].offset);
        assert_int_equal(trailer->ranges[i].size, end - sample->ranges[i].offset);
        assert_int_equal(trailer->ranges[i].node, sample->ranges[i].node);
        assert_int_equal(trailer->ranges[i].line, sample->ranges[i].line);
    }
    assert_int_equal(trailer->facts[JITDUMP_CODE_KIND], sample->code.facts.kind);
    assert_int_equal(trailer->facts[JITDUMP_CODE_TIER], sample->code.facts.tier);
    assert_int_equal(trailer->facts[JITDUMP_CODE_FRAME_SIZE], sample->code.facts.frame_size);
    assert_int_equal(trailer->facts[JITDUMP_CODE_VERIFIED_ENTRY],
                     sample->code.facts.verified_entry);
    assert_int_equal(trailer->facts[JITDUMP_CODE_OSR_ENTRY], -1);
    for (int i = 0; i < JITDUMP_CODE_FROZEN_COUNT; i++) {
        assert_int_equal(trailer->facts[JITDUMP_CODE_FROZEN_FIRST + i],
                         sample == &samples[CODES / 2] ? frozen[i] : -1);
    }
}

static void check_dump(struct code_index *index)
{
    assert_null(code_index_warning(index));
    assert_int_equal(code_index_blob_count(index), CODES);
    struct code_details details = {0};
    for (uint32_t i = 0; i < CODES; i++) {
        const struct code *code = &samples[i].code;
        const struct code_blob *blob = code_index_blob(index, i);
        assert_string_equal(blob->name, code->name);
        assert_int_equal(blob->address, code->address);
        assert_int_equal(blob->size, code->size);
        assert_int_equal(code_index_fetch(index, i, &details), 0);
        if (code->bytes && code->size) {
            assert_memory_equal(details.bytes, code->bytes, code->size);
        } else {
            assert_null(details.bytes);
        }
        check_rows(&samples[i], &details);
        check_tree(&samples[i], &details, code_index_names(index));
    }
    code_details_free(&details);
}

static void refuse(void *context, enum verify_rule rule, uint64_t offset, const char *what)
{
    (void)context;
    (void)rule;
    fail_msg("offset %#llx: %s", (unsigned long long)offset, what);
}

static void refuse_line(void *context, uint64_t offset, const char *what)
{
    (void)context;
    fail_msg("repair at %#llx: %s", (unsigned long long)offset, what);
}

/* There is nothing to repair, so the copy has the same bytes. */
static void check_repair(const char *path)
{
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open(path, &reader), 0);
    assert_int_equal(verify_dump(reader, refuse, NULL), 0);
    jitdump_reader_seek(reader, sizeof(struct jitdump_header));
    int fd = memfd_create("repaired", MFD_CLOEXEC);
    struct repair_result result;
    assert_int_equal(repair_dump(reader, fd, refuse_line, NULL, &result), 0);
    jitdump_reader_close(reader);
    assert_int_equal(result.loads, CODES);
    assert_int_equal(result.carried, 0);
    size_t size = 0;
    uint8_t *bytes = scratch_read(path, &size);
    uint8_t *copy = malloc(size + 1);
    assert_int_equal(pread(fd, copy, size + 1, 0), size);
    assert_memory_equal(bytes, copy, size);
    free(copy);
    free(bytes);
    close(fd);
}

/* The stack of methods and lines at an offset, as text. */
static void print_stack(char *out, size_t size, const struct code_details *details,
                        const struct trailer_names *defined, uint32_t offset)
{
    const struct trailer_range *range = trailer_range_at(&details->trailer, offset);
    uint32_t node = range ? range->node : 0;
    uint32_t line = range ? range->line : 0;
    size_t used = 0;
    for (;;) {
        const struct trailer_method *method =
            trailer_names_method(defined, details->trailer.nodes[node].method);
        used += (size_t)snprintf(out + used, size - used, "%s %s:%u\n", method->name,
                                 method->file ? method->file : "", line);
        if (node == 0) {
            return;
        }
        line = details->trailer.nodes[node].call_line;
        node = details->trailer.nodes[node].parent;
    }
}

/* Copies a dump without its DEBUG_INFOs, so that samply's records are all that is left. */
static int without_debug_info(const char *path)
{
    struct jitdump_reader *reader;
    struct jitdump_record_view record;
    assert_int_equal(jitdump_reader_open(path, &reader), 0);
    int fd = memfd_create("samply", MFD_CLOEXEC);
    size_t size = 0;
    uint8_t *bytes = scratch_read(path, &size);
    assert_int_equal(write(fd, bytes, sizeof(struct jitdump_header)),
                     sizeof(struct jitdump_header));
    while (jitdump_reader_next(reader, &record) == JITDUMP_RECORD) {
        if (record.id != JIT_CODE_DEBUG_INFO) {
            assert_int_equal(write(fd, bytes + record.offset, record.total_size),
                             record.total_size);
        }
    }
    free(bytes);
    jitdump_reader_close(reader);
    return fd;
}

/* The row that an address belongs to has the line of its range, where that has one. */
static void check_row(const struct code_details *details, uint64_t address,
                      const struct trailer_range *range)
{
    if (!range || range->line == 0) {
        return;
    }
    uint32_t row = 0;
    while (row + 1 < details->entry_count && details->entries[row + 1].address <= address) {
        row++;
    }
    assert_true(row < details->entry_count);
    assert_int_equal(details->entries[row].line, range->line);
}

/* At each byte, samply's records say what the trailer says. */
static void compare_with_samply(const char *path, struct code_index *index)
{
    struct code_index *samply;
    assert_int_equal(code_index_follow("samply", without_debug_info(path), &samply), 0);
    struct code_details details = {0};
    struct code_details samply_details = {0};
    uint32_t compared = 0;
    for (uint32_t i = 0; i < CODES; i++) {
        assert_int_equal(code_index_fetch(index, i, &details), 0);
        assert_int_equal(code_index_fetch(samply, i, &samply_details), 0);
        if (details.trailer.node_count == 0) {
            assert_int_equal(samply_details.trailer.node_count, 0);
            continue;
        }
        if (details.trailer.range_count == 0) {
            continue; /* samply's lines are those of the rows then */
        }
        for (uint32_t offset = 0; offset < code_index_blob(index, i)->size; offset++) {
            char expected[4096];
            char found[4096];
            print_stack(expected, sizeof(expected), &details, code_index_names(index), offset);
            print_stack(found, sizeof(found), &samply_details, code_index_names(samply), offset);
            assert_string_equal(found, expected);
            check_row(&samply_details, code_index_blob(index, i)->address + offset,
                      trailer_range_at(&details.trailer, offset));
            compared++;
        }
    }
    assert_true(compared > 1000);
    code_details_free(&details);
    code_details_free(&samply_details);
    code_index_close(samply);
}

static void round_trip(void **state, bool samply)
{
    uint64_t seed = random_seed() + samply;
    struct jitdump_sink_options options = {
        .log.directory = *state, .log.directory_fd = AT_FDCWD, .samply = samply};
    struct occupancy *sink = NULL;
    assert_int_equal(open_jitdump(&options, &sink), 0);
    make_methods(&seed);
    for (uint32_t i = 0; i < CODES; i++) {
        make_sample(&samples[i], i, &seed);
        if (random_below(&seed, 2)) {
            occupancy_unload(sink, samples[i].code.address, -1);
        }
        assert_int_equal(occupancy_load(sink, &samples[i].code, NULL), 0);
    }
    occupancy_close(sink);

    char name[64];
    snprintf(name, sizeof(name), "jit-%d.dump", getpid());
    const char *path = scratch_path(state, name);
    struct code_index *index;
    assert_int_equal(code_index_open(path, &index), 0);
    check_dump(index);
    if (samply) {
        compare_with_samply(path, index);
    }
    code_index_close(index);
    check_repair(path);
}

TEST_WITH(plain, scratch_create, scratch_remove)
{
    round_trip(state, false);
}

TEST_WITH(with_samply, scratch_create, scratch_remove)
{
    round_trip(state, true);
}

static void put_bytes(void *context, const void *bytes, size_t size)
{
    assert_int_equal(fwrite(bytes, 1, size, context), size);
}

static uint64_t convert(const char *from, const char *to, bool to_tree)
{
    struct jitdump_reader *reader;
    struct convert_result result;
    FILE *out = fopen(to, "we");
    assert_non_null(out);
    assert_int_equal(jitdump_reader_open(from, &reader), 0);
    assert_int_equal(convert_dump(reader, from, to_tree, NULL, put_bytes, out, &result), 0);
    jitdump_reader_close(reader);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(result.loads, CODES);
    assert_int_equal(result.too_large, 0);
    assert_int_equal(result.torn_bytes, 0);
    return result.changed;
}

static void check_same_file(const char *left, const char *right)
{
    size_t left_size = 0;
    size_t right_size = 0;
    uint8_t *left_bytes = scratch_read(left, &left_size);
    uint8_t *right_bytes = scratch_read(right, &right_size);
    assert_int_equal(left_size, right_size);
    assert_memory_equal(left_bytes, right_bytes, left_size);
    free(left_bytes);
    free(right_bytes);
}

/* The same records, but for stamps and numbers, which differ from dump to dump. */
static void check_same_debug_infos(const char *left, const char *right)
{
    struct jitdump_reader *readers[2];
    struct jitdump_record_view records[2];
    assert_int_equal(jitdump_reader_open(left, &readers[0]), 0);
    assert_int_equal(jitdump_reader_open(right, &readers[1]), 0);
    enum jitdump_status status;
    while ((status = jitdump_reader_next(readers[0], &records[0])) == JITDUMP_RECORD) {
        assert_int_equal(jitdump_reader_next(readers[1], &records[1]), JITDUMP_RECORD);
        assert_int_equal(records[0].id, records[1].id);
        assert_int_equal(records[0].payload_size, records[1].payload_size);
        if (records[0].id == JIT_CODE_DEBUG_INFO) {
            assert_memory_equal(records[0].payload, records[1].payload, records[0].payload_size);
        }
    }
    assert_int_equal(status, JITDUMP_END);
    jitdump_reader_close(readers[0]);
    jitdump_reader_close(readers[1]);
}

/* Writes all samples. Returns the dump's path, which the caller frees. */
static char *write_samples(const char *directory, bool tree_lines, const bool *unloaded)
{
    struct jitdump_sink_options options = {
        .log.directory = directory, .log.directory_fd = AT_FDCWD, .tree_lines = tree_lines};
    struct occupancy *sink = NULL;
    assert_int_equal(open_jitdump(&options, &sink), 0);
    for (uint32_t i = 0; i < CODES; i++) {
        if (unloaded[i]) {
            occupancy_unload(sink, samples[i].code.address, -1);
        }
        struct code code = samples[i].code;
        code.replayed = code.method; /* which is not late: two dumps are the same */
        assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    }
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    char *path = strdup(stats.path);
    occupancy_close(sink);
    return path;
}

/* lines=tree: readers find the same rows, and convert makes the bytes that lines=on writes. */
TEST_WITH(rows_left_to_trees, scratch_create, scratch_remove)
{
    uint64_t seed = random_seed() + 2;
    bool unloaded[CODES];
    uint32_t in_tree = 0;
    make_methods(&seed);
    for (uint32_t i = 0; i < CODES; i++) {
        make_sample(&samples[i], i, &seed);
        unloaded[i] = random_below(&seed, 2);
        if (samples[i].code.range_count > 0 && random_below(&seed, 4)) {
            make_tree_rows(&samples[i]);
            in_tree++;
        }
    }
    assert_true(in_tree > CODES / 4);
    char *trees = write_samples(*state, true, unloaded);
    char *standard = write_samples(*state, false, unloaded);
    assert_string_not_equal(trees, standard);
    struct code_index *index;
    assert_int_equal(code_index_open(trees, &index), 0);
    check_dump(index);
    code_index_close(index);
    check_repair(trees);

    const char *converted = scratch_path(state, "converted");
    /* A tree whose ranges have no line gives no row, and some random rows are its tree's. */
    uint64_t changed = convert(trees, converted, false);
    assert_true(changed >= in_tree);
    check_same_debug_infos(converted, standard);
    check_repair(converted);
    const char *back = scratch_path(state, "back");
    assert_int_equal(convert(converted, back, true), changed);
    check_same_file(back, trees);
    free(trees);
    free(standard);
}

TEST_MAIN(NULL, NULL)
