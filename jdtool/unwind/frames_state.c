#include "jdtool/unwind/frames_state.h"

/* Frames are far smaller; keeps sums of hostile displacements inside an int32_t. */
#define FRAME_LIMIT (INT32_C(1) << 28)

static bool join_number(int32_t *into, int32_t other)
{
    if (*into == FLOW_UNKNOWN || *into == other) {
        return false;
    }
    *into = FLOW_UNKNOWN;
    return true;
}

/*
 * A place that one path counts from the CFA and another one, which lost the CFA, from sp: the same
 * word, as long as they agree on its distance from sp.
 */
static void join_place(const struct flow_state *into, uint8_t *place, int32_t *offset,
                       uint8_t other_place, int32_t other_offset)
{
    if (*place == FRAME_AT_CFA && other_place == FRAME_AT_SP && into->sp != FLOW_UNKNOWN &&
        *offset + into->sp == other_offset) {
        *place = FRAME_AT_SP;
        *offset = other_offset;
    }
}

bool flow_state_join(struct flow_state *into, const struct flow_state *other)
{
    bool changed = false;
    if (into->interpreted != other->interpreted) {
        return false; /* the interpreter's codelets are seeded with what they are: first one wins */
    }
    if (into->alias_reg != other->alias_reg && into->alias != FLOW_UNKNOWN) {
        into->alias = FLOW_UNKNOWN;
        changed = true;
    }
    join_place(into, &into->ra, &into->ra_offset, other->ra, other->ra_offset);
    join_place(into, &into->fp_place, &into->fp_offset, other->fp_place, other->fp_offset);
    changed |= join_number(&into->sp, other->sp);
    changed |= join_number(&into->fp, other->fp);
    changed |= join_number(&into->alias, other->alias);
    if (into->kept_at != other->kept_at && into->kept_fp != FLOW_UNKNOWN) {
        into->kept_fp = FLOW_UNKNOWN;
        changed = true;
    }
    changed |= join_number(&into->kept_fp, other->kept_fp);
    if (into->saved_at != other->saved_at && into->saved != FLOW_UNKNOWN) {
        into->saved = FLOW_UNKNOWN;
        changed = true;
    }
    changed |= join_number(&into->saved, other->saved);
    if (into->ra_copy != other->ra_copy && into->ra_copy != FLOW_NO_REG) {
        into->ra_copy = FLOW_NO_REG;
        changed = true;
    }
    /*
     * Paths that disagree on where the return address or the fp is: the first one stays. In real
     * code these meet only behind a call that never returns.
     */
    return changed;
}

bool flow_state_is_plain(const struct flow_state *state)
{
    return state->alias == FLOW_UNKNOWN && state->saved == FLOW_UNKNOWN &&
           state->ra_copy == FLOW_NO_REG && state->ra != FRAME_IN_REG;
}

void flow_state_interpreted(struct flow_state *state)
{
    state->interpreted = true;
    state->alias = FLOW_UNKNOWN;
    state->saved = FLOW_UNKNOWN;
    state->ra_copy = FLOW_NO_REG;
    state->ra = FRAME_NOWHERE;
}

/* sp's distance is lost: places relative to the CFA can no longer be told from sp. */
static void lose_sp(struct flow_state *state)
{
    state->sp = FLOW_UNKNOWN;
    state->saved = FLOW_UNKNOWN;
    if (state->ra == FRAME_AT_SP) {
        state->ra = FRAME_NOWHERE;
    }
    if (state->fp_place == FRAME_AT_SP) {
        state->fp_place = FRAME_NOWHERE;
    }
}

static void move_place(uint8_t *place, int32_t *offset, int32_t by)
{
    if (*place == FRAME_AT_SP) {
        *offset -= by;
        if (*offset < -FRAME_LIMIT || *offset > FRAME_LIMIT) {
            *place = FRAME_NOWHERE;
        }
    }
}

static void add_sp(struct flow_state *state, int32_t by)
{
    if (by < -FRAME_LIMIT || by > FRAME_LIMIT) {
        lose_sp(state);
        return;
    }
    if (state->sp != FLOW_UNKNOWN) {
        state->sp -= by;
        if (state->sp < -FRAME_LIMIT || state->sp > FRAME_LIMIT) {
            lose_sp(state);
        }
    }
    move_place(&state->ra, &state->ra_offset, by);
    move_place(&state->fp_place, &state->fp_offset, by);
    if (state->saved != FLOW_UNKNOWN) {
        state->saved_at -= by;
        if (state->saved_at < 0 || state->saved_at > FRAME_LIMIT) {
            state->saved = FLOW_UNKNOWN;
        }
    }
    bool popped =
        (state->ra == FRAME_AT_SP && state->ra_offset < 0) ||
        (state->ra == FRAME_AT_CFA && state->sp != FLOW_UNKNOWN && state->ra_offset < -state->sp);
    if (popped && state->ra_copy != FLOW_NO_REG) {
        state->ra = FRAME_IN_REG;
        state->ra_reg = state->ra_copy;
        state->ra_copy = FLOW_NO_REG;
    }
}

