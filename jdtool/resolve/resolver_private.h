/*
 * What the files behind resolver.h share: resolver.c has the recording's records and what becomes
 * of a sample, sample_stack.c the sample's frames.
 */
#ifndef JD_TOOL_RESOLVER_PRIVATE_H
#define JD_TOOL_RESOLVER_PRIVATE_H

#include "jdtool/events/event_rule.h"
#include "jdtool/perf/walked.h"
#include "jdtool/resolve/known_stacks.h"
#include "jdtool/resolve/locations.h"
#include "jdtool/resolve/resolver.h"

/* A copy of 64 KB has room for no more return addresses. */
#define UNWOUND_MAX 8192

/* Room for the name of a virtual thread, which journals cut (THREADS_TEXT_MAX). */
#define VIRTUAL_NAME_MAX 2048

/* Once so many JVMs are dead, or there are so many methods and twice as many as then, all that was
 * made of samples is made anew. */
#define DEAD_MAX         64
#define DEAD_MAX_SPARING 8
#define METHODS_MAX      (UINT32_C(1) << 17)

/*
 * What points to what:
 *
 *addr_location ──> location <── stack node ──> caller's node
 *       │           └──> method, module, code
 *       ├──> code dump of a process ──> its blobs and codes ──> method, module
 *       └──> object of a mapped file
 *
 * Sinks keep nodes' numbers and pointers to methods, modules and codes. So none of these goes while
 * a sink may have one; resolver_forget throws all of them away together.
 */
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
    struct process_listener listener; /* to that */
    struct dumps *dumps;
    struct locations *locations;
    struct known_stacks *known_stacks;
    struct hash_map by_detail; /* of interpreted methods: their detail -> place in interpreted */
    struct interpreted {
        const struct method_detail *detail;
        const struct resolved_method *method;
    } * interpreted;
    uint32_t interpreted_count;
    uint32_t interpreted_room;
    uint32_t *given;        /* by resolver_codes: of each source so many stays, */
    uint32_t given_sources; /* all of those of so many */
    uint32_t given_room;
    uint32_t methods_then; /* how many there were some time after resolver_forget */
    uint64_t frames_cut;
    uint64_t walked;
    uint64_t refuted; /* of those that were walked */
    uint64_t compared, compared_short, compared_differing, compared_refuted;
    struct deopt_names deopts;
    char virtual_name[VIRTUAL_NAME_MAX]; /* of the thread that waits */

    /* The sample at hand. */
    struct process *process;
    uint64_t time;
    uint32_t node;   /* its outer part, as far as that is known; 0: nothing is */
    uint32_t *inner; /* locations of the rest, innermost first */
    uint32_t inner_count;
    uint32_t inner_room;
    uint32_t line_count; /* of the rest */
    uint32_t line_room;
    struct resolved_frame *lines; /* those of the stack of an event */
    const struct resolved_code **branches;
    uint32_t branch_count;
    uint32_t branch_room;
    struct addr_location *outermost[ROOT_DEPTH]; /* of the user's part, a ring */
    uint32_t user_locations;
    bool passed_barrier;
    bool remembers; /* it may be taken from the thread's last stack */
    bool failed;
    struct known_place *places; /* of its chain, or of what was walked */
    uint32_t place_room;
    struct walked_frame *walked_frames; /* as they were read; and what tells each from others */
    uint64_t *keys;
    uint32_t walked_room;
    uint32_t key_room;
    struct unwind_frame unwound[UNWOUND_MAX];
};

/* ---- sample_stack.c ---- */

/*
 * Makes the stack of a sample of resolver->process: of its copy, its branch stack, its chain, or of
 * its own address. Says how it ends. Without memory the resolver has failed. sample->unwound is set
 * where the frames are not the chain's.
 */
enum stack_end sample_stack(struct resolver *resolver, struct perf_sample *sample);

/* Puts a location of one line at the inner end of resolver->inner, or at its outer one. */
void sample_stack_put(struct resolver *resolver, const struct resolved_frame *line, bool innermost);

#endif
