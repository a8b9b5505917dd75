/*
 * How it works. Every reached instruction has one state: what held in front of it on the paths seen
 * so far. A work list takes an instruction, decodes it, changes the state by its steps and hands
 * the result on to its successors; where that says something else than another path did, the field
 * is given up (unknown), and the instruction goes back on the list. Fields only ever go from known
 * to unknown (frames_state.h), so this ends.
 *
 * Most instructions change nothing of the frame. So states are kept once, and instructions have a
 * state's number: equal numbers are equal states, which is most of what there is to compare.
 */
#include "jdtool/unwind/frames_flow.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* An interpreter has thirty thousand of these. What is told of the instruction is known once it has
 * been taken from the work list. */
struct reached {
    uint32_t state; /* its number */
    uint32_t offset;
    uint8_t length;
    uint8_t control;  /* enum flow_control */
    bool moves_frame; /* builds the frame or takes it down: that is not the body's */
    bool queued : 1;
    bool settled : 1; /* from an earlier, surer seed */
    bool guessed : 1; /* no path from an entry leads here */
};

_Static_assert(sizeof(struct reached) <= 12, "the pages of them cost as much as the decoding");

struct flow {
    const struct flow_arch *arch;
    const struct frames_code *code;
    struct flow_rules rules;
    void *context;
    uint32_t *index; /* by offset: place in `all` + 1, 0: not reached */
    struct reached *all;
    uint32_t count;
    uint32_t room;
    struct flow_state *states; /* none of them changes */
    uint32_t state_count;
    uint32_t state_room;
    uint32_t *work;
    uint32_t work_count;
    uint32_t work_room;
    bool guessing;
    int32_t depth; /* of the body, once guessing */
};

bool flow_reached(const struct flow *flow, uint32_t offset)
{
    return offset < flow->code->size && flow->index[offset] != 0;
}

static int queue(struct flow *flow, uint32_t at)
{
    if (flow->all[at].queued) {
        return 0;
    }
    if (ARRAY_RESERVE(flow->work, flow->work_count, flow->work_room)) {
        return -ENOMEM;
    }
    flow->all[at].queued = true;
    flow->work[flow->work_count++] = at;
    return 0;
}

static bool moves_frame(const struct flow_insn *insn)
{
    for (uint32_t i = 0; i < insn->step_count; i++) {
        if (insn->steps[i].kind <= FLOW_COPY_SP) {
            return true;
        }
    }
    return false;
}

static const struct flow_state *state_of(const struct flow *flow, const struct reached *reached)
{
    return &flow->states[reached->state];
}

static bool is_state(const struct flow *flow, uint32_t number, const struct flow_state *state)
{
    return memcmp(&flow->states[number], state, sizeof *state) == 0;
}

/* Gives the state a number, which is `like` where that is equal. 0 or -ENOMEM. */
static int number_state(struct flow *flow, const struct flow_state *state, uint32_t like,
                        uint32_t *number)
{
    *number = like;
    if (like < flow->state_count && is_state(flow, like, state)) {
        return 0;
    }
    if (ARRAY_RESERVE(flow->states, flow->state_count, flow->state_room)) {
        return -ENOMEM;
    }
    *number = flow->state_count;
    flow->states[flow->state_count++] = *state;
    return 0;
}

static void decode(const struct flow *flow, struct reached *there, struct flow_insn *insn)
{
    const struct flow_arch *arch = flow->arch;
    const struct frames_code *code = flow->code;
    uint32_t offset = there->offset;
    if (!arch->skim || !flow_state_is_plain(state_of(flow, there)) ||
        !arch->skim(code->bytes + offset, code->size - offset, offset, insn)) {
        arch->decode(flow->context, code, offset, insn);
    }
    uint32_t next = offset + insn->length;
    if (insn->control == FLOW_JUMP && code->shape == FRAMES_COMPILED && arch->left_of_patched &&
        next < code->size) {
        uint32_t left = arch->left_of_patched(code, next);
        insn->length += left;
        insn->control = left ? FLOW_BRANCH : FLOW_JUMP;
    }
    there->length = insn->length;
    there->control = insn->control;
    there->moves_frame = moves_frame(insn);
}

/* Joins what another path says, a state's number, to what is known there. */
static int join(struct flow *flow, uint32_t at, uint32_t other)
{
    struct reached *there = &flow->all[at];
    if (there->settled || there->state == other) {
        return 0;
    }
    struct flow_state joined = *state_of(flow, there);
    bool changes = flow_state_join(&joined, &flow->states[other]);
    if (!changes && is_state(flow, there->state, &joined)) {
        return 0;
    }
    int error = number_state(flow, &joined, other, &there->state);
    return error || !changes ? error : queue(flow, at);
}

