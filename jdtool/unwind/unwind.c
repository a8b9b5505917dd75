/*
 * How it works. A walk keeps the registers of the current frame that are known, the code it is in,
 * and steps to the caller by that code's row, until a row says that there is no caller. A frame's
 * row is looked up at the call, one byte before the return address: the return address itself may
 * belong to something else already. Four kinds of frame were not left by a call, and are looked up
 * where they are: the leaf, what a signal interrupted, what jumped into a safepoint handler, and
 * what a uprobe stands on.
 *
 * Two places of HotSpot's are nowhere in a dump:
 *   - the stub section behind a method's code, where the deoptimization handler is, which return
 *     addresses of deoptimized frames point to (nmethod::deopt_handler_begin). The frame is the
 *     method's.
 *   - the callers of a continuation's last thawed frame: their frames are in the heap, and the
 *     return address is that of cont_returnBarrier. On the stack, enterSpecial's frame follows.
 */
#include "jdtool/unwind/unwind.h"

#include <asm/perf_regs.h>
#include <elf.h>
#include <linux/perf_event.h>
#include <string.h>

/* ---- What a pc is in ---- */

/* HotSpot keeps exception, deoptimization and call stubs behind the code that JVMTI reports. */
#define STUB_SECTION_MAX 512

/* The method whose stub section an address lies in: nothing is in between. */
static bool find_stub_section(unwind_find_fn *find, void *context, uint64_t address,
                              struct unwind_place *place)
{
    struct unwind_place before;
    for (uint64_t back = 16; back <= STUB_SECTION_MAX && back < address; back += 16) {
        memset(&before, 0, sizeof before);
        find(context, address - back, &before);
        if (before.code) {
            if (before.code->shape != FRAMES_COMPILED || blob_frame_size(before.code) == 0) {
                return false;
            }
            *place = before;
            place->stub_section = true;
            return true;
        }
        if (before.mapped) {
            return false;
        }
    }
    return false;
}

void unwind_place_of(unwind_find_fn *find, void *context, uint64_t pc, bool caller,
                     struct unwind_place *place)
{
    uint64_t address = pc - caller;
    memset(place, 0, sizeof *place);
    if (caller) {
        find(context, pc, place);
        place->barrier = place->code && place->code->return_barrier && place->code_start == pc;
    }
    if (place->barrier) {
        place->address = pc;
        return;
    }
    memset(place, 0, sizeof *place);
    find(context, address, place);
    if (!place->code && !place->mapped && find_stub_section(find, context, address, place)) {
        /* Reported as the end of the method, so that it gets the method's name. */
        place->address = place->code_start + place->code_size - 1;
        return;
    }
    place->address = address;
}

const struct frame_row *unwind_place_row(const struct unwind_place *place)
{
    uint64_t offset = place->barrier ? 0 : place->address - place->code_start;
    return frames_at(&place->code->frames, (uint32_t)offset);
}

/* ---- Walking ---- */

struct machine {
    uint8_t sp;
    uint8_t fp;
    uint8_t ra; /* the column of the return address */
    uint8_t bcp;
    uint8_t method;
    int32_t bcp_slot; /* frame::interpreter_frame_bcp_offset, bytes */
};

/* frame_x86.hpp, frame_aarch64.hpp: interpreter_frame_method_offset is the same on both. */
#define METHOD_SLOT (-0x18)

static const struct machine x86_64 = {
    .sp = 7, .fp = 6, .ra = 16, .bcp = 13, .method = 3, .bcp_slot = -0x40};
enum { X86_64_FP_PLACE = 1 }; /* of a row (native_place_register) */
static const struct machine aarch64 = {
    .sp = 31, .fp = 29, .ra = 30, .bcp = 22, .method = 12, .bcp_slot = -0x48};

/* The numbers of PERF_REG_X86_* (asm/perf_regs.h) by DWARF's; 16 is the pc. */
static const uint8_t perf_x86_64[17] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8};

struct walk {
    const struct unwind_process *process;
    const struct machine *machine;
    struct native_regs regs;
    uint64_t pc;
    bool caller;      /* pc is a return address */
    bool called_java; /* of a call that Java code makes of Java code */
    const uint8_t *stack;
    uint64_t stack_start;
    size_t stack_size;
    enum unwind_end end; /* UNWIND_END_COUNT: not told yet */
};

