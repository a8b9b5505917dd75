/*
 * Writes the trailer of a DEBUG_INFO record (format/jitdump.h): the inline tree and what else the
 * JVM knows of a piece of code. One encoder goes along with a dump from its first record to its
 * last, for it knows what the dump has defined. Not thread-safe.
 */
#ifndef JD_WRITER_TRAILER_ENCODER_H
#define JD_WRITER_TRAILER_ENCODER_H

#include "writer/buffer.h"
#include "writer/code.h"

struct trailer_encoder {
    uint64_t round;   /* in which what is defined now was; no other dump ever has the same */
    bool frozen_told; /* code_facts.frozen, the same for all code of a JVM */
    /* The sections of one trailer, whose lengths stand before them. */
    struct buffer files;
    struct buffer methods;
    struct buffer inlines;
    struct buffer facts;
};

void trailer_encoder_init(struct trailer_encoder *encoder);
void trailer_encoder_free(struct trailer_encoder *encoder);

/*
 * Appends the trailer of this code to `out`, nothing when there is nothing to say. `tree_rows`: the
 * record has no entries, for tree_gives_rows. `late`: see JITDUMP_CODE_LATE, 0: it is not.
 */
void trailer_encode(struct trailer_encoder *encoder, const struct code *code, bool tree_rows,
                    uint64_t late, struct buffer *out);

/*
 * Takes back that anything has been defined: for when trailers that trailer_encode made did not
 * reach the dump, or another dump begins. What is needed again is defined again.
 */
void trailer_encoder_forget(struct trailer_encoder *encoder);

/* ---- Rows of the tree ---- */

/*
 * Whether a piece of code's line rows can be had from its inline tree again (format/jitdump.h,
 * "Rows from the tree"), so that a dump for readers of trees need not have both.
 */

/* False as well where there is no tree, or one whose files or methods have no ids. Linear in rows
 * and ranges. */
bool tree_gives_rows(const struct code *code);

#endif
