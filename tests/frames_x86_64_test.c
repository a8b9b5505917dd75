/*
 * Finds stack frames in x86-64 code as HotSpot writes it. Each array is the assembler's output for
 * the text beside it.
 */
#include "test.h"

#include "jdtool/perf/walked.h"
#include "jdtool/unwind/frames.h"
#include "jdtool/walk/shared.h"

#include <string.h>

/* clang-format off */
static const uint8_t c1_method[] = {
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 00 mov DWORD PTR [rsp-0x14000],eax */
    0x55, /* 07 push rbp */
    0x48, 0x83, 0xec, 0x30, /* 08 sub rsp,0x30 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0c call 0x100c */
    0x48, 0x83, 0xc4, 0x30, /* 11 add rsp,0x30 */
    0x5d, /* 15 pop rbp */
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00, /* 16 cmp rsp,QWORD PTR [r15+0x340] */
    0x77, 0x05, /* 1d ja 0x24 */
    0xc3, /* 1f ret */
    0x90, /* 20 nop */
};

static const uint8_t c1_empty_method[] = { /* JDK 8 */
    0x55, /* 00 push rbp */
    0x48, 0x83, 0xec, 0x30, /* 01 sub rsp,0x30 */
    0x48, 0x83, 0xc4, 0x30, /* 05 add rsp,0x30 */
    0x5d, /* 09 pop rbp */
    0x85, 0x05, 0xfa, 0x0f, 0x00, 0x00, /* 0a test DWORD PTR [rip+0xffa],eax */
    0xc3, /* 10 ret */
};

static const uint8_t c2_method[] = {
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 00 mov DWORD PTR [rsp-0x14000],eax */
    0x48, 0x83, 0xec, 0x28, /* 07 sub rsp,0x28 */
    0x48, 0x89, 0x6c, 0x24, 0x20, /* 0b mov QWORD PTR [rsp+0x20],rbp */
    0x48, 0x89, 0xf5, /* 10 mov rbp,rsi */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 13 call 0x1013 */
    0x48, 0x83, 0xc4, 0x20, /* 18 add rsp,0x20 */
    0x5d, /* 1c pop rbp */
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00, /* 1d cmp rsp,QWORD PTR [r15+0x340] */
    0x77, 0x01, /* 24 ja 0x27 */
    0xc3, /* 26 ret */
    0x49, 0xc7, 0xc2, 0x34, 0x12, 0x00, 0x00, /* 27 mov r10,0x1234 */
    0x4d, 0x89, 0x97, 0x58, 0x03, 0x00, 0x00, /* 2e mov QWORD PTR [r15+0x358],r10 */
    0xe9, 0xfb, 0x1f, 0x00, 0x00, /* 35 jmp 0x2035 */
    0x48, 0x89, 0xc6, /* 3a mov rsi,rax */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 3d call 0x103d */
    0xf4, /* 42 hlt */
};

static const uint8_t frame_pointer[] = {
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 00 mov DWORD PTR [rsp-0x14000],eax */
    0x55, /* 07 push rbp */
    0x48, 0x89, 0xe5, /* 08 mov rbp,rsp */
    0x48, 0x83, 0xec, 0x20, /* 0b sub rsp,0x20 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0f call 0x100f */
    0x48, 0x83, 0xc4, 0x20, /* 14 add rsp,0x20 */
    0x5d, /* 18 pop rbp */
    0xc3, /* 19 ret */
};

static const uint8_t pushes_in_body[] = {
    0x55, /* 00 push rbp */
    0x48, 0x83, 0xec, 0x10, /* 01 sub rsp,0x10 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 05 call 0x1005 */
    0x51, /* 0a push rcx */
    0x57, /* 0b push rdi */
    0x48, 0x83, 0xec, 0x40, /* 0c sub rsp,0x40 */
    0xc5, 0xfe, 0x7f, 0x04, 0x24, /* 10 vmovdqu YMMWORD PTR [rsp],ymm0 */
    0x48, 0x83, 0xc4, 0x40, /* 15 add rsp,0x40 */
    0x5f, /* 19 pop rdi */
    0x59, /* 1a pop rcx */
    0x48, 0x83, 0xc4, 0x10, /* 1b add rsp,0x10 */
    0x5d, /* 1f pop rbp */
    0xc3, /* 20 ret */
};

static const uint8_t conflict_with_fp[] = {
    0x55, /* 00 push rbp */
    0x48, 0x89, 0xe5, /* 01 mov rbp,rsp */
    0x48, 0x83, 0xec, 0x60, /* 04 sub rsp,0x60 */
    0x50, /* 08 push rax */
    0xff, 0xce, /* 09 dec esi */
    0x75, 0xfb, /* 0b jne 0x8 */
    0xff, 0xd6, /* 0d call rsi */
    0x48, 0x8d, 0x65, 0xa0, /* 0f lea rsp,[rbp-0x60] */
    0x48, 0x83, 0xc4, 0x60, /* 13 add rsp,0x60 */
    0x5d, /* 17 pop rbp */
    0xc3, /* 18 ret */
};

static const uint8_t conflict_without_fp[] = {
    0x85, 0xc0, /* 00 test eax,eax */
    0x74, 0x01, /* 02 je 0x5 */
    0x51, /* 04 push rcx */
    0x90, /* 05 nop */
    0xc3, /* 06 ret */
};

