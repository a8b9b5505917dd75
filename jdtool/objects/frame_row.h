/*
 * One row of call-frame information in our words: where the caller's registers are when execution
 * is at an address.
 */
#ifndef JD_TOOL_FRAME_ROW_H
#define JD_TOOL_FRAME_ROW_H

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

#endif
