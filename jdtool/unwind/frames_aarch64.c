/*
 * aarch64: instructions are 32 bits wide and regular, so what matters of them is decoded here (Arm
 * Architecture Reference Manual, C4.1); frames_flow.c follows.
 *
 * What HotSpot's code does to its frame (17 to 25, read from what it generates):
 *
 *   nmethod      nop; sub x9,sp,#0x14000; str xzr,[x9] (stack bang); sub sp,sp,#N; stp
 *                x29,x30,[sp,#N-16]; epilogue ldp x29,x30; add sp,sp,#N; poll; ret. x29 is a frame
 *                pointer with PreserveFramePointer only (add x29,sp,#N-16)
 *   stubs        stp x29,x30,[sp,#-16]!; mov x29,sp; …; mov sp,x29; ldp x29,x30,[sp],#16; ret
 *   adapters     leave the return address in x30
 *   interpreter  entered with the return address in x30 and the sender's sp in x13 (17) or x19;
 *                complete when that is stored at x29 - 8
 *   cont_*       run in the frame of Continuation.enterSpecial, which calls cont_thaw, and where
 * the last frame of a thawed continuation returns to cont_returnBarrier
 */
#include "jdtool/unwind/frames.h"
#include "jdtool/unwind/frames_flow.h"

#include <string.h>

#define FP 29
#define LR 30
#define SP 31

static void add_step(struct flow_insn *insn, enum flow_step_kind kind, uint8_t reg, int32_t value)
{
    if (insn->step_count < FLOW_STEPS_MAX) {
        insn->steps[insn->step_count++] = (struct flow_step){(uint8_t)kind, reg, value};
    }
}

static uint32_t field(uint32_t word, unsigned low, unsigned bits)
{
    return word >> low & ((1u << bits) - 1);
}

static int32_t signed_field(uint32_t word, unsigned low, unsigned bits)
{
    return (int32_t)(field(word, low, bits) << (32 - bits)) >> (32 - bits);
}

static void clobber(struct flow_insn *insn, uint32_t reg)
{
    if (reg != SP) { /* 31 is the zero register here */
        add_step(insn, FLOW_CLOBBER, (uint8_t)reg, 0);
    }
}

/* add, sub with an immediate: 31 is sp on both sides, but for the forms that set flags. */
static void decode_add_immediate(struct flow_insn *insn, uint32_t word)
{
    uint32_t to = field(word, 0, 5);
    uint32_t from = field(word, 5, 5);
    int32_t value = (int32_t)(field(word, 10, 12) << (field(word, 22, 1) ? 12 : 0));
    bool wide = field(word, 31, 1);
    bool flags = field(word, 29, 1);
    value = field(word, 30, 1) ? -value : value;
    if (!flags && to == SP && from == SP) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, value);
    } else if (!flags && to == SP) {
        add_step(insn, FLOW_SP_FROM, (uint8_t)from, value);
    } else if (!flags && from == SP && wide) {
        add_step(insn, FLOW_COPY_SP, (uint8_t)to, value);
    } else {
        clobber(insn, to);
    }
}

/* ldp, stp of any kind. */
static void decode_pair(struct flow_insn *insn, uint32_t word)
{
    bool vector = field(word, 26, 1);
    uint32_t opc = field(word, 30, 2);
    uint32_t mode = field(word, 23, 2); /* 1 post-indexed, 2 offset, 3 pre-indexed */
    uint32_t base = field(word, 5, 5);
    bool load = field(word, 22, 1);
    int32_t scale = vector ? 4 << opc : (opc & 2 ? 8 : 4);
    int32_t offset = signed_field(word, 15, 7) * scale;
    uint8_t regs[2] = {(uint8_t)field(word, 0, 5), (uint8_t)field(word, 10, 5)};
    bool whole = !vector && opc == 2;
    if (base == SP && mode == 3) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, offset);
    }
    for (int i = 0; i < 2 && !vector; i++) {
        int32_t at = (mode == 2 ? offset : 0) + i * scale;
        if (regs[i] == SP) {
            continue;
        }
        if (whole && base == SP) {
            add_step(insn, load ? FLOW_LOAD : FLOW_STORE, regs[i], at);
        } else if (whole && load && base == FP && mode == 2) {
            add_step(insn, FLOW_LOAD_FP, regs[i], at);
        } else if (load) {
            clobber(insn, regs[i]);
        }
    }
    if (base == SP && mode == 1) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, offset);
    } else if (base != SP && mode != 2) {
        clobber(insn, base);
    }
}

