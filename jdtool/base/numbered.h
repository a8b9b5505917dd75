/*
 * Things that are known by a number (a tid, an id, an address): found by it, and made when they are
 * first asked for. They never move and none is taken out, so pointers to them stay good as long as
 * the table lives.
 *
 * A thing is a struct of the caller's whose first member is its number, a uint64_t.
 */
#ifndef JD_TOOL_NUMBERED_H
#define JD_TOOL_NUMBERED_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"

/* Start with NUMBERED(the struct). The list is for those who look at all of them. */
struct numbered {
    struct chunks list;
    struct hash_map by_number;
};

#define NUMBERED(type) ((struct numbered){.list = {.element = sizeof(type)}})

/* NULL: there is none of that number. */
static inline void *numbered_find(const struct numbered *things, uint64_t number)
{
    struct hash_map_cursor cursor = hash_map_start(&things->by_number, number);
    uint32_t at;
    /* HASH_MAP_NONE is above every count. */
    while ((at = hash_map_next(&things->by_number, &cursor)) < things->list.count) {
        void *thing = chunks_at(&things->list, at);
        uint64_t its;
        memcpy(&its, thing, sizeof its);
        if (its == number) {
            return thing;
        }
    }
    return NULL;
}

/* The same, or a new one, zero but for its number; *is_new (NULL: not asked) tells. NULL: no
 * memory. */
static inline void *numbered_get(struct numbered *things, uint64_t number, bool *is_new)
{
    void *thing = numbered_find(things, number);
    if (is_new) {
        *is_new = !thing;
    }
    if (!thing && (thing = chunks_add(&things->list)) != NULL) {
        if (hash_map_add(&things->by_number, number, things->list.count - 1)) {
            things->list.count--; /* which was zero, and is */
            return NULL;
        }
        memcpy(thing, &number, sizeof number);
    }
    return thing;
}

/* Frees what the table holds; it is then an empty one. */
static inline void numbered_free(struct numbered *things)
{
    chunks_free(&things->list);
    hash_map_free(&things->by_number);
}

#endif