static const struct machine *machine_of(unsigned number)
{
    return number == EM_AARCH64 ? &aarch64 : &x86_64;
}

/* rbx and r12 to r15: of samples in the kernel perf writes -1 for them (perf_get_regs_user in
 * arch/x86/kernel/perf_regs.c). */
#define KEPT_BY_CALLEES UINT64_C(0xf008)

static bool are_left_out(const struct native_regs *regs)
{
    uint64_t all = (regs->known & KEPT_BY_CALLEES) == KEPT_BY_CALLEES ? UINT64_MAX : 0;
    for (uint64_t left = KEPT_BY_CALLEES; left; left &= left - 1) {
        all &= regs->value[__builtin_ctzll(left)];
    }
    return all == UINT64_MAX;
}

bool unwind_take_registers(unsigned machine, uint64_t abi, uint64_t mask, const uint64_t *values,
                           uint32_t count, struct unwind_sample *sample)
{
    if (abi != PERF_SAMPLE_REGS_ABI_64 || !values) {
        return false;
    }
    uint64_t by_perf[64];
    uint64_t have = 0;
    uint32_t at = 0;
    for (unsigned bit = 0; bit < 64 && at < count; bit++) {
        if (mask >> bit & 1) {
            by_perf[bit] = values[at++];
            have |= UINT64_C(1) << bit;
        }
    }
    sample->regs.known = 0;
    unsigned last = machine == EM_AARCH64 ? 33 : 17; /* the pc included */
    for (unsigned reg = 0; reg < last; reg++) {
        unsigned bit = machine == EM_AARCH64 ? reg : perf_x86_64[reg];
        if (have >> bit & 1) {
            sample->regs.value[reg] = by_perf[bit];
            sample->regs.known |= UINT64_C(1) << reg;
        }
    }
    if (machine != EM_AARCH64 && are_left_out(&sample->regs)) {
        sample->regs.known &= ~KEPT_BY_CALLEES;
    }
    unsigned pc = last - 1;
    unsigned sp = machine_of(machine)->sp;
    if (!(sample->regs.known >> pc & 1) || !(sample->regs.known >> sp & 1)) {
        return false;
    }
    sample->pc = sample->regs.value[pc];
    sample->sp = sample->regs.value[sp];
    return true;
}

static bool read_word(void *context, uint64_t address, uint64_t *word)
{
    struct walk *walk = context;
    uint64_t offset = address - walk->stack_start;
    if (offset >= walk->stack_size || walk->stack_size - offset < sizeof *word) {
        /* A frame that lies above the copy is one that the copy was too short for. */
        walk->end = address >= walk->stack_start && offset < UINT64_C(1) << 32 ? UNWIND_COPY_ENDS
                                                                               : UNWIND_BROKEN;
        return false;
    }
    memcpy(word, walk->stack + offset, sizeof *word);
    return true;
}

static bool known(const struct walk *walk, unsigned reg)
{
    return walk->regs.known >> reg & 1;
}

static uint64_t value_of(const struct walk *walk, unsigned reg)
{
    return walk->regs.value[reg];
}

static void set(struct native_regs *regs, unsigned reg, uint64_t value)
{
    regs->value[reg] = value;
    regs->known |= UINT64_C(1) << reg;
}

/* Takes the caller's registers over. False when the stack does not shrink: no sane stack. */
static bool step_to(struct walk *walk, uint64_t pc, uint64_t cfa, const struct native_regs *regs)
{
    uint64_t sp = value_of(walk, walk->machine->sp);
    if (cfa < sp || (cfa == sp && pc == walk->pc)) {
        walk->end = UNWIND_BROKEN;
        return false;
    }
    if (walk->process->machine == EM_AARCH64) {
        pc &= (UINT64_C(1) << 48) - 1; /* a signed return address has its signature above */
    }
    walk->regs = *regs;
    set(&walk->regs, walk->machine->sp, cfa);
    walk->pc = pc;
    if (pc == 0) {
        walk->end = UNWIND_ROOT; /* what clone3 and _start are entered with */
        return false;
    }
    return true;
}

static bool step_interpreted(struct walk *walk)
{
    const struct machine *machine = walk->machine;
    struct native_regs regs = {.known = 0};
    uint64_t fp = value_of(walk, machine->fp);
    uint64_t pc;
    uint64_t cfa;
    uint64_t caller_fp;
    if (!known(walk, machine->fp)) {
        walk->end = UNWIND_NO_FRAME_INFO;
        return false;
    }
    if (!read_word(walk, fp - 8, &cfa) || !read_word(walk, fp + 8, &pc) ||
        !read_word(walk, fp, &caller_fp)) {
        return false;
    }
    set(&regs, machine->fp, caller_fp);
    return step_to(walk, pc, cfa, &regs);
}

