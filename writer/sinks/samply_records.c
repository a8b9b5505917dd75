#include "writer/sinks/samply_records.h"

#include "format/samply.h"
#include "writer/array.h"
#include "writer/hash_table.h"
#include "writer/sinks/regions.h"

#include <stdlib.h>

/* Numbers pointers in the order in which they are first asked for. */
struct numbering {
    struct hash_table table;
    struct hash_table_entry *list; /* keys: the pointers */
    size_t room;
    uint32_t count;
    bool failed; /* out of memory */
};

struct samply_records {
    struct numbering functions; /* struct method */
    struct numbering files;     /* struct source_file; NULL is a file, whose path is empty */
    struct regions regions;
    struct buffer nodes;   /* struct tree_node, one for each node */
    struct buffer by_node; /* uint32_t: the regions' indices, sorted by node */
};

/* What is worked out of a node of the inline tree. */
struct tree_node {
    uint32_t depth;
    uint32_t regions; /* how many */
    uint32_t first;   /* of them, an index into by_node */
    uint32_t placed;  /* how many of them are in by_node yet */
};

/* The tree of one piece of code fits, or is left out. */
enum { SCRATCH_LIMIT = 16 * 1024 * 1024 };

/* No more than `most` will be asked for. */
static bool numbering_start(struct numbering *numbering, size_t most)
{
    hash_table_free(&numbering->table);
    numbering->count = 0;
    numbering->failed = !ARRAY_RESERVE(numbering->list, numbering->room, most);
    return !numbering->failed;
}

static uint32_t number_of(struct numbering *numbering, const void *what)
{
    const uint64_t key = (uint64_t)(uintptr_t)what;
    struct hash_table_entry *known = hash_table_find(&numbering->table, key);
    if (known) {
        return (uint32_t)(known - numbering->list);
    }
    known = &numbering->list[numbering->count];
    known->key = key;
    if (!hash_table_add(&numbering->table, known)) {
        numbering->failed = true;
        return 0;
    }
    return numbering->count++;
}

static const void *numbered(const struct numbering *numbering, uint32_t number)
{
    return (const void *)(uintptr_t)numbering->list[number].key; // NOLINT: it was a pointer
}

static void numbering_free(struct numbering *numbering)
{
    (void)numbering_start(numbering, 0);
    free(numbering->list);
}

struct samply_records *samply_records_new(void)
{
    struct samply_records *records = calloc(1, sizeof(*records));
    if (records) {
        records->nodes = BUFFER_INIT(SCRATCH_LIMIT);
        records->by_node = BUFFER_INIT(SCRATCH_LIMIT);
    }
    return records;
}

void samply_records_free(struct samply_records *records)
{
    if (!records) {
        return;
    }
    numbering_free(&records->functions);
    numbering_free(&records->files);
    regions_free(&records->regions);
    buffer_free(&records->nodes);
    buffer_free(&records->by_node);
    free(records);
}

static uint32_t file_number(struct samply_records *records, const struct source_file *file)
{
    return number_of(&records->files, file);
}

/* Fills a record's size in, now that its end is known. */
static void end_record(struct buffer *buffer, size_t start)
{
    if (!buffer->failed) {
        uint32_t size = (uint32_t)(buffer->size - start);
        memcpy(buffer->bytes + start + offsetof(struct jitdump_record, total_size), &size,
               sizeof(size));
    }
}

static void put_padding(struct buffer *buffer, size_t list_start)
{
    static const uint8_t zeros[SAMPLY_ALIGN];
    size_t over = (buffer->size - list_start) % SAMPLY_ALIGN;
    buffer_put(buffer, zeros, over ? SAMPLY_ALIGN - over : 0);
}

static const struct {
    const char *name;
    enum samply_color color;
} tiers[] = {
    {"Interpreter", SAMPLY_COLOR_RED}, {"C1", SAMPLY_COLOR_BLUE},     {"C2", SAMPLY_COLOR_GREEN},
    {"Stub", SAMPLY_COLOR_GREY},       {"Graal", SAMPLY_COLOR_GREEN},
};

