/*
 * How an nmethod is found from the address of its code
 *
 * The code cache consists of up to three heaps (JDK 8: one). Each is a row of segments, and a byte
 * map says for each segment how far it is from the first one of its block (255: the block is free;
 * at most 254 a step). A block starts with a HeapBlock header, behind it stands the CodeBlob, an
 * nmethod is one, and inside of that the code. Everything from the block's start to the code is
 * committed memory, because the code is there; the map is read only where it describes that block.
 * What is found is believed only if the blob says itself that its code starts where we came from.
 *
 * JDK 17 has the code's start and entries as addresses, 25 as offsets, and fields have changed
 * their widths, so both are taken from the tables: the offset from gHotSpotVMStructs, the width and
 * sign from gHotSpotVMTypes by the field's type.
 */
#include "agent/hotspot.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_HEAPS = 8 };

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
    NMETHOD_ENTRY_BCI,
    NMETHOD_OSR_ENTRY,
    NMETHOD_VERIFIED_ENTRY,
    NMETHOD_VERIFIED_OFFSET,
    NMETHOD_COMPILE_ID,
    NMETHOD_TIER,
    METHOD_CONST,
    CONST_CODE_SIZE,
    CONST_POOL,
    FIELD_COUNT,
};

/* Where the tables have them, and as which type; NULL: any integer. */
static const struct {
    enum field field;
    const char *owner, *name, *type;
} wanted[] = {
    {HEAPS, "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*"},
    {HEAP, "CodeCache", "_heap", "CodeHeap*"},
    {ARRAY_LENGTH, "GrowableArrayBase", "_len", NULL},
    {ARRAY_LENGTH, "GenericGrowableArray", "_len", NULL}, /* to JDK 15 */
    {ARRAY_DATA, "GrowableArray<int>", "_data", "int*"},
    {HEAP_MEMORY, "CodeHeap", "_memory", "VirtualSpace"},
    {HEAP_SEGMAP, "CodeHeap", "_segmap", "VirtualSpace"},
    {HEAP_LOG2_SEGMENT, "CodeHeap", "_log2_segment_size", NULL},
    {SPACE_LOW, "VirtualSpace", "_low", "char*"},
    {SPACE_HIGH, "VirtualSpace", "_high", "char*"},
    {BLOCK_USED, "HeapBlock::Header", "_used", "bool"},
    {BLOB_SIZE, "CodeBlob", "_size", NULL},
    {BLOB_FRAME_SIZE, "CodeBlob", "_frame_size", NULL},
    {BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset", NULL},
    {BLOB_CODE_BEGIN, "CodeBlob", "_code_begin", "address"},
    {BLOB_CODE_OFFSET, "CodeBlob", "_code_offset", NULL},
    {NMETHOD_ENTRY_BCI, "nmethod", "_entry_bci", NULL},
    {NMETHOD_OSR_ENTRY, "nmethod", "_osr_entry_point", "address"},
    {NMETHOD_VERIFIED_ENTRY, "nmethod", "_verified_entry_point", "address"},
    {NMETHOD_VERIFIED_OFFSET, "nmethod", "_verified_entry_offset", NULL},
    {NMETHOD_COMPILE_ID, "nmethod", "_compile_id", NULL},
    {NMETHOD_TIER, "nmethod", "_comp_level", NULL},
    {METHOD_CONST, "Method", "_constMethod", "ConstMethod*"},
    {CONST_CODE_SIZE, "ConstMethod", "_code_size", NULL},
    {CONST_POOL, "ConstMethod", "_constants", "ConstantPool*"},
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
    atomic_uint methods_checked;
    /* Pointers found in the JVM's structures that were seen to point to memory. */
    _Atomic(const char *) trusted[MAX_TRUSTED];
};

/* The tables themselves. */
struct tables {
    void *libjvm;
    const char *structs, *types;
    size_t struct_stride, struct_owner, struct_name, struct_type, struct_static, struct_offset,
        struct_address;
    size_t type_stride, type_name, type_size, type_integer, type_unsigned;
};

static bool find_symbol(void *libjvm, const char *name, size_t *value)
{
    const uint64_t *symbol = (const uint64_t *)dlsym(libjvm, name);
    if (symbol) {
        *value = (size_t)*symbol;
    }
    return symbol != NULL;
}

static bool find_table(void *libjvm, const char *name, const char **table)
{
    const char *const *symbol = (const char *const *)dlsym(libjvm, name);
    if (symbol) {
        *table = *symbol;
    }
    return symbol && *table;
}

static bool find_tables(struct tables *tables)
{
#define STRUCTS "gHotSpotVMStruct"
#define TYPES   "gHotSpotVMType"
    void *jvm = tables->libjvm;
    return find_table(jvm, STRUCTS "s", &tables->structs) &&
           find_table(jvm, TYPES "s", &tables->types) &&
           find_symbol(jvm, STRUCTS "EntryArrayStride", &tables->struct_stride) &&
           find_symbol(jvm, STRUCTS "EntryTypeNameOffset", &tables->struct_owner) &&
           find_symbol(jvm, STRUCTS "EntryFieldNameOffset", &tables->struct_name) &&
           find_symbol(jvm, STRUCTS "EntryTypeStringOffset", &tables->struct_type) &&
           find_symbol(jvm, STRUCTS "EntryIsStaticOffset", &tables->struct_static) &&
           find_symbol(jvm, STRUCTS "EntryOffsetOffset", &tables->struct_offset) &&
           find_symbol(jvm, STRUCTS "EntryAddressOffset", &tables->struct_address) &&
           find_symbol(jvm, TYPES "EntryArrayStride", &tables->type_stride) &&
           find_symbol(jvm, TYPES "EntryTypeNameOffset", &tables->type_name) &&
           find_symbol(jvm, TYPES "EntrySizeOffset", &tables->type_size) &&
           find_symbol(jvm, TYPES "EntryIsIntegerTypeOffset", &tables->type_integer) &&
           find_symbol(jvm, TYPES "EntryIsUnsignedOffset", &tables->type_unsigned) &&
           tables->struct_stride > 0 && tables->type_stride > 0;
#undef STRUCTS
#undef TYPES
}

/* Reads of the JVM's memory, whose types are not ours. */
static const char *pointer_at(const char *at)
{
    const char *value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static uint64_t u64_at(const char *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

static int32_t i32_at(const char *at)
{
    int32_t value;
    memcpy(&value, at, sizeof(value));
    return value;
}

/* The type's table entry, or NULL. */
static const char *find_type(const struct tables *tables, const char *name)
{
    for (const char *entry = tables->types; pointer_at(entry + tables->type_name);
         entry += tables->type_stride) {
        if (strcmp(pointer_at(entry + tables->type_name), name) == 0) {
            return entry;
        }
    }
    return NULL;
}

/* The width of an integer field of that type; 0: it is none that we can read. */
static size_t integer_width(const struct tables *tables, const char *type, bool *is_signed)
{
    const char *entry = find_type(tables, type);
    if (!entry) {
        return 0;
    }
    size_t width = (size_t)u64_at(entry + tables->type_size);
    /* C's own int and short are "toplevel" types in some tables, and CompLevel is an enum. */
    *is_signed = !(i32_at(entry + tables->type_integer) && i32_at(entry + tables->type_unsigned));
    return width == 1 || width == 2 || width == 4 || width == 8 ? width : 0;
}

static void find_field(struct hotspot *hotspot, const struct tables *tables, const char *entry)
{
    const char *owner = pointer_at(entry + tables->struct_owner);
    const char *name = pointer_at(entry + tables->struct_name);
    const char *type = pointer_at(entry + tables->struct_type);
    for (size_t i = 0; name && type && i < sizeof(wanted) / sizeof(*wanted); i++) {
        if (strcmp(owner, wanted[i].owner) != 0 || strcmp(name, wanted[i].name) != 0) {
            continue;
        }
        struct place *place = &hotspot->places[wanted[i].field];
        if (wanted[i].type) {
            place->known = strcmp(type, wanted[i].type) == 0;
        } else {
            place->width = integer_width(tables, type, &place->is_signed);
            place->known = place->width > 0;
        }
        if (i32_at(entry + tables->struct_static)) {
            place->static_address = pointer_at(entry + tables->struct_address);
        } else {
            place->offset = (size_t)u64_at(entry + tables->struct_offset);
        }
        return;
    }
}

/* What finding a blob takes; the rest is a gain each. */
static bool is_usable(const struct hotspot *hotspot)
{
    static const enum field needed[] = {HEAP_MEMORY, HEAP_SEGMAP, HEAP_LOG2_SEGMENT, SPACE_LOW,
                                        SPACE_HIGH,  BLOCK_USED,  BLOB_SIZE};
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
        if (!hotspot->places[needed[i]].known) {
            return false;
        }
    }
    const struct place *places = hotspot->places;
    bool heaps = places[HEAPS].known && places[HEAPS].static_address &&
                 places[ARRAY_LENGTH].known && places[ARRAY_DATA].known;
    bool heap = places[HEAP].known && places[HEAP].static_address;
    return (heaps || heap) && (places[BLOB_CODE_BEGIN].known || places[BLOB_CODE_OFFSET].known);
}

struct hotspot *hotspot_new(JavaVM *vm)
{
    /* A function of the JVM's own tells which library it is; dlopen just counts it once more. */
    Dl_info info;
    void *function = NULL;
    memcpy(&function, (const char *)*vm + offsetof(struct JNIInvokeInterface_, GetEnv),
           sizeof(function));
    if (!dladdr(function, &info) || !info.dli_fname) {
        return NULL;
    }
    struct tables tables = {.libjvm = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)};
    struct hotspot *hotspot = tables.libjvm ? calloc(1, sizeof(*hotspot)) : NULL;
    if (hotspot && find_tables(&tables)) {
        for (const char *entry = tables.structs; pointer_at(entry + tables.struct_owner);
             entry += tables.struct_stride) {
            find_field(hotspot, &tables, entry);
        }
        const char *block = find_type(&tables, "HeapBlock");
        hotspot->block_header = block ? (size_t)u64_at(block + tables.type_size) : 0;
        const char *const_method = find_type(&tables, "ConstMethod");
        hotspot->const_method = const_method ? (size_t)u64_at(const_method + tables.type_size) : 0;
    }
    if (hotspot && (hotspot->block_header == 0 || !is_usable(hotspot))) {
        hotspot_free(hotspot);
        hotspot = NULL;
    }
    if (tables.libjvm) {
        dlclose(tables.libjvm); /* the JVM keeps it for as long as we live */
    }
    return hotspot;
}

void hotspot_free(struct hotspot *hotspot)
{
    free(hotspot);
}

static const char *read_pointer(const struct hotspot *hotspot, const char *object, enum field field)
{
    return pointer_at(object + hotspot->places[field].offset);
}

/* False: the field is unknown. */
static bool read_integer(const struct hotspot *hotspot, const char *object, enum field field,
                         int64_t *value)
{
    const struct place *place = &hotspot->places[field];
    if (!place->known) {
        return false;
    }
    uint64_t bits = 0; /* HotSpot runs on little-endian machines, but for s390x */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&bits, object + place->offset, place->width);
#else
    memcpy((char *)&bits + 8 - place->width, object + place->offset, place->width);
#endif
    unsigned unused = (unsigned)(64 - 8 * place->width);
    *value = place->is_signed ? (int64_t)(bits << unused) >> unused : (int64_t)bits;
    return true;
}