static bool find_place(struct walk *walk, uint8_t place, int32_t offset, uint8_t reg, uint64_t cfa,
                       uint64_t *value)
{
    switch (place) {
    case FRAME_AT_CFA:
        return read_word(walk, cfa + (uint64_t)(int64_t)offset, value);
    case FRAME_AT_SP:
        return read_word(walk, value_of(walk, walk->machine->sp) + (uint64_t)(int64_t)offset,
                         value);
    case FRAME_IN_REG:
        if (known(walk, reg)) {
            *value = value_of(walk, reg);
            return true;
        }
        break;
    default:
        break;
    }
    walk->end = UNWIND_NO_FRAME_INFO;
    return false;
}

static const struct unwind_place *find(const struct walk *walk, uint64_t pc, bool caller)
{
    return walk->process->find(walk->process->context, pc, caller);
}

/*
 * The interpreter's entries of Math.sin, CRC32.update and the like have no frame and call a stub;
 * the sender's sp is in a register that nobody kept. An interpreted sender is found by fp all the
 * same.
 */
static bool step_frameless_entry(struct walk *walk, const struct frame_row *row)
{
    const struct machine *machine = walk->machine;
    struct native_regs regs = {.known = 0};
    uint64_t at = value_of(walk, machine->sp) + (uint64_t)(int64_t)row->ra_offset;
    uint64_t pc;
    if (row->ra == FRAME_AT_SP && row->fp == FRAME_SAME && known(walk, machine->fp) &&
        read_word(walk, at, &pc)) {
        const struct blob_frames *code = find(walk, pc, true)->code;
        if (code && code->shape == FRAMES_INTERPRETER) {
            set(&regs, machine->fp, value_of(walk, machine->fp));
            return step_to(walk, pc, at + 8, &regs);
        }
    }
    walk->end = walk->end == UNWIND_END_COUNT ? UNWIND_NO_FRAME_INFO : walk->end;
    return false;
}

static bool step_row(struct walk *walk, const struct frame_row *row)
{
    const struct machine *machine = walk->machine;
    if (row->cfa == FRAME_CFA_INTERPRETER) {
        return step_interpreted(walk);
    }
    unsigned base = row->cfa == FRAME_CFA_SP || row->cfa == FRAME_CFA_SAVED ? machine->sp
                    : row->cfa == FRAME_CFA_FP                              ? machine->fp
                                                                            : row->cfa_reg;
    if (base >= NATIVE_REGS || (!known(walk, base) && row->cfa != FRAME_CFA_REG)) {
        walk->end = UNWIND_NO_FRAME_INFO;
        return false;
    }
    if (!known(walk, base)) {
        return step_frameless_entry(walk, row);
    }
    uint64_t cfa = value_of(walk, base);
    if (row->cfa == FRAME_CFA_SAVED && !read_word(walk, cfa + UINT64_C(8) * row->cfa_reg, &cfa)) {
        return false;
    }
    cfa += (uint64_t)(int64_t)row->cfa_offset;
    uint64_t pc;
    if (!find_place(walk, row->ra, row->ra_offset, row->ra_reg, cfa, &pc)) {
        return false;
    }
    struct native_regs regs = {.known = 0};
    uint64_t fp;
    if (row->fp == FRAME_SAME) {
        if (known(walk, machine->fp)) {
            set(&regs, machine->fp, value_of(walk, machine->fp));
        }
    } else if (row->fp != FRAME_NOWHERE && find_place(walk, row->fp, row->fp_offset, 0, cfa, &fp)) {
        set(&regs, machine->fp, fp);
    }
    return step_to(walk, pc, cfa, &regs);
}

/* Whether the word at an address is a return address into generated code. */
static bool returns_to_code(struct walk *walk, uint64_t address)
{
    uint64_t pc;
    return read_word(walk, address, &pc) && pc != 0 && find(walk, pc, true)->code != NULL;
}

/* A thawed frame may lie this much below the frame of enterSpecial, for alignment and arguments. */
#define THAW_PADDING_MAX 64

