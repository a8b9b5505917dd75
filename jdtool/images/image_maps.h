/*
 * What a result has mapped: an MMAP2 record for each piece of code when a process first touches it,
 * and one for its frames without code. perf keeps what is mapped by time, a later mapping hiding
 * the overlapped part of an earlier one, as the code itself did.
 *
 * KDAB hotspot's reader (perfparser, perfelfmap.cpp) takes a mapping's addresses relative to the
 * mapping with file offset 0 that came last, if that was of the same file and lower. So before a
 * piece of another file than the last one there comes a mapping of that file's first bytes, each
 * time a byte longer, or it would pass for known.
 */
#ifndef JD_TOOL_IMAGE_MAPS_H
#define JD_TOOL_IMAGE_MAPS_H

#include "jdtool/images/image_set.h"
#include "jdtool/perf/perf_data.h"

struct image_maps;

/* The data tells how records are to look. All that is given must live longer. NULL: no memory. */
struct image_maps *image_maps_new(const struct perf_data *data, struct perf_writer *writer);
void image_maps_free(struct image_maps *maps); /* NULL is fine */

/*
 * Sees to it that a process has a piece of code mapped from that time on. 0 or a negative errno
 * after a message.
 */
int image_maps_touch(struct image_maps *maps, struct jvm_images *images, uint32_t pid,
                     uint64_t time, const struct resolved_code *code);

/* Whether it has, and no other mapping has hidden any of it since. */
bool image_maps_has(struct image_maps *maps, struct jvm_images *images, uint32_t pid,
                    const struct resolved_code *code);

/* Changes when a mapping hides any code of the process, or all of it is forgotten: while it is the
 * same, what it had it has. 0 is never one. */
uint32_t image_maps_state(struct image_maps *maps, uint32_t pid);

/* The same as image_maps_touch for frames without code. */
int image_maps_touch_frames(struct image_maps *maps, struct jvm_images *images, uint32_t pid,
                            uint64_t time);

/*
 * A record of the recording on its way into the result: mappings that hide ours, processes that
 * come and go. dropped: it does not get there. 0 or a negative errno after a message.
 */
int image_maps_record(struct image_maps *maps, const struct perf_record *record, bool dropped);

#endif
