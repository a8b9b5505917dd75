/*
 * Call-frame rows, each kept once: the functions of a file save the same few registers at the same
 * few places, so that its thousands of addresses have some hundred different rows.
 */
#ifndef JD_TOOL_ROW_SET_H
#define JD_TOOL_ROW_SET_H

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/objects/frame_row.h"

#define ROW_SET_MAX 32768

/* Start with ROW_SET_EMPTY. */
struct row_set {
    struct chunks list; /* of struct native_row */
    struct hash_map by_content;
};

#define ROW_SET_EMPTY ((struct row_set){.list.element = sizeof(struct native_row)})

/*
 * The copy of a row that equals it, `lasts` set, which lives until row_set_free. NULL: the row has
 * an expression, which belongs to a file, or there is no room.
 */
const struct native_row *row_set_keep(struct row_set *set, const struct native_row *row);

void row_set_free(struct row_set *set);

#endif
