/*
 * The call-frame rows of all code in a dump, each piece worked out when it is first asked for.
 */
#ifndef JD_TOOL_CODE_FRAMES_H
#define JD_TOOL_CODE_FRAMES_H

#include "jdtool/jitdump/code_index.h"
#include "jdtool/unwind/frames.h"

struct code_frames;

/* Rows of one piece of code. Without bytes in the dump, or on a processor we do not know, `rows` is
 * empty. */
struct blob_frames {
    struct frames frames;
    enum frames_shape shape;
    int64_t told_frame_size; /* by the JVM, in the trailer; -1: not told */
    bool return_barrier;     /* frames_is_return_barrier */
    bool continuation_entry; /* Continuation.enterSpecial */
    bool ready;
};

/* For an index that has to outlive it. NULL: no memory. */
struct code_frames *code_frames_new(struct code_index *index);
void code_frames_free(struct code_frames *frames); /* NULL is fine */

/* Never NULL for a blob of the index. Lives as long as `frames`; its rows until the index grows. */
const struct blob_frames *code_frames_of(struct code_frames *frames, uint32_t blob);

#endif
