#include "jdtool/images/image_set.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/images/image_elf.h"
#include "jdtool/jitdump/code_index.h"
#include "jdtool/unwind/code_frames.h"
#include "jdtool/unwind/eh_frame.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the images with code, one file of a layout at a time, for image_set.c. */

/* Debugging information beyond that is left out: its offsets are 32 bits wide. */
#define DWARF_SIZE_MAX (UINT64_C(1) << 30)

/* Code has its bytes in the image where it has more than one of so many samples. */
#define SAMPLES_A_HIT 10000

/* A piece of code in the image. */
struct member {
    const struct resolved_code *code;
    const char *file; /* the method's own source file; "": the dump does not tell */
};

struct code_writer {
    const struct jvm_images *images;
    struct member *members; /* by source file */
    uint32_t count;
    struct code_index *index;
    uint32_t file;
    uint64_t base;
    const struct image_set_options *options;
    uint64_t hits_least; /* of code whose bytes somebody will look at */
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
    return strcmp(a->file, b->file) ?: ORDER(a->code->address, b->code->address);
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
    return ORDER(a->offset, b->offset);
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
        if (ARRAY_RESERVE(writer->rows, writer->row_count, writer->row_room)) {
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

/* The code's own bytes; NULL where nobody will look at them. */
static const uint8_t *bytes_of(const struct code_writer *writer, const struct resolved_code *code)
{
    const struct jvm_images *images = writer->images;
    uint32_t hits = code->id < images->hit_room ? images->hits[code->id] : 0;
    return hits >= writer->hits_least ? writer->details.bytes : NULL;
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
        image_elf_add(writer->elf, offset, code->size, bytes_of(writer, code), code->symbol);
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
    memcpy(&cie_length, table->bytes.at, sizeof cie_length);
    if (ARRAY_RESERVE(writer->fdes, writer->fde_count, writer->fde_room)) {
        return -ENOMEM;
    }
    writer->fdes[writer->fde_count++] = (struct image_elf_fde){
        .code = offset, .entry = writer->eh_frame.size + sizeof cie_length + cie_length};
    bytes_put(&writer->eh_frame, table->bytes.at, table->bytes.size - table->hdr_size - 8);
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
    if (!err && has_room(writer, table->bytes.size) && offset - at <= INT32_MAX) {
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

/*
 * Writes the image of one file of the layout: its code as the dump has it, named, with lines and,
 * by the options, inlined methods and call-frame information. 0 or a negative errno after a
 * message.
 */
static int image_code_write(struct jvm_images *images, uint32_t file,
                            const struct image_set_options *options, uint64_t hits_least,
                            uint8_t build_id[BUILD_ID_MAX])
{
    const char *path = image_set_path(images, file);
    if (!path) {
        return -ENOMEM;
    }
    const struct image_file *image = image_layout_file(images->layout, file);
    struct code_writer writer = {
        .images = images,
        .index = images->index,
        .file = file,
        .base = image->base,
        .options = options,
        .hits_least = hits_least,
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
        failed_to(-ENOMEM, "write %s", path);
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

struct image_set {
    struct image_set_options options;
    char *place; /* absolute path of the result without its ".data" */
    struct jvm_images **list;
    uint32_t count;
    uint32_t room;
    struct jvm_images **by_module; /* by the module's id; NULL: none yet */
    uint32_t module_room;
    char **written; /* paths */
    uint32_t written_count;
    uint32_t written_room;
};

static int no_memory(const struct image_set *set)
{
    return failed_to(-ENOMEM, "write the images of %s", set->options.result);
}

/* ---- Where they are ---- */

/*
 * The path is absolute, for perf report is run anywhere. perf takes files under /tmp/perf- for perf
 * maps, so such a path gets a detour.
 */
static int find_place(struct image_set *set)
{
    const char *result = set->options.result;
    const char *slash = strrchr(result, '/');
    const char *name = slash ? slash + 1 : result;
    size_t stem = strlen(name);
    char *given = slash ? strndup(result, (size_t)(slash - result) + 1) : strdup(".");
    char *directory = given ? directory_path(given) : NULL;
    free(given);
    if (!directory) {
        return failed_to(-errno, "find the directory of %s", result);
    }
    size_t length = strlen(directory);
    directory[length - (directory[length - 1] == '/')] = '\0'; /* the root's, or as it was given */
    if (stem > 5 && strcmp(name + stem - 5, ".data") == 0) {
        stem -= 5;
    }
    bool detour = strncmp(directory, "/tmp/perf-", 10) == 0 ||
                  (strcmp(directory, "/tmp") == 0 && strncmp(name, "perf-", 5) == 0);
    if (asprintf(&set->place, "%s%s/%.*s", detour ? "/tmp/." : "",
                 detour ? directory + 4 : directory, (int)stem, name) < 0) {
        set->place = NULL;
    }
    free(directory);
    return set->place ? 0 : no_memory(set);
}

static char *stem_of(const struct image_set *set, const struct recording *recording,
                     const struct module *module)
{
    uint32_t number = 0;
    uint32_t usable = 0;
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        usable += recording->jvms[i]->index != NULL;
        if (recording->jvms[i]->module == module) {
            number = recording->jvms[i]->number;
        }
    }
    char *stem = NULL;
    int size = set->count == 0 && usable < 2 ? asprintf(&stem, "%s-java", set->place)
               : number == 0                 ? asprintf(&stem, "%s-%u", set->place, module->pid)
                             : asprintf(&stem, "%s-%u-%u", set->place, module->pid, number + 1);
    return size < 0 ? NULL : stem;
}

static const char *no_name(const struct jvm_images *images)
{
    failed_to(-ENOMEM, "name an image of process %u", images->module->pid);
    return NULL;
}

const char *image_set_path(struct jvm_images *images, uint32_t file)
{
    while (images->path_count <= file) {
        if (ARRAY_RESERVE(images->paths, images->path_count, images->path_room)) {
            return no_name(images);
        }
        images->paths[images->path_count++] = (struct image_path){0};
    }
    struct image_path *path = &images->paths[file];
    int size = path->path  ? 0
               : file == 0 ? asprintf(&path->path, "%s.so", images->stem)
                           : asprintf(&path->path, "%s.%u.so", images->stem, file + 1);
    if (size < 0) {
        path->path = NULL;
        return no_name(images);
    }
    return path->path;
}

const char *image_set_frames_path(struct jvm_images *images)
{
    if (!images->frames_path && asprintf(&images->frames_path, "%s-frames.so", images->stem) < 0) {
        images->frames_path = NULL;
        return no_name(images);
    }
    return images->frames_path;
}

/* ---- Gathering ---- */

int image_set_open(const struct image_set_options *options, struct image_set **out)
{
    struct image_set *set = calloc(1, sizeof *set);
    if (!set) {
        return failed_to(-ENOMEM, "write the images of %s", options->result);
    }
    set->options = *options;
    int err = find_place(set);
    if (err) {
        image_set_close(set);
        return err;
    }
    *out = set;
    return 0;
}

static void free_images(struct jvm_images *images)
{
    if (images) {
        for (uint32_t i = 0; i < images->path_count; i++) {
            free(images->paths[i].path);
        }
        image_layout_free(images->layout);
        image_frames_free(images->frames);
        free(images->paths);
        free(images->frames_path);
        free(images->codes);
        free(images->pieces);
        free(images->hits);
        free(images->stem);
        free(images);
    }
}

void image_set_close(struct image_set *set)
{
    if (!set) {
        return;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        free_images(set->list[i]);
    }
    for (uint32_t i = 0; i < set->written_count; i++) {
        free(set->written[i]);
    }
    free(set->written);
    free(set->list);
    free(set->by_module);
    free(set->place);
    free(set);
}

static struct jvm_images *new_images(const struct image_set *set, const struct recording *recording,
                                     const struct resolved_code *code)
{
    struct jvm_images *images = calloc(1, sizeof *images);
    if (images) {
        images->module = code->module;
        images->index = code->index;
        images->number = set->count;
        images->frame_info = set->options.frame_info;
        images->stem = stem_of(set, recording, code->module);
        images->layout = image_layout_new();
        images->frames = image_frames_new(set->count);
    }
    if (!images || !images->stem || !images->layout || !images->frames) {
        free_images(images);
        return NULL;
    }
    return images;
}

struct jvm_images *image_set_of(struct image_set *set, const struct recording *recording,
                                const struct resolved_code *code)
{
    uint32_t module = code->module->id;
    if (module < set->module_room && set->by_module[module]) {
        return set->by_module[module];
    }
    struct jvm_images *images = new_images(set, recording, code);
    if (!images || ARRAY_REACH(set->by_module, module, set->module_room) ||
        ARRAY_RESERVE(set->list, set->count, set->room)) {
        free_images(images);
        (void)no_memory(set);
        return NULL;
    }
    set->by_module[module] = images;
    set->list[set->count++] = images;
    return images;
}

int image_set_piece(struct jvm_images *images, const struct resolved_code *code,
                    uint64_t (*lowest)(void *context, uint64_t address), void *context,
                    uint32_t *piece)
{
    uint32_t file;
    if (code->id < images->piece_room && images->pieces[code->id]) {
        *piece = images->pieces[code->id] - 1;
        return 0;
    }
    int err = ARRAY_REACH(images->pieces, code->id, images->piece_room);
    if (!err && ARRAY_RESERVE(images->codes, images->code_count, images->code_room)) {
        err = -ENOMEM;
    }
    if (!err) {
        err = image_layout_add(images->layout, code->address, code->size, lowest, context, &file);
    }
    if (err) {
        return failed_to(err, "place code of process %u", images->module->pid);
    }
    images->unplaced += file == IMAGE_NONE;
    *piece = images->code_count;
    images->codes[images->code_count++] = code;
    images->pieces[code->id] = images->code_count;
    return 0;
}

int image_set_hit(struct image_set *set, struct jvm_images *images,
                  const struct resolved_code *code)
{
    if (ARRAY_REACH(images->hits, code->id, images->hit_room)) {
        return no_memory(set);
    }
    images->hits[code->id] += images->hits[code->id] < UINT32_MAX;
    return 0;
}

/* ---- Writing ---- */

static int note_written(struct image_set *set, const char *path)
{
    char *copy = strdup(path);
    if (!copy || ARRAY_RESERVE(set->written, set->written_count, set->written_room)) {
        free(copy);
        unlink(path);
        return no_memory(set);
    }
    set->written[set->written_count++] = copy;
    return 0;
}

typedef void written_fn(void *context, const char *path, const uint8_t build_id[BUILD_ID_MAX]);

static int write_code(struct image_set *set, struct jvm_images *images, uint64_t hits_least,
                      written_fn *written, void *context)
{
    uint8_t build_id[BUILD_ID_MAX];
    uint32_t count = image_layout_file_count(images->layout);
    int err = 0;
    for (uint32_t file = 0; file < count && !err; file++) {
        err = image_code_write(images, file, &set->options, hits_least, build_id);
        if (!err) {
            const char *path = image_set_path(images, file);
            err = note_written(set, path);
            written(context, path, build_id);
        }
    }
    while (!err) { /* further layers of an earlier result of this name */
        const char *path = image_set_path(images, count++);
        if (!path || unlink(path) < 0) {
            break;
        }
    }
    return err;
}

static int write_frames(struct image_set *set, struct jvm_images *images, written_fn *written,
                        void *context)
{
    const struct image_set_options *options = &set->options;
    uint8_t build_id[BUILD_ID_MAX];
    const char *path = image_set_frames_path(images);
    if (!path) {
        return -ENOMEM;
    }
    if (image_frames_is_empty(images->frames)) {
        unlink(path); /* of an earlier result of this name */
        return 0;
    }
    uint16_t machine = (uint16_t)code_index_header(images->index)->elf_mach;
    int err = image_frames_write(images->frames, machine, options->inlined_suffix,
                                 options->interpreted_suffix, options->source_path, path, build_id);
    if (!err) {
        err = note_written(set, path);
        written(context, path, build_id);
    }
    return err;
}

/* What a hostile dump or a very long recording can exceed. */
static void tell_lost(const struct jvm_images *images)
{
    uint64_t frames = image_frames_lost(images->frames);
    if (images->unplaced) {
        warning_message("%llu pieces of code of process %u are in no image: they are too large, or "
                        "too many lay at one place",
                        (unsigned long long)images->unplaced, images->module->pid);
    }
    if (frames) {
        warning_message("%llu inlined or interpreted frames of process %u were left out: there are "
                        "too many methods",
                        (unsigned long long)frames, images->module->pid);
    }
}

int image_set_write(struct image_set *set, uint64_t samples, written_fn *written, void *context)
{
    uint64_t hits_least = set->options.all_code ? 0 : samples / SAMPLES_A_HIT + 1;
    int err = 0;
    for (uint32_t i = 0; i < set->count && !err; i++) {
        tell_lost(set->list[i]);
        err = write_code(set, set->list[i], hits_least, written, context);
        if (!err) {
            err = write_frames(set, set->list[i], written, context);
        }
    }
    if (err) {
        image_set_remove(set);
    }
    return err;
}

void image_set_tell(struct image_set *set,
                    void (*tell)(void *context, const struct module *module, const char *path),
                    void *context)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct jvm_images *images = set->list[i];
        const char *path =
            image_layout_file_count(images->layout) ? image_set_path(images, 0) : NULL;
        if (path) {
            tell(context, images->module, path);
        }
    }
}

void image_set_remove(struct image_set *set)
{
    for (uint32_t i = 0; i < set->written_count; i++) {
        unlink(set->written[i]);
    }
}
