/*
 * What the program that walks stacks in the kernel (walk.bpf.c) and jdtool, which fills its tables,
 * agree upon. Tables are arrays that both have in memory: jdtool stores, the program reads, and no
 * lock is between them. So what is stored is complete before the one word that leads to it is.
 *
 *     process's number ──> struct walk_jvm ──> directories ──> pages: a blob's number for each 64
 *                            │                                 bytes of the code cache
 *                            └──> mappings ──> pages: the first row for each 128 bytes of a file
 *     struct walk_blob ──> its rows, which it gets when a walk has wanted them
 *
 * x86-64 and aarch64 have the same tables; the rows differ in where the return address is. "fp" is
 * rbp and x29.
 */
#ifndef JD_TOOL_WALK_SHARED_H
#define JD_TOOL_WALK_SHARED_H

#include "jdtool/sampler/pid_namespace.h"

#include <linux/types.h>

/* ---- How large ---- */

#define WALK_JVMS         64
#define WALK_PAGE_WORDS   1024
#define WALK_PAGES        6144       /* of 4 KB; 0 is empty and leads to itself */
#define WALK_SLOT_SHIFT   6          /* of generated code a slot tells 64 bytes */
#define WALK_DIRECTORIES  8          /* of a JVM: 64 MB of code cache each */
#define WALK_BLOBS        (1u << 17) /* 0 is none */
#define WALK_ROWS         (1u << 21)
#define WALK_FULL_ROWS    4096
#define WALK_GRAIN_SHIFT  7   /* of a file a grain tells 128 bytes */
#define WALK_MAPPINGS     512 /* of a JVM, twice: one half is filled while the other is read */
#define WALK_HEAPS        4
#define WALK_STUB_SECTION 512 /* bytes behind a method's code that are its stub section's */

/* ---- Rows ---- */

enum walk_rule {
    WALK_NONE,  /* no row: a leaf is where it was called, a caller ends the walk */
    WALK_BY_SP, /* CFA = sp + 8 * cfa */
    WALK_BY_FP, /* CFA = fp + 8 * cfa */
    WALK_INTERPRETED,
    WALK_ROOT,      /* nobody called it */
    WALK_SIGNAL,    /* the kernel has saved the registers at sp */
    WALK_PLT,       /* an entry of a procedure linkage table, which pushes in its second half */
    WALK_REALIGNED, /* the CFA lies at fp + 8 * cfa, the caller's fp at fp */
    WALK_FULL,      /* cfa is the number of a struct walk_full_row */
    WALK_COMPLEX,   /* beyond these: doubt */
};

#define WALK_FP_LOST 127

/*
 * Holds from `offset` up to the next row's: from the blob's start, or an address of the file. fp:
 *
 *     x86-64     the caller's rbp is at CFA + 8 * fp; 0: it is rbp still; WALK_FP_LOST. The return
 *                address is at CFA - 8
 *     aarch64    the caller's x29 and, behind it, the return address are at CFA + 8 * fp; 0: both
 *                are in x29 and x30 still
 */
struct walk_row {
    __u32 offset;
    __s16 cfa;
    __s8 fp;
    __u8 rule;
};

/* A struct frame_row of unwind/, for what the little ones cannot tell. */
struct walk_full_row {
    __s32 cfa_offset, ra_offset, fp_offset;
    __u8 cfa, cfa_reg, ra, ra_reg, fp; /* enum frame_cfa, enum frame_place */
    __u8 unused[7];
};

/* ---- Generated code ---- */

enum walk_blob_flag {
    WALK_BLOB_TOLD = 1,    /* the JVM told the size of its frame */
    WALK_BLOB_ENTRY = 2,   /* Continuation.enterSpecial */
    WALK_BLOB_BARRIER = 4, /* cont_returnBarrier */
    WALK_BLOB_METHOD = 8,  /* an nmethod: what its header says is held against this */
    WALK_BLOB_YIELDS = 16, /* Continuation.doYield */
};

/* Which blobs a walk wanted rows of and found none: bits, set by the program, cleared by jdtool. */
struct walk_wanted {
    __u64 bits[WALK_BLOBS / 64];
};

