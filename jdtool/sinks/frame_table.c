#include "jdtool/sinks/frame_table.h"

#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/sinks/elf_image.h"

#include <errno.h>
#include <stdio.h>

/* One byte would do, but addr2line of binutils 2.40 finds no line for an address that ends in ff.
 */
#define FRAME_BYTES 4

struct frame {
    const char *name; /* interned, as is the file */
    const char *file; /* NULL: unknown */
    uint32_t line;
    enum frame_kind kind;
    uint32_t offset; /* in the image's code, once laid out */
};

struct frame_table {
    uint32_t number;
    const char *suffixes[FRAME_KINDS];
    struct intern strings;
    struct frame *frames;
    uint32_t count;
    uint32_t room;
    uint32_t *slots; /* hash of a frame -> index plus one */
    uint32_t slot_count;
    uint32_t *order; /* indexes by method, then by line; made by the layout */
};

struct frame_table *frame_table_new(uint32_t number, const char *const suffixes[FRAME_KINDS])
{
    struct frame_table *table = calloc(1, sizeof *table);
    if (table) {
        table->number = number;
        memcpy(table->suffixes, suffixes, sizeof table->suffixes);
    }
    return table;
}

void frame_table_free(struct frame_table *table)
{
    if (!table) {
        return;
    }
    intern_free(&table->strings);
    free(table->frames);
    free(table->slots);
    free(table->order);
    free(table);
}

/* ---- Adding ---- */

