/*
 * Where the code of one JVM lies in its images. An image keeps the code cache's geometry:
 *
 *     file offset = address - the image's base
 *
 * for all code in it, so that one difference serves all mappings of a file. perf needs no more than
 * a mapping's offset; readers that are built on libdwfl (KDAB hotspot) take a file as a whole to
 * where its first mapping says, and find nothing where mappings differ.
 *
 * There is an image for each region of the address space that has code; in practice one, the code
 * cache. Code at a place where the image has other code already, which it took over, goes into a
 * further layer: another image of the same region. Layers have different bases, 64 KB apart,
 * because libdwfl cannot tell files apart that begin at one address.
 *
 * Between the bases and the code a file has room for call-frame information: unwinders read it
 * through the process' mappings, and what is mapped must be so before anybody knows its size.
 */
#ifndef JD_TOOL_IMAGE_LAYOUT_H
#define JD_TOOL_IMAGE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

/* A larger piece is not taken: HotSpot's limits are far below. */
#define IMAGE_PIECE_MAX (UINT64_C(64) << 20)

/* Beside an image's base there is this much that no image takes. */
#define IMAGE_BASE_ROOM UINT64_C(0x10000)

/* Room of a file for call-frame information: some 60,000 pieces of code. */
#define IMAGE_FRAME_ROOM (UINT64_C(16) << 20)

#define IMAGE_NONE UINT32_MAX

struct image_layout;

/* One file: a layer of a region. */
struct image_file {
    uint64_t base;       /* what stands at offset 0 */
    uint64_t end;        /* of the code in it, an address */
    uint64_t frame_room; /* address of IMAGE_FRAME_ROOM bytes without code; 0: there are none */
};

struct image_layout *image_layout_new(void);         /* NULL: no memory */
void image_layout_free(struct image_layout *layout); /* NULL is fine */

/*
 * Places a piece of code, whose number is the next one: 0, 1, 2, ... It goes into file *file,
 * IMAGE_NONE when it is too large, at an address where no code can be, or when there are too many
 * files already. 0 or -ENOMEM.
 *
 * `lowest` is asked for a new region: at what address, not above the given one, may it have code,
 * as far as anybody knows?
 */
int image_layout_add(struct image_layout *layout, uint64_t address, uint64_t size,
                     uint64_t (*lowest)(void *context, uint64_t address), void *context,
                     uint32_t *file);

uint32_t image_layout_file_count(const struct image_layout *layout);
const struct image_file *image_layout_file(const struct image_layout *layout, uint32_t file);

/* The file of a piece, IMAGE_NONE: it is in none. */
uint32_t image_layout_file_of(const struct image_layout *layout, uint32_t piece);

/* Calls `visit` with each placed piece that has a byte in [address, address + size); with some more
 * than once. */
void image_layout_overlaps(const struct image_layout *layout, uint64_t address, uint64_t size,
                           void (*visit)(void *context, uint32_t piece), void *context);

#endif