/*
 * In enterSpecial, by a call or because the last frame of a thawed continuation returned. Its frame
 * follows, give or take the padding that thawing put in, and its frame pointer is in fp, unless a
 * thawed compiled frame has left something else there. Continuation.run called it, so the place is
 * known by a return address into generated code.
 */
static bool step_continuation_entry(struct walk *walk, const struct frame_row *row)
{
    uint64_t fp = value_of(walk, walk->machine->fp);
    uint64_t sp = value_of(walk, walk->machine->sp);
    struct frame_row by_sp = *row;
    struct frame_row by_fp = {.cfa = FRAME_CFA_FP,
                              .cfa_offset = 16,
                              .ra = FRAME_AT_CFA,
                              .ra_offset = -8,
                              .fp = FRAME_AT_CFA,
                              .fp_offset = -16};
    bool near = known(walk, walk->machine->fp) && fp >= sp && fp - sp < 1024;
    if (near && returns_to_code(walk, fp + 8)) {
        return step_row(walk, &by_fp);
    }
    for (int32_t padding = 0; row->cfa == FRAME_CFA_SP && padding <= THAW_PADDING_MAX;
         padding += 8) {
        by_sp.cfa_offset = row->cfa_offset + padding;
        if (returns_to_code(walk, sp + (uint64_t)(int64_t)by_sp.cfa_offset - 8)) {
            return step_row(walk, &by_sp);
        }
    }
    return step_row(walk, near ? &by_fp : row);
}

/* The base a native row's rule starts from. */
static bool native_cfa(struct walk *walk, const struct native_row *row, uint64_t *cfa)
{
    if (row->cfa.rule == NATIVE_REG && known(walk, row->cfa.reg)) {
        *cfa = value_of(walk, row->cfa.reg) + (uint64_t)(int64_t)row->cfa.offset;
        return true;
    }
    if (row->cfa.rule == NATIVE_EXPRESSION &&
        native_evaluate(&row->cfa, &walk->regs, 0, read_word, walk, cfa)) {
        return true;
    }
    return false;
}

static bool native_place(struct walk *walk, const struct native_place *place, unsigned reg,
                         uint64_t cfa, uint64_t *value)
{
    switch (place->rule) {
    case NATIVE_SAME:
        *value = value_of(walk, reg);
        return known(walk, reg);
    case NATIVE_AT_CFA:
        /* gcc says nothing of registers that an epilogue has popped: their slot is below sp. */
        if (cfa + (uint64_t)(int64_t)place->offset < value_of(walk, walk->machine->sp)) {
            *value = value_of(walk, reg);
            return known(walk, reg);
        }
        return read_word(walk, cfa + (uint64_t)(int64_t)place->offset, value);
    case NATIVE_CFA:
        *value = cfa + (uint64_t)(int64_t)place->offset;
        return true;
    case NATIVE_REG:
        *value = value_of(walk, place->reg);
        return known(walk, place->reg);
    case NATIVE_AT_EXPRESSION:
        return native_evaluate(place, &walk->regs, cfa, read_word, walk, value) &&
               read_word(walk, *value, value);
    case NATIVE_EXPRESSION:
        return native_evaluate(place, &walk->regs, cfa, read_word, walk, value);
    default:
        return false;
    }
}

/* A leaf in hand-written assembly without call-frame information (HotSpot's SpinPause). Where it is
 * none, as in a library of Go, there may be a 0 on top of the stack: no root, those have a row. */
static bool step_leaf(struct walk *walk, int32_t pushed)
{
    struct frame_row row = {
        .cfa = FRAME_CFA_SP, .cfa_offset = pushed + 8, .ra = FRAME_AT_CFA, .ra_offset = -8};
    if (walk->process->machine == EM_AARCH64) {
        row.cfa_offset = 0;
        row.ra = FRAME_IN_REG;
        row.ra_reg = walk->machine->ra;
    }
    bool more = step_row(walk, &row);
    walk->end = walk->end == UNWIND_ROOT ? UNWIND_NO_FRAME_INFO : walk->end;
    return more;
}

static bool step_bare_leaf(struct walk *walk)
{
    return step_leaf(walk, 0);
}

/* Nothing calls ld.so's _start: what lies on the stack there is no return address. */
static bool leads_to_code(struct walk *walk)
{
    const struct unwind_place *place = find(walk, walk->pc, true);
    if (place->code || place->mapped) {
        return true;
    }
    walk->end = UNWIND_NO_FRAME_INFO;
    return false;
}

