/*
 * Reading in place, and why it cannot fault
 *
 *   R1  What is read in place belongs to what the callback tells of and the JVM keeps for it: the
 *       code, the blob around it, and what a living nmethod mentions, which a living nmethod keeps
 *       alive: Methods, their ConstMethods, ConstantPools and Symbols, and its own data outside of
 *       the blob. What lives is not unmapped. Nothing is read by guesses from an earlier callback.
 *   R2  The layout that leads there has been held against JVMTI: blobs, when one of them was found
 *       to start its code where an event said that code starts; Methods, when those of a class were
 *       as JVMTI tells them (agent/methods/proof.h) and an nmethod's was the one whose id JVMTI
 *       told of it (hotspot_bond). Until then, and in JVMs before 17, which may unload a class
 *       while the event of its code is on its way, the kernel copies each piece
 *       (hotspot/memory.h).
 *   R3  Only as much is read as belongs to the object: heads by their size in the tables, text by
 *       its length, a line table up to its end, PcDescs as far as JVMTI has a place for each.
 *   R4  Each page is asked for before it is read: a pointer to nowhere is an answer, too. What has
 *       been asked for holds for the callback or, where the JVM keeps all code until it has told of
 *       the last, for the replay. So a page can be there when it is asked for and gone when it is
 *       read, but only if R1 to R3 do not hold.
 *
 * The pages that the code itself is on need not be asked for: whoever copies the code reads them.
 * Small code has all that belongs to it there.
 */
#include "agent/hotspot/hotspot_fields.h"

#include <stdlib.h>

/* Above the numbers of stretches: addresses have 57 bits at most. */
enum { ASKER_LOG2 = 57 - 12 - STRETCH_LOG2 };

struct hotspot_nearby *hotspot_nearby_new(void)
{
    return calloc(1, sizeof(struct hotspot_nearby));
}

void hotspot_nearby_free(struct hotspot_nearby *nearby)
{
    free(nearby);
}

void hotspot_nearby_begin(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                          uint64_t replay, uint64_t code, uint64_t size)
{
    if (!nearby) {
        return;
    }
    nearby->code = code / PAGE;
    nearby->code_end = size > 0 ? (code + size - 1) / PAGE + 1 : nearby->code;
    if (replay == 0 || replay != nearby->replay) {
        nearby->asker += UINT64_C(1) << ASKER_LOG2;
        if (nearby->asker == 0) { /* the first one's answers are still there */
            memset(nearby->stretches, 0, sizeof(nearby->stretches));
            nearby->asker = UINT64_C(1) << ASKER_LOG2;
        }
    }
    nearby->replay = replay;
    nearby->own = hotspot && hotspot->memory->is_there;
    nearby->in_place = nearby->own && atomic_load(&hotspot->nmethods) == TRUST_PROVEN;
}

bool hotspot_nearby_in_place(const struct hotspot_nearby *nearby)
{
    return nearby && nearby->in_place;
}

struct known_pool *hotspot_known_pool(struct hotspot_nearby *nearby, uint64_t pool)
{
    return nearby ? &nearby->pools[page_slot(pool, POOLS_LOG2)] : NULL;
}

bool hotspot_ask_for_page(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                          uint64_t number)
{
    if (number >= nearby->code && number < nearby->code_end) {
        return true;
    }
    if (!hotspot->memory->is_there(hotspot->memory, number * PAGE)) {
        return false;
    }
    struct stretch *known = hotspot_stretch(nearby, number);
    const uint64_t key = nearby->asker | number >> STRETCH_LOG2;
    if (known->key != key) {
        *known = (struct stretch){.key = key};
    }
    known->there |= UINT64_C(1) << number % (1 << STRETCH_LOG2);
    return true;
}

bool hotspot_read_near(const struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t from,
                       void *to, size_t size)
{
    const char *there = hotspot_view(hotspot, nearby, from, size);
    if (there) {
        memcpy(to, there, size);
        return true;
    }
    return !hotspot_nearby_in_place(nearby) && memory_read(hotspot->memory, from, to, size);
}
