/*
 * The stacks of samples, each thing of them kept once. What is at a machine address is a location:
 * a line for each method that was inlined there, innermost first, and last the one whose code it
 * is. A stack is one number, that of its innermost node:
 *
 *     run ── main ── parse ── next      samples in next:    node 4
 *      1      2        3  └── fail      in fail:            node 5
 *                      4      5         in parse itself:    node 3
 *
 * so that a sample whose stack was there before costs no look at its frames, and whatever is made
 * of a node (its entry in an export, whether a filter wants it) is made once, kept by its number.
 *
 *     1. A node's caller has a lower number; 0 is no node: the caller of the outermost.
 *     2. Two nodes differ in caller or location, two locations in some line.
 *     3. A node's number means the same as long as `epoch` does; that of a location, and its lines,
 * as long as `location_epoch` does.
 */
#ifndef JD_TOOL_STACK_TABLE_H
#define JD_TOOL_STACK_TABLE_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/resolve/arena.h"
#include "jdtool/resolve/frame.h"

struct location {
    const struct module *module;      /* NULL: not in one */
    const struct resolved_code *code; /* NULL: no generated code */
    uint64_t address;                 /* in the process, as it was at that time */
    uint64_t
        module_address; /* in the module: ELF address (of a JVM: in its image); 0 without one */
    const struct resolved_frame *lines;
    uint32_t line_count; /* from 1 */
    bool is_caller;      /* address + 1 is the return address; address lies in the call */
};

struct stack_node {
    uint32_t caller;
    uint32_t location;
    const struct location *at; /* the same: stacks are walked often */
};

/* Read it as you like; it is filled by the functions below alone. */
struct stack_table {
    uint64_t epoch;           /* unique in this process: no other table has had it */
    uint64_t location_epoch;  /* the same, of locations, which outlive nodes */
    struct stack_node *nodes; /* [0] is no node */
    uint32_t node_count;      /* from 1 */
    uint32_t node_room;
    struct chunks locations; /* of pointers to them */
    struct hash_map by_lines, by_caller;
    struct arena lines;
};

struct stack_table *stack_table_new(void);         /* NULL: no memory */
void stack_table_free(struct stack_table *stacks); /* NULL is fine */

/* Room for so many of both, so that none moves until there are more, or everything goes. False: no
 * memory. */
bool stack_table_reserve(struct stack_table *stacks, uint32_t nodes, uint32_t locations);

/* Everything goes; or all nodes, but no location. */
void stack_table_clear(struct stack_table *stacks);
void stack_table_clear_nodes(struct stack_table *stacks);

/* The number of an equal location; it is copied with its lines when there is none. HASH_MAP_NONE:
 * no memory. */
uint32_t stack_table_location(struct stack_table *stacks, const struct location *wanted);

/* The number of a node, made when there is none; HASH_MAP_NONE: no memory. */
uint32_t stack_table_node(struct stack_table *stacks, uint32_t caller, uint32_t location);

/* The same; *last is the number that it gave last, 0 at first, which is tried before any look-up:
 * an address is mostly called from where it was called before. */
uint32_t stack_table_node_again(struct stack_table *stacks, uint32_t caller, uint32_t location,
                                uint32_t *last);

/* Has the processor fetch a node, if there is one of that number. */
static inline void stack_table_prefetch(const struct stack_table *stacks, uint32_t node)
{
    if (node < stacks->node_count) {
        __builtin_prefetch(&stacks->nodes[node]);
    }
}

static inline const struct location *stack_table_location_at(const struct stack_table *stacks,
                                                             uint32_t number)
{
    return *(const struct location *const *)chunks_at(&stacks->locations, number);
}

/* What is at a node, which is not 0. */
static inline const struct location *stack_table_at(const struct stack_table *stacks, uint32_t node)
{
    return stacks->nodes[node].at;
}

/* The line that is not inlined: but of a stack that was too deep it is always there. */
static inline const struct resolved_frame *location_own(const struct location *location)
{
    return &location->lines[location->line_count - 1];
}

/* The innermost line; NULL: the stack has none. */
static inline const struct resolved_frame *stack_table_innermost(const struct stack_table *stacks,
                                                                 uint32_t node)
{
    return node ? stack_table_at(stacks, node)->lines : NULL;
}

/*
 * What somebody makes of the things of a table, kept by their numbers there: elements of one size,
 * zeroed where nothing was made yet. Start with {.element = bytes of one}.
 */
struct stack_notes {
    size_t element;
    uint64_t epoch; /* in which those numbers are */
    void *list;
    uint32_t count; /* behind these all are zero */
    uint32_t room;
};

/* Room for notes of so many things of that epoch; those of another mean nothing any more, and go.
 * 0 or -ENOMEM. */
int stack_notes_follow(struct stack_notes *notes, uint64_t epoch, uint32_t count);
void stack_notes_free(struct stack_notes *notes);

/* Copies the innermost `most` lines of a stack, innermost first. How many that are. */
uint32_t stack_table_lines(const struct stack_table *stacks, uint32_t node,
                           struct resolved_frame *lines, uint32_t most);

#endif