static const uint8_t native_wrapper[] = {
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 00 mov DWORD PTR [rsp-0x14000],eax */
    0x55, /* 07 push rbp */
    0x48, 0x89, 0xe5, /* 08 mov rbp,rsp */
    0x48, 0x83, 0xec, 0x50, /* 0b sub rsp,0x50 */
    0xff, 0xd0, /* 0f call rax */
    0xc9, /* 11 leave */
    0x49, 0x3b, 0xa7, 0x40, 0x03, 0x00, 0x00, /* 12 cmp rsp,QWORD PTR [r15+0x340] */
    0xc3, /* 19 ret */
};

static const uint8_t osr[] = {
    0xcc, /* 00 int3 */
    0x90, /* 01 nop */
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 02 mov DWORD PTR [rsp-0x14000],eax */
    0x55, /* 09 push rbp */
    0x48, 0x83, 0xec, 0x40, /* 0a sub rsp,0x40 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0e call 0x100e */
    0xf4, /* 13 hlt */
};

static const uint8_t verified_entry[] = {
    0x44, 0x8b, 0x56, 0x08, /* 00 mov r10d,DWORD PTR [rsi+0x8] */
    0x4c, 0x39, 0xd0, /* 04 cmp rax,r10 */
    0x0f, 0x85, 0xfa, 0x1f, 0x00, 0x00, /* 07 jne 0x2007 */
    0x90, /* 0d nop */
    0x89, 0x84, 0x24, 0x00, 0xc0, 0xfe, 0xff, /* 0e mov DWORD PTR [rsp-0x14000],eax */
    0x55, /* 15 push rbp */
    0x48, 0x83, 0xec, 0x10, /* 16 sub rsp,0x10 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 1a call 0x101a */
    0x48, 0x83, 0xc4, 0x10, /* 1f add rsp,0x10 */
    0x5d, /* 23 pop rbp */
    0xc3, /* 24 ret */
};

static const uint8_t vtable_stub[] = {
    0x8b, 0x46, 0x08, /* 00 mov eax,DWORD PTR [rsi+0x8] */
    0x48, 0x8b, 0x98, 0xf8, 0x01, 0x00, 0x00, /* 03 mov rbx,QWORD PTR [rax+0x1f8] */
    0xff, 0x63, 0x40, /* 0a jmp QWORD PTR [rbx+0x40] */
};

static const uint8_t i2c_c2i[] = {
    0x48, 0x8b, 0x04, 0x24, /* 00 mov rax,QWORD PTR [rsp] */
    0x58, /* 04 pop rax */
    0x49, 0x89, 0xe3, /* 05 mov r11,rsp */
    0x48, 0x83, 0xec, 0x10, /* 08 sub rsp,0x10 */
    0x48, 0x83, 0xe4, 0xf0, /* 0c and rsp,0xfffffffffffffff0 */
    0x50, /* 10 push rax */
    0x4c, 0x89, 0xd8, /* 11 mov rax,r11 */
    0xff, 0x63, 0x38, /* 14 jmp QWORD PTR [rbx+0x38] */
    0x58, /* 17 pop rax */
    0x49, 0x89, 0xe5, /* 18 mov r13,rsp */
    0x48, 0x83, 0xec, 0x10, /* 1b sub rsp,0x10 */
    0x48, 0x89, 0x04, 0x24, /* 1f mov QWORD PTR [rsp],rax */
    0xff, 0x63, 0x48, /* 23 jmp QWORD PTR [rbx+0x48] */
};

static const uint8_t safepoint[] = {
    0x53, /* 00 push rbx */
    0x55, /* 01 push rbp */
    0x48, 0x89, 0xe5, /* 02 mov rbp,rsp */
    0x9c, /* 05 pushf */
    0x48, 0x81, 0xec, 0x88, 0x00, 0x00, 0x00, /* 06 sub rsp,0x88 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0d call 0x100d */
    0x48, 0x81, 0xc4, 0x88, 0x00, 0x00, 0x00, /* 12 add rsp,0x88 */
    0x9d, /* 19 popf */
    0x5d, /* 1a pop rbp */
    0xc3, /* 1b ret */
};

static const uint8_t safepoint_return[] = {
    0x55, /* 00 push rbp */
    0x48, 0x89, 0xe5, /* 01 mov rbp,rsp */
    0x9c, /* 04 pushf */
    0xc3, /* 05 ret */
};

static const uint8_t exception_blob[] = {
    0x52, /* 00 push rdx */
    0x48, 0x83, 0xec, 0x08, /* 01 sub rsp,0x8 */
    0x48, 0x89, 0x2c, 0x24, /* 05 mov QWORD PTR [rsp],rbp */
    0x48, 0x83, 0xe4, 0xf0, /* 09 and rsp,0xfffffffffffffff0 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0d call 0x100d */
    0x48, 0x8b, 0x2c, 0x24, /* 12 mov rbp,QWORD PTR [rsp] */
    0x48, 0x83, 0xc4, 0x08, /* 16 add rsp,0x8 */
    0x5a, /* 1a pop rdx */
    0xff, 0xe0, /* 1b jmp rax */
};

static const uint8_t return_barrier[] = {
    0x49, 0x8b, 0xa7, 0x18, 0x06, 0x00, 0x00, /* 00 mov rsp,QWORD PTR [r15+0x618] */
    0x50, /* 07 push rax */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 08 call 0x1008 */
    0xf4, /* 0d hlt */
};