static bool is_mapped(const char *at)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return at && mincore((char *)at - (uintptr_t)at % page, 1, &resident) == 0;
}

/*
 * Whether there is memory at `at`: a layout that is not what it says would send us anywhere. The
 * kernel is asked once for each of the few pointers there are.
 */
static bool is_memory(struct hotspot *hotspot, const char *at)
{
    size_t i = 0;
    const char *known = NULL;
    while (i < MAX_TRUSTED && (known = atomic_load(&hotspot->trusted[i]))) {
        if (known == at) {
            return true;
        }
        i++;
    }
    if (!is_mapped(at)) {
        return false;
    }
    if (i < MAX_TRUSTED) {
        atomic_store(&hotspot->trusted[i], at);
    }
    return true;
}

/* The code cache's heaps. Few, and never moved once they are there; at the JVM's start none is. */
static size_t find_heaps(struct hotspot *hotspot, const char *heaps[MAX_HEAPS])
{
    if (!hotspot->places[HEAPS].known) {
        heaps[0] = pointer_at(hotspot->places[HEAP].static_address);
        return heaps[0] ? 1 : 0;
    }
    const char *array = pointer_at(hotspot->places[HEAPS].static_address);
    int64_t length = 0;
    if (!is_memory(hotspot, array) || !read_integer(hotspot, array, ARRAY_LENGTH, &length) ||
        length < 1 || length > MAX_HEAPS) {
        return 0;
    }
    const char *data = read_pointer(hotspot, array, ARRAY_DATA);
    if (!is_memory(hotspot, data)) {
        return 0;
    }
    for (int64_t i = 0; i < length; i++) {
        heaps[i] = pointer_at(data + (size_t)i * sizeof(char *));
    }
    return (size_t)length;
}

