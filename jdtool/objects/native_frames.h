/*
 * Call-frame rows of native code, from the files it was loaded from: .eh_frame, else .debug_frame,
 * both read by libdw. A row is looked up once per address and kept.
 */
#ifndef JD_TOOL_NATIVE_FRAMES_H
#define JD_TOOL_NATIVE_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

/* Enough for x86-64 (0-15, return address 16) and aarch64 (x0-x30, sp 31, 32 the return address).
 */
#define NATIVE_REGS 33

/* The registers of a frame, by DWARF number. */
struct native_regs {
    uint64_t value[NATIVE_REGS];
    uint64_t known; /* bit n: value[n] is */
};

enum native_rule {
    NATIVE_SAME,
    NATIVE_UNDEFINED, /* of the return address: the outermost frame */
    NATIVE_AT_CFA,    /* in memory at CFA + offset */
    NATIVE_CFA,       /* is CFA + offset */
    NATIVE_REG,       /* is in another register */
    NATIVE_AT_EXPRESSION,
    NATIVE_EXPRESSION, /* is the expression's value */
};

struct native_place {
    uint8_t rule; /* enum native_rule */
    uint8_t reg;
    uint16_t length; /* operations of an expression */
    int32_t offset;
    const void *operations; /* Dwarf_Op */
};

#define NATIVE_PLACES 7

struct native_row {
    struct native_place cfa; /* NATIVE_REG (+ offset) or NATIVE_EXPRESSION */
    /* Of the registers that outlive calls, in this order, and of the return address. */
    struct native_place places[NATIVE_PLACES];
    bool found;  /* false: the file says nothing of this address */
    bool signal; /* a signal handler's return: the caller was interrupted, it did not call */
};

struct native_files;

/* machine: e_machine of the recording. NULL: no memory. */
struct native_files *native_files_new(unsigned machine);
void native_files_free(struct native_files *files); /* NULL is fine */

struct native_file;

/*
 * The file mapped under this path ("[vdso]" is this machine's own). NULL when it cannot be read as
 * ELF; that is remembered, too.
 */
struct native_file *native_file_open(struct native_files *files, const char *path);

/* The row at an offset in the file. Never NULL; lives until the next call. */
const struct native_row *native_row_at(struct native_file *file, uint64_t file_offset);

/* The register of place `index` of a row, by DWARF number. */
unsigned native_place_register(const struct native_files *files, unsigned index);

/*
 * Evaluates the operations of a place with these registers; memory is read by `read`, which returns
 * false for what the stack copy does not hold. False when they cannot be evaluated.
 */
bool native_evaluate(const struct native_place *place, const struct native_regs *regs, uint64_t cfa,
                     bool (*read)(void *context, uint64_t address, uint64_t *word), void *context,
                     uint64_t *value);

#endif
