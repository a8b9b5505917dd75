/*
 * Code that HotSpot describes at safepoints only (DebugNonSafepoints off: what was compiled before
 * an agent asked for the events). What it says of an address between two of them is what holds at
 * the next one: of a hot loop without calls the method that is called behind the loop.
 */
#ifndef JD_TOOL_SAFEPOINT_LINES_H
#define JD_TOOL_SAFEPOINT_LINES_H

#include "jdtool/jitdump/code_index.h"

/*
 * True when the code that was there first is described at safepoints only; looks at no more code
 * than it takes, and at none twice. False, too, when the dump does not tell enough (little code, no
 * trailers, a machine we do not know), or cannot be read, after a message.
 */
bool safepoint_lines_first(struct code_index *index);

/* Whether a blob is described so: one of that first code, unless an agent that was there before has
 * asked for more. */
bool safepoint_lines_of(struct code_index *index, uint32_t blob,
                        const struct code_details *details);

/*
 * What is known of an address between two safepoints, for a tree with ranges: the innermost method
 * that both are in; the line is the one by which it leads to the next. The range is made up: it
 * begins and ends where that of the tree does. NULL, as trailer_range_at: nothing is known.
 */
const struct trailer_range *safepoint_lines_between(const struct trailer *tree, uint32_t offset,
                                                    struct trailer_range *made);

#endif
