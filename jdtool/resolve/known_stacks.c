#include "jdtool/resolve/known_stacks.h"

#include <stdlib.h>
#include <string.h>

/* Threads, by the lowest bits of their ids: those of a JVM follow each other. A power of two. */
#define KNOWN_STACKS 64

/* Deeper ones are not kept: perf's default is 127 addresses, and HotSpot inlines 9 levels deep. */
#define KNOWN_STEPS_MAX  2048
#define KNOWN_FRAMES_MAX 4096

struct known_stacks {
    struct known_stack list[KNOWN_STACKS];
};

struct known_stacks *known_stacks_new(void)
{
    return calloc(1, sizeof(struct known_stacks));
}

void known_stacks_free(struct known_stacks *stacks)
{
    for (uint32_t i = 0; stacks && i < KNOWN_STACKS; i++) {
        free(stacks->list[i].steps);
        free(stacks->list[i].frames);
        free((void *)stacks->list[i].touched);
    }
    free(stacks);
}

/* Room for so many elements of an array whose last `used` ones are; it is there afterwards, even
 * for none. False: no memory. */
static bool make_room(void *array_pointer, uint32_t *room, uint32_t used, uint32_t wanted,
                      size_t element)
{
    void **array = array_pointer;
    if (*array && wanted <= *room) {
        return true;
    }
    uint32_t grown_room = *room ? *room : 64;
    while (grown_room < wanted) {
        grown_room *= 2;
    }
    char *grown = malloc(grown_room * element);
    if (!grown) {
        return false;
    }
    if (*array) {
        memcpy(grown + (grown_room - used) * element, (char *)*array + (*room - used) * element,
               used * element);
    }
    free(*array);
    *array = grown;
    *room = grown_room;
    return true;
}

static bool is_same(const struct known_key *a, const struct known_key *b)
{
    return a->tid == b->tid && a->process == b->process && a->generation == b->generation &&
           a->state == b->state && a->version == b->version;
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

struct known_stack *known_stacks_find(struct known_stacks *stacks, const struct known_key *key,
                                      uint64_t time, const uint64_t *pcs, uint64_t count)
{
    struct known_stack *stack = &stacks->list[key->tid % KNOWN_STACKS];
    if (count > KNOWN_STEPS_MAX) {
        return NULL;
    }
    uint32_t same = 0;
    if (stack->count && time >= stack->time && is_same(&stack->key, key)) {
        same = count_same(stack, pcs, count);
        while (same > 0 && stack->steps[stack->room - same].until <= time) {
            same--;
        }
    }
    stack->key = *key;
    stack->time = time;
    stack->count = same;
    return stack;
}

/* One address further in than what is known. */
static void add_step(struct known_stack *stack, uint64_t pc, struct place *place)
{
    struct known_step step = {.pc = pc,
                              .until = place->until,
                              .place = place,
                              .frames = place->frame_count,
                              .passed_barrier = place->unwind.barrier};
    if (stack->count) {
        const struct known_step *outer = &stack->steps[stack->room - stack->count];
        step.until = outer->until < step.until ? outer->until : step.until;
        step.frames += outer->frames;
        step.touched = outer->touched;
        step.passed_barrier |= outer->passed_barrier;
    }
    const struct resolved_code **touched = stack->touched + (stack->touched_room - step.touched);
    if (place->code && (step.touched == 0 || *touched != place->code)) {
        touched[-1] = place->code;
        step.touched++;
    }
    stack->steps[stack->room - ++stack->count] = step;
}

bool known_stack_extend(struct known_stack *stack, uint64_t version, const uint64_t *pcs,
                        struct place *const *places, uint32_t count,
                        const struct resolved_frame *frames, uint32_t frame_count)
{
    static const struct known_step none;
    const struct known_step *outer =
        stack->count ? &stack->steps[stack->room - stack->count] : &none;
    uint32_t known_frames = outer->frames;
    uint32_t known_touched = outer->touched;
    if (frame_count > KNOWN_FRAMES_MAX - known_frames ||
        !make_room(&stack->steps, &stack->room, stack->count, stack->count + count,
                   sizeof *stack->steps) ||
        !make_room(&stack->frames, &stack->frame_room, known_frames, known_frames + frame_count,
                   sizeof *stack->frames) ||
        !make_room(&stack->touched, &stack->touched_room, known_touched, known_touched + count,
                   sizeof(struct resolved_code *))) {
        stack->count = 0;
        return false;
    }
    memcpy(stack->frames + (stack->frame_room - known_frames - frame_count), frames,
           frame_count * sizeof *frames);
    for (uint32_t i = count; i > 0; i--) {
        add_step(stack, pcs[i - 1], places[i - 1]);
    }
    stack->key.version = version;
    return true;
}
