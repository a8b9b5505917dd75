/*
 * Fields change their places, widths and owners from JDK to JDK (17 has the code's start as an
 * address, 25 as an offset), so all is taken from the tables: the offset from gHotSpotVMStructs,
 * the width and sign from gHotSpotVMTypes by the field's type.
 */
#include "hotspot/layout.h"

#include <stdio.h>
#include <stdlib.h>

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
    {ARCHIVE_BASE, "MetaspaceObj", "_shared_metaspace_base", ANY},
    {ARCHIVE_TOP, "MetaspaceObj", "_shared_metaspace_top", ANY},
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
    {BLOB_NAME, "CodeBlob", "_name", ANY},
    {OOP_BASE, "CompressedOops", "_base", ANY},
    {OOP_BASE, "CompressedOops", "_narrow_oop._base", ANY}, /* to JDK 22, and so on */
    {OOP_SHIFT, "CompressedOops", "_shift", INTEGER},
    {OOP_SHIFT, "CompressedOops", "_narrow_oop._shift", INTEGER},
    {HEAP_OBJECT, "Universe", "_collectedHeap", ANY},
    {HEAP_IS_COLLECTING, "CollectedHeap", "_is_stw_gc_active", ANY},
    {HEAP_IS_COLLECTING, "CollectedHeap", "_is_gc_active", ANY},
    {HEAP_COLLECTIONS, "CollectedHeap", "_total_collections", ANY},
    {CONTINUATION_ENTRY_PC, "ContinuationEntry", "_return_pc", ANY},
    {VM_VERSION, "Abstract_VM_Version", "_vm_major_version", INTEGER},
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

enum { WANTED_COUNT = sizeof(wanted) / sizeof(*wanted) };

const char *hotspot_wanted_name(size_t i)
{
    static _Thread_local char name[128];
    size_t fields = 0;
    while (fields < WANTED_COUNT && wanted[fields].field < FIELDS_INSIDE) {
        fields++;
    }
    if (i >= fields) {
        return i - fields < OTHER_COUNT ? others[i - fields] : NULL;
    }
    snprintf(name, sizeof(name), "%s::%s", wanted[i].owner, wanted[i].name);
    return name;
}

/* ---- The tables ---- */

/* Tables are read so far at most: JDK 25 has 1,000 structures' fields. */
enum {
    ENTRIES_MAX = 8192,
    ENTRY_MAX = 256, /* bytes */
    NAME_SIZE = 64,  /* of what we look for, with its end */
    COLUMNS_MAX = 6,
    PAGE_BYTES = 4096,
};

/* What the entries of each table have. A name's address comes first, which is 0 in the last. */
enum { STRUCT_OWNER, STRUCT_NAME, STRUCT_TYPE, STRUCT_STATIC, STRUCT_OFFSET, STRUCT_ADDRESS };
enum { TYPE_NAME, TYPE_SIZE, TYPE_IS_INTEGER, TYPE_IS_UNSIGNED };
enum { CONSTANT_NAME, CONSTANT_VALUE };

struct table {
    const struct libjvm *libjvm;
    uint64_t at;
    uint64_t stride;
    uint64_t columns[COLUMNS_MAX]; /* where they are in an entry */
};

static bool read_variable(const struct libjvm *libjvm, const char *kind, const char *rest,
                          uint64_t *value)
{
    char name[NAME_SIZE];
    uint64_t at = 0;
    snprintf(name, sizeof(name), "gHotSpotVM%s%s", kind, rest);
    return libjvm->symbol(libjvm, name, &at) &&
           memory_read(libjvm->memory, at, value, sizeof(*value));
}