/* The blob that the block around `address` holds, when the address lies in that heap. */
static const char *blob_in_heap(struct hotspot *hotspot, const char *heap, const char *address)
{
    const char *memory = heap + hotspot->places[HEAP_MEMORY].offset;
    const char *segmap = heap + hotspot->places[HEAP_SEGMAP].offset;
    const char *low = read_pointer(hotspot, memory, SPACE_LOW);
    const char *map = read_pointer(hotspot, segmap, SPACE_LOW);
    size_t map_size = (size_t)(read_pointer(hotspot, segmap, SPACE_HIGH) - map);
    int64_t log2 = 0;
    if (!is_memory(hotspot, low) || !is_memory(hotspot, map) || address < low ||
        address >= read_pointer(hotspot, memory, SPACE_HIGH) ||
        !read_integer(hotspot, heap, HEAP_LOG2_SEGMENT, &log2) || log2 < 3 || log2 > 30) {
        return NULL;
    }
    size_t segment = (size_t)(address - low) >> log2;
    while (segment < map_size) {
        unsigned char back = (unsigned char)map[segment];
        if (back == 0) {
            const char *block = low + (segment << log2);
            bool used = block[hotspot->places[BLOCK_USED].offset] != 0;
            return used ? block + hotspot->block_header : NULL;
        }
        if (back == 255 || back > segment) {
            return NULL;
        }
        segment -= back;
    }
    return NULL;
}

