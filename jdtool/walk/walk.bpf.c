/*
 * Walks a whole stack in the interrupt, by the tables of shared.h: what unwind/unwind.c does
 * with a copy of the stack, with the same rows, on the stack itself. Runs on the event that
 * samples and on the recording's uprobes, called by the filter (sampler/filter.h), whose map it
 * has: 0 drops the sample, 1 has the kernel write it, with its copy of the stack.
 *
 *     not among `processes`   0
 *     WALK_COPY               1
 *     a JVM                   walked; to its root: written as struct walked_head, 0
 *                             in doubt: 1, and jdtool unwinds the copy
 *
 * What the scheduler tells comes from the program that follows it (sampler/switches.bpf.c), and is
 * written here either way.
 *
 * HotSpot makes code and throws it away at any moment, and the tables come to know of it later. So
 * each method's row is believed only if the block of the code cache still holds the compilation
 * that the row is of: HeapBlock::_used and nmethod::_compile_id say so (a freed block keeps its
 * bytes, and its tail may be given away alone, so the id is not enough). Else the JVM's own header
 * of that code, found by the segment map, has its frame's size, which is all that a call of Java by
 * Java needs; and anything else is doubt.
 *
 * The verifier: a walk's state is in a map's value, which it does not follow, or each flag would
 * multiply its states; functions that are not static are verified once, by themselves; what
 * bpf_loop calls returns 0 or 1.
 *
 * The kernel lends its helpers to programs under the GPL: this file alone may be used under the
 * GPL, version 2, as well as under the project's own license.
 */
#include <linux/ptrace.h>

#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/errno.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf_helpers.h>

#include "format/event_probe.h"
#include "jdtool/perf/walked.h"
#include "jdtool/sampler/limit.bpf.h"
#include "jdtool/sampler/maps.bpf.h"
#include "jdtool/sampler/switches_shared.h"
#include "jdtool/unwind/frames.h"
#include "jdtool/walk/shared.h"

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s16 s16;
typedef __s32 s32;
typedef __s64 s64;

char LICENSE[] SEC("license") = "GPL";

/* ---- The machine ---- */

/* Registers have DWARF's numbers. The interpreter's frame has its bytecode's address so far below
 * fp (frame::interpreter_frame_bcp_offset). */
#ifdef __TARGET_ARCH_arm64
typedef struct user_pt_regs registers;
enum { FP_REG = 29, LR_REG = 30, SP_REG = 31, REGS = 32, BCP_REG = 22, METHOD_REG = 12 };
enum { ARGUMENT_0, ARGUMENT_1, ARGUMENT_2, ARGUMENT_3, ARGUMENT_4 };
#define BCP_BELOW 0x48
#else
typedef struct pt_regs registers;
enum { FP_REG = 6, SP_REG = 7, REGS = 16, BCP_REG = 13, METHOD_REG = 3 };
enum { ARGUMENT_0 = 5, ARGUMENT_1 = 4, ARGUMENT_2 = 1, ARGUMENT_3 = 2, ARGUMENT_4 = 8 };
#define BCP_BELOW 0x40
#endif
#define METHOD_BELOW 0x18

/* ---- Tables ---- */

#define TABLE(name, T, N)                                                                          \
    struct {                                                                                       \
        __uint(type, BPF_MAP_TYPE_ARRAY);                                                          \
        __uint(map_flags, BPF_F_MMAPABLE);                                                         \
        __uint(max_entries, N);                                                                    \
        __type(key, u32);                                                                          \
        __type(value, T);                                                                          \
    } name SEC(".maps")

TABLE(pages, struct walk_page, WALK_PAGES);
TABLE(blobs, struct walk_blob, WALK_BLOBS);
TABLE(rows, struct walk_row, WALK_ROWS);
TABLE(full_rows, struct walk_full_row, WALK_FULL_ROWS);
TABLE(mappings, struct walk_mapping, WALK_JVMS * 2 * WALK_MAPPINGS);
TABLE(jvms, struct walk_jvm, WALK_JVMS);
TABLE(configs, struct walk_config, 1);
TABLE(wanted, struct walk_wanted, 1);

/* Those of the program that follows the scheduler. */
OUTPUT(blocked);
OUTPUT(waking);
TOLD;

/* How walks ended, by enum walked_end; behind that the bytes that they wrote. */
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, WALKED_ENDS + 1);
    __type(key, u32);
    __type(value, u64);
} ends SEC(".maps");

/* ---- A walk ---- */

struct walk {
    u64 pc, sp, fp;
    u64 before; /* the pc that was written last */
    u32 n;      /* words written */
    u32 frames, depth;
    u32 mapping; /* that answered last */
    u32 jvm;
    u32 blob;    /* the number that was found last */
    u32 assumed; /* of the last method whose frame was assumed to be set up; 0: none was */
    u8 caller, called_java, fp_known, end;

    u8 frozen; /* enum frozen_state */
    /* What was when the first of them came, and is again when they are given up. */
    u32 n_before, frames_before, collections;
    u64 pc_before;
    u64 chunk, chunk_pc, chunk_sp, chunk_end, chunk_fp_at; /* as pc, sp and where fp is saved */
    u32 chunks;
    u32 searched; /* bytes of segment maps that were read, of SEARCH_MAX */
    u64 java;     /* the innermost return address into Java code that was passed */
    u64 copied;   /* up to where a copy of the stack would go; 0: there would be none */
};

/* Of a virtual thread's callers in the heap. */
enum frozen_state { FROZEN_UNTRIED, FROZEN_WALKED, FROZEN_WHOLE, FROZEN_GIVEN_UP };

#define WORDS_ROOM  16384 /* a power of two above WALKED_WORDS_MAX */
#define FRAME_WORDS 12    /* of one frame at most */

struct scratch {
    struct walked_head head;
    u32 words[WORDS_ROOM];
    struct walk walk;
    u64 regs[REGS];
    /* A program's calls have 512 bytes of stack for them all: what is at the pc, and at an address
     * that is looked at; what a signal has saved. */
    struct walk_blob blob, sought;
    u64 saved[REGS + 1];
};

/* By processor; behind these WALK_PROBE_ROOMS times as many for uprobes. While the program is on an
 * event or a tracepoint the kernel runs no other such on that processor (bpf_prog_active), but in a
 * uprobe's there can be an interrupt or another thread. A value of a map that is per processor may
 * have 32 KB only. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

/* Those for uprobes that are in use: only one of two threads can add it. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u32);
} rooms SEC(".maps");

/* cpu: the number of the walk's, in all that follows. */
#define SCRATCH                                                                                    \
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);                                     \
    if (!s) {                                                                                      \
        return 1;                                                                                  \
    }                                                                                              \
    struct walk *w = &s->walk

