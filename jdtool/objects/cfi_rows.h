/*
 * All rows of a file's .eh_frame, in the order of addresses, for those who want all of them: libdw
 * looks each address up anew, for microseconds. Reads the section's bytes itself, and believes
 * none: what is malformed, or beyond what compilers write, has no row.
 */
#ifndef JD_TOOL_CFI_ROWS_H
#define JD_TOOL_CFI_ROWS_H

#include "jdtool/objects/frame_row.h"

#include <libelf.h>

/*
 * Gives the rows that hold in [from, to), each with the address from which on it holds; where the
 * file has none, a row that is not found. They, and the operations (Dwarf_Op) that they point to,
 * live during the call; of an expression with operations that nobody here evaluates `length` is 0.
 * machine: EM_X86_64 or EM_AARCH64, little-endian, 64 bits. 0; -ENOMEM; -ENOENT: there is no such
 * section, nor cfi_rows_sigreturn; or what `take` returned other than 0.
 */
int cfi_rows_each(Elf *elf, unsigned machine, uint64_t from, uint64_t to,
                  int (*take)(void *context, uint64_t address, const struct native_row *row),
                  void *context);

/*
 * Where a file without .eh_frame returns from signal handlers on aarch64, [*from, *to): the vdso
 * since Linux 5.8 (arch/arm64/kernel/vdso/sigreturn.S: unwinders are to know the instructions),
 * musl, Go. The instruction before them belongs to it, for a caller is looked up in front of its
 * return address. Both are 0 where there is no such place.
 */
void cfi_rows_sigreturn(Elf *elf, uint64_t *from, uint64_t *to);

#endif
