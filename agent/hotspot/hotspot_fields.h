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
    METHODS_LENGTH,
    METHODS_DATA,
    FLAGS,      /* static */
    FLAG_COUNT, /* static */
    FLAG_NAME,
    FLAG_ADDRESS,
    THREAD_OSTHREAD,
    OSTHREAD_ID,
    FIELD_COUNT,
};

/* A field, once it is found. */
struct place {
    bool known;
    bool is_signed;
    size_t width;  /* bytes */
    size_t offset; /* in its owner */
    const char *static_address;
};

/* A piece of the code cache (code/codeHeap.hpp). */
struct code_heap {
    const char *low, *end; /* reserved */
    const char *map;       /* a byte a segment */
    size_t map_size;
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
    struct memory_reader *memory;
    int major;           /* version */
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

    atomic_int blobs;   /* enum trust, for what blobs say */
    atomic_int scopes;  /* for what nmethods say of inlined methods */
    atomic_int methods; /* for classes and methods */

    /* How a class's Klass is had, see hotspot_class.c. */
    int64_t klass_offset;
    bool by_unsafe;
    jobject unsafe;
    jmethodID get_long;
};

/* Finds the fields. False: what the code cache takes is not among them. */
bool hotspot_find_fields(struct hotspot *hotspot, JavaVM *vm);

/* For tests: the i-th field, type or constant that is looked for, as the tables call it
 * ("CodeBlob::_size", "PcDesc"). NULL: there are no more. */
const char *hotspot_wanted_name(size_t i);

/* Whether all these are known; the list ends with FIELD_COUNT. */
bool hotspot_has_fields(const struct hotspot *hotspot, const enum field *fields);

/* An integer of `width` bytes. */
int64_t hotspot_load_integer(const void *at, size_t width, bool is_signed);

/*
 * The integer that is a field of an object of which we hold a copy of `size` bytes. False: the
 * field is unknown or not in the copy.
 */
bool hotspot_integer(const struct hotspot *hotspot, const void *copy, size_t size, enum field field,
                     int64_t *value);

/* The same for a pointer; NULL where the other one is false. */
const char *hotspot_pointer(const struct hotspot *hotspot, const void *copy, size_t size,
                            enum field field);

/* The pointer that is a field of the object at `object`, read with care. False: not to be had. */
bool hotspot_read_pointer(const struct hotspot *hotspot, const void *object, enum field field,
                          const char **value);

/*
 * Copies from memory as it was at this callback's begin or, in a replay, the replay's, at the
 * earliest: for what does not change in code that lives, or in a Method that such code mentions.
 */
bool hotspot_read_near(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                       const void *from, void *to, size_t size);

/* The same for pieces, each in its turn; where pages do not last longer than this callback, at once
 * and without them. */
bool hotspot_read_pieces(const struct hotspot *hotspot, struct hotspot_nearby *nearby,
                         const struct memory_piece *pieces, size_t count);

/* Where a ConstantPool led to when it was last followed: a guess what to read along with it. */
struct known_pool {
    const char *pool; /* NULL: none */
    const char *klass;
    const char *ids;
};

/* The place for what is known of that pool, which another one may have; NULL: there is no room. */
struct known_pool *hotspot_known_pool(struct hotspot_nearby *nearby, const void *pool);

/* The value of a static field that is an integer or a pointer, read with care. */
bool hotspot_read_static(const struct hotspot *hotspot, enum field field, int64_t *value);

/* Gives up the scopes. */
void hotspot_scopes_broken(struct hotspot *hotspot);

/* Gives up a part of what we know, telling the user once what for. */
void hotspot_distrust(struct hotspot *hotspot, atomic_int *part, const char *what);

#endif
