/*
 * The rows of a file's .eh_frame or .debug_frame: that of an address, or all in the order of
 * addresses. Reads the section's bytes itself, and believes none: what is malformed, or beyond what
 * compilers write, has no row. (libdw makes a row as long as the highest register number in it: 2
 * GB for one instruction of six bytes, and again for each address.)
 */
#ifndef JD_TOOL_CFI_ROWS_H
#define JD_TOOL_CFI_ROWS_H

#include "jdtool/objects/frame_row.h"

#include <libelf.h>

struct cfi_rows;

/*
 * Lists the functions of one of these sections, which takes some ms for libjvm.so; the file has to
 * outlive the rows. machine: EM_X86_64 or EM_AARCH64, little-endian, 64 bits. 0; -ENOENT: there is
 * no such section; -ENOMEM.
 */
int cfi_rows_open(Elf *elf, unsigned machine, bool is_debug_frame, struct cfi_rows **out);
void cfi_rows_close(struct cfi_rows *rows); /* NULL is fine */

/* The row of an address; one that is not found where there is none. It, and the operations
 * (Dwarf_Op) that it points to, live until the next call; of an expression with operations that
 * nobody here evaluates `length` is 0. */
void cfi_rows_at(struct cfi_rows *rows, uint64_t address, struct native_row *row);

/* Gives the rows that hold in [from, to), each with the address from which on it holds; where the
 * file has none, a row that is not found. They live during the call. 0, or what `take` returned
 * other than 0. */
int cfi_rows_each(struct cfi_rows *rows, uint64_t from, uint64_t to,
                  int (*take)(void *context, uint64_t address, const struct native_row *row),
                  void *context);

/*
 * Where a file without .eh_frame returns from signal handlers on aarch64, [*from, *to): the vdso
 * since Linux 5.8 (arch/arm64/kernel/vdso/sigreturn.S: unwinders are to know the instructions),
 * musl, Go. The instruction before them belongs to it, for a caller is looked up in front of its
 * return address. Both are 0 where there is no such place.
 */
void cfi_rows_sigreturn(Elf *elf, uint64_t *from, uint64_t *to);

uint64_t cfi_rows_bytes(const struct cfi_rows *rows); /* memory it takes */

#endif
