/*
 * Unwinds made-up stacks of generated code. This process' own stack, native from end to end; and
 * stacks that nobody made on purpose.
 */
#include "test.h"

#include "jdtool/unwind/unwind.h"
#include "random.h"
#include "unwind_places.h"

#include <elf.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK 0x7ffd00001000u
#define WORDS 64

/* x86-64: DWARF's numbers. */
enum { RBX = 3, RBP = 6, RSP = 7, R13 = 13, PC = 16 };

/* A code cache of four pieces; rows are set by hand. */
enum { COMPILED, INTERPRETER, ENTRY, BARRIER, PIECES };
static const uint64_t starts[PIECES] = {0x10000, 0x20000, 0x30000, 0x40000};
#define PIECE_SIZE 0x100

static struct frame_row rows[PIECES];
static struct blob_frames pieces[PIECES];

static uint64_t stack[WORDS];
static struct unwind_frame frames[WORDS];
static uint32_t count;

static void find_piece(void *context, uint64_t address, struct unwind_place *place)
{
    (void)context;
    for (int i = 0; i < PIECES; i++) {
        if (address - starts[i] < PIECE_SIZE) {
            place->code = &pieces[i];
            place->code_start = starts[i];
            place->code_size = PIECE_SIZE;
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    memset(stack, 0, sizeof stack);
    memset(pieces, 0, sizeof pieces);
    rows[COMPILED] = (struct frame_row){.cfa = FRAME_CFA_SP,
                                        .cfa_offset = 0x20,
                                        .ra = FRAME_AT_CFA,
                                        .ra_offset = -8,
                                        .fp = FRAME_AT_CFA,
                                        .fp_offset = -16};
    rows[INTERPRETER] = (struct frame_row){.cfa = FRAME_CFA_INTERPRETER};
    rows[ENTRY] = rows[COMPILED];
    rows[BARRIER] = rows[COMPILED];
    for (int i = 0; i < PIECES; i++) {
        pieces[i].frames = (struct frames){.rows = &rows[i], .count = 1, .frame_size = 0x20};
        pieces[i].ready = true;
    }
    pieces[INTERPRETER].shape = FRAMES_INTERPRETER;
    pieces[BARRIER].return_barrier = true;
    pieces[ENTRY].continuation_entry = true;
    return 0;
}

static const struct unwind_place *piece_at(void *context, uint64_t pc, bool caller)
{
    struct unwind_place *place = next_place();
    unwind_place_of(find_piece, context, pc, caller, place);
    return place;
}

static const struct unwind_process process = {
    .find = piece_at, .row = test_row, .code_row = test_code_row, .machine = EM_X86_64};

static uint64_t at(int word)
{
    return STACK + (uint64_t)word * 8;
}

static enum unwind_end walk_words(uint64_t pc, uint64_t rbp, size_t words)
{
    struct unwind_sample sample = {
        .pc = pc, .sp = STACK, .stack = (uint8_t *)stack, .stack_size = words * 8};
    sample.regs.value[RBP] = rbp;
    sample.regs.value[RSP] = STACK;
    sample.regs.known = 1u << RBP | 1u << RSP;
    return unwind(&process, &sample, frames, WORDS, &count);
}

static enum unwind_end walk(uint64_t pc, uint64_t rbp)
{
    return walk_words(pc, rbp, WORDS);
}

TEST_WITH(test_compiled_frames, set_up, NULL)
{
    stack[3] = starts[COMPILED] + 0x40; /* return address of the leaf */
    stack[7] = starts[COMPILED] + 0x80;
    stack[11] = 0;
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_ROOT);
    assert_int_equal(count, 3);
    assert_int_equal(frames[0].ip, starts[COMPILED] + 5);
    assert_false(frames[0].caller);
    assert_int_equal(frames[1].ip, starts[COMPILED] + 0x3f); /* in the call */
    assert_true(frames[1].caller);
    assert_int_equal(frames[2].ip, starts[COMPILED] + 0x7f);
    assert_int_equal(frames[2].kind, UNWIND_GENERATED);
}

TEST_WITH(test_saved_stack_pointer, set_up, NULL)
{
    rows[COMPILED] = (struct frame_row){.cfa = FRAME_CFA_SAVED,
                                        .cfa_reg = 1,
                                        .cfa_offset = 0x20,
                                        .ra = FRAME_AT_CFA,
                                        .ra_offset = -8,
                                        .fp = FRAME_SAME};
    stack[1] = at(6);
    stack[9] = 0; /* return address */
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_ROOT);
    assert_int_equal(count, 1);
    stack[1] = at(WORDS);
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_COPY_ENDS);
    assert_int_equal(walk_words(starts[COMPILED] + 5, 0, 1), UNWIND_COPY_ENDS);
    stack[1] = STACK - 0x1000;
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_BROKEN);
}