static __always_inline bool get(u64 at, u64 *word)
{
    return bpf_probe_read_user(word, sizeof *word, (void *)at) == 0;
}

static __always_inline void put(struct scratch *s, u32 word)
{
    s->words[s->walk.n++ & (WORDS_ROOM - 1)] = word;
}

static __always_inline void put_wide(struct scratch *s, u64 word)
{
    put(s, (u32)word);
    put(s, (u32)(word >> 32));
}

/* flags: WALKED_INTERPRETED, WALKED_FROZEN, WALKED_ASSUMED */
__noinline int put_pc(u32 cpu, u64 pc, u32 caller, u32 flags)
{
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    if (!s) {
        return 1;
    }
    s64 delta = (s64)(pc - s->walk.before);
    s->walk.before = pc;
    s->walk.frames++;
    if (caller && !(flags & WALKED_ASSUMED) && delta < WALKED_DELTA_MAX &&
        delta >= -WALKED_DELTA_MAX) {
        put(s, (u32)delta << WALKED_DELTA_SHIFT | flags);
    } else {
        put(s, WALKED_WIDE | flags | (caller ? WALKED_IS_CALLER : 0));
        put_wide(s, pc);
    }
    return 0;
}

static __always_inline void put_interpreted(struct scratch *s, u64 method, u64 bcp, bool is_leaf)
{
    s64 delta = (s64)(bcp - method);
    bool wide = delta != (s32)delta;
    put(s, (u32)method);
    put(s,
        (u32)(method >> 32 & 0xffff) | (wide ? WALKED_BCP_WIDE : 0) | (is_leaf ? WALKED_LEAF : 0));
    put(s, wide ? (u32)bcp : (u32)delta);
    if (wide) {
        put(s, (u32)(bcp >> 32));
    }
    if (is_leaf) {
        put_wide(s, s->regs[BCP_REG]);
        put_wide(s, s->regs[METHOD_REG]);
    }
}

static __always_inline int stop(struct walk *w, u8 end)
{
    w->end = end;
    return 1;
}

/* ---- What is at an address ---- */

static __always_inline struct walk_jvm *jvm_of(const struct walk *w)
{
    u32 key = w->jvm;
    return bpf_map_lookup_elem(&jvms, &key);
}

static __always_inline u32 page_word(u32 page, u32 at)
{
    struct walk_page *p = bpf_map_lookup_elem(&pages, &page);
    asm volatile("" : "+r"(at)); /* or clang knows the bound, and the verifier does not */
    at &= WALK_PAGE_WORDS - 1;
    return p ? p->words[at] : 0;
}

/* The blob at an address, 0: none. What lies behind a method is its stub section. */
__noinline u32 blob_number(u32 jvm, u64 at)
{
    struct walk_jvm *j = bpf_map_lookup_elem(&jvms, &jvm);
    if (!j) {
        return 0;
    }
    u64 slot = (at - j->code_low) >> WALK_SLOT_SHIFT;
    u32 directory = (u32)(slot >> 20);
    if (slot >> 20 >= WALK_DIRECTORIES) {
        return 0;
    }
    asm volatile("" : "+r"(directory));
    directory &= WALK_DIRECTORIES - 1;
    u32 number = page_word(page_word(j->directories[directory], (u32)slot >> 10), (u32)slot);
    u32 behind = 0;
    for (int i = 0; i < 8 && number; i++) {
        struct walk_blob *b = bpf_map_lookup_elem(&blobs, &number);
        if (!b) {
            return 0;
        }
        if (at - b->start < b->size) {
            return number;
        }
        if (at >= b->start && b->shape == FRAMES_COMPILED) {
            behind = number;
        }
        number = b->next;
    }
    return behind;
}

static __always_inline struct walk_blob *blob_at(struct walk *w, u64 at)
{
    u32 number = blob_number(w->jvm, at);
    w->blob = number;
    return number ? bpf_map_lookup_elem(&blobs, &number) : 0;
}

/* Its rows are to be made. The bits that another processor sets at once may be lost, until the next
 * walk comes there. */
static __always_inline void want(u32 number)
{
    u32 zero = 0;
    struct walk_wanted *all = bpf_map_lookup_elem(&wanted, &zero);
    u32 at = number >> 6;
    asm volatile("" : "+r"(at)); /* as in page_word */
    at &= WALK_BLOBS / 64 - 1;
    if (all) {
        all->bits[at] |= (u64)1 << (number & 63);
    }
}

/* A segment map is the process' own to write: so many bytes of it a walk reads at most. A search
 * takes a few; that is a millisecond or two. */
#define SEARCH_MAX 16384

/* So many where a thread is switched away from, for others wait for that. */
#define SEARCH_SWITCH 2048

/* And so many frames: 0.1 ms where it is quiet, 0.5 ms on a busy machine. */
#define DEPTH_SWITCH 1000

#define SEARCH_STEPS 100 /* many where free blocks were joined */

/* A step towards the block's first segment, which has 0 in the map. */
struct segment {
    u64 map, number;
    u8 back;
};

static long step_back(u32 i, struct segment *segment)
{
    u8 back = 255;
    if (bpf_probe_read_user(&back, 1, (void *)(segment->map + segment->number)) || back == 255) {
        segment->back = 255;
        return 1;
    }
    segment->back = back;
    segment->number -= back;
    return !back;
}

#define NMETHOD 0x74656d6eu /* "nmet" */
#define NATIVE  0x6974616eu /* "nati", of "native nmethod" */

/*
 * The same by the JVM's own memory: the segment map of the heap, then the blob's header. Right at
 * any moment for what is on a stack. It tells how large a method's frame is, and no rows.
 */
__noinline int header_at(u32 cpu, u64 at, struct walk_blob *b)
{
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    struct walk_jvm *j = s ? jvm_of(&s->walk) : 0;
    if (!j || !b) {
        return false;
    }
    const struct walk_layout *l = &j->layout;
    u64 low = 0;
    u64 map = 0;
    for (int i = 0; i < WALK_HEAPS; i++) {
        if (at >= l->heaps[i].low && at < l->heaps[i].high) {
            low = l->heaps[i].low;
            map = l->heaps[i].map;
        }
    }
    if (!low) {
        return false;
    }
    struct segment segment = {map, (at - low) >> l->segment_shift, 255};
    s->walk.searched +=
        (u32)bpf_loop(s->walk.searched < SEARCH_MAX ? SEARCH_STEPS : 0, step_back, &segment, 0);
    if (segment.back) {
        return false;
    }
    u64 cb = low + (segment.number << l->segment_shift) + l->block_header;
    u64 name = 0; /* its address, then its letters */
    u32 offset = 0;
    if (!get(cb + l->blob_name, &name) || !get(name, &name)) {
        return false;
    }
    if (l->code_offset) {
        bpf_probe_read_user(&offset, 4, (void *)(cb + l->blob_code));
        b->start = cb + (l->code_offset == 2 ? offset & 0xffff : offset);
    } else if (!get(cb + l->blob_code, &b->start)) {
        return false;
    }
    b->size = 0;
    b->frame = 0;
    bpf_probe_read_user(&b->size, 4, (void *)(cb + l->blob_size));
    bpf_probe_read_user(&b->frame, 4, (void *)(cb + l->blob_frame_size));
    bool method = (u32)name == NMETHOD || (u32)name == NATIVE;
    b->header = cb;
    b->size += (u32)(cb - b->start);
    b->frame *= 8;
    b->id = 0;
    bpf_probe_read_user(&b->id, 4, (void *)(cb + l->nmethod_id));
    b->rows = 0;
    b->shape = method ? FRAMES_COMPILED : FRAMES_STUB;
    b->flags = method ? WALK_BLOB_TOLD | WALK_BLOB_METHOD : 0;
    return at - b->start < b->size;
}

