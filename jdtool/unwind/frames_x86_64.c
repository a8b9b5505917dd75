/*
 * x86-64: Zydis decodes, frames_flow.c follows.
 *
 * What HotSpot's code does to its frame (17 to 25, read from what it generates):
 *
 *   nmethod        mov [rsp-0x14000],eax (stack bang); push rbp; [mov rbp,rsp]; sub rsp,N  or
 *                  sub rsp,N; mov [rsp+N-8],rbp; epilogue add rsp,N; pop rbp; cmp rsp,[r15+x]; ret.
 *                  rbp is an ordinary register in between unless PreserveFramePointer is on.
 *   intrinsics     push and pop registers in the body; MacroAssembler::string_indexof copies short
 *                  strings to the stack: mov rcx,rsp; in some paths sub rsp,16 and pushes; push
 *                  rcx; …; pop rsp
 *   stubs          push rbp; mov rbp,rsp; …; leave; ret, some with pushes in a loop (call_stub):
 *                  there the paths disagree on rsp, and rbp tells
 *   adapters       take the return address off, move rsp, put it back; r13 holds the sender's rsp
 *   interpreter    entered like a method with the sender's rsp in r13; from push r13 on, rbp is
 *                  all one needs
 */
#include "jdtool/unwind/frames.h"
#include "jdtool/unwind/frames_flow.h"
#include "jdtool/unwind/skim_x86_64.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <string.h>

/* DWARF's numbers (System V ABI, x86-64, figure 3.36) by the processor's own. */
static const uint8_t dwarf_of[16] = {0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15};
#define RBP 6
#define RSP 7
#define RBX 3
#define R13 13

/* The verified entry is not further from the code's start: an inline cache check is in between. */
#define PATCHED_ENTRY_MAX 128

static uint8_t gpr(ZydisRegister reg)
{
    ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (ZydisRegisterGetClass(wide) != ZYDIS_REGCLASS_GPR64) {
        return FLOW_NO_REG;
    }
    ZyanI8 id = ZydisRegisterGetId(wide);
    return id >= 0 && id < 16 ? dwarf_of[id] : FLOW_NO_REG;
}

static void add_step(struct flow_insn *insn, enum flow_step_kind kind, uint8_t reg, int32_t value)
{
    if (insn->step_count < FLOW_STEPS_MAX) {
        insn->steps[insn->step_count++] = (struct flow_step){(uint8_t)kind, reg, value};
    }
}

/* [base + displacement] without an index, the displacement inside an int32_t. */
static bool is_based(const ZydisDecodedOperand *operand, ZydisRegister base)
{
    return operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.base == base &&
           operand->mem.index == ZYDIS_REGISTER_NONE;
}

static bool is_reg(const ZydisDecodedOperand *operand)
{
    return operand->type == ZYDIS_OPERAND_TYPE_REGISTER;
}

static int32_t displacement(const ZydisDecodedOperand *operand)
{
    return operand->mem.disp.has_displacement ? (int32_t)operand->mem.disp.value : 0;
}

static bool is_rsp(const ZydisDecodedOperand *operand)
{
    return is_reg(operand) && operand->reg.value == ZYDIS_REGISTER_RSP;
}

static void decode_mov(struct flow_insn *insn, const ZydisDecodedOperand *to,
                       const ZydisDecodedOperand *from)
{
    if (is_rsp(to)) {
        if (is_reg(from)) {
            add_step(insn, FLOW_SP_FROM, gpr(from->reg.value), 0);
        } else {
            add_step(insn, FLOW_SP_LOST, FLOW_NO_REG, 0);
        }
    } else if (is_reg(to)) {
        uint8_t reg = gpr(to->reg.value);
        bool whole = to->size == 64;
        if (whole && is_rsp(from)) {
            add_step(insn, FLOW_COPY_SP, reg, 0);
        } else if (whole && is_based(from, ZYDIS_REGISTER_RSP)) {
            add_step(insn, FLOW_LOAD, reg, displacement(from));
        } else if (whole && is_based(from, ZYDIS_REGISTER_RBP)) {
            add_step(insn, FLOW_LOAD_FP, reg, displacement(from));
        } else {
            add_step(insn, FLOW_CLOBBER, reg, 0);
        }
    } else if (is_based(to, ZYDIS_REGISTER_RSP) && is_reg(from) && from->size == 64) {
        add_step(insn, FLOW_STORE, gpr(from->reg.value), displacement(to));
    }
}

