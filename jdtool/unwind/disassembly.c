#include "jdtool/unwind/disassembly.h"

#include <Zydis/Zydis.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Whether machine code of that machine can be told as text. */
static bool knows(const char *arch)
{
#ifndef __x86_64__
    if (!arch) {
        return false;
    }
#endif
    return !arch || strcmp(arch, "x86_64") == 0;
}

static struct instruction take_word(const uint8_t *bytes, size_t size, uint32_t offset)
{
    struct instruction instruction = {.offset = offset};
    size_t left = size - offset;
    instruction.size = left < 4 ? (uint32_t)left : 4;
    uint32_t word = 0;
    for (uint32_t i = 0; i < instruction.size; i++) {
        word |= (uint32_t)bytes[offset + i] << (8 * i);
    }
    snprintf(instruction.text, sizeof instruction.text, ".word 0x%08" PRIx32, word);
    return instruction;
}

struct instruction disassemble(const char *arch, const uint8_t *bytes, size_t size, uint32_t offset,
                               uint64_t address)
{
    if (!knows(arch)) {
        return take_word(bytes, size, offset);
    }
    struct instruction instruction = {.offset = offset};
    ZydisDecoder decoder;
    ZydisFormatter formatter;
    ZydisDecodedInstruction decoded;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (ZYAN_FAILED(ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
        ZYAN_FAILED(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) ||
        ZYAN_FAILED(
            ZydisDecoderDecodeFull(&decoder, bytes + offset, size - offset, &decoded, operands)) ||
        ZYAN_FAILED(ZydisFormatterFormatInstruction(
            &formatter, &decoded, operands, decoded.operand_count_visible, instruction.text,
            sizeof instruction.text, address + offset, NULL))) {
        instruction.size = 1;
        snprintf(instruction.text, sizeof instruction.text, ".byte 0x%02x", bytes[offset]);
        return instruction;
    }
    instruction.size = decoded.length;
    if (decoded.operand_count_visible > 0 && operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
        operands[0].imm.is_relative) {
        ZydisCalcAbsoluteAddress(&decoded, &operands[0], address + offset, &instruction.target);
    }
    return instruction;
}

struct instruction disassemble_in_step(const char *arch, const uint8_t *bytes, size_t size,
                                       const bool *begins, uint32_t offset, uint64_t address)
{
    struct instruction instruction = disassemble(arch, bytes, size, offset, address);
    for (uint32_t inner = offset + 1; begins && inner < offset + instruction.size; inner++) {
        if (begins[inner]) {
            return disassemble(arch, bytes, inner, offset, address);
        }
    }
    return instruction;
}