TEST_WITH(test_code_without_a_frame, set_up, NULL)
{
    pieces[COMPILED].shape = FRAMES_FRAMELESS;
    stack[0] = starts[ENTRY] + 0x40;
    stack[4] = 0;
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_ROOT);
    assert_int_equal(count, 2);
    assert_int_equal(frames[1].ip, starts[ENTRY] + 0x3f);
}

#define FILE_START 0x50000

static const struct native_row no_row = {.found = false};

static const struct native_row *row_of_none(void *context, const struct unwind_place *place)
{
    (void)context;
    (void)place;
    return &no_row;
}

static const struct unwind_place *file_at(void *context, uint64_t pc, bool caller)
{
    struct unwind_place *place = next_place();
    (void)context;
    *place = (struct unwind_place){.address = pc - caller};
    if (pc - FILE_START < PIECE_SIZE) {
        place->mapped = true;
        place->object = (struct object *)&no_row;
    }
    return place;
}

TEST_WITH(test_native_leaf_without_rows, set_up, NULL)
{
    const struct unwind_process bare = {
        .find = file_at, .row = row_of_none, .code_row = test_code_row, .machine = EM_X86_64};
    struct unwind_sample sample = {
        .pc = FILE_START, .sp = STACK, .stack = (uint8_t *)stack, .stack_size = sizeof stack};
    sample.regs.value[RSP] = STACK;
    sample.regs.known = 1u << RSP;
    stack[0] = FILE_START + 0x20;
    assert_int_equal(unwind(&bare, &sample, frames, WORDS, &count), UNWIND_NO_FRAME_INFO);
    assert_int_equal(count, 2);
    assert_int_equal(frames[1].ip, FILE_START + 0x1f);
    stack[0] = 0; /* a local variable of a library without call-frame information */
    assert_int_equal(unwind(&bare, &sample, frames, WORDS, &count), UNWIND_NO_FRAME_INFO);
    assert_int_equal(count, 1);
    stack[0] = 2; /* argc, where ld.so begins */
    assert_int_equal(unwind(&bare, &sample, frames, WORDS, &count), UNWIND_NO_FRAME_INFO);
    assert_int_equal(count, 1);
}

TEST_WITH(test_interpreted_frames, set_up, NULL)
{
    /* Compiled code called by an interpreted method, whose frame is at word 12. */
    stack[2] = at(12);
    stack[3] = starts[INTERPRETER] + 0x10;
    stack[12 - 8] = 0xbc01;   /* bcp */
    stack[12 - 3] = 0x3e7d00; /* Method */
    stack[12 - 1] = at(20);   /* sender's sp: not rbp + 16 */
    stack[12] = 0;
    stack[13] = starts[COMPILED] + 0x20;
    stack[23] = 0; /* of that compiled frame, counted from the sender's sp */
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_ROOT);
    assert_int_equal(count, 3);
    assert_int_equal(frames[1].kind, UNWIND_INTERPRETED);
    assert_int_equal(frames[1].method, 0x3e7d00);
    assert_int_equal(frames[1].bcp, 0xbc01);
    assert_int_equal(frames[1].bcp_register, 0); /* no leaf: the register is somebody else's */
    assert_int_equal(frames[2].ip, starts[COMPILED] + 0x1f);
}