/* Whether the block holds this very compilation. */
static __always_inline bool is_there(const struct walk_jvm *j, const struct walk_blob *b)
{
    u8 used = 0;
    u32 id = 0;
    u64 header = b->header;
    if (!header) {
        return false;
    }
    bpf_probe_read_user(&used, 1, (void *)(header - j->layout.block_header + j->layout.block_used));
    return used == 1 && !bpf_probe_read_user(&id, 4, (void *)(header + j->layout.nmethod_id)) &&
           id == b->id;
}

/* Whether that blob is at an address now. What lies behind it is its stub section, or newer code.
 */
static __always_inline bool is_current(const struct walk_jvm *j, const struct walk_blob *b, u64 at)
{
    return at - b->start < b->size && (!(b->flags & WALK_BLOB_METHOD) || is_there(j, b));
}

/* ---- Rows ---- */

/* The last row of [low, high) that begins at the offset or before, but for its first word. */
__noinline u32 row_bits(u32 low, u32 high, u32 offset)
{
    struct walk_row *r;
    u32 count = high - low;
    for (int i = 0; i < 22 && count > 1; i++) {
        u32 half = count / 2;
        u32 middle = low + half;
        r = bpf_map_lookup_elem(&rows, &middle);
        if (!r) {
            return 0;
        }
        /* Half of it, or nothing: two branches would be two states to the verifier, each time. */
        u64 is_behind = ((u64)offset - r->offset) >> 63;
        low += half & ((u32)is_behind - 1);
        count -= half;
    }
    r = bpf_map_lookup_elem(&rows, &low);
    return !r || r->offset > offset ? 0 : ((u32 *)r)[1];
}

static __always_inline u32 blob_row(const struct walk_blob *b, u32 offset)
{
    u32 first = (u32)(b->rows >> 32);
    return row_bits(first, first + (u32)b->rows, offset);
}

#define RULE(bits) ((bits) >> 24)
#define CFA(bits)  ((s64)(s16)(bits))
#define FP(bits)   ((int)(signed char)((bits) >> 16))

/* ---- Steps: 0: to the caller; 1: the walk has ended ---- */

/* A signed return address without its signature, which aarch64 has above the address. */
static __always_inline u64 without_signature(u64 pc)
{
#ifdef __TARGET_ARCH_arm64
    pc &= ((u64)1 << 48) - 1;
#endif
    return pc;
}

static __always_inline int go(struct walk *w, u64 pc, u64 cfa, u64 fp, bool fp_known)
{
    pc = without_signature(pc);
    if (cfa < w->sp || (cfa == w->sp && pc == w->pc)) {
        return stop(w, WALKED_BROKEN);
    }
    w->sp = cfa;
    w->fp = fp;
    w->fp_known = fp_known;
    w->pc = pc;
    return pc ? 0 : stop(w, WALKED_ROOT);
}

#ifdef __TARGET_ARCH_arm64

/* The usual frame: a frame record, or, in a leaf, none yet; or none any more, below sp. */
__noinline int by_cfa(u32 cpu, u64 cfa, int fp8)
{
    SCRATCH;
    u64 record[2] = {w->fp, s->regs[LR_REG]};
    u64 at = cfa + 8 * (s64)fp8;
    bool is_saved = fp8 && at >= w->sp;
    if (is_saved && bpf_probe_read_user(record, sizeof record, (void *)at)) {
        return stop(w, WALKED_FAULT);
    }
    return is_saved || !w->caller ? go(w, record[1], cfa, record[0], is_saved || w->fp_known)
                                  : stop(w, WALKED_NO_ROW);
}

#define LEAF_CFA 0

#else

/* The usual frame: the return address below the CFA, rbp perhaps somewhere near. */
__noinline int by_cfa(u32 cpu, u64 cfa, int fp8)
{
    SCRATCH;
    u64 two[2];
    u64 fp = w->fp;
    bool known = w->fp_known;
    if (bpf_probe_read_user(two, sizeof two, (void *)(cfa - 16))) {
        return stop(w, WALKED_FAULT);
    }
    u64 at = cfa + 8 * (s64)fp8;
    if (fp8 == WALK_FP_LOST) {
        known = false;
    } else if (fp8 && at >= w->sp) { /* below: an epilogue has popped it */
        fp = two[0];
        if (fp8 != -2 && !get(at, &fp)) {
            return stop(w, WALKED_FAULT);
        }
        known = true;
    }
    return go(w, two[1], cfa, fp, known);
}

#define LEAF_CFA 8

#endif

/* A leaf without a row. A 0 where its return address would be is no root: those have a row. */
static __always_inline int bare_leaf(u32 cpu, struct walk *w)
{
    int ended = by_cfa(cpu, w->sp + LEAF_CFA, 0);
    return ended && w->end == WALKED_ROOT ? stop(w, WALKED_NO_ROW) : ended;
}

__noinline int interpreted(u32 cpu)
{
    SCRATCH;
    u64 frame[3]; /* the sender's sp, fp, return address */
    if (!w->fp_known) {
        return stop(w, WALKED_NO_ROW);
    }
    if (bpf_probe_read_user(frame, sizeof frame, (void *)(w->fp - 8))) {
        return stop(w, WALKED_FAULT);
    }
    return go(w, frame[2], frame[0], frame[1], true);
}

static __always_inline bool find_place(const struct scratch *s, u8 place, u8 reg, s64 offset,
                                       u64 cfa, u64 *value)
{
    if (place == FRAME_IN_REG) {
        *value = s->regs[reg & (REGS - 1)];
        return true;
    }
    return get((place == FRAME_AT_SP ? s->walk.sp : cfa) + (u64)offset, value);
}

