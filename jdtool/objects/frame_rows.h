/*
 * Call-frame rows of a file: .eh_frame, else .debug_frame (its own or that of its debug file), both
 * read by libdw. An address is looked up once and kept, up to FRAME_ROWS_MAX of them.
 */
#ifndef JD_TOOL_FRAME_ROWS_H
#define JD_TOOL_FRAME_ROWS_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/objects/frame_row.h"

#include <elfutils/libdw.h>

/* ---- Rows kept once ---- */

/*
 * Call-frame rows, each kept once: the functions of a file save the same few registers at the same
 * few places, so that its thousands of addresses have some hundred different rows.
 */

#define ROW_SET_MAX 32768

/* Start with ROW_SET_EMPTY. */
struct row_set {
    struct chunks list; /* of struct native_row */
    struct hash_map by_content;
};

#define ROW_SET_EMPTY ((struct row_set){.list.element = sizeof(struct native_row)})

void row_set_free(struct row_set *set);

#define FRAME_ROWS_MAX 32768

struct frame_rows;

/*
 * machine: of the recording. eh_frame: with .eh_frame, may be NULL; it and the set must outlive the
 * rows. NULL: no memory.
 */
struct frame_rows *frame_rows_new(unsigned machine, Elf *eh_frame, struct row_set *set);
void frame_rows_free(struct frame_rows *rows); /* NULL is fine */

/* The row of an address. debug_frame is asked for DWARF with .debug_frame when .eh_frame has no
 * row; it returns NULL if there is none, and its result must outlive the rows if they need it.
 * Never NULL; lives as long as the set does if it `lasts`, else until the next call. */
const struct native_row *frame_rows_at(struct frame_rows *rows, uint64_t address,
                                       Dwarf *(*debug_frame)(void *context), void *context);

/* Whether they need what debug_frame gave: else it may go, and is asked for no more. */
bool frame_rows_need_dwarf(const struct frame_rows *rows);

/* Whether one of the sections was left unread, because it breaks a bound of cfi_check.h. */
bool frame_rows_refused(const struct frame_rows *rows);

uint64_t frame_rows_bytes(const struct frame_rows *rows); /* memory it takes */

#endif
