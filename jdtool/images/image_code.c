#include "jdtool/images/image_code.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/images/image_elf.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/unwind/code_frames.h"
#include "jdtool/unwind/eh_frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Debugging information beyond that is left out: its offsets are 32 bits wide. */
#define DWARF_SIZE_MAX (UINT64_C(1) << 30)

/* A piece of code in the image. */
struct member {
    const struct resolved_code *code;
    const char *file; /* the method's own source file; "": the dump does not tell */
};

struct code_writer {
    struct member *members; /* by source file */
    uint32_t count;
    struct code_index *index;
    uint32_t file;
    uint64_t base;
    const struct image_set_options *options;
    struct image_elf *elf;
    struct dwarf *dwarf;
    struct code_details details;
    struct dwarf_row *rows; /* of the function that is being added */
    uint32_t row_count;
    uint32_t row_room;
    bool too_large; /* the debugging information; told */

    struct bytes eh_frame;
    struct image_elf_fde *fdes;
    uint32_t fde_count;
    uint32_t fde_room;
    uint32_t without_frames; /* pieces of code for whose frames there is no room; told */
};

static int by_file(const void *left, const void *right)
{
    const struct member *a = left;
    const struct member *b = right;
    int order = strcmp(a->file, b->file);
    return order ? order
                 : (a->code->address > b->code->address) - (a->code->address < b->code->address);
}

static int list_members(const struct jvm_images *images, uint32_t file, struct code_writer *writer)
{
    writer->members = calloc(images->code_count + (size_t)1, sizeof *writer->members);
    if (!writer->members) {
        return -ENOMEM;
    }
    for (uint32_t piece = 0; piece < images->code_count; piece++) {
        if (image_layout_file_of(images->layout, piece) == file) {
            const struct resolved_code *code = images->codes[piece];
            const char *source = code->method->file;
            writer->members[writer->count++] = (struct member){code, source ? source : ""};
        }
    }
    if (writer->count) {
        qsort(writer->members, writer->count, sizeof *writer->members, by_file);
    }
    return 0;
}

static int by_offset(const void *left, const void *right)
{
    const struct dwarf_row *a = left;
    const struct dwarf_row *b = right;
    return (a->offset > b->offset) - (a->offset < b->offset);
}

/* The dump's entries are where the LOAD had the code. */
static int make_rows(struct code_writer *writer, const struct resolved_code *code)
{
    uint64_t loaded_at = code_index_blob(writer->index, code->blob)->address;
    bool sorted = true;
    writer->row_count = 0;
    for (uint32_t i = 0; i < writer->details.entry_count; i++) {
        const struct jitdump_entry *entry = &writer->details.entries[i];
        uint64_t offset = entry->address - loaded_at;
        if (offset >= code->size) {
            continue;
        }
        if (array_reserve(&writer->rows, writer->row_count, &writer->row_room,
                          sizeof *writer->rows) < 0) {
            return -ENOMEM;
        }
        sorted &= writer->row_count == 0 || writer->rows[writer->row_count - 1].offset <= offset;
        writer->rows[writer->row_count++] = (struct dwarf_row){
            .offset = (uint32_t)offset, .line = entry->line, .file = entry->file};
    }
    if (!sorted) {
        qsort(writer->rows, writer->row_count, sizeof *writer->rows, by_offset);
    }
    return 0;
}

static int describe(struct code_writer *writer, const struct resolved_code *code, uint64_t offset)
{
    int err = make_rows(writer, code);
    if (err) {
        return err;
    }
    struct dwarf_function function = {
        .address = offset,
        .size = code->size,
        .name = code->symbol,
        .line = code->method->first_line,
        .rows = writer->rows,
        .row_count = writer->row_count,
        .inlines = writer->options->inlines ? &writer->details.trailer : NULL,
        .layer = writer->file,
    };
    dwarf_add_function(writer->dwarf, &function);
    return 0;
}

/* The method's own file, where the dump tells; else that of its first line. */
static const char *file_of(const struct code_writer *writer, const struct resolved_code *code)
{
    if (code->method->file) {
        return code->method->file;
    }
    return writer->details.entry_count ? writer->details.entries[0].file : NULL;
}

static int add_members(struct code_writer *writer)
{
    const char *file = NULL;
    bool in_unit = false;
    int err = 0;
    for (uint32_t i = 0; i < writer->count && !err; i++) {
        const struct resolved_code *code = writer->members[i].code;
        uint64_t offset = code->address - writer->base;
        err = code_index_fetch(writer->index, code->blob, &writer->details);
        if (err) {
            break;
        }
        image_elf_add(writer->elf, offset, code->size, writer->details.bytes, code->symbol);
        if (dwarf_size(writer->dwarf) > DWARF_SIZE_MAX) {
            writer->too_large = true;
            continue;
        }
        if (!in_unit || !code->method->file || !file || strcmp(file, code->method->file) != 0) {
            if (in_unit) {
                dwarf_unit_end(writer->dwarf);
            }
            dwarf_unit_begin(writer->dwarf, file_of(writer, code));
            file = code->method->file;
            in_unit = true;
        }
        err = describe(writer, code, offset);
    }
    if (in_unit) {
        dwarf_unit_end(writer->dwarf);
    }
    return err;
}