/* The interpreter's entries of Math.sin, CRC32.update and the like (step_frameless_entry of
 * unwind.c): the sender's sp is not known, and an interpreted one needs none. */
static __always_inline int frameless_entry(struct walk *w, const struct walk_full_row *r)
{
    u64 at = w->sp + (u64)(s64)r->ra_offset;
    u64 pc = 0;
    u32 number = 0;
    if (r->ra == FRAME_AT_SP && r->fp == FRAME_SAME && w->fp_known && get(at, &pc)) {
        number = blob_number(w->jvm, pc - 1);
    }
    struct walk_blob *b = number ? bpf_map_lookup_elem(&blobs, &number) : 0;
    return b && b->shape == FRAMES_INTERPRETER ? go(w, pc, at + 8, w->fp, true)
                                               : stop(w, WALKED_COMPLEX);
}

__noinline int by_full_row(u32 cpu, u32 number)
{
    SCRATCH;
    struct walk_full_row *r = bpf_map_lookup_elem(&full_rows, &number);
    u64 cfa;
    u64 pc;
    u64 fp = w->fp;
    if (!r || (w->caller && r->ra == FRAME_IN_REG)) {
        return stop(w, WALKED_COMPLEX); /* registers are the leaf's */
    }
    if (w->caller && r->cfa == FRAME_CFA_REG) {
        return frameless_entry(w, r);
    }
    if (r->cfa == FRAME_CFA_FP && !w->fp_known) {
        return stop(w, WALKED_NO_ROW);
    }
    cfa = r->cfa == FRAME_CFA_FP    ? w->fp
          : r->cfa == FRAME_CFA_REG ? s->regs[r->cfa_reg & (REGS - 1)]
                                    : w->sp;
    if (r->cfa == FRAME_CFA_SAVED && !get(cfa + 8 * (u64)r->cfa_reg, &cfa)) {
        return stop(w, WALKED_FAULT);
    }
    cfa += (u64)(s64)r->cfa_offset;
    if (!find_place(s, r->ra, r->ra_reg, r->ra_offset, cfa, &pc)) {
        return stop(w, WALKED_FAULT);
    }
    bool known = r->fp == FRAME_SAME ? w->fp_known
                                     : r->fp != FRAME_NOWHERE &&
                                           find_place(s, r->fp, FP_REG, r->fp_offset, cfa, &fp);
    return go(w, pc, cfa, fp, known);
}

/* What a signal interrupted is a leaf again, with the registers that the kernel has saved. */
__noinline int interrupted(u32 cpu)
{
#ifdef __TARGET_ARCH_arm64
    enum { SAVED_AT = FRAMES_AARCH64_SAVED };
#else
    static const u8 order[REGS] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7};
    enum { SAVED_AT = 40 }; /* uc_mcontext.gregs of a struct ucontext: these, and rip */
#endif
    SCRATCH;
    if (bpf_probe_read_user(s->saved, sizeof s->saved, (void *)(w->sp + SAVED_AT))) {
        return stop(w, WALKED_FAULT);
    }
#ifdef __TARGET_ARCH_arm64
    __builtin_memcpy(s->regs, s->saved, sizeof s->regs);
#else
#pragma unroll
    for (int i = 0; i < REGS; i++) {
        s->regs[order[i]] = s->saved[i];
    }
#endif
    w->sp = 0; /* it may be another stack */
    return go(w, s->saved[REGS], s->regs[SP_REG], s->regs[FP_REG], true);
}

__noinline int by_row(u32 cpu, u32 bits)
{
    SCRATCH;
    switch (RULE(bits)) {
    case WALK_BY_SP:
        return by_cfa(cpu, w->sp + 8 * (u64)CFA(bits), FP(bits));
    case WALK_BY_FP:
        return w->fp_known ? by_cfa(cpu, w->fp + 8 * (u64)CFA(bits), FP(bits))
                           : stop(w, WALKED_NO_ROW);
    case WALK_INTERPRETED:
        return interpreted(cpu);
    case WALK_ROOT:
        return stop(w, WALKED_ROOT);
    case WALK_FULL:
        return by_full_row(cpu, (u16)bits);
    case WALK_NONE:
        return w->caller ? stop(w, WALKED_NO_ROW) : bare_leaf(cpu, w);
#ifndef __TARGET_ARCH_arm64
    case WALK_PLT:
        return by_cfa(cpu, w->sp + 8 + ((w->pc & 15) >= 11 ? 8 : 0), FP(bits));
    case WALK_REALIGNED: {
        u64 cfa;
        u64 fp;
        u64 pc;
        if (!w->fp_known || !get(w->fp + 8 * (u64)CFA(bits), &cfa) || !get(w->fp, &fp) ||
            !get(cfa - 8, &pc)) {
            return stop(w, WALKED_NO_ROW);
        }
        return go(w, pc, cfa, fp, true);
    }
#endif
    case WALK_SIGNAL:
        return interrupted(cpu);
    default:
        return stop(w, WALKED_COMPLEX);
    }
}

/* Whether the word at an address is a return address into generated code. */
__noinline int returns_to_code(u32 cpu, u32 jvm, u64 at)
{
    u64 pc = 0;
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    if (!s || !get(at, &pc) || !pc) {
        return false;
    }
    pc = without_signature(pc) - 1;
    return blob_number(jvm, pc) || header_at(cpu, pc, &s->sought);
}

/* The CFA in enterSpecial: its frame lies where a return address into generated code is, for
 * thawing puts padding in (step_continuation_entry of unwind.c). 0: it is not found. */
__noinline u64 entry_cfa(u32 cpu, u32 bits)
{
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    if (!s) {
        return 0;
    }
    struct walk *w = &s->walk;
    if (w->fp_known && w->fp - w->sp < 1024 && returns_to_code(cpu, w->jvm, w->fp + 8)) {
        return w->fp + 16;
    }
    for (int padding = 0; RULE(bits) == WALK_BY_SP && padding <= 64; padding += 8) {
        u64 cfa = w->sp + 8 * (u64)CFA(bits) + (u64)padding;
        if (returns_to_code(cpu, w->jvm, cfa - 8)) {
            return cfa;
        }
    }
    return 0;
}

static __always_inline int continuation_entry(u32 cpu, struct walk *w, u32 bits)
{
    u64 cfa = entry_cfa(cpu, bits);
    return cfa ? by_cfa(cpu, cfa, -2) : stop(w, WALKED_CHANGED);
}

/* The bytes that a method's frame is taken to have; 0: it is in doubt. */
__noinline u32 assumed_frame(u64 pc, u32 frame, u32 caller)
{
    struct walk_code code;
    if (bpf_probe_read_user(&code, sizeof code, (void *)(pc - WALK_CODE_BEFORE)) ||
        (caller && code_is_popping(&code))) {
        return 0;
    }
    if (!caller && code_is_at_entry(&code)) {
        return WALKED_ENTRY_FRAME;
    }
    return !caller && code_is_off_body(&code, frame) ? 0 : frame;
}

