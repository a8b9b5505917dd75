/*
 * A method's bytecodes as text, one line for each instruction, for viewers that have no source:
 *
 *      0: aload_0  // line 12
 *      1: getfield #7  // pkg/Cls.count:I
 *      4: ifge 9
 *
 * Needs no JVM. Bytecodes and constant pool come from one (JVMTI's GetBytecodes, GetConstantPool),
 * but are taken for whatever they may be.
 */
#ifndef JD_AGENT_BYTECODES_H
#define JD_AGENT_BYTECODES_H

#include "agent/java_method.h"
#include "writer/buffer.h"

/* A constant pool in the class file's format (JVMS 4.4). Zeroed: none is known. */
struct constant_pool {
    const uint8_t *bytes;
    size_t size;
    uint32_t *offsets; /* of each entry's tag, 0: none; `count` of them */
    uint32_t count;
};

/* Finds the entries of a pool of `count`, as the class file counts them. The bytes stay the
 * caller's. False: no memory. What is broken has no entries. */
bool constant_pool_open(struct constant_pool *pool, const uint8_t *bytes, size_t size,
                        uint32_t count);
void constant_pool_close(struct constant_pool *pool);

/* Appends the text, without a NUL. `lines` are in the order of line_table_sort. */
void bytecodes_list(struct buffer *out, const uint8_t *code, size_t size,
                    const struct line_entry *lines, uint32_t line_count,
                    const struct constant_pool *pool);

#endif
