#include "jdtool/jitdump/code_details.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/jitdump/samply_tree.h"
#include "jdtool/jitdump/tree_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    if (array_reserve(&details->entries, details->entry_count, &details->entry_room,
                      sizeof(*details->entries)) < 0) {
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
        error_message("failed to read %s: %s", path, strerror(ENOMEM));
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