static const uint8_t enter_special[] = {
    0x58, /* 00 pop rax */
    0x48, 0x83, 0xe4, 0xf0, /* 01 and rsp,0xfffffffffffffff0 */
    0x50, /* 05 push rax */
    0x55, /* 06 push rbp */
    0x48, 0x89, 0xe5, /* 07 mov rbp,rsp */
    0x48, 0x83, 0xec, 0x40, /* 0a sub rsp,0x40 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0e call 0x100e */
    0xc9, /* 13 leave */
    0xc3, /* 14 ret */
};

/* c1_method, made not entrant: a jump lies over the stack bang but for its last two bytes. */
static const uint8_t not_entrant[] = {
    0xe9, 0xbb, 0x85, 0x58, 0x07, 0xfe, 0xff, /* 00 jmp handle_wrong_method */
    0x55, /* 07 push rbp */
    0x48, 0x83, 0xec, 0x30, /* 08 sub rsp,0x30 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 0c call 0x100c */
    0x48, 0x83, 0xc4, 0x30, /* 11 add rsp,0x30 */
    0x5d, /* 15 pop rbp */
    0xc3, /* 16 ret */
};

/* The same of a static method whose class is being initialised: over mov r10,imm64. */
static const uint8_t not_entrant_barrier[] = {
    0xe9, 0x5b, 0xe1, 0x22, 0x07, 0x1b, 0x00, 0x00, 0x00, 0x00, /* 00 jmp handle_wrong_method */
    0x41, 0x80, 0xba, 0x30, 0x01, 0x00, 0x00, 0x04, /* 0a cmpb [r10+0x130],0x4 */
    0x74, 0x05, /* 12 je 0x19 */
    0xe9, 0x42, 0xe1, 0x22, 0x07, /* 14 jmp handle_wrong_method */
    0x55, /* 19 push rbp */
    0x48, 0x83, 0xec, 0x30, /* 1a sub rsp,0x30 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 1e call */
    0x48, 0x83, 0xc4, 0x30, /* 23 add rsp,0x30 */
    0x5d, /* 27 pop rbp */
    0xc3, /* 28 ret */
};

/* C1, a class not known yet: jumps to patching stubs, which go back to them, behind which the first
 * is mov rdx,0 again. What follows it is no pop. */
static const uint8_t patched_class[] = {
    0x55, /* 00 push rbp */
    0x48, 0x83, 0xec, 0x30, /* 01 sub rsp,0x30 */
    0xe9, 0x1f, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, /* 05 jmp 0x29, over mov rdx,0 */
    0xe9, 0x5a, 0x01, 0x00, 0x00, /* 0f jmp 0x16e */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 14 call */
    0x48, 0x83, 0xc4, 0x30, /* 19 add rsp,0x30 */
    0x5d, /* 1d pop rbp */
    0xc3, /* 1e ret */
    0x48, 0xba, 0x00, 0x00, 0x00, 0x00, /* 1f mov rdx, */
    0x00, 0x00, 0x00, 0x00, /* 25 0 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 29 call */
    0xeb, 0xd5, /* 2e jmp 0x05 */
};

/* JDK 25: the body calls nothing, a barrier's slow path does, with registers pushed. */
static const uint8_t barrier_only[] = {
    0x55, /* 00 push rbp */
    0x48, 0x89, 0xe5, /* 01 mov rbp,rsp */
    0x48, 0x83, 0xec, 0x10, /* 04 sub rsp,0x10 */
    0x8b, 0x46, 0x0c, /* 08 mov eax,[rsi+0xc] */
    0x85, 0xc0, /* 0b test eax,eax */
    0x75, 0x06, /* 0d jne 0x15 */
    0x48, 0x83, 0xc4, 0x10, /* 0f add rsp,0x10 */
    0x5d, /* 13 pop rbp */
    0xc3, /* 14 ret */
    0x48, 0x83, 0xec, 0x30, /* 15 sub rsp,0x30 */
    0xe8, 0xfb, 0x0f, 0x00, 0x00, /* 19 call */
    0x48, 0x83, 0xc4, 0x30, /* 1e add rsp,0x30 */
    0xeb, 0xeb, /* 22 jmp 0xf */
};

/* A method entry: locals are pushed in a loop, the frame is built, push r13 completes it. */
static const uint8_t entry_codelet[] = {
    0x48, 0x8b, 0x53, 0x08, /* 00 mov rdx,[rbx+0x8] */
    0x58, /* 04 pop rax */
    0x85, 0xd2, /* 05 test edx,edx */
    0x7e, 0x06, /* 07 jle 0xf */
    0x6a, 0x00, /* 09 push 0x0 */
    0xff, 0xca, /* 0b dec edx */
    0xeb, 0xf6, /* 0d jmp 0x5 */
    0x50, /* 0f push rax */
    0x55, /* 10 push rbp */
    0x48, 0x8b, 0xec, /* 11 mov rbp,rsp */
    0x41, 0x55, /* 14 push r13 */
    0x6a, 0x00, /* 16 push 0x0 */
    0xff, 0xe1, /* 18 jmp rcx */
};

/* A return bytecode. */
static const uint8_t return_codelet[] = {
    0x48, 0x8b, 0x5d, 0xf8, /* 00 mov rbx,[rbp-0x8] */
    0xc9, /* 04 leave */
    0x59, /* 05 pop rcx */
    0x48, 0x8b, 0xe3, /* 06 mov rsp,rbx */
    0xff, 0xe1, /* 09 jmp rcx */
};
/* clang-format on */

