#include "jdtool/resolve/known_stacks.h"

#include <stdlib.h>
#include <string.h>

/* Threads, by the lowest bits of their ids: those of a JVM follow each other. A power of two. */
#define KNOWN_STACKS 2048

/* Deeper ones are not kept: perf's default is 127 addresses, and HotSpot inlines 9 levels deep. */
#define KNOWN_STEPS_MAX 2048
#define KNOWN_LINES_MAX 4096

_Static_assert(sizeof(struct known_step) == 24, "thousands of threads have some dozens each");
_Static_assert(STRETCHES < 1 << 14, "struct known_step");

struct known_stacks {
    struct known_stack *list[KNOWN_STACKS]; /* NULL: no such thread yet; a JVM may have a dozen */
};

struct known_stacks *known_stacks_new(void)
{
    return calloc(1, sizeof(struct known_stacks));
}

void known_stacks_free(struct known_stacks *stacks)
{
    for (uint32_t i = 0; stacks && i < KNOWN_STACKS; i++) {
        if (stacks->list[i]) {
            free(stacks->list[i]->steps);
            free(stacks->list[i]);
        }
    }
    free(stacks);
}

/* Room for so many steps, at least for one. False: no memory. */
static bool make_room(struct known_stack *stack, uint32_t wanted)
{
    if (stack->steps && wanted <= stack->room) {
        return true;
    }
    uint32_t room = stack->room ? stack->room : 64;
    while (room < wanted) {
        room *= 2;
    }
    struct known_step *steps = malloc(room * sizeof *steps);
    if (!steps) {
        return false;
    }
    if (stack->count) {
        memcpy(steps + (room - stack->count), known_stack_innermost(stack),
               stack->count * sizeof *steps);
    }
    free(stack->steps);
    stack->steps = steps;
    stack->room = room;
    return true;
}

static bool is_same(const struct known_key *a, const struct known_key *b)
{
    return a->tid == b->tid && a->process == b->process && a->state == b->state &&
           a->version == b->version;
}

void known_stack_forget(struct known_stack *stack)
{
    stack->count = 0;
}

/*
 * How many of the outermost addresses are the same. The innermost one is no return address, so it
 * is looked up otherwise than the same address further out: it is only the same where all are.
 */
static uint32_t count_same(const struct known_stack *stack, const uint64_t *pcs, uint64_t count)
{
    const struct known_step *end = stack->steps + stack->room;
    uint64_t least = stack->count < count ? stack->count : count;
    uint64_t same = 0;
    while (same < least && end[-(int64_t)same - 1].pc == pcs[count - same - 1]) {
        same++;
    }
    if (same > 0 && same == least && stack->count != count) {
        same--;
    }
    return (uint32_t)same;
}

/* How many of the outermost are true still, though the dump has grown. */
static uint32_t count_standing(const struct known_stack *stack, const struct jvm_dump *dump,
                               uint32_t count)
{
    uint32_t generation = stack->key.generation;
    uint32_t i = 0;
    for (; i < count; i++) {
        const struct known_step *step = &stack->steps[stack->room - 1 - i];
        if (step->stretch == STRETCHES || !jvm_dump_stands(dump, generation, step->stretch) ||
            (step->by_name && generation < dump->names_came)) {
            break;
        }
    }
    return i;
}

struct known_stack *known_stacks_find(struct known_stacks *stacks, const struct known_key *key,
                                      const struct jvm_dump *dump, uint64_t time,
                                      const uint64_t *pcs, uint64_t count)
{
    struct known_stack **kept = &stacks->list[key->tid % KNOWN_STACKS];
    if (count > KNOWN_STEPS_MAX || (!*kept && !(*kept = calloc(1, sizeof **kept)))) {
        return NULL;
    }
    struct known_stack *stack = *kept;
    uint32_t same = 0;
    if (stack->count && time >= stack->time && is_same(&stack->key, key)) {
        same = count_same(stack, pcs, count);
        while (same > 0 && stack->steps[stack->room - same].until <= time) {
            same--;
        }
        if (stack->key.generation != key->generation) {
            same = dump ? count_standing(stack, dump, same) : 0;
        }
    }
    stack->key = *key;
    stack->time = time;
    stack->count = same;
    return stack;
}

/* One address further in than what is known. False: no memory. */
static bool add_step(struct known_stack *stack, struct stack_table *stacks, uint64_t pc,
                     const struct known_place *place)
{
    struct addr_location *al = place->al;
    struct known_step step = {.pc = pc,
                              .until = place->until,
                              .lines = al->line_count,
                              .passed_barrier = unwind_place_hides(&al->unwind),
                              .stretch = addr_location_stretch(al),
                              .by_name = place->location != al->location};
    uint32_t caller = 0;
    if (stack->count) {
        const struct known_step *outer = known_stack_innermost(stack);
        caller = outer->node;
        step.until = outer->until < step.until ? outer->until : step.until;
        step.lines += outer->lines;
        step.passed_barrier |= outer->passed_barrier;
    }
    step.node = stack_table_node_again(stacks, caller, place->location, &al->last_node);
    if (stack->count < ROOT_DEPTH) {
        stack->outermost[stack->count] = al;
    }
    stack->steps[stack->room - ++stack->count] = step;
    return step.node != HASH_MAP_NONE;
}

bool known_stack_extend(struct known_stack *stack, struct stack_table *stacks, uint64_t version,
                        const uint64_t *pcs, const struct known_place *places, uint32_t count,
                        uint32_t lines)
{
    uint32_t known = stack->count ? known_stack_innermost(stack)->lines : 0;
    bool kept = lines <= KNOWN_LINES_MAX - known && make_room(stack, stack->count + count);
    for (uint32_t i = count; i > 0 && kept; i--) {
        kept = add_step(stack, stacks, pcs[i - 1], &places[i - 1]);
    }
    stack->key.version = version;
    if (!kept) {
        stack->count = 0;
    }
    return kept;
}