/* A path arrives at an offset with the state of that number. */
static int arrive(struct flow *flow, int64_t offset, uint32_t state)
{
    if (offset < 0 || offset >= flow->code->size) {
        return 0;
    }
    uint32_t at = flow->index[offset];
    if (at) {
        return join(flow, at - 1, state);
    }
    if (ARRAY_RESERVE(flow->all, flow->count, flow->room)) {
        return -ENOMEM;
    }
    flow->all[flow->count] =
        (struct reached){.offset = (uint32_t)offset, .state = state, .guessed = flow->guessing};
    flow->index[offset] = ++flow->count;
    return queue(flow, flow->count - 1);
}

/* From the state of that number in front of an instruction to the one behind it. 0 or -ENOMEM. */
static int step(struct flow *flow, const struct flow_insn *insn, uint32_t *number)
{
    if (insn->step_count == 0) {
        return 0;
    }
    struct flow_state state = flow->states[*number];
    for (uint32_t i = 0; i < insn->step_count; i++) {
        flow_state_step(&state, &flow->rules, &insn->steps[i]);
    }
    return number_state(flow, &state, *number, number);
}

static int run(struct flow *flow)
{
    while (flow->work_count) {
        uint32_t at = flow->work[--flow->work_count];
        struct reached *there = &flow->all[at];
        struct flow_insn insn = {0};
        there->queued = false;
        decode(flow, there, &insn);
        uint32_t state = there->state;
        uint32_t next = there->offset + insn.length;
        int error = step(flow, &insn, &state);
        if (error) {
            return error;
        }
        if (insn.control == FLOW_NEXT || insn.control == FLOW_BRANCH ||
            insn.control == FLOW_CALLS) {
            error = arrive(flow, next, state);
        }
        if (!error && insn.has_target &&
            (insn.control == FLOW_BRANCH || insn.control == FLOW_JUMP)) {
            error = arrive(flow, insn.target, state);
        }
        if (error) {
            return error;
        }
    }
    return 0;
}

int flow_follow(struct flow *flow, uint32_t offset, const struct flow_state *state)
{
    uint32_t number;
    int error = number_state(flow, state, UINT32_MAX, &number);
    error = error ? error : arrive(flow, offset, number);
    return error ? error : run(flow);
}

/*
 * The distance of the frame that the body works in. Most instructions are at it, or most calls: an
 * inlined intrinsic may be the bulk of the code and has pushed registers, and the only calls may be
 * those of a garbage collector's barrier, which has, too. Either adds to the frame, so the smaller
 * one is meant. FLOW_UNKNOWN: no path from an entry knows it.
 */
static int32_t body_depth(const struct flow *flow)
{
    struct {
        int32_t depth;
        uint32_t calls;
        uint32_t insns;
    } seen[32] = {{0}};
    uint32_t count = 0;
    for (uint32_t i = 0; i < flow->count; i++) {
        const struct reached *reached = &flow->all[i];
        const struct flow_state *state = state_of(flow, reached);
        if (state->sp == FLOW_UNKNOWN || state->interpreted || reached->guessed) {
            continue;
        }
        uint32_t k = 0;
        while (k < count && seen[k].depth != state->sp) {
            k++;
        }
        if (k == count) {
            if (count == sizeof seen / sizeof seen[0]) {
                continue;
            }
            seen[count++].depth = state->sp;
        }
        seen[k].insns += !reached->moves_frame;
        seen[k].calls += reached->control == FLOW_CALLS;
    }
    int32_t entry = flow->arch->entry.sp;
    uint32_t by_insns = 0;
    uint32_t by_calls = 0;
    for (uint32_t k = 1; k < count; k++) {
        /* Outside of the frame is where the entry and the way out are, not the body. */
        bool inside = seen[k].depth != entry;
        bool best_inside = seen[by_insns].depth != entry;
        /* Of an empty method (JDK 8's C1) nothing is left; the frame is as deep as it gets. */
        bool deeper =
            seen[k].insns == 0 && seen[by_insns].insns == 0 && seen[k].depth > seen[by_insns].depth;
        if (inside != best_inside ? inside : seen[k].insns > seen[by_insns].insns || deeper) {
            by_insns = k;
        }
        if (seen[k].calls > seen[by_calls].calls) {
            by_calls = k;
        }
    }
    if (count == 0) {
        return FLOW_UNKNOWN;
    }
    if (seen[by_calls].calls && seen[by_calls].depth < seen[by_insns].depth) {
        return seen[by_calls].depth;
    }
    return seen[by_insns].depth;
}

