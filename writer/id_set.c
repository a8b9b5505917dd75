#include "writer/id_set.h"

#include <stdlib.h>
#include <string.h>

/*
 * Ids are given out in a row, and so are the slots, a cache line of them at a time: a row of new
 * ones costs few misses. Half of the slots at most are used; the largest set, of half a million
 * ids, takes 4 MiB.
 */
enum { SIZE_MIN = 1024, SIZE_MAX_SLOTS = 1 << 20, GROUP_BITS = 4 };

static uint32_t *slot_of(uint32_t *slots, uint32_t size, uint32_t id)
{
    uint32_t group = (id >> GROUP_BITS) * UINT32_C(0x9e3779b1);
    uint32_t slot = (group << GROUP_BITS | (id & ((1 << GROUP_BITS) - 1))) & (size - 1);
    while (slots[slot] != 0 && slots[slot] != id) {
        slot = (slot + 1) & (size - 1);
    }
    return &slots[slot];
}

/* Makes room for one more. False: no memory. */
static bool grow(struct id_set *set)
{
    if (set->count * 2 < set->size) {
        return true;
    }
    if (set->size == SIZE_MAX_SLOTS) {
        id_set_clear(set);
        return grow(set);
    }
    uint32_t size = set->size ? set->size * 2 : SIZE_MIN;
    uint32_t *slots = calloc(size, sizeof(*slots));
    if (!slots) {
        return false;
    }
    for (uint32_t i = 0; i < set->size; i++) {
        if (set->slots[i] != 0) {
            *slot_of(slots, size, set->slots[i]) = set->slots[i];
        }
    }
    free(set->slots);
    set->slots = slots;
    set->size = size;
    return true;
}

bool id_set_add(struct id_set *set, uint32_t id)
{
    if (!grow(set)) {
        return true;
    }
    uint32_t *slot = slot_of(set->slots, set->size, id);
    bool is_new = *slot == 0;
    set->count += is_new;
    *slot = id;
    return is_new;
}

void id_set_clear(struct id_set *set)
{
    if (set->size > SIZE_MIN) {
        id_set_free(set);
    } else if (set->size > 0) {
        memset(set->slots, 0, set->size * sizeof(*set->slots));
        set->count = 0;
    }
}

void id_set_free(struct id_set *set)
{
    free(set->slots);
    *set = (struct id_set){0};
}