static struct frames frames;

static int teardown(void **state)
{
    (void)state;
    frames_free(&frames);
    return 0;
}

static void analyse_at(const uint8_t *bytes, size_t size, enum frames_shape shape, int64_t verified,
                       int64_t osr_entry)
{
    struct frames_code code = {.bytes = bytes,
                               .size = (uint32_t)size,
                               .address = 0x7f0000001000,
                               .shape = shape,
                               .verified_entry = verified,
                               .osr_entry = osr_entry,
                               .entry_frame = 0x50};
    assert_int_equal(frames_x86_64(&code, &frames), 0);
}

static void analyse(const uint8_t *bytes, size_t size, enum frames_shape shape)
{
    analyse_at(bytes, size, shape, -1, -1);
}

/* The CFA is sp + cfa, the return address below it; the caller's fp at CFA + fp, 0: untouched. */
static void check_sp(uint32_t offset, int32_t cfa, int32_t fp)
{
    const struct frame_row *row = frames_at(&frames, offset);
    assert_non_null(row);
    assert_int_equal(row->cfa, FRAME_CFA_SP);
    assert_int_equal(row->cfa_offset, cfa);
    assert_int_equal(row->ra, FRAME_AT_CFA);
    assert_int_equal(row->ra_offset, -8);
    assert_int_equal(row->fp, fp ? FRAME_AT_CFA : FRAME_SAME);
    assert_int_equal(row->fp_offset, fp);
}

static void check_fp(uint32_t offset)
{
    const struct frame_row *row = frames_at(&frames, offset);
    assert_non_null(row);
    assert_int_equal(row->cfa, FRAME_CFA_FP);
    assert_int_equal(row->cfa_offset, 16);
    assert_int_equal(row->ra, FRAME_AT_CFA);
    assert_int_equal(row->ra_offset, -8);
    assert_int_equal(row->fp, FRAME_AT_CFA);
    assert_int_equal(row->fp_offset, -16);
}

TEST_WITH(test_prologue_and_epilogue, NULL, teardown)
{
    analyse(c1_method, sizeof c1_method, FRAMES_COMPILED);
    check_sp(0x00, 8, 0);
    check_sp(0x07, 8, 0);
    check_sp(0x08, 16, -16);
    check_sp(0x0c, 0x40, -16);
    check_sp(0x11, 0x40, -16);
    check_sp(0x15, 16, -16);
    check_sp(0x16, 8, 0); /* the poll, behind the epilogue */
    check_sp(0x1f, 8, 0);
    assert_int_equal(frames.frame_size, 0x40);
    assert_int_equal(frames.undecodable, 0);
}

/* C2's String.indexOf: sp goes down on one of two ways, where it is copied once more, and comes
 * back from where it was pushed. */
TEST_WITH(test_saved_stack_pointer, NULL, teardown)
{
    static const uint8_t code[] = {
        0x55,                         /* 00 push rbp */
        0x48, 0x83, 0xec, 0x70,       /* 01 sub rsp,70h */
        0x48, 0x8d, 0x44, 0x24, 0x20, /* 05 lea rax,[rsp+20h] */
        0x48, 0x8b, 0xcc,             /* 0a mov rcx,rsp */
        0x83, 0xfa, 0x10,             /* 0d cmp edx,10h */
        0x73, 0x07,                   /* 10 jae 19h */
        0x48, 0x83, 0xec, 0x10,       /* 12 sub rsp,10h */
        0x48, 0x8b, 0xfc,             /* 16 mov rdi,rsp */
        0x51,                         /* 19 push rcx */
        0x33, 0xc9,                   /* 1a xor ecx,ecx */
        0x50,                         /* 1c push rax */
        0x58,                         /* 1d pop rax */
        0x5c,                         /* 1e pop rsp */
        0x83, 0xfb, 0xff,             /* 1f cmp ebx,-1 */
        0x48, 0x83, 0xc4, 0x70,       /* 22 add rsp,70h */
        0x5d,                         /* 26 pop rbp */
        0xc3,                         /* 27 ret */
    };
    analyse(code, sizeof code, FRAMES_COMPILED);
    check_sp(0x0d, 0x80, -16);
    const struct frame_row *row = frames_at(&frames, 0x19);
    assert_int_equal(row->cfa, FRAME_CFA_REG);
    assert_int_equal(row->cfa_reg, 2);
    assert_int_equal(row->cfa_offset, 0x80);
    for (uint32_t offset = 0x1c; offset <= 0x1e; offset++) {
        row = frames_at(&frames, offset);
        assert_int_equal(row->cfa, FRAME_CFA_SAVED);
        assert_int_equal(row->cfa_reg, offset == 0x1d);
        assert_int_equal(row->cfa_offset, 0x80);
        assert_int_equal(row->ra, FRAME_AT_CFA);
        assert_int_equal(row->fp, FRAME_AT_CFA);
    }
    check_sp(0x1f, 0x80, -16);
    check_sp(0x26, 16, -16);
    assert_int_equal(frames.frame_size, 0x80);
}

/* A native wrapper of a static method: its class's handle, and a call with sp kept in r12, which
 * one way comes from. */
