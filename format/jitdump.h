/*
 * The jitdump file format, version 1, as the specification in the Linux sources has it
 * (tools/perf/Documentation/jitdump-specification.txt), and the trailer this project puts behind
 * the entries of a DEBUG_INFO record. The one place where either is described: the writer and the
 * reader both take it from here.
 *
 * All integers are in the byte order of the machine that wrote the file; the magic tells which.
 * Records follow each other without padding.
 *
 * A method is one group: [DEBUG_INFO] [UNWINDING_INFO] LOAD. Readers bind the first two to the next
 * LOAD without looking at an address, so a group is indivisible. Nothing may follow CLOSE.
 */
#ifndef JD_FORMAT_JITDUMP_H
#define JD_FORMAT_JITDUMP_H

#include <stddef.h>
#include <stdint.h>

#define JITDUMP_MAGIC         0x4A695444u /* "JiTD" */
#define JITDUMP_MAGIC_SWAPPED 0x4454694Au /* read from a file of the other byte order */
#define JITDUMP_VERSION       1

/* jitdump_header.flags: time stamps are the processor's own (TSC on x86), not CLOCK_MONOTONIC. */
#define JITDUMP_FLAGS_ARCH_TIMESTAMP (UINT64_C(1) << 0)

enum jitdump_record_id {
    JIT_CODE_LOAD = 0,
    JIT_CODE_MOVE = 1,
    JIT_CODE_DEBUG_INFO = 2,
    JIT_CODE_CLOSE = 3,
    JIT_CODE_UNWINDING_INFO = 4,
};

struct jitdump_header {
    uint32_t magic;
    uint32_t version;
    uint32_t total_size; /* bytes of this header; perf 6.1 mishandles anything but 40 */
    uint32_t elf_mach;   /* e_machine of elf.h */
    uint32_t pad1;
    uint32_t pid; /* as the writing process sees itself, in its own namespace */
    uint64_t timestamp;
    uint64_t flags;
};

struct jitdump_record {
    uint32_t id;         /* enum jitdump_record_id */
    uint32_t total_size; /* bytes, this prefix included */
    uint64_t timestamp;
};

/*
 * Behind it: the name with its NUL, then code_size bytes of code, at the record's end. Where the
 * code was left out they are zero: perf counts back from the end without looking at total_size, so
 * a record without them makes it take other memory for code. (Some writers leave them out all the
 * same.)
 */
struct jitdump_load {
    struct jitdump_record prefix;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t code_addr;
    uint64_t code_size;
    uint64_t code_index;
};

struct jitdump_move {
    struct jitdump_record prefix;
    uint32_t pid;
    uint32_t tid;
    uint64_t vma;
    uint64_t old_code_addr;
    uint64_t new_code_addr;
    uint64_t code_size;
    uint64_t code_index; /* of the LOAD that brought the code */
};

/* Behind it: nr_entry entries, then, perhaps, a trailer (see below). */
struct jitdump_debug_info {
    struct jitdump_record prefix;
    uint64_t code_addr;
    uint64_t nr_entry;
};

/* Behind it: the file's name with its NUL. Not aligned: the names decide where the next one starts.
 */
struct jitdump_debug_entry {
    uint64_t code_addr;
    uint32_t line;
    uint32_t discrim;
};

/*
 * Behind it: unwind_data_size bytes. The specification puts the header table first; perf, V8 and
 * CPython agree on .eh_frame first and .eh_frame_hdr (the last eh_frame_hdr_size bytes) behind it.
 */
struct jitdump_unwinding_info {
    struct jitdump_record prefix;
    uint64_t unwind_data_size;
    uint64_t eh_frame_hdr_size;
    uint64_t mapped_size;
};

struct jitdump_close {
    struct jitdump_record prefix;
};

