/*
 * Call-frame information of others, looked through before libdw interprets it. libdw makes a row
 * as long as the highest register number in it: 2 GB for one instruction of six bytes, and again
 * for each address. What compilers write passes.
 */
#ifndef JD_TOOL_CFI_CHECK_H
#define JD_TOOL_CFI_CHECK_H

#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#define CFI_BYTES_MAX      (UINT32_C(128) << 20) /* of a section */
#define CFI_REGISTERS      256                   /* the highest of x86-64 and AArch64 is 145 */
#define CFI_PROGRAM_MAX    (UINT32_C(256) << 10) /* bytes of one entry: each look-up runs it */
#define CFI_EXPRESSION_MAX 4096                  /* bytes */
#define CFI_REMEMBERED_MAX 16                    /* rows that one entry keeps at a time */

/*
 * Whether each row that dwarf_getcfi_elf's .eh_frame, or dwarf_getcfi's .debug_frame (of a file
 * that libdw has opened), can be asked for keeps these bounds, and whether its table points to
 * nothing but entries. A file without that section does, if libdw finds none elsewhere. Reads the
 * section once: 10 ms for libjvm.so.
 */
bool cfi_check_eh_frame(Elf *elf);
bool cfi_check_debug_frame(Elf *elf);

#endif