/* ldr, str of one register with an immediate. */
static void decode_single(struct flow_insn *insn, uint32_t word)
{
    bool vector = field(word, 26, 1);
    uint32_t size = field(word, 30, 2);
    uint32_t opc = field(word, 22, 2);
    uint32_t base = field(word, 5, 5);
    uint8_t reg = (uint8_t)field(word, 0, 5);
    bool scaled = field(word, 24, 1);
    bool indexed_by_register = !scaled && field(word, 21, 1);
    uint32_t mode = scaled ? 0 : field(word, 10, 2); /* 1 post-indexed, 3 pre-indexed */
    int32_t offset = scaled ? (int32_t)(field(word, 10, 12) << size) : signed_field(word, 12, 9);
    bool whole = !vector && size == 3 && opc <= 1;
    bool load = opc != 0;
    if (indexed_by_register) {
        if (load && !vector) {
            clobber(insn, reg);
        }
        return;
    }
    if (base == SP && mode == 3) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, offset);
    }
    int32_t at = mode == 1 || mode == 3 ? 0 : offset;
    if (!vector && reg != SP) {
        if (whole && base == SP) {
            add_step(insn, load ? FLOW_LOAD : FLOW_STORE, reg, at);
        } else if (whole && load && base == FP && mode == 0) {
            add_step(insn, FLOW_LOAD_FP, reg, at);
        } else if (load) {
            clobber(insn, reg);
        }
    }
    if (base == SP && mode == 1) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, offset);
    } else if (base != SP && (mode == 1 || mode == 3)) {
        clobber(insn, base);
    }
}

/* ld1, st1 and the like with whole vector registers, post-indexed: how stubs pop them. */
static void decode_vectors(struct flow_insn *insn, uint32_t word)
{
    /* Registers by opcode, C7.2.176 and on; 0: not allocated. */
    static const uint8_t registers[16] = {
        [0] = 4, [2] = 4, [4] = 3, [6] = 3, [7] = 1, [8] = 2, [10] = 2};
    int32_t bytes = registers[field(word, 12, 4)] * (field(word, 30, 1) ? 16 : 8);
    if (field(word, 5, 5) != SP) {
        clobber(insn, field(word, 5, 5));
    } else if (field(word, 16, 5) == 31) {
        add_step(insn, FLOW_SP_ADD, FLOW_NO_REG, bytes);
    } else {
        add_step(insn, FLOW_SP_LOST, FLOW_NO_REG, 0);
    }
}

static void decode_data(struct flow_insn *insn, uint32_t word)
{
    uint32_t to = field(word, 0, 5);
    if ((word & 0x1f800000) == 0x11000000) {
        decode_add_immediate(insn, word);
    } else if ((word & 0x1f800000) == 0x12000000 && field(word, 29, 2) != 3) {
        /* and, orr, eor with an immediate may write sp: andr(sp, …, -16) */
        if (to == SP && field(word, 5, 5) == SP && (word & 0x60000000) == 0) {
            add_step(insn, FLOW_SP_ALIGN, FLOW_NO_REG, 16);
        } else if (to == SP) {
            add_step(insn, FLOW_SP_LOST, FLOW_NO_REG, 0);
        } else {
            clobber(insn, to);
        }
    } else if ((word & 0x1fe00000) == 0x0b200000 && !field(word, 29, 1) && to == SP) {
        add_step(insn, FLOW_SP_LOST, FLOW_NO_REG, 0); /* add, sub with an extended register */
    } else if ((word & 0x1c000000) == 0x10000000 || (word & 0x0e000000) == 0x0a000000 ||
               (word & 0x3f000000) == 0x18000000) {
        clobber(insn, to); /* the rest with a result in a register, and ldr of a literal */
    } else if ((word & 0xbfa00000) == 0x0c800000) {
        decode_vectors(insn, word);
    } else if ((word & 0x3a000000) == 0x28000000) {
        decode_pair(insn, word);
    } else if ((word & 0x3a000000) == 0x38000000) {
        decode_single(insn, word);
    }
}

static void branch(struct flow_insn *insn, enum flow_control control, uint32_t offset,
                   int32_t distance)
{
    insn->control = (uint8_t)control;
    insn->has_target = true;
    insn->target = (int64_t)offset + (int64_t)distance * 4;
}

/* False: no branch. */
static bool decode_branch(struct flow_insn *insn, uint32_t word, uint32_t offset)
{
    if ((word & 0x7c000000) == 0x14000000) {
        branch(insn, word >> 31 ? FLOW_CALLS : FLOW_JUMP, offset, signed_field(word, 0, 26));
    } else if ((word & 0xff000000) == 0x54000000 || /* b.cond */
               (word & 0x7e000000) == 0x34000000) { /* cbz, cbnz */
        branch(insn, FLOW_BRANCH, offset, signed_field(word, 5, 19));
    } else if ((word & 0x7e000000) == 0x36000000) { /* tbz, tbnz */
        branch(insn, FLOW_BRANCH, offset, signed_field(word, 5, 14));
    } else if ((word & 0xfe000000) == 0xd6000000) { /* br, blr, ret and their authenticated forms */
        insn->control = (field(word, 21, 2) == 1) ? FLOW_CALLS : FLOW_STOP;
    } else if ((word & 0xff000000) == 0xd4000000) {
        /* svc goes on; brk, hlt, dcps do not */
        insn->control = field(word, 21, 3) == 0 ? FLOW_NEXT : FLOW_STOP;
    } else {
        return false;
    }
    if (insn->control == FLOW_CALLS) {
        add_step(insn, FLOW_CALL, FLOW_NO_REG, 0);
        add_step(insn, FLOW_CLOBBER, LR, 0);
    }
    return true;
}