/* An index into tiers, or -1: unknown. */
static int tier_of(const struct code *code)
{
    switch (code->facts.kind) {
    case JITDUMP_KIND_INTERPRETER:
        return 0;
    case JITDUMP_KIND_STUB:
    case JITDUMP_KIND_NATIVE_WRAPPER:
        return 3;
    default:
        break;
    }
    if (!code->method) {
        return 3;
    }
    return code->facts.tier == JITDUMP_TIER_JVMCI ? 4
           : code->facts.tier == 4                ? 2
           : code->facts.tier >= 1                ? 1
                                                  : -1;
}

static void put_tier(struct buffer *buffer, const struct code *code, uint64_t timestamp)
{
    int tier = tier_of(code);
    if (tier < 0) {
        return;
    }
    size_t start = buffer->size;
    size_t name_size = strlen(tiers[tier].name) + 1;
    struct samply_tier record = {
        .prefix = {.id = SAMPLY_JIT_TIER, .timestamp = timestamp},
        .color = tiers[tier].color,
        .name_size = (uint32_t)((name_size + SAMPLY_ALIGN - 1) / SAMPLY_ALIGN * SAMPLY_ALIGN),
    };
    buffer_put(buffer, &record, sizeof(record));
    size_t name = buffer->size;
    buffer_put(buffer, tiers[tier].name, name_size);
    put_padding(buffer, name);
    end_record(buffer, start);
}

/* Makes a buffer hold just this many zero bytes. NULL: no memory. */
static void *resize(struct buffer *buffer, size_t size)
{
    buffer_clear(buffer);
    void *at = buffer_extend(buffer, size);
    return at ? memset(at, 0, size) : NULL;
}

/* Works out the nodes' depths, and which regions are whose. */
static bool prepare_nodes(struct samply_records *records, const struct code *code)
{
    uint32_t node_count = code->node_count ? code->node_count : 1;
    if (regions_find(&records->regions, code) < 0) {
        return false;
    }
    const struct region *regions = records->regions.items;
    uint32_t region_count = records->regions.count;
    struct tree_node *nodes = resize(&records->nodes, node_count * sizeof(*nodes));
    uint32_t *by_node = resize(&records->by_node, region_count * sizeof(*by_node));
    if (!nodes || !by_node) {
        return false;
    }
    for (uint32_t i = 0; i < region_count; i++) {
        nodes[regions[i].node].regions++;
    }
    for (uint32_t i = 1; i < node_count; i++) {
        uint32_t parent = code->nodes[i].parent;
        nodes[i].depth = parent ? nodes[parent].depth + 1 : 0;
        nodes[i].first = nodes[i - 1].first + nodes[i - 1].regions;
    }
    for (uint32_t i = region_count; i-- > 0;) { /* backwards, filling each node's from its end */
        struct tree_node *node = &nodes[regions[i].node];
        by_node[node->first + node->regions - ++node->placed] = i;
    }
    return true;
}

/* Numbers the functions and files that the record will have, the outer function as the first. */
static bool number_names(struct samply_records *records, const struct code *code)
{
    const struct tree_node *nodes = (const struct tree_node *)records->nodes.bytes;
    if (!numbering_start(&records->functions, code->node_count + 1) ||
        !numbering_start(&records->files, code->node_count + code->row_count + 2)) {
        return false;
    }
    number_of(&records->functions, code->method);
    for (uint32_t i = 1; i < code->node_count; i++) {
        if (nodes[i].regions > 0) { /* nothing is left of the others' code */
            number_of(&records->functions, code->nodes[i].method);
        }
    }
    for (uint32_t i = 0; i < records->functions.count; i++) {
        file_number(records, ((const struct method *)numbered(&records->functions, i))->file);
    }
    for (uint32_t i = 0; i < code->row_count && code->range_count == 0; i++) {
        file_number(records, code->rows[i].file);
    }
    return !records->functions.failed && !records->files.failed;
}

static void put_strings(struct samply_records *records, struct buffer *buffer,
                        struct samply_debug_info2 *record)
{
    size_t start = buffer->size;
    for (uint32_t i = 0; i < records->files.count; i++) {
        const struct source_file *file = numbered(&records->files, i);
        buffer_put_string(buffer, file ? file->path : "");
    }
    put_padding(buffer, start);
    record->file_count = records->files.count;
    record->file_list_size = (uint32_t)(buffer->size - start);

