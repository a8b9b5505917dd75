#include "jdtool/perf/waits.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#include <stdlib.h>
#include <string.h>

struct wait {
    uint32_t tid;
    bool is_there;
    void *bytes;
    struct queued_record queued;
};

/* A slot for each thread that ever waited: a recording has some thousands at most. */
struct waits {
    size_t budget;
    size_t used;
    struct hash_map by_tid;
    struct wait *list;
    uint32_t count;
    uint32_t room;
    uint64_t lost;
    void *taken; /* what waits_take gave away last */
};

struct waits *waits_new(size_t budget)
{
    struct waits *waits = calloc(1, sizeof *waits);
    if (waits) {
        waits->budget = budget;
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
    hash_map_free(&waits->by_tid);
    free(waits->list);
    free(waits->taken);
    free(waits);
}

static struct wait *find(const struct waits *waits, uint32_t tid)
{
    struct hash_map_cursor cursor = hash_map_start(&waits->by_tid, tid);
    uint32_t at;
    while ((at = hash_map_next(&waits->by_tid, &cursor)) != HASH_MAP_NONE) {
        if (waits->list[at].tid == tid) {
            return &waits->list[at];
        }
    }
    return NULL;
}

static struct wait *slot_of(struct waits *waits, uint32_t tid)
{
    struct wait *wait = find(waits, tid);
    if (wait) {
        return wait;
    }
    if (array_reserve(&waits->list, waits->count, &waits->room, sizeof *waits->list) ||
        hash_map_add(&waits->by_tid, tid, waits->count)) {
        return NULL;
    }
    wait = &waits->list[waits->count++];
    *wait = (struct wait){.tid = tid};
    return wait;
}

static void drop(struct waits *waits, struct wait *wait)
{
    waits->used -= wait->queued.size;
    free(wait->bytes);
    wait->bytes = NULL;
    wait->is_there = false;
}

void *waits_add(struct waits *waits, uint32_t tid, const struct queued_record *queued)
{
    struct wait *wait = slot_of(waits, tid);
    if (wait && wait->is_there) {
        drop(waits, wait);
        waits->lost++;
    }
    if (!wait || queued->size > waits->budget - waits->used ||
        !(wait->bytes = malloc(queued->size))) {
        waits->lost++;
        return NULL;
    }
    memcpy(wait->bytes, queued->bytes, queued->size);
    wait->queued = *queued;
    wait->queued.bytes = wait->bytes;
    wait->is_there = true;
    waits->used += queued->size;
    return wait->bytes;
}

static void take(struct waits *waits, struct wait *wait, struct queued_record *queued)
{
    *queued = wait->queued;
    free(waits->taken);
    waits->taken = wait->bytes;
    waits->used -= wait->queued.size;
    wait->bytes = NULL;
    wait->is_there = false;
}

bool waits_take(struct waits *waits, uint32_t tid, struct queued_record *queued)
{
    struct wait *wait = find(waits, tid);
    if (!wait || !wait->is_there) {
        return false;
    }
    take(waits, wait, queued);
    return true;
}

bool waits_take_any(struct waits *waits, struct queued_record *queued)
{
    struct wait *longest = NULL;
    for (uint32_t i = 0; i < waits->count; i++) {
        struct wait *wait = &waits->list[i];
        if (wait->is_there && (!longest || wait->queued.time < longest->queued.time)) {
            longest = wait;
        }
    }
    if (longest) {
        take(waits, longest, queued);
    }
    return longest != NULL;
}

uint64_t waits_lost(const struct waits *waits)
{
    return waits->lost;
}
