#include "jdtool/base/hash_map.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_ROOM 64

/* Into a free slot; there is one. */
static void put(struct hash_map *map, uint32_t tag, uint32_t value)
{
    size_t at = tag & (map->room - 1);
    while (map->slots[at].value != HASH_MAP_NONE) {
        at = (at + 1) & (map->room - 1);
    }
    map->slots[at] = (struct hash_map_slot){tag, value};
}

static int grow(struct hash_map *map)
{
    struct hash_map old = *map;
    size_t room = old.room ? old.room * 2 : FIRST_ROOM;
    struct hash_map_slot *slots =
        room <= SIZE_MAX / sizeof *slots ? malloc(room * sizeof *slots) : NULL;
    if (!slots) {
        return -ENOMEM;
    }
    *map = (struct hash_map){slots, room, old.count};
    for (size_t i = 0; i < room; i++) {
        slots[i].value = HASH_MAP_NONE;
    }
    for (size_t i = 0; i < old.room; i++) {
        if (old.slots[i].value != HASH_MAP_NONE) {
            put(map, old.slots[i].tag, old.slots[i].value);
        }
    }
    free(old.slots);
    return 0;
}

int hash_map_add(struct hash_map *map, uint64_t hash, uint32_t value)
{
    if (map->count >= map->room / 4 * 3) {
        int err = grow(map);
        if (err) {
            return err;
        }
    }
    put(map, hash_map_tag(hash), value);
    map->count++;
    return 0;
}

/* Moves what stands behind a freed slot, and was displaced by it, up into it. */
static void close_gap(struct hash_map *map, size_t gap)
{
    size_t mask = map->room - 1;
    for (size_t at = (gap + 1) & mask; map->slots[at].value != HASH_MAP_NONE;
         at = (at + 1) & mask) {
        size_t home = map->slots[at].tag & mask;
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            map->slots[gap] = map->slots[at];
            gap = at;
        }
    }
    map->slots[gap].value = HASH_MAP_NONE;
}

bool hash_map_remove(struct hash_map *map, uint64_t hash, uint32_t value)
{
    uint32_t tag = hash_map_tag(hash);
    size_t mask = map->room - 1;
    if (map->room == 0) {
        return false;
    }
    for (size_t at = tag & mask; map->slots[at].value != HASH_MAP_NONE; at = (at + 1) & mask) {
        if (map->slots[at].tag == tag && map->slots[at].value == value) {
            close_gap(map, at);
            map->count--;
            return true;
        }
    }
    return false;
}

void hash_map_clear(struct hash_map *map)
{
    for (size_t i = 0; i < map->room; i++) {
        map->slots[i].value = HASH_MAP_NONE;
    }
    map->count = 0;
}

void hash_map_free(struct hash_map *map)
{
    free(map->slots);
    *map = (struct hash_map){0};
}
