/*
 * A sorted map of address ranges that never overlap, with a payload for each. Look-up, insertion
 * and removal take logarithmic time; memory grows with the ranges that are in the map at once, and
 * is used again. Not thread-safe.
 *
 * The payload is the caller's struct, whose first member is a struct range:
 *
 *     struct span { struct range range; uint64_t since; };
 *
 * Items stay where they are until they are removed, so pointers to them are good until then. The
 * caller may move the borders of an item as long as it overlaps no other.
 */
#ifndef JD_WRITER_RANGE_MAP_H
#define JD_WRITER_RANGE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* [start, end), never empty. */
struct range {
    uint64_t start;
    uint64_t end;
};

struct range_map;

/* For items of item_size bytes. NULL: no memory. */
struct range_map *range_map_new(size_t item_size);
void range_map_free(struct range_map *map);

/* Makes sure that the next n insertions succeed. False: no memory. */
bool range_map_reserve(struct range_map *map, size_t n);

/* Adds an item, zeroed but for its range, which overlaps none that is there. NULL: no memory. */
void *range_map_insert(struct range_map *map, struct range range);

void range_map_remove(struct range_map *map, void *item);

/*
 * The first item that ends behind the address: the one that covers it, or else the next one. NULL:
 * there is none. So range_map_at(map, item->range.end) is the item behind an item.
 */
void *range_map_at(const struct range_map *map, uint64_t address);

#endif
