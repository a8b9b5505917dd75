/* Machine code as text, in Intel's syntax. x86-64 only: Zydis knows no other machine. */
#ifndef JD_TOOL_DISASSEMBLY_H
#define JD_TOOL_DISASSEMBLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSTRUCTION_TEXT_MAX 192

struct instruction {
    uint32_t offset; /* in the code */
    uint32_t size;
    char text[INSTRUCTION_TEXT_MAX];
    uint64_t target; /* of a branch or call whose address is known; 0: none */
};

/*
 * The instruction at bytes[offset], which stands at `address` + offset; offset is below size. What
 * is none becomes a ".byte" of one. arch is uname's name of the machine, NULL: this one's; of other
 * machines than x86-64 instructions are ".word"s of four bytes.
 */
struct instruction disassemble(const char *arch, const uint8_t *bytes, size_t size, uint32_t offset,
                               uint64_t address);

/*
 * The same where begins[offset] says of some places that an instruction surely begins there; begins
 * NULL: of none. The interpreter has data between its pieces, and disassembly that has run into it
 * is in step again only by chance: what would go over such a place is none.
 */
struct instruction disassemble_in_step(const char *arch, const uint8_t *bytes, size_t size,
                                       const bool *begins, uint32_t offset, uint64_t address);

#endif
