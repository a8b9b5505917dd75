/*
 * Gives samples with a copy of their stack (perf record --call-graph dwarf) the call chain that the
 * copy shows: what a reader would otherwise unwind at every report is unwound once.
 */
#ifndef JD_TOOL_STACK_COPIES_H
#define JD_TOOL_STACK_COPIES_H

#include "jdtool/resolve/jvms.h"
#include "jdtool/resolve/native_code.h"
#include "jdtool/unwind/interpreter.h"
#include "jdtool/unwind/unwind.h"

/* Why walks ended. Beyond enum unwind_end: the kernel copies a stack up to the first page that was
 * never touched, however much was asked for. */
enum stack_end {
    STACK_ROOT = UNWIND_ROOT,
    STACK_COPY_SHORT = UNWIND_COPY_ENDS, /* asked for too little */
    STACK_UNKNOWN_CODE = UNWIND_UNKNOWN_CODE,
    STACK_NO_FRAME_INFO = UNWIND_NO_FRAME_INFO,
    STACK_BROKEN = UNWIND_BROKEN,
    STACK_TOO_DEEP = UNWIND_TOO_DEEP,
    STACK_COPY_CUT = UNWIND_END_COUNT, /* cut by the kernel */
    STACK_ENDS,
};

struct stack_counts {
    uint64_t stacks[STACK_ENDS];      /* all samples with a copy */
    uint64_t java_stacks[STACK_ENDS]; /* those with a frame in generated code */
    uint64_t frozen; /* went through a thawed continuation: its callers are in the heap */
    uint64_t interpreted_frames; /* of java_stacks */
    uint64_t interpreted_named;
};

struct stack_copies;

/* The machine of a recording, as e_machine; EM_NONE: none whose stacks can be unwound here. */
unsigned stack_copies_machine(struct perf_data *data, const struct jvms *jvms);

/* For a recording of such a machine. The jvms and the native code must live longer. NULL: no
 * memory. */
struct stack_copies *stack_copies_new(unsigned machine, const struct jvms *jvms,
                                      struct native_code *native);
void stack_copies_free(struct stack_copies *copies); /* NULL is fine */

/*
 * Replaces the user part of the sample's call chain by what its stack copy shows; the chain lives
 * until the next call. A sample without a copy stays as it is; one of a 32-bit program gets
 * its own address alone. process may be NULL: nobody known.
 */
void stack_copies_unwind(struct stack_copies *copies, const struct process *process,
                         struct perf_sample *sample);

/* The frames of the last sample that was unwound, and what one of them interprets; for tests. */
const struct unwind_frame *stack_copies_frames(const struct stack_copies *copies, uint32_t *count);
bool stack_copies_interpreted(struct stack_copies *copies, const struct unwind_frame *frame,
                              struct interpreted_frame *out);

/* Of all stacks unwound so far. */
const struct stack_counts *stack_copies_counts(const struct stack_copies *copies);

#endif
