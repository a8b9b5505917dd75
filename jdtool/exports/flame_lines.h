/*
 * Which source line stands at a frame of the flame page: a node of the frame tree is a function
 * called by a function, whatever its lines, so it shows the one that most of its samples have.
 */
#ifndef JD_TOOL_FLAME_LINES_H
#define JD_TOOL_FLAME_LINES_H

#include "jdtool/exports/frame_tree.h"
#include "jdtool/exports/profile.h"

/*
 * Fills, for each node of TREE (made of PROFILE), lines[node] with its most frequent line, 0 where
 * none is known, and shares[node] with how many of the node's samples have it, in percent. Both
 * have tree->count elements, all 0. Returns 0 or -ENOMEM.
 */
int flame_lines_find(const struct profile *profile, const struct frame_tree *tree, uint32_t *lines,
                     uint8_t *shares);

#endif
