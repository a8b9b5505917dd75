#include "jdtool/perf/held.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#include <stdlib.h>

#define NO_SLOT HASH_MAP_NONE

struct thread {
    uint64_t number;
    struct held_sample *first; /* NULL: the slot is free, and */
    struct held_sample *last;
    uint32_t next_free;
};

/* As many slots as ever were held at a time: virtual threads come and go by the million. */
struct held {
    size_t budget;
    size_t used;
    struct hash_map by_number;
    struct thread *list;
    uint32_t count, room;
    uint32_t first_free;
};

struct held *held_new(size_t budget)
{
    struct held *held = calloc(1, sizeof *held);
    if (held) {
        held->budget = budget;
        held->first_free = NO_SLOT;
    }
    return held;
}

void held_free(struct held *held)
{
    for (uint32_t i = 0; held && i < held->count; i++) {
        struct held_sample *next;
        for (struct held_sample *sample = held->list[i].first; sample; sample = next) {
            next = sample->next;
            free(sample);
        }
    }
    if (held) {
        free(held->list);
        hash_map_free(&held->by_number);
        free(held);
    }
}

static uint32_t find(const struct held *held, uint64_t number)
{
    uint32_t at;
    HASH_MAP_FIND(at, &held->by_number, number, held->list[at].number == number);
    return at;
}

/* A slot for a thread that has none. NO_SLOT: no memory. */
static uint32_t new_slot(struct held *held, uint64_t number)
{
    if (held->first_free == NO_SLOT) {
        if (ARRAY_RESERVE(held->list, held->count, held->room)) {
            return NO_SLOT;
        }
        held->list[held->count] = (struct thread){.next_free = NO_SLOT};
        held->first_free = held->count++;
    }
    uint32_t at = held->first_free;
    if (hash_map_add(&held->by_number, number, at)) {
        return NO_SLOT;
    }
    held->first_free = held->list[at].next_free;
    held->list[at].number = number;
    return at;
}

bool held_add(struct held *held, uint64_t thread, const struct perf_sample *sample, uint64_t weight)
{
    struct held_sample *added = NULL;
    size_t size = sizeof *added + sizeof(struct thread) + perf_sample_kept_size(sample, false);
    uint32_t at = NO_SLOT;
    if (size <= held->budget - held->used && (added = malloc(size)) != NULL) {
        at = find(held, thread);
        at = at == NO_SLOT ? new_slot(held, thread) : at;
    }
    if (at == NO_SLOT) {
        free(added);
        return false;
    }
    *added = (struct held_sample){.sample = perf_sample_keep(sample, false, added + 1),
                                  .since = sample->time,
                                  .weight = weight,
                                  .size = size};
    struct thread *slot = &held->list[at];
    *(slot->first ? &slot->last->next : &slot->first) = added;
    slot->last = added;
    held->used += size;
    return true;
}

struct held_sample *held_first(const struct held *held, uint64_t thread)
{
    uint32_t at = find(held, thread);
    return at == NO_SLOT ? NULL : held->list[at].first;
}

static struct held_sample *take(struct held *held, uint32_t at)
{
    struct thread *slot = &held->list[at];
    struct held_sample *first = slot->first;
    for (const struct held_sample *sample = first; sample; sample = sample->next) {
        held->used -= sample->size;
    }
    (void)hash_map_remove(&held->by_number, slot->number, at);
    slot->first = NULL;
    slot->next_free = held->first_free;
    held->first_free = at;
    return first;
}

struct held_sample *held_take(struct held *held, uint64_t thread)
{
    uint32_t at = find(held, thread);
    return at == NO_SLOT ? NULL : take(held, at);
}

struct held_sample *held_take_next(struct held *held, uint32_t pid, uint32_t *from)
{
    for (; *from < held->count; (*from)++) {
        const struct held_sample *first = held->list[*from].first;
        if (first && (pid == HELD_OF_ALL || first->sample->pid == pid)) {
            return take(held, (*from)++);
        }
    }
    return NULL;
}