/*
 * The bytes that are pushed at an offset of the page (uprobe_trampoline_entry in
 * arch/x86/kernel/uprobes.c, Linux 6.18): push rcx, r11, rax; mov; syscall; pop rax, r11, rcx; ret.
 */
static int32_t pushed_at(uint64_t offset)
{
    enum { RCX = 1, R11 = 3, RAX = 4, NO_RAX = 14, NO_R11 = 16, NO_RCX = 17 };
    return 8 * ((offset >= RCX) + (offset >= R11) + (offset >= RAX) - (offset >= NO_RAX) -
                (offset >= NO_R11) - (offset >= NO_RCX));
}

/* Where the CFA is sp + offset, and the frame pointer is saved at sp, or not yet. */
static bool is_by_push(const struct native_row *row, int32_t offset)
{
    const struct native_place *fp = &row->places[X86_64_FP_PLACE];
    bool is_saved = fp->rule == NATIVE_AT_CFA && fp->offset == -offset;
    return row->found && row->cfa.rule == NATIVE_REG && row->cfa.reg == x86_64.sp &&
           row->cfa.offset == offset && (offset == 8 ? fp->rule == NATIVE_SAME : is_saved);
}

/*
 * x86-64: a uprobe on `push %rbp` puts an int3 in its place, which leaves the pc behind itself
 * until the kernel comes to handle it (handle_swbp sets it back), and the return address at sp
 * still. Then the kernel does the push, and a moment later sets the pc behind it
 * (push_emulate_op). A sample of the clock in between has the other row. Of a thread that throws
 * exceptions all the time, which are recorded, one in twenty is of the first kind, one in a hundred
 * of the second. The row to step by.
 */
static const struct native_row *
row_at_breakpoint(struct walk *walk, const struct unwind_place *place, const struct native_row *row)
{
    const struct unwind_process *process = walk->process;
    const bool is_behind = is_by_push(row, 16);
    const uint64_t sp = value_of(walk, x86_64.sp);
    uint64_t word;
    if (walk->caller || process->machine == EM_AARCH64 || !(is_behind || is_by_push(row, 8)) ||
        !known(walk, x86_64.fp) || !read_word(walk, sp, &word) ||
        (word == value_of(walk, x86_64.fp)) == is_behind ||
        (!is_behind && !read_word(walk, sp + 8, &word))) {
        return row;
    }
    const struct unwind_place *caller = find(walk, word, true);
    const struct unwind_place *other = find(walk, is_behind ? walk->pc - 1 : walk->pc + 1, false);
    bool is = (caller->code || caller->mapped) && other->object &&
              is_by_push(process->row(process->context, other), is_behind ? 8 : 16);
    return process->row(process->context, is ? other : place); /* a row may last until the next */
}

static bool step_native(struct walk *walk, const struct native_row *row)
{
    if (!row->found) {
        if (walk->caller) {
            walk->end = UNWIND_NO_FRAME_INFO;
            return false;
        }
        return step_bare_leaf(walk) && leads_to_code(walk);
    }
    const struct native_place *ra = &row->places[NATIVE_PLACES - 1];
    if (ra->rule == NATIVE_UNDEFINED) {
        walk->end = UNWIND_ROOT;
        return false;
    }
    uint64_t cfa;
    uint64_t pc;
    if (!native_cfa(walk, row, &cfa) || !native_place(walk, ra, walk->machine->ra, cfa, &pc)) {
        walk->end = walk->end == UNWIND_END_COUNT ? UNWIND_NO_FRAME_INFO : walk->end;
        return false;
    }
    struct native_regs regs = {.known = 0};
    for (unsigned i = 0; i < NATIVE_PLACES - 1; i++) {
        unsigned reg = native_place_register(walk->process->machine, i);
        uint64_t value;
        if (native_place(walk, &row->places[i], reg, cfa, &value)) {
            set(&regs, reg, value);
        }
    }
    walk->end = UNWIND_END_COUNT;
    return step_to(walk, pc, cfa, &regs);
}

/*
 * A method's frame, set up. Where Java code has called Java code, HotSpot itself finds the caller
 * by no more than the frame size (frame::sender_for_compiled_frame), so that what the instructions
 * in front of the call did need not be known. A call of a stub or of native code may have registers
 * pushed (those of a garbage collector's barriers do).
 */
