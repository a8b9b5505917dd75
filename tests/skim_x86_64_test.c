/* The quick instruction decoder agrees with a full one. */
#include "test.h"

#include "jdtool/unwind/skim_x86_64.h"
#include "tests/random.h"

#include <Zydis/Zydis.h>
#include <stdio.h>
#include <string.h>

#define OFFSET 1000

static ZydisDecoder decoder;
static const uint8_t dwarf_of[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

static bool is_frame_reg(ZydisRegister reg)
{
    ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return wide == ZYDIS_REGISTER_RSP || wide == ZYDIS_REGISTER_RBP;
}

static bool is_based(const ZydisDecodedOperand *operand, ZydisRegister base)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == base &&
           operand->mem.index == ZYDIS_REGISTER_NONE;
}

static enum flow_control control_of(const ZydisDecodedInstruction *insn, bool direct)
{
    switch (insn->meta.category) {
    case ZYDIS_CATEGORY_RET:
        return FLOW_STOP;
    case ZYDIS_CATEGORY_CALL:
        return FLOW_CALLS;
    case ZYDIS_CATEGORY_COND_BR:
        return FLOW_BRANCH;
    case ZYDIS_CATEGORY_UNCOND_BR:
        return direct ? FLOW_JUMP : FLOW_STOP;
    default:
        return FLOW_NEXT;
    }
}

/* NULL: right; else what is wrong. */
static const char *fault(const uint8_t *bytes, uint32_t size, const struct flow_insn *skimmed)
{
    ZydisDecodedInstruction insn;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes, size, &insn, operands))) {
        return "it is no instruction";
    }
    if (insn.length != skimmed->length) {
        return "another length";
    }
    bool direct = operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[0].imm.is_relative;
    if (control_of(&insn, direct) != skimmed->control) {
        return "another control";
    }
    if (direct != skimmed->has_target ||
        (direct && skimmed->target != OFFSET + insn.length + operands[0].imm.value.s)) {
        return "another target";
    }
    bool calls = skimmed->control == FLOW_CALLS;
    bool returns = insn.meta.category == ZYDIS_CATEGORY_RET;
    for (uint8_t i = 0; i < insn.operand_count && !calls && !returns; i++) {
        if (operands[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
            is_frame_reg(operands[i].reg.value) &&
            operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
            return "it writes rsp or rbp";
        }
    }
    bool is_mov = insn.mnemonic == ZYDIS_MNEMONIC_MOV;
    if ((is_mov && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER && operands[1].size == 64 &&
         operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
         operands[1].reg.value == ZYDIS_REGISTER_RSP) ||
        (insn.mnemonic == ZYDIS_MNEMONIC_LEA && is_based(&operands[1], ZYDIS_REGISTER_RSP))) {
        return "it takes sp";
    }
    uint32_t steps = calls;
    for (int i = 0; i < 2 && is_mov; i++) {
        const ZydisDecodedOperand *reg = &operands[1 - i];
        bool by_sp = is_based(&operands[i], ZYDIS_REGISTER_RSP);
        bool by_fp = i == 1 && is_based(&operands[i], ZYDIS_REGISTER_RBP);
        if ((by_sp || by_fp) && reg->type == ZYDIS_OPERAND_TYPE_REGISTER && reg->size == 64) {
            const struct flow_step *step = &skimmed->steps[0];
            steps = 1;
            if (step->kind != (by_fp ? FLOW_LOAD_FP
                               : i   ? FLOW_LOAD
                                     : FLOW_STORE) ||
                step->value != (int32_t)operands[i].mem.disp.value ||
                step->reg != dwarf_of[ZydisRegisterGetId(reg->reg.value)]) {
                return "another load or store";
            }
        }
    }
    return steps == skimmed->step_count ? NULL : "another number of steps";
}

static void check(const uint8_t *bytes, uint32_t size, uint32_t *taken)
{
    struct flow_insn skimmed = {0};
    if (!skim_x86_64(bytes, size, OFFSET, &skimmed)) {
        return;
    }
    (*taken)++;
    const char *why = fault(bytes, size, &skimmed);
    if (why) {
        char text[64] = "";
        for (uint32_t i = 0; i < size && i < 15; i++) {
            snprintf(text + i * 3, sizeof text - i * 3, "%02x ", bytes[i]);
        }
        fail_msg("%s: %s", text, why);
    }
}

/* Each opcode with each ModRM byte, behind each kind of prefix. */
TEST(all_opcodes)
{
    static const char *const prefixes[] = {"",         "\x66",     "\xf2", "\xf3",
                                           "\x48",     "\x4f",     "\x45", "\x66\x48",
                                           "\xf3\x48", "\x66\x41", "\x4c", "\xf2\x4d"};
    uint64_t seed = random_seed();
    uint32_t taken = 0;
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
        size_t prefix = strlen(prefixes[p]);
        for (unsigned escape = 0; escape < 2; escape++) {
            for (unsigned opcode = 0; opcode < 256; opcode++) {
                for (unsigned modrm = 0; modrm < 256; modrm++) {
                    uint8_t bytes[20];
                    size_t at = prefix;
                    memcpy(bytes, prefixes[p], prefix);
                    if (escape) {
                        bytes[at++] = 0x0f;
                    }
                    bytes[at++] = (uint8_t)opcode;
                    bytes[at++] = (uint8_t)modrm;
                    while (at < sizeof bytes) {
                        bytes[at++] = (uint8_t)random_next(&seed);
                    }
                    check(bytes, sizeof bytes, &taken);
                }
            }
        }
    }
    assert_true(taken > 100000);
}

TEST(random_bytes)
{
    uint64_t seed = random_seed();
    uint32_t taken = 0;
    for (int i = 0; i < 1000000; i++) {
        uint64_t bytes[3] = {random_next(&seed), random_next(&seed), random_next(&seed)};
        check((const uint8_t *)bytes, 1 + random_below(&seed, 20), &taken);
    }
    assert_true(taken > 100000);
}

int main(void)
{
    if (!ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))) {
        return 1;
    }
    return tests_run(NULL, NULL);
}
