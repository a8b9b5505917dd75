#include "jdtool/walk/layout.h"

#include "format/jitdump.h"
#include "jdtool/objects/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tables are read so far at most: JDK 25 has 1,000 structures' fields. */
#define ENTRIES_MAX 8192
#define ENTRY_MAX   256 /* bytes */
#define NAME_MAX_   64  /* of what we look for */

/* No structure of these is as large. */
#define FARTHEST (1u << 16)

struct reader {
    int memory; /* the process' own */
    struct elf_file libjvm;
    uint64_t bias;
};

static bool read_memory(const struct reader *reader, uint64_t at, void *to, size_t size)
{
    return at <= INT64_MAX && pread(reader->memory, to, size, (off_t)at) == (ssize_t)size;
}

static uint64_t u64_at(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

/* A variable of libjvm's. */
static bool read_symbol(const struct reader *reader, const char *name, uint64_t *value)
{
    GElf_Sym symbol;
    return elf_file_symbol(&reader->libjvm, ".dynsym", name, &symbol) &&
           read_memory(reader, reader->bias + symbol.st_value, value, sizeof *value);
}

/* A text of that process, cut at its end. An address of 0 is "". */
static void read_text(const struct reader *reader, uint64_t at, char text[NAME_MAX_])
{
    text[0] = '\0';
    ssize_t got = at && at <= INT64_MAX ? pread(reader->memory, text, NAME_MAX_ - 1, (off_t)at) : 0;
    text[got > 0 ? got : 0] = '\0';
}

/* ---- The tables ---- */

struct table {
    uint8_t *entries;
    size_t stride;
    uint32_t count;
};

static bool read_table(const struct reader *reader, const char *name, const char *stride,
                       struct table *table)
{
    uint64_t at;
    uint64_t size;
    *table = (struct table){0};
    if (!read_symbol(reader, name, &at) || !read_symbol(reader, stride, &size) || size < 16 ||
        size > ENTRY_MAX || size % 8 || at > INT64_MAX) {
        return false;
    }
    table->stride = size;
    table->entries = malloc(size * ENTRIES_MAX);
    ssize_t got =
        table->entries ? pread(reader->memory, table->entries, size * ENTRIES_MAX, (off_t)at) : -1;
    while (got > 0 && (table->count + 1) * size <= (size_t)got &&
           u64_at(table->entries + table->count * size)) {
        table->count++; /* the first word of each is a name's address, but of the last */
    }
    return table->count > 0;
}

/* Where in an entry something is. */
static bool read_offset(const struct reader *reader, const struct table *table, const char *name,
                        size_t width, uint64_t *offset)
{
    return read_symbol(reader, name, offset) && *offset <= table->stride - width;
}

struct tables {
    struct table structs, types;
    uint64_t owner, name, type, is_static, offset, address; /* in an entry of structs */
    uint64_t type_name, type_size;                          /* and of types */
};

#define STRUCT "gHotSpotVMStructEntry"
#define TYPE   "gHotSpotVMTypeEntry"

static bool read_tables(const struct reader *reader, struct tables *tables)
{
    const struct table *structs = &tables->structs;
    const struct table *types = &tables->types;
    return read_table(reader, "gHotSpotVMStructs", STRUCT "ArrayStride", &tables->structs) &&
           read_table(reader, "gHotSpotVMTypes", TYPE "ArrayStride", &tables->types) &&
           read_offset(reader, structs, STRUCT "TypeNameOffset", 8, &tables->owner) &&
           read_offset(reader, structs, STRUCT "FieldNameOffset", 8, &tables->name) &&
           read_offset(reader, structs, STRUCT "TypeStringOffset", 8, &tables->type) &&
           read_offset(reader, structs, STRUCT "IsStaticOffset", 4, &tables->is_static) &&
           read_offset(reader, structs, STRUCT "OffsetOffset", 8, &tables->offset) &&
           read_offset(reader, structs, STRUCT "AddressOffset", 8, &tables->address) &&
           read_offset(reader, types, TYPE "TypeNameOffset", 8, &tables->type_name) &&
           read_offset(reader, types, TYPE "SizeOffset", 8, &tables->type_size);
}

/* 0: not known. */
static uint64_t size_of(const struct reader *reader, const struct tables *tables, const char *name)
{
    char text[NAME_MAX_];
    for (uint32_t i = 0; i < tables->types.count; i++) {
        const uint8_t *entry = tables->types.entries + i * tables->types.stride;
        read_text(reader, u64_at(entry + tables->type_name), text);
        if (strcmp(text, name) == 0) {
            return u64_at(entry + tables->type_size);
        }
    }
    return 0;
}

/* ---- Fields ---- */

enum field {
    HEAPS,
    HEAP, /* JDK 8 */
    ARRAY_LENGTH,
    ARRAY_LENGTH_8,
    ARRAY_DATA,
    HEAP_MEMORY,
    HEAP_SEGMAP,
    HEAP_LOG2,
    SPACE_LOW,
    SPACE_END,
    BLOCK_USED,
    BLOB_NAME,
    BLOB_SIZE,
    BLOB_FRAME_SIZE,
    BLOB_CODE_BEGIN,
    BLOB_CODE_OFFSET,
    NMETHOD_ID,
    OOP_BASE,
    OOP_SHIFT,
    HEAP_OBJECT,
    IS_COLLECTING,
    COLLECTIONS,
    ENTRY_PC,
    VERSION,
    FIELDS,
};

static const struct {
    const char *owner, *name;
    enum field field;
} wanted[] = {
    {"CodeCache", "_heaps", HEAPS},
    {"CodeCache", "_heap", HEAP},
    {"GrowableArrayBase", "_len", ARRAY_LENGTH},
    {"GenericGrowableArray", "_len", ARRAY_LENGTH_8},
    {"GrowableArray<int>", "_data", ARRAY_DATA},
    {"CodeHeap", "_memory", HEAP_MEMORY},
    {"CodeHeap", "_segmap", HEAP_SEGMAP},
    {"CodeHeap", "_log2_segment_size", HEAP_LOG2},
    {"VirtualSpace", "_low_boundary", SPACE_LOW},
    {"VirtualSpace", "_high_boundary", SPACE_END},
    {"HeapBlock::Header", "_used", BLOCK_USED},
    {"CodeBlob", "_name", BLOB_NAME},
    {"CodeBlob", "_size", BLOB_SIZE},
    {"CodeBlob", "_frame_size", BLOB_FRAME_SIZE},
    {"CodeBlob", "_code_begin", BLOB_CODE_BEGIN},
    {"CodeBlob", "_code_offset", BLOB_CODE_OFFSET},
    {"nmethod", "_compile_id", NMETHOD_ID},
    {"CompressedOops", "_base", OOP_BASE},
    {"CompressedOops", "_narrow_oop._base", OOP_BASE}, /* to JDK 22, and so on */
    {"CompressedOops", "_shift", OOP_SHIFT},
    {"CompressedOops", "_narrow_oop._shift", OOP_SHIFT},
    {"Universe", "_collectedHeap", HEAP_OBJECT},
    {"CollectedHeap", "_is_stw_gc_active", IS_COLLECTING},
    {"CollectedHeap", "_is_gc_active", IS_COLLECTING},
    {"CollectedHeap", "_total_collections", COLLECTIONS},
    {"ContinuationEntry", "_return_pc", ENTRY_PC},
    {"Abstract_VM_Version", "_vm_major_version", VERSION},
};

struct fields {
    bool is[FIELDS];
    uint64_t at[FIELDS]; /* its offset, or address */
    uint64_t code_offset_size;
};

static void find_fields(const struct reader *reader, const struct tables *tables,
                        struct fields *fields)
{
    char owner[NAME_MAX_];
    char name[NAME_MAX_];
    for (uint32_t i = 0; i < tables->structs.count; i++) {
        const uint8_t *entry = tables->structs.entries + i * tables->structs.stride;
        uint32_t is_static;
        memcpy(&is_static, entry + tables->is_static, sizeof is_static);
        read_text(reader, u64_at(entry + tables->name), name);
        read_text(reader, u64_at(entry + tables->owner), owner);
        for (size_t k = 0; k < sizeof wanted / sizeof *wanted; k++) {
            if (strcmp(name, wanted[k].name) != 0 || strcmp(owner, wanted[k].owner) != 0) {
                continue;
            }
            enum field field = wanted[k].field;
            fields->at[field] = u64_at(entry + (is_static ? tables->address : tables->offset));
            fields->is[field] = is_static || fields->at[field] <= FARTHEST;
            if (field == BLOB_CODE_OFFSET) {
                char type[NAME_MAX_];
                read_text(reader, u64_at(entry + tables->type), type);
                fields->code_offset_size = size_of(reader, tables, type);
            }
        }
    }
}

static bool take_fields(const struct fields *fields, uint64_t block_header,
                        struct walk_layout *layout)
{
    static const enum field needed[] = {HEAP_MEMORY, HEAP_SEGMAP, HEAP_LOG2,      SPACE_LOW,
                                        SPACE_END,   BLOCK_USED,  BLOB_NAME,      BLOB_SIZE,
                                        NMETHOD_ID,  HEAP_LOG2,   BLOB_FRAME_SIZE};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (!fields->is[needed[i]]) {
            return false;
        }
    }
    bool is_offset = fields->is[BLOB_CODE_OFFSET] && !fields->is[BLOB_CODE_BEGIN];
    if ((is_offset && fields->code_offset_size != 2 && fields->code_offset_size != 4) ||
        (!is_offset && !fields->is[BLOB_CODE_BEGIN]) || !block_header || block_header > FARTHEST) {
        return false;
    }
    *layout = (struct walk_layout){
        .block_header = (uint32_t)block_header,
        .block_used = (uint32_t)fields->at[BLOCK_USED],
        .blob_name = (uint32_t)fields->at[BLOB_NAME],
        .blob_size = (uint32_t)fields->at[BLOB_SIZE],
        .blob_frame_size = (uint32_t)fields->at[BLOB_FRAME_SIZE],
        .blob_code = (uint32_t)fields->at[is_offset ? BLOB_CODE_OFFSET : BLOB_CODE_BEGIN],
        .code_offset = is_offset ? (uint32_t)fields->code_offset_size : 0,
        .nmethod_id = (uint32_t)fields->at[NMETHOD_ID],
    };
    return true;
}

