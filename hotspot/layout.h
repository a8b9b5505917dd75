/*
 * Where HotSpot's structures have their fields, by the tables that it exports for the
 * serviceability agent (gHotSpotVMStructs and its like), and where its code cache is. The agent
 * asks in the JVM's own process, jdtool from outside: both by way of struct memory.
 *
 * What the tables say is the JVM's to choose: it is bounded here, and whoever reads by it holds
 * what is found against something else.
 */
#ifndef JD_HOTSPOT_LAYOUT_H
#define JD_HOTSPOT_LAYOUT_H

#include "hotspot/memory.h"

#include <string.h>

/* The fields that are looked for. */
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
    ARCHIVE_BASE, /* static, and the next one: of what is mapped of CDS archives */
    ARCHIVE_TOP,
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
    FIELDS_INSIDE, /* the agent asks for those before it */
    BLOB_NAME = FIELDS_INSIDE,
    OOP_BASE,              /* static */
    OOP_SHIFT,             /* static */
    HEAP_OBJECT,           /* static: a CollectedHeap */
    HEAP_IS_COLLECTING,    /* a bool */
    HEAP_COLLECTIONS,      /* 32 bits */
    CONTINUATION_ENTRY_PC, /* static; JDK 24 and later */
    VM_VERSION,            /* static */
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

/* What is found of them; zero what is not. */
struct hotspot_layout {
    struct place places[FIELD_COUNT];
    size_t block_header; /* bytes of a HeapBlock */
    size_t const_method; /* bytes; the bytecodes stand behind it */
    size_t pool;         /* bytes of a ConstantPool; its entries stand behind it */
    size_t pc;           /* bytes of a PcDesc */
    size_t flag;         /* bytes of a JVMFlag */
    int64_t has_lines;   /* in CONST_FLAGS */
};

/* A library: its memory, and where a symbol that it exports lies. False: it exports none. */
struct libjvm {
    struct memory *memory;
    bool (*symbol)(const struct libjvm *libjvm, const char *name, uint64_t *address);
    const void *context; /* its own */
};

/* Reads the tables. False: they are not there, or there is no memory. */
bool hotspot_layout_read(const struct libjvm *libjvm, struct hotspot_layout *layout);

/* Whether all these are known; the list ends with FIELD_COUNT. */
bool hotspot_layout_has(const struct hotspot_layout *layout, const enum field *fields);

/* For tests: the i-th field, type or constant that the agent looks for, as the tables call it
 * ("CodeBlob::_size", "PcDesc"). NULL: there are no more. */
const char *hotspot_wanted_name(size_t i);

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

/* The integer or pointer that is a field of the object at `object`, or a static one with 0 in its
 * place. False: it is not known, or not to be read. */
bool place_read(struct memory *memory, const struct place *place, uint64_t object, int64_t *value);

/* ---- The code cache ---- */

/* A piece of the code cache (code/codeHeap.hpp). */
struct code_heap {
    uint64_t low, end; /* reserved */
    uint64_t map;      /* a byte a segment */
    uint64_t map_size;
    unsigned log2; /* of a segment's bytes */
};

enum { CODE_HEAPS_MAX = 8 };

/*
 * Its heaps: all are reserved at once, when the JVM starts, and stay where they are. Returns how
 * many; 0: there are none yet; -1: what is there makes no sense.
 */
int code_heaps_read(struct memory *memory, const struct hotspot_layout *layout,
                    struct code_heap heaps[CODE_HEAPS_MAX]);

#endif
