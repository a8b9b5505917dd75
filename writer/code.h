/*
 * What the writer speaks about: one piece of generated code. The agent fills a struct code for each
 * JVM event; every sink takes it from there. Nothing here knows a JVM.
 *
 * Strings are NUL-terminated, valid UTF-8, without newlines. All pointers belong to the caller and
 * have to live until the sink's call returns.
 */
#ifndef JD_WRITER_CODE_H
#define JD_WRITER_CODE_H

#include "format/jitdump.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Source files and methods are described in a dump once and referred to by id afterwards: `id` is
 * unique in the process and never used again (1 and up; 0: the caller numbers nothing, and the sink
 * leaves it out of the trailer). `defined` is the dump's own note that it has been described, also
 * where only a pointer to const leads to it: 0 at first, and one dump at a time may speak of it.
 */
struct source_file {
    const char *path; /* package path + SourceFile: "java/util/HashMap.java" */
    uint64_t defined;
    uint32_t id;
};

struct method {
    const char *name;               /* as symbols show it, in the style that `names` asks for */
    const struct source_file *file; /* NULL: unknown */
    const char *class_name;         /* "java.util.HashMap"; NULL: unknown */
    uint64_t defined;
    uint32_t first_line; /* of its line table, 0: unknown */
    uint32_t id;
};

/* Code from `offset` up to the next row's belongs to this line. */
struct code_row {
    uint32_t offset;                /* from the code's start, in bytes */
    uint32_t line;                  /* 1 and up */
    const struct source_file *file; /* never NULL */
};

/* One method at one place of the inline tree. Node 0 is the compiled method, without a parent. */
struct inline_node {
    const struct method *method;
    uint32_t parent;    /* index of an earlier node */
    uint32_t call_line; /* of the call, in the parent's file; 0: unknown */
};

/* Code from `offset` up to the next range's is `node`'s own, at `line` of its file (0: unknown). */
struct inline_range {
    uint32_t offset;
    uint32_t node;
    uint32_t line;
};

/* What the JVM knows of the code beside its place. -1: unknown, or there is none. */
struct code_facts {
    int32_t kind; /* enum jitdump_code_kind */
    int32_t tier; /* HotSpot's CompLevel, 0-4, or JITDUMP_TIER_JVMCI */
    int32_t frame_size;
    int32_t verified_entry; /* offset */
    int32_t osr_entry;      /* offset */
    int32_t osr_bci;
    int32_t compile_id;
    int32_t frame_complete;
    const int32_t *frozen; /* JITDUMP_CODE_FROZEN_FIRST and those behind it: of the JVM, as far as
                              is known then; NULL: nothing is */
};
#define CODE_FACTS_UNKNOWN ((struct code_facts){-1, -1, -1, -1, -1, -1, -1, -1, NULL})

struct kept; /* writer/occupancy/occupant.h */

struct code {
    uint64_t address;
    uint64_t size;     /* bytes; 0 is allowed */
    const void *bytes; /* size bytes; NULL: leave them out of the dump, which gets a hole */
    const char *name;  /* the symbol */
    bool patient;      /* whoever tells of it can wait for a slow disk */
    bool replayed;     /* told of again (GenerateEvents): dropped when it is known already */
    struct kept *kept; /* by who tells of it, until its end (occupant.h); NULL: nothing */
    const struct method *method; /* NULL for stubs */
    struct code_facts facts;

    /*
     * Sorted by offset, the first at 0, neighbours differ in file or line; the last row ends at
     * `size`: the sink writes the terminating row itself. May be empty.
     */
    const struct code_row *rows;
    uint32_t row_count;

    /* Depth-first; node 0 is `method`. Both empty when the tree is unknown or not wanted. */
    const struct inline_node *nodes;
    uint32_t node_count;
    /* Sorted, the first at 0. Code at and behind ranges_end belongs to no bytecode. */
    const struct inline_range *ranges;
    uint32_t range_count;
    uint32_t ranges_end;
};

#endif