/* Math.sin's entry has called a stub; the sender's sp was in r13. Who is compiled needs it, who is
 * interpreted does not. */
TEST_WITH(test_entries_without_a_frame, set_up, NULL)
{
    struct frame_row both[] = {rows[INTERPRETER],
                               {.offset = 0x80,
                                .cfa = FRAME_CFA_REG,
                                .cfa_reg = R13,
                                .ra = FRAME_AT_SP,
                                .ra_offset = 8,
                                .fp = FRAME_SAME}};
    pieces[INTERPRETER].frames = (struct frames){.rows = both, .count = 2};
    stack[2] = at(12);
    stack[3] = starts[INTERPRETER] + 0x90;
    stack[5] = starts[INTERPRETER] + 0x10;
    stack[12 - 1] = at(20);
    stack[13] = 0;
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_ROOT);
    assert_int_equal(count, 3);
    assert_int_equal(frames[2].kind, UNWIND_INTERPRETED);
    assert_int_equal(frames[2].ip, starts[INTERPRETER] + 0xf);
    stack[5] = starts[COMPILED] + 0x10;
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_NO_FRAME_INFO);
    assert_int_equal(count, 2);
}

TEST_WITH(test_interpreted_leaf_has_registers, set_up, NULL)
{
    struct unwind_sample sample = {.pc = starts[INTERPRETER],
                                   .sp = STACK,
                                   .stack = (uint8_t *)stack,
                                   .stack_size = sizeof stack};
    sample.regs.value[RBP] = at(12);
    sample.regs.value[RSP] = STACK;
    sample.regs.value[R13] = 0xbc07;
    sample.regs.value[RBX] = 0x3e7d00;
    sample.regs.known = 1u << RBP | 1u << RSP | 1u << R13 | 1u << RBX;
    stack[12 - 1] = at(14);
    stack[13] = 0;
    assert_int_equal(unwind(&process, &sample, frames, WORDS, &count), UNWIND_ROOT);
    assert_int_equal(frames[0].bcp_register, 0xbc07);
    assert_int_equal(frames[0].method_register, 0x3e7d00);
}

TEST_WITH(test_thawed_continuation, set_up, NULL)
{
    /* The leaf returns to cont_returnBarrier: enterSpecial's frame is next, whose rbp is at 10. */
    stack[2] = at(10);
    stack[3] = starts[BARRIER];
    stack[10] = 0x5555;
    stack[11] = starts[COMPILED] + 0x30;
    stack[15] = 0;
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_ROOT);
    assert_int_equal(count, 3);
    assert_int_equal(frames[1].ip, starts[BARRIER]); /* itself, not the byte before it */
    assert_int_equal(frames[2].ip, starts[COMPILED] + 0x2f);

    /* The thawed frame left something else in rbp, and padding above it. */
    stack[2] = at(6);
    stack[7] = 0x1234; /* no return address */
    stack[8] = starts[COMPILED] + 0x30;
    stack[12] = 0;
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_ROOT);
    assert_int_equal(count, 3);
    assert_int_equal(frames[2].ip, starts[COMPILED] + 0x2f);
}

TEST_WITH(test_stub_section_is_the_methods, set_up, NULL)
{
    stack[3] = starts[COMPILED] + PIECE_SIZE + 0x25; /* a deoptimized caller */
    stack[7] = 0;
    assert_int_equal(walk(starts[COMPILED] + 5, 0), UNWIND_ROOT);
    assert_int_equal(count, 2);
    assert_int_equal(frames[1].ip, starts[COMPILED] + PIECE_SIZE - 1);
    assert_int_equal(frames[1].kind, UNWIND_GENERATED);
}