static uint32_t hash_frame(const struct frame *frame)
{
    uint64_t hash = (uintptr_t)frame->name ^ (uintptr_t)frame->file << 20 ^
                    (uint64_t)frame->line << 3 ^ frame->kind;
    return (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static uint32_t *find(const struct frame_table *table, const struct frame *frame)
{
    uint32_t mask = table->slot_count - 1;
    uint32_t slot = hash_frame(frame) & mask;
    for (; table->slots[slot]; slot = (slot + 1) & mask) {
        const struct frame *other = &table->frames[table->slots[slot] - 1];
        if (other->name == frame->name && other->line == frame->line &&
            other->file == frame->file && other->kind == frame->kind) {
            break;
        }
    }
    return &table->slots[slot];
}

static bool grow(struct frame_table *table)
{
    uint32_t room = table->room ? table->room * 2 : 256;
    struct frame *frames = realloc(table->frames, room * sizeof *frames);
    if (!frames) {
        return false;
    }
    table->frames = frames;
    uint32_t *slots = calloc(room * (size_t)2, sizeof *slots);
    if (!slots) {
        return false;
    }
    free(table->slots);
    table->slots = slots;
    table->slot_count = room * 2;
    table->room = room;
    for (uint32_t i = 0; i < table->count; i++) {
        *find(table, &frames[i]) = i + 1;
    }
    return true;
}

static uint64_t address_of(const struct frame_table *table, uint32_t offset)
{
    return FRAME_BASE + table->number * FRAME_SPACE + offset;
}

uint64_t frame_table_add(struct frame_table *table, enum frame_kind kind, const char *name,
                         const char *file, uint32_t line)
{
    struct frame frame = {.line = line, .kind = kind};
    if (table->count == table->room && !grow(table)) {
        return 0;
    }
    frame.name = intern(&table->strings, name);
    frame.file = file ? intern(&table->strings, file) : NULL;
    if (!frame.name || (file && !frame.file)) {
        return 0;
    }
    uint32_t *slot = find(table, &frame);
    if (!*slot) {
        table->frames[table->count++] = frame;
        *slot = table->count;
    }
    return address_of(table, *slot - 1);
}

uint32_t frame_table_count(const struct frame_table *table)
{
    return table->count;
}

/* ---- The layout ---- */

static bool same_method(const struct frame *a, const struct frame *b)
{
    return a->name == b->name && a->file == b->file && a->kind == b->kind;
}

/* By file, so that each unit of the debugging information is in one place; by text, so that equal
 * profiles give equal images. */
static int by_method(const void *left, const void *right, void *frames)
{
    const struct frame *a = (const struct frame *)frames + *(const uint32_t *)left;
    const struct frame *b = (const struct frame *)frames + *(const uint32_t *)right;
    if (a->file != b->file) {
        return strcmp(a->file ? a->file : "", b->file ? b->file : "");
    }
    if (a->name != b->name) {
        return strcmp(a->name, b->name);
    }
    if (a->kind != b->kind) {
        return a->kind < b->kind ? -1 : 1;
    }
    return (a->line > b->line) - (a->line < b->line);
}

int frame_table_lay_out(struct frame_table *table)
{
    table->order = malloc((table->count + 1) * sizeof *table->order);
    if (!table->order) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        table->order[i] = i;
    }
    qsort_r(table->order, table->count, sizeof *table->order, by_method, table->frames);
    for (uint32_t i = 0; i < table->count; i++) {
        table->frames[table->order[i]].offset = i * FRAME_BYTES;
    }
    return 0;
}

uint64_t frame_table_address(const struct frame_table *table, uint64_t frame)
{
    uint64_t id = frame - address_of(table, 0);
    return id < table->count ? address_of(table, table->frames[id].offset) : frame;
}

struct frame_mapping frame_table_mapping(const struct frame_table *table)
{
    return (struct frame_mapping){.address = address_of(table, 0),
                                  .size = (uint64_t)table->count * FRAME_BYTES,
                                  .file_offset = ELF_IMAGE_TEXT};
}

/* ---- Writing ---- */

/* The lines of one method, frames order[first] to order[end - 1]. */
static void add_method(const struct frame_table *table, struct elf_image *image, uint32_t first,
                       uint32_t end, struct intern *names, struct dwarf_row *rows)
{
    const struct frame *method = &table->frames[table->order[first]];
    const char *suffix = table->suffixes[method->kind];
    char *text = NULL;
    const char *name = method->name;
    if (*suffix && asprintf(&text, "%s%s", method->name, suffix) >= 0) {
        name = intern(names, text);
        free(text);
    }
    if (!name) {
        image->text.failed = true;
        return;
    }
    for (uint32_t i = first; i < end; i++) {
        rows[i - first] = (struct dwarf_row){
            .offset = (i - first) * FRAME_BYTES,
            .line = table->frames[table->order[i]].line,
            .file = method->file,
        };
    }
    struct dwarf_function function = {
        .address = ELF_IMAGE_TEXT + first * FRAME_BYTES,
        .size = (uint64_t)(end - first) * FRAME_BYTES,
        .name = name,
        .line = rows[0].line,
        .rows = rows,
        .row_count = method->file ? end - first : 0,
    };
    elf_image_add_symbol(image, name, function.address, function.size);
    dwarf_add_function(image->dwarf, &function);
}

static void add_methods(const struct frame_table *table, struct elf_image *image,
                        struct intern *names, struct dwarf_row *rows)
{
    const char *file = NULL;
    for (uint32_t first = 0, end; first < table->count; first = end) {
        const struct frame *method = &table->frames[table->order[first]];
        end = first + 1;
        while (end < table->count && same_method(method, &table->frames[table->order[end]])) {
            end++;
        }
        if (first == 0 || method->file != file) {
            if (first > 0) {
                dwarf_unit_end(image->dwarf);
            }
            file = method->file;
            dwarf_unit_begin(image->dwarf, file);
        }
        add_method(table, image, first, end, names, rows);
    }
    if (table->count) {
        dwarf_unit_end(image->dwarf);
    }
}

int frame_table_write(const struct frame_table *table, uint16_t machine,
                      struct source_path *source_path, const char *path,
                      uint8_t build_id[BUILD_ID_MAX])
{
    struct elf_image image = {.machine = machine, .dwarf = dwarf_new(source_path, NULL)};
    struct dwarf_row *rows = malloc((table->count + 1) * sizeof *rows);
    struct intern names = {0};
    int err = -ENOMEM;
    if (image.dwarf && rows) {
        (void)elf_image_add_code(&image, NULL, (size_t)table->count * FRAME_BYTES);
        add_methods(table, &image, &names, rows);
        err = elf_image_write(&image, path, build_id);
    } else {
        error_message("failed to write %s: %s", path, strerror(ENOMEM));
    }
    dwarf_free(image.dwarf);
    elf_image_free(&image);
    intern_free(&names);
    free(rows);
    return err;
}
