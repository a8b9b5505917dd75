#include "jdtool/perf/waits.h"

#include "jdtool/base/numbered.h"

#include <stdlib.h>
#include <string.h>

struct wait {
    uint64_t tid;
    bool is_there;
    void *bytes;
    struct queued_record queued;
};

/* A slot for each thread that ever waited: a recording has some thousands at most. */
struct waits {
    size_t budget;
    size_t used;
    struct numbered threads; /* of struct wait */
    uint64_t lost;
    void *taken; /* what waits_take gave away last */
};

struct waits *waits_new(size_t budget)
{
    struct waits *waits = calloc(1, sizeof *waits);
    if (waits) {
        waits->budget = budget;
        waits->threads = NUMBERED(struct wait);
    }
    return waits;
}

void waits_free(struct waits *waits)
{
    if (!waits) {
        return;
    }
    for (uint32_t i = 0; i < waits->threads.list.count; i++) {
        free(((struct wait *)chunks_at(&waits->threads.list, i))->bytes);
    }
    numbered_free(&waits->threads);
    free(waits->taken);
    free(waits);
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
    struct wait *wait = numbered_get(&waits->threads, tid, NULL);
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
    struct wait *wait = numbered_find(&waits->threads, tid);
    if (!wait || !wait->is_there) {
        return false;
    }
    take(waits, wait, queued);
    return true;
}

bool waits_take_any(struct waits *waits, struct queued_record *queued)
{
    struct wait *longest = NULL;
    for (uint32_t i = 0; i < waits->threads.list.count; i++) {
        struct wait *wait = chunks_at(&waits->threads.list, i);
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