TEST_WITH(test_reasons_to_end, set_up, NULL)
{
    stack[3] = 0x999000;
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_UNKNOWN_CODE);
    assert_int_equal(count, 2);
    assert_int_equal(frames[1].kind, UNWIND_UNKNOWN);

    stack[3] = starts[COMPILED] + 0x10;
    assert_int_equal(walk_words(starts[COMPILED], 0, 6), UNWIND_COPY_ENDS);
    assert_int_equal(walk_words(starts[COMPILED], 0, 3), UNWIND_COPY_ENDS);

    pieces[COMPILED].frames.count = 0;
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_NO_FRAME_INFO);
}

/* Half a word of the copy is none; what lies below it was never copied. */
TEST_WITH(test_edges_of_the_copy, set_up, NULL)
{
    stack[3] = starts[COMPILED] + 0x40;
    struct unwind_sample sample = {
        .pc = starts[COMPILED], .sp = STACK, .stack = (uint8_t *)stack, .stack_size = 3 * 8 + 4};
    sample.regs.value[RSP] = STACK;
    sample.regs.known = 1u << RSP;
    assert_int_equal(unwind(&process, &sample, frames, WORDS, &count), UNWIND_COPY_ENDS);
    assert_int_equal(count, 1);
    rows[COMPILED].ra_offset = -0x28; /* below the stack pointer */
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_BROKEN);
    /* Nor is what lies further off than any stack is long a copy that was too short. */
    assert_int_equal(walk(starts[INTERPRETER], STACK + (UINT64_C(1) << 33)), UNWIND_BROKEN);
    assert_int_equal(walk(starts[INTERPRETER], STACK + (UINT64_C(1) << 30)), UNWIND_COPY_ENDS);
}

/* A register that the sample has not got is no place to go on from. */
TEST_WITH(test_unknown_register_ends, set_up, NULL)
{
    rows[COMPILED].cfa = FRAME_CFA_REG;
    rows[COMPILED].cfa_reg = RBX;
    stack[3] = starts[COMPILED] + 0x40;
    assert_int_equal(walk(starts[COMPILED], 0), UNWIND_NO_FRAME_INFO);
    assert_int_equal(count, 1);
}

TEST_WITH(test_stack_that_does_not_grow_ends, set_up, NULL)
{
    stack[12 - 1] = at(4); /* the frame is its own caller */
    stack[13] = starts[INTERPRETER] + 0x10;
    stack[12] = at(12);
    assert_int_equal(walk(starts[INTERPRETER], at(12)), UNWIND_BROKEN);
    assert_int_equal(count, 2);
    stack[12 - 1] = STACK - 8;
    assert_int_equal(walk(starts[INTERPRETER], at(12)), UNWIND_BROKEN);
}

TEST_WITH(test_registers_by_mask, set_up, NULL)
{
    struct unwind_sample sample = {0};
    /* bp, sp, ip: bits 6, 7, 8 of PERF_REG_X86_* */
    const uint64_t values[] = {0x11, 0x22, 0x33};
    assert_true(
        unwind_take_registers(EM_X86_64, PERF_SAMPLE_REGS_ABI_64, 0x1c0, values, 3, &sample));
    assert_int_equal(sample.pc, 0x33);
    assert_int_equal(sample.sp, 0x22);
    assert_int_equal(sample.regs.value[RBP], 0x11);
    assert_int_equal(sample.regs.known, 1u << RBP | 1u << RSP | 1u << PC);
    assert_false(
        unwind_take_registers(EM_X86_64, PERF_SAMPLE_REGS_ABI_32, 0x1c0, values, 3, &sample));
    assert_false(
        unwind_take_registers(EM_X86_64, PERF_SAMPLE_REGS_ABI_64, 0x1c0, values, 2, &sample));
    assert_false(unwind_take_registers(EM_X86_64, PERF_SAMPLE_REGS_ABI_NONE, 0, NULL, 0, &sample));
    /* All but segments, in the kernel: what perf does not know there it writes as -1. */
    const uint64_t left_out = UINT64_MAX;
    uint64_t all[] = {1,  left_out, 3,  4,  5,        6,        7,        8,       9,
                      17, 18,       19, 20, left_out, left_out, left_out, left_out};
    assert_true(
        unwind_take_registers(EM_X86_64, PERF_SAMPLE_REGS_ABI_64, 0xff01ff, all, 17, &sample));
    assert_int_equal(sample.regs.known, 0x10ff7);
    assert_int_equal(sample.pc, 9);
    all[13] = 5; /* a register may hold it */
    assert_true(
        unwind_take_registers(EM_X86_64, PERF_SAMPLE_REGS_ABI_64, 0xff01ff, all, 17, &sample));
    assert_int_equal(sample.regs.known, 0x1ffff);
}

