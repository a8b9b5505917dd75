/*
 * The fields of HotSpot's structures that we read, found in the layout tables that it exports for
 * the serviceability agent. The inside of agent/hotspot.h, for the files that make it up.
 */
#ifndef JD_AGENT_HOTSPOT_FIELDS_H
#define JD_AGENT_HOTSPOT_FIELDS_H

#include "agent/hotspot.h"

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
    SPACE_HIGH,
    BLOCK_USED,
    BLOB_SIZE,
    BLOB_FRAME_SIZE,
    BLOB_FRAME_COMPLETE,
    BLOB_CODE_BEGIN,
    BLOB_CODE_OFFSET,
    NMETHOD_METHOD,
    NMETHOD_ENTRY_BCI,
    NMETHOD_OSR_ENTRY,
    NMETHOD_VERIFIED_ENTRY,
    NMETHOD_VERIFIED_OFFSET,
    NMETHOD_COMPILE_ID,
    NMETHOD_TIER,
    METHOD_CONST,
    CONST_CODE_SIZE,
    CONST_POOL,
    CONST_NAME,
    CONST_SIGNATURE,
    POOL_LENGTH,
    SYMBOL_LENGTH,
    SYMBOL_BODY,
    FIELD_COUNT,
};

/* A field, once it is found. */
struct place {
    bool known;
    bool is_signed;
    size_t width;  /* bytes, of integers */
    size_t offset; /* in its owner */
    const char *static_address;
};

enum { MAX_TRUSTED = 64 };

struct hotspot {
    struct place places[FIELD_COUNT];
    size_t block_header; /* bytes */
    size_t const_method; /* bytes; the bytecodes stand behind it */
    size_t pool;         /* bytes of a ConstantPool; its entries stand behind it */
    atomic_uint methods_checked;
    /* Pointers found in the JVM's structures that were seen to point to memory. */
    _Atomic(const char *) trusted[MAX_TRUSTED];
};

/* A pointer in the JVM's memory, whose types are not ours. */
static inline const char *hotspot_load(const char *at)
{
    const char *value;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* The pointer that is the field of an object; the field is known. */
static inline const char *hotspot_pointer(const struct hotspot *hotspot, const char *object,
                                          enum field field)
{
    return hotspot_load(object + hotspot->places[field].offset);
}

/* The integer that is the field of an object. False: the field is unknown. */
bool hotspot_integer(const struct hotspot *hotspot, const char *object, enum field field,
                     int64_t *value);

/* Whether there is memory at `at`, which is not NULL. Asks the kernel. */
bool hotspot_has_page(const char *at);

static inline bool hotspot_is_mapped(const char *at)
{
    return at && hotspot_has_page(at);
}

#endif
