#include "jdtool/images/image_layout.h"

#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#include <errno.h>

/* DWARF and file systems take larger ones; a JIT's code lies closer together. */
#define REGION_SIZE (UINT64_C(4) << 30)
#define LAYERS_MAX  256
#define FILES_MAX   4096

/* Room below the lowest code known, for code that comes later. */
#define REGION_SLACK (UINT64_C(4) << 20)

/*
 * So far below it are the bases, which files are mapped at as well: Linux maps downwards, so a
 * library that the JVM loads later comes to lie right below the code cache, and libdwfl takes one
 * of two files at one address for the other. Not more, for images are as long (and sparse).
 */
#define BASES_BELOW (UINT64_C(256) << 20)

/* No region begins below: layers' bases need the room, and no JIT's code is there. */
#define LOWEST_START (LAYERS_MAX * IMAGE_BASE_ROOM + REGION_SLACK)

/* Pieces are found by the pages of this size that they lie in. So many are 500 GB of code. */
#define PAGE_BITS    16
#define PAGE_ENTRIES (UINT32_C(8) << 20)

struct region {
    uint64_t start; /* below it are the bases of its layers */
    uint64_t code;  /* from here on; between them is room for call-frame information */
    uint32_t files[LAYERS_MAX];
    uint32_t layers;
};

struct piece {
    uint64_t address;
    uint32_t size;
    uint32_t file;
};

struct image_layout {
    struct piece *pieces;
    uint32_t piece_count;
    uint32_t piece_room;
    struct hash_map pages; /* page -> the pieces in it */
    struct region *regions;
    uint32_t region_count;
    uint32_t region_room;
    struct image_file *files;
    uint32_t file_count;
    uint32_t file_room;
    uint32_t busy[FILES_MAX]; /* by file: the last piece, plus one, that found other code there */
};

struct image_layout *image_layout_new(void)
{
    return calloc(1, sizeof(struct image_layout));
}

void image_layout_free(struct image_layout *layout)
{
    if (layout) {
        hash_map_free(&layout->pages);
        free(layout->pieces);
        free(layout->regions);
        free(layout->files);
        free(layout);
    }
}

uint32_t image_layout_file_count(const struct image_layout *layout)
{
    return layout->file_count;
}

const struct image_file *image_layout_file(const struct image_layout *layout, uint32_t file)
{
    return &layout->files[file];
}

uint32_t image_layout_file_of(const struct image_layout *layout, uint32_t piece)
{
    return layout->pieces[piece].file;
}

static bool overlaps(const struct piece *piece, uint64_t address, uint64_t size)
{
    return piece->file != IMAGE_NONE && piece->address < address + size &&
           address < piece->address + piece->size;
}

void image_layout_overlaps(const struct image_layout *layout, uint64_t address, uint64_t size,
                           void (*visit)(void *context, uint32_t piece), void *context)
{
    if (size >> PAGE_BITS > layout->piece_count) { /* a heap, say */
        for (uint32_t i = 0; i < layout->piece_count; i++) {
            if (overlaps(&layout->pieces[i], address, size)) {
                visit(context, i);
            }
        }
        return;
    }
    uint64_t last = (address + size - 1) >> PAGE_BITS;
    for (uint64_t page = address >> PAGE_BITS; size > 0 && page <= last; page++) {
        struct hash_map_cursor cursor = hash_map_start(&layout->pages, page);
        uint32_t at;
        while ((at = hash_map_next(&layout->pages, &cursor)) != HASH_MAP_NONE) {
            if (overlaps(&layout->pieces[at], address, size)) {
                visit(context, at);
            }
        }
    }
}

static void mark_busy(void *context, uint32_t piece)
{
    struct image_layout *layout = context;
    layout->busy[layout->pieces[piece].file] = layout->piece_count + 1;
}

static bool has(const struct region *region, uint64_t address, uint64_t size)
{
    return address >= region->code && address - region->code < REGION_SIZE - size;
}

/*
 * A region that begins below `lowest`, apart from the bases of the others. False: there is no such
 * place, or no memory.
 */