struct walk_blob {
    __u64 start;
    __u64 header; /* where the CodeBlob is; 0: the program finds it, and says so here */
    __u32 size;
    __u32 frame; /* bytes of the frame in its body, the return address included; 0: not known */
    __u64 rows;  /* how many, and in the upper half the first of them; 0: not made yet, or none */
    __u32 next;  /* one that has a part of its first or last slot; 0: none */
    __u32 id;    /* nmethod::_compile_id */
    __u8 shape;  /* enum frames_shape */
    __u8 flags;
    __u8 is_over; /* for jdtool, as the next one */
    __u8 unused;
    __u32 room; /* for rows */
};

/* ---- Processes ---- */

struct walk_page {
    __u32 words[WALK_PAGE_WORDS];
};

struct walk_mapping {
    __u64 start, end;
    __u64 bias;   /* address in the file = pc - bias */
    __u32 base;   /* address in the file of its first grain */
    __u32 page;   /* where its grains begin: numbers of rows */
    __u32 grains; /* 0: nothing is known of the file */
    __u32 wanted; /* a walk came here then: set by the program */
};

/* HotSpot's own description of its code cache, by which the program asks what is there now. */
struct walk_layout {
    __u32 segment_shift;
    __u32 block_header; /* bytes of a HeapBlock, behind which the CodeBlob is */
    __u32 block_used, blob_name, blob_size, blob_frame_size, blob_code, nmethod_id;
    __u32 code_offset; /* bytes of blob_code, which is an offset from the blob then; 0: it points */
    __u32 is_8;        /* JDK 8 */
    struct walk_heap {
        __u64 low, high, map;
    } heaps[WALK_HEAPS];
};

/* How the frames of a virtual thread are found that are frozen, in the heap: offsets, and where the
 * heap tells of its collections, as long as which objects stay where they are. */
struct walk_frozen {
    __u32 stack; /* of a StackChunk; 0: not known, and none of these. Stored last. */
    __u32 tail, parent, size, sp;
    __u32 bottom, argsize; /* one of both is 0 */
    __u32 oop_size, oop_shift;
    __u32 unused;
    __u64 oop_base;
    __u64 entry_pc;                   /* where the outermost of them returns to, in enterSpecial */
    __u64 is_collecting, collections; /* addresses of a bool and of 32 bits */
};

struct walk_jvm {
    __u64 code_low;
    __u32 directories[WALK_DIRECTORIES]; /* pages of pages */
    __u64 mappings;                      /* how many, and in the upper half which half of them */
    struct walk_layout layout;
    struct walk_frozen frozen;
};

/* What `processes`, the map of the sampler's filter, has for a process that is sampled. */
enum walk_process {
    WALK_COPY = 0,      /* its stacks are copied */
    WALK_FIRST_JVM = 1, /* from here on: its struct walk_jvm, plus this */
};

struct walk_config {
    struct pid_namespace ours;
    __u32 depth;    /* frames that a walk may have */
    __u32 compares; /* each stack that was walked is copied as well */
    __u32 processors;
    __u32 copied; /* bytes of stack of which a sample of the clock is better copied than cut off; 0:
                     it is cut off */
};

/* ---- Code ---- */

/*
 * A method without rows is taken to be in its body, where its frame's size tells the caller. The
 * instructions around the pc tell most places where it is not: what HotSpot's
 * MacroAssembler::build_frame and remove_frame write, and what C1 and the stubs of G1 and ZGC push
 * for a call. Where it only looks so, the stack is copied, and the method gets its rows.
 */
#if defined(WALK_CODE_AARCH64) || defined(__TARGET_ARCH_arm64)

struct walk_code {
    __u32 before, at, next;
};

#define WALK_CODE_BEFORE 4

/* What follows a call takes something from the stack that was put there for it. */
static inline int code_is_popping(const struct walk_code *code)
{
    return (code->at & 0xffc003e0) == 0xa8c003e0; /* ldp …, [sp], # */
}