TEST_WITH(test_stack_pointer_around_a_call, NULL, teardown)
{
    static const uint8_t code[] = {
        0x55,                         /* 00 push rbp */
        0x48, 0x8b, 0xec,             /* 01 mov rbp,rsp */
        0x48, 0x83, 0xec, 0x40,       /* 04 sub rsp,40h */
        0x4c, 0x8d, 0x74, 0x24, 0x30, /* 08 lea r14,[rsp+30h] */
        0x74, 0x13,                   /* 0d je 22h */
        0x4c, 0x8b, 0xe4,             /* 0f mov r12,rsp */
        0x48, 0x83, 0xe4, 0xf0,       /* 12 and rsp,-10h */
        0xe8, 0xe5, 0x0f, 0x00, 0x00, /* 16 call 1000h */
        0x49, 0x8b, 0xe4,             /* 1b mov rsp,r12 */
        0x4d, 0x33, 0xe4,             /* 1e xor r12,r12 */
        0x90,                         /* 21 nop */
        0x90,                         /* 22 nop */
        0xc9,                         /* 23 leave */
        0xc3,                         /* 24 ret */
    };
    analyse(code, sizeof code, FRAMES_COMPILED);
    for (uint32_t offset = 0x08; offset <= 0x23; offset++) {
        assert_true(frame_row_is_body(frames_at(&frames, offset), 0x50));
    }
}

/* Behind what fills up to their alignment. */
TEST_WITH(test_static_calls, NULL, teardown)
{
    static const uint8_t code[] = {
        0x55,                                        /* 00 push rbp */
        0x48, 0x83, 0xec, 0x20,                      /* 01 sub rsp,20h */
        0xe8, 0x00, 0x10, 0x00, 0x00,                /* 05 call */
        0x48, 0x83, 0xc4, 0x20,                      /* 0a add rsp,20h */
        0x5d,                                        /* 0e pop rbp */
        0xc3,                                        /* 0f ret */
        0x0f, 0x1f, 0x44, 0x00, 0x00,                /* 10 nop */
        0x48, 0xbb, 0,    0,    0,    0,    0, 0, 0, /* 15 mov rbx,0 */
        0,    0xe9, 0xfb, 0xff, 0xff, 0xff,          /* 1f jmp */
        0x66, 0x90,                                  /* 24 nop */
        0x48, 0xbb, 0,    0,    0,    0,    0, 0, 0, /* 26 mov rbx,0 */
        0,    0xe9, 0xfb, 0xff, 0xff, 0xff,          /* 30 jmp */
        0x90,                                        /* 35 nop */
        0x48, 0x8b, 0xc3,                            /* 36 mov rax,rbx: an exception handler */
        0xf4,                                        /* 39 hlt */
        0x66,                                        /* 3a the end of nothing */
    };
    analyse(code, sizeof code, FRAMES_COMPILED);
    check_sp(0x05, 0x30, -16);
    check_sp(0x15, 8, 0);
    check_sp(0x1f, 8, 0);
    check_sp(0x30, 8, 0);
    check_sp(0x36, 0x30, -16);
}

/* What stands there may have been written over. */
TEST_WITH(test_stack_pointer_written_over, NULL, teardown)
{
    static const uint8_t code[] = {
        0x48, 0x8b, 0xcc,             /* 00 mov rcx,rsp */
        0x51,                         /* 03 push rcx */
        0x48, 0x89, 0x04, 0x24,       /* 04 mov [rsp],rax */
        0x5c,                         /* 08 pop rsp */
        0x48, 0x8d, 0x64, 0x24, 0x08, /* 09 lea rsp,[rsp+8] */
        0xc3,                         /* 0e ret */
    };
    analyse(code, sizeof code, FRAMES_STUB);
    check_sp(0x08, 16, 0);
    assert_int_equal(frames_at(&frames, 0x09)->cfa, FRAME_CFA_REG); /* rcx has it still */
    analyse(code + 4, sizeof code - 4, FRAMES_STUB);
    assert_int_equal(frames_at(&frames, 0x05)->cfa, FRAME_CFA_FP); /* nothing is known */
}

TEST_WITH(test_empty_method, NULL, teardown)
{
    analyse(c1_empty_method, sizeof c1_empty_method, FRAMES_COMPILED);
    check_sp(0x05, 0x40, -16);
    assert_int_equal(frames.frame_size, 0x40);
}

TEST_WITH(test_frame_without_push, NULL, teardown)
{
    analyse(c2_method, sizeof c2_method, FRAMES_COMPILED);
    check_sp(0x0b, 0x30, 0);
    check_sp(0x10, 0x30, -16);
    check_sp(0x13, 0x30, -16); /* rbp is an ordinary register by now */
    check_sp(0x1d, 8, 0);
    check_sp(0x27, 8, 0);      /* the poll's stub, reached by a branch */
    check_sp(0x3a, 0x30, -16); /* an exception handler that nothing branches to */
    check_sp(0x3d, 0x30, -16);
    assert_int_equal(frames.frame_size, 0x30);
}

TEST_WITH(test_frame_pointer, NULL, teardown)
{
    analyse(frame_pointer, sizeof frame_pointer, FRAMES_COMPILED);
    check_sp(0x08, 16, -16);
    check_sp(0x0f, 0x30, -16);
    check_sp(0x19, 8, 0);
}

