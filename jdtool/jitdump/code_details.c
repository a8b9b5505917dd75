#include "jdtool/jitdump/code_index.h"

#include "format/fnv1a.h"
#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/jitdump/samply_reader.h"
#include "jdtool/jitdump/trailer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The inline tree of a samply record, in the shape of our trailer (format/jitdump.h). */

/* Ids of functions from samply's records have the highest bit, which no writer reaches by counting.
 */
#define SAMPLY_ID (UINT64_C(1) << 63)

struct span {
    uint32_t start;
    uint32_t end;
    uint32_t node;
};

struct sweep {
    struct span *spans; /* sorted by start */
    uint32_t span_count;
    uint32_t *bounds; /* sorted, all below the code's size; the first is 0 */
    uint32_t bound_count;
    struct span *heap; /* the highest node first */
    uint32_t heap_count;
};

/* The id of a function, the same each time it is asked for; 0 when nothing is known of it. */
static uint64_t method_id(const struct samply_inlines *inlines, uint32_t index,
                          struct trailer_names *names)
{
    if (index >= inlines->function_count ||
        inlines->functions[index].name_index >= inlines->name_count) {
        return 0;
    }
    const struct samply_function *function = &inlines->functions[index];
    struct trailer_method method = {.name = inlines->names[function->name_index],
                                    .first_line = function->start_line};
    const char *path =
        function->file_index < inlines->file_count ? inlines->files[function->file_index] : "";
    uint64_t start = fnv1a(FNV1A_START, path);
    const char *why;
    if (*path) {
        for (method.file_id = start | SAMPLY_ID;
             trailer_names_add_file(names, method.file_id, path, &why) < 0; method.file_id++) {
            if (!trailer_names_file(names, method.file_id)) {
                return 0; /* no memory; else the id is another path's, and the next one is tried */
            }
        }
    }
    uint64_t id = fnv1a(start + function->start_line, method.name) | SAMPLY_ID;
    while (trailer_names_add_method(names, id, &method, &why) < 0) {
        if (!trailer_names_has_method(names, id)) {
            return 0;
        }
        id++;
    }
    return id;
}

static int add_nodes(const struct samply_inlines *inlines, struct trailer_names *names,
                     struct trailer *trailer)
{
    int error =
        trailer_add_node(trailer, &(struct trailer_node){.method = method_id(inlines, 0, names)});
    uint32_t depth = 0; /* of the node before; node 0 has 0, calls from it have 1 */
    for (uint32_t i = 0; i < inlines->call_count && !error; i++) {
        const struct samply_inline_call *call = &inlines->calls[i];
        uint32_t parent = i; /* the node before */
        uint32_t wanted = call->depth < depth ? call->depth : depth;
        for (; depth > wanted; depth--) {
            parent = trailer->nodes[parent].parent;
        }
        depth++;
        error = trailer_add_node(
            trailer,
            &(struct trailer_node){.method = method_id(inlines, call->function_index, names),
                                   .parent = parent,
                                   .call_line = call->call_line});
    }
    return error;
}

static int by_start(const void *left, const void *right)
{
    const struct span *a = left;
    const struct span *b = right;
    return ORDER(a->start, b->start);
}

