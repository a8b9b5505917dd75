/*
 * Frames that have no code of their own, and the image that gives them some: perf names a frame by
 * the symbol its address falls on, so an inlined or an interpreted method is put into a call chain
 * as an address in a small file of ours, with one symbol for each method and a few bytes for
 * each of its lines that occurs.
 *
 * Frames are added while chains are made, before the image can be laid out. Until then a frame
 * stands in a chain as FRAME_BASE + its id; frame_table_address tells its final address.
 */
#ifndef JD_TOOL_FRAME_TABLE_H
#define JD_TOOL_FRAME_TABLE_H

#include "jdtool/perf/perf_data.h"
#include "jdtool/sinks/source_path.h"

#include <stdint.h>

/* Nothing else is there: neither x86-64 nor aarch64 have user addresses beyond 2^56. */
#define FRAME_BASE  UINT64_C(0x1000000000000000)
#define FRAME_SPACE UINT64_C(0x0000000100000000) /* for each dump of a process */

enum frame_kind {
    FRAME_INLINED,
    FRAME_INTERPRETED,
    FRAME_KINDS,
};

struct frame_table;

/*
 * suffixes: what is put behind the names, by enum frame_kind; kept, not copied. number: which dump
 * of its process this is for. NULL: no memory.
 */
struct frame_table *frame_table_new(uint32_t number, const char *const suffixes[FRAME_KINDS]);
void frame_table_free(struct frame_table *table); /* NULL is fine */

/* What a chain may hold for a frame before the layout: is it such an address? */
static inline bool is_frame(uint64_t address)
{
    return address >= FRAME_BASE && address < FRAME_BASE * 2;
}

/*
 * The frame of a method (name and file are copied; file may be NULL) at a line (0: unknown), as an
 * address for a chain. The same frame has the same address. 0: no memory.
 */
uint64_t frame_table_add(struct frame_table *table, enum frame_kind kind, const char *name,
                         const char *file, uint32_t line);

uint32_t frame_table_count(const struct frame_table *table);

/* Ends adding. 0 or -ENOMEM. */
int frame_table_lay_out(struct frame_table *table);

/* The final address of one of the table's frames. Others are returned as they are. */
uint64_t frame_table_address(const struct frame_table *table, uint64_t frame);

/* Where the image has to be mapped; sizes in bytes, file_offset that of the first one. */
struct frame_mapping {
    uint64_t address;
    uint64_t size;
    uint64_t file_offset;
};
struct frame_mapping frame_table_mapping(const struct frame_table *table);

/* Writes the image. 0 or a negative errno after a message. */
int frame_table_write(const struct frame_table *table, uint16_t machine,
                      struct source_path *source_path, const char *path,
                      uint8_t build_id[BUILD_ID_MAX]);

#endif