/* ---- A breakpoint ---- */

enum { FUNCTION = 0x7000, CALLER = 0x8000 };

/* A function `push %rbp; mov %rsp,%rbp; ...` and one that calls it, with rows of DWARF's. */
static const struct unwind_place *pushing_at(void *context, uint64_t pc, bool caller)
{
    (void)context;
    struct unwind_place *place = next_place();
    uint64_t address = pc - caller;
    *place = (struct unwind_place){.address = address, .file_address = address};
    place->mapped = address >= FUNCTION && address < CALLER + 0x1000;
    place->object = place->mapped ? (struct object *)stack : NULL; /* is not looked into */
    return place;
}

static const struct native_row *pushing_row(void *context, const struct unwind_place *place)
{
    static struct native_row row; /* until the next question, as some are */
    (void)context;
    bool is_pushed = place->file_address > FUNCTION && place->file_address < CALLER;
    row = (struct native_row){.cfa = {.rule = NATIVE_REG, .reg = RSP, .offset = is_pushed ? 16 : 8},
                              .found = true};
    row.places[1] = is_pushed ? (struct native_place){.rule = NATIVE_AT_CFA, .offset = -16}
                              : (struct native_place){.rule = NATIVE_SAME};
    row.places[NATIVE_PLACES - 1] = (struct native_place){
        .rule = place->file_address >= CALLER ? NATIVE_UNDEFINED : NATIVE_AT_CFA, .offset = -8};
    return &row;
}

static enum unwind_end walk_pushing(uint64_t pc, uint64_t rbp)
{
    const struct unwind_process pushing = {
        .find = pushing_at, .row = pushing_row, .code_row = test_code_row, .machine = EM_X86_64};
    struct unwind_sample sample = {
        .pc = pc, .sp = STACK, .stack = (uint8_t *)stack, .stack_size = 64};
    sample.regs.value[RBP] = rbp;
    sample.regs.value[RSP] = STACK;
    sample.regs.known = 1u << RBP | 1u << RSP;
    return unwind(&pushing, &sample, frames, WORDS, &count);
}

/* The kernel has not handled the int3 in the place of the push: the pc is behind it, and the return
 * address still at sp. Where it is pushed, or another row begins behind a jump, it is not so. */
TEST_WITH(test_a_breakpoint_on_a_push, set_up, NULL)
{
    stack[0] = CALLER + 5;
    stack[1] = 1;
    assert_int_equal(walk_pushing(FUNCTION + 1, at(9)), UNWIND_ROOT);
    assert_int_equal(count, 2);
    assert_int_equal(frames[0].ip, FUNCTION + 1);
    assert_int_equal(frames[1].ip, CALLER + 4);
    stack[1] = CALLER + 9;
    stack[0] = at(9);
    assert_int_equal(walk_pushing(FUNCTION + 1, at(9)), UNWIND_ROOT);
    assert_int_equal(frames[1].ip, CALLER + 8);
    assert_int_equal(walk_pushing(FUNCTION + 1, 77), UNWIND_ROOT); /* rbp is used for more */
    assert_int_equal(frames[1].ip, CALLER + 8);
    stack[0] = CALLER + 5;
    assert_int_equal(walk_pushing(FUNCTION + 2, 77), UNWIND_ROOT);
    assert_int_equal(frames[1].ip, CALLER + 8);
}

