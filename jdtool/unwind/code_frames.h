/*
 * The call-frame rows of all code in a dump, each piece worked out when it is first asked for.
 */
#ifndef JD_TOOL_CODE_FRAMES_H
#define JD_TOOL_CODE_FRAMES_H

#include "jdtool/jitdump/code_index.h"
#include "jdtool/unwind/frames.h"

struct code_frames;

/*
 * What is known of one piece of code. The facts are there at once; the rows, which cost an analysis
 * of the code, when they are asked for. Without bytes in the dump, or on a processor we do not
 * know, `frames` is empty.
 */
struct blob_frames {
    struct frames frames;
    enum frames_shape shape;
    int64_t told_frame_size; /* by the JVM, in the trailer; -1: not told */
    int64_t compile_id;      /* the same */
    bool is_method;          /* an nmethod, by the trailer */
    bool return_barrier;     /* frames_is_return_barrier */
    bool continuation_entry; /* Continuation.enterSpecial */
    bool yields;             /* Continuation.doYield */
    bool known;              /* the facts */
    bool ready;              /* the rows */
};

/* For an index that has to outlive it. NULL: no memory. */
struct code_frames *code_frames_new(struct code_index *index);
void code_frames_free(struct code_frames *frames); /* NULL is fine */

/* The facts alone. details: of the blob, where somebody has fetched them already; NULL: they are
 * fetched. Never NULL for a blob of the index, and always the same object. */
const struct blob_frames *code_frames_facts(struct code_frames *frames, uint32_t blob,
                                            const struct code_details *details);

/* The same with the rows, which live until the index grows. */
const struct blob_frames *code_frames_of(struct code_frames *frames, uint32_t blob);

/* Makes those of the interpreter, which take longest. False: the index has none yet. */
bool code_frames_of_interpreter(struct code_frames *frames);

/* The two steps, for those who read a dump without an index: the facts by the code's name and its
 * trailer's (NULL: it has none); behind these the rows, by all of *code but its shape. */
void blob_frames_facts(const char *name, const int64_t *facts, struct blob_frames *blob);
void blob_frames_rows(unsigned machine, struct frames_code *code, struct blob_frames *blob);

/* The size of the frame in a method's body, return address included; 0: not known. */
static inline uint32_t blob_frame_size(const struct blob_frames *blob)
{
    bool told = blob->told_frame_size > 0 && blob->told_frame_size <= INT32_MAX;
    return told ? (uint32_t)blob->told_frame_size : blob->frames.frame_size;
}

/* Whether a frame of it in which Java code was called gives its caller by its size alone. */
static inline bool blob_steps_by_size(const struct blob_frames *blob)
{
    return blob->shape == FRAMES_COMPILED && blob->told_frame_size > 0 && !blob->continuation_entry;
}

#endif
