/*
 * Fields change their places, widths and owners from JDK to JDK (17 has the code's start as an
 * address, 25 as an offset), so all is taken from the tables: the offset from gHotSpotVMStructs,
 * the width and sign from gHotSpotVMTypes by the field's type.
 *
 * What stands there is believed no further than it goes: the structures themselves are read through
 * agent/hotspot/hotspot_memory.h, and what is found has to make sense.
 */
#include "agent/hotspot/hotspot_fields.h"

#include "writer/message.h"

#include <dlfcn.h>
#include <stdio.h>

/* Instead of a type: any integer; a field whose type the tables leave out or that is our business.
 */
#define INTEGER NULL
#define ANY     ""

/* Where the tables have them, and as which type. */
static const struct {
    enum field field;
    const char *owner, *name, *type;
} wanted[] = {
    {HEAPS, "CodeCache", "_heaps", "GrowableArray<CodeHeap*>*"},
    {HEAP, "CodeCache", "_heap", "CodeHeap*"},
    {ARRAY_LENGTH, "GrowableArrayBase", "_len", INTEGER},
    {ARRAY_LENGTH, "GenericGrowableArray", "_len", INTEGER}, /* to JDK 15 */
    {ARRAY_DATA, "GrowableArray<int>", "_data", "int*"},
    {HEAP_MEMORY, "CodeHeap", "_memory", "VirtualSpace"},
    {HEAP_SEGMAP, "CodeHeap", "_segmap", "VirtualSpace"},
    {HEAP_LOG2_SEGMENT, "CodeHeap", "_log2_segment_size", INTEGER},
    {SPACE_LOW, "VirtualSpace", "_low", "char*"},
    {SPACE_END, "VirtualSpace", "_high_boundary", "char*"},
    {BLOCK_USED, "HeapBlock::Header", "_used", "bool"},
    {BLOB_SIZE, "CodeBlob", "_size", INTEGER},
    {BLOB_FRAME_SIZE, "CodeBlob", "_frame_size", INTEGER},
    {BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset", INTEGER},
    {BLOB_CODE_BEGIN, "CodeBlob", "_code_begin", "address"},
    {BLOB_CODE_OFFSET, "CodeBlob", "_code_offset", INTEGER},
    {BLOB_MUTABLE_DATA, "CodeBlob", "_mutable_data", "address"},
    {BLOB_MUTABLE_SIZE, "CodeBlob", "_mutable_data_size", INTEGER},
    {BLOB_RELOCATION_SIZE, "CodeBlob", "_relocation_size", INTEGER},
    {NMETHOD_METHOD, "nmethod", "_method", "Method*"},
    {NMETHOD_METHOD, "CompiledMethod", "_method", "Method*"}, /* JDK 9 to 22 */
    {NMETHOD_ENTRY_BCI, "nmethod", "_entry_bci", INTEGER},
    {NMETHOD_OSR_ENTRY, "nmethod", "_osr_entry_point", "address"},
    {NMETHOD_VERIFIED_ENTRY, "nmethod", "_verified_entry_point", "address"},
    {NMETHOD_VERIFIED_OFFSET, "nmethod", "_verified_entry_offset", INTEGER},
    {NMETHOD_COMPILE_ID, "nmethod", "_compile_id", INTEGER},
    {NMETHOD_TIER, "nmethod", "_comp_level", INTEGER},
    {NMETHOD_PCS_OFFSET, "nmethod", "_scopes_pcs_offset", INTEGER},
    {NMETHOD_SCOPES_OFFSET, "nmethod", "_scopes_data_offset", INTEGER},
    {NMETHOD_SCOPES, "CompiledMethod", "_scopes_data_begin", "address"},
    {NMETHOD_METADATA_OFFSET, "nmethod", "_metadata_offset", INTEGER},
    {NMETHOD_DEPENDENCIES_OFFSET, "nmethod", "_dependencies_offset", INTEGER},
    {NMETHOD_IMMUTABLE_DATA, "nmethod", "_immutable_data", "address"},
    {NMETHOD_IMMUTABLE_SIZE, "nmethod", "_immutable_data_size", INTEGER},
    {PC_OFFSET, "PcDesc", "_pc_offset", "int"},
    {PC_SCOPE, "PcDesc", "_scope_decode_offset", "int"},
    {METHOD_CONST, "Method", "_constMethod", "ConstMethod*"},
    {METHOD_ACCESS, "Method", "_access_flags", "AccessFlags"},
    {METHOD_CODE, "Method", "_code", ANY},
    {CONST_SIZE, "ConstMethod", "_constMethod_size", INTEGER},
    {CONST_CODE_SIZE, "ConstMethod", "_code_size", INTEGER},
    {CONST_POOL, "ConstMethod", "_constants", "ConstantPool*"},
    {CONST_NAME, "ConstMethod", "_name_index", INTEGER},
    {CONST_SIGNATURE, "ConstMethod", "_signature_index", INTEGER},
    {CONST_IDNUM, "ConstMethod", "_method_idnum", INTEGER},
    {CONST_FLAGS, "ConstMethod", "_flags._flags", INTEGER},
    {CONST_FLAGS, "ConstMethod", "_flags", INTEGER}, /* to JDK 20 */
    {POOL_LENGTH, "ConstantPool", "_length", INTEGER},
    {POOL_HOLDER, "ConstantPool", "_pool_holder", "InstanceKlass*"},
    {SYMBOL_LENGTH, "Symbol", "_length", INTEGER},
    {SYMBOL_BODY, "Symbol", "_body", ANY},
    {MIRROR_KLASS, "java_lang_Class", "_klass_offset", "int"},
    {KLASS_METHODS, "InstanceKlass", "_methods", "Array<Method*>*"},
    {KLASS_IDS, "InstanceKlass", "_methods_jmethod_ids", "jmethodID*"},
    {KLASS_LAYOUT, "Klass", "_layout_helper", INTEGER},
    {KLASS_NAME, "Klass", "_name", ANY},
    {KLASS_BREAKPOINTS, "InstanceKlass", "_breakpoints", ANY},
    {METHODS_LENGTH, "Array<int>", "_length", INTEGER},
    {METHODS_DATA, "Array<Method*>", "_data", ANY},
    {FLAGS, "JVMFlag", "flags", "JVMFlag*"},
    {FLAGS, "Flag", "flags", "Flag*"}, /* JDK 8, and so on */
    {FLAG_COUNT, "JVMFlag", "numFlags", "size_t"},
    {FLAG_COUNT, "Flag", "numFlags", "size_t"},
    {FLAG_NAME, "JVMFlag", "_name", ANY},
    {FLAG_NAME, "Flag", "_name", ANY},
    {FLAG_ADDRESS, "JVMFlag", "_addr", ANY},
    {FLAG_ADDRESS, "Flag", "_addr", ANY},
    {THREAD_OSTHREAD, "Thread", "_osthread", ANY},
    {THREAD_OSTHREAD, "JavaThread", "_osthread", ANY}, /* JDK 8 */
    {THREAD_ANCHOR, "JavaThread", "_anchor", ANY},
    {ANCHOR_SP, "JavaFrameAnchor", "_last_Java_sp", ANY},
    {ANCHOR_PC, "JavaFrameAnchor", "_last_Java_pc", ANY},
    {ANCHOR_FP, "JavaFrameAnchor", "_last_Java_fp", ANY},
    {OSTHREAD_ID, "OSThread", "_thread_id", INTEGER},
};

/* The types whose sizes we take, and the constants. */
enum other {
    HEAP_BLOCK,
    CONST_METHOD,
    CONSTANT_POOL,
    PC_DESC,
    JVM_FLAG,
    JVM_FLAG_8, /* JDK 8 */
    HAS_LINES,
    HAS_LINES_20, /* to JDK 20 */
    OTHER_COUNT,
};

static const char *const others[OTHER_COUNT] = {
    [HEAP_BLOCK] = "HeapBlock",
    [CONST_METHOD] = "ConstMethod",
    [CONSTANT_POOL] = "ConstantPool",
    [PC_DESC] = "PcDesc",
    [JVM_FLAG] = "JVMFlag",
    [JVM_FLAG_8] = "Flag",
    [HAS_LINES] = "ConstMethodFlags::_misc_has_linenumber_table",
    [HAS_LINES_20] = "ConstMethod::_has_linenumber_table",
};

const char *hotspot_wanted_name(size_t i)
{
    static _Thread_local char name[128];
    size_t fields = sizeof(wanted) / sizeof(*wanted);
    if (i >= fields) {
        return i - fields < OTHER_COUNT ? others[i - fields] : NULL;
    }
    snprintf(name, sizeof(name), "%s::%s", wanted[i].owner, wanted[i].name);
    return name;
}

/* The tables themselves. */
struct tables {
    void *libjvm;
    const char *structs, *types, *constants;
    size_t struct_stride, struct_owner, struct_name, struct_type, struct_static, struct_offset,
        struct_address;
    size_t type_stride, type_name, type_size, type_integer, type_unsigned;
    size_t constant_stride, constant_name, constant_value;
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
#define STRUCTS   "gHotSpotVMStruct"
#define TYPES     "gHotSpotVMType"
#define CONSTANTS "gHotSpotVMIntConstant"
    void *jvm = tables->libjvm;
    return find_table(jvm, STRUCTS "s", &tables->structs) &&
           find_table(jvm, TYPES "s", &tables->types) &&
           find_table(jvm, CONSTANTS "s", &tables->constants) &&
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
           find_symbol(jvm, CONSTANTS "EntryArrayStride", &tables->constant_stride) &&
           find_symbol(jvm, CONSTANTS "EntryNameOffset", &tables->constant_name) &&
           find_symbol(jvm, CONSTANTS "EntryValueOffset", &tables->constant_value) &&
           tables->struct_stride > 0 && tables->type_stride > 0 && tables->constant_stride > 0;
#undef STRUCTS
#undef TYPES
#undef CONSTANTS
}

/* In the tables, which are the library's own data. */
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

/* 0: the type is not known. */
static size_t size_of(const struct tables *tables, const char *name)
{
    enum { LARGEST = 1024 }; /* none that we ask for comes near */
    const char *entry = find_type(tables, name);
    uint64_t size = entry ? u64_at(entry + tables->type_size) : 0;
    return size <= LARGEST ? (size_t)size : 0;
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

static bool has_type(struct place *place, const struct tables *tables, const char *type,
                     const char *expected)
{
    if (expected == INTEGER || (type && strcmp(type, "AccessFlags") == 0)) {
        place->width = type ? integer_width(tables, type, &place->is_signed) : 0;
        return place->width > 0;
    }
    place->width = sizeof(void *);
    if (type && (strcmp(expected, "int") == 0 || strcmp(expected, "bool") == 0)) {
        place->width = integer_width(tables, type, &place->is_signed);
    }
    /* The type of a field that is an array of no certain length is left out. */
    return place->width > 0 && (expected[0] == 0 || (type && strcmp(type, expected) == 0));
}

static void find_field(struct hotspot *hotspot, const struct tables *tables, const char *entry)
{
    enum { FARTHEST = 1 << 16 }; /* no structure of these is as large */
    const char *owner = pointer_at(entry + tables->struct_owner);
    const char *name = pointer_at(entry + tables->struct_name);
    const char *type = pointer_at(entry + tables->struct_type);
    for (size_t i = 0; name && i < sizeof(wanted) / sizeof(*wanted); i++) {
        struct place *place = &hotspot->places[wanted[i].field];
        if (place->known || strcmp(owner, wanted[i].owner) != 0 ||
            strcmp(name, wanted[i].name) != 0) {
            continue;
        }
        if (i32_at(entry + tables->struct_static)) {
            place->static_address = u64_at(entry + tables->struct_address);
        } else {
            place->offset = (size_t)u64_at(entry + tables->struct_offset);
        }
        place->known = place->offset <= FARTHEST && has_type(place, tables, type, wanted[i].type);
        return;
    }
}

static int64_t find_constant(const struct tables *tables, const char *name)
{
    for (const char *entry = tables->constants; pointer_at(entry + tables->constant_name);
         entry += tables->constant_stride) {
        if (strcmp(pointer_at(entry + tables->constant_name), name) == 0) {
            return i32_at(entry + tables->constant_value);
        }
    }
    return 0;
}

bool hotspot_has_fields(const struct hotspot *hotspot, const enum field *fields)
{
    while (*fields != FIELD_COUNT && hotspot->places[*fields].known) {
        fields++;
    }
    return *fields == FIELD_COUNT;
}

/* What finding a blob takes; the rest is a gain each. */
static bool is_usable(const struct hotspot *hotspot)
{
    static const enum field needed[] = {HEAP_MEMORY, HEAP_SEGMAP, HEAP_LOG2_SEGMENT, SPACE_LOW,
                                        SPACE_END,   BLOCK_USED,  BLOB_SIZE,         FIELD_COUNT};
    const struct place *places = hotspot->places;
    bool heaps = places[HEAPS].known && places[HEAPS].static_address &&
                 places[ARRAY_LENGTH].known && places[ARRAY_DATA].known;
    bool heap = places[HEAP].known && places[HEAP].static_address;
    return hotspot_has_fields(hotspot, needed) && (heaps || heap) &&
           (places[BLOB_CODE_BEGIN].known || places[BLOB_CODE_OFFSET].known) &&
           hotspot->block_header > 0;
}

/* How far into a blob the fields reach that we may ever look at. */
static size_t head_of(const struct hotspot *hotspot)
{
    size_t head = 0;
    for (enum field field = BLOB_SIZE; field <= NMETHOD_IMMUTABLE_SIZE; field++) {
        const struct place *place = &hotspot->places[field];
        if (place->known && place->offset + place->width > head) {
            head = place->offset + place->width;
        }
    }
    return head;
}

bool hotspot_find_fields(struct hotspot *hotspot, const void *function)
{
    /* A function of the JVM's own tells which library it is; dlopen just counts it once more. */
    Dl_info info;
    if (!dladdr(function, &info) || !info.dli_fname) {
        return false;
    }
    struct tables tables = {.libjvm = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)};
    if (!tables.libjvm) {
        return false;
    }
    bool found = find_tables(&tables);
    if (found) {
        for (const char *entry = tables.structs; pointer_at(entry + tables.struct_owner);
             entry += tables.struct_stride) {
            find_field(hotspot, &tables, entry);
        }
        hotspot->block_header = size_of(&tables, others[HEAP_BLOCK]);
        hotspot->const_method = size_of(&tables, others[CONST_METHOD]);
        hotspot->pool = size_of(&tables, others[CONSTANT_POOL]);
        hotspot->pc = size_of(&tables, others[PC_DESC]);
        size_t flag = size_of(&tables, others[JVM_FLAG]);
        hotspot->flag = flag ? flag : size_of(&tables, others[JVM_FLAG_8]);
        int64_t has_lines = find_constant(&tables, others[HAS_LINES]);
        hotspot->has_lines = has_lines ? has_lines : find_constant(&tables, others[HAS_LINES_20]);
        hotspot->head = head_of(hotspot);
    }
    dlclose(tables.libjvm); /* the JVM keeps it for as long as we live */
    return found && is_usable(hotspot);
}

/* The integer or pointer at an address. */
static bool read_place(const struct hotspot *hotspot, const struct place *place, uint64_t at,
                       int64_t *value)
{
    char copy[sizeof(*value)];
    if (!place->known || !memory_read(hotspot->memory, at, copy, place->width)) {
        return false;
    }
    *value = hotspot_load_integer(copy, place->width, place->is_signed);
    return true;
}

bool hotspot_read_integer(const struct hotspot *hotspot, uint64_t object, enum field field,
                          int64_t *value)
{
    const struct place *place = &hotspot->places[field];
    return object && read_place(hotspot, place, object + place->offset, value);
}

bool hotspot_read_pointer(const struct hotspot *hotspot, uint64_t object, enum field field,
                          uint64_t *value)
{
    int64_t pointer = 0;
    bool read = hotspot_read_integer(hotspot, object, field, &pointer);
    *value = read ? (uint64_t)pointer : *value;
    return read;
}

bool hotspot_read_static(const struct hotspot *hotspot, enum field field, int64_t *value)
{
    const struct place *place = &hotspot->places[field];
    return place->static_address && read_place(hotspot, place, place->static_address, value);
}

void hotspot_distrust(struct hotspot *hotspot, atomic_int *part, const char *what)
{
    (void)hotspot;
    if (atomic_exchange(part, TRUST_BROKEN) != TRUST_BROKEN) {
        message(MESSAGE_WARNING, "this JVM's structures differ from its own description: %s", what);
    }
}