static bool step_body(struct walk *walk, const struct blob_frames *code)
{
    struct frame_row body = {.cfa = FRAME_CFA_SP,
                             .cfa_offset = (int32_t)blob_frame_size(code),
                             .ra = FRAME_AT_CFA,
                             .ra_offset = -8,
                             .fp = FRAME_AT_CFA,
                             .fp_offset = -16};
    return step_row(walk, &body);
}

static bool step_generated(struct walk *walk, const struct unwind_place *place)
{
    const struct blob_frames *code = place->code;
    if (code->shape == FRAMES_FRAMELESS) {
        return step_bare_leaf(walk);
    }
    bool in_body = walk->caller && walk->called_java && blob_steps_by_size(code);
    if (place->stub_section || in_body) {
        return step_body(walk, code);
    }
    const struct frame_row *row = walk->process->code_row(walk->process->context, place);
    if (!row) {
        walk->end = UNWIND_NO_FRAME_INFO;
        return false;
    }
    if (place->barrier || (code->continuation_entry && walk->caller)) {
        return step_continuation_entry(walk, row);
    }
    return step_row(walk, row);
}

static void fill_interpreted(struct walk *walk, const struct unwind_place *place,
                             struct unwind_frame *frame)
{
    const struct machine *machine = walk->machine;
    frame->kind = UNWIND_INTERPRETED;
    if (!walk->caller && known(walk, machine->bcp)) {
        frame->bcp_register = value_of(walk, machine->bcp);
    }
    if (!walk->caller && known(walk, machine->method)) {
        frame->method_register = value_of(walk, machine->method);
    }
    const struct frame_row *row = walk->process->code_row(walk->process->context, place);
    if (row && row->cfa == FRAME_CFA_INTERPRETER) {
        uint64_t fp = value_of(walk, machine->fp);
        if (known(walk, machine->fp)) {
            (void)read_word(walk, fp + (uint64_t)(int64_t)METHOD_SLOT, &frame->method);
            (void)read_word(walk, fp + (uint64_t)(int64_t)machine->bcp_slot, &frame->bcp);
            (void)read_word(walk, fp + (uint64_t)(int64_t)machine->bcp_slot + 8, &frame->bcp_above);
        }
    }
    walk->end = UNWIND_END_COUNT;
}

/* aarch64: what a signal interrupted. Call-frame information of it has x29 and x30 alone, if there
 * is any. */
static bool step_interrupted(struct walk *walk)
{
    const uint64_t saved = value_of(walk, walk->machine->sp) + FRAMES_AARCH64_SAVED;
    struct native_regs regs = {.known = 0};
    uint64_t word = 0;
    for (unsigned i = 0; i <= walk->machine->sp; i++) {
        if (!read_word(walk, saved + UINT64_C(8) * i, &word)) {
            return false;
        }
        set(&regs, i, word);
    }
    return read_word(walk, saved + UINT64_C(8) * (walk->machine->sp + 1U), &word) &&
           step_to(walk, word, regs.value[walk->machine->sp], &regs);
}

/* Steps over one frame; false at the end, with walk->end set. */
static bool step(struct walk *walk, struct unwind_frame *frame)
{
    const struct unwind_place *place = find(walk, walk->pc, walk->caller);
    *frame = (struct unwind_frame){.ip = place->address, .place = place, .caller = walk->caller};
    walk->end = UNWIND_END_COUNT;
    bool caller = true;
    bool is_java = false;
    bool more;
    if (place->code) {
        enum frames_shape shape = place->code->shape;
        frame->kind = UNWIND_GENERATED;
        if (shape == FRAMES_INTERPRETER && !place->stub_section) {
            fill_interpreted(walk, place, frame);
        }
        caller = shape != FRAMES_JUMPED_TO;
        is_java = shape == FRAMES_COMPILED || shape == FRAMES_INTERPRETER;
        more = step_generated(walk, place);
    } else if (place->object) {
        frame->kind = UNWIND_NATIVE;
        const struct native_row *row = walk->process->row(walk->process->context, place);
        caller = !row->signal;
        row = row_at_breakpoint(walk, place, row);
        walk->end = UNWIND_END_COUNT;
        more = row->signal && walk->process->machine == EM_AARCH64 ? step_interrupted(walk)
                                                                   : step_native(walk, row);
    } else if (place->is_stepped && !walk->caller) {
        /*
         * What the kernel does not emulate it steps over in a page of its own (xol_add_vma): all of
         * our uprobes stand on a function's first instruction, an endbr64 or the like, which leaves
         * the return address where it is.
         */
        frame->kind = UNWIND_NATIVE;
        more = step_bare_leaf(walk) && leads_to_code(walk);
    } else if (place->is_called && !walk->caller) {
        /* What is behind the nop may have no call-frame information, as a leaf. */
        frame->kind = UNWIND_NATIVE;
        caller = false;
        more = step_leaf(walk, pushed_at(walk->pc & 0xfff)) && leads_to_code(walk);
    } else if (place->mapped) {
        frame->kind = UNWIND_NATIVE;
        walk->end = UNWIND_NO_FRAME_INFO;
        more = false;
    } else {
        frame->kind = UNWIND_UNKNOWN;
        walk->end = UNWIND_UNKNOWN_CODE;
        more = false;
    }
    walk->caller = caller;
    walk->called_java = is_java;
    return more;
}