/* ---- The heaps of the code cache ---- */

static bool read_heap(const struct reader *reader, const struct fields *fields, uint64_t at,
                      struct walk_layout *layout, struct walk_heap *heap)
{
    uint64_t memory = at + fields->at[HEAP_MEMORY];
    uint64_t map = at + fields->at[HEAP_SEGMAP];
    uint32_t shift = 0;
    uint64_t size = 0;
    bool is = read_memory(reader, memory + fields->at[SPACE_LOW], &heap->low, 8) &&
              read_memory(reader, memory + fields->at[SPACE_END], &heap->high, 8) &&
              read_memory(reader, map + fields->at[SPACE_LOW], &heap->map, 8) &&
              read_memory(reader, at + fields->at[HEAP_LOG2], &shift, 4);
    size = heap->high - heap->low;
    layout->segment_shift = shift;
    return is && heap->low && size > 0 && size <= UINT64_C(1) << 32 && heap->map && shift >= 4 &&
           shift <= 16;
}

static int read_heaps(const struct reader *reader, const struct fields *fields,
                      struct walk_layout *layout)
{
    uint64_t array = 0;
    uint64_t data = 0;
    uint32_t count = 1;
    enum field length = fields->is[ARRAY_LENGTH] ? ARRAY_LENGTH : ARRAY_LENGTH_8;
    if (fields->is[HEAPS]) {
        if (!fields->is[length] || !fields->is[ARRAY_DATA]) {
            return -ENOTSUP;
        }
        if (!read_memory(reader, fields->at[HEAPS], &array, 8) || !array ||
            !read_memory(reader, array + fields->at[length], &count, 4) || !count ||
            !read_memory(reader, array + fields->at[ARRAY_DATA], &data, 8)) {
            return -EAGAIN;
        }
    } else if (fields->is[HEAP]) {
        data = fields->at[HEAP]; /* a pointer to the one */
        layout->is_8 = true;
    }
    if (!data || count > WALK_HEAPS) {
        return -ENOTSUP;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t heap = 0;
        if (!read_memory(reader, data + UINT64_C(8) * i, &heap, 8) || !heap ||
            !read_heap(reader, fields, heap, layout, &layout->heaps[i])) {
            return -EAGAIN;
        }
    }
    return 0;
}

