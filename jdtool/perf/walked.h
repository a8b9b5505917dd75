/*
 * A stack that was walked in the kernel: the program that walks writes it (walk/walk.bpf.c), and
 * samples are resolved from it. In a recording it stands where a copy of the stack would, in a
 * sample without registers (PERF_SAMPLE_REGS_ABI_NONE); the kernel's part is in the call chain
 * then, and what the event tells in its place.
 *
 * A struct walked_head, `raw` bytes of what the event tells, `kernel` addresses of 8 bytes (the
 * kernel's part, innermost first), then `words` words of 32 bits, innermost frame first:
 *
 *     bit 0  WALKED_WIDE         the pc does not follow from the one before: bits 3 on are flags
 *                                (WALKED_IS_CALLER, WALKED_ASSUMED), and two words have it, low
 *                                half first
 *     bit 1  WALKED_INTERPRETED  what is interpreted there follows
 *     bit 2  WALKED_FROZEN       the frame is in the heap: a virtual thread's, not yet thawed
 *     bits 3 to 31               else: the pc minus that of the frame before (that of the first:
 *                                minus 0), signed; it is a return address
 *
 * Of an assumed frame a word has the bytes of the frame, by which the next one was found: nobody
 * had worked out a row for that pc. Who has the code's bytes holds it against them.
 * Of an interpreted frame: the Method's low half, a word of its high half (bits 0 to 15) and
 * WALKED_BCP_WIDE, WALKED_LEAF; the address of the bytecode minus that of the Method, or, wide,
 * itself in two words; of the leaf two words each of the registers for bytecode and Method.
 */
#ifndef JD_TOOL_WALKED_H
#define JD_TOOL_WALKED_H

#include <linux/types.h>

#define WALKED_MAGIC 0x6b6c614au /* "Jalk" */

/* A record of the kernel has room for no more. */
#define WALKED_WORDS_MAX  15872
#define WALKED_KERNEL_MAX 127
#define WALKED_RAW_MAX    304

struct walked_head {
    __u32 magic;
    __u16 kernel;
    __u16 words;
    __u16 frames;
    __u8 end;     /* enum walked_end */
    __u8 flags;   /* enum walked_flag */
    __u16 event;  /* of the sampler's: 0 is the clock, and the others tell something */
    __u16 raw;    /* with 4 bytes a multiple of 8 */
    __u64 period; /* of the event; 0: it has none */
};

enum walked_end {
    WALKED_ROOT, /* at the thread's or the process' entry */
    WALKED_CUT,  /* as many frames as were asked for; further out there are more */
    /* Doubts: such a stack is copied. */
    WALKED_UNKNOWN, /* an address of no file and no code that the tables know */
    WALKED_NO_ROW,
    WALKED_COMPLEX, /* a row that the kernel is not told */
    WALKED_BROKEN,  /* no sane next frame */
    WALKED_FAULT,   /* memory that cannot be read in an interrupt */
    WALKED_CHANGED, /* code that is newer than the tables, and not in its body */
    WALKED_DEEP,    /* more frames than asked for, and a copy has at least as many */
    WALKED_ENDS,
};

enum walked_flag {
    WALKED_IN_KERNEL = 1, /* the sample is of the kernel */
    WALKED_WEIGHS = 2,    /* nothing was walked: `period` is that of the thread's next sample */
};

#define WALKED_WIDE        1u
#define WALKED_INTERPRETED 2u
#define WALKED_FROZEN      4u
#define WALKED_IS_CALLER   (1u << 3)
#define WALKED_ASSUMED     (1u << 4)
#define WALKED_ENTRY_FRAME 8u /* assumed where nothing but the return address is on the stack */
#define WALKED_DELTA_SHIFT 3
#define WALKED_DELTA_MAX   ((__s64)1 << 28)
#define WALKED_BCP_WIDE    (1u << 16)
#define WALKED_LEAF        (1u << 17)

#ifndef __bpf__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct walked_frame {
    uint64_t pc;
    bool caller; /* the pc is a return address */
    bool interpreted;
    bool frozen;
    uint32_t assumed;     /* bytes of its frame, which are to be checked; 0: its row was known */
    uint64_t method, bcp; /* interpreted: HotSpot's Method*, the bytecode's address; 0: not known */
    uint64_t method_register, bcp_register; /* the same of the leaf, more recent at times */
};

/* What is left of a stack. */
struct walked {
    struct walked_head head;
    const uint8_t *words;
    uint32_t at;
    uint64_t before; /* the last frame's pc */
};

/* Begins to read one; what is in front of the words is skipped. False: these bytes are none. */
bool walked_begin(const uint8_t *bytes, size_t size, struct walked *walked);

/* The next frame, further out. False: there is none, or what is there is malformed. */
bool walked_next(struct walked *walked, struct walked_frame *frame);

/* The pc and what was assumed as one word, as chains have them where walks are compared: programs
 * are below bit 47, and `assumed` counts words. */
static inline uint64_t walked_packed(uint64_t pc, uint32_t assumed)
{
    return pc | (uint64_t)(assumed / 8 & 0x3fff) << 48;
}

static inline uint64_t walked_packed_pc(uint64_t packed)
{
    return packed & ((UINT64_C(1) << 48) - 1);
}

static inline uint32_t walked_packed_assumed(uint64_t packed)
{
    return (uint32_t)(packed >> 48) * 8;
}

/* What tells a frame from any other of its process: of a caller its pc; of an interpreted frame a
 * hash. */
uint64_t walked_key(const struct walked_frame *frame);

#endif

#endif