static bool open_table(const struct libjvm *libjvm, const char *kind,
                       const char *const columns[COLUMNS_MAX], struct table *table)
{
    *table = (struct table){.libjvm = libjvm};
    bool is = read_variable(libjvm, kind, "s", &table->at) && table->at != 0 &&
              read_variable(libjvm, kind, "EntryArrayStride", &table->stride) &&
              table->stride >= sizeof(uint64_t) && table->stride <= ENTRY_MAX;
    for (size_t i = 0; is && i < COLUMNS_MAX && columns[i]; i++) {
        char rest[NAME_SIZE];
        snprintf(rest, sizeof(rest), "Entry%sOffset", columns[i]);
        is = read_variable(libjvm, kind, rest, &table->columns[i]) &&
             table->columns[i] <= table->stride - sizeof(int32_t);
    }
    return is;
}

/* An entry of a table, and room behind it for 64 bits of its last 32. */
struct entry {
    const struct table *table;
    char bytes[ENTRY_MAX + sizeof(uint64_t)];
};

static uint64_t u64_in(const struct entry *entry, int column)
{
    uint64_t value;
    memcpy(&value, entry->bytes + entry->table->columns[column], sizeof(value));
    return value;
}

static int32_t i32_in(const struct entry *entry, int column)
{
    int32_t value;
    memcpy(&value, entry->bytes + entry->table->columns[column], sizeof(value));
    return value;
}

/* False: there are no more. */
static bool read_entry(const struct table *table, uint32_t number, struct entry *entry)
{
    *entry = (struct entry){.table = table};
    return number < ENTRIES_MAX &&
           memory_read(table->libjvm->memory, table->at + number * table->stride, entry->bytes,
                       table->stride) &&
           u64_in(entry, 0) != 0;
}

/* The text that a column points to, cut at its end; "": it points nowhere. Behind a text all of its
 * page can be read, and no more. */
static void read_text(const struct entry *entry, int column, char text[NAME_SIZE])
{
    uint64_t at = u64_in(entry, column);
    size_t size = 0;
    bool is_whole = at == 0;
    memset(text, 0, NAME_SIZE);
    while (!is_whole && size < NAME_SIZE - 1) {
        size_t part = PAGE_BYTES - (at + size) % PAGE_BYTES;
        part = part < NAME_SIZE - 1 - size ? part : NAME_SIZE - 1 - size;
        if (!memory_read(entry->table->libjvm->memory, at + size, text + size, part)) {
            break;
        }
        is_whole = memchr(text + size, 0, part) != NULL;
        size += part;
    }
    text[size] = 0;
}

/* ---- Types and constants ---- */

struct type {
    char name[NAME_SIZE];
    uint64_t size;
    bool is_unsigned;
};

struct types {
    struct type *list;
    uint32_t count;
};

static bool read_types(const struct libjvm *libjvm, struct types *types)
{
    static const char *const columns[COLUMNS_MAX] = {"TypeName", "Size", "IsIntegerType",
                                                     "IsUnsigned"};
    struct table table;
    struct entry entry;
    types->list = calloc(ENTRIES_MAX, sizeof(*types->list)); /* mostly never touched */
    if (!types->list || !open_table(libjvm, "Type", columns, &table)) {
        return false;
    }
    for (; read_entry(&table, types->count, &entry); types->count++) {
        struct type *type = &types->list[types->count];
        read_text(&entry, TYPE_NAME, type->name);
        type->size = u64_in(&entry, TYPE_SIZE);
        /* C's own int and short are "toplevel" types in some tables, and CompLevel is an enum. */
        type->is_unsigned = i32_in(&entry, TYPE_IS_INTEGER) && i32_in(&entry, TYPE_IS_UNSIGNED);
    }
    return true;
}

static const struct type *find_type(const struct types *types, const char *name)
{
    for (uint32_t i = 0; i < types->count; i++) {
        if (strcmp(types->list[i].name, name) == 0) {
            return &types->list[i];
        }
    }
    return NULL;
}

/* 0: the type is not known. */
static size_t size_of(const struct types *types, const char *name)
{
    enum { LARGEST = 1024 }; /* none that we ask for comes near */
    const struct type *type = find_type(types, name);
    return type && type->size <= LARGEST ? (size_t)type->size : 0;
}

