/*
 * Memory that is given back all at once. Zero one to start.
 */
#ifndef JD_TOOL_ARENA_H
#define JD_TOOL_ARENA_H

#include <stddef.h>
#include <stdlib.h>

#define ARENA_BLOCK ((size_t)64 * 1024)

struct arena_block {
    struct arena_block *next;
    size_t used;
    size_t room;
    _Alignas(16) char bytes[];
};

struct arena {
    struct arena_block *blocks;
    size_t size; /* of all blocks */
};

/* `size` bytes, aligned to 16, not zeroed, until arena_clear. NULL: no memory. */
static inline void *arena_take(struct arena *arena, size_t size)
{
    struct arena_block *block = arena->blocks;
    size = (size + 15) & ~(size_t)15;
    if (!block || block->room - block->used < size) {
        size_t room = size > ARENA_BLOCK ? size : ARENA_BLOCK;
        block = malloc(sizeof *block + room);
        if (!block) {
            return NULL;
        }
        *block = (struct arena_block){.next = arena->blocks, .room = room};
        arena->blocks = block;
        arena->size += room;
    }
    block->used += size;
    return block->bytes + block->used - size;
}

static inline void arena_clear(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }
    arena->size = 0;
}

#endif