/* Whether a place is the memory at sp + value. */
static bool is_at(const struct flow_state *state, uint8_t place, int32_t offset, int32_t value)
{
    if (place == FRAME_AT_SP) {
        return offset == value;
    }
    return place == FRAME_AT_CFA && state->sp != FLOW_UNKNOWN && offset == value - state->sp;
}

static void put_at(const struct flow_state *state, uint8_t *place, int32_t *offset, int32_t value)
{
    if (state->sp != FLOW_UNKNOWN) {
        *place = FRAME_AT_CFA;
        *offset = value - state->sp;
    } else {
        *place = FRAME_AT_SP;
        *offset = value;
    }
}

static void overwrite(struct flow_state *state, const struct flow_rules *rules, uint8_t reg)
{
    if (reg == FLOW_NO_REG) {
        return;
    }
    if (reg == state->alias_reg) {
        state->alias = FLOW_UNKNOWN;
    }
    if (reg == state->ra_copy) {
        state->ra_copy = FLOW_NO_REG;
    }
    if (state->ra == FRAME_IN_REG && state->ra_reg == reg) {
        state->ra = FRAME_NOWHERE;
    }
    if (reg == rules->fp_reg) {
        state->fp = FLOW_UNKNOWN;
        if (state->fp_place == FRAME_SAME) {
            state->fp_place = FRAME_NOWHERE;
        }
    }
}

/* Compiled code keeps the CFA aligned to 16 bytes; whoever is called from elsewhere cannot know. */
static void align_sp(struct flow_state *state, const struct flow_rules *rules, int32_t to)
{
    bool aligned = rules->shape == FRAMES_COMPILED || rules->shape == FRAMES_JUMPED_TO;
    if (aligned && to == 16 && state->sp != FLOW_UNKNOWN && state->sp >= 0) {
        add_sp(state, -((16 - state->sp % 16) % 16));
    } else {
        lose_sp(state);
    }
}

static void copy_sp(struct flow_state *state, const struct flow_rules *rules, uint8_t reg,
                    int32_t value)
{
    if (reg == rules->fp_reg) {
        /*
         * sp was aligned, but the return address and the fp have just been pushed: from here on
         * the frame is counted from them (Continuation.enterSpecial's interpreted entry).
         */
        if (state->sp == FLOW_UNKNOWN && state->ra == FRAME_AT_SP &&
            state->fp_place == FRAME_AT_SP) {
            state->sp = state->ra_offset + 8;
            state->ra = FRAME_AT_CFA;
            state->ra_offset = -8;
            state->fp_place = FRAME_AT_CFA;
            state->fp_offset -= state->sp;
        }
        int32_t fp = state->sp == FLOW_UNKNOWN ? FLOW_UNKNOWN : state->sp - value;
        overwrite(state, rules, reg);
        state->fp = fp;
        return;
    }
    overwrite(state, rules, reg);
    /* Only sp itself is kept to be restored, or where the caller's is: not an address in the frame,
     * as of the handle that a native static method gets. The first one, for C2's String.indexOf
     * copies sp once more, behind the room that it makes. */
    bool is_kept = value == 0 || value == state->sp;
    if (state->sp != FLOW_UNKNOWN && state->alias == FLOW_UNKNOWN && is_kept) {
        state->alias_reg = reg;
        state->alias = state->sp - value;
    }
}

static void sp_from(struct flow_state *state, const struct flow_rules *rules, uint8_t reg,
                    int32_t value)
{
    int32_t base = FLOW_UNKNOWN;
    if (reg == rules->fp_reg) {
        base = state->fp;
    } else if (reg == state->alias_reg) {
        base = state->alias;
    }
    lose_sp(state);
    state->sp = base == FLOW_UNKNOWN ? FLOW_UNKNOWN : base - value;
}

static void load_sp(struct flow_state *state, int32_t value)
{
    int32_t saved = state->saved_at == value ? state->saved : FLOW_UNKNOWN;
    lose_sp(state);
    state->sp = saved;
}

