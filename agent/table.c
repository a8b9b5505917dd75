#include "agent/table.h"

#include <stdlib.h>

/* Keys are addresses, ids and hashes; the multiplier is 2^64 over the golden ratio. */
static size_t head_index(const struct table *table, uint64_t key)
{
    return (size_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (table->head_count - 1);
}

static void grow(struct table *table)
{
    size_t old_count = table->head_count;
    struct table_entry **old_heads = table->heads;
    size_t count = old_count ? old_count * 2 : 256;
    struct table_entry **heads = calloc(count, sizeof(struct table_entry *));
    if (!heads) {
        return; /* the chains get longer, no more */
    }
    table->heads = heads;
    table->head_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct table_entry *entry = old_heads[i]; entry;) {
            struct table_entry *next = entry->next;
            size_t at = head_index(table, entry->key);
            entry->next = heads[at];
            heads[at] = entry;
            entry = next;
        }
    }
    free(old_heads);
}

bool table_add(struct table *table, struct table_entry *entry)
{
    if (table->count >= table->head_count) {
        grow(table);
        if (!table->heads) {
            return false;
        }
    }
    size_t at = head_index(table, entry->key);
    entry->next = table->heads[at];
    table->heads[at] = entry;
    table->count++;
    return true;
}

static struct table_entry *with_key(struct table_entry *entry, uint64_t key)
{
    while (entry && entry->key != key) {
        entry = entry->next;
    }
    return entry;
}

struct table_entry *table_find(const struct table *table, uint64_t key)
{
    return table->heads ? with_key(table->heads[head_index(table, key)], key) : NULL;
}

struct table_entry *table_find_next(const struct table_entry *after)
{
    return with_key(after->next, after->key);
}

void table_remove(struct table *table, struct table_entry *entry)
{
    struct table_entry **link = &table->heads[head_index(table, entry->key)];
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    table->count--;
}

struct table_entry *table_drain(struct table *table)
{
    for (; table->count > 0; table->drained++) {
        struct table_entry *entry = table->heads[table->drained];
        if (entry) {
            table_remove(table, entry);
            return entry;
        }
    }
    free(table->heads);
    *table = (struct table){0};
    return NULL;
}