TEST_WITH(test_pushes_in_body, NULL, teardown)
{
    analyse(pushes_in_body, sizeof pushes_in_body, FRAMES_COMPILED);
    check_sp(0x05, 0x20, -16);
    check_sp(0x0b, 0x28, -16);
    check_sp(0x0c, 0x30, -16);
    check_sp(0x10, 0x70, -16);
    check_sp(0x1a, 0x28, -16);
    check_sp(0x20, 8, 0);
    assert_int_equal(frames.frame_size, 0x20);
}

TEST_WITH(test_conflict_falls_back_to_fp, NULL, teardown)
{
    analyse(conflict_with_fp, sizeof conflict_with_fp, FRAMES_STUB);
    check_fp(0x08); /* pushes in a loop: paths disagree on rsp */
    check_fp(0x0d);
    check_sp(0x13, 0x70, -16); /* lea rsp,[rbp-0x60] knows it again */
    check_sp(0x18, 8, 0);
}

TEST_WITH(test_conflict_without_fp, NULL, teardown)
{
    analyse(conflict_without_fp, sizeof conflict_without_fp, FRAMES_STUB);
    check_sp(0x04, 8, 0);
    check_fp(0x05); /* nothing is known: the convention is the best guess */
}

TEST_WITH(test_not_entrant, NULL, teardown)
{
    analyse(not_entrant, sizeof not_entrant, FRAMES_COMPILED);
    check_sp(0x07, 8, 0);
    check_sp(0x0c, 0x40, -16);
    check_sp(0x16, 8, 0);
    assert_int_equal(frames.frame_size, 0x40);
}

TEST_WITH(test_not_entrant_with_a_barrier, NULL, teardown)
{
    analyse(not_entrant_barrier, sizeof not_entrant_barrier, FRAMES_COMPILED);
    check_sp(0x19, 8, 0);
    check_sp(0x1e, 0x40, -16);
    check_sp(0x28, 8, 0);
    assert_int_equal(frames.frame_size, 0x40);
}

TEST_WITH(test_class_that_is_patched_in, NULL, teardown)
{
    analyse(patched_class, sizeof patched_class, FRAMES_COMPILED);
    check_sp(0x0f, 0x40, -16);
    check_sp(0x13, 0x40, -16);
    check_sp(0x14, 0x40, -16);
    check_sp(0x1e, 8, 0);
    check_sp(0x29, 0x40, -16);
}

TEST_WITH(test_calls_of_a_barrier_only, NULL, teardown)
{
    analyse(barrier_only, sizeof barrier_only, FRAMES_COMPILED);
    check_sp(0x19, 0x50, -16);
    assert_int_equal(frames.frame_size, 0x20);
}

TEST_WITH(test_native_wrapper, NULL, teardown)
{
    analyse(native_wrapper, sizeof native_wrapper, FRAMES_COMPILED);
    check_sp(0x0f, 0x60, -16);
    check_sp(0x12, 8, 0);
}

TEST_WITH(test_osr_and_verified_entry, NULL, teardown)
{
    analyse_at(osr, sizeof osr, FRAMES_COMPILED, -1, 2);
    check_sp(0x02, 8, 0);
    check_sp(0x0e, 0x50, -16);
    analyse(osr, sizeof osr, FRAMES_COMPILED); /* the entry not told: the stack bang shows it */
    check_sp(0x02, 8, 0);
    check_sp(0x0e, 0x50, -16);
    analyse_at(verified_entry, sizeof verified_entry, FRAMES_COMPILED, 14, -1);
    check_sp(0x00, 8, 0);
    check_sp(0x0e, 8, 0);
    check_sp(0x1a, 0x20, -16);
}

TEST_WITH(test_dispatch_stub, NULL, teardown)
{
    analyse(vtable_stub, sizeof vtable_stub, FRAMES_STUB);
    check_sp(0x00, 8, 0);
    check_sp(0x0a, 8, 0);
    assert_int_equal(frames.count, 1);
    assert_int_equal(frames.frame_size, 8);
}

TEST_WITH(test_adapters, NULL, teardown)
{
    analyse(i2c_c2i, sizeof i2c_c2i, FRAMES_ADAPTER);
    check_sp(0x00, 8, 0);
    const struct frame_row *row = frames_at(&frames, 0x08); /* the return address is in rax */
    assert_int_equal(row->ra, FRAME_IN_REG);
    assert_int_equal(row->ra_reg, 0);
    row = frames_at(&frames, 0x11); /* rsp was aligned: r13 has the sender's */
    assert_int_equal(row->cfa, FRAME_CFA_REG);
    assert_int_equal(row->cfa_reg, 13);
    assert_int_equal(row->ra, FRAME_AT_SP);
    assert_int_equal(row->ra_offset, 0);
    check_sp(0x17, 8, 0); /* the other adapter begins */
    row = frames_at(&frames, 0x23);
    assert_int_equal(row->cfa, FRAME_CFA_SP);
    assert_int_equal(row->cfa_offset, 0x10);
    assert_int_equal(row->ra, FRAME_AT_CFA);
    assert_int_equal(row->ra_offset, -0x10);
}

TEST_WITH(test_entered_by_a_jump, NULL, teardown)
{
    analyse(safepoint, sizeof safepoint, FRAMES_JUMPED_TO);
    check_sp(0x00, 0, 0);
    check_sp(0x01, 8, 0);
    check_sp(0x02, 16, -16);
    check_sp(0x0d, 0xa0, -16);
    analyse(safepoint_return, sizeof safepoint_return, FRAMES_JUMPED_TO);
    check_sp(0x00, 8, 0);
    check_sp(0x04, 16, -16);
    analyse(exception_blob, sizeof exception_blob, FRAMES_JUMPED_TO);
    check_sp(0x00, 0, 0);
    check_sp(0x0d, 16, -16); /* aligning an aligned frame moves nothing */
    check_sp(0x16, 16, 0);
}