/* The same, or a leaf's frame is not set up, or no longer. */
static inline int code_is_off_body(const struct walk_code *code, __u32 frame)
{
    (void)frame;
    return code_is_popping(code) || (code->before & 0xff8003ff) == 0x910003ff || /* add sp, sp, # */
           (code->at & 0xff8003ff) == 0x910003ff || /* behind ldp x29, x30, [sp, #] */
           (code->at & 0xff8003ff) == 0xd10003ff || /* sub sp, sp, # */
           (code->at & 0xff8003ff) == 0xd10003e9 || /* sub x9, sp, #: touches the stack */
           code->at == 0xf900013f ||                /* str xzr, [x9] */
           (code->at & 0xff407fff) == 0xa9007bfd || /* stp x29, x30, [sp, #] */
           (code->at & 0xfc000000) == 0x94000000 || /* bl, perhaps behind a push */
           code->at == 0xeb2863ff ||                /* cmp sp, x8: the poll */
           code->at == 0xd65f03c0 ||                /* ret */
           ((code->at & 0xff00001f) == 0x54000008 && code->next == 0xd65f03c0); /* b.hi; ret */
}

static inline int code_is_at_entry(const struct walk_code *code)
{
    (void)code;
    return 0;
}

#else

struct walk_code {
    __u8 before;
    __u8 at[8];
};

#define WALK_CODE_BEFORE 1

/* Also of r8 to r15. */
static inline __u8 code_push_or_pop(const struct walk_code *code)
{
    return code->at[0] == 0x41 ? code->at[1] : code->at[0];
}

static inline __u32 code_word(const struct walk_code *code, int from)
{
    return code->at[from] | (__u32)code->at[from + 1] << 8 | (__u32)code->at[from + 2] << 16 |
           (__u32)code->at[from + 3] << 24;
}

static inline int code_is_popping(const struct walk_code *code)
{
    return (code_push_or_pop(code) & 0xf8) == 0x58 ||
           (code_word(code, 0) & 0xffc7fffb) == 0x24048b48; /* mov (%rsp), … */
}

static inline int code_is_off_body(const struct walk_code *code, __u32 frame)
{
    __u32 word = code_word(code, 0);
    __u32 behind = code_word(code, 4);
    return code->before == 0x55 || code->before == 0x5d || /* push %rbp, pop %rbp */
           code->before == 0xc9 ||                         /* leave */
           (code_push_or_pop(code) & 0xf0) == 0x50 ||      /* push, pop */
           (__u8)word == 0xe8 ||                           /* call, perhaps behind a push */
           (__u8)word == 0xc3 ||                           /* ret */
           (word & 0xfffdff) == 0xec8148 ||                /* sub $, %rsp */
           ((word & 0xffffff) == 0x248489 && code->at[6] == 0xff) || /* mov %eax, -n(%rsp) */
           ((__u16)word == 0x870f && code->at[6] == 0xc3) ||         /* ja; ret: the poll */
           (word & 0xff00ff) == 0xc30077 ||                          /* the same */
           ((__u16)word == 0x0585 && code->at[6] == 0xc3) || /* test %eax, page; ret: JDK 8 */
           word == 0xc3028541 ||                             /* test %eax, (%r10); ret: 10 to 15 */
           (word == 0x246c8948 && (__u8)behind == frame - 16) || /* mov %rbp, frame - 16(%rsp) */
           (word == 0x24ac8948 && behind == frame - 16);
}

/* Interrupts come there more often than anywhere else in a prologue: in front of it is what touches
 * the stack. */
static inline int code_is_at_entry(const struct walk_code *code)
{
    return code->at[0] == 0x55; /* push %rbp */
}

#endif

/* ---- Probes ---- */

/* Walks that may be under way on a processor beside an interrupt's: who passes a uprobe can lose
 * his processor while he is walked. */
#define WALK_PROBE_ROOMS 2

/* What a uprobe's program is told of it, as its cookie. */
union walk_cookie {
    __u64 word;
    struct {
        __u16 event;     /* of the sampler's; 0: its stacks are not wanted */
        __u16 type;      /* of the tracepoint */
        __u16 arguments; /* enum probe_arguments */
        __u16 limit;     /* the number again, of one that may come without bound; 0: of others */
    };
};

#endif