static void decode(void *context, const struct frames_code *code, uint32_t offset,
                   struct flow_insn *insn)
{
    (void)context;
    uint32_t word;
    if (code->size - offset < sizeof word) {
        insn->length = (uint8_t)(code->size - offset);
        insn->control = FLOW_INVALID;
        return;
    }
    memcpy(&word, code->bytes + offset, sizeof word);
    insn->length = sizeof word;
    if (word <= UINT16_MAX) { /* udf */
        insn->control = FLOW_INVALID;
        return;
    }
    insn->control = FLOW_NEXT;
    if (!decode_branch(insn, word, offset)) {
        decode_data(insn, word);
    }
}

static const struct flow_arch arch = {
    .fp_reg = FP,
    .callee_saved = UINT64_C(0x3ff80000), /* x19 to x29 */
    .entry = {.sp = 0,
              .fp = FLOW_UNKNOWN,
              .alias = FLOW_UNKNOWN,
              .kept_fp = FLOW_UNKNOWN,
              .saved = FLOW_UNKNOWN,
              .alias_reg = FLOW_NO_REG,
              .ra = FRAME_IN_REG,
              .ra_reg = LR,
              .ra_copy = FLOW_NO_REG,
              .fp_place = FRAME_SAME},
    .decode = decode,
};

static uint32_t word_at(const struct frames_code *code, uint32_t offset)
{
    uint32_t word = 0;
    if (code->size >= sizeof word && offset <= code->size - sizeof word) {
        memcpy(&word, code->bytes + offset, sizeof word);
    }
    return word;
}

/* What only an entry begins with. */
static bool is_prologue(const struct frames_code *code, uint32_t offset)
{
    uint32_t word = word_at(code, offset);
    return (word & 0xffc003ff) == 0xd14003e9 || /* sub x9,sp,#N,lsl 12: the stack bang */
           (word & 0xffe07fff) == 0xa9a07bfd || /* stp x29,x30,[sp,#-N]! */
           word == 0xd5033fdf; /* isb: a static call's way into the interpreter, called */
}

/* Code that no path reached has its body's frame, unless it begins the way only an entry does. */
static void guess_body(const struct frames_code *code, uint32_t offset, struct flow_state *state)
{
    if (is_prologue(code, offset) || code->shape == FRAMES_ADAPTER) {
        *state = arch.entry;
    }
}

/* stp x29,x30,[sp,#80] (TemplateInterpreterGenerator::generate_fixed_frame) */
static bool is_entry(const uint8_t *bytes, size_t size)
{
    return memmem(bytes, size, "\xfd\x7b\x05\xa9", 4) != NULL;
}

/*
 * The verified entry is further from the start than an inline cache check, 64 bytes in C1's code. A
 * method that was made not entrant has a branch there in place of a nop; its frames go on running.
 */
#define ENTRY_MAX 256

static int follow_patched_entry(struct flow *flow, const struct frames_code *code)
{
    int error = 0;
    for (uint32_t at = 0; !error && at + 4 < code->size && at <= ENTRY_MAX; at += 4) {
        if ((word_at(code, at) & 0xfc000000) == 0x14000000 && flow_reached(flow, at) &&
            !flow_reached(flow, at + 4) && is_prologue(code, at + 4)) {
            error = flow_follow(flow, at + 4, &arch.entry);
        }
    }
    return error;
}

static struct flow_state start_of(const struct frames_code *code)
{
    struct flow_state state = arch.entry;
    if (code->shape == FRAMES_CONTINUATION && code->entry_frame) {
        state.sp = (int32_t)code->entry_frame;
        state.fp = 16;
        state.fp_place = state.ra = FRAME_AT_CFA;
        state.fp_offset = -16;
        state.ra_offset = -8;
    }
    return state;
}

int frames_aarch64(const struct frames_code *code, struct frames *frames)
{
    const struct flow_code of_code = {
        .start = start_of,
        .follow_patched_entry = follow_patched_entry,
        .guess_body = guess_body,
        .interpreter = {.entry = arch.entry, .code_alignment = 64, .is_entry = is_entry},
    };
    return flow_frames(&arch, &of_code, code, NULL, frames);
}
