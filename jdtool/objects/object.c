/* The questions that an object answers. */
#include "jdtool/objects/object.h"

#include "jdtool/base/text.h"

#include <errno.h>
#include <gelf.h>
#include <string.h>

bool object_open(struct object *object)
{
    if (object->kernel) {
        kernel_open(object);
        return object->state == OBJECT_SOUND;
    }
    bool is_open = object_use(object) != NULL;
    object->lookups--; /* it was no question */
    return is_open;
}

const char *object_why(const struct object *object)
{
    static const char *const generic[OBJECT_STATES] = {
        [OBJECT_NONE] = "it is memory, no file",
        [OBJECT_MISSING] = "it is not there",
        [OBJECT_REFUSED] = "it is another file",
        [OBJECT_DENIED] = "it may not be read",
        [OBJECT_UNSOUND] = "it cannot be read",
        [OBJECT_TOO_MANY] = "the recording has too many files",
    };
    const char *why = object->why ? object->why : generic[object->state];
    return why ? why : "";
}

uint32_t object_id(const struct object *object)
{
    return object->id;
}

size_t object_build_id(const struct object *object, uint8_t id[BUILD_ID_MAX])
{
    const struct file_identity *file = &object->place.file;
    if (file->build_id_size) {
        memcpy(id, file->build_id, file->build_id_size);
        return file->build_id_size;
    }
    memcpy(id, object->found_id, object->found_id_size);
    return object->found_id_size;
}

bool object_address(struct object *object, uint64_t file_offset, uint64_t *address)
{
    const struct object_file *file = object_use(object);
    for (uint32_t i = 0; file && i < file->segment_count; i++) {
        const struct segment *segment = &file->segments[i];
        if (file_offset - segment->file_offset < segment->size) {
            *address = file_offset - segment->file_offset + segment->address;
            return true;
        }
    }
    return false;
}

bool object_symbol(struct object *object, uint64_t address, struct object_symbol *symbol)
{
    if (object->kernel) {
        return kernel_symbol(object, address, symbol);
    }
    struct object_file *file = object_use(object);
    if (!file) {
        return false;
    }
    bool first = !file->symbols_asked;
    const struct symbols *symbols = object_file_symbols(&object->objects->places, file);
    if (first) {
        object_count_bytes(object);
    }
    const struct symbol *found = symbols_at(symbols, address);
    const char *name = found ? symbol_name(symbols, found) : "";
    if (!name[0]) {
        return false;
    }
    *symbol = (struct object_symbol){.address = found->address, .size = found->size, .name = name};
    return true;
}

const char *objects_demangle(struct objects *objects, const char *name)
{
    return demangle(name, objects->demangled, sizeof objects->demangled) ? objects->demangled
                                                                         : name;
}

/* The library that threads begin in. Its start_thread is a local function, so that a stripped one
 * has no symbol there, while what it is called for has. */
static bool is_thread_library(const char *path)
{
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    return text_begins(name, "libc.") || text_begins(name, "libc-") ||
           text_begins(name, "libpthread") || text_begins(name, "ld-musl");
}

/* The C library or its loader, with its DWARF in a file of its own. Every JVM has samples there
 * from its first moments on: unpacking that DWARF (libc6-dbg) is a third of the work of recording
 * `java -version`, and a Java profile needs no lines inside memcpy. */
static bool has_far_lines(const struct object *object, const struct object_file *file)
{
    const char *name = strrchr(object->place.file.path, '/');
    size_t size;
    return (is_thread_library(object->place.file.path) ||
            (name && text_begins(name, "/ld-linux"))) &&
           !elf_file_section(&file->found.file, ".debug_info", &size);
}

size_t object_inlines(struct object *object, uint64_t address, const struct object_inline **inlines)
{
    struct object_file *file = object->lines_given_up ? NULL : object_use(object);
    if (!file || has_far_lines(object, file)) {
        return 0;
    }
    Dwarf *dwarf = object_file_dwarf(&object->objects->places, file);
    object->dwarf_left_out = file->dwarf_left_out;
    if (!file->lines) {
        file->lines = dwarf ? lines_new(dwarf, object->objects->places.patience) : NULL;
    }
    size_t count = file->lines ? lines_at(file->lines, address, inlines) : 0;
    object->lines_given_up = file->lines && lines_given_up(file->lines);
    object_count_bytes(object);
    return count;
}