    start = buffer->size;
    for (uint32_t i = 0; i < records->functions.count; i++) {
        buffer_put_string(buffer, ((const struct method *)numbered(&records->functions, i))->name);
    }
    put_padding(buffer, start);
    record->function_names_count = records->functions.count;
    record->function_names_list_size = (uint32_t)(buffer->size - start);
}

static void put_functions(struct samply_records *records, struct buffer *buffer,
                          struct samply_debug_info2 *record)
{
    for (uint32_t i = 0; i < records->functions.count; i++) {
        const struct method *method = numbered(&records->functions, i);
        struct samply_function function = {
            .name_index = i,
            .file_index = file_number(records, method->file),
            .start_line = method->first_line,
        };
        buffer_put(buffer, &function, sizeof(function));
    }
    record->function_count = records->functions.count;
}

static void put_calls(struct samply_records *records, struct buffer *buffer,
                      const struct code *code, struct samply_debug_info2 *record)
{
    const struct tree_node *nodes = (const struct tree_node *)records->nodes.bytes;
    const uint32_t *by_node = (const uint32_t *)records->by_node.bytes;
    for (uint32_t i = 1; i < code->node_count; i++) {
        const struct tree_node *node = &nodes[i];
        if (node->regions == 0) {
            continue;
        }
        struct samply_inline_call call = {
            .depth = node->depth,
            .range_count = node->regions,
            .function_index = number_of(&records->functions, code->nodes[i].method),
            .call_line = code->nodes[i].call_line,
        };
        buffer_put(buffer, &call, sizeof(call));
        record->inline_call_count++;
    }
    for (uint32_t i = nodes[0].regions; i < records->regions.count; i++) {
        const struct region *region = &records->regions.items[by_node[i]];
        struct samply_range range = {
            .offset = region->start,
            .size = region->end - region->start,
        };
        buffer_put(buffer, &range, sizeof(range));
        record->range_count++;
    }
}

/* Appends a line record, unless the line goes on from the one before. */
static void put_line(struct buffer *buffer, struct samply_debug_info2 *record,
                     struct samply_line *before, struct samply_line line)
{
    if (record->line_count > 0 && before->file_index == line.file_index &&
        before->line == line.line) {
        return;
    }
    buffer_put(buffer, &line, sizeof(line));
    record->line_count++;
    *before = line;
}

static void put_lines(struct samply_records *records, struct buffer *buffer,
                      const struct code *code, struct samply_debug_info2 *record)
{
    struct samply_line before = {0};
    for (uint32_t i = 0; i < code->range_count; i++) {
        const struct inline_range *range = &code->ranges[i];
        const struct method *method = code->nodes[range->node].method;
        put_line(buffer, record, &before,
                 (struct samply_line){.offset = range->offset,
                                      .file_index = file_number(records, method->file),
                                      .line = range->line});
    }
    if (code->range_count > 0) {
        if (code->ranges_end < code->size) {
            put_line(buffer, record, &before, (struct samply_line){.offset = code->ranges_end});
        }
        return;
    }
    for (uint32_t i = 0; i < code->row_count; i++) {
        const struct code_row *row = &code->rows[i];
        put_line(buffer, record, &before,
                 (struct samply_line){.offset = row->offset,
                                      .file_index = file_number(records, row->file),
                                      .line = row->line});
    }
}

static void put_debug_info(struct samply_records *records, struct buffer *buffer,
                           const struct code *code, uint64_t timestamp)
{
    size_t start = buffer->size;
    struct samply_debug_info2 record = {
        .prefix = {.id = SAMPLY_JIT_CODE_DEBUG_INFO2, .timestamp = timestamp},
    };
    buffer_put(buffer, &record, sizeof(record));
    put_strings(records, buffer, &record);
    put_functions(records, buffer, &record);
    put_calls(records, buffer, code, &record);
    put_lines(records, buffer, code, &record);
    if (!buffer->failed) {
        memcpy(buffer->bytes + start, &record, sizeof(record));
    }
    end_record(buffer, start);
}

void samply_records_put(struct samply_records *records, struct buffer *buffer,
                        const struct code *code, uint64_t timestamp)
{
    if (code->method && (code->range_count > 0 || code->row_count > 0)) {
        if (!prepare_nodes(records, code) || !number_names(records, code)) {
            buffer->failed = true;
            return;
        }
        put_debug_info(records, buffer, code, timestamp);
    }
    put_tier(buffer, code, timestamp);
}
