#include "jdtool/walk/layout.h"

#include "format/jitdump.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/objects/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No structure of these is as large. */
#define FARTHEST (1u << 16)

/* ---- The process' memory, and its libjvm.so ---- */

enum { PAGE_SIZE = 4096, PAGES_KEPT = 64 };

/* Tables have 6,000 small pieces, on few pages: they are kept while the tables are read. */
struct other_memory {
    struct memory memory;
    int fd;
    struct kept_page {
        uint64_t at; /* 0: none */
        char bytes[PAGE_SIZE];
    } * pages;
};

/* NULL: it cannot be read. */
static const char *page_of(struct other_memory *memory, uint64_t at)
{
    struct kept_page *page = &memory->pages[at / PAGE_SIZE % PAGES_KEPT];
    if (page->at != at) {
        page->at = at;
        if (pread(memory->fd, page->bytes, PAGE_SIZE, (off_t)at) != PAGE_SIZE) {
            page->at = 0;
            return NULL;
        }
    }
    return page->bytes;
}

static bool read_pieces(struct memory *memory, const struct memory_piece *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct memory_piece *piece = &pieces[i];
        size_t done = 0;
        while (done < piece->size) {
            uint64_t from = piece->from + done;
            size_t offset = from % PAGE_SIZE;
            size_t size = piece->size - done;
            size = size < PAGE_SIZE - offset ? size : PAGE_SIZE - offset;
            const char *page =
                from <= INT64_MAX ? page_of((struct other_memory *)memory, from - offset) : NULL;
            if (!page) {
                return false;
            }
            memcpy((char *)piece->to + done, page + offset, size);
            done += size;
        }
    }
    return true;
}

static void close_memory(struct other_memory *memory)
{
    descriptor_close(memory->fd);
    free(memory->pages);
}

struct library {
    struct elf_file file;
    uint64_t bias;
};

static bool find_symbol(const struct libjvm *libjvm, const char *name, uint64_t *address)
{
    const struct library *library = libjvm->context;
    GElf_Sym symbol;
    bool is = elf_file_symbol(&library->file, ".dynsym", name, &symbol);
    *address = is ? library->bias + symbol.st_value : 0;
    return is;
}

/* Close it in any case. 0 or a negative errno. */
static int open_memory(int directory, struct other_memory *memory)
{
    *memory = (struct other_memory){
        .memory.read = read_pieces,
        .fd = openat(directory, "mem", O_RDONLY | O_CLOEXEC),
    };
    int err = memory->fd < 0 ? -errno : 0;
    memory->pages = calloc(PAGES_KEPT, sizeof *memory->pages);
    return err || memory->pages ? err : -ENOMEM;
}