/*
 * The trailer: what HotSpot knows of a method and the format has no room for. It stands behind the
 * last entry of a DEBUG_INFO record, inside its total_size, where perf and the other readers never
 * look. A DEBUG_INFO record may have a trailer and no entries at all.
 *
 *   trailer   struct jitdump_trailer, then sections until its size is used up
 *   section   uleb tag, uleb length, length bytes; a reader skips tags it does not know,
 *             and a tag may come more than once
 *
 * Everything behind the header is LEB128 (leb128.h) and NUL-terminated UTF-8, so it does not depend
 * on byte order. uleb = unsigned, sleb = signed.
 *
 * Source files and methods are defined once a dump, in the trailer of the group that first needs
 * them, and referred to by id afterwards: ids start at 1, are never defined twice with other
 * contents, and 0 means unknown. A reader that meets an id it has not seen defined (the group that
 * did was torn out) treats it as unknown.
 *
 *   JITDUMP_TRAILER_FILES    until the section ends: uleb id, path NUL
 *                            path = package path + SourceFile, as in the entries
 *   JITDUMP_TRAILER_METHODS  until the section ends: uleb id, uleb file id, uleb first line (0 =
 *                            unknown), name NUL; a file it names is defined before it
 *   JITDUMP_TRAILER_INLINES  uleb n_nodes, then n_nodes nodes:
 *                                uleb method id, and but for node 0: uleb parent, uleb call line
 *                            then ranges until the section ends:
 *                                uleb bytes, uleb node, sleb line minus the previous range's line
 *                            Node 0 is the compiled method itself. Nodes stand in depth-first
 *                            order, so parent < own index. The call line is the line of the call in
 *                            the parent's file, 0 = unknown. Ranges start at the code's first byte
 *                            and follow each other without gaps; behind the last one, code belongs
 *                            to no bytecode. A range is code of that node's method itself, at that
 *                            line of its file (0 = unknown); the "previous line" of the first is 0.
 *   JITDUMP_TRAILER_CODE     until the section ends: uleb key, uleb value; keys below
 *
 *   JITDUMP_TRAILER_TREE_ROWS  empty: the record has no entries, for its rows are in the tree
 *
 * Rows from the tree. With that section (lines=tree) the rows are what the inline tree says, and
 * `jdtool convert` writes them as entries again:
 *   - each range has the line and file of its node's method; where it has none, those of the call
 * in the parent, and so on outwards for at most JITDUMP_TREE_CLIMB calls; else the first line of
 *     node 0's method; where that is unknown too there is no row, and the row before goes on
 *   - code behind the last range has the first line of node 0's method
 *   - a row that has the file (by id) and line of the row before is left out; the first row starts
 *     with the code; the last one stands once more at the code's end
 * A writer leaves entries out only where this gives the very same ones.
 */
#define JITDUMP_TRAILER_MAGIC   0x7264646Au /* "jddr", little-endian */
#define JITDUMP_TRAILER_VERSION 1
#define JITDUMP_TREE_CLIMB      256

struct jitdump_trailer {
    uint32_t magic;
    uint32_t version; /* a reader leaves a trailer of a higher version alone */
    uint32_t size;    /* bytes, this header included */
};

enum jitdump_trailer_tag {
    JITDUMP_TRAILER_FILES = 1,
    JITDUMP_TRAILER_METHODS = 2,
    JITDUMP_TRAILER_INLINES = 3,
    JITDUMP_TRAILER_CODE = 4,
    JITDUMP_TRAILER_TREE_ROWS = 5,
};

/* Keys of JITDUMP_TRAILER_CODE. A key that is absent is unknown. Offsets are from the code's start.
 */
enum jitdump_code_key {
    JITDUMP_CODE_KIND = 1,           /* enum jitdump_code_kind */
    JITDUMP_CODE_TIER = 2,           /* HotSpot's CompLevel: 0 none, 1-3 C1, 4 C2; or
                                        JITDUMP_TIER_JVMCI */
    JITDUMP_CODE_FRAME_SIZE = 3,     /* bytes, the return address included */
    JITDUMP_CODE_VERIFIED_ENTRY = 4, /* offset */
    JITDUMP_CODE_OSR_ENTRY = 5,      /* offset; present for on-stack replacement only */
    JITDUMP_CODE_OSR_BCI = 6,
    JITDUMP_CODE_COMPILE_ID = 7,
    JITDUMP_CODE_FRAME_COMPLETE = 8, /* offset of the end of the frame's set-up */