/* A frame of generated code. from_header: of b only what the JVM's header has is known. */
__noinline int generated(u32 cpu, struct walk_blob *b, int barrier, int from_header)
{
    SCRATCH;
    if (!b) {
        return 1;
    }
    bool caller = w->caller;
    u64 offset = w->pc - (caller && !barrier) - b->start;
    u8 shape = b->shape;
    u8 flags = b->flags;
    u32 bits = 0;
    u32 size = b->frame;
    bool stub_section = offset >= b->size;
    bool is_method =
        shape == FRAMES_COMPILED && flags & WALK_BLOB_TOLD && !(flags & WALK_BLOB_ENTRY);
    bool body = stub_section || (caller && w->called_java && is_method);
    /* Nearly always a method's frame is set up, and where it is not the walk hardly ever comes to
     * a root. So it need not have rows: who reads the stack works out those of that method. */
    u32 assumed =
        !body && !b->rows && is_method && size >= 16 ? assumed_frame(w->pc, size, caller) : 0;
    /* Behind frozen frames it is as if the last of them had been called on the stack. */
    put_pc(cpu, barrier && w->frozen == FROZEN_WHOLE ? w->chunk_pc : w->pc, caller,
           assumed                                        ? WALKED_ASSUMED
           : shape == FRAMES_INTERPRETER && !stub_section ? WALKED_INTERPRETED
                                                          : 0);
    if (assumed) {
        put(s, assumed);
        w->assumed = from_header ? w->assumed : w->blob;
        body = true;
        size = assumed;
    }
    if (caller && (shape == FRAMES_COMPILED || shape == FRAMES_INTERPRETER) && !w->java) {
        w->java = w->pc;
    }
    if (flags & WALK_BLOB_YIELDS) {
        w->frozen = FROZEN_GIVEN_UP; /* perhaps they are in both places */
    }
    if (!body && shape != FRAMES_FRAMELESS && b->rows) {
        bits = blob_row(b, barrier ? 0 : (u32)offset);
    } else if (!body && shape != FRAMES_FRAMELESS && !from_header) {
        want(w->blob);
    }
    if (shape == FRAMES_INTERPRETER && !stub_section) {
        u64 method = 0;
        u64 bcp = 0;
        struct walk_jvm *j = jvm_of(w);
        if (RULE(bits) == WALK_INTERPRETED && w->fp_known) {
            u64 mirror = j && j->layout.is_8 ? 8 : 0; /* JDK 8 has none */
            get(w->fp - METHOD_BELOW, &method);
            get(w->fp - BCP_BELOW + mirror, &bcp);
        }
        put_interpreted(s, method, bcp, !caller);
    }
    int ended;
    if (shape == FRAMES_FRAMELESS) {
        ended = bare_leaf(cpu, w);
    } else if (body) {
        ended = size ? by_cfa(cpu, w->sp + size, size == WALKED_ENTRY_FRAME ? 0 : -2)
                     : stop(w, WALKED_NO_ROW);
    } else if (from_header) {
        ended = stop(w, WALKED_CHANGED);
    } else if (RULE(bits) == WALK_NONE) {
        ended = stop(w, WALKED_NO_ROW);
    } else if (barrier || (flags & WALK_BLOB_ENTRY && caller)) {
        ended = continuation_entry(cpu, w, bits);
    } else {
        ended = by_row(cpu, bits);
    }
    if (ended && w->end == WALKED_ROOT) {
        w->end = WALKED_BROKEN; /* threads begin in files' code */
    }
    w->caller = shape != FRAMES_JUMPED_TO || stub_section;
    w->called_java = shape == FRAMES_COMPILED || shape == FRAMES_INTERPRETER;
    return ended;
}

static __always_inline struct walk_mapping *mapping_number(u32 number)
{
    return bpf_map_lookup_elem(&mappings, &number);
}

/* The number of the last mapping of a JVM that begins at an address or before, plus 1; 0: none. */
__noinline u32 last_mapping(u32 jvm, u64 at)
{
    struct walk_jvm *j = bpf_map_lookup_elem(&jvms, &jvm);
    if (!j) {
        return 0;
    }
    u64 both = *(volatile u64 *)&j->mappings;
    u32 low = (jvm * 2 + (u32)(both >> 32)) * WALK_MAPPINGS;
    u32 count = (u32)both;
    for (int i = 0; i < 10 && count > 1; i++) {
        u32 half = count / 2;
        struct walk_mapping *m = mapping_number(low + half);
        if (!m) {
            return 0;
        }
        u64 is_behind = (at - m->start) >> 63; /* as in row_bits: addresses of programs */
        low += half & ((u32)is_behind - 1);
        count -= half;
    }
    return count ? low + 1 : 0;
}

/* The mapping at an address; the last one that answered goes first. */
static __always_inline struct walk_mapping *mapping_at(struct walk *w, u64 at)
{
    struct walk_mapping *m = w->mapping ? mapping_number(w->mapping - 1) : 0;
    if (m && at - m->start < m->end - m->start) {
        return m;
    }
    u32 number = last_mapping(w->jvm, at);
    m = number ? mapping_number(number - 1) : 0;
    if (!m || at - m->start >= m->end - m->start) {
        return 0;
    }
    w->mapping = number;
    return m;
}

/*
 * x86-64: of a uprobe's int3 in the place of a push of the frame pointer, JVM_FillInStackTrace's,
 * the pc is behind it before the push is done, and then before it although it is
 * (row_at_breakpoint of unwind.c). How many words the CFA is above sp; 0: the row is right. bits:
 * the row there.
 */
static __always_inline u32 words_at_breakpoint(const struct scratch *s, u32 bits)
{
#ifndef __TARGET_ARCH_arm64
    const struct walk *w = &s->walk;
    u64 word = 0;
    u8 code = 0;
    bool is_behind = CFA(bits) == 2 && FP(bits) == -2;
    bool is_before = CFA(bits) == 1 && FP(bits) == 0;
    if (!w->caller && s->head.flags & WALKED_IN_KERNEL && RULE(bits) == WALK_BY_SP &&
        (is_behind || is_before) &&
        !bpf_probe_read_user(&code, 1, (void *)(w->pc - (is_behind ? 1 : 0))) && code == 0xcc &&
        get(w->sp, &word) && (word == w->fp) == is_before) {
        return is_before ? 2 : 1;
    }
#endif
    return 0;
}