static void decode_lea(struct flow_insn *insn, const ZydisDecodedOperand *to,
                       const ZydisDecodedOperand *from)
{
    uint8_t reg = gpr(to->reg.value);
    bool plain = from->mem.index == ZYDIS_REGISTER_NONE;
    if (reg == RSP && plain && from->mem.base == ZYDIS_REGISTER_RSP) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, displacement(from));
    } else if (reg == RSP && plain && gpr(from->mem.base) != FLOW_NO_REG) {
        add_step(insn, FLOW_SP_FROM, gpr(from->mem.base), displacement(from));
    } else if (reg == RSP) {
        add_step(insn, FLOW_SP_LOST, FLOW_NO_REG, 0);
    } else if (plain && from->mem.base == ZYDIS_REGISTER_RSP) {
        add_step(insn, FLOW_COPY_SP, reg, displacement(from));
    } else {
        add_step(insn, FLOW_CLOBBER, reg, 0);
    }
}

static void decode_others(struct flow_insn *insn, const ZydisDecodedInstruction *zydis,
                          const ZydisDecodedOperand *operands)
{
    for (uint8_t i = 0; i < zydis->operand_count; i++) {
        if (!is_reg(&operands[i]) || !(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)) {
            continue;
        }
        uint8_t reg = gpr(operands[i].reg.value);
        if (reg == RSP) {
            add_step(insn, FLOW_SP_LOST, FLOW_NO_REG, 0);
        } else if (reg != FLOW_NO_REG) {
            add_step(insn, FLOW_CLOBBER, reg, 0);
        }
    }
}

static void decode_steps(struct flow_insn *insn, const ZydisDecodedInstruction *zydis,
                         const ZydisDecodedOperand *operands)
{
    const ZydisDecodedOperand *first = &operands[0];
    switch (zydis->mnemonic) {
    case ZYDIS_MNEMONIC_PUSH:
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, -(zydis->operand_width / 8));
        add_step(insn, FLOW_STORE, is_reg(first) ? gpr(first->reg.value) : FLOW_NO_REG, 0);
        return;
    case ZYDIS_MNEMONIC_POP:
        if (is_rsp(first)) {
            add_step(insn, FLOW_SP_LOAD, FLOW_NO_REG, 0);
            return;
        }
        add_step(insn, FLOW_LOAD, is_reg(first) ? gpr(first->reg.value) : FLOW_NO_REG, 0);
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, zydis->operand_width / 8);
        return;
    case ZYDIS_MNEMONIC_PUSHFQ:
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, -8);
        return;
    case ZYDIS_MNEMONIC_POPFQ:
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, 8);
        return;
    case ZYDIS_MNEMONIC_LEAVE:
        add_step(insn, FLOW_SP_FROM, RBP, 0);
        add_step(insn, FLOW_LOAD, RBP, 0);
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, 8);
        return;
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_SUB:
        if (is_rsp(first) && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
            int32_t value = (int32_t)operands[1].imm.value.s;
            if (zydis->mnemonic == ZYDIS_MNEMONIC_SUB) {
                value = value == INT32_MIN ? INT32_MAX : -value;
            }
            add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, value);
            return;
        }
        break;
    case ZYDIS_MNEMONIC_AND:
        if (is_rsp(first) && operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
            operands[1].imm.value.s < 0 && operands[1].imm.value.s >= -4096) {
            add_step(insn, FLOW_SP_ALIGN, FLOW_NO_REG, -(int32_t)operands[1].imm.value.s);
            return;
        }
        break;
    case ZYDIS_MNEMONIC_MOV:
        decode_mov(insn, first, &operands[1]);
        return;
    case ZYDIS_MNEMONIC_LEA:
        decode_lea(insn, first, &operands[1]);
        return;
    default:
        break;
    }
    decode_others(insn, zydis, operands);
}

