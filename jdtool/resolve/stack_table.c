#include "jdtool/resolve/stack_table.h"

#include "jdtool/base/tree.h"

#include <errno.h>
#include <string.h>

static uint64_t next_epoch(void)
{
    static uint64_t epoch;
    return ++epoch;
}

static int start(struct stack_table *stacks)
{
    stacks->epoch = next_epoch();
    stacks->node_count = 0;
    if (ARRAY_RESERVE(stacks->nodes, 0, stacks->node_room)) {
        return -ENOMEM;
    }
    stacks->nodes[stacks->node_count++] = (struct stack_node){0, HASH_MAP_NONE, NULL};
    return 0;
}

struct stack_table *stack_table_new(void)
{
    struct stack_table *stacks = calloc(1, sizeof *stacks);
    if (stacks) {
        stacks->locations.element = sizeof(struct location *);
        stacks->location_epoch = next_epoch();
    }
    if (stacks && start(stacks)) {
        free(stacks);
        stacks = NULL;
    }
    return stacks;
}

void stack_table_free(struct stack_table *stacks)
{
    if (stacks) {
        chunks_free(&stacks->locations);
        hash_map_free(&stacks->by_lines);
        hash_map_free(&stacks->by_caller);
        arena_clear(&stacks->lines);
        free(stacks->nodes);
        free(stacks);
    }
}

bool stack_table_reserve(struct stack_table *stacks, uint32_t nodes, uint32_t locations)
{
    uint32_t chunks = locations / CHUNK_ELEMENTS + 1;
    if (stacks->node_room < nodes) {
        struct stack_node *grown = realloc(stacks->nodes, nodes * sizeof *grown);
        stacks->nodes = grown ? grown : stacks->nodes;
        stacks->node_room = grown ? nodes : stacks->node_room;
    }
    if (stacks->locations.list_room < chunks) {
        void **grown = realloc(stacks->locations.list, chunks * sizeof *grown);
        stacks->locations.list = grown ? grown : stacks->locations.list;
        stacks->locations.list_room = grown ? chunks : stacks->locations.list_room;
    }
    return stacks->node_room >= nodes && stacks->locations.list_room >= chunks;
}

void stack_table_clear_nodes(struct stack_table *stacks)
{
    hash_map_clear(&stacks->by_caller);
    (void)start(stacks); /* there is room */
}

void stack_table_clear(struct stack_table *stacks)
{
    chunks_free(&stacks->locations);
    hash_map_clear(&stacks->by_lines);
    arena_clear(&stacks->lines);
    stacks->location_epoch = next_epoch();
    stack_table_clear_nodes(stacks);
}

/* ---- Locations ---- */

_Static_assert(sizeof(struct resolved_frame) == sizeof(void *) + 8, "frames are compared as bytes");

static bool is_same(const struct location *a, const struct location *b)
{
    return a->address == b->address && a->module_address == b->module_address &&
           a->module == b->module && a->code == b->code && a->is_caller == b->is_caller &&
           a->line_count == b->line_count &&
           memcmp(a->lines, b->lines, a->line_count * sizeof *a->lines) == 0;
}

uint32_t stack_table_location(struct stack_table *stacks, const struct location *wanted)
{
    const size_t lines_size = wanted->line_count * sizeof *wanted->lines;
    uint64_t hash = wanted->address << 1 | wanted->is_caller;
    for (uint32_t i = 0; i < wanted->line_count; i++) {
        hash =
            hash_pair(hash, ((uintptr_t)wanted->lines[i].method << 8 ^ wanted->lines[i].bci_ref) +
                                wanted->lines[i].line);
    }
    uint32_t known;
    HASH_MAP_FIND(known, &stacks->by_lines, hash,
                  is_same(stack_table_location_at(stacks, known), wanted));
    if (known != HASH_MAP_NONE) {
        return known;
    }
    struct location **place = chunks_add(&stacks->locations);
    struct location *location =
        place ? arena_take(&stacks->lines, sizeof *location + lines_size) : NULL;
    if (!location || hash_map_add(&stacks->by_lines, hash, stacks->locations.count - 1)) {
        return HASH_MAP_NONE;
    }
    *location = *wanted;
    location->lines = memcpy(location + 1, wanted->lines, lines_size);
    *place = location;
    return stacks->locations.count - 1;
}

/* ---- Nodes ---- */

uint32_t stack_table_node(struct stack_table *stacks, uint32_t caller, uint32_t location)
{
    uint32_t count = stacks->node_count;
    uint32_t node =
        tree_child(&stacks->nodes, &stacks->node_count, &stacks->node_room, sizeof *stacks->nodes,
                   TREE_MOST, &stacks->by_caller, caller, location);
    if (node == count) {
        stacks->nodes[node].at = stack_table_location_at(stacks, location);
    }
    return node;
}

uint32_t stack_table_node_again(struct stack_table *stacks, uint32_t caller, uint32_t location,
                                uint32_t *last)
{
    if (*last >= stacks->node_count || stacks->nodes[*last].caller != caller ||
        stacks->nodes[*last].location != location) {
        *last = stack_table_node(stacks, caller, location);
    }
    return *last;
}

/* ---- Notes ---- */

int stack_notes_follow(struct stack_notes *notes, uint64_t epoch, uint32_t count)
{
    if (notes->epoch != epoch && notes->list) {
        memset(notes->list, 0, notes->count * notes->element);
        notes->count = 0;
    }
    notes->epoch = epoch;
    notes->count = count > notes->count ? count : notes->count;
    return array_reach(&notes->list, count ? count - 1 : 0, &notes->room, notes->element);
}

void stack_notes_free(struct stack_notes *notes)
{
    free(notes->list);
    *notes = (struct stack_notes){.element = notes->element};
}

/* ---- Lines ---- */

uint32_t stack_table_lines(const struct stack_table *stacks, uint32_t node,
                           struct resolved_frame *lines, uint32_t most)
{
    uint32_t count = 0;
    for (; node && count < most; node = stacks->nodes[node].caller) {
        const struct location *location = stack_table_at(stacks, node);
        uint32_t left = most - count;
        uint32_t taken = location->line_count < left ? location->line_count : left;
        memcpy(lines + count, location->lines, taken * sizeof *lines);
        count += taken;
    }
    return count;
}