/* The state of the body: that of the first instruction at the body's depth which lies behind a
 * call, or at least has the fp saved. */
static struct flow_state body_state(const struct flow *flow)
{
    int32_t depth = flow->depth;
    const struct flow_state *best = NULL;
    for (uint32_t i = 0; i < flow->count; i++) {
        const struct flow_state *state = state_of(flow, &flow->all[i]);
        if (state->sp != depth || depth == FLOW_UNKNOWN || state->interpreted) {
            continue;
        }
        if (!best || flow->all[i].control == FLOW_CALLS) {
            best = state;
            if (flow->all[i].control == FLOW_CALLS) {
                break;
            }
        }
    }
    struct flow_state body = best ? *best : flow->arch->entry;
    body.alias = FLOW_UNKNOWN;
    body.saved = FLOW_UNKNOWN;
    return body;
}

/* From here on what no path has reached is guessed. Costs a look at all that was reached. */
static struct flow_state begin_guessing(struct flow *flow)
{
    for (uint32_t i = 0; i < flow->count; i++) {
        flow->all[i].settled = true;
    }
    flow->guessing = true;
    flow->depth = body_depth(flow);
    return body_state(flow);
}

static int guess_rest(struct flow *flow, const struct flow_state *body, uint32_t from, uint32_t to,
                      void (*guess)(const struct frames_code *, uint32_t, struct flow_state *))
{
    uint32_t offset = from;
    while (offset < to) {
        uint32_t at = flow->index[offset];
        if (at) {
            offset += flow->all[at - 1].length;
            continue;
        }
        struct flow_state state = *body;
        guess(flow->code, offset, &state);
        uint32_t first = flow->count;
        int error = flow_follow(flow, offset, &state);
        if (error) {
            return error;
        }
        for (uint32_t i = first; i < flow->count; i++) {
            flow->all[i].settled = true;
        }
    }
    return 0;
}

/* From its start, and from the verified entry and the one of on-stack replacement, where it has
 * them, as any method is entered. Code that no path reached is guessed: exception handlers, further
 * entries. */
static int follow_code(struct flow *flow, const struct flow_code *of_code)
{
    const struct frames_code *code = flow->code;
    const struct flow_state *entry = &flow->arch->entry;
    struct flow_state start = of_code->start(code);
    int error = flow_follow(flow, 0, &start);
    if (!error && code->verified_entry > 0 && code->verified_entry < code->size) {
        error = flow_follow(flow, (uint32_t)code->verified_entry, entry);
    }
    if (!error && code->osr_entry > 0 && code->osr_entry < code->size) {
        error = flow_follow(flow, (uint32_t)code->osr_entry, entry);
    }
    if (!error && code->shape == FRAMES_COMPILED) {
        error = of_code->follow_patched_entry(flow, code);
    }
    if (error) {
        return error;
    }
    struct flow_state body = begin_guessing(flow);
    return guess_rest(flow, &body, 0, code->size, of_code->guess_body);
}

static void guess_interpreted(const struct frames_code *code, uint32_t offset,
                              struct flow_state *state)
{
    (void)code;
    (void)offset;
    flow_state_interpreted(state);
}

/* One codelet's code, [from, to). */
static int follow_codelet(struct flow *flow, const struct flow_interpreter *interpreter,
                          uint32_t from, uint32_t to, uint32_t bytecode)
{
    struct flow_state state = interpreter->entry;
    if (bytecode != UINT32_MAX || !interpreter->is_entry(flow->code->bytes + from, to - from)) {
        flow_state_interpreted(&state);
    }
    return flow_follow(flow, from, &state);
}

/*
 * The interpreter is a StubQueue of InterpreterCodelets, each with a header (description, size,
 * bytecode) and aligned code (interpreter.hpp; the same from 17 to 25). Where the bytes do not look
 * like that, all of it counts as the inside of interpreted frames.
 */
static int follow_interpreter(struct flow *flow, const struct flow_interpreter *interpreter)
{
    const struct frames_code *code = flow->code;
    uint64_t alignment = interpreter->code_alignment;
    for (int pass = 0; pass < 2; pass++) {
        struct flow_state body = pass == 0 ? interpreter->entry : begin_guessing(flow);
        uint32_t at = 0;
        while (code->size - at >= 16) {
            uint32_t size;
            uint32_t bytecode;
            memcpy(&size, code->bytes + at + 8, sizeof size);
            memcpy(&bytecode, code->bytes + at + 12, sizeof bytecode);
            if (size < 24 || size > code->size - at || size % 8 || (bytecode > 0xff && ~bytecode)) {
                break;
            }
            uint64_t aligned = (code->address + at + 16 + alignment - 1) / alignment * alignment;
            uint64_t from = aligned - code->address;
            int error = 0;
            if (from < at + size) {
                error = pass == 0
                            ? follow_codelet(flow, interpreter, (uint32_t)from, at + size, bytecode)
                            : guess_rest(flow, &body, (uint32_t)from, at + size, guess_interpreted);
            }
            if (error) {
                return error;
            }
            at += size;
        }
        if (pass == 0 && at == 0) {
            struct flow_state inside = interpreter->entry;
            flow_state_interpreted(&inside);
            return flow_follow(flow, 0, &inside);
        }
    }
    return 0;
}

