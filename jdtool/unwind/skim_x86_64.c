/*
 * An instruction is prefixes, a REX byte, an opcode of one or two bytes, perhaps a ModRM byte with
 * a SIB byte and a displacement, perhaps an immediate (Intel's manual, volume 2, chapter 2). What
 * writes rsp or rbp, pushes or pops, or takes sp or its address into a register, is not for here.
 */
#include "jdtool/unwind/skim_x86_64.h"

#include <string.h>

#define RSP 4 /* the processor's numbers */
#define RBP 5

/* DWARF's numbers (System V ABI, x86-64, figure 3.36) by the processor's own. */
static const uint8_t dwarf_of[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};

struct skim {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;       /* behind the end */
    bool operand_size; /* prefix 66 */
    uint8_t repeat;    /* F2, F3 or 0 */
    uint8_t rex;
    /* ModRM */
    uint8_t mod;
    uint8_t reg; /* with REX's bit */
    uint8_t rm;  /* a register where mod is 3, else a base; with REX's bit */
    bool has_index;
    bool has_base; /* rm is one */
    int32_t displacement;
};

static uint8_t take(struct skim *skim)
{
    if (skim->at == skim->end) {
        skim->failed = true;
        return 0;
    }
    return *skim->at++;
}

static int64_t take_signed(struct skim *skim, unsigned size)
{
    int32_t wide = 0;
    if ((size_t)(skim->end - skim->at) < size) {
        skim->failed = true;
        return 0;
    }
    memcpy(&wide, skim->at, size);
    skim->at += size;
    return size == 1 ? (int8_t)wide : wide;
}

static void skip(struct skim *skim, unsigned size)
{
    if ((size_t)(skim->end - skim->at) < size) {
        skim->failed = true;
    } else {
        skim->at += size;
    }
}

static void take_modrm(struct skim *skim)
{
    uint8_t modrm = take(skim);
    skim->mod = modrm >> 6;
    skim->reg = (uint8_t)((modrm >> 3 & 7) | (skim->rex & 4) << 1);
    uint8_t rm = modrm & 7;
    skim->has_base = true;
    skim->has_index = false;
    skim->displacement = 0;
    if (skim->mod == 3) {
        skim->rm = (uint8_t)(rm | (skim->rex & 1) << 3);
        return;
    }
    if (rm == RSP) { /* a SIB byte */
        uint8_t sib = take(skim);
        rm = sib & 7;
        skim->has_index = ((sib >> 3 & 7) | (skim->rex & 2) << 2) != RSP;
    }
    bool no_base = skim->mod == 0 && rm == RBP; /* rip, or none */
    skim->has_base = !no_base;
    skim->rm = (uint8_t)(rm | (skim->rex & 1) << 3);
    if (skim->mod == 1) {
        skim->displacement = (int32_t)take_signed(skim, 1);
    } else if (skim->mod == 2 || no_base) {
        skim->displacement = (int32_t)take_signed(skim, 4);
    }
}

static bool is_frame_reg(uint8_t reg)
{
    return reg == RSP || reg == RBP;
}

/* Whether the ModRM's operand is a register that the frame depends on. */
static bool rm_is_frame_reg(const struct skim *skim)
{
    return skim->mod == 3 && is_frame_reg(skim->rm);
}

/* [base + displacement] */
static bool rm_is_based(const struct skim *skim, uint8_t base)
{
    return skim->mod != 3 && skim->has_base && skim->rm == base && !skim->has_index;
}

static bool is_wide(const struct skim *skim)
{
    return skim->rex & 8;
}

static void add_step(struct flow_insn *insn, enum flow_step_kind kind, uint8_t reg, int32_t value)
{
    insn->steps[insn->step_count++] = (struct flow_step){(uint8_t)kind, reg, value};
}

/* A direct branch; its distance is `size` bytes. */
static bool branch(struct skim *skim, struct flow_insn *insn, enum flow_control control,
                   unsigned size)
{
    int64_t distance = take_signed(skim, size);
    insn->control = (uint8_t)control;
    insn->has_target = true;
    insn->target = distance; /* from behind the instruction: see skim_x86_64 */
    if (control == FLOW_CALLS) {
        add_step(insn, FLOW_CALL, FLOW_NO_REG, 0);
    }
    return control != FLOW_CALLS || distance != 0; /* call $+5 pushes its own address */
}

