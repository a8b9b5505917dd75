/*
 * What the files behind resolver.h share: resolver.c has the recording's records and what becomes
 * of a sample, sample_stack.c the sample's frames.
 */
#ifndef JD_TOOL_RESOLVER_PRIVATE_H
#define JD_TOOL_RESOLVER_PRIVATE_H

#include "jdtool/resolve/deopt_names.h"
#include "jdtool/resolve/known_stacks.h"
#include "jdtool/resolve/places.h"
#include "jdtool/resolve/resolver.h"

/* A copy of 64 KB has room for no more return addresses. */
#define UNWOUND_MAX 8192

/* Room for the name of a virtual thread, which journals cut (THREADS_TEXT_MAX). */
#define VIRTUAL_NAME_MAX 2048

/* A stack's outermost frames are searched for the thread's root: unwinders may go a little too
 * far. */
#define ROOT_DEPTH 3

struct resolver {
    struct perf_data *data;
    struct resolver_options options;
    unsigned machine; /* e_machine */
    bool unwinds;
    struct methods *methods;
    struct objects *objects;
    struct object *kernel;
    struct kernel_place kernel_place;
    struct module *kernel_module;
    struct process_table *table;
    struct dumps *dumps;
    struct places *places;
    struct known_stacks *known_stacks;
    struct hash_map by_detail; /* of interpreted methods: their detail -> place in interpreted */
    struct interpreted {
        const struct method_detail *detail;
        const struct resolved_method *method;
    } * interpreted;
    uint32_t interpreted_count;
    uint32_t interpreted_room;
    uint32_t given_sources; /* by resolver_codes: all stays of so many, */
    uint32_t *given;        /* and of each so many */
    uint32_t given_room;
    uint64_t frames_cut;
    struct deopt_names deopts;
    char virtual_name[VIRTUAL_NAME_MAX]; /* of the thread that waits */

    /* The sample at hand. */
    struct process *process;
    uint64_t time;
    struct resolved_frame *frames;
    uint32_t frame_count;
    uint32_t frame_room;
    const struct resolved_code **touched;
    uint32_t touched_count;
    uint32_t touched_room;
    struct place *outermost[ROOT_DEPTH]; /* of the user's part, a ring */
    uint32_t user_places;
    bool passed_barrier;
    bool remembers;                  /* its frames may be taken from the thread's last stack, */
    const struct known_stack *known; /* and were: frames and codes are there; NULL: here */
    struct place **place_list;       /* of its chain */
    uint32_t place_room;
    bool failed;
    struct unwind_frame unwound[UNWOUND_MAX];
};

/* ---- sample_stack.c ---- */

/*
 * Makes the frames of a sample of resolver->process: of its copy, its branch stack, its chain, or
 * of its own address. Says how the stack ends. Without memory the resolver has failed.
 * sample->unwound is set where the frames are not the chain's.
 */
enum stack_end sample_stack(struct resolver *resolver, struct perf_sample *sample);

/* Room for `count` more frames; fewer, when there are too many, and then the outermost are cut. */
uint32_t sample_stack_reserve(struct resolver *resolver, uint32_t count);

#endif
