/* The source of a method as text: each line of its file with its share of an event. */
#ifndef JD_TOOL_SOURCE_VIEW_H
#define JD_TOOL_SOURCE_VIEW_H

#include "jdtool/base/packed_output.h"
#include "jdtool/profile/method_tallies.h"

struct source_texts;

/*
 * Writes the file of a function, or where its text is not to be had, those of its lines that were
 * sampled. whole: the weight that is 100 %. Sets *hottest to the row (from 0) of the function's
 * line that took the most itself. 0 or -ENOMEM.
 */
int source_view_put(const struct method_tallies *tallies, uint32_t function, uint32_t event,
                    uint64_t whole, struct source_texts *sources, struct packed_output *output,
                    uint32_t *hottest);

#endif