/* add, or, adc, sbb, and, sub, xor, cmp in their four forms with ModRM, and with al, eax. */
static bool arithmetic(struct skim *skim, uint8_t opcode)
{
    bool compares = opcode >> 3 == 7;
    switch (opcode & 7) {
    case 0:
    case 1:
        take_modrm(skim);
        return compares || !rm_is_frame_reg(skim);
    case 2:
    case 3:
        take_modrm(skim);
        return compares || !is_frame_reg(skim->reg);
    case 4:
        skip(skim, 1);
        return true;
    case 5:
        skip(skim, 4);
        return !skim->operand_size;
    default:
        return false;
    }
}

static bool immediate_group(struct skim *skim, uint8_t opcode)
{
    take_modrm(skim);
    bool compares = (skim->reg & 7) == 7;
    skip(skim, opcode == 0x81 ? 4 : 1);
    return (compares || !rm_is_frame_reg(skim)) && !(opcode == 0x81 && skim->operand_size);
}

static bool move(struct skim *skim, uint8_t opcode, struct flow_insn *insn)
{
    take_modrm(skim);
    bool is_load = opcode & 2;
    bool whole = is_wide(skim) && opcode & 1;
    if (skim->mod == 3) {
        return !is_frame_reg(skim->reg) && !is_frame_reg(skim->rm);
    }
    if (is_load && is_frame_reg(skim->reg)) {
        return false;
    }
    if (whole && rm_is_based(skim, RSP)) {
        add_step(insn, is_load ? FLOW_LOAD : FLOW_STORE, dwarf_of[skim->reg], skim->displacement);
    } else if (whole && is_load && rm_is_based(skim, RBP)) {
        add_step(insn, FLOW_LOAD_FP, dwarf_of[skim->reg], skim->displacement);
    }
    return true;
}

static bool load_address(struct skim *skim)
{
    take_modrm(skim);
    return skim->mod != 3 && !is_frame_reg(skim->reg) && !(skim->has_base && skim->rm == RSP);
}

/* test, not, neg, mul, imul, div, idiv */
static bool unary_group(struct skim *skim, uint8_t opcode)
{
    take_modrm(skim);
    uint8_t which = skim->reg & 7;
    if (which <= 1) {
        skip(skim, opcode == 0xf7 ? 4 : 1);
        return which == 0 && !(opcode == 0xf7 && skim->operand_size);
    }
    return (which >= 4 || !rm_is_frame_reg(skim));
}

/* inc, dec, call, jmp */
static bool far_group(struct skim *skim, uint8_t opcode, struct flow_insn *insn)
{
    take_modrm(skim);
    uint8_t which = skim->reg & 7;
    if (which <= 1) {
        return !rm_is_frame_reg(skim);
    }
    if (opcode != 0xff || skim->operand_size || skim->repeat || (which != 2 && which != 4)) {
        return false;
    }
    insn->control = which == 2 ? FLOW_CALLS : FLOW_STOP;
    if (which == 2) {
        add_step(insn, FLOW_CALL, FLOW_NO_REG, 0);
    }
    return true;
}

static bool two_bytes(struct skim *skim, struct flow_insn *insn)
{
    uint8_t opcode = take(skim);
    if (opcode >= 0x80 && opcode <= 0x8f) {
        return branch(skim, insn, FLOW_BRANCH, 4) && !skim->operand_size && !skim->repeat;
    }
    if (opcode >= 0x40 && opcode <= 0x4f) { /* cmov */
        take_modrm(skim);
        return !is_frame_reg(skim->reg);
    }
    if (opcode >= 0x90 && opcode <= 0x9f) { /* set */
        take_modrm(skim);
        return !rm_is_frame_reg(skim);
    }
    switch (opcode) {
    case 0x10: /* movss, movsd, movups and the like: no general register */
    case 0x11:
    case 0x51:
    case 0x58:
    case 0x59:
    case 0x5c:
    case 0x5e:
        take_modrm(skim);
        return true;
    case 0x28:
    case 0x29:
    case 0x2e:
    case 0x2f:
    case 0x54:
    case 0x57:
    case 0xef:
        take_modrm(skim);
        return !skim->repeat;
    case 0x6f:
    case 0x7f:
        take_modrm(skim);
        return skim->repeat != 0xf2;
    case 0xd6: /* movq xmm/m,xmm */
        take_modrm(skim);
        return skim->operand_size && !skim->repeat;
    case 0x2a: /* cvtsi2ss, cvtsi2sd */
        take_modrm(skim);
        return skim->repeat;
    case 0x1f: /* nop */
        take_modrm(skim);
        return true;
    case 0x6e: /* movd, movq xmm,r */
        take_modrm(skim);
        return skim->operand_size && !skim->repeat;
    case 0xaf: /* imul */
    case 0xb6: /* movzx, movsx */
    case 0xb7:
    case 0xbe:
    case 0xbf:
        take_modrm(skim);
        return !is_frame_reg(skim->reg) && !skim->repeat;
    default:
        return false;
    }
}