/* 0: it is not known. */
static int64_t find_constant(const struct table *constants, const char *name)
{
    struct entry entry;
    char text[NAME_SIZE];
    for (uint32_t i = 0; read_entry(constants, i, &entry); i++) {
        read_text(&entry, CONSTANT_NAME, text);
        if (strcmp(text, name) == 0) {
            return i32_in(&entry, CONSTANT_VALUE);
        }
    }
    return 0;
}

/* ---- Fields ---- */

/* A field of that integer type. False: it is none that we can read. */
static bool is_integer(struct place *place, const struct types *types, const char *name)
{
    const struct type *type = find_type(types, name);
    place->width = type ? (size_t)type->size : 0;
    place->is_signed = type && !type->is_unsigned;
    return place->width == 1 || place->width == 2 || place->width == 4 || place->width == 8;
}

/* The type of a field that is an array of no certain length is left out: "". */
static bool has_type(struct place *place, const struct types *types, const char *type,
                     const char *expected)
{
    if (expected == INTEGER || strcmp(type, "AccessFlags") == 0) {
        return is_integer(place, types, type);
    }
    place->width = sizeof(uint64_t);
    if ((strcmp(expected, "int") == 0 || strcmp(expected, "bool") == 0) &&
        !is_integer(place, types, type)) {
        return false;
    }
    return expected[0] == 0 || strcmp(type, expected) == 0;
}

static void find_field(struct hotspot_layout *layout, const struct types *types,
                       const struct entry *entry)
{
    enum { FARTHEST = 1 << 16 }; /* no structure of these is as large */
    char owner[NAME_SIZE];
    char name[NAME_SIZE];
    char type[NAME_SIZE];
    read_text(entry, STRUCT_OWNER, owner);
    read_text(entry, STRUCT_NAME, name);
    for (size_t i = 0; i < WANTED_COUNT; i++) {
        struct place *place = &layout->places[wanted[i].field];
        if (place->known || strcmp(owner, wanted[i].owner) != 0 ||
            strcmp(name, wanted[i].name) != 0) {
            continue;
        }
        read_text(entry, STRUCT_TYPE, type);
        if (i32_in(entry, STRUCT_STATIC)) {
            place->static_address = u64_in(entry, STRUCT_ADDRESS);
        } else {
            place->offset = (size_t)u64_in(entry, STRUCT_OFFSET);
        }
        place->known = place->offset <= FARTHEST && has_type(place, types, type, wanted[i].type);
        return;
    }
}

bool hotspot_layout_read(const struct libjvm *libjvm, struct hotspot_layout *layout)
{
    static const char *const struct_columns[COLUMNS_MAX] = {"TypeName", "FieldName", "TypeString",
                                                            "IsStatic", "Offset",    "Address"};
    static const char *const constant_columns[COLUMNS_MAX] = {"Name", "Value"};
    struct types types = {0};
    struct table structs;
    struct table constants;
    struct entry entry;
    bool is = read_types(libjvm, &types) &&
              open_table(libjvm, "Struct", struct_columns, &structs) &&
              open_table(libjvm, "IntConstant", constant_columns, &constants);
    *layout = (struct hotspot_layout){0};
    for (uint32_t i = 0; is && read_entry(&structs, i, &entry); i++) {
        find_field(layout, &types, &entry);
    }
    if (is) {
        layout->block_header = size_of(&types, others[HEAP_BLOCK]);
        layout->const_method = size_of(&types, others[CONST_METHOD]);
        layout->pool = size_of(&types, others[CONSTANT_POOL]);
        layout->pc = size_of(&types, others[PC_DESC]);
        size_t flag = size_of(&types, others[JVM_FLAG]);
        layout->flag = flag ? flag : size_of(&types, others[JVM_FLAG_8]);
        int64_t has_lines = find_constant(&constants, others[HAS_LINES]);
        layout->has_lines = has_lines ? has_lines : find_constant(&constants, others[HAS_LINES_20]);
    }
    free(types.list);
    return is;
}