    /* Of the JVM, told once a dump with some code: by which the frames of a virtual thread that are
     * frozen, in the heap, are found. Offsets are from an object's start. Absent where a collector
     * moves objects while threads run. */
    JITDUMP_CODE_FROZEN_TAIL = 9,    /* offset of Continuation.tail */
    JITDUMP_CODE_FROZEN_PARENT = 10, /* offsets of StackChunk's parent, size, sp */
    JITDUMP_CODE_FROZEN_SIZE = 11,   /*     and bottom, or, to JDK 21, argsize */
    JITDUMP_CODE_FROZEN_SP = 12,     /*     (the last four count words of the stack) */
    JITDUMP_CODE_FROZEN_BOTTOM = 13,
    JITDUMP_CODE_FROZEN_ARGSIZE = 14,
    JITDUMP_CODE_FROZEN_STACK = 15, /* offset of a StackChunk's stack */
    JITDUMP_CODE_FROZEN_OOP = 16,   /* bytes of a reference: 4 or 8 */

    JITDUMP_CODE_LATE =
        17, /* ms that the stamp, which is dated back, is before the code's report */
    JITDUMP_CODE_KEYS = 18,
};

/* Level 4 of a JVM with -XX:+UseJVMCICompiler: Graal made it in C2's place. */
#define JITDUMP_TIER_JVMCI 5

#define JITDUMP_CODE_FROZEN_FIRST JITDUMP_CODE_FROZEN_TAIL
#define JITDUMP_CODE_FROZEN_COUNT (JITDUMP_CODE_FROZEN_OOP + 1 - JITDUMP_CODE_FROZEN_FIRST)

enum jitdump_code_kind {
    JITDUMP_KIND_NMETHOD = 1,        /* compiled Java */
    JITDUMP_KIND_NATIVE_WRAPPER = 2, /* a native method's way out of Java */
    JITDUMP_KIND_STUB = 3,           /* any other code the JVM generated */
    JITDUMP_KIND_INTERPRETER = 4,
};

#define JD_ASSERT_SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
#define JD_ASSERT_AT(type, field, at)                                                              \
    _Static_assert(offsetof(struct type, field) == (at), #type "." #field)

JD_ASSERT_SIZE(jitdump_header, 40);
JD_ASSERT_AT(jitdump_header, elf_mach, 12);
JD_ASSERT_AT(jitdump_header, pid, 20);
JD_ASSERT_AT(jitdump_header, timestamp, 24);
JD_ASSERT_AT(jitdump_header, flags, 32);
JD_ASSERT_SIZE(jitdump_record, 16);
JD_ASSERT_AT(jitdump_record, timestamp, 8);
JD_ASSERT_SIZE(jitdump_load, 56);
JD_ASSERT_AT(jitdump_load, vma, 24);
JD_ASSERT_AT(jitdump_load, code_index, 48);
JD_ASSERT_SIZE(jitdump_move, 64);
JD_ASSERT_AT(jitdump_move, old_code_addr, 32);
JD_ASSERT_AT(jitdump_move, code_index, 56);
JD_ASSERT_SIZE(jitdump_debug_info, 32);
JD_ASSERT_AT(jitdump_debug_info, nr_entry, 24);
JD_ASSERT_SIZE(jitdump_debug_entry, 16);
JD_ASSERT_AT(jitdump_debug_entry, line, 8);
JD_ASSERT_SIZE(jitdump_unwinding_info, 40);
JD_ASSERT_AT(jitdump_unwinding_info, mapped_size, 32);
JD_ASSERT_SIZE(jitdump_close, 16);
JD_ASSERT_SIZE(jitdump_trailer, 12);

#endif
