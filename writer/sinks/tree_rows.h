/*
 * Whether a piece of code's line rows can be had from its inline tree again (format/jitdump.h,
 * "Rows from the tree"), so that a dump for readers of trees need not have both.
 */
#ifndef JD_WRITER_TREE_ROWS_H
#define JD_WRITER_TREE_ROWS_H

#include "writer/code.h"

/* False as well where there is no tree, or one whose files or methods have no ids. Linear in rows
 * and ranges. */
bool tree_gives_rows(const struct code *code);

#endif