static void store(struct flow_state *state, const struct flow_rules *rules, uint8_t reg,
                  int32_t value)
{
    if (state->saved != FLOW_UNKNOWN && state->saved_at == value) {
        state->saved = FLOW_UNKNOWN;
    }
    if (reg == FLOW_NO_REG) {
        return;
    }
    if (reg == state->alias_reg && state->alias != FLOW_UNKNOWN) {
        state->saved = state->alias;
        state->saved_at = value;
    }
    if (state->ra == FRAME_IN_REG && state->ra_reg == reg) {
        put_at(state, &state->ra, &state->ra_offset, value);
    } else if (reg == rules->fp_reg && state->fp_place == FRAME_SAME) {
        put_at(state, &state->fp_place, &state->fp_offset, value);
    } else if (reg == rules->fp_reg && state->fp != FLOW_UNKNOWN && state->sp != FLOW_UNKNOWN) {
        state->kept_fp = state->fp; /* a stub that saves all registers */
        state->kept_at = value - state->sp;
    } else if (rules->shape == FRAMES_INTERPRETER && state->fp != FLOW_UNKNOWN &&
               state->sp != FLOW_UNKNOWN && state->sp - value == state->fp + 8) {
        /* generate_fixed_frame: the sender's sp goes to fp - 8; the frame is complete. */
        flow_state_interpreted(state);
    }
}

static void load(struct flow_state *state, const struct flow_rules *rules, uint8_t reg,
                 int32_t value)
{
    bool is_ra = is_at(state, state->ra, state->ra_offset, value);
    bool is_fp = is_at(state, state->fp_place, state->fp_offset, value);
    overwrite(state, rules, reg);
    if (is_fp && reg == rules->fp_reg) {
        state->fp_place = FRAME_SAME;
    } else if (reg == rules->fp_reg && state->kept_fp != FLOW_UNKNOWN &&
               state->sp != FLOW_UNKNOWN && state->kept_at == value - state->sp) {
        state->fp = state->kept_fp;
    } else if (is_ra && reg != FLOW_NO_REG) {
        state->ra_copy = reg;
    }
}

static void load_by_fp(struct flow_state *state, const struct flow_rules *rules, uint8_t reg,
                       int32_t value)
{
    bool is_fp = reg == rules->fp_reg && state->fp != FLOW_UNKNOWN &&
                 state->fp_place == FRAME_AT_CFA && state->fp_offset == value - state->fp;
    overwrite(state, rules, reg);
    if (is_fp) {
        state->fp_place = FRAME_SAME;
    }
}

/* Inside an interpreted frame only the ways out of it matter. */
static void step_interpreted(struct flow_state *state, const struct flow_rules *rules,
                             const struct flow_step *step)
{
    if (step->kind == FLOW_LOAD_FP && step->value == -8) {
        state->alias_reg = step->reg; /* remove_activation fetches the sender's sp */
        state->alias = 0;
    } else if (step->kind == FLOW_SP_FROM && step->reg == rules->fp_reg && step->value == 0) {
        state->interpreted = false;
        state->sp = FLOW_UNKNOWN;
        state->fp = FLOW_UNKNOWN;
        state->ra = FRAME_AT_SP;
        state->ra_offset = 8;
        state->fp_place = FRAME_AT_SP;
        state->fp_offset = 0;
    } else if (step->kind == FLOW_CALL ||
               ((step->kind == FLOW_CLOBBER || step->kind == FLOW_LOAD ||
                 step->kind == FLOW_LOAD_FP || step->kind == FLOW_COPY_SP) &&
                step->reg == state->alias_reg)) {
        state->alias = FLOW_UNKNOWN;
    }
}

void flow_state_step(struct flow_state *state, const struct flow_rules *rules,
                     const struct flow_step *step)
{
    if (state->interpreted) {
        step_interpreted(state, rules, step);
        return;
    }
    switch (step->kind) {
    case FLOW_SP_ADD:
        add_sp(state, step->value);
        break;
    case FLOW_SP_FROM:
        sp_from(state, rules, step->reg, step->value);
        break;
    case FLOW_SP_LOAD:
        load_sp(state, step->value);
        break;
    case FLOW_SP_LOST:
        lose_sp(state);
        break;
    case FLOW_SP_ALIGN:
        align_sp(state, rules, step->value);
        break;
    case FLOW_COPY_SP:
        copy_sp(state, rules, step->reg, step->value);
        break;
    case FLOW_STORE:
        store(state, rules, step->reg, step->value);
        break;
    case FLOW_LOAD:
        load(state, rules, step->reg, step->value);
        break;
    case FLOW_LOAD_FP:
        load_by_fp(state, rules, step->reg, step->value);
        break;
    case FLOW_CLOBBER:
        overwrite(state, rules, step->reg);
        break;
    case FLOW_CALL:
        if (state->alias != FLOW_UNKNOWN && !(rules->callee_saved >> state->alias_reg & 1)) {
            state->alias = FLOW_UNKNOWN;
        }
        if (state->ra == FRAME_IN_REG && !(rules->callee_saved >> state->ra_reg & 1)) {
            state->ra = FRAME_NOWHERE;
        }
        state->ra_copy = FLOW_NO_REG;
        break;
    default:
        break;
    }
}
