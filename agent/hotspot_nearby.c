/*
 * What a read costs is the system calls and not the bytes, and HotSpot puts together what belongs
 * together: an nmethod's header stands before its code, a Method behind its ConstMethod, and those
 * of one class in a row. So whole pages are read, and kept for as long as what is in them stays.
 *
 * A page can be read as a whole or not at all, so reading one asks for no more than its first byte
 * does.
 */
#include "agent/hotspot_fields.h"

#include <stdlib.h>

enum { PAGE = 4096, PAGES_LOG2 = 5, POOLS_LOG2 = 8 }; /* Linux has no smaller pages */

struct hotspot_nearby {
    uint64_t replay;
    uintptr_t numbers[1 << PAGES_LOG2]; /* of the pages; 0: none */
    struct known_pool pools[1 << POOLS_LOG2];
    char pages[1 << PAGES_LOG2][PAGE];
};

struct hotspot_nearby *hotspot_nearby_new(void)
{
    return calloc(1, sizeof(struct hotspot_nearby));
}

void hotspot_nearby_free(struct hotspot_nearby *nearby)
{
    free(nearby);
}

void hotspot_nearby_begin(struct hotspot_nearby *nearby, uint64_t replay)
{
    if (nearby && (replay == 0 || replay != nearby->replay)) {
        nearby->replay = replay;
        memset(nearby->numbers, 0, sizeof(nearby->numbers));
    }
}

static size_t mix(uintptr_t number, int bits)
{
    return (size_t)((uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

struct known_pool *hotspot_known_pool(struct hotspot_nearby *nearby, const void *pool)
{
    return nearby ? &nearby->pools[mix((uintptr_t)pool, POOLS_LOG2)] : NULL;
}

/* The page of that number; NULL: it cannot be read. */
static const char *page_of(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                           uintptr_t number)
{
    size_t at = mix(number, PAGES_LOG2);
    if (number == 0) { /* whoever follows a NULL */
        return NULL;
    }
    if (nearby->numbers[at] != number) {
        const void *from = (const void *)(number * PAGE); // NOLINT: looked at by the kernel alone
        nearby->numbers[at] = 0;
        if (!memory_read(hotspot->memory, from, nearby->pages[at], PAGE)) {
            return NULL;
        }
        nearby->numbers[at] = number;
    }
    return nearby->pages[at];
}

bool hotspot_read_near(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                       const void *from, void *to, size_t size)
{
    uintptr_t at = (uintptr_t)from;
    char *out = to;
    if (!nearby || size > UINTPTR_MAX - at) {
        return memory_read(hotspot->memory, from, to, size);
    }
    while (size > 0) {
        size_t offset = at % PAGE;
        size_t part = size < PAGE - offset ? size : PAGE - offset;
        const char *page = page_of(hotspot, nearby, at / PAGE);
        if (!page) {
            return false;
        }
        memcpy(out, page + offset, part);
        out += part;
        at += part;
        size -= part;
    }
    return true;
}
