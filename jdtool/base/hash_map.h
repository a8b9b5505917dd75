/*
 * The one hash map: from a 64-bit hash to 32-bit numbers, which are places in an array of the
 * caller's. The caller keeps the keys and compares them, so that one map serves all kinds of keys:
 *
 *     HASH_MAP_FIND(at, &map, hash, things[at].key == key);
 *
 * Open addressing, linear probing, at most 3/4 full; removing closes the gap, so there are no
 * tombstones and a map that things come to and go from does not grow. Hashes are mixed here: weak
 * ones (an address, an id) are fine. Keys from hostile files can at worst make look-ups slow.
 *
 * A slot keeps 32 bits of the mixed hash, so that it takes 8 bytes: a value that is found may be
 * one of another hash, and only the caller's comparison tells.
 */
#ifndef JD_TOOL_HASH_MAP_H
#define JD_TOOL_HASH_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_MAP_NONE UINT32_MAX

struct hash_map_slot {
    uint32_t tag;
    uint32_t value; /* HASH_MAP_NONE: the slot is free */
};

/* Zero one to start. */
struct hash_map {
    struct hash_map_slot *slots;
    size_t room; /* 0 or a power of two */
    size_t count;
};

struct hash_map_cursor {
    uint32_t tag;
    size_t slot;
};

/* Spreads a weak hash over all 64 bits (the finalizer of MurmurHash3, public domain). */
static inline uint64_t hash_mix(uint64_t key)
{
    key = (key ^ (key >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    key = (key ^ (key >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return key ^ (key >> 33);
}

/* The hash of two values together. */
static inline uint64_t hash_pair(uint64_t first, uint64_t second)
{
    return hash_mix(first) * UINT64_C(0x9e3779b97f4a7c15) + second;
}

/* The hash of bytes, eight at a time: names are long, and asked for often. */
static inline uint64_t hash_bytes(const void *bytes, size_t size)
{
    const char *at = bytes;
    uint64_t hash = 0;
    uint64_t part;
    for (; size >= sizeof part; at += sizeof part, size -= sizeof part) {
        memcpy(&part, at, sizeof part);
        hash = hash_pair(hash, part);
    }
    part = 0;
    memcpy(&part, at, size);
    return hash_pair(hash, part);
}

/* What of a hash is kept. */
static inline uint32_t hash_map_tag(uint64_t hash)
{
    return (uint32_t)hash_mix(hash);
}

/* Before the first value of that hash. */
static inline struct hash_map_cursor hash_map_start(const struct hash_map *map, uint64_t hash)
{
    uint32_t tag = hash_map_tag(hash);
    return (struct hash_map_cursor){tag, map->room ? tag & (map->room - 1) : 0};
}

/* Has the processor fetch the slot at which the cursor stands. */
static inline void hash_map_prefetch(const struct hash_map *map,
                                     const struct hash_map_cursor *cursor)
{
    if (map->room) {
        __builtin_prefetch(&map->slots[cursor->slot]);
    }
}

/* The next value that may be of that hash, HASH_MAP_NONE behind the last one. */
static inline uint32_t hash_map_next(const struct hash_map *map, struct hash_map_cursor *cursor)
{
    while (map->room) {
        const struct hash_map_slot *slot = &map->slots[cursor->slot];
        if (slot->value == HASH_MAP_NONE) {
            break;
        }
        cursor->slot = (cursor->slot + 1) & (map->room - 1);
        if (slot->tag == cursor->tag) {
            return slot->value;
        }
    }
    return HASH_MAP_NONE;
}

/* Sets `at` to the value of that hash of which is_it is true, an expression with `at`;
 * HASH_MAP_NONE: there is none. */
#define HASH_MAP_FIND(at, map, hash, is_it)                                                        \
    do {                                                                                           \
        struct hash_map_cursor cursor_ = hash_map_start((map), (hash));                            \
        do {                                                                                       \
            (at) = hash_map_next((map), &cursor_);                                                 \
        } while ((at) != HASH_MAP_NONE && !(is_it));                                               \
    } while (0)

/* Adds a value, which is not HASH_MAP_NONE; a hash may have several. 0 or -ENOMEM. */
int hash_map_add(struct hash_map *map, uint64_t hash, uint32_t value);

/* Takes out that value of that hash. False: it was not there. */
bool hash_map_remove(struct hash_map *map, uint64_t hash, uint32_t value);

/* Takes everything out and keeps the room. */
void hash_map_clear(struct hash_map *map);

/* Frees what the map holds; it is then an empty one. */
void hash_map_free(struct hash_map *map);

#endif