int layout_read(int directory, const char *libjvm, uint64_t bias, struct hotspot_layout *layout)
{
    struct other_memory memory;
    struct library library = {.file = ELF_FILE_NONE, .bias = bias};
    const struct libjvm its = {&memory.memory, find_symbol, &library};
    int err = open_memory(directory, &memory);
    int root = openat(directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    err = err ? err : root < 0 ? -errno : 0;
    if (!err && (elf_file_open(root, libjvm, &library.file) != OBJECT_SOUND ||
                 !hotspot_layout_read(&its, layout))) {
        err = -ENOTSUP;
    }
    elf_file_close(&library.file);
    descriptor_close(root);
    close_memory(&memory);
    return err;
}

static uint32_t offset_of(const struct hotspot_layout *layout, enum field field)
{
    return (uint32_t)layout->places[field].offset;
}

/* ---- The code cache ---- */

static bool take_fields(const struct hotspot_layout *layout, struct walk_layout *walk)
{
    static const enum field needed[] = {
        HEAP_MEMORY, HEAP_SEGMAP, HEAP_LOG2_SEGMENT,  SPACE_LOW,       SPACE_END,  BLOCK_USED,
        BLOB_NAME,   BLOB_SIZE,   NMETHOD_COMPILE_ID, BLOB_FRAME_SIZE, FIELD_COUNT};
    const struct place *begin = &layout->places[BLOB_CODE_BEGIN];
    const struct place *offset = &layout->places[BLOB_CODE_OFFSET];
    if (!hotspot_layout_has(layout, needed) || !layout->block_header ||
        !(begin->known || (offset->known && (offset->width == 2 || offset->width == 4)))) {
        return false;
    }
    *walk = (struct walk_layout){
        .block_header = (uint32_t)layout->block_header,
        .block_used = offset_of(layout, BLOCK_USED),
        .blob_name = offset_of(layout, BLOB_NAME),
        .blob_size = offset_of(layout, BLOB_SIZE),
        .blob_frame_size = offset_of(layout, BLOB_FRAME_SIZE),
        .blob_code = (uint32_t)(begin->known ? begin->offset : offset->offset),
        .code_offset = begin->known ? 0 : (uint32_t)offset->width,
        .nmethod_id = offset_of(layout, NMETHOD_COMPILE_ID),
        .is_8 = !layout->places[HEAPS].known,
    };
    return true;
}

/* The heaps may not be there yet. */
static bool take_heaps(struct memory *memory, const struct hotspot_layout *layout,
                       struct walk_layout *walk)
{
    struct code_heap heaps[CODE_HEAPS_MAX];
    int count = code_heaps_read(memory, layout, heaps);
    for (int i = 0; i < count && i < WALK_HEAPS; i++) {
        const struct code_heap *heap = &heaps[i];
        if (heap->end - heap->low > UINT64_C(1) << 32 || heap->log2 < 4 || heap->log2 > 16) {
            return false;
        }
        walk->segment_shift = heap->log2;
        walk->heaps[i] = (struct walk_heap){heap->low, heap->end, heap->map};
    }
    return count > 0 && count <= WALK_HEAPS;
}

int layout_code_cache(int directory, const struct hotspot_layout *layout, struct walk_layout *walk,
                      uint32_t *version)
{
    struct other_memory memory;
    int64_t major = 0;
    int err = open_memory(directory, &memory);
    if (!err && !take_fields(layout, walk)) {
        err = -ENOTSUP;
    }
    if (!err && !take_heaps(&memory.memory, layout, walk)) {
        err = -EAGAIN;
    }
    /* That of JDK 8 is HotSpot's own, 25. */
    bool is_known =
        !err && !walk->is_8 && place_read(&memory.memory, &layout->places[VM_VERSION], 0, &major);
    *version = is_known ? (uint32_t)major : 0;
    close_memory(&memory);
    return err;
}

/* ---- Frozen frames ---- */

static int take_frozen(struct memory *memory, const struct hotspot_layout *layout,
                       struct walk_frozen *frozen)
{
    static const enum field needed[] = {HEAP_OBJECT, HEAP_IS_COLLECTING, HEAP_COLLECTIONS,
                                        OOP_BASE,    OOP_SHIFT,          FIELD_COUNT};
    const struct place *places = layout->places;
    int64_t heap = 0;
    int64_t base = 0;
    int64_t shift = 0;
    int64_t entry = 0;
    if (!hotspot_layout_has(layout, needed)) {
        return -ENOTSUP;
    }
    if (!place_read(memory, &places[HEAP_OBJECT], 0, &heap) || !heap ||
        !place_read(memory, &places[OOP_BASE], 0, &base) ||
        !place_read(memory, &places[OOP_SHIFT], 0, &shift) ||
        (places[CONTINUATION_ENTRY_PC].known &&
         (!place_read(memory, &places[CONTINUATION_ENTRY_PC], 0, &entry) || !entry))) {
        return -EAGAIN;
    }
    frozen->oop_base = (uint64_t)base;
    frozen->oop_shift = (uint32_t)shift;
    frozen->entry_pc = (uint64_t)entry;
    frozen->is_collecting = (uint64_t)heap + places[HEAP_IS_COLLECTING].offset;
    frozen->collections = (uint64_t)heap + places[HEAP_COLLECTIONS].offset;
    return 0;
}

int layout_frozen(int directory, const struct hotspot_layout *layout, const int64_t *told,
                  struct walk_frozen *frozen)
{
    uint32_t fact[JITDUMP_CODE_KEYS] = {0};
    for (int i = 0; i < JITDUMP_CODE_FROZEN_COUNT; i++) {
        int64_t value = told[i];
        fact[JITDUMP_CODE_FROZEN_FIRST + i] =
            value > 0 && value < (int64_t)FARTHEST ? (uint32_t)value : 0;
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
    if (!is_told) {
        return -ENOTSUP;
    }
    struct other_memory memory;
    int err = open_memory(directory, &memory);
    err = err ? err : take_frozen(&memory.memory, layout, frozen);
    close_memory(&memory);
    return err;
}
