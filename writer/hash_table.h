/*
 * A hash table of entries that belong to the caller: an entry's first member is a struct
 * hash_table_entry. Several entries may have the same key. No locks; set to all zeroes to begin
 * with, but for `grain`.
 */
#ifndef JD_WRITER_HASH_TABLE_H
#define JD_WRITER_HASH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hash_table_entry {
    struct hash_table_entry *next; /* of the same key */
    uint64_t key;
};

struct hash_table_slot {
    uint64_t key;
    struct hash_table_entry *first; /* NULL: the slot is free */
};

struct hash_table {
    struct hash_table_slot *slots;
    size_t slot_count; /* 0 or a power of two */
    size_t used;       /* slots, which is keys */
    size_t drained;    /* slots that hash_table_drain has emptied */
    /* Bits. Keys that come one after the other are often about 2^grain apart: eight neighbours of
     * that distance share cache lines. */
    unsigned grain;
};

/* Adds an entry whose key is set. False: no memory. */
bool hash_table_add(struct hash_table *table, struct hash_table_entry *entry);

/*
 * Makes room for so many keys at once. Who adds again what was drained has to: in the order of
 * slots, a table that grows meanwhile is filled from one end, where every look-up passes all the
 * others. False: no memory, and the table is as it was.
 */
bool hash_table_reserve(struct hash_table *table, size_t keys);

/* An entry of that key or NULL; after: the next one of the same key. */
struct hash_table_entry *hash_table_find(const struct hash_table *table, uint64_t key);
struct hash_table_entry *hash_table_find_next(const struct hash_table_entry *after);

/* Takes out an entry; one that is not in the table is left alone. */
void hash_table_remove(struct hash_table *table, struct hash_table_entry *entry);

/*
 * Takes out any entry; NULL when there is none left, and then the table's own memory is freed.
 * Nothing may be added or removed otherwise in between.
 */
struct hash_table_entry *hash_table_drain(struct hash_table *table);

/* Empties it, and goes to none of the entries: their memory is the caller's to free as a whole. */
void hash_table_free(struct hash_table *table);

#endif