TEST_WITH(test_continuations, NULL, teardown)
{
    analyse(enter_special, sizeof enter_special, FRAMES_COMPILED);
    check_sp(0x0e, 0x50, -16);
    assert_int_equal(frames.frame_size, 0x50);
    analyse(return_barrier, sizeof return_barrier, FRAMES_CONTINUATION);
    check_sp(0x00, 0x50, -16);
    check_fp(0x08);
}

/* One codelet behind its header; returns where the next one starts. */
static size_t put_codelet(uint8_t *blob, size_t at, const uint8_t *bytes, size_t size, int32_t code)
{
    uint64_t description = 0x7f0012345678;
    uint32_t whole = (uint32_t)((32 + size + 31) & ~(size_t)31);
    memcpy(blob + at, &description, sizeof description);
    memcpy(blob + at + 8, &whole, sizeof whole);
    memcpy(blob + at + 12, &code, sizeof code);
    memcpy(blob + at + 32, bytes, size);
    return at + whole;
}

TEST_WITH(test_interpreter, NULL, teardown)
{
    uint8_t blob[256] = {0};
    size_t second = put_codelet(blob, 0, entry_codelet, sizeof entry_codelet, -1);
    size_t end = put_codelet(blob, second, return_codelet, sizeof return_codelet, 0xb1);
    analyse(blob, end, FRAMES_INTERPRETER);

    const struct frame_row *row = frames_at(&frames, 32 + 0x00);
    assert_int_equal(row->cfa, FRAME_CFA_REG); /* an adapter may have put arguments in between */
    assert_int_equal(row->cfa_reg, 13);
    assert_int_equal(row->ra, FRAME_AT_SP);
    row = frames_at(&frames, 32 + 0x09); /* locals pushed in a loop */
    assert_int_equal(row->cfa, FRAME_CFA_REG);
    assert_int_equal(row->cfa_reg, 13);
    assert_int_equal(row->ra, FRAME_IN_REG);
    row = frames_at(&frames, 32 + 0x10);
    assert_int_equal(row->ra, FRAME_AT_SP);
    assert_int_equal(row->ra_offset, 0);
    row = frames_at(&frames, 32 + 0x16);
    assert_int_equal(row->cfa, FRAME_CFA_INTERPRETER);

    uint32_t ret = (uint32_t)second + 32;
    assert_int_equal(frames_at(&frames, ret)->cfa, FRAME_CFA_INTERPRETER);
    assert_int_equal(frames_at(&frames, ret + 4)->cfa, FRAME_CFA_INTERPRETER);
    row = frames_at(&frames, ret + 5); /* behind leave: the sender's sp is in rbx */
    assert_int_equal(row->cfa, FRAME_CFA_REG);
    assert_int_equal(row->cfa_reg, 3);
    assert_int_equal(row->ra, FRAME_AT_SP);
    assert_int_equal(row->ra_offset, 0);
    assert_int_equal(row->fp, FRAME_SAME);
    row = frames_at(&frames, ret + 9);
    assert_int_equal(row->ra, FRAME_IN_REG);
    assert_int_equal(row->ra_reg, 2);
}

TEST_WITH(test_truncated_code, NULL, teardown)
{
    for (size_t size = 1; size < sizeof c2_method; size++) {
        uint8_t *exact = test_malloc(size);
        memcpy(exact, c2_method, size);
        analyse(exact, size, FRAMES_COMPILED);
        check_sp(0, 8, 0);
        test_free(exact);
    }
    struct frames_code none = {0};
    assert_int_not_equal(frames_x86_64(&none, &frames), 0);
}

TEST_WITH(test_undecodable_is_counted, NULL, teardown)
{
    static const uint8_t bytes[] = {0x55, 0x06, 0xc3}; /* push rbp; no such instruction */
    analyse(bytes, sizeof bytes, FRAMES_STUB);
    assert_int_equal(frames.undecodable, 1);
    check_sp(1, 16, -16);
}

TEST_WITH(test_shapes_by_name, NULL, teardown)
{
    assert_int_equal(frames_shape_of("Interpreter", -1), FRAMES_INTERPRETER);
    assert_int_equal(frames_shape_of("I2C/C2I adapters(0xbb)@0x7f", 3), FRAMES_ADAPTER);
    assert_int_equal(frames_shape_of("SafepointBlob", 3), FRAMES_JUMPED_TO);
    assert_int_equal(frames_shape_of("ExceptionBlob", 3), FRAMES_JUMPED_TO);
    assert_int_equal(frames_shape_of("exception_blob (C2 runtime)", 3), FRAMES_JUMPED_TO);
    assert_int_equal(frames_shape_of("handle_exception_blob (C1 runtime)", 3), FRAMES_STUB);
    assert_int_equal(frames_shape_of("InlineCacheBuffer", 3), FRAMES_FRAMELESS);
    assert_int_equal(frames_shape_of("cont_returnBarrierExc", 3), FRAMES_CONTINUATION);
    assert_int_equal(frames_shape_of("java.lang.Object.hashCode()", -1), FRAMES_COMPILED);
    assert_int_equal(frames_shape_of("call_stub", -1), FRAMES_STUB);
    assert_true(frames_is_return_barrier("cont_returnBarrier"));
    /* As JDK 21, 26 and 27 call them. */
    assert_true(frames_is_return_barrier("Cont thaw return barrier"));
    assert_true(frames_is_return_barrier("Stub Generator cont_returnBarrier_stub"));
    assert_true(frames_is_return_barrier("cont_returnBarrier_stub (stub gen)"));
    assert_false(frames_is_return_barrier("Cont thaw"));
    assert_int_equal(frames_shape_of("Cont thaw", 3), FRAMES_CONTINUATION);
    assert_int_equal(frames_shape_of("Stub Generator cont_thaw_stub", 3), FRAMES_CONTINUATION);
    assert_int_equal(frames_shape_of("cont_thaw_stub (stub gen)", 3), FRAMES_CONTINUATION);
    assert_false(frames_is_return_barrier("cont_thaw"));
}