static int prepare(struct sweep *sweep, const struct samply_inlines *inlines, uint32_t code_size)
{
    sweep->spans = calloc((size_t)inlines->range_count + 1, sizeof(*sweep->spans));
    sweep->heap = calloc((size_t)inlines->range_count + 1, sizeof(*sweep->heap));
    sweep->bounds =
        calloc((size_t)inlines->range_count * 2 + inlines->line_count + 1, sizeof(*sweep->bounds));
    if (!sweep->spans || !sweep->heap || !sweep->bounds) {
        return -ENOMEM;
    }
    uint32_t bounds = 1; /* the code's start */
    uint32_t next = 0;   /* the range that no call has taken yet */
    for (uint32_t i = 0; i < inlines->call_count; i++) {
        uint32_t left = inlines->range_count - next;
        uint32_t end =
            next + (inlines->calls[i].range_count < left ? inlines->calls[i].range_count : left);
        for (; next < end; next++) {
            uint32_t start = inlines->ranges[next].offset;
            if (start >= code_size) {
                continue;
            }
            uint32_t room = code_size - start;
            uint32_t size = inlines->ranges[next].size < room ? inlines->ranges[next].size : room;
            sweep->spans[sweep->span_count++] =
                (struct span){.start = start, .end = start + size, .node = i + 1};
            sweep->bounds[bounds++] = start;
            if (size < room) {
                sweep->bounds[bounds++] = start + size;
            }
        }
    }
    for (uint32_t i = 0; i < inlines->line_count; i++) {
        if (inlines->lines[i].offset < code_size) {
            sweep->bounds[bounds++] = inlines->lines[i].offset;
        }
    }
    qsort(sweep->spans, sweep->span_count, sizeof(*sweep->spans), by_start);
    qsort(sweep->bounds, bounds, sizeof(*sweep->bounds), compare_u32);
    for (uint32_t i = 0; i < bounds; i++) {
        if (i == 0 || sweep->bounds[i] != sweep->bounds[sweep->bound_count - 1]) {
            sweep->bounds[sweep->bound_count++] = sweep->bounds[i];
        }
    }
    return 0;
}

static void swap(struct span *a, struct span *b)
{
    struct span old = *a;
    *a = *b;
    *b = old;
}

static void push(struct sweep *sweep, const struct span *span)
{
    uint32_t at = sweep->heap_count++;
    sweep->heap[at] = *span;
    for (; at > 0 && sweep->heap[(at - 1) / 2].node < sweep->heap[at].node; at = (at - 1) / 2) {
        swap(&sweep->heap[at], &sweep->heap[(at - 1) / 2]);
    }
}

static void pop(struct sweep *sweep)
{
    sweep->heap[0] = sweep->heap[--sweep->heap_count];
    for (uint32_t at = 0;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < sweep->heap_count &&
            sweep->heap[child + 1].node > sweep->heap[child].node) {
            child++;
        }
        if (child >= sweep->heap_count || sweep->heap[child].node <= sweep->heap[at].node) {
            return;
        }
        swap(&sweep->heap[at], &sweep->heap[child]);
        at = child;
    }
}

