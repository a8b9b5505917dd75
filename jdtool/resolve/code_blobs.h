/*
 * The blobs of a dump's code that samples touch, each fetched from the dump once: its method, and
 * which methods are inlined where.
 */
#ifndef JD_TOOL_PIECES_H
#define JD_TOOL_PIECES_H

#include "jdtool/resolve/arena.h"
#include "jdtool/resolve/dumps.h"

/* Inlined methods of one address beyond this many are left out, the outermost of them, which is
 * counted: only a hostile dump has more (HotSpot's -XX:MaxInlineLevel is 15). */
#define INLINE_DEPTH_MAX 256

/* Inline trees of one dump in memory; beyond it they are fetched anew. */
#define BLOB_BYTES_MAX ((size_t)64 << 20)

/* What all look-ups share. */
struct blob_context {
    struct methods *methods;
    struct code_details details; /* of the last fetch */
    uint64_t inlines_cut;
};

/* For dumps.c: a dump's own part. */
void code_blobs_start(struct jvm_dump *dump);
void code_blobs_free(struct jvm_dump *dump);

/* How the code's frames look, as far as the dump tells; always the same object. */
const struct blob_frames *code_blobs_shape(struct blob_context *context, struct jvm_dump *dump,
                                           uint32_t blob);

/* The code of a stay; always the same one. NULL: no memory. */
const struct resolved_code *code_blobs_code(struct blob_context *context, struct jvm_dump *dump,
                                            const struct code_stay *stay);

/*
 * The frames of an address in that code, innermost first, the compiled method last: *count of them,
 * in the arena; caller: a call returns behind the address. NULL: no memory.
 */
struct resolved_frame *code_blobs_frames(struct blob_context *context, struct jvm_dump *dump,
                                         const struct resolved_code *code, uint64_t address,
                                         bool caller, struct arena *arena, uint32_t *count);

#endif