static void decode_control(struct flow_insn *insn, const ZydisDecodedInstruction *zydis,
                           const ZydisDecodedOperand *operands, uint32_t offset)
{
    switch (zydis->meta.category) {
    case ZYDIS_CATEGORY_RET:
        insn->control = FLOW_STOP;
        return;
    case ZYDIS_CATEGORY_CALL:
    case ZYDIS_CATEGORY_COND_BR:
    case ZYDIS_CATEGORY_UNCOND_BR:
        break;
    default:
        insn->control = zydis->mnemonic == ZYDIS_MNEMONIC_HLT ||
                                zydis->mnemonic == ZYDIS_MNEMONIC_INT3 ||
                                zydis->mnemonic == ZYDIS_MNEMONIC_UD2
                            ? FLOW_STOP
                            : FLOW_NEXT;
        return;
    }
    if (operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[0].imm.is_relative) {
        insn->has_target = true;
        insn->target = (int64_t)offset + zydis->length + operands[0].imm.value.s;
    }
    if (zydis->meta.category == ZYDIS_CATEGORY_COND_BR) {
        insn->control = FLOW_BRANCH;
    } else if (zydis->meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
        insn->control = insn->has_target ? FLOW_JUMP : FLOW_STOP;
    } else {
        insn->control = FLOW_CALLS;
        insn->step_count = 0;
        if (insn->has_target && insn->target == (int64_t)offset + zydis->length) {
            add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, -8); /* call $+5: pushes its own address */
        } else {
            add_step(insn, FLOW_CALL, FLOW_NO_REG, 0);
        }
    }
}

static void decode(void *context, const struct frames_code *code, uint32_t offset,
                   struct flow_insn *insn)
{
    ZydisDecodedInstruction zydis;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(context, code->bytes + offset, code->size - offset,
                                             &zydis, operands))) {
        insn->control = FLOW_INVALID;
        insn->length = 1;
        return;
    }
    insn->length = zydis.length;
    decode_steps(insn, &zydis, operands);
    decode_control(insn, &zydis, operands, offset);
}

/*
 * Where C1 does not know a class yet a jump to a patching stub lies over the instruction that loads
 * it, mov reg,imm64 of 0, whose last five bytes are left (PatchingStub::emit_code; of a field
 * access nops are left). Once the stub has put the instruction there it goes on behind it, and the
 * frame is there all the time.
 */
static uint32_t left_of_patched(const struct frames_code *code, uint32_t offset)
{
    static const uint8_t zeros[5];
    bool is = code->size - offset >= sizeof zeros &&
              memcmp(code->bytes + offset, zeros, sizeof zeros) == 0;
    return is ? sizeof zeros : 0;
}

static const struct flow_arch arch = {
    .fp_reg = RBP,
    .callee_saved = 1u << RBX | 1u << RBP | 0xfu << 12,
    .entry = {.sp = 8,
              .fp = FLOW_UNKNOWN,
              .alias = FLOW_UNKNOWN,
              .kept_fp = FLOW_UNKNOWN,
              .saved = FLOW_UNKNOWN,
              .alias_reg = FLOW_NO_REG,
              .ra = FRAME_AT_CFA,
              .ra_copy = FLOW_NO_REG,
              .ra_offset = -8,
              .fp_place = FRAME_SAME},
    .decode = decode,
    .skim = skim_x86_64,
    .left_of_patched = left_of_patched,
};

static bool bytes_are(const struct frames_code *code, uint32_t offset, const char *bytes,
                      uint32_t count)
{
    return offset <= code->size && code->size - offset >= count &&
           memcmp(code->bytes + offset, bytes, count) == 0;
}

/* Behind what only fills up to an alignment (Assembler::nop): nop, and nops with an operand. */
static uint32_t behind_nops(const struct frames_code *code, uint32_t offset)
{
    for (;;) {
        uint32_t at = offset;
        while (bytes_are(code, at, "\x66", 1)) {
            at++;
        }
        if (bytes_are(code, at, "\x90", 1)) {
            offset = at + 1;
        } else if (bytes_are(code, at, "\x0f\x1f", 2) && code->size - at > 2) {
            uint8_t modrm = code->bytes[at + 2];
            static const uint32_t displacement[4] = {0, 1, 4, 0};
            offset = at + 3 + (modrm >> 6 != 3 && (modrm & 7) == 4) + displacement[modrm >> 6];
        } else {
            return offset;
        }
    }
}

