#include "jdtool/objects/object.h"
#include "jdtool/objects/symbols.h"

#include <elfutils/libdwelf.h>
#include <gelf.h>
#include <stdlib.h>

#define SEGMENTS_MAX 4096

/* Where symbols' names are (symbol.group). */
enum { NAMES_FILE, NAMES_DEBUG, NAMES_PACKED, NAMES_DYNAMIC, NAMES_PLT };

static void read_segments(struct object_file *file)
{
    Elf *elf = file->found.file.elf;
    size_t count;
    if (elf_getphdrnum(elf, &count) != 0 || count == 0 || count > SEGMENTS_MAX) {
        return;
    }
    file->segments = calloc(count, sizeof *file->segments);
    if (!file->segments) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(elf, (int)i, &header) && header.p_type == PT_LOAD) {
            /* A debug file keeps the program headers, but p_filesz may be that of its own. */
            uint64_t size = file->found.only_debug ? header.p_memsz : header.p_filesz;
            file->segments[file->segment_count++] =
                (struct segment){header.p_offset, size, header.p_vaddr};
        }
    }
}

enum object_state object_file_open(const struct file_places *places,
                                   const struct object_place *place, struct row_set *rows,
                                   struct object_file **out, char **why)
{
    struct object_file *file = calloc(1, sizeof *file);
    *out = NULL;
    *why = NULL;
    if (!file) {
        return OBJECT_UNSOUND;
    }
    file->debug = file->packed = file->dwarf_file = file->shared = ELF_FILE_NONE;
    enum object_state state = find_file(places, place, &file->found, why);
    if (state != OBJECT_SOUND) {
        free(file);
        return state;
    }
    read_segments(file);
    bool fits = file->found.file.machine == places->machine && !file->found.only_debug;
    file->rows = frame_rows_new(places->machine, fits ? file->found.file.elf : NULL, rows);
    if (!file->rows) {
        object_file_close(file);
        return OBJECT_UNSOUND;
    }
    *out = file;
    return OBJECT_SOUND;
}

static void close_dwarf(struct object_file *file)
{
    lines_free(file->lines);
    file->lines = NULL;
    if (file->dwarf) {
        (void)dwarf_end(file->dwarf);
    }
    if (file->shared_dwarf) {
        (void)dwarf_end(file->shared_dwarf);
    }
    file->dwarf = file->shared_dwarf = NULL;
    elf_file_close(&file->shared);
    elf_file_close(&file->dwarf_file);
}

void object_file_rest(struct object_file *file)
{
    if (file->dwarf && !file->dwarf_used && !frame_rows_need_dwarf(file->rows)) {
        close_dwarf(file);
        file->dwarf_asked = false;
    }
    file->dwarf_used = false;
}

void object_file_close(struct object_file *file)
{
    frame_rows_free(file->rows);
    symbols_free(&file->symbols);
    close_dwarf(file);
    elf_file_close(&file->packed);
    elf_file_close(&file->debug);
    found_file_close(&file->found);
    free(file->segments);
    free(file->plt_names);
    free(file);
}

static uint64_t elf_bytes(const struct elf_file *file)
{
    return file->elf && !file->mapped ? file->size : 0;
}

uint64_t object_file_bytes(const struct object_file *file)
{
    return sizeof *file + elf_bytes(&file->found.file) + elf_bytes(&file->debug) +
           elf_bytes(&file->packed) + elf_bytes(&file->dwarf_file) + elf_bytes(&file->shared) +
           symbols_bytes(&file->symbols) + frame_rows_bytes(file->rows) +
           (file->lines ? lines_bytes(file->lines) : 0);
}

static const struct elf_file *debug_of(const struct file_places *places, struct object_file *file)
{
    if (!file->debug_asked) {
        file->debug_asked = true;
        if (!file->found.only_debug) {
            (void)debug_file_find(places, &file->found, &file->debug);
        }
    }
    return &file->debug;
}

/* The end of the code: the last function has it for an end if it tells none. */
static uint64_t code_end(const struct object_file *file)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < file->segment_count; i++) {
        uint64_t its = file->segments[i].address + file->segments[i].size;
        end = its > end ? its : end;
    }
    return end;
}