/* The kernel has done the push, and the pc is at it still. Where it is not done it is not so. */
TEST_WITH(test_a_push_that_is_emulated, set_up, NULL)
{
    stack[0] = at(9);
    stack[1] = CALLER + 9;
    assert_int_equal(walk_pushing(FUNCTION, at(9)), UNWIND_ROOT);
    assert_int_equal(count, 2);
    assert_int_equal(frames[1].ip, CALLER + 8);
    stack[1] = 1;
    assert_int_not_equal(walk_pushing(FUNCTION, at(9)), UNWIND_ROOT);
    stack[0] = CALLER + 5;
    stack[1] = CALLER + 9;
    assert_int_equal(walk_pushing(FUNCTION, at(9)), UNWIND_ROOT);
    assert_int_equal(frames[1].ip, CALLER + 4);
}

/* An endbr64 that a uprobe stands on is stepped over in the kernel's page, which is no caller; what
 * is not code is no return address. */
enum { STEPPED = 0x9000, CALLED = 0xb000 };

static const struct unwind_place *stepped_at(void *context, uint64_t pc, bool caller)
{
    (void)context;
    struct unwind_place *place = next_place();
    *place = (struct unwind_place){.address = pc - caller, .file_address = pc - caller};
    place->mapped = pc >= FUNCTION && (pc < STEPPED + 0x1000 || pc >= CALLED);
    place->is_stepped = pc >= STEPPED && pc < CALLED;
    place->is_called = pc >= CALLED;
    place->object = place->mapped && pc < STEPPED ? (struct object *)stack : NULL;
    return place;
}

static enum unwind_end walk_stepped(uint64_t pc)
{
    const struct unwind_process stepped = {
        .find = stepped_at, .row = pushing_row, .code_row = test_code_row, .machine = EM_X86_64};
    struct unwind_sample sample = {
        .pc = pc, .sp = STACK, .stack = (uint8_t *)stack, .stack_size = 64};
    sample.regs.value[RSP] = STACK;
    sample.regs.known = 1u << RSP;
    return unwind(&stepped, &sample, frames, WORDS, &count);
}

TEST_WITH(test_a_probed_instruction_is_stepped_over, set_up, NULL)
{
    stack[0] = CALLER + 5;
    assert_int_equal(walk_stepped(STEPPED + 0x80), UNWIND_ROOT);
    assert_int_equal(count, 2);
    assert_int_equal(frames[0].ip, STEPPED + 0x80);
    assert_int_equal(frames[1].ip, CALLER + 4);
    stack[0] = STEPPED + 0x80;
    assert_int_equal(walk_stepped(STEPPED + 0x80), UNWIND_NO_FRAME_INFO);
    stack[0] = 77;
    assert_int_equal(walk_stepped(STEPPED + 0x80), UNWIND_NO_FRAME_INFO);
}

/* On a nop of five bytes there is a call of another page of the kernel's, which pushes three
 * registers around its system call. */
TEST_WITH(test_a_probed_nop_is_called, set_up, NULL)
{
    static const struct {
        uint64_t offset;
        uint32_t pushed;
    } places[] = {{0, 0}, {1, 1}, {3, 2}, {4, 3}, {11, 3}, {13, 3}, {14, 2}, {16, 1}, {17, 0}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        memset(stack, 0, sizeof stack);
        stack[places[i].pushed] = CALLER + 5;
        assert_int_equal(walk_stepped(CALLED + places[i].offset), UNWIND_ROOT);
        assert_int_equal(count, 2);
        assert_int_equal(frames[1].ip, CALLER + 5);
    }
}

/* ---- A signal on aarch64 ---- */

enum { SIGRETURN = 0x6000 };

static const struct unwind_place *interrupted_at(void *context, uint64_t pc, bool caller)
{
    (void)context;
    struct unwind_place *place = next_place();
    *place = (struct unwind_place){.address = pc - caller, .file_address = pc - caller};
    place->mapped = pc >= SIGRETURN;
    place->object = (struct object *)stack;
    return place;
}