/* Code that no path reached has its body's frame, unless it begins the way only an entry does. */
static void guess_body(const struct frames_code *code, uint32_t offset, struct flow_state *state)
{
    offset = behind_nops(code, offset);
    /* mov [rsp-N],eax: the stack bang, in front of every frame that calls */
    bool bang = bytes_are(code, offset, "\x89\x84\x24", 3) && code->size - offset >= 7 &&
                (code->bytes[offset + 6] & 0x80);
    bool enters = bytes_are(code, offset, "\x55\x48\x8b\xec", 4); /* push rbp; mov rbp,rsp */
    /* mov rbx,imm64; jmp: a static call's way into the interpreter (CompiledStaticCall), called */
    bool static_call = bytes_are(code, offset, "\x48\xbb", 2) && code->size - offset >= 15 &&
                       code->bytes[offset + 10] == 0xe9;
    if (bang || enters || static_call || code->shape == FRAMES_ADAPTER) {
        *state = arch.entry;
    }
}

static struct flow_state sender_in_r13(void)
{
    struct flow_state state = arch.entry;
    state.alias_reg = R13;
    state.alias = 0;
    return state;
}

/* The interpreter may be entered by way of an adapter, which has put arguments below the sender's
 * sp and the return address below them. */
static struct flow_state interpreter_entry(void)
{
    struct flow_state state = sender_in_r13();
    state.sp = FLOW_UNKNOWN;
    state.ra = FRAME_AT_SP;
    state.ra_offset = 0;
    return state;
}

/* Either builds a frame (push rax; push rbp; mov rbp,rsp; push r13) or returns without one (mov
 * rsp,r13). */
static bool is_entry(const uint8_t *bytes, size_t size)
{
    return memmem(bytes, size, "\x50\x55\x48\x8b\xec\x41\x55", 7) ||
           memmem(bytes, size, "\x49\x8b\xe5", 3);
}

/*
 * A method that was made not entrant has a jump of five bytes over the first instruction of its
 * verified entry (NativeJump::patch_verified_entry). Its frames go on running, so the way in is
 * followed behind what is left: of the stack bang of seven bytes the upper half of a small negative
 * displacement; of mov r10,imm64 five bytes, where the class may not be initialised yet, and then
 * cmpb [r10+init_state],fully_initialized (MacroAssembler::clinit_barrier).
 */
static int follow_patched_entry(struct flow *flow, const struct frames_code *code)
{
    int error = 0;
    for (uint32_t at = 0; !error && at + 7 < code->size && at <= PATCHED_ENTRY_MAX; at++) {
        const uint8_t *bytes = code->bytes + at;
        bool bang = bytes[5] >= 0xf0 && bytes[6] == 0xff;
        bool barrier = bytes_are(code, at + 10, "\x41\x80\xba", 3);
        if (bytes[0] == 0xe9 && (bang || barrier) && flow_reached(flow, at) &&
            !flow_reached(flow, at + 5)) {
            error = flow_follow(flow, at + (bang ? 7 : 10), &arch.entry);
        }
    }
    return error;
}

static struct flow_state start_of(const struct frames_code *code)
{
    struct flow_state state = arch.entry;
    if (code->shape == FRAMES_ADAPTER) {
        state = sender_in_r13(); /* i2c: the sender is an interpreted frame */
    } else if (code->shape == FRAMES_JUMPED_TO && code->bytes[0] != 0x55 &&
               (code->bytes[0] & 0xf8) == 0x50) {
        /*
         * Reached by a jump (or by a signal handler that changed the pc) from a frame without a
         * call: the first instruction makes room for the return address. The handler for polls at
         * returns is entered behind the epilogue and does not.
         */
        state.sp = 0;
    } else if (code->shape == FRAMES_CONTINUATION && code->entry_frame) {
        /* The last frame of a thawed continuation returns here: rsp is enterSpecial's. cont_thaw
         * is called from it and takes its return address off at once. */
        bool thaw = code->bytes[0] == 0x59;
        state.sp = (int32_t)code->entry_frame + (thaw ? 8 : 0);
        state.fp = 16;
        state.fp_place = FRAME_AT_CFA;
        state.fp_offset = -16;
    }
    return state;
}

int frames_x86_64(const struct frames_code *code, struct frames *frames)
{
    const struct flow_code of_code = {
        .start = start_of,
        .follow_patched_entry = follow_patched_entry,
        .guess_body = guess_body,
        .interpreter = {.entry = interpreter_entry(), .code_alignment = 32, .is_entry = is_entry},
    };
    ZydisDecoder decoder;
    frames->count = 0;
    if (!ZYAN_SUCCESS(
            ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64))) {
        return -EINVAL;
    }
    return flow_frames(&arch, &of_code, code, &decoder, frames);
}
