/*
 * What is mapped where: executable parts of the address spaces of processes, each a sorted array
 * without overlaps in which a new mapping cuts what it covers. A fork shares its parent's until one
 * of them maps something.
 */
#ifndef JD_TOOL_ADDRESS_SPACE_H
#define JD_TOOL_ADDRESS_SPACE_H

#include "jdtool/perf/process_table.h"

/* What all spaces have in common. Zero one to start. */
struct spaces {
    uint64_t next_state;
    uint32_t mapping_count; /* of all of them */
    uint64_t left_out;      /* mappings beyond MAPPINGS_MAX and PROCESS_MAPPINGS_MAX */
};

/* An empty one, referred to once. NULL: no memory. */
struct space *space_new(struct spaces *spaces);

/* One more process has it; and one fewer: with the last it is freed. NULL is fine there. */
struct space *space_share(struct space *space);
void space_let_go(struct spaces *spaces, struct space *space);

/* Makes the space that a process holds its own. 0 or -ENOMEM. */
int space_unshare(struct spaces *spaces, struct space **space);

/* Maps something into a space that is one's own; what is beyond the limits is counted and left
 * out. 0 or -ENOMEM. */
int space_map(struct spaces *spaces, struct space *space, const struct mapped *mapping);

#endif
