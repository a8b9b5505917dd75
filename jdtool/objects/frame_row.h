/*
 * One row of call-frame information in our words: where the caller's registers are when execution
 * is at an address.
 */
#ifndef JD_TOOL_FRAME_ROW_H
#define JD_TOOL_FRAME_ROW_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"

#include <elfutils/libdw.h>
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
    bool lasts;  /* the row lives as long as the objects, not until the next question only */
};

/* The register of place `index` of a row, by DWARF number. machine: e_machine. */
unsigned native_place_register(unsigned machine, unsigned index);

/*
 * Evaluates the operations of a place with these registers; memory is read by `read`, which returns
 * false for what the stack copy does not hold. False when they cannot be evaluated.
 */
bool native_evaluate(const struct native_place *place, const struct native_regs *regs, uint64_t cfa,
                     bool (*read)(void *context, uint64_t address, uint64_t *word), void *context,
                     uint64_t *value);

/*
 * Call-frame rows of a file: .eh_frame, else .debug_frame (its own or that of its debug file). An
 * address is looked up once and kept, up to FRAME_ROWS_MAX of them.
 */

/* ---- Rows kept once ---- */

/*
 * Call-frame rows, each kept once: the functions of a file save the same few registers at the same
 * few places, so that its thousands of addresses have some hundred different rows.
 */

#define ROW_SET_MAX 32768

/* Start with ROW_SET_EMPTY. */
struct row_set {
    struct chunks list; /* of struct native_row */
    struct hash_map by_content;
};

#define ROW_SET_EMPTY ((struct row_set){.list.element = sizeof(struct native_row)})

void row_set_free(struct row_set *set);

#define FRAME_ROWS_MAX 32768

struct frame_rows;

/*
 * machine: of the recording. eh_frame: with .eh_frame, may be NULL; it and the set must outlive the
 * rows. NULL: no memory.
 */
struct frame_rows *frame_rows_new(unsigned machine, Elf *eh_frame, struct row_set *set);
void frame_rows_free(struct frame_rows *rows); /* NULL is fine */

/* The row of an address. debug_frame is asked for DWARF with .debug_frame when .eh_frame has no
 * row; it returns NULL if there is none, and its result must outlive the rows if they need it.
 * Never NULL; lives as long as the set does if it `lasts`, else until the next call. */
const struct native_row *frame_rows_at(struct frame_rows *rows, uint64_t address,
                                       Dwarf *(*debug_frame)(void *context), void *context);

/* Whether they need what debug_frame gave: else it may go, and is asked for no more. */
bool frame_rows_need_dwarf(const struct frame_rows *rows);

/* Those of .eh_frame for a range of addresses: see cfi_rows_each. -ENOENT: the file has none, nor
 * cfi_rows_sigreturn. */
int frame_rows_each(struct frame_rows *rows, uint64_t from, uint64_t to,
                    int (*take)(void *context, uint64_t address, const struct native_row *row),
                    void *context);

uint64_t frame_rows_bytes(const struct frame_rows *rows); /* memory it takes */

#endif