/* The vdso's; a leaf that keeps its return address in x30; one that nobody called. */
static const struct native_row *interrupted_row(void *context, const struct unwind_place *place)
{
    static const struct native_place kept = {.rule = NATIVE_SAME};
    static struct native_row row;
    (void)context;
    row = (struct native_row){.cfa = {.rule = NATIVE_REG, .reg = 31}, .found = true};
    row.places[NATIVE_PLACES - 1] =
        place->file_address >= CALLER ? (struct native_place){.rule = NATIVE_UNDEFINED} : kept;
    row.signal = place->file_address < FUNCTION;
    return &row;
}

/* Of a struct rt_sigframe the registers begin at word 39. What was interrupted is no caller: its
 * return address is in x30, and signed. */
TEST_WITH(test_what_a_signal_interrupted, set_up, NULL)
{
    const struct unwind_process interrupted = {.find = interrupted_at,
                                               .row = interrupted_row,
                                               .code_row = test_code_row,
                                               .machine = EM_AARCH64};
    uint64_t frame[80] = {0};
    struct unwind_sample sample = {
        .pc = SIGRETURN, .sp = STACK, .stack = (uint8_t *)frame, .stack_size = sizeof frame};
    sample.regs.value[31] = STACK;
    sample.regs.known = UINT64_C(1) << 31;
    frame[39 + 30] = UINT64_C(0x2f) << 48 | (CALLER + 4);
    frame[39 + 31] = at(76);
    frame[39 + 32] = FUNCTION + 8;
    assert_int_equal(unwind(&interrupted, &sample, frames, WORDS, &count), UNWIND_ROOT);
    assert_int_equal(count, 3);
    assert_int_equal(frames[1].ip, FUNCTION + 8);
    assert_false(frames[1].caller);
    assert_int_equal(frames[2].ip, CALLER + 3);
    sample.stack_size = (39 + 32) * sizeof *frame;
    assert_int_equal(unwind(&interrupted, &sample, frames, WORDS, &count), UNWIND_COPY_ENDS);
    assert_int_equal(count, 1);
}

/* ---- This process ---- */

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
struct own_mapping {
    uint64_t start, end, offset;
    char path[256];
};

struct own_process {
    struct own_mapping mappings[512];
    int count;
    struct objects *objects;
};

static void read_own_mappings(struct own_process *own)
{
    char line[512];
    char protection[8];
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (own->count < 512 && fgets(line, sizeof line, maps)) {
        struct own_mapping *mapping = &own->mappings[own->count];
        mapping->path[0] = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %255s", &mapping->start,
                   &mapping->end, protection, &mapping->offset, mapping->path) >= 4 &&
            protection[2] == 'x' && mapping->path[0]) {
            own->count++;
        }
    }
    fclose(maps);
}

static void find_own(void *context, uint64_t address, struct unwind_place *place)
{
    struct own_process *own = context;
    for (int i = 0; i < own->count; i++) {
        const struct own_mapping *mapping = &own->mappings[i];
        if (address >= mapping->start && address < mapping->end) {
            place->mapped = true;
            struct object_place of = {.file.path = mapping->path, .pid = (uint32_t)getpid()};
            struct object *object = objects_find(own->objects, &of);
            place->object = object_address(object, address - mapping->start + mapping->offset,
                                           &place->file_address)
                                ? object
                                : NULL;
        }
    }
}

static const struct unwind_place *own_at(void *context, uint64_t pc, bool caller)
{
    struct unwind_place *place = next_place();
    unwind_place_of(find_own, context, pc, caller, place);
    return place;
}