/* ---- Frozen frames ---- */

static int read_frozen(const struct reader *reader, const struct fields *fields,
                       struct walk_frozen *frozen)
{
    uint64_t heap = 0;
    if (!fields->is[HEAP_OBJECT] || !fields->is[IS_COLLECTING] || !fields->is[COLLECTIONS] ||
        !fields->is[OOP_BASE] || !fields->is[OOP_SHIFT]) {
        return -ENOTSUP;
    }
    if (!read_memory(reader, fields->at[HEAP_OBJECT], &heap, 8) || !heap ||
        !read_memory(reader, fields->at[OOP_BASE], &frozen->oop_base, 8) ||
        !read_memory(reader, fields->at[OOP_SHIFT], &frozen->oop_shift, 4) ||
        (fields->is[ENTRY_PC] &&
         (!read_memory(reader, fields->at[ENTRY_PC], &frozen->entry_pc, 8) || !frozen->entry_pc))) {
        return -EAGAIN;
    }
    frozen->is_collecting = heap + fields->at[IS_COLLECTING];
    frozen->collections = heap + fields->at[COLLECTIONS];
    return 0;
}

/* One of both; with the layout goes the version. */
static int read_all(const struct reader *reader, struct walk_layout *layout, uint32_t *version,
                    struct walk_frozen *frozen)
{
    struct tables tables = {0};
    struct fields fields = {0};
    int err = -ENOTSUP;
    if (read_tables(reader, &tables)) {
        find_fields(reader, &tables, &fields);
        if (frozen) {
            err = read_frozen(reader, &fields, frozen);
        } else if (take_fields(&fields, size_of(reader, &tables, "HeapBlock"), layout)) {
            err = read_heaps(reader, &fields, layout);
            /* That of JDK 8 is HotSpot's own, 25. */
            if (layout->is_8 || !fields.is[VERSION] ||
                !read_memory(reader, fields.at[VERSION], version, sizeof *version)) {
                *version = 0;
            }
        }
    }
    free(tables.structs.entries);
    free(tables.types.entries);
    return err;
}

