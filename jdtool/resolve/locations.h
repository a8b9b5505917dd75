/*
 * What is at an address of a process, looked up once and kept: its location, and how to step to the
 * caller from there. A hot address costs one look into a hash map, until its process maps something
 * or its dump grows.
 */
#ifndef JD_TOOL_LOCATIONS_H
#define JD_TOOL_LOCATIONS_H

#include "jdtool/objects/objects.h"
#include "jdtool/resolve/code_blobs.h"
#include "jdtool/resolve/stack_table.h"
#include "jdtool/unwind/unwind.h"

#include <stddef.h>

/* perf's name for it. What every sample's frame looks at stands first, in one line of the
 * processor's cache. */
struct addr_location {
    /* For whom, and for when. */
    uint64_t pc;
    uint64_t from;
    uint64_t until;
    uint64_t mappings_state;
    uint32_t process;     /* its number; 0: the kernel's */
    uint32_t mapped_file; /* the number of what is mapped there; 0: nothing that was looked into */
    uint32_t generation;
    bool caller;

    bool has_code_row;
    int8_t is_root; /* a thread begins here; -1: not asked yet */
    uint32_t location;
    uint32_t last_node;  /* see stack_table_node_again */
    uint32_t line_count; /* of the location */

    struct unwind_place unwind;
    struct object *file;              /* what is mapped there, found or not; NULL: no file */
    const struct jvm_dump *dump;      /* NULL: no generated code */
    const struct resolved_code *code; /* the same */
    const struct native_row *row;     /* one that lasts; NULL: to be asked for */
    const struct frame_row *code_row; /* once it was asked for */
};

/* The one whose `unwind` it is. */
static inline struct addr_location *addr_location_of(const struct unwind_place *unwind)
{
    return (struct addr_location *)((char *)unwind - offsetof(struct addr_location, unwind));
}

/* The part of a dump that tells whether what was found is true still; STRETCHES: none does. */
static inline uint32_t addr_location_stretch(const struct addr_location *al)
{
    const struct unwind_place *unwind = &al->unwind;
    bool is_told = (al->code || unwind->mapped) && !unwind->stub_section;
    return is_told ? jvm_dump_stretch(unwind->address) : STRETCHES;
}

struct locations;

struct locations_options {
    struct methods *methods;
    struct objects *objects;
    const struct process_codes *codes;
    bool symbolize; /* name native functions */
    bool unwind;    /* work out how to step to callers */
    bool sparing;   /* memory matters more than what it takes to find them anew */
};

struct locations *locations_new(const struct locations_options *options); /* NULL: no memory */
void locations_free(struct locations *locations);                         /* NULL is fine */

/* No process maps the file any more: what is kept of it goes. */
void locations_file_gone(struct locations *locations, const struct mapped_file *file);

/* All that was found is thrown away, the stacks with it, and the files' modules. */
void locations_clear(struct locations *locations);

/* Before each sample: what was found may be thrown away for want of room, the stacks with it. */
void locations_make_room(struct locations *locations);

/* Whether the next time something will be. Until then no stack and no location moves. */
bool locations_are_full(const struct locations *locations);

/* Reads what of the file at an address of a process takes longest, its symbols and the table of its
 * rows, before somebody asks: of each file once. Nothing where there is no file, or no memory. */
void locations_prepare(struct locations *locations, const struct process *process,
                       uint64_t address);

/* All locations, to make stacks of. */
struct stack_table *locations_stacks(struct locations *locations);

/* Changes when one is thrown away, or gets another location although it held for a while. */
uint64_t locations_version(const struct locations *locations);

/*
 * What is at a pc of a process at a time; caller: the pc is a return address, and what is before it
 * counts. process NULL: nothing is known. Lives until locations_make_room. Without memory one
 * where nothing is.
 */
struct addr_location *locations_at(struct locations *locations, const struct process *process,
                                   uint64_t time, uint64_t pc, bool caller);

/* Told before they are asked for: a pc, and return addresses behind it. */
void locations_prefetch(const struct locations *locations, const struct process *process,
                        const uint64_t *pcs, uint32_t count);

/* The same for the kernel, whose object is given. */
struct addr_location *locations_at_kernel(struct locations *locations, uint64_t pc,
                                          struct object *kernel, const struct module *module);

/* Whether threads begin there. */
bool addr_location_is_root(struct addr_location *al);

/* The rows for unwind(). */
const struct native_row *locations_row(struct locations *locations, const struct addr_location *al);
const struct frame_row *locations_code_row(struct addr_location *al);

struct blob_context *locations_blobs(struct locations *locations);

/* Whether there was no memory for one. */
bool locations_failed(const struct locations *locations);

#endif
