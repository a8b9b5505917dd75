/* What the files behind places.h share: place_made.c finds out what is at a place, places.c keeps
 * it. */
#ifndef JD_TOOL_PLACES_PRIVATE_H
#define JD_TOOL_PLACES_PRIVATE_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/resolve/places.h"

/* Most questions are of a few thousand addresses. A power of two. */
#define FRONT 2048

struct places {
    struct places_options options;
    struct piece_context pieces;
    struct chunks list; /* of struct place */
    struct hash_map by_pc;
    struct front {
        uint64_t hash;
        struct place *place; /* NULL: none */
    } front[FRONT];          /* those that were asked for last */
    struct stack_table *stacks;
    struct file_place {
        struct object *object; /* what is in it; NULL: nobody has asked yet */
        const struct module *module;
    } * files; /* of files that are mapped, by their index */
    uint32_t file_room;
    bool failed;

    /* The place that is being made. */
    const struct process *process;
    struct process_code codes; /* its */
    uint64_t time;
    struct code_place found;      /* the last code that was found for it */
    uint64_t until;               /* of all that was found */
    struct resolved_frame *lines; /* without what depends on the place; &one_line, or in arena */
    uint32_t line_count;
    struct resolved_frame one_line;
    struct arena arena;

    uint64_t version;

    struct place nowhere; /* for want of memory, and of a process */
    struct resolved_frame unknown;
};

/*
 * Finds out what is at place->pc of a process at a time, and until when that holds; its lines are
 * places->lines, which have no addresses yet. Without memory places->failed is set.
 */
void place_make(struct places *places, struct place *place, const struct process *process,
                uint64_t time);

/* The same in the kernel; object NULL: it is not known. */
void place_make_kernel(struct places *places, struct place *place, struct object *kernel,
                       const struct module *module);

#endif