/* In a body the frame's size tells all; nowhere else, nor any other size. */
TEST_WITH(test_bodies, NULL, teardown)
{
    analyse(c2_method, sizeof c2_method, FRAMES_COMPILED);
    for (uint32_t offset = 0; offset < sizeof c2_method; offset++) {
        bool in_body = (offset >= 0x10 && offset < 0x1c) || offset >= 0x3a;
        assert_int_equal(frame_row_is_body(frames_at(&frames, offset), 0x30), in_body);
        assert_false(frame_row_is_body(frames_at(&frames, offset), 0x38));
        bool at_entry = offset < 0xb || (offset >= 0x1d && offset < 0x3a); /* or left again */
        assert_int_equal(frame_row_is_body(frames_at(&frames, offset), WALKED_ENTRY_FRAME),
                         at_entry);
    }
}

static struct walk_code code_at(const uint8_t *bytes, size_t size, uint32_t offset)
{
    struct walk_code code = {.before = offset ? bytes[offset - 1] : 0};
    size_t left = size - offset;
    memcpy(code.at, bytes + offset, left < sizeof code.at ? left : sizeof code.at);
    return code;
}

/* At each of these instructions the code tells what the rows do: whether a frame of so many bytes
 * is that of the body. Of a call and a push it is in doubt. */
static void check_code_tells(const uint8_t *bytes, size_t size, uint32_t frame,
                             const uint8_t *instructions, uint32_t count)
{
    analyse(bytes, size, FRAMES_COMPILED);
    for (uint32_t i = 0; i < count; i++) {
        struct walk_code code = code_at(bytes, size, instructions[i]);
        bool in_doubt = code.at[0] == 0xe8 || (code.at[0] & 0xf8) == 0x50;
        const struct frame_row *row = frames_at(&frames, instructions[i]);
        bool is_body = frame_row_is_body(row, frame);
        assert_int_equal(code_is_off_body(&code, frame), in_doubt || !is_body);
        assert_true(!code_is_at_entry(&code) || frame_row_is_body(row, WALKED_ENTRY_FRAME));
    }
    frames_free(&frames);
}

TEST_WITH(test_code_tells_bodies, NULL, teardown)
{
    static const uint8_t of_c1[] = {0, 7, 8, 0xc, 0x11, 0x15, 0x16, 0x1d, 0x1f};
    static const uint8_t of_empty[] = {0, 1, 5, 9, 0xa, 0x10};
    static const uint8_t of_c2[] = {0,    7,    0xb,  0x10, 0x13, 0x18,
                                    0x1c, 0x1d, 0x24, 0x26, 0x3a, 0x3d};
    static const uint8_t with_fp[] = {0, 7, 8, 0xb, 0xf, 0x14, 0x18, 0x19};
    static const uint8_t with_pushes[] = {0, 1, 5, 0xa, 0xb, 0xc, 0x19, 0x1a, 0x1b, 0x1f, 0x20};
    static const uint8_t of_wrapper[] = {0, 7, 8, 0xb, 0xf, 0x11, 0x12, 0x19};
    check_code_tells(c1_method, sizeof c1_method, 0x40, of_c1, sizeof of_c1);
    check_code_tells(c1_empty_method, sizeof c1_empty_method, 0x40, of_empty, sizeof of_empty);
    check_code_tells(c2_method, sizeof c2_method, 0x30, of_c2, sizeof of_c2);
    check_code_tells(frame_pointer, sizeof frame_pointer, 0x30, with_fp, sizeof with_fp);
    check_code_tells(pushes_in_body, sizeof pushes_in_body, 0x20, with_pushes, sizeof with_pushes);
    check_code_tells(native_wrapper, sizeof native_wrapper, 0x60, of_wrapper, sizeof of_wrapper);
}

/* What a callee returns to: C1 pops what it has pushed for slow_subtype_check. */
TEST(test_code_tells_pops)
{
    static const uint8_t taken[][4] = {{0x5f}, {0x41, 0x5e}, {0x4c, 0x8b, 0x1c, 0x24}};
    static const uint8_t kept[][4] = {{0x48, 0x83, 0xc4, 0x20}, {0x55}, {0x48, 0x8b, 0x44, 0x24}};
    for (uint32_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        struct walk_code code = code_at(taken[i], sizeof taken[i], 0);
        assert_true(code_is_popping(&code));
        code = code_at(kept[i], sizeof kept[i], 0);
        assert_false(code_is_popping(&code));
    }
}

TEST_MAIN(NULL, NULL)
