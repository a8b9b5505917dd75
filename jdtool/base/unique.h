/*
 * Arrays in which nothing is twice: the first bytes of an element are its key, which no other has,
 * and its place is its number. Bytes that only pad have no place in a key.
 */
#ifndef JD_TOOL_UNIQUE_H
#define JD_TOOL_UNIQUE_H

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

/* The number of the element of that key; HASH_MAP_NONE: there is none. */
static inline uint32_t unique_find(const void *list, size_t element, const struct hash_map *map,
                                   const void *key, size_t key_size)
{
    struct hash_map_cursor cursor = hash_map_start(map, hash_bytes(key, key_size));
    uint32_t at = HASH_MAP_NONE;
    while (list && (at = hash_map_next(map, &cursor)) != HASH_MAP_NONE &&
           memcmp((const char *)list + at * element, key, key_size) != 0) {
    }
    return at;
}

/* The same; where there is none, *wanted becomes the last one, and *count grows. HASH_MAP_NONE: no
 * memory. */
static inline uint32_t unique_add(void *list_pointer, uint32_t *count, uint32_t *room,
                                  size_t element, struct hash_map *map, const void *wanted,
                                  size_t key_size)
{
    void **list = list_pointer;
    uint32_t at = unique_find(*list, element, map, wanted, key_size);
    if (at != HASH_MAP_NONE) {
        return at;
    }
    if (array_reserve(list_pointer, *count, room, element) ||
        hash_map_add(map, hash_bytes(wanted, key_size), *count)) {
        return HASH_MAP_NONE;
    }
    memcpy((char *)*list + *count * element, wanted, element);
    return (*count)++;
}

#endif
