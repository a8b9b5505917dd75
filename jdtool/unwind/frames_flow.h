/*
 * The data-flow pass behind frames.h, for any processor: an architecture decodes an instruction
 * into at most a few steps on the stack pointer, the frame pointer and memory above the stack
 * pointer; the pass follows every path through the code and keeps, per instruction, what is known
 * of the caller's frame.
 */
#ifndef JD_TOOL_FRAMES_FLOW_H
#define JD_TOOL_FRAMES_FLOW_H

#include "jdtool/unwind/frames_state.h"

#define FLOW_STEPS_MAX 6

enum flow_control {
    FLOW_NEXT,    /* goes on behind the instruction */
    FLOW_BRANCH,  /* there, or at the target */
    FLOW_JUMP,    /* at the target */
    FLOW_CALLS,   /* there, when the target returns */
    FLOW_STOP,    /* nowhere in this code */
    FLOW_INVALID, /* no instruction */
};

struct flow_insn {
    uint8_t control; /* enum flow_control */
    uint8_t length;
    uint8_t step_count;
    bool has_target;
    int64_t target; /* offset from the code's start, perhaps outside it */
    struct flow_step steps[FLOW_STEPS_MAX];
};

struct flow_arch {
    uint8_t fp_reg;
    uint64_t callee_saved;   /* bit n: register n outlives a call of native code */
    struct flow_state entry; /* at the first instruction of a callee */
    /* Fills *insn for the instruction at offset; FLOW_INVALID when there is none. */
    void (*decode)(void *context, const struct frames_code *code, uint32_t offset,
                   struct flow_insn *insn);
    /* The same for common instructions, quickly, where no register but sp and fp matters. False: it
     * is none of these. NULL: there is no such function. */
    bool (*skim)(const uint8_t *bytes, uint32_t size, uint32_t offset, struct flow_insn *insn);
    /* Bytes behind a jump of a compiled method that are left of an instruction that it stands for
     * until that is patched in; 0: it is a jump as others are. NULL: there are none such. */
    uint32_t (*left_of_patched)(const struct frames_code *code, uint32_t offset);
};

struct flow;

/*
 * Follows every path from offset with this state in front of it, joining states where paths meet.
 * 0 or -ENOMEM.
 */
int flow_follow(struct flow *flow, uint32_t offset, const struct flow_state *state);

/* True when an instruction at offset was reached. */
bool flow_reached(const struct flow *flow, uint32_t offset);

/* What the pass has to know of HotSpot's code on that processor. */
struct flow_code {
    /* The state in front of the first instruction. */
    struct flow_state (*start)(const struct frames_code *code);
    /* Follows a compiled method from behind its entry, where that was patched: nobody enters it any
     * more, and its frames go on running. 0 or -ENOMEM. */
    int (*follow_patched_entry)(struct flow *flow, const struct frames_code *code);
    /* Makes the state at a place that no path reached, of the body's. */
    void (*guess_body)(const struct frames_code *code, uint32_t offset, struct flow_state *state);
    struct flow_interpreter {
        struct flow_state entry; /* where a method is entered */
        uint32_t code_alignment; /* of codelets: CodeEntryAlignment */
        /* Whether a codelet without a bytecode is a method's entry; most run inside frames. */
        bool (*is_entry)(const uint8_t *bytes, size_t size);
    } interpreter;
};

/* The rows and figures of that code; `context` is for arch's decode. Returns as frames_x86_64 and
 * its like do (frames.h). */
int flow_frames(const struct flow_arch *arch, const struct flow_code *of_code,
                const struct frames_code *code, void *context, struct frames *frames);

#endif
