/*
 * The code is laid out by source file, so that each unit of the debugging information covers one
 * piece of the image. What file a blob belongs to stands in its DEBUG_INFO, so blobs are fetched
 * twice: for the order, then for the contents. Nothing of a blob stays in memory but what goes into
 * the image.
 */
#include "jdtool/sinks/code_image.h"

#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/sinks/elf_image.h"

#include <errno.h>

/* A blob on its way into the image. */
struct member {
    const char *file; /* interned; NULL: unknown */
    uint32_t blob;
};

/* The rows of the function that is being added. */
struct rows {
    struct dwarf_row *rows;
    uint32_t count;
    uint32_t room;
};

/* Code without bytes is zeros in the image; this much, for a dump may claim any size. */
#define MAX_ZEROS ((uint64_t)16 << 20)

static bool is_member(const struct jvm *jvm, uint32_t number, bool keep_all)
{
    const struct code_blob *blob = code_index_blob(jvm->index, number);
    return (keep_all || (jvm->touched_blobs[number / 64] >> (number % 64) & 1)) && blob->size > 0 &&
           (blob->has_bytes || blob->size <= MAX_ZEROS);
}

static const struct trailer_method *method_of(const struct jvm *jvm,
                                              const struct code_details *details)
{
    return details->trailer.node_count ? trailer_names_method(code_index_names(jvm->index),
                                                              details->trailer.nodes[0].method)
                                       : NULL;
}

/* The compiled method's own file, where the dump tells; else that of its first line. */
static const char *file_of(const struct jvm *jvm, const struct code_details *details)
{
    const struct trailer_method *method = method_of(jvm, details);
    if (method && method->file) {
        return method->file;
    }
    return details->entry_count ? details->entries[0].file : NULL;
}

static int by_file(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    if (a->file != b->file) {
        return strcmp(a->file ? a->file : "", b->file ? b->file : "");
    }
    return (a->blob > b->blob) - (a->blob < b->blob);
}

static int list_members(const struct jvm *jvm, bool keep_all, struct code_details *details,
                        struct intern *files, struct member **out, uint32_t *count)
{
    uint32_t blob_count = code_index_blob_count(jvm->index);
    struct member *members = calloc(blob_count + 1, sizeof *members);
    int err = members ? 0 : -ENOMEM;
    *count = 0;
    for (uint32_t blob = 0; blob < blob_count && !err; blob++) {
        if (!is_member(jvm, blob, keep_all)) {
            continue;
        }
        err = code_index_fetch(jvm->index, blob, details);
        if (!err) {
            const char *file = file_of(jvm, details);
            members[*count].blob = blob;
            if (file) {
                members[*count].file = intern(files, file);
                err = members[*count].file ? 0 : -ENOMEM;
            }
            (*count)++;
        }
    }
    if (*count) {
        qsort(members, *count, sizeof *members, by_file);
    }
    *out = members;
    return err;
}

static int by_offset(const void *left, const void *right)
{
    const struct dwarf_row *a = left;
    const struct dwarf_row *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

static int make_rows(const struct code_blob *blob, const struct code_details *details,
                     struct rows *rows)
{
    bool sorted = true;
    rows->count = 0;
    if (details->entry_count > rows->room) {
        struct dwarf_row *grown = realloc(rows->rows, details->entry_count * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        rows->rows = grown;
        rows->room = details->entry_count;
    }
    for (uint32_t i = 0; i < details->entry_count; i++) {
        const struct jitdump_entry *entry = &details->entries[i];
        uint64_t offset = entry->address - blob->address;
        if (offset >= blob->size) {
            continue;
        }
        sorted &= rows->count == 0 || rows->rows[rows->count - 1].offset <= offset;
        rows->rows[rows->count++] = (struct dwarf_row){
            .offset = (uint32_t)offset, .line = entry->line, .file = entry->file};
    }
    if (!sorted) {
        qsort(rows->rows, rows->count, sizeof *rows->rows, by_offset);
    }
    return 0;
}

static int add_member(const struct jvm *jvm, const struct code_image_options *options,
                      uint32_t number, const struct code_details *details, struct elf_image *elf,
                      struct rows *rows, uint64_t address)
{
    const struct code_blob *blob = code_index_blob(jvm->index, number);
    const struct trailer_method *method = method_of(jvm, details);
    int err = make_rows(blob, details, rows);
    if (err) {
        return err;
    }
    struct dwarf_function function = {
        .address = address,
        .size = blob->size,
        .name = blob->name,
        .line = method ? method->first_line : 0,
        .rows = rows->rows,
        .row_count = rows->count,
        .inlines = options->inlines ? &details->trailer : NULL,
    };
    elf_image_add_symbol(elf, blob->name, address, blob->size);
    dwarf_add_function(elf->dwarf, &function);
    return 0;
}

static int add_members(const struct jvm *jvm, const struct code_image_options *options,
                       const struct member *members, uint32_t count, struct code_details *details,
                       struct elf_image *elf, struct code_image *image)
{
    struct rows rows = {0};
    int err = 0;
    for (uint32_t i = 0; i < count && !err; i++) {
        uint32_t number = members[i].blob;
        err = code_index_fetch(jvm->index, number, details);
        if (err) {
            break;
        }
        uint64_t address =
            elf_image_add_code(elf, details->bytes, code_index_blob(jvm->index, number)->size);
        image->offsets[number] = address;
        if (i == 0 || members[i].file != members[i - 1].file) {
            if (i > 0) {
                dwarf_unit_end(elf->dwarf);
            }
            dwarf_unit_begin(elf->dwarf, members[i].file);
        }
        err = add_member(jvm, options, number, details, elf, &rows, address);
    }
    if (count) {
        dwarf_unit_end(elf->dwarf);
    }
    free(rows.rows);
    return err;
}

int code_image_write(const struct jvm *jvm, const char *path,
                     const struct code_image_options *options, struct code_image *image)
{
    struct code_details details = {0};
    struct intern files = {0};
    struct member *members = NULL;
    struct elf_image elf = {
        .machine = (uint16_t)code_index_header(jvm->index)->elf_mach,
        .dwarf = dwarf_new(options->source_path, code_index_names(jvm->index)),
    };
    *image = (struct code_image){
        .offsets = calloc(code_index_blob_count(jvm->index) + (size_t)1, sizeof(uint64_t))};
    int err = elf.dwarf && image->offsets ? 0 : -ENOMEM;
    if (!err) {
        err = list_members(jvm, options->keep_all, &details, &files, &members, &image->count);
    }
    if (!err) {
        err = add_members(jvm, options, members, image->count, &details, &elf, image);
    }
    if (err == -ENOMEM) {
        error_message("failed to write %s: %s", path, strerror(ENOMEM));
    }
    if (!err) {
        err = elf_image_write(&elf, path, image->build_id);
    }
    if (err) {
        code_image_free(image);
    }
    free(members);
    dwarf_free(elf.dwarf);
    elf_image_free(&elf);
    intern_free(&files);
    code_details_free(&details);
    return err;
}

void code_image_free(struct code_image *image)
{
    free(image->offsets);
    *image = (struct code_image){0};
}
