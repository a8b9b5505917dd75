/*
 * What is at an address of a process, looked up once and kept: its location, and how to step to the
 * caller from there. A hot address costs one look into a hash map, until its process maps something
 * or its dump grows.
 */
#ifndef JD_TOOL_PLACES_H
#define JD_TOOL_PLACES_H

#include "jdtool/objects/objects.h"
#include "jdtool/resolve/pieces.h"
#include "jdtool/resolve/stack_table.h"
#include "jdtool/unwind/unwind.h"

#include <stddef.h>

/* What every sample's frame looks at stands first, in one line of the processor's cache. */
struct place {
    /* For whom, and for when. */
    uint64_t pc;
    uint64_t from;
    uint64_t until;
    uint64_t mappings_state;
    uint32_t process;     /* its number; 0: the kernel's */
    uint32_t mapped_file; /* the number of what is mapped there; 0: nothing that was looked into */
    uint32_t generation;
    bool caller;

    bool is_caller; /* of its lines */
    bool has_code_row;
    int8_t is_root; /* a thread begins here; -1: not asked yet */
    uint32_t location;
    uint32_t last_node;  /* see stack_table_node_again */
    uint32_t line_count; /* of the location */
    uint64_t module_address;

    struct unwind_place unwind;
    struct object *file;              /* what is mapped there, found or not; NULL: no file */
    const struct code_source *source; /* NULL: no generated code */
    const struct resolved_code *code; /* the same */
    const struct module *module;      /* NULL: in none */
    const struct native_row *row;     /* one that lasts; NULL: to be asked for */
    const struct frame_row *code_row; /* once it was asked for */
};

/* The place whose `unwind` it is. */
static inline struct place *place_of(const struct unwind_place *unwind)
{
    return (struct place *)((char *)unwind - offsetof(struct place, unwind));
}

struct places;

struct places_options {
    struct methods *methods;
    struct objects *objects;
    const struct process_codes *codes;
    bool symbolize; /* name native functions */
    bool unwind;    /* work out how to step to callers */
};

struct places *places_new(const struct places_options *options); /* NULL: no memory */
void places_free(struct places *places);                         /* NULL is fine */

/* No process maps the file any more: what is kept of it goes. */
void places_file_gone(struct places *places, const struct mapped_file *file);

/* All that was found is thrown away, the stacks with it, and the files' modules. */
void places_clear(struct places *places);

/* Before each sample: what was found may be thrown away for want of room, the stacks with it. */
void places_make_room(struct places *places);

/* The locations of all places, to make stacks of. */
struct stack_table *places_stacks(struct places *places);

/* Changes when a place is thrown away, or gets another location although it held for a while. */
uint64_t places_version(const struct places *places);

/*
 * What is at a pc of a process at a time; caller: the pc is a return address, and what is before it
 * counts. process NULL: nothing is known. Lives until places_make_room. Without memory a place
 * where nothing is.
 */
struct place *places_at(struct places *places, const struct process *process, uint64_t time,
                        uint64_t pc, bool caller);

/* Told before they are asked for: a pc, and return addresses behind it. */
void places_prefetch(const struct places *places, const struct process *process,
                     const uint64_t *pcs, uint32_t count);

/* The same for the kernel, whose object is given. */
struct place *places_at_kernel(struct places *places, uint64_t pc, struct object *kernel,
                               const struct module *module);

/* Whether threads begin at this place. */
bool place_is_root(struct place *place);

/* The rows for unwind(). */
const struct native_row *places_row(struct places *places, const struct place *place);
const struct frame_row *places_code_row(struct place *place);

struct piece_context *places_pieces(struct places *places);

/* Whether there was no memory for a place. */
bool places_failed(const struct places *places);

#endif
