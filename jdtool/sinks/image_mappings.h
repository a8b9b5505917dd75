/*
 * The mappings that a result needs: one for each stay of each piece of code that is in an image,
 * from the stay's beginning on, and one for the frames without code. perf keeps what is mapped by
 * time, a later mapping hiding the overlapped part of an earlier one, as the code itself did.
 */
#ifndef JD_TOOL_IMAGE_MAPPINGS_H
#define JD_TOOL_IMAGE_MAPPINGS_H

#include "jdtool/sinks/images.h"

struct image_mappings;

/* keep_all: stays that nothing touched, too. All that is given must live longer. NULL: no memory.
 */
struct image_mappings *image_mappings_new(const struct perf_data *data, const struct jvms *jvms,
                                          const struct image_files *files, bool keep_all);
void image_mappings_free(struct image_mappings *mappings); /* NULL is fine */

/* Writes those that are due at a time and were not written before, as PERF_RECORD_MMAP2. */
void image_mappings_put(struct image_mappings *mappings, uint64_t time, struct perf_writer *writer);

#endif
