/*
 * What is known of the caller's frame in front of an instruction, how an instruction's steps change
 * it, and what remains of it where paths meet. A field only ever goes from known to unknown there.
 *
 * Places are kept relative to the CFA while the distance of sp is known, as sp may move, and
 * relative to sp otherwise (an adapter aligns sp: the distance is lost, the return address is not).
 */
#ifndef JD_TOOL_FRAMES_STATE_H
#define JD_TOOL_FRAMES_STATE_H

#include "jdtool/unwind/frames.h"

#define FLOW_NO_REG 0xff

enum flow_step_kind {
    FLOW_SP_ADD,   /* sp += value */
    FLOW_SP_FROM,  /* sp = reg + value */
    FLOW_SP_LOAD,  /* sp = [sp + value] */
    FLOW_SP_LOST,  /* sp = something else */
    FLOW_SP_ALIGN, /* sp = sp rounded down to a multiple of value */
    FLOW_COPY_SP,  /* reg = sp + value */
    FLOW_STORE,    /* [sp + value] = reg, FLOW_NO_REG: of no interest */
    FLOW_LOAD,     /* reg = [sp + value], FLOW_NO_REG: somewhere else */
    FLOW_LOAD_FP,  /* reg = [fp + value] */
    FLOW_CLOBBER,  /* reg = something else */
    FLOW_CALL,     /* the caller-saved registers are lost */
};

struct flow_step {
    uint8_t kind; /* enum flow_step_kind */
    uint8_t reg;  /* DWARF's number */
    int32_t value;
};

/* What is known in front of an instruction. FLOW_UNKNOWN: the CFA cannot be told from it. */
#define FLOW_UNKNOWN INT32_MIN
struct flow_state {
    int32_t sp;      /* CFA - sp */
    int32_t fp;      /* CFA - fp */
    int32_t alias;   /* CFA - alias_reg: the sender's sp that adapters hand over in a register */
    int32_t kept_fp; /* CFA - fp of a frame pointer that was stored at CFA + kept_at */
    int32_t kept_at;
    int32_t saved; /* CFA - the stack pointer that was stored at sp + saved_at */
    int32_t saved_at;
    int32_t ra_offset;
    int32_t fp_offset;
    uint8_t alias_reg;
    uint8_t ra; /* enum frame_place */
    uint8_t ra_reg;
    uint8_t ra_copy;  /* a register that holds the return address besides; FLOW_NO_REG: none */
    uint8_t fp_place; /* enum frame_place: where the caller's fp is */
    bool interpreted; /* inside an interpreted frame: fp tells all */
    uint8_t none[2];  /* no padding: states are compared as bytes */
};

/* What steps mean in a piece of code. */
struct flow_rules {
    uint8_t fp_reg;
    uint64_t callee_saved; /* bit n: register n outlives a call of native code */
    enum frames_shape shape;
};

/* What holds behind a step. */
void flow_state_step(struct flow_state *state, const struct flow_rules *rules,
                     const struct flow_step *step);

/* Takes what another path says into *into. True when that changed it. */
bool flow_state_join(struct flow_state *into, const struct flow_state *other);

/*
 * Puts it inside an interpreted frame, where fp tells all. What registers told of the caller is
 * forgotten, for they are used for other things: r13, which handed over the sender's sp, is the
 * bytecode pointer there.
 */
void flow_state_interpreted(struct flow_state *state);

/* Whether no register but sp and fp tells of the caller. It stays so: what joins gives nothing. */
bool flow_state_is_plain(const struct flow_state *state);

#endif
