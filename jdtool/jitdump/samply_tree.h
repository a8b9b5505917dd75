/* The inline tree of a samply record, in the shape of our trailer (format/jitdump.h). */
#ifndef JD_TOOL_SAMPLY_TREE_H
#define JD_TOOL_SAMPLY_TREE_H

#include "jdtool/jitdump/samply_reader.h"
#include "jdtool/jitdump/trailer.h"

/*
 * Fills the trailer's nodes and ranges, for code of code_size bytes, from the lists of a record
 * that need not keep samply's rules: what does not fit is cut off or unknown. The record's
 * functions are taken into names, under ids that no dump uses. 0 or -ENOMEM.
 */
int samply_tree(const struct samply_inlines *inlines, uint32_t code_size,
                struct trailer_names *names, struct trailer *trailer);

#endif
