/*
 * A hash table of entries that belong to the caller: an entry's first member is a struct
 * table_entry. Several entries may have the same key. No locks; set to all zeroes to begin with,
 * but for `grain`.
 */
#ifndef JD_AGENT_TABLE_H
#define JD_AGENT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table_entry {
    struct table_entry *next; /* of the same key */
    uint64_t key;
};

struct table_slot {
    uint64_t key;
    struct table_entry *first; /* NULL: the slot is free */
};

struct table {
    struct table_slot *slots;
    size_t slot_count; /* 0 or a power of two */
    size_t used;       /* slots, which is keys */
    size_t drained;    /* slots that table_drain has emptied */
    /* Bits. Keys that come one after the other are often about 2^grain apart: eight neighbours of
     * that distance share cache lines. */
    unsigned grain;
};

/* Adds an entry whose key is set. False: no memory. */
bool table_add(struct table *table, struct table_entry *entry);

/* An entry of that key or NULL; after: the next one of the same key. */
struct table_entry *table_find(const struct table *table, uint64_t key);
struct table_entry *table_find_next(const struct table_entry *after);

/* Takes out an entry; one that is not in the table is left alone. */
void table_remove(struct table *table, struct table_entry *entry);

/*
 * Takes out any entry; NULL when there is none left, and then the table's own memory is freed.
 * Nothing may be added or removed otherwise in between.
 */
struct table_entry *table_drain(struct table *table);

#endif