/* A frame of a file's code. */
__noinline int native(u32 cpu)
{
    SCRATCH;
    u64 at = w->pc - (w->caller ? 1 : 0);
    struct walk_mapping *m = mapping_at(w, at);
    u32 bits = 0;
    put_pc(cpu, w->pc, w->caller, 0);
    if (!m || !m->grains) {
        if (m) {
            m->wanted = 1;
        }
        return stop(w, WALKED_UNKNOWN);
    }
    u32 offset = (u32)(at - m->bias);
    u32 grain = (offset - m->base) >> WALK_GRAIN_SHIFT;
    if (offset >= m->base && grain + 1 < m->grains) {
        u32 low = page_word(m->page + (grain >> 10), grain);
        grain++;
        bits = row_bits(low, page_word(m->page + (grain >> 10), grain) + 1, offset);
    }
    u32 words = words_at_breakpoint(s, bits);
    int ended = words ? by_cfa(cpu, w->sp + 8 * words, 0) : by_row(cpu, bits);
    w->caller = RULE(bits) != WALK_SIGNAL;
    w->called_java = false;
    return ended;
}

/* ---- Frozen frames ---- */

/*
 * When a virtual thread goes on, HotSpot thaws a frame or two of it: copies them from the heap to
 * the stack, the last of which returns to cont_returnBarrier. The others wait, innermost first:
 *
 *     ContinuationEntry, below the frame of enterSpecial
 *       -> Continuation -> its tail, a StackChunk -> its parent, and so on
 *
 * Compiled frames are in a chunk as on a stack, but for saved frame pointers, of no use; of an
 * interpreted frame the links count words from their own place (StackChunkFrameStream). All of it
 * is believed only if frames fill each chunk to its last word, and if no collection has moved
 * objects meanwhile. Else they are left out, and the barrier's place in the stack tells of it.
 */
#define ENTRY_CONTINUATION 16 /* ContinuationEntry::_cont */
#define CHUNKS_MAX         64

static __always_inline u64 oop_at(const struct walk_frozen *f, u64 at)
{
    u64 oop = 0;
    if (f->oop_size == 4) {
        u32 narrow = 0;
        bpf_probe_read_user(&narrow, 4, (void *)at);
        return narrow ? f->oop_base + ((u64)narrow << (f->oop_shift & 31)) : 0;
    }
    bpf_probe_read_user(&oop, 8, (void *)at);
    return oop;
}

static __always_inline u32 u32_at(u64 at)
{
    u32 value = 0;
    bpf_probe_read_user(&value, 4, (void *)at);
    return value;
}

/* No collection goes on; *count: how many there have been. */
static __always_inline bool is_still(const struct walk_frozen *f, u32 *count)
{
    u8 active = 1;
    bpf_probe_read_user(&active, 1, (void *)f->is_collecting);
    return !active && !bpf_probe_read_user(count, 4, (void *)f->collections);
}

static __always_inline bool enter_chunk(struct walk *w, const struct walk_frozen *f, u64 chunk)
{
    u32 sp = u32_at(chunk + f->sp);
    u32 bottom = f->bottom ? u32_at(chunk + f->bottom)
                           : u32_at(chunk + f->size) - u32_at(chunk + f->argsize);
    if (!chunk || chunk & 7 || bottom > u32_at(chunk + f->size) || sp > bottom ||
        w->chunks++ > CHUNKS_MAX) {
        return false;
    }
    w->chunk = chunk;
    w->chunk_sp = chunk + f->stack + 8 * (u64)sp;
    w->chunk_end = chunk + f->stack + 8 * (u64)bottom;
    w->chunk_fp_at = w->chunk_sp - 16;
    return sp == bottom || get(w->chunk_sp - 8, &w->chunk_pc);
}

static __always_inline int give_up(struct walk *w)
{
    w->n = w->n_before;
    w->frames = w->frames_before;
    w->before = w->pc_before;
    w->frozen = FROZEN_GIVEN_UP;
    return 0;
}

/* At the barrier, whose row that is. */
__noinline int begin_frozen(u32 cpu, u32 bits)
{
    SCRATCH;
    struct walk_jvm *j = jvm_of(w);
    u64 cfa = entry_cfa(cpu, bits);
    u64 continuation = 0;
    w->n_before = w->n;
    w->frames_before = w->frames;
    w->pc_before = w->before;
    w->frozen = FROZEN_WALKED;
    if (!j || !j->frozen.stack || !cfa || RULE(bits) != WALK_BY_SP ||
        !is_still(&j->frozen, &w->collections) ||
        !get(cfa - 8 * (u64)CFA(bits) + ENTRY_CONTINUATION, &continuation) || !continuation ||
        !enter_chunk(w, &j->frozen, oop_at(&j->frozen, continuation + j->frozen.tail))) {
        return give_up(w);
    }
    return 0;
}

/* The next chunk, or the end. */
static __always_inline int leave_chunk(struct walk *w, const struct walk_jvm *j)
{
    u32 collections = 0;
    u64 parent = oop_at(&j->frozen, w->chunk + j->frozen.parent);
    if (parent) {
        return enter_chunk(w, &j->frozen, parent) ? 0 : give_up(w);
    }
    if (w->n == w->n_before || !is_still(&j->frozen, &collections) ||
        collections != w->collections) {
        return give_up(w);
    }
    w->chunk_pc = j->frozen.entry_pc;
    w->frozen = FROZEN_WHOLE;
    return 0;
}

__noinline int frozen(u32 cpu)
{
    SCRATCH;
    struct walk_jvm *j = jvm_of(w);
    struct walk_blob *copy = &s->blob;
    if (!j || w->frames >= w->depth || w->n > WALKED_WORDS_MAX - FRAME_WORDS) {
        return give_up(w);
    }
    if (w->chunk_sp >= w->chunk_end) {
        return w->chunk_sp == w->chunk_end ? leave_chunk(w, j) : give_up(w);
    }
    u64 pc = without_signature(w->chunk_pc);
    struct walk_blob *b = blob_at(w, pc - 1);
    /* Not thawed but frozen at this moment: it is on the stack as well. */
    bool is_twice = w->n == w->n_before && pc == w->java && b && b->shape == FRAMES_COMPILED;
    if (b && is_current(j, b, pc - 1)) {
        *copy = *b;
    } else if (!header_at(cpu, pc - 1, copy)) {
        return give_up(w);
    }
    if (is_twice) {
        return give_up(w);
    }
    if (copy->shape == FRAMES_COMPILED && copy->frame) {
        put_pc(cpu, pc, true, WALKED_FROZEN);
        w->chunk_sp += copy->frame;
        w->chunk_fp_at = w->chunk_sp - 16;
        return get(w->chunk_sp - 8, &w->chunk_pc) ? 0 : give_up(w);
    }
    u64 fp = w->chunk_fp_at;
    u64 link = 0;
    u64 sender = 0;
    u64 method = 0;
    u64 bcp = 0;
    get(fp, &link);
    fp += 8 * link;
    if (copy->shape != FRAMES_INTERPRETER || fp < w->chunk_sp || fp > w->chunk_end ||
        !get(fp - METHOD_BELOW, &method) || !get(fp - BCP_BELOW, &bcp) || !get(fp - 8, &sender) ||
        !get(fp + 8, &w->chunk_pc)) {
        return give_up(w);
    }
    put_pc(cpu, pc, true, WALKED_FROZEN | WALKED_INTERPRETED);
    put_interpreted(s, method, bcp, false);
    w->chunk_sp = fp + 8 * sender;
    w->chunk_fp_at = fp;
    return w->chunk_sp > fp ? 0 : give_up(w);
}

