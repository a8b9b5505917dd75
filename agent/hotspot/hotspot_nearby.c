/*
 * What a read costs is the system calls and not the bytes, and HotSpot puts together what belongs
 * together: an nmethod's header stands before its code, a Method behind its ConstMethod, and those
 * of one class in a row. So whole pages are read, and kept for as long as what is in them stays.
 *
 * A page can be read as a whole or not at all, so reading one asks for no more than its first byte
 * does. And the pages that the code itself is on need no care: whoever copies the code reads them.
 * Small code has all that belongs to it there.
 */
#include "agent/hotspot/hotspot_fields.h"

#include <stdlib.h>

enum {
    PAGE = 4096, /* Linux has no smaller pages */
    CALLBACK_PAGES_LOG2 = 5,
    REPLAY_PAGES_LOG2 = 10,
    POOLS_LOG2 = 8,
};

struct hotspot_nearby {
    uint64_t replay;
    uintptr_t code, code_end; /* numbers of the pages that the code is on */
    int pages_log2;
    char (*pages)[PAGE]; /* copies, each page's in the one place where it can be */
    uintptr_t *numbers;  /* of these pages; 0: none. NULL: no memory */
    struct known_pool pools[1 << POOLS_LOG2];
};

static void make_pages(struct hotspot_nearby *nearby, int log2)
{
    free(nearby->pages);
    free(nearby->numbers);
    nearby->pages_log2 = log2;
    nearby->pages = malloc(sizeof(*nearby->pages) << log2);
    nearby->numbers = nearby->pages ? calloc((size_t)1 << log2, sizeof(*nearby->numbers)) : NULL;
}

struct hotspot_nearby *hotspot_nearby_new(void)
{
    struct hotspot_nearby *nearby = calloc(1, sizeof(struct hotspot_nearby));
    if (nearby) {
        make_pages(nearby, CALLBACK_PAGES_LOG2);
    }
    return nearby;
}

void hotspot_nearby_free(struct hotspot_nearby *nearby)
{
    if (nearby) {
        free(nearby->pages);
        free(nearby->numbers);
        free(nearby);
    }
}

void hotspot_nearby_begin(struct hotspot_nearby *nearby, uint64_t replay, const void *code,
                          uint64_t size)
{
    if (!nearby) {
        return;
    }
    nearby->code = (uintptr_t)code / PAGE;
    nearby->code_end = size > 0 ? ((uintptr_t)code + size - 1) / PAGE + 1 : nearby->code;
    if ((replay != 0) != (nearby->replay != 0)) {
        make_pages(nearby, replay ? REPLAY_PAGES_LOG2 : CALLBACK_PAGES_LOG2);
    } else if (nearby->numbers && (replay == 0 || replay != nearby->replay)) {
        memset(nearby->numbers, 0, sizeof(*nearby->numbers) << nearby->pages_log2);
    }
    nearby->replay = replay;
}

bool hotspot_nearby_lasts(const struct hotspot_nearby *nearby)
{
    return nearby && nearby->replay != 0 && nearby->numbers;
}

static size_t mix(uintptr_t number, int bits)
{
    return (size_t)((uint64_t)number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

struct known_pool *hotspot_known_pool(struct hotspot_nearby *nearby, const void *pool)
{
    return nearby ? &nearby->pools[mix((uintptr_t)pool, POOLS_LOG2)] : NULL;
}

/* The page of that number, or a copy; NULL: it cannot be read. */
static const char *page_of(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                           uintptr_t number)
{
    const char *from = (const char *)(number * PAGE); // NOLINT: looked at by the kernel alone …
    size_t at = mix(number, nearby->pages_log2);
    if (number >= nearby->code && number < nearby->code_end) {
        return from; /* … but here */
    }
    if (number == 0) { /* whoever follows a NULL */
        return NULL;
    }
    if (nearby->numbers[at] != number) {
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
    if (!nearby || !nearby->numbers || size > UINTPTR_MAX - at) {
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

bool hotspot_read_pieces(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         const struct memory_piece *pieces, size_t count)
{
    if (!hotspot_nearby_lasts(nearby)) {
        return memory_read_pieces(hotspot->memory, pieces, count);
    }
    for (size_t i = 0; i < count; i++) {
        if (!hotspot_read_near(hotspot, nearby, pieces[i].from, pieces[i].to, pieces[i].size)) {
            return false;
        }
    }
    return true;
}
