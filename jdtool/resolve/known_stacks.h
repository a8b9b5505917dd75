/*
 * The stacks that threads had last. From one sample to the next a thread's stack changes at its
 * inner end, as a rule: of a javac run 6 in 10 chains are new, and 9 in 10 of their addresses were
 * there before. Those frames stay where they are, and only what is further in is looked up.
 */
#ifndef JD_TOOL_KNOWN_STACKS_H
#define JD_TOOL_KNOWN_STACKS_H

#include "jdtool/resolve/places.h"

/* One address of a stack, and what is true from there on outwards. */
struct known_step {
    uint64_t pc;
    uint64_t until; /* so long the places hold */
    struct place *place;
    uint32_t frames;
    uint32_t touched;
    bool passed_barrier;
};

/* Whose stack, and what was known then: another state, and places may have other frames. */
struct known_key {
    uint32_t tid;
    uint32_t process; /* its number */
    uint32_t generation;
    uint64_t state;
    uint64_t version;
};

/* Arrays are filled from their ends: the outermost is the last, the innermost at [room - count]. */
struct known_stack {
    struct known_key key;
    uint64_t time;
    struct known_step *steps;
    uint32_t count;
    uint32_t room;
    struct resolved_frame *frames;
    uint32_t frame_room;
    const struct resolved_code **touched;
    uint32_t touched_room;
};

struct known_stacks;

struct known_stacks *known_stacks_new(void);         /* NULL: no memory */
void known_stacks_free(struct known_stacks *stacks); /* NULL is fine */

/*
 * The stack that a thread had last, cut to what is true of one with these addresses, the innermost
 * first, at that time; ->count says how much that is. NULL: it is too deep to be kept.
 */
struct known_stack *known_stacks_find(struct known_stacks *stacks, const struct known_key *key,
                                      uint64_t time, const uint64_t *pcs, uint64_t count);

/*
 * Puts `count` addresses further in, the innermost first, with their places and the frames of
 * these; behind frames of the kernel's part, which stand before them all and are not kept. version:
 * that of the places now. False: it is too deep to be kept, or there is no memory; nothing is then
 * known of it.
 */
bool known_stack_extend(struct known_stack *stack, uint64_t version, const uint64_t *pcs,
                        struct place *const *places, uint32_t count,
                        const struct resolved_frame *frames, uint32_t frame_count);

/* Nothing is known of it. */
void known_stack_forget(struct known_stack *stack);

#endif