/* One frame. */
__noinline int frame(u32 cpu)
{
    SCRATCH;
    struct walk_jvm *j = jvm_of(w);
    struct walk_blob *copy = &s->blob;
    if (w->frozen == FROZEN_WALKED) {
        return frozen(cpu);
    }
    if (!j || w->frames >= w->depth || w->n > WALKED_WORDS_MAX - FRAME_WORDS) {
        return stop(w, w->sp < w->copied ? WALKED_DEEP : WALKED_CUT);
    }
    u64 at = w->pc - (w->caller ? 1 : 0);
    struct walk_blob *b = blob_at(w, at);
    u32 number = w->blob;
    if (w->caller && (!b || (b->shape != FRAMES_COMPILED && b->shape != FRAMES_INTERPRETER))) {
        /* The barrier's return address is its first byte. */
        struct walk_blob *here = blob_at(w, w->pc);
        if (here && here->flags & WALK_BLOB_BARRIER && here->start == w->pc) {
            *copy = *here;
            if (w->frozen == FROZEN_UNTRIED) {
                return begin_frozen(cpu, copy->rows ? blob_row(copy, 0) : 0);
            }
            return generated(cpu, copy, true, false);
        }
    }
    w->blob = number;
    if (b && is_current(j, b, at)) {
        *copy = *b;
        return generated(cpu, copy, false, false);
    }
    if (header_at(cpu, at, copy)) {
        if (!b || copy->start != b->start || copy->id != b->id) {
            return generated(cpu, copy, false, true); /* the table is behind */
        }
        b->header = copy->header;
        *copy = *b;
        return generated(cpu, copy, false, false);
    }
    return b ? stop(w, WALKED_CHANGED) : native(cpu);
}

static long step(u32 i, u32 *cpu)
{
    int more = frame(*cpu);
    /* clang sees that it is 0 or 1, and the verifier does not: then it has to be compared. */
    asm volatile("" : "+r"(more));
    return more ? 1 : 0;
}

/* ---- A sample ---- */

#ifdef __TARGET_ARCH_arm64

static __always_inline void take_registers(struct scratch *s, const registers *r)
{
    s->walk.pc = r->pc;
    s->walk.sp = r->sp;
    s->walk.fp = r->regs[FP_REG];
#pragma unroll
    for (int i = 0; i < SP_REG; i++) {
        s->regs[i] = r->regs[i];
    }
    s->regs[SP_REG] = r->sp;
}

static __always_inline bool is_in_user_mode(const registers *r)
{
    return !(r->pstate & PSR_MODE_MASK);
}

#else

static __always_inline void take_registers(struct scratch *s, const registers *r)
{
    s->walk.pc = r->rip;
    s->walk.sp = r->rsp;
    s->walk.fp = r->rbp;
    s->regs[0] = r->rax;
    s->regs[1] = r->rdx;
    s->regs[2] = r->rcx;
    s->regs[3] = r->rbx;
    s->regs[4] = r->rsi;
    s->regs[5] = r->rdi;
    s->regs[6] = r->rbp;
    s->regs[7] = r->rsp;
    s->regs[8] = r->r8;
    s->regs[9] = r->r9;
    s->regs[10] = r->r10;
    s->regs[11] = r->r11;
    s->regs[12] = r->r12;
    s->regs[13] = r->r13;
    s->regs[14] = r->r14;
    s->regs[15] = r->r15;
}

static __always_inline bool is_in_user_mode(const registers *r)
{
    return r->cs & 3;
}

#endif

static __always_inline u32 process_of(const struct walk_config *c)
{
    return (u32)(pid_namespace_running(&c->ours) >> 32);
}

/* Kernel addresses, behind so many words of what the event tells. False: they cannot be had. */
static __always_inline bool take_kernel(void *ctx, struct scratch *s, u32 behind)
{
    long size = bpf_get_stack(ctx, s->words + behind, WALKED_KERNEL_MAX * 8, 0);
    if (size < 0 || size > WALKED_KERNEL_MAX * 8) {
        return false;
    }
    s->head.kernel = (u16)((u32)size >> 3); /* signed numbers are not divided */
    s->walk.n = behind + ((u32)size >> 2);
    return true;
}

/* The same, and the registers with which the thread has entered the kernel. */
static __always_inline bool take_entry(void *ctx, struct scratch *s, u32 behind)
{
    registers *user = (registers *)bpf_task_pt_regs(bpf_get_current_task_btf());
    if (!user || !take_kernel(ctx, s, behind)) {
        return false;
    }
    take_registers(s, user);
    s->head.flags = WALKED_IN_KERNEL;
    return true;
}

static __always_inline void count(u32 end, u64 by)
{
    u64 *number = bpf_map_lookup_elem(&ends, &end);
    if (number) {
        *number += by;
    }
}

static __always_inline struct walk_config *config(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&configs, &zero);
}

/* value: of its process. What is walked is not said yet. */
static __always_inline void begin(struct scratch *s, const struct walk_config *c, u32 value)
{
    struct walk *w = &s->walk;
    __builtin_memset(w, 0, sizeof *w);
    __builtin_memset(&s->head, 0, sizeof s->head);
    w->jvm = value - WALK_FIRST_JVM;
    w->depth = c->depth;
    w->fp_known = true;
    w->end = WALKED_CUT;
}

/* Returns the bytes that are to be written, from s on; 0: it is in doubt. */
static __always_inline u64 walk(u32 cpu, struct scratch *s)
{
    struct walk *w = &s->walk;
    bpf_loop(WALKED_WORDS_MAX, step, &cpu, 0);
    count(w->end, 1);
    if (w->end > WALKED_CUT) {
        if (w->assumed) {
            want(w->assumed);
        }
        return 0;
    }
    s->head.magic = WALKED_MAGIC;
    s->head.words = (u16)(w->n - 2 * s->head.kernel - s->head.raw / 4);
    s->head.frames = (u16)w->frames;
    s->head.end = w->end;
    u64 size = sizeof s->head + 4 * (u64)w->n;
    if (size > sizeof s->head + 4 * WALKED_WORDS_MAX) {
        return 0;
    }
    count(WALKED_ENDS, size);
    return size;
}