static bool one_byte(struct skim *skim, uint8_t opcode, struct flow_insn *insn)
{
    if (opcode < 0x40) {
        return arithmetic(skim, opcode);
    }
    if (opcode >= 0x70 && opcode <= 0x7f) {
        return branch(skim, insn, FLOW_BRANCH, 1);
    }
    if (opcode >= 0xb8 && opcode <= 0xbf) { /* mov reg,imm */
        skip(skim, is_wide(skim) ? 8 : 4);
        return !skim->operand_size && !is_frame_reg((uint8_t)((opcode & 7) | (skim->rex & 1) << 3));
    }
    switch (opcode) {
    case 0x63: /* movsxd */
        take_modrm(skim);
        return is_wide(skim) && !is_frame_reg(skim->reg);
    case 0x69: /* imul */
    case 0x6b:
        take_modrm(skim);
        skip(skim, opcode == 0x69 ? 4 : 1);
        return !is_frame_reg(skim->reg) && !skim->operand_size;
    case 0x80:
    case 0x81:
    case 0x83:
        return immediate_group(skim, opcode);
    case 0x84: /* test */
    case 0x85:
        take_modrm(skim);
        return true;
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b:
        return move(skim, opcode, insn);
    case 0x8d:
        return load_address(skim);
    case 0x90: /* nop */
        return skim->rex == 0 && !skim->repeat;
    case 0x98: /* cdqe, cqo */
    case 0x99:
        return true;
    case 0xa8: /* test al,imm */
        skip(skim, 1);
        return true;
    case 0xa9:
        skip(skim, 4);
        return !skim->operand_size;
    case 0xc0: /* shifts */
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        take_modrm(skim);
        skip(skim, opcode <= 0xc1 ? 1 : 0);
        return !rm_is_frame_reg(skim) && (skim->reg & 7) != 6;
    case 0xc3:
        insn->control = FLOW_STOP;
        return !skim->repeat && !skim->operand_size;
    case 0xc6: /* mov rm,imm */
    case 0xc7:
        take_modrm(skim);
        skip(skim, opcode == 0xc7 ? 4 : 1);
        return (skim->reg & 7) == 0 && !rm_is_frame_reg(skim) &&
               !(opcode == 0xc7 && skim->operand_size);
    case 0xe8:
        return branch(skim, insn, FLOW_CALLS, 4);
    case 0xe9:
        return branch(skim, insn, FLOW_JUMP, 4);
    case 0xeb:
        return branch(skim, insn, FLOW_JUMP, 1);
    case 0xf6:
    case 0xf7:
        return unary_group(skim, opcode);
    case 0xfe:
    case 0xff:
        return far_group(skim, opcode, insn);
    default:
        return false;
    }
}

bool skim_x86_64(const uint8_t *bytes, uint32_t size, uint32_t offset, struct flow_insn *insn)
{
    struct skim skim = {.at = bytes, .end = bytes + (size < 15 ? size : 15)};
    struct flow_insn found = {.control = FLOW_NEXT};
    uint8_t opcode = take(&skim);
    if (opcode == 0x66) {
        skim.operand_size = true;
        opcode = take(&skim);
    }
    if (opcode == 0xf2 || opcode == 0xf3) {
        skim.repeat = opcode;
        opcode = take(&skim);
    }
    if ((opcode & 0xf0) == 0x40) {
        skim.rex = opcode;
        opcode = take(&skim);
    }
    bool is_plain = opcode == 0x0f ? two_bytes(&skim, &found)
                    : skim.repeat  ? false /* xacquire, bnd, rep: what they go with decides */
                                   : one_byte(&skim, opcode, &found);
    bool branches = found.has_target && skim.operand_size; /* AMD and Intel disagree on these */
    if (!is_plain || skim.failed || branches) {
        return false;
    }
    found.length = (uint8_t)(skim.at - bytes);
    if (found.has_target) {
        found.target += (int64_t)offset + found.length;
    }
    *insn = found;
    return true;
}