static int open_and_read(int directory, const char *libjvm, uint64_t bias,
                         struct walk_layout *layout, uint32_t *version, struct walk_frozen *frozen)
{
    struct reader reader = {.libjvm = ELF_FILE_NONE, .bias = bias};
    int root = openat(directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int err = root < 0 ? -errno : 0;
    reader.memory = openat(directory, "mem", O_RDONLY | O_CLOEXEC);
    err = err ? err : reader.memory < 0 ? -errno : 0;
    if (!err && elf_file_open(root, libjvm, &reader.libjvm) != OBJECT_SOUND) {
        err = -ENOTSUP;
    }
    err = err ? err : read_all(&reader, layout, version, frozen);
    elf_file_close(&reader.libjvm);
    if (reader.memory >= 0) {
        close(reader.memory);
    }
    if (root >= 0) {
        close(root);
    }
    return err;
}

int layout_read(int directory, const char *libjvm, uint64_t bias, struct walk_layout *layout,
                uint32_t *version)
{
    return open_and_read(directory, libjvm, bias, layout, version, NULL);
}

int layout_read_frozen(int directory, const char *libjvm, uint64_t bias, const int64_t *told,
                       struct walk_frozen *frozen)
{
    uint32_t fact[JITDUMP_CODE_KEYS] = {0};
    for (int key = JITDUMP_CODE_FROZEN_FIRST; key < JITDUMP_CODE_KEYS; key++) {
        int64_t value = told[key - JITDUMP_CODE_FROZEN_FIRST];
        fact[key] = value > 0 && value < (int64_t)FARTHEST ? (uint32_t)value : 0;
    }
    *frozen = (struct walk_frozen){
        .tail = fact[JITDUMP_CODE_FROZEN_TAIL],
        .parent = fact[JITDUMP_CODE_FROZEN_PARENT],
        .size = fact[JITDUMP_CODE_FROZEN_SIZE],
        .sp = fact[JITDUMP_CODE_FROZEN_SP],
        .bottom = fact[JITDUMP_CODE_FROZEN_BOTTOM],
        .argsize = fact[JITDUMP_CODE_FROZEN_ARGSIZE],
        .stack = fact[JITDUMP_CODE_FROZEN_STACK],
        .oop_size = fact[JITDUMP_CODE_FROZEN_OOP],
    };
    bool is_told = frozen->tail && frozen->parent && frozen->size && frozen->sp && frozen->stack &&
                   (frozen->bottom || frozen->argsize) &&
                   (frozen->oop_size == 4 || frozen->oop_size == 8);
    return is_told ? open_and_read(directory, libjvm, bias, NULL, NULL, frozen) : -ENOTSUP;
}
