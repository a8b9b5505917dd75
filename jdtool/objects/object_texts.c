/* Texts out of a table of pointers in a file: "static const char *names[]" of a program. */
#include "jdtool/objects/object.h"

#include <gelf.h>
#include <string.h>

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