__attribute__((noinline)) static int innermost(struct own_process *own)
{
    ucontext_t context;
    assert_int_equal(getcontext(&context), 0);
    struct unwind_sample sample = {.pc = (uint64_t)context.uc_mcontext.gregs[REG_RIP],
                                   .sp = (uint64_t)context.uc_mcontext.gregs[REG_RSP]};
    static const int by_dwarf[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                   REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
    for (unsigned i = 0; i < 16; i++) {
        sample.regs.value[i] = (uint64_t)context.uc_mcontext.gregs[by_dwarf[i]];
        sample.regs.known |= UINT64_C(1) << i;
    }
    /* Up to the stack's end, which is where the environment is. */
    extern char **environ;
    sample.stack = (const uint8_t *)(uintptr_t)sample.sp;
    sample.stack_size = (size_t)((const uint8_t *)environ - sample.stack);
    struct unwind_process native = {.find = own_at,
                                    .row = test_row,
                                    .code_row = test_code_row,
                                    .context = own,
                                    .machine = EM_X86_64};
    return (int)unwind(&native, &sample, frames, WORDS, &count);
}

__attribute__((noinline)) static int outer(struct own_process *own)
{
    int end = innermost(own);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return end;
}

TEST(test_own_stack)
{
    static struct own_process own;
    own.count = 0;
    struct utsname kernel;
    assert_int_equal(uname(&kernel), 0);
    struct objects_options options = {
        .machine = EM_X86_64, .os_release = kernel.release, .here = true};
    assert_int_equal(objects_new(&options, &own.objects), 0);
    read_own_mappings(&own);
    assert_int_equal(outer(&own), UNWIND_ROOT);
    assert_true(count >= 5); /* innermost, outer, the test, cmocka, main, libc, _start */
    assert_in_range(frames[1].ip, (uintptr_t)outer, (uintptr_t)outer + 512);
    assert_in_range(frames[2].ip, (uintptr_t)test_own_stack, (uintptr_t)test_own_stack + 4096);
    /* The rows are kept: the same again. */
    uint32_t first = count;
    assert_int_equal(outer(&own), UNWIND_ROOT);
    assert_int_equal(count, first);
    objects_free(own.objects);
}
#endif

/* ---- Anything ---- */

TEST_WITH(test_hostile_stacks, set_up, NULL)
{
    uint64_t seed = random_seed();
    print_message("seed %" PRIu64 "\n", seed);
    for (int run = 0; run < 20000; run++) {
        for (int i = 0; i < WORDS; i++) {
            switch (random_below(&seed, 4)) {
            case 0:
                stack[i] = at((int)random_below(&seed, WORDS + 2) - 1);
                break;
            case 1:
                stack[i] = starts[random_below(&seed, PIECES)] + random_below(&seed, 0x120);
                break;
            case 2:
                stack[i] = random_next(&seed);
                break;
            default:
                stack[i] = random_below(&seed, 3) - UINT64_C(1);
            }
        }
        for (int i = 0; i < PIECES; i++) {
            rows[i] = (struct frame_row){
                .cfa = (uint8_t)random_below(&seed, 4),
                .cfa_offset = (int32_t)random_below(&seed, 0x80) - 0x20,
                .cfa_reg = (uint8_t)random_below(&seed, 256),
                .ra = (uint8_t)random_below(&seed, 5),
                .ra_offset = (int32_t)random_below(&seed, 0x40) - 0x20,
                .ra_reg = (uint8_t)random_below(&seed, NATIVE_REGS),
                .fp = (uint8_t)random_below(&seed, 5),
                .fp_offset = (int32_t)random_below(&seed, 0x40) - 0x20,
            };
            pieces[i].shape = (enum frames_shape)random_below(&seed, 6);
            pieces[i].frames.frame_size = (uint32_t)random_next(&seed);
        }
        enum unwind_end end =
            walk_words(starts[random_below(&seed, PIECES)] + random_below(&seed, 0x100),
                       at((int)random_below(&seed, WORDS)), random_below(&seed, WORDS + 1));
        assert_in_range(end, 0, UNWIND_END_COUNT - 1);
        assert_in_range(count, 1, WORDS);
    }
}

TEST_MAIN(NULL, NULL)