/* False: the processor has not got its event yet, or no longer, and the kernel is to write a copy.
 * What a ring has no room for is counted there. */
static __always_inline bool put_out(void *ctx, struct scratch *s, u64 size)
{
    long err = bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, s, size);
    return err == 0 || err == -ENOSPC;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
    u32 cpu = bpf_get_smp_processor_id();
    struct walk_config *c = config();
    if (!c) {
        return 1;
    }
    u32 process = process_of(c);
    u32 *is = bpf_map_lookup_elem(&processes, &process);
    if (!is) {
        return 0;
    }
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    if (*is < WALK_FIRST_JVM || !s) {
        return 1;
    }
    begin(s, c, *is);
    if (is_in_user_mode(&ctx->regs)) {
        take_registers(s, &ctx->regs);
        asm volatile("r0 = 1" ::: "r0"); /* or clang has one copy for both kinds of pointer */
    } else if (!take_entry(ctx, s, 0)) {
        return 1;
    }
    s->walk.copied = c->copied ? s->walk.sp + c->copied : 0;
    u64 size = walk(cpu, s);
    if (!size) {
        return 1;
    }
    s->head.period = ctx->sample_period;
    return put_out(ctx, s, size) && !c->compares ? 0 : 1;
}

/* ---- Of uprobes ---- */

/* Behind a struct event_probe_raw there is an allocation's `far`, and then the name. */
#define NAME_AT  44
#define NAME_MAX 256

/* What the kernel tells of a uprobe, as it would; of all registers are taken. False: it has no
 * room.
 */
static __always_inline bool tell_probe(struct scratch *s, union walk_cookie probe)
{
    struct event_probe_raw *raw = (struct event_probe_raw *)s->words;
    u32 size = __builtin_offsetof(struct event_probe_raw, value);
    __builtin_memset(raw, 0, NAME_AT + NAME_MAX);
    raw->type = probe.type;
    raw->pid = (s32)bpf_get_current_pid_tgid();
    raw->ip = s->walk.pc;
    if (probe.arguments == PROBE_DEOPT) {
        raw->value = (u32)s->regs[ARGUMENT_1];
        size = sizeof(struct deopt_probe_raw);
    } else if (probe.arguments != PROBE_NOTHING) {
        raw->value = s->regs[ARGUMENT_0];
        raw->base = s->regs[ARGUMENT_1];
        raw->scale = (u32)s->regs[ARGUMENT_2];
        s->words[NAME_AT / 4 - 1] = probe.arguments == PROBE_ALLOC ? (u32)s->regs[ARGUMENT_4] : 0;
        long length = bpf_probe_read_user_str((char *)s->words + NAME_AT, NAME_MAX,
                                              (void *)s->regs[ARGUMENT_3]);
        if (length < 0 || length >= NAME_MAX) {
            return false;
        }
        raw->name = NAME_AT | (u32)length << 16;
        size = NAME_AT + (u32)length;
    }
    size = ((size + 4 + 7) & ~7u) - 4; /* as a sample has it, behind its size */
    s->head.raw = (u16)size;
    s->walk.n = size / 4;
    return true;
}

/* One of the processor's for uprobes; 0: all are in use. */
static __always_inline u32 take_room(const struct walk_config *c)
{
    u32 room = bpf_get_smp_processor_id();
    for (int i = 0; i < WALK_PROBE_ROOMS; i++) {
        room += c->processors;
        if (bpf_map_update_elem(&rooms, &room, &room, BPF_NOEXIST) == 0) {
            return room;
        }
    }
    return 0;
}

/* Whether it was walked, and written. */
static __always_inline bool walk_probe(void *ctx, u32 room, u32 value, union walk_cookie probe,
                                       u64 weight)
{
    struct walk_config *c = config();
    struct scratch *s = bpf_map_lookup_elem(&scratches, &room);
    if (!s || !c) {
        return false;
    }
    begin(s, c, value);
    take_registers(s, ctx);
    s->head.event = probe.event;
    s->head.period = weight;
    u64 size = tell_probe(s, probe) ? walk(room, s) : 0;
    return size && put_out(ctx, s, size);
}

SEC("kprobe")
int probe(registers *ctx)
{
    union walk_cookie probe = {.word = bpf_get_attach_cookie(ctx)};
    struct walk_config *c = config();
    if (!c) {
        return 1;
    }
    u32 process = process_of(c);
    u32 *is = bpf_map_lookup_elem(&processes, &process);
    if (!is) {
        return 0;
    }
    u64 weight = limit_weight(probe.limit);
    if (!weight) {
        return 0;
    }
    u32 room = *is >= WALK_FIRST_JVM && probe.event ? take_room(c) : 0;
    bool walked = room && walk_probe(ctx, room, *is, probe, weight);
    if (room) {
        bpf_map_delete_elem(&rooms, &room);
    }
    return (!walked || c->compares) && limit_tell(ctx, weight);
}

/* ---- Of the scheduler ---- */

#define ENTRY_WORDS (SWITCHES_ENTRY_WORDS * 2 + 1) /* and what fills it up behind its size */

static __always_inline bool walk_switch(void *ctx, const struct switches_told *t)
{
    u32 cpu = bpf_get_smp_processor_id();
    struct walk_config *c = config();
    struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
    u32 process = c ? process_of(c) : 0;
    u32 *is = bpf_map_lookup_elem(&processes, &process);
    if (!c || !s || !is || *is < WALK_FIRST_JVM) {
        return false;
    }
    begin(s, c, *is);
    s->walk.searched = SEARCH_MAX - SEARCH_SWITCH;
    s->walk.depth = s->walk.depth < DEPTH_SWITCH ? s->walk.depth : DEPTH_SWITCH;
    s->head.event = (u16)t->event;
    s->head.raw = ENTRY_WORDS * 4;
    __builtin_memcpy(s->words, t->entry, sizeof t->entry);
    s->words[ENTRY_WORDS - 1] = 0;
    u64 size = take_entry(ctx, s, ENTRY_WORDS) ? walk(cpu, s) : 0;
    return size && put_out(ctx, s, size) && !c->compares;
}

SEC("tracepoint")
int switched(void *ctx)
{
    u32 zero = 0;
    struct switches_told *t = bpf_map_lookup_elem(&told, &zero);
    if (t && !walk_switch(ctx, t)) {
        if (t->is_waking) {
            bpf_perf_event_output(ctx, &waking, BPF_F_CURRENT_CPU, t->entry, sizeof t->entry);
        } else {
            bpf_perf_event_output(ctx, &blocked, BPF_F_CURRENT_CPU, t->entry, sizeof t->entry);
        }
    }
    return 1;
}
