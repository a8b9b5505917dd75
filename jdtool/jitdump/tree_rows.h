/*
 * The rows of a DEBUG_INFO record that leaves them to its inline tree (format/jitdump.h, "Rows from
 * the tree").
 */
#ifndef JD_TOOL_TREE_ROWS_H
#define JD_TOOL_TREE_ROWS_H

#include "jdtool/jitdump/trailer.h"

/* Rows as they would stand in the record. Start zeroed, use again and again; the caller frees
 * entries. */
struct tree_rows {
    struct jitdump_entry *entries; /* their files belong to the names */
    uint32_t count;
    uint32_t room;
};

/*
 * Makes the rows of `size` bytes of code at `address`, in the place of those that *rows had; none
 * where the tree is empty. Ranges behind the code give none. 0 or -ENOMEM.
 */
int tree_rows_make(const struct trailer *trailer, const struct trailer_names *names,
                   uint64_t address, uint64_t size, struct tree_rows *rows);

#endif
