/*
 * What is mapped where: executable parts of the address spaces of processes, each a sorted array
 * without overlaps in which a new mapping cuts what it covers. A fork shares its parent's until one
 * of them maps something:
 *
 *     process 7 ──┐               ┌──────────────┬────────┬──────────┐
 *     its fork  ──┴─ references 2 │ 1000-5000  • │ 8000-  │ c000-  • │
 *                                 └────────────│─┴────────┴────────│─┘
 *     a file: held by each mapping of it       └──── /usr/lib/libc.so.6
 *
 *     1. Of each space the mappings ascend, none is empty, and none overlaps another.
 *     2. A file has as many holders as mappings point to it in all spaces, each of which counts
 *        once, however many processes share it; without any it is told to be gone, and freed.
 *     3. No two files that are held are the same.
 */
#ifndef JD_TOOL_ADDRESS_SPACE_H
#define JD_TOOL_ADDRESS_SPACE_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/perf/process_table.h"

/* What all spaces have in common. Start with SPACES_EMPTY. */
struct spaces {
    uint64_t next_state;
    uint32_t mapping_count; /* of all of them */
    uint64_t left_out;      /* mappings beyond MAPPINGS_MAX and PROCESS_MAPPINGS_MAX */
    struct chunks files;    /* of struct held_file, by index */
    uint32_t free_file;     /* one of them that is free, plus one; 0: none */
    uint32_t next_file_number;
    struct hash_map files_by_identity;
    struct intern paths;
    const struct process_listener *listener; /* NULL: nobody listens */
};

struct held_file {
    struct mapped_file file; /* first; of a free one `index` is the next free, plus one */
    uint32_t holders;
};

#define SPACES_EMPTY ((struct spaces){.files = {.element = sizeof(struct held_file)}})

/* When all spaces are let go. Nobody is told of files. */
void spaces_free(struct spaces *spaces);

/* An empty one, referred to once. NULL: no memory. */
struct space *space_new(struct spaces *spaces);

/* One more process has it; and one fewer: with the last it is freed. NULL is fine there. */
struct space *space_share(struct space *space);
void space_let_go(struct spaces *spaces, struct space *space);

/* Makes the space that a process holds its own. 0 or -ENOMEM. */
int space_unshare(struct spaces *spaces, struct space **space);

/* Maps something into a space that is one's own; what is beyond the limits is counted and left
 * out: *file is then NULL. 0 or -ENOMEM. */
int space_map(struct spaces *spaces, struct space *space, const struct mapping *mapping,
              struct mapped_file **file);

#endif