bool hotspot_layout_has(const struct hotspot_layout *layout, const enum field *fields)
{
    while (*fields != FIELD_COUNT && layout->places[*fields].known) {
        fields++;
    }
    return *fields == FIELD_COUNT;
}

bool place_read(struct memory *memory, const struct place *place, uint64_t object, int64_t *value)
{
    char copy[sizeof(*value)];
    uint64_t at = object ? object + place->offset : place->static_address;
    if (!place->known || !memory_read(memory, at, copy, place->width)) {
        return false;
    }
    *value = hotspot_load_integer(copy, place->width, place->is_signed);
    return true;
}

/* ---- The code cache ---- */

/* Describes the heap at `at`. False: it is none that makes sense. */
static bool read_heap(struct memory *memory, const struct place *places, uint64_t at,
                      struct code_heap *heap)
{
    enum { LARGEST_LOG2 = 36 }; /* CodeCache is limited to 2 GB, and has been to 4 */
    const uint64_t space = at + places[HEAP_MEMORY].offset;
    const uint64_t segmap = at + places[HEAP_SEGMAP].offset;
    uint64_t map_end = 0;
    char log2[sizeof(int64_t)];
    const struct memory_piece pieces[] = {
        {space + places[SPACE_LOW].offset, &heap->low, sizeof(heap->low)},
        {space + places[SPACE_END].offset, &heap->end, sizeof(heap->end)},
        {segmap + places[SPACE_LOW].offset, &heap->map, sizeof(heap->map)},
        {segmap + places[SPACE_END].offset, &map_end, sizeof(map_end)},
        {at + places[HEAP_LOG2_SEGMENT].offset, log2, places[HEAP_LOG2_SEGMENT].width},
    };
    if (!at || !memory_read_pieces(memory, pieces, sizeof(pieces) / sizeof(*pieces))) {
        return false;
    }
    int64_t segment = hotspot_load_integer(log2, places[HEAP_LOG2_SEGMENT].width, true);
    if (!heap->low || heap->end <= heap->low || !heap->map || map_end <= heap->map || segment < 3 ||
        segment > 30 || (heap->end - heap->low) >> LARGEST_LOG2 != 0) {
        return false;
    }
    heap->log2 = (unsigned)segment;
    heap->map_size = map_end - heap->map;
    return (heap->end - heap->low) >> segment <= heap->map_size;
}

/* Where the JVM's descriptions of its heaps are. Returns as code_heaps_read does. */
static int list_heaps(struct memory *memory, const struct place *places,
                      uint64_t heaps[CODE_HEAPS_MAX])
{
    int64_t array = 0;
    int64_t length = 0;
    int64_t data = 0;
    if (!places[HEAPS].known) {
        bool is = place_read(memory, &places[HEAP], 0, &array);
        heaps[0] = (uint64_t)array;
        return is ? array != 0 : -1;
    }
    if (!place_read(memory, &places[HEAPS], 0, &array) || !array) {
        return 0;
    }
    bool is = place_read(memory, &places[ARRAY_LENGTH], (uint64_t)array, &length) &&
              place_read(memory, &places[ARRAY_DATA], (uint64_t)array, &data);
    if (length == 0) {
        return 0;
    }
    is = is && length > 0 && length <= CODE_HEAPS_MAX &&
         memory_read(memory, (uint64_t)data, heaps, (size_t)length * sizeof(*heaps));
    return is ? (int)length : -1;
}

int code_heaps_read(struct memory *memory, const struct hotspot_layout *layout,
                    struct code_heap heaps[CODE_HEAPS_MAX])
{
    uint64_t found[CODE_HEAPS_MAX] = {0};
    int count = list_heaps(memory, layout->places, found);
    for (int i = 0; i < count; i++) {
        if (!read_heap(memory, layout->places, found[i], &heaps[i])) {
            return -1;
        }
    }
    return count;
}