/* The blob whose code starts at `address`, NULL when there is none. */
static const char *find_blob(struct hotspot *hotspot, const char *address)
{
    const char *heaps[MAX_HEAPS];
    size_t count = find_heaps(hotspot, heaps);
    const char *blob = NULL;
    for (size_t i = 0; i < count && !blob; i++) {
        blob = is_memory(hotspot, heaps[i]) ? blob_in_heap(hotspot, heaps[i], address) : NULL;
    }
    if (!blob || blob >= address) {
        return NULL; /* a stub inside of a blob may even start the block's first segment */
    }
    int64_t size = 0;
    int64_t offset = 0;
    if (!read_integer(hotspot, blob, BLOB_SIZE, &size) || size < address - blob) {
        return NULL;
    }
    const char *code = NULL;
    if (hotspot->places[BLOB_CODE_BEGIN].known) {
        code = read_pointer(hotspot, blob, BLOB_CODE_BEGIN);
    } else if (read_integer(hotspot, blob, BLOB_CODE_OFFSET, &offset)) {
        code = blob + offset;
    }
    return code == address ? blob : NULL;
}

/* A field's value when it is one that makes sense, else -1. */
static int32_t fact(const struct hotspot *hotspot, const char *object, enum field field,
                    int64_t least, int64_t most)
{
    int64_t value = 0;
    if (!read_integer(hotspot, object, field, &value) || value < least || value > most) {
        return -1;
    }
    return (int32_t)value;
}

