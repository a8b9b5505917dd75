/*
 * A method's bytecodes as text, one line for each instruction, for viewers that have no source:
 *
 *      0: aload_0  // line 12
 *      1: getfield #7  // pkg/Cls.count:I
 *      4: ifge 9
 *
 * Bytecodes and constant pool are a class file's, and taken for whatever they may
 * be.
 */
#ifndef JD_TOOL_BYTECODES_H
#define JD_TOOL_BYTECODES_H

#include "jdtool/base/bytes.h"

/* A constant pool in the class file's format (JVMS 4.4). Zeroed: none is known. */
struct constant_pool {
    const uint8_t *bytes;
    size_t used;       /* bytes of its entries */
    uint32_t *offsets; /* of each entry's tag, 0: none; `count` of them */
    uint32_t count;
};

/* Finds the entries of a pool of `count`, as the class file counts them. The bytes stay the
 * caller's. False: no memory. What is broken has no entries. */
bool constant_pool_open(struct constant_pool *pool, const uint8_t *bytes, size_t size,
                        uint32_t count);
void constant_pool_close(struct constant_pool *pool);

/* Bytecodes from `bci` up to the next entry's belong to this line. */
struct bytecode_line {
    uint32_t bci;
    uint32_t line;
};

/* Appends the text, without a NUL, up to the instruction that passes `limit` bytes in all. `lines`
 * are sorted. */
void bytecodes_list(struct bytes *out, const uint8_t *code, size_t size,
                    const struct bytecode_line *lines, uint32_t line_count,
                    const struct constant_pool *pool, size_t limit);

/* ---- Class files ---- */

/*
 * A class file's methods as text: a line with name and descriptor, then their bytecodes
 * (bytecodes.h). Class files are taken for whatever they may be.
 */

/* Appends the text, as far as the file makes sense; of CLASS_LISTING_MAX bytes and one instruction
 * at most. 0 or -ENOMEM. */
int class_listing(struct bytes *out, const uint8_t *bytes, size_t size);

#define CLASS_LISTING_MAX ((size_t)4 * 1024 * 1024)

#endif