const struct symbols *object_file_symbols(const struct file_places *places,
                                          struct object_file *file)
{
    struct symbols *symbols = &file->symbols;
    if (file->symbols_asked) {
        return symbols;
    }
    file->symbols_asked = true;
    const struct elf_file *main_file = &file->found.file;
    if (!elf_symbols_add(symbols, main_file, NAMES_FILE) &&
        !(debug_of(places, file)->elf && elf_symbols_add(symbols, &file->debug, NAMES_DEBUG))) {
        /* .gnu_debugdata leaves out what .dynsym has. */
        if (debug_file_unpack(main_file, &file->packed)) {
            (void)elf_symbols_add(symbols, &file->packed, NAMES_PACKED);
        }
        (void)elf_symbols_add_dynamic(symbols, main_file, NAMES_DYNAMIC);
    }
    elf_symbols_add_plt(symbols, main_file, NAMES_PLT, &file->plt_names);
    symbols_ready(symbols, code_end(file), false);
    return symbols;
}

static void hide(const struct elf_file *file, const char *const *names)
{
    for (; *names; names++) {
        elf_file_hide(file, *names);
    }
}

/*
 * libdw unpacks all sections as it opens a file. What variables are in is asked by nobody, and
 * lines that take too much are left out (libjvm.so's take 316 MB, and seconds). Returns how much
 * they take in that case, 0 else.
 */
static uint64_t leave_out(const struct file_places *places, const struct elf_file *file)
{
    static const char *const unused[] = {
        ".debug_loc",      ".debug_loclists",     ".debug_aranges",
        ".debug_macro",    ".debug_pubnames",     ".debug_gnu_pubnames",
        ".debug_pubtypes", ".debug_gnu_pubtypes", NULL,
    };
    static const char *const of_lines[] = {
        ".debug_info",
        ".debug_types",
        ".debug_abbrev",
        ".debug_line",
        ".debug_line_str",
        ".debug_ranges",
        ".debug_rnglists",
        ".debug_str",
        ".debug_str_offsets",
        ".debug_addr",
        NULL,
    };
    hide(file, unused);
    uint64_t size = elf_file_debug_bytes(file, places->sparing);
    if (size <= OBJECT_DWARF_MAX) {
        return 0;
    }
    hide(file, of_lines);
    return size;
}

/* What has its DWARF: the file, else its debug file, which may not be there. */
static const struct elf_file *dwarf_source(const struct file_places *places,
                                           struct object_file *file)
{
    size_t size;
    const struct elf_file *own = &file->found.file;
    return elf_file_section(own, ".debug_info", &size) ||
                   elf_file_section(own, ".debug_frame", &size)
               ? own
               : debug_of(places, file);
}

static Dwarf *begin_dwarf(const struct file_places *places, struct object_file *file)
{
    const struct elf_file *with = dwarf_source(places, file);
    if (elf_file_again(with, &file->dwarf_file)) {
        with = &file->dwarf_file;
    }
    if (!with->elf) {
        return NULL;
    }
    elf_file_read_here_and_there(with);
    file->dwarf_left_out = leave_out(places, with);
    if (elf_file_debug_bytes(with, false) > OBJECT_DWARF_MAX) {
        return NULL; /* more call-frame information than is sane */
    }
    if (with == &file->dwarf_file) {
        elf_file_unpack(&file->dwarf_file);
    }
    return dwarf_begin_elf(with->elf, DWARF_C_READ, NULL);
}

/*
 * DWARF that refers to a file which is not here would be looked for by libdw itself, by a name in
 * the file: it is not used. False: it is such.
 */
static bool join_shared(const struct file_places *places, struct object_file *file)
{
    const char *name;
    const void *id;
    ssize_t size = dwelf_dwarf_gnu_debugaltlink(file->dwarf, &name, &id);
    if (size == 0) {
        return true;
    }
    if (size < 0 || !debug_file_find_shared(places, name, id, (size_t)size, &file->shared)) {
        return false;
    }
    if (leave_out(places, &file->shared)) {
        return false;
    }
    elf_file_unpack(&file->shared);
    file->shared_dwarf = dwarf_begin_elf(file->shared.elf, DWARF_C_READ, NULL);
    if (file->shared_dwarf) {
        dwarf_setalt(file->dwarf, file->shared_dwarf);
    }
    return file->shared_dwarf != NULL;
}

Dwarf *object_file_dwarf(const struct file_places *places, struct object_file *file)
{
    file->dwarf_used = true;
    if (!file->dwarf_asked) {
        file->dwarf_asked = true;
        file->dwarf = begin_dwarf(places, file);
        if (file->dwarf && !join_shared(places, file)) {
            (void)dwarf_end(file->dwarf);
            file->dwarf = NULL;
        }
    }
    return file->dwarf;
}

bool object_file_has_debug_frame(const struct file_places *places, struct object_file *file)
{
    size_t size;
    const struct elf_file *with = dwarf_source(places, file);
    return with->elf && elf_file_section(with, ".debug_frame", &size);
}