static bool add_region(struct image_layout *layout, uint64_t address, uint64_t size,
                       uint64_t lowest, int *err)
{
    const uint64_t bases = LAYERS_MAX * IMAGE_BASE_ROOM;
    uint64_t start = lowest / IMAGE_BASE_ROOM * IMAGE_BASE_ROOM;
    if (start < LOWEST_START) {
        return false;
    }
    uint64_t code = start - REGION_SLACK;
    start -= start < LOWEST_START + BASES_BELOW ? REGION_SLACK : BASES_BELOW;
    for (uint32_t i = 0; i < layout->region_count; i++) {
        uint64_t other = layout->regions[i].start;
        if (start - bases < other && other - bases < start) {
            if (other < LOWEST_START) {
                return false;
            }
            start = other - bases;
            i = UINT32_MAX; /* again from the first one */
        }
    }
    struct region region = {.start = start, .code = start < code ? code : start};
    if (!has(&region, address, size)) {
        return false;
    }
    if (ARRAY_RESERVE(layout->regions, layout->region_count, layout->region_room)) {
        *err = -ENOMEM;
        return false;
    }
    layout->regions[layout->region_count++] = region;
    return true;
}

/* A layer of the region without code at the place that was marked. IMAGE_NONE: none. */
static uint32_t find_layer(struct image_layout *layout, struct region *region, int *err)
{
    for (uint32_t layer = 0; layer < region->layers; layer++) {
        if (layout->busy[region->files[layer]] != layout->piece_count + 1) {
            return region->files[layer];
        }
    }
    if (region->layers == LAYERS_MAX || layout->file_count == FILES_MAX) {
        return IMAGE_NONE;
    }
    if (ARRAY_RESERVE(layout->files, layout->file_count, layout->file_room)) {
        *err = -ENOMEM;
        return IMAGE_NONE;
    }
    uint64_t room = region->start + region->layers * IMAGE_FRAME_ROOM;
    layout->files[layout->file_count] = (struct image_file){
        .base = region->start - (region->layers + (uint64_t)1) * IMAGE_BASE_ROOM,
        .frame_room = room + IMAGE_FRAME_ROOM <= region->code ? room : 0};
    region->files[region->layers++] = layout->file_count;
    return layout->file_count++;
}

/* In a region that is there. IMAGE_NONE: in none. */
static uint32_t find_file(struct image_layout *layout, uint64_t address, uint64_t size, int *err)
{
    uint32_t file = IMAGE_NONE;
    image_layout_overlaps(layout, address, size, mark_busy, layout);
    for (uint32_t i = 0; i < layout->region_count && file == IMAGE_NONE && !*err; i++) {
        if (has(&layout->regions[i], address, size)) {
            file = find_layer(layout, &layout->regions[i], err);
        }
    }
    return file;
}

static bool can_be_placed(const struct image_layout *layout, uint64_t address, uint64_t size)
{
    return size > 0 && size <= IMAGE_PIECE_MAX && address <= UINT64_MAX - size &&
           layout->pages.count <= PAGE_ENTRIES;
}

static int enter_pages(struct image_layout *layout, uint64_t address, uint64_t size)
{
    uint64_t last = (address + size - 1) >> PAGE_BITS;
    int err = 0;
    for (uint64_t page = address >> PAGE_BITS; page <= last && !err; page++) {
        err = hash_map_add(&layout->pages, page, layout->piece_count);
    }
    return err;
}

int image_layout_add(struct image_layout *layout, uint64_t address, uint64_t size,
                     uint64_t (*lowest)(void *context, uint64_t address), void *context,
                     uint32_t *file)
{
    int err = 0;
    *file = IMAGE_NONE;
    if (can_be_placed(layout, address, size)) {
        *file = find_file(layout, address, size, &err);
        if (*file == IMAGE_NONE && !err && layout->file_count < FILES_MAX &&
            (add_region(layout, address, size, lowest(context, address), &err) ||
             (!err && add_region(layout, address, size, address, &err)))) {
            *file = find_layer(layout, &layout->regions[layout->region_count - 1], &err);
        }
    }
    if (!err && ARRAY_RESERVE(layout->pieces, layout->piece_count, layout->piece_room)) {
        err = -ENOMEM;
    }
    if (!err && *file != IMAGE_NONE) {
        struct image_file *image = &layout->files[*file];
        image->end = address + size > image->end ? address + size : image->end;
        err = enter_pages(layout, address, size);
    }
    if (err) {
        return err;
    }
    layout->pieces[layout->piece_count++] = (struct piece){address, (uint32_t)size, *file};
    return 0;
}
