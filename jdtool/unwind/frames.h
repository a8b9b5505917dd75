/*
 * Call-frame rows of generated code: for every instruction of a piece of code, where the caller's
 * frame, return address and frame pointer are. HotSpot writes no call-frame information, but its
 * code is simple enough to be followed: a data-flow pass over the code bytes finds the rows
 * (frames_x86_64.c, frames_aarch64.c).
 *
 * Terms are DWARF's: the CFA is the value of the stack pointer in the caller at the call (x86-64:
 * before the return address was pushed).
 */
#ifndef JD_TOOL_FRAMES_H
#define JD_TOOL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a register or a return address is found by. Offsets are in bytes, registers DWARF's. */
enum frame_place {
    FRAME_SAME,    /* fp only: still the caller's */
    FRAME_AT_CFA,  /* in memory at CFA + offset */
    FRAME_AT_SP,   /* in memory at sp + offset */
    FRAME_IN_REG,  /* in a register: leaf frames only */
    FRAME_NOWHERE, /* lost */
};

enum frame_cfa {
    FRAME_CFA_SP,  /* sp + offset */
    FRAME_CFA_FP,  /* fp + offset */
    FRAME_CFA_REG, /* register + offset: leaf frames only */
    /* A stack pointer that was put on the stack, + offset: its distance is not the same each time
     * (C2's String.indexOf copies short strings there, and pops sp at the end). Leaf frames only.
     */
    FRAME_CFA_SAVED,
    /*
     * An interpreted frame: the CFA is the sender's stack pointer, as the word at fp - 8 has it
     * (frame::interpreter_frame_sender_sp_offset); return address at fp + 8, caller's fp at fp. It
     * is not fp + 16: the interpreter extends the caller's frame by the callee's locals, and an
     * adapter puts arguments there.
     */
    FRAME_CFA_INTERPRETER,
};

/* Holds from `offset` up to the next row's. */
struct frame_row {
    uint32_t offset;    /* from the code's start */
    int32_t cfa_offset; /* SP, FP, REG, SAVED */
    int32_t ra_offset;
    int32_t fp_offset;
    uint8_t cfa;     /* enum frame_cfa */
    uint8_t cfa_reg; /* REG; of SAVED how many words above sp it is */
    uint8_t ra;      /* enum frame_place */
    uint8_t ra_reg;
    uint8_t fp; /* enum frame_place */
};

/* What kind of code it is, as far as the rows at its entries depend on it. */
enum frames_shape {
    FRAMES_COMPILED,     /* an nmethod or native wrapper */
    FRAMES_STUB,         /* entered by a call */
    FRAMES_ADAPTER,      /* I2C/C2I: several entries, the sender's sp in a register */
    FRAMES_JUMPED_TO,    /* entered by a jump from compiled code: no return address yet */
    FRAMES_INTERPRETER,  /* the template interpreter with all its codelets */
    FRAMES_CONTINUATION, /* cont_*: run in the frame of Continuation.enterSpecial */
    FRAMES_FRAMELESS,    /* InlineCacheBuffer's stubs, made and made over all the time: called, they
                            jump on; their bytes in a dump are of an earlier one */
};

struct frames_code {
    const uint8_t *bytes;
    uint32_t size;
    uint64_t address;
    enum frames_shape shape;
    int64_t verified_entry; /* offsets, -1: unknown or none */
    int64_t osr_entry;
    uint32_t entry_frame; /* FRAMES_CONTINUATION: frame size of enterSpecial; 0: unknown */
};

/* The rows of one piece of code. Start zeroed, use it again and again, free with frames_free. */
struct frames {
    struct frame_row *rows; /* sorted by offset, the first at 0 */
    uint32_t count;
    uint32_t room;
    /*
     * CFA - sp in the body, HotSpot's own frame size, return address included; 0: unknown. Code
     * without a frame has what the call left, the return address.
     */
    uint32_t frame_size;
    uint32_t undecodable; /* instructions that are none, reached from the entries */
};

/* The largest code that is analysed; HotSpot's own limit for an nmethod is far below. */
#define FRAMES_CODE_MAX (UINT32_C(16) << 20)

/* aarch64: bytes from sp, where a signal handler returns, to what it interrupted: x0 to x30, sp and
 * pc, in a struct rt_sigframe (arch/arm64/kernel/signal.c) behind a siginfo and what comes before
 * uc_mcontext.regs. */
#define FRAMES_AARCH64_SAVED (128 + 184)

/*
 * The shape of code with this symbol; kind is enum jitdump_code_kind of the trailer, -1: unknown,
 * when the name alone decides. Names are those that HotSpot (17 to 25) gives its blobs.
 */
enum frames_shape frames_shape_of(const char *name, int64_t kind);

/* True for the stub that the return address of a thawed continuation's last frame points to. */
bool frames_is_return_barrier(const char *name);

/* Work out the rows. 0, -EINVAL (no code, or too much), -ENOMEM. */
int frames_x86_64(const struct frames_code *code, struct frames *frames);
int frames_aarch64(const struct frames_code *code, struct frames *frames);

/* The row that holds at offset; NULL without rows. Logarithmic. */
const struct frame_row *frames_at(const struct frames *frames, uint32_t offset);

/* Whether a row is that of a method's body, whose frame has so many bytes: the CFA that far above
 * sp, below it the return address, below that the caller's fp. 8 bytes are the return address
 * alone, as at a method's entry on x86-64: the caller's fp is in its register. */
bool frame_row_is_body(const struct frame_row *row, uint32_t size);

/* The same, but the caller's fp may be elsewhere: as in a prologue that has made room for it. */
bool frame_row_is_sized(const struct frame_row *row, uint32_t size);

/* Appends a row, unless it says what the last one says. 0 or -ENOMEM. */
int frames_append(struct frames *frames, const struct frame_row *row);

/* Gives back the room behind the last row: most code has a handful, and there are thousands. */
void frames_fit(struct frames *frames);

void frames_free(struct frames *frames);

#endif