static int add_ranges(struct sweep *sweep, const struct samply_inlines *inlines, uint32_t code_size,
                      struct trailer *trailer)
{
    uint32_t span = 0;
    uint32_t line = 0; /* the line records up to this one have begun */
    for (uint32_t i = 0; i < sweep->bound_count; i++) {
        uint32_t offset = sweep->bounds[i];
        uint32_t end = i + 1 < sweep->bound_count ? sweep->bounds[i + 1] : code_size;
        for (; span < sweep->span_count && sweep->spans[span].start <= offset; span++) {
            push(sweep, &sweep->spans[span]);
        }
        while (sweep->heap_count > 0 && sweep->heap[0].end <= offset) {
            pop(sweep);
        }
        while (line < inlines->line_count && inlines->lines[line].offset <= offset) {
            line++;
        }
        struct trailer_range range = {.offset = offset,
                                      .size = end - offset,
                                      .node = sweep->heap_count ? sweep->heap[0].node : 0,
                                      .line = line ? inlines->lines[line - 1].line : 0};
        if (range.size > 0 && trailer_add_range(trailer, &range) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

/*
 * Fills the trailer's nodes and ranges, for code of code_size bytes, from the lists of a record
 * that need not keep samply's rules: what does not fit is cut off or unknown. The record's
 * functions are taken into names, under ids that no dump uses. 0 or -ENOMEM.
 */
static int samply_tree(const struct samply_inlines *inlines, uint32_t code_size,
                       struct trailer_names *names, struct trailer *trailer)
{
    struct sweep sweep = {0};
    int error = add_nodes(inlines, names, trailer) < 0 ? -ENOMEM : 0;
    if (!error) {
        error = prepare(&sweep, inlines, code_size);
    }
    if (!error) {
        error = add_ranges(&sweep, inlines, code_size, trailer);
    }
    free(sweep.spans);
    free(sweep.heap);
    free(sweep.bounds);
    return error;
}

struct source {
    struct jitdump_reader *reader;
    const char *path;
    struct trailer_names *names;
};

static int reserve_buffer(struct code_buffer *buffer, size_t size)
{
    if (size <= buffer->room) {
        return 0;
    }
    uint8_t *grown = realloc(buffer->bytes, size + size / 2);
    if (!grown) {
        return -ENOMEM;
    }
    buffer->bytes = grown;
    buffer->room = size + size / 2;
    return 0;
}

static int add_entry(struct code_details *details, const struct jitdump_entry *entry)
{
    if (ARRAY_RESERVE(details->entries, details->entry_count, details->entry_room)) {
        return -ENOMEM;
    }
    details->entries[details->entry_count++] = *entry;
    return 0;
}

/* Rows that the record has left to its tree. */
static int fetch_tree_rows(const struct source *source, const struct code_blob *blob,
                           struct code_details *details)
{
    struct tree_rows rows = {.entries = details->entries, .room = details->entry_room};
    int error = tree_rows_make(&details->trailer, source->names, blob->address, blob->size, &rows);
    details->entries = rows.entries;
    details->entry_room = rows.room;
    details->entry_count = error ? 0 : rows.count;
    return error;
}

static int fetch_rows(const struct source *source, const struct jitdump_record_view *record,
                      const struct code_blob *blob, struct code_details *details)
{
    /* All names together are shorter than the entries, so the buffer never has to move. */
    int error = reserve_buffer(&details->string_buffer, record->debug_info.entries_size);
    if (error) {
        return error;
    }
    char *string = (char *)details->string_buffer.bytes;
    struct jitdump_entry_walk walk = {0};
    struct jitdump_entry entry;
    const char *last = NULL; /* in the record */
    const char *kept = NULL; /* its copy */
    int more;
    while ((more = jitdump_entry_next(source->reader, record, &walk, &entry)) > 0) {
        if (!last || (entry.file != last && strcmp(entry.file, last) != 0)) {
            size_t size = strlen(entry.file) + 1;
            memcpy(string, entry.file, size);
            kept = string;
            string += size;
        }
        last = entry.file;
        entry.file = kept;
        error = add_entry(details, &entry);
        if (error) {
            return error;
        }
    }
    const char *why;
    if (more == 0) {
        /* A broken trailer was told of when the dump was read; it decodes to nothing. */
        trailer_decode(source->reader, record->debug_info.entries + walk.at,
                       record->debug_info.entries_size - walk.at, source->names, &details->trailer,
                       &why);
    }
    return details->trailer.tree_rows && details->entry_count == 0
               ? fetch_tree_rows(source, blob, details)
               : 0;
}

/* Rows from the lines of samply's record. Where it knows none, the outer function's first. */
static int make_rows(const struct jitdump_record_view *record, const struct samply_inlines *inlines,
                     const struct code_blob *blob, struct code_details *details)
{
    int error = reserve_buffer(&details->string_buffer, record->payload_size);
    if (error) {
        return error;
    }
    const char *copy = (const char *)details->string_buffer.bytes;
    memcpy(details->string_buffer.bytes, record->payload, record->payload_size);
    struct jitdump_entry entry = {0};
    for (uint32_t i = 0; i < inlines->line_count && !error; i++) {
        const struct samply_line *line = &inlines->lines[i];
        uint32_t file = line->file_index;
        entry.line = line->line;
        if (entry.line == 0 && inlines->function_count > 0) {
            entry.line = inlines->functions[0].start_line;
            file = inlines->functions[0].file_index;
        }
        if (entry.line == 0 || file >= inlines->file_count || line->offset >= blob->size) {
            continue;
        }
        entry.address = blob->address + line->offset;
        entry.file = copy + (inlines->files[file] - (const char *)record->payload);
        error = add_entry(details, &entry);
    }
    if (!error && details->entry_count > 0) {
        entry = details->entries[details->entry_count - 1];
        entry.address = blob->address + blob->size;
        error = add_entry(details, &entry);
    }
    return error;
}

static int fetch_samply(const struct source *source, const struct jitdump_record_view *record,
                        const struct code_blob *blob, struct code_details *details)
{
    struct samply_inlines inlines = {0};
    const char *why;
    int error = 0;
    if (samply_decode_inlines(source->reader, record, &inlines, &why) == 0) {
        if (details->entry_count == 0) {
            error = make_rows(record, &inlines, blob, details);
        }
        if (!error && blob->size <= UINT32_MAX) {
            error = samply_tree(&inlines, (uint32_t)blob->size, source->names, &details->trailer);
        }
    }
    samply_inlines_free(&inlines);
    return error;
}

static int fetch_unwinding(const struct jitdump_record_view *record, struct code_details *details)
{
    size_t size = (size_t)record->unwinding_info.data_size;
    int error = reserve_buffer(&details->unwinding_buffer, size);
    if (!error && size > 0) {
        memcpy(details->unwinding_buffer.bytes, record->unwinding_info.data, size);
        details->unwinding = details->unwinding_buffer.bytes;
        details->unwinding_size = size;
        details->eh_frame_hdr_size = (size_t)record->unwinding_info.eh_frame_hdr_size;
    }
    return error;
}

/* Reads a record again that was sound before. */
static int read_again(const struct source *source, uint64_t offset, uint32_t id,
                      struct jitdump_record_view *record)
{
    jitdump_reader_seek(source->reader, offset);
    enum jitdump_status status = jitdump_reader_next(source->reader, record);
    if (status == JITDUMP_RECORD && record->id == id) {
        return 0;
    }
    error_message(
        "failed to read %s again at offset %llu: %s", source->path, (unsigned long long)offset,
        status == JITDUMP_RECORD ? "the file has changed" : jitdump_reader_error(source->reader));
    return -EIO;
}

static int fetch_code(const struct source *source, const struct code_blob *blob,
                      const struct jitdump_record_view *record, struct code_details *details)
{
    if (!record->load.bytes || record->load.code_size != blob->size) {
        error_message("failed to read %s again: the file has changed", source->path);
        return -EIO;
    }
    int error = reserve_buffer(&details->code_buffer, (size_t)blob->size);
    if (!error) {
        memcpy(details->code_buffer.bytes, record->load.bytes, (size_t)blob->size);
        details->bytes = details->code_buffer.bytes;
    }
    return error;
}

static void clear(struct code_details *details)
{
    details->bytes = NULL;
    details->unwinding = NULL;
    details->unwinding_size = 0;
    details->eh_frame_hdr_size = 0;
    details->entry_count = 0;
    trailer_clear(&details->trailer);
}

int code_details_read(struct jitdump_reader *reader, const char *path, struct trailer_names *names,
                      const struct code_blob *blob, struct code_details *details)
{
    const struct source source = {reader, path, names};
    struct jitdump_record_view record;
    clear(details);
    int error = 0;
    if (!reader) {
        return 0;
    }
    if (blob->debug_offset) {
        error = read_again(&source, blob->debug_offset, JIT_CODE_DEBUG_INFO, &record);
        if (!error) {
            error = fetch_rows(&source, &record, blob, details);
        }
    }
    if (!error && blob->samply_offset && details->trailer.node_count == 0) {
        error = read_again(&source, blob->samply_offset, SAMPLY_JIT_CODE_DEBUG_INFO2, &record);
        if (!error) {
            error = fetch_samply(&source, &record, blob, details);
        }
    }
    if (!error && blob->unwinding_offset) {
        error = read_again(&source, blob->unwinding_offset, JIT_CODE_UNWINDING_INFO, &record);
        if (!error) {
            error = fetch_unwinding(&record, details);
        }
    }
    if (!error && blob->has_bytes && blob->size > 0) {
        error = read_again(&source, blob->load_offset, JIT_CODE_LOAD, &record);
        if (!error) {
            error = fetch_code(&source, blob, &record, details);
        }
    }
    if (error == -ENOMEM) {
        failed_to(-ENOMEM, "read %s", path);
    }
    return error;
}

void code_details_free(struct code_details *details)
{
    free(details->entries);
    free(details->code_buffer.bytes);
    free(details->string_buffer.bytes);
    free(details->unwinding_buffer.bytes);
    trailer_free(&details->trailer);
    memset(details, 0, sizeof(*details));
}