enum unwind_end unwind(const struct unwind_process *process, const struct unwind_sample *sample,
                       struct unwind_frame *frames, uint32_t room, uint32_t *count)
{
    struct walk walk = {.process = process,
                        .machine = machine_of(process->machine),
                        .regs = sample->regs,
                        .pc = sample->pc,
                        .stack = sample->stack,
                        .stack_start = sample->sp,
                        .stack_size = sample->stack_size};
    *count = 0;
    while (*count < room) {
        bool more = step(&walk, &frames[(*count)++]);
        if (!more) {
            return walk.end;
        }
    }
    return UNWIND_TOO_DEEP;
}

/* ---- What an interpreted frame runs ---- */

static bool is_inside(const struct named_method *method, uint64_t bcp)
{
    return bcp >= method->bytecodes && bcp - method->bytecodes < method->bytecode_size;
}

/*
 * The bytecode's address. A leaf keeps it in a register, and its frame's slot is as old as the last
 * call; but the register is free for other uses while the interpreter is out in the JVM. Of the two
 * slots one is the bytecode's, and the other holds an address of the stack: which one depends on
 * the JDK, and shows by what lies in the method.
 */
static bool find_bcp(const struct named_method *method, const struct unwind_frame *frame,
                     uint64_t *bcp)
{
    const uint64_t places[] = {frame->bcp_register, frame->bcp, frame->bcp_above};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (is_inside(method, places[i])) {
            *bcp = places[i];
            return true;
        }
    }
    return false;
}

/*
 * The method at an address. The table does not know when a class's memory was given to a method
 * that a redefinition brought: then the bytecode says which of the two it is.
 */
static struct named_method *method_of(struct method_names *names, uint64_t address,
                                      const struct unwind_frame *frame, uint64_t time)
{
    uint64_t bcp;
    struct named_method *method = method_names_at(names, address, time);
    if (!method || find_bcp(method, frame, &bcp)) {
        return method;
    }
    struct named_method *later = method;
    while ((later = method_names_found_after(names, later))) {
        if (find_bcp(later, frame, &bcp)) {
            return later;
        }
    }
    return method;
}

bool interpreter_name(struct method_names *names, const struct unwind_frame *frame, uint64_t time,
                      struct interpreted_frame *out)
{
    struct named_method *method = method_of(names, frame->method, frame, time);
    if (!method && frame->method_register) {
        /* A frame that is being built holds no Method yet; the register does. */
        method = method_of(names, frame->method_register, frame, time);
    }
    if (!method && frame->bcp_register) {
        /* Nor does one that has just been taken down; the bytecode's address is still there. */
        method = method_names_by_bytecode(names, frame->bcp_register, time);
    }
    const struct method_detail *detail = method ? method_names_detail(names, method) : NULL;
    if (!detail) {
        return false;
    }
    *out = (struct interpreted_frame){
        .method = detail, .bci = -1, .until = method_names_until(names, method->address, time)};
    uint64_t bcp;
    if (method->bytecode_size == 0) {
        return true; /* native */
    }
    if (find_bcp(method, frame, &bcp)) {
        out->bci = (int64_t)(bcp - method->bytecodes);
    } else if (!frame->caller) {
        out->bci = 0; /* not at its first bytecode yet, or on its way out */
    } else {
        return false; /* a caller has saved its bcp: this is not its method */
    }
    out->line = method_detail_line(detail, (uint32_t)out->bci);
    return true;
}