/* The same for a field that holds an address inside of the code: its offset. */
static int32_t address_fact(const struct hotspot *hotspot, const char *object, enum field field,
                            const char *code, uint64_t size)
{
    if (!hotspot->places[field].known) {
        return -1;
    }
    const char *value = read_pointer(hotspot, object, field);
    return value >= code && (uint64_t)(value - code) < size ? (int32_t)(value - code) : -1;
}

static void nmethod_facts(const struct hotspot *hotspot, const char *nmethod, const char *code,
                          uint64_t size, struct code_facts *facts)
{
    facts->tier = fact(hotspot, nmethod, NMETHOD_TIER, 0, 4);
    facts->compile_id = fact(hotspot, nmethod, NMETHOD_COMPILE_ID, 0, INT32_MAX);
    facts->verified_entry = address_fact(hotspot, nmethod, NMETHOD_VERIFIED_ENTRY, code, size);
    if (facts->verified_entry < 0) {
        facts->verified_entry =
            fact(hotspot, nmethod, NMETHOD_VERIFIED_OFFSET, 0, (int64_t)size - 1);
    }
    /* InvocationEntryBci is -1: entered from the start. */
    facts->osr_bci = fact(hotspot, nmethod, NMETHOD_ENTRY_BCI, 0, UINT16_MAX);
    if (facts->osr_bci >= 0) {
        facts->osr_entry = address_fact(hotspot, nmethod, NMETHOD_OSR_ENTRY, code, size);
    }
}

void hotspot_facts(struct hotspot *hotspot, const void *address, uint64_t size, bool compiled,
                   struct code_facts *facts)
{
    if (!hotspot || size == 0 || size > INT32_MAX) {
        return;
    }
    const char *code = address;
    const char *blob = find_blob(hotspot, code);
    if (!blob) {
        return;
    }
    enum { MAX_FRAME_WORDS = 1 << 20 };
    int32_t words = fact(hotspot, blob, BLOB_FRAME_SIZE, 1, MAX_FRAME_WORDS);
    facts->frame_size = words > 0 ? words * (int32_t)sizeof(void *) : -1;
    facts->frame_complete = fact(hotspot, blob, BLOB_FRAME_COMPLETE, 0, (int64_t)size);
    if (compiled) {
        nmethod_facts(hotspot, blob, code, size, facts);
    }
}

/* So many methods are looked at with care; if ids were something else, it would have shown. */
enum { METHODS_TO_CHECK = 64 };

bool hotspot_knows_methods(const struct hotspot *hotspot)
{
    return hotspot && hotspot->const_method > 0 && hotspot->places[METHOD_CONST].known &&
           hotspot->places[CONST_CODE_SIZE].known;
}

/*
 * To JDK 25 a jmethodID is the address of a pointer to the Method. It is to become a number, which
 * is seen by its being too small for an address, or by there being no memory where it points to.
 */
bool hotspot_method(struct hotspot *hotspot, jmethodID id, struct hotspot_method *method)
{
    const char *at = (const char *)id;
    if ((uintptr_t)at < 65536 || (uintptr_t)at % sizeof(char *) != 0) {
        return false;
    }
    bool check = atomic_load(&hotspot->methods_checked) < METHODS_TO_CHECK;
    if (check && !is_mapped(at)) {
        return false;
    }
    const char *address = pointer_at(at);
    if (!address || (check && !is_mapped(address))) {
        return false;
    }
    const char *const_method = read_pointer(hotspot, address, METHOD_CONST);
    int64_t size = 0;
    if (!const_method || (check && !is_mapped(const_method)) ||
        !read_integer(hotspot, const_method, CONST_CODE_SIZE, &size) || size < 0 ||
        size > UINT16_MAX) { /* JVMS 4.7.3: code_length is less than 65536 */
        return false;
    }
    if (check) {
        atomic_fetch_add(&hotspot->methods_checked, 1);
    }
    *method = (struct hotspot_method){
        .address = (uint64_t)(uintptr_t)address,
        .bytecodes = (uint64_t)(uintptr_t)const_method + hotspot->const_method,
        .bytecode_size = (uint32_t)size,
        .constant_pool = hotspot->places[CONST_POOL].known
                             ? read_pointer(hotspot, const_method, CONST_POOL)
                             : NULL,
    };
    return true;
}
