/*
 * Reading the fields of HotSpot's structures (hotspot/layout.h) in this process. The inside of
 * agent/hotspot/hotspot.h, for the files that make it up.
 */
#ifndef JD_AGENT_HOTSPOT_FIELDS_H
#define JD_AGENT_HOTSPOT_FIELDS_H

#include "agent/hotspot/hotspot.h"
#include "hotspot/layout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* A part of what we know can be found false, and is left alone from then on. */
enum trust {
    TRUST_UNPROVEN,
    TRUST_PROVEN,
    TRUST_BROKEN,
};

struct hotspot {
    struct hotspot_layout layout;
    struct memory *memory;
    int major;        /* version */
    int32_t top_tier; /* of code of the highest level: 4, or JITDUMP_TIER_JVMCI */
    size_t head;      /* so far into a blob do our fields reach */

    pthread_mutex_t heaps_lock;
    struct code_heap heaps[CODE_HEAPS_MAX];
    atomic_size_t heap_count; /* 0: not there yet */

    atomic_int blobs;    /* enum trust, for the code cache and what blobs say */
    atomic_int nmethods; /* for what an nmethod was compiled from: never broken */
    atomic_int scopes;   /* for what nmethods say of inlined methods */
    atomic_int agreed;   /* nmethods whose scopes were as JVMTI told them */
    atomic_int methods;  /* for classes and methods */
};

/* Finds the fields. False: what the code cache takes is not among them. */
bool hotspot_find_fields(struct hotspot *hotspot, const void *function);

/*
 * The integer that is a field of an object of which we hold `size` bytes. False: the field is
 * unknown or not in them.
 */
static inline bool hotspot_integer(const struct hotspot *hotspot, const void *copy, size_t size,
                                   enum field field, int64_t *value)
{
    const struct place *place = &hotspot->layout.places[field];
    if (!place->known || place->offset > size || size - place->offset < place->width) {
        return false;
    }
    *value =
        hotspot_load_integer((const char *)copy + place->offset, place->width, place->is_signed);
    return true;
}

/* The same for a pointer; 0 where the other one is false. */
static inline uint64_t hotspot_pointer(const struct hotspot *hotspot, const void *copy, size_t size,
                                       enum field field)
{
    int64_t value = 0;
    return hotspot_integer(hotspot, copy, size, field, &value) ? (uint64_t)value : 0;
}

/* The pointer or the integer that is a field of the object at `object`, read with care. False: not
 * to be had. */
bool hotspot_read_pointer(const struct hotspot *hotspot, uint64_t object, enum field field,
                          uint64_t *value);
bool hotspot_read_integer(const struct hotspot *hotspot, uint64_t object, enum field field,
                          int64_t *value);

/* Where a ConstantPool led to when it was last followed: a guess what to read along with it. */
struct known_pool {
    uint64_t pool; /* 0: none */
    uint64_t klass;
    uint64_t ids;
};

enum {
    PAGE = 4096, /* Linux has no smaller pages */
    STRETCH_LOG2 = 6,
    STRETCHES_LOG2 = 9,
    POOLS_LOG2 = 8
};

/* 64 pages, and which of them can be read. */
struct stretch {
    uint64_t key; /* the pages' numbers without the lowest 6 bits, and who asked (hotspot_nearby) */
    uint64_t there;
};

struct hotspot_nearby {
    uint64_t replay;
    uint64_t asker; /* above the bits of a stretch's number: another one in each callback or replay,
                       never 0 */
    uint64_t code, code_end; /* numbers of the pages that the code is on */
    bool own;                /* this process's memory, of which it is known which pages are there */
    bool in_place;           /* what the code mentions is read where it is */
    struct stretch stretches[1 << STRETCHES_LOG2]; /* each in its one slot */
    struct known_pool pools[1 << POOLS_LOG2];
};

static inline size_t page_slot(uint64_t number, int bits)
{
    return (size_t)(number * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits));
}

/* The slot of the stretch of a page. */
static inline struct stretch *hotspot_stretch(struct hotspot_nearby *nearby, uint64_t page)
{
    return &nearby->stretches[page_slot(page >> STRETCH_LOG2, STRETCHES_LOG2)];
}

/* Whether a page, by its number, can be read; it is known then. */
bool hotspot_ask_for_page(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                          uint64_t number);

/* What is at `from`, where it is; NULL: it cannot be read. The memory is this process's, and
 * hotspot_nearby.c says when this may be done. */
static inline const char *hotspot_there(const struct hotspot *hotspot,
                                        struct hotspot_nearby *nearby, uint64_t from, size_t size)
{
    uint64_t number = from / PAGE;
    if (number == 0 || size > UINTPTR_MAX - from) { /* 0: whoever follows a NULL */
        return NULL;
    }
    for (uint64_t last = (from + size - (size > 0)) / PAGE; number <= last; number++) {
        const struct stretch *known = hotspot_stretch(nearby, number);
        if ((known->key != (nearby->asker | number >> STRETCH_LOG2) ||
             (known->there >> number % (1 << STRETCH_LOG2) & 1) == 0) &&
            !hotspot_ask_for_page(hotspot, nearby, number)) {
            return NULL;
        }
    }
    return (const char *)(uintptr_t)from; // NOLINT: it is there
}

/* The same of what the code that a callback tells of mentions; NULL where it is not read in place,
 * too. */
static inline const char *hotspot_view(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                                       uint64_t from, size_t size)
{
    return nearby && nearby->in_place ? hotspot_there(hotspot, nearby, from, size) : NULL;
}

/* Copies from what the code that a callback tells of mentions, by whatever way there is. */
bool hotspot_read_near(const struct hotspot *hotspot, struct hotspot_nearby *nearby, uint64_t from,
                       void *to, size_t size);

/* The place for what is known of that pool, which another one may have; NULL: there is no room. */
struct known_pool *hotspot_known_pool(struct hotspot_nearby *nearby, uint64_t pool);

/* The value of a static field that is an integer or a pointer, read with care. */
bool hotspot_read_static(const struct hotspot *hotspot, enum field field, int64_t *value);

/* Gives up the scopes. */
void hotspot_scopes_broken(struct hotspot *hotspot);

/* Gives up a part of what we know, telling the user once what for. */
void hotspot_distrust(struct hotspot *hotspot, atomic_int *part, const char *what);

#endif