static Dwarf *debug_frame_of(void *context)
{
    struct object *object = context;
    const struct file_places *places = &object->objects->places;
    return object_file_has_debug_frame(places, object->file)
               ? object_file_dwarf(places, object->file)
               : NULL;
}

const struct native_row *object_row(struct object *object, uint64_t address)
{
    static const struct native_row nothing = {.lasts = true};
    struct object_file *file = object_use(object);
    if (!file || file->found.file.machine != object->objects->places.machine) {
        return &nothing;
    }
    const struct native_row *row = frame_rows_at(file->rows, address, debug_frame_of, object);
    object_count_bytes(object);
    return row;
}

int object_rows(struct object *object, uint64_t from, uint64_t to,
                int (*take)(void *context, uint64_t address, const struct native_row *row),
                void *context)
{
    struct object_file *file = object_use(object);
    return file ? frame_rows_each(file->rows, from, to, take, context) : -ENOENT;
}

static bool is_root_symbol(const char *name)
{
    static const char *const names[] = {
        "start_thread",
        "clone",
        "clone3",
        "__clone",
        "__clone3",
        "__GI___clone",
        "__GI___clone3",
        "_start",
        "thread_start",
        "start",
        "__libc_start_main",
        "__libc_start_call_main",
        "__clone_internal",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size = strlen(names[i]);
        if (strncmp(name, names[i], size) == 0 && (name[size] == '\0' || name[size] == '@')) {
            return true;
        }
    }
    return strncmp(name, "__libc_start_main", 17) == 0; /* _impl, _alias_1 */
}

bool object_is_root(struct object *object, uint64_t address)
{
    struct object_symbol symbol;
    if (object->kernel) {
        return false;
    }
    return object_symbol(object, address, &symbol) ? is_root_symbol(symbol.name)
                                                   : is_thread_library(object->place.file.path);
}

/* ---- Texts ---- */

/* Texts out of a table of pointers in a file: "static const char *names[]" of a program. */

enum { POINTER = 8 };

/* The bytes of the file from an address on. NULL: none of its segments has it. */
static const char *bytes_at(const struct object_file *file, uint64_t address, size_t *size)
{
    size_t whole;
    const char *image = elf_rawfile(file->found.file.elf, &whole);
    for (uint32_t i = 0; image && i < file->segment_count; i++) {
        const struct segment *segment = &file->segments[i];
        uint64_t behind = address - segment->address;
        if (behind < segment->size && segment->file_offset < whole &&
            segment->size <= whole - segment->file_offset) {
            *size = segment->size - behind;
            return image + segment->file_offset + behind;
        }
    }
    return NULL;
}

/*
 * What the loader puts there: of R_*_RELATIVE the addend. Packed ones (.relr.dyn) leave it where it
 * will be.
 */
static bool pointer_at(const struct object_file *file, uint64_t slot, uint64_t *pointer)
{
    size_t size;
    GElf_Rela rela;
    Elf_Scn *section = elf_file_section(&file->found.file, ".rela.dyn", &size);
    Elf_Data *data = section ? elf_getdata(section, NULL) : NULL;
    for (int i = 0; data && gelf_getrela(data, i, &rela); i++) {
        if (rela.r_offset == slot && GELF_R_SYM(rela.r_info) == 0) {
            *pointer = (uint64_t)rela.r_addend;
            return true;
        }
    }
    const char *bytes = bytes_at(file, slot, &size);
    if (!bytes || size < POINTER) {
        return false;
    }
    memcpy(pointer, bytes, POINTER);
    return true;
}

bool object_table_text(struct object *object, const char *symbol, uint32_t index, char *out,
                       size_t room)
{
    const struct object_file *file = object_use(object);
    GElf_Sym table;
    uint64_t pointer;
    size_t size;
    if (!file || file->found.only_debug ||
        !elf_file_symbol(&file->found.file, ".symtab", symbol, &table) ||
        index >= table.st_size / POINTER ||
        !pointer_at(file, table.st_value + (uint64_t)index * POINTER, &pointer)) {
        return false;
    }
    const char *text = bytes_at(file, pointer, &size);
    const char *end = text ? memchr(text, '\0', size < room ? size : room) : NULL;
    if (!end) {
        return false;
    }
    memcpy(out, text, (size_t)(end - text) + 1);
    return true;
}
