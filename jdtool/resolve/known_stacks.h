/*
 * The stacks that threads had last. From one sample to the next a thread's stack changes at its
 * inner end, as a rule: of a javac run 6 in 10 chains are new, and 9 in 10 of their addresses were
 * there before. Of those nothing is looked up, only what is further in.
 */
#ifndef JD_TOOL_KNOWN_STACKS_H
#define JD_TOOL_KNOWN_STACKS_H

#include "jdtool/resolve/locations.h"

/* A stack's outermost frames are searched for the thread's root: unwinders may go a little too
 * far. */
#define ROOT_DEPTH 3

/* What is at an address of a stack. */
struct known_place {
    struct addr_location *al;
    uint32_t location; /* its own, or what is interpreted there */
    uint64_t until;    /* so long it holds */
};

/* One address of a stack, and what is true from there on outwards. */
struct known_step {
    uint64_t pc;    /* or whatever else tells what is there from all else */
    uint64_t until; /* so long the locations hold */
    uint32_t node;
    uint32_t lines : 16;
    uint32_t passed_barrier : 1;
    uint32_t by_name : 1;  /* it depends on the names of methods */
    uint32_t stretch : 14; /* of the dump (addr_location_stretch) */
};

/* Whose stack, and what was known then: another state, and addresses may have other locations, in
 * another generation those where the dump has grown. */
struct known_key {
    uint32_t tid;
    uint32_t process; /* its number */
    uint32_t generation;
    uint64_t state;
    uint64_t version;
};

/* Steps are filled from their end: the outermost is the last, the innermost at [room - count]. */
struct known_stack {
    struct known_key key;
    uint64_t time;
    struct known_step *steps;
    uint32_t count;
    uint32_t room;
    struct addr_location *outermost[ROOT_DEPTH]; /* [0]: of the outermost step */
};

/* What is true of the whole; there is at least one step. */
static inline const struct known_step *known_stack_innermost(const struct known_stack *stack)
{
    return &stack->steps[stack->room - stack->count];
}

struct known_stacks;

struct known_stacks *known_stacks_new(void);         /* NULL: no memory */
void known_stacks_free(struct known_stacks *stacks); /* NULL is fine */

/*
 * The stack that a thread had last, cut to what is true of one with these addresses, the innermost
 * first, at that time; ->count says how much that is. dump: the process' latest, NULL: it has none.
 * NULL: it is too deep to be kept, or there is no memory.
 */
struct known_stack *known_stacks_find(struct known_stacks *stacks, const struct known_key *key,
                                      const struct jvm_dump *dump, uint64_t time,
                                      const uint64_t *pcs, uint64_t count);

/*
 * Puts `count` addresses further in, the innermost first, with what is there and `lines` of it,
 * and makes their nodes. version: that of the locations now. False: it is too deep to be kept, or
 * there is no memory; nothing is then known of it.
 */
bool known_stack_extend(struct known_stack *stack, struct stack_table *stacks, uint64_t version,
                        const uint64_t *pcs, const struct known_place *places, uint32_t count,
                        uint32_t lines);

/* Nothing is known of it. */
void known_stack_forget(struct known_stack *stack);

#endif
