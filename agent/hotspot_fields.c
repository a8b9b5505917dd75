/*
 * Fields change their places, widths and owners from JDK to JDK (17 has the code's start as an
 * address, 25 as an offset), so all is taken from the tables: the offset from gHotSpotVMStructs,
 * the width and sign from gHotSpotVMTypes by the field's type.
 */
#include "agent/hotspot_fields.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
    {NMETHOD_METHOD, "nmethod", "_method", "Method*"},
    {NMETHOD_METHOD, "CompiledMethod", "_method", "Method*"}, /* JDK 9 to 22 */
    {NMETHOD_ENTRY_BCI, "nmethod", "_entry_bci", NULL},
    {NMETHOD_OSR_ENTRY, "nmethod", "_osr_entry_point", "address"},
    {NMETHOD_VERIFIED_ENTRY, "nmethod", "_verified_entry_point", "address"},
    {NMETHOD_VERIFIED_OFFSET, "nmethod", "_verified_entry_offset", NULL},
    {NMETHOD_COMPILE_ID, "nmethod", "_compile_id", NULL},
    {NMETHOD_TIER, "nmethod", "_comp_level", NULL},
    {METHOD_CONST, "Method", "_constMethod", "ConstMethod*"},
    {CONST_CODE_SIZE, "ConstMethod", "_code_size", NULL},
    {CONST_POOL, "ConstMethod", "_constants", "ConstantPool*"},
    {CONST_NAME, "ConstMethod", "_name_index", NULL},
    {CONST_SIGNATURE, "ConstMethod", "_signature_index", NULL},
    {POOL_LENGTH, "ConstantPool", "_length", NULL},
    {SYMBOL_LENGTH, "Symbol", "_length", NULL},
    {SYMBOL_BODY, "Symbol", "_body[0]", "u1"}, /* from JDK 9 on */
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
    for (const char *entry = tables->types; hotspot_load(entry + tables->type_name);
         entry += tables->type_stride) {
        if (strcmp(hotspot_load(entry + tables->type_name), name) == 0) {
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
    const char *owner = hotspot_load(entry + tables->struct_owner);
    const char *name = hotspot_load(entry + tables->struct_name);
    const char *type = hotspot_load(entry + tables->struct_type);
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
            place->static_address = hotspot_load(entry + tables->struct_address);
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
        for (const char *entry = tables.structs; hotspot_load(entry + tables.struct_owner);
             entry += tables.struct_stride) {
            find_field(hotspot, &tables, entry);
        }
        const char *block = find_type(&tables, "HeapBlock");
        hotspot->block_header = block ? (size_t)u64_at(block + tables.type_size) : 0;
        const char *const_method = find_type(&tables, "ConstMethod");
        hotspot->const_method = const_method ? (size_t)u64_at(const_method + tables.type_size) : 0;
        const char *pool = find_type(&tables, "ConstantPool");
        hotspot->pool = pool ? (size_t)u64_at(pool + tables.type_size) : 0;
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

bool hotspot_integer(const struct hotspot *hotspot, const char *object, enum field field,
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

bool hotspot_has_page(const char *at)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char resident;
    return mincore((char *)at - (uintptr_t)at % page, 1, &resident) == 0;
}
