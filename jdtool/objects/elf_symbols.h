/* The functions that an ELF file's symbol tables name. */
#ifndef JD_TOOL_ELF_SYMBOLS_H
#define JD_TOOL_ELF_SYMBOLS_H

#include "jdtool/objects/elf_file.h"
#include "jdtool/objects/symbols.h"

/* Adds those of .symtab. False: the file has none. The names' block is the file's, under that
 * group. */
bool elf_symbols_add(struct symbols *symbols, const struct elf_file *file, uint8_t group);

/* Adds those of .dynsym: what the file offers to others. */
bool elf_symbols_add_dynamic(struct symbols *symbols, const struct elf_file *file, uint8_t group);

/*
 * Adds the entries of the procedure linkage table, each with the name of what it calls and "@plt"
 * behind it. *names gets the block of the names, from malloc, which must outlive the table.
 */
void elf_symbols_add_plt(struct symbols *symbols, const struct elf_file *file, uint8_t group,
                         char **names);

#endif
