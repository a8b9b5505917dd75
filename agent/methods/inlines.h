/*
 * From the JVM's debug information, a stack of (method, bytecode) for each of many places in the
 * code, to line rows and an inline tree (writer/code.h). Knows keys of the JVM's methods, but no
 * JVM.
 *
 * A builder is scratch: it keeps its memory from one piece of code to the next. What it hands out
 * lives until the next inline_builder_begin. One thread at a time.
 */
#ifndef JD_AGENT_INLINES_H
#define JD_AGENT_INLINES_H

#include "agent/methods/java_method.h"

/*
 * What stands for a method in a piece of code: its jmethodID, or whatever else is one for one. It
 * is never followed.
 */
typedef uint64_t method_key;

enum inline_depth {
    INLINE_FULL, /* rows and the tree */
    INLINE_LEAF, /* rows with the lines of the innermost method; no tree */
    INLINE_OFF,  /* rows with the lines of the compiled method itself; no tree */
};

/* Tells the method of a key, or NULL where it cannot be known. `id`: where the jmethodID is that
 * goes with it; NULL: the key is that. */
typedef const struct java_method *(*method_resolver)(void *context, method_key key, const void *id);

struct inline_builder;

/* NULL: no memory. */
struct inline_builder *inline_builder_new(void);
void inline_builder_free(struct inline_builder *builder);

/* Starts on `size` bytes of code compiled for the method `root` that goes by `root_key`. */
void inline_builder_begin(struct inline_builder *builder, enum inline_depth depth, uint32_t size,
                          method_key root_key, const struct java_method *root,
                          method_resolver resolve, void *context);

/*
 * Call it behind inline_builder_begin: the code is C2's, of this machine, and these are its bytes,
 * which are there until inline_builder_finish. See the head of inlines.c.
 */
void inline_builder_of_c2(struct inline_builder *builder, const uint8_t *bytes);

#define INLINE_NO_FRAME UINT32_MAX

/*
 * The frame of a method at a bytecode that `sender` called, INLINE_NO_FRAME: the compiled method's
 * own. It counts until the next inline_builder_begin or inline_builder_add. INLINE_NO_FRAME: no
 * memory.
 */
uint32_t inline_builder_frame(struct inline_builder *builder, uint32_t sender, method_key key,
                              const void *id, int32_t bci);

/*
 * Adds the code from where the last call ended up to the offset `end`, whose innermost frame that
 * is; INLINE_NO_FRAME: of code that is in none. A range that is empty or lies behind the code is
 * left out.
 */
void inline_builder_place(struct inline_builder *builder, uint32_t end, uint32_t frame);

/*
 * The same by a whole stack, of ids: methods[0] at bcis[0] is the innermost frame, methods[n - 1]
 * the compiled method. Not to be mixed with the others.
 */
void inline_builder_add(struct inline_builder *builder, uint32_t end, const method_key *methods,
                        const int32_t *bcis, int32_t n);

/*
 * Sets the rows, nodes and ranges of *code. Code behind the last range gets a row of the compiled
 * method's first line. When memory ran out on the way there are none of them, and -ENOMEM is
 * returned.
 */
int inline_builder_finish(struct inline_builder *builder, struct code *code);

#endif
