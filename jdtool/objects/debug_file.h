/*
 * The separate files that a stripped file's symbols and DWARF are in: those of debug packages and
 * of perf's cache by build-id, the one that .gnu_debuglink names, what is packed in .gnu_debugdata.
 */
#ifndef JD_TOOL_DEBUG_FILE_H
#define JD_TOOL_DEBUG_FILE_H

#include "jdtool/objects/find_file.h"

/* The file with the symbols and DWARF of one that was found. False: none is here. */
bool debug_file_find(const struct file_places *places, const struct found_file *found,
                     struct elf_file *out);

/*
 * The file that a dwz'ed one shares its DWARF with, which .gnu_debugaltlink names with its
 * build-id. False: it is not here.
 */
bool debug_file_find_shared(const struct file_places *places, const char *name, const uint8_t *id,
                            size_t id_size, struct elf_file *out);

/* Unpacks .gnu_debugdata: a file with nothing but a symbol table. False: there is none, or it is
 * larger than DEBUG_DATA_MAX. */
#define DEBUG_DATA_MAX ((size_t)64 << 20)
bool debug_file_unpack(const struct elf_file *file, struct elf_file *out);

#endif
