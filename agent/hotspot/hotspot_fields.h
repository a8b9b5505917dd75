/*
 * The fields of HotSpot's structures that we read, found in the layout tables that it exports for
 * the serviceability agent. The inside of agent/hotspot/hotspot.h, for the files that make it up.
 */
#ifndef JD_AGENT_HOTSPOT_FIELDS_H
#define JD_AGENT_HOTSPOT_FIELDS_H

#include "agent/hotspot/hotspot.h"
#include "agent/hotspot/hotspot_memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* The fields we use. */
enum field {
    HEAPS, /* static */
    HEAP,  /* static, JDK 8 */
    ARRAY_LENGTH,
    ARRAY_DATA,
    HEAP_MEMORY,
    HEAP_SEGMAP,
    HEAP_LOG2_SEGMENT,
    SPACE_LOW,
    SPACE_END, /* of what is reserved: it stays, while what is committed grows */
    BLOCK_USED,
    BLOB_SIZE,
    BLOB_FRAME_SIZE,
    BLOB_FRAME_COMPLETE,
    BLOB_CODE_BEGIN,
    BLOB_CODE_OFFSET,
    BLOB_MUTABLE_DATA, /* from JDK 25 on, and the next two */
    BLOB_MUTABLE_SIZE,
    BLOB_RELOCATION_SIZE,
    NMETHOD_METHOD,
    NMETHOD_ENTRY_BCI,
    NMETHOD_OSR_ENTRY,
    NMETHOD_VERIFIED_ENTRY,
    NMETHOD_VERIFIED_OFFSET,
    NMETHOD_COMPILE_ID,
    NMETHOD_TIER,
    NMETHOD_PCS_OFFSET,
    NMETHOD_SCOPES_OFFSET, /* JDK 8, and from 25 on */
    NMETHOD_SCOPES,        /* JDK 9 to 22 */
    NMETHOD_METADATA_OFFSET,
    NMETHOD_DEPENDENCIES_OFFSET, /* to JDK 22: what is behind the PcDescs */
    NMETHOD_IMMUTABLE_DATA,      /* from JDK 25 on, and the next one */
    NMETHOD_IMMUTABLE_SIZE,
    PC_OFFSET,
    PC_SCOPE,
    METHOD_CONST,
    METHOD_ACCESS,
    METHOD_CODE,
    CONST_SIZE, /* words */
    CONST_CODE_SIZE,
    CONST_POOL,
    CONST_NAME,
    CONST_SIGNATURE,
    CONST_IDNUM,
    CONST_FLAGS,
    POOL_LENGTH,
    POOL_HOLDER,
    SYMBOL_LENGTH,
    SYMBOL_BODY,
    MIRROR_KLASS, /* static: the offset in a java.lang.Class */
    KLASS_METHODS,
    KLASS_IDS,
    KLASS_LAYOUT,
    KLASS_NAME,
    KLASS_BREAKPOINTS,
    METHODS_LENGTH,
    METHODS_DATA,
    FLAGS,      /* static */
    FLAG_COUNT, /* static */
    FLAG_NAME,
    FLAG_ADDRESS,
    THREAD_OSTHREAD,
    THREAD_ANCHOR,
    ANCHOR_SP,
    ANCHOR_PC,
    ANCHOR_FP,
    OSTHREAD_ID,
    FIELD_COUNT,
};

/* A field, once it is found. */
struct place {
    bool known;
    bool is_signed;
    size_t width;  /* bytes */
    size_t offset; /* in its owner */
    uint64_t static_address;
};

/* A piece of the code cache (code/codeHeap.hpp). */
struct code_heap {
    uint64_t low, end; /* reserved */
    uint64_t map;      /* a byte a segment */
    uint64_t map_size;
    unsigned log2; /* of a segment's bytes */
};

enum { MAX_HEAPS = 8 };

/* A part of what we know can be found false, and is left alone from then on. */
enum trust {
    TRUST_UNPROVEN,
    TRUST_PROVEN,
    TRUST_BROKEN,
};

struct hotspot {
    struct place places[FIELD_COUNT];
    struct memory *memory;
    int major;           /* version */
    int32_t top_tier;    /* of code of the highest level: 4, or JITDUMP_TIER_JVMCI */
    size_t block_header; /* bytes */
    size_t const_method; /* bytes; the bytecodes stand behind it */
    size_t pool;         /* bytes of a ConstantPool; its entries stand behind it */
    size_t pc;           /* bytes of a PcDesc */
    size_t flag;         /* bytes of a JVMFlag */
    int64_t has_lines;   /* in CONST_FLAGS */
    size_t head;         /* so far into a blob do our fields reach */

    pthread_mutex_t heaps_lock;
    struct code_heap heaps[MAX_HEAPS];
    atomic_size_t heap_count; /* 0: not there yet */

    atomic_int blobs;    /* enum trust, for the code cache and what blobs say */
    atomic_int nmethods; /* for what an nmethod was compiled from: never broken */
    atomic_int scopes;   /* for what nmethods say of inlined methods */
    atomic_int methods;  /* for classes and methods */
};

/* Finds the fields. False: what the code cache takes is not among them. */
bool hotspot_find_fields(struct hotspot *hotspot, const void *function);

/* For tests: the i-th field, type or constant that is looked for, as the tables call it
 * ("CodeBlob::_size", "PcDesc"). NULL: there are no more. */
const char *hotspot_wanted_name(size_t i);

/* Whether all these are known; the list ends with FIELD_COUNT. */
bool hotspot_has_fields(const struct hotspot *hotspot, const enum field *fields);

/* An integer of `width` bytes, 1 to 8. */
static inline int64_t hotspot_load_integer(const void *at, size_t width, bool is_signed)
{
    uint64_t bits = 0; /* HotSpot runs on little-endian machines, but for s390x */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* A replay reads a million of these sizes: no call of a function for them. */
    if (width == sizeof(uint64_t)) {
        memcpy(&bits, at, sizeof(uint64_t));
    } else if (width == sizeof(uint32_t)) {
        memcpy(&bits, at, sizeof(uint32_t));
    } else if (width == sizeof(uint16_t)) {
        memcpy(&bits, at, sizeof(uint16_t));
    } else {
        memcpy(&bits, at, width);
    }
#else
    memcpy((char *)&bits + 8 - width, at, width);
#endif
    unsigned unused = (unsigned)(64 - 8 * width);
    return is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
}

/*
 * The integer that is a field of an object of which we hold `size` bytes. False: the field is
 * unknown or not in them.
 */
static inline bool hotspot_integer(const struct hotspot *hotspot, const void *copy, size_t size,
                                   enum field field, int64_t *value)
{
    const struct place *place = &hotspot->places[field];
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