static void row_of(const struct flow_state *state, struct frame_row *row)
{
    row->ra = state->ra;
    row->ra_offset = state->ra == FRAME_IN_REG ? 0 : state->ra_offset;
    row->ra_reg = state->ra == FRAME_IN_REG ? state->ra_reg : 0;
    row->fp = state->fp_place;
    row->fp_offset =
        state->fp_place == FRAME_AT_CFA || state->fp_place == FRAME_AT_SP ? state->fp_offset : 0;
    if (state->interpreted) {
        *row = (struct frame_row){.offset = row->offset, .cfa = FRAME_CFA_INTERPRETER};
    } else if (state->sp != FLOW_UNKNOWN) {
        row->cfa = FRAME_CFA_SP;
        row->cfa_offset = state->sp;
    } else if (state->fp != FLOW_UNKNOWN) {
        row->cfa = FRAME_CFA_FP;
        row->cfa_offset = state->fp;
    } else if (state->alias != FLOW_UNKNOWN) {
        row->cfa = FRAME_CFA_REG;
        row->cfa_reg = state->alias_reg;
        row->cfa_offset = state->alias;
    } else if (state->saved != FLOW_UNKNOWN && state->saved_at % 8 == 0 &&
               state->saved_at / 8 <= UINT8_MAX) {
        row->cfa = FRAME_CFA_SAVED;
        row->cfa_reg = (uint8_t)(state->saved_at / 8);
        row->cfa_offset = state->saved;
    } else if (state->ra == FRAME_AT_SP || state->ra == FRAME_IN_REG) {
        row->cfa = FRAME_CFA_SP;
        row->cfa_offset = state->ra == FRAME_AT_SP ? state->ra_offset + 8 : 0;
    } else {
        /* Nothing is left but the convention of frames with a frame pointer. */
        row->cfa = FRAME_CFA_FP;
        row->cfa_offset = 16;
        row->ra = FRAME_AT_CFA;
        row->ra_offset = -8;
        row->fp = FRAME_AT_CFA;
        row->fp_offset = -16;
    }
}

static int put_rows(const struct flow *flow, struct frames *frames)
{
    int32_t depth = flow->guessing ? flow->depth : body_depth(flow);
    uint32_t last = UINT32_MAX; /* the state of the last row */
    frames->count = 0;
    frames->frame_size = depth > 0 ? (uint32_t)depth : 0;
    frames->undecodable = 0;
    for (uint32_t offset = 0; offset < flow->code->size; offset++) {
        uint32_t at = flow->index[offset];
        if (!at) {
            continue;
        }
        const struct reached *reached = &flow->all[at - 1];
        if (!reached->guessed && reached->control == FLOW_INVALID) {
            frames->undecodable++;
        }
        if (reached->state == last) {
            continue;
        }
        last = reached->state;
        struct frame_row row = {.offset = frames->count ? offset : 0};
        row_of(state_of(flow, reached), &row);
        int error = frames_append(frames, &row);
        if (error) {
            return error;
        }
    }
    return 0;
}

int flow_frames(const struct flow_arch *arch, const struct flow_code *of_code,
                const struct frames_code *code, void *context, struct frames *frames)
{
    frames->count = 0;
    if (!code->bytes || code->size == 0 || code->size > FRAMES_CODE_MAX) {
        return -EINVAL;
    }
    struct flow flow = {
        .arch = arch,
        .code = code,
        .rules = {.fp_reg = arch->fp_reg, .callee_saved = arch->callee_saved, .shape = code->shape},
        .context = context,
        .index = calloc(code->size, sizeof *flow.index),
    };
    int error = !flow.index ? -ENOMEM
                : code->shape == FRAMES_INTERPRETER
                    ? follow_interpreter(&flow, &of_code->interpreter)
                    : follow_code(&flow, of_code);
    error = error ? error : put_rows(&flow, frames);
    free(flow.index);
    free(flow.all);
    free(flow.states);
    free(flow.work);
    return error;
}
