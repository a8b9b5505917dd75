#include "jdtool/perf/waits.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#include <stdlib.h>
#include <string.h>

#define NO_SLOT UINT32_MAX

struct wait {
    uint64_t thread;
    void *bytes; /* NULL: the slot is free, and */
    uint32_t next_free;
    struct queued_record queued;
};

/* As many slots as ever waited at a time: virtual threads come and go by the million. */
struct waits {
    size_t budget;
    size_t used; /* what the bytes take, and their slots */
    struct hash_map by_thread;
    struct wait *list;
    uint32_t count, room;
    uint32_t first_free;
    uint64_t lost;
    void *taken; /* what was given away last */
};

struct waits *waits_new(size_t budget)
{
    struct waits *waits = calloc(1, sizeof *waits);
    if (waits) {
        waits->budget = budget;
        waits->first_free = NO_SLOT;
    }
    return waits;
}

void waits_free(struct waits *waits)
{
    if (!waits) {
        return;
    }
    for (uint32_t i = 0; i < waits->count; i++) {
        free(waits->list[i].bytes);
    }
    free(waits->list);
    hash_map_free(&waits->by_thread);
    free(waits->taken);
    free(waits);
}

/* NO_SLOT: nothing is kept for it. */
static uint32_t find(const struct waits *waits, uint64_t thread)
{
    struct hash_map_cursor cursor = hash_map_start(&waits->by_thread, thread);
    uint32_t at;
    while ((at = hash_map_next(&waits->by_thread, &cursor)) != HASH_MAP_NONE) {
        if (waits->list[at].thread == thread) {
            return at;
        }
    }
    return NO_SLOT;
}

static size_t cost_of(const struct queued_record *queued)
{
    return queued->size + sizeof(struct wait);
}

/* Frees a slot; its bytes are the caller's from now on. */
static void *release(struct waits *waits, uint32_t at)
{
    struct wait *wait = &waits->list[at];
    void *bytes = wait->bytes;
    (void)hash_map_remove(&waits->by_thread, wait->thread, at);
    waits->used -= cost_of(&wait->queued);
    wait->bytes = NULL;
    wait->next_free = waits->first_free;
    waits->first_free = at;
    return bytes;
}

/* A free slot, which stays one until it has bytes. NO_SLOT: no memory. */
static uint32_t free_slot(struct waits *waits)
{
    if (waits->first_free == NO_SLOT) {
        if (array_reserve(&waits->list, waits->count, &waits->room, sizeof *waits->list)) {
            return NO_SLOT;
        }
        waits->list[waits->count] = (struct wait){.next_free = NO_SLOT};
        waits->first_free = waits->count++;
    }
    return waits->first_free;
}

void *waits_add(struct waits *waits, uint64_t thread, const struct queued_record *queued)
{
    uint32_t at = find(waits, thread);
    void *bytes = NULL;
    if (at != NO_SLOT) {
        free(release(waits, at));
        waits->lost++;
    }
    if (cost_of(queued) <= waits->budget - waits->used && (at = free_slot(waits)) != NO_SLOT) {
        bytes = malloc(queued->size);
    }
    if (!bytes || hash_map_add(&waits->by_thread, thread, at)) {
        free(bytes);
        waits->lost++;
        return NULL;
    }
    struct wait *wait = &waits->list[at];
    waits->first_free = wait->next_free;
    memcpy(bytes, queued->bytes, queued->size);
    *wait = (struct wait){.thread = thread, .bytes = bytes, .queued = *queued};
    wait->queued.bytes = bytes;
    waits->used += cost_of(queued);
    return bytes;
}

static void take(struct waits *waits, uint32_t at, struct queued_record *queued)
{
    *queued = waits->list[at].queued;
    free(waits->taken);
    waits->taken = release(waits, at);
}

bool waits_take(struct waits *waits, uint64_t thread, struct queued_record *queued)
{
    uint32_t at = find(waits, thread);
    if (at == NO_SLOT) {
        return false;
    }
    take(waits, at, queued);
    return true;
}

bool waits_take_next(struct waits *waits, uint32_t pid, uint32_t *from,
                     struct queued_record *queued)
{
    for (; *from < waits->count; (*from)++) {
        const struct wait *wait = &waits->list[*from];
        if (wait->bytes && (pid == WAITS_OF_ALL || wait->queued.pid == pid)) {
            take(waits, (*from)++, queued);
            return true;
        }
    }
    return false;
}

uint64_t waits_lost(const struct waits *waits)
{
    return waits->lost;
}
