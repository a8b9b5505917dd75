/*
 * Open addressing with linear probing. A slot has the key beside the entry, so that a look-up goes
 * to the entry's own memory only when it is the right one, and growing goes to none.
 *
 * What a look-up in a large table costs is the cache miss for its slot. A replay tells of code in
 * the order of addresses and of methods about in the order of ids, so the places are dealt out in
 * groups of eight neighbours: one miss brings the slots of those that come next. The group is made
 * of the upper bits of a hash: when the table grows, the slots keep their order, and what is read
 * from front to back is written from front to back.
 */
#include "writer/hash_table.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 256, GROUP_BITS = 3 };

/* Keys are addresses, ids and hashes; the multiplier is 2^64 over the golden ratio. */
static size_t home_of(const struct hash_table *table, uint64_t key)
{
    int group_bits = __builtin_ctzll(table->slot_count) - GROUP_BITS;
    uint64_t near = key >> table->grain;
    uint64_t group = (near >> GROUP_BITS) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - group_bits);
    return (size_t)(group << GROUP_BITS | (near & ((1 << GROUP_BITS) - 1)));
}

static size_t behind(const struct hash_table *table, size_t at)
{
    return (at + 1) & (table->slot_count - 1);
}

/* The slot of that key, or the free one where it would be. */
static size_t slot_of(const struct hash_table *table, uint64_t key)
{
    size_t at = home_of(table, key);
    while (table->slots[at].first && table->slots[at].key != key) {
        at = behind(table, at);
    }
    return at;
}

static bool grow(struct hash_table *table, size_t count)
{
    const struct hash_table old = *table;
    struct hash_table_slot *slots = calloc(count, sizeof(*slots));
    if (!slots) {
        return false;
    }
    table->slots = slots;
    table->slot_count = count;
    for (size_t i = 0; i < old.slot_count; i++) {
        if (old.slots[i].first) {
            slots[slot_of(table, old.slots[i].key)] = old.slots[i];
        }
    }
    free(old.slots);
    return true;
}

bool hash_table_reserve(struct hash_table *table, size_t keys)
{
    size_t count = table->slot_count ? table->slot_count : FIRST_SLOTS;
    while (count / 2 < keys) {
        count *= 2;
    }
    return count == table->slot_count || grow(table, count);
}

bool hash_table_add(struct hash_table *table, struct hash_table_entry *entry)
{
    if (table->used >= table->slot_count / 2 && !hash_table_reserve(table, table->used + 1)) {
        return false;
    }
    struct hash_table_slot *slot = &table->slots[slot_of(table, entry->key)];
    table->used += !slot->first;
    entry->next = slot->first;
    *slot = (struct hash_table_slot){.key = entry->key, .first = entry};
    return true;
}

struct hash_table_entry *hash_table_find(const struct hash_table *table, uint64_t key)
{
    return table->slots ? table->slots[slot_of(table, key)].first : NULL;
}

struct hash_table_entry *hash_table_find_next(const struct hash_table_entry *after)
{
    return after->next;
}

/* Frees a slot and moves those up that would not be found behind a free one any more. */
static void free_slot(struct hash_table *table, size_t free)
{
    size_t mask = table->slot_count - 1;
    for (size_t at = behind(table, free); table->slots[at].first; at = behind(table, at)) {
        size_t probed = (at - home_of(table, table->slots[at].key)) & mask;
        if (probed >= ((at - free) & mask)) {
            table->slots[free] = table->slots[at];
            free = at;
        }
    }
    table->slots[free].first = NULL;
    table->used--;
}

void hash_table_remove(struct hash_table *table, struct hash_table_entry *entry)
{
    if (!table->slots) {
        return;
    }
    size_t slot = slot_of(table, entry->key);
    struct hash_table_entry **link = &table->slots[slot].first;
    while (*link && *link != entry) {
        link = &(*link)->next;
    }
    if (!*link) {
        return;
    }
    *link = entry->next;
    if (!table->slots[slot].first) {
        free_slot(table, slot);
    }
}

void hash_table_free(struct hash_table *table)
{
    free(table->slots);
    *table = (struct hash_table){.grain = table->grain};
}

struct hash_table_entry *hash_table_drain(struct hash_table *table)
{
    for (; table->drained < table->slot_count; table->drained++) {
        struct hash_table_entry *entry = table->slots[table->drained].first;
        if (entry) {
            table->slots[table->drained].first = entry->next;
            return entry;
        }
    }
    hash_table_free(table);
    return NULL;
}