/* ---- Call-frame information ---- */

/* Appends what eh_frame_build made for one piece of code: its CIE and FDE, without the terminator
 * and the table behind them. */
static int add_entry(struct code_writer *writer, const struct eh_frame *table, uint64_t offset)
{
    uint32_t cie_length;
    memcpy(&cie_length, table->bytes, sizeof cie_length);
    if (array_reserve(&writer->fdes, writer->fde_count, &writer->fde_room, sizeof *writer->fdes) <
        0) {
        return -ENOMEM;
    }
    writer->fdes[writer->fde_count++] = (struct image_elf_fde){
        .code = offset, .entry = writer->eh_frame.size + sizeof cie_length + cie_length};
    bytes_put(&writer->eh_frame, table->bytes, table->size - table->hdr_size - 8);
    return writer->eh_frame.failed ? -ENOMEM : 0;
}

/* Whether one more entry of that size fits into the room, with the terminator and the table. */
static bool has_room(const struct code_writer *writer, size_t size)
{
    return writer->eh_frame.size + size + sizeof(uint64_t) + IMAGE_ELF_FRAME_ALIGN +
               IMAGE_ELF_FRAME_HEADER(writer->fde_count + UINT64_C(1)) <=
           IMAGE_FRAME_ROOM;
}

/* at: the offset of .eh_frame. */
static int add_frames_of(struct code_writer *writer, struct code_frames *frames, uint64_t at,
                         const struct resolved_code *code, struct eh_frame *table)
{
    unsigned machine = code_index_header(writer->index)->elf_mach;
    const struct blob_frames *blob = code_frames_of(frames, code->blob);
    uint64_t offset = code->address - writer->base;
    if (blob->frames.count == 0) {
        return 0;
    }
    int err = eh_frame_build(machine, &blob->frames, offset, code->size, at + writer->eh_frame.size,
                             table);
    if (!err && has_room(writer, table->size) && offset - at <= INT32_MAX) {
        return add_entry(writer, table, offset);
    }
    if (!err || err == -ERANGE) { /* further away than the format can tell */
        writer->without_frames++;
        return 0;
    }
    return err;
}

static int add_frame_info(struct code_writer *writer, const struct image_file *image)
{
    struct code_frames *frames = code_frames_new(writer->index);
    struct eh_frame table = {0};
    uint64_t at = image->frame_room - image->base;
    int err = frames ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < writer->count && !err && image->frame_room; i++) {
        err = add_frames_of(writer, frames, at, writer->members[i].code, &table);
    }
    if (!image->frame_room) {
        writer->without_frames = writer->count;
    }
    eh_frame_free(&table);
    code_frames_free(frames);
    if (!err && writer->fde_count) {
        bytes_u64(&writer->eh_frame, 0); /* the terminator */
        image_elf_set_frames(writer->elf, at, &writer->eh_frame, writer->fdes, writer->fde_count);
    }
    return err;
}

/* ---- All of it ---- */

int image_code_write(struct jvm_images *images, uint32_t file,
                     const struct image_set_options *options, uint8_t build_id[BUILD_ID_MAX])
{
    const char *path = image_set_path(images, file);
    if (!path) {
        return -ENOMEM;
    }
    const struct image_file *image = image_layout_file(images->layout, file);
    struct code_writer writer = {
        .index = images->index,
        .file = file,
        .base = image->base,
        .options = options,
        .dwarf = dwarf_new(options->source_path, code_index_names(images->index)),
    };
    uint16_t machine = (uint16_t)code_index_header(images->index)->elf_mach;
    int err = writer.dwarf ? image_elf_open(path, machine, &writer.elf) : -ENOMEM;
    if (!err && image_layout_file_count(images->layout) > 1 && !options->frame_info) {
        image_elf_hide_code(writer.elf);
    }
    if (!err) {
        err = list_members(images, file, &writer);
    }
    if (!err) {
        err = add_members(&writer);
    }
    if (!err && options->frame_info) {
        err = add_frame_info(&writer, image);
    }
    if (err == -ENOMEM) {
        error_message("failed to write %s: %s", path, strerror(ENOMEM));
    }
    if (writer.too_large) {
        warning_message("%s has no lines for some of its code: it has too much", path);
    }
    if (writer.without_frames) {
        warning_message("%s has no call-frame information for %u of %u pieces of code: there is "
                        "no room for it",
                        path, writer.without_frames, writer.count);
    }
    if (!err) {
        err = image_elf_finish(writer.elf, writer.dwarf, build_id);
        writer.elf = NULL;
    }
    image_elf_abort(writer.elf);
    dwarf_free(writer.dwarf);
    code_details_free(&writer.details);
    bytes_free(&writer.eh_frame);
    free(writer.fdes);
    free(writer.rows);
    free(writer.members);
    return err;
}
