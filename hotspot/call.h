/* Calls in generated code. */
#ifndef JD_HOTSPOT_CALL_H
#define JD_HOTSPOT_CALL_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Does a call end right before an offset? `machine`: EM_X86_64 or EM_AARCH64. */
static inline bool is_behind_call(unsigned machine, const uint8_t *code, uint32_t offset)
{
    if (machine == EM_X86_64) {
        return (offset >= 5 && code[offset - 5] == 0xe8) || /* call rel32 */
               (offset >= 2 && code[offset - 2] == 0xff && (code[offset - 1] & 0xf8) == 0xd0);
    }
    uint32_t instruction;
    if (offset < sizeof instruction) {
        return false;
    }
    memcpy(&instruction, code + offset - sizeof instruction, sizeof instruction);
    return (instruction & 0xfc000000) == 0x94000000 || /* bl */
           (instruction & 0xfffffc1f) == 0xd63f0000;   /* blr */
}

#endif
