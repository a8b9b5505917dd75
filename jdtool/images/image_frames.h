/*
 * Frames that have no code of their own, and the image that gives them some: perf names a frame by
 * the symbol its address falls on, so an inlined or an interpreted method is put into a call chain
 * as an address in a file of ours, with one symbol for each method and a few bytes for each of its
 * lines that occurs.
 *
 * An address is final when it is given away: a method gets a block with room for more lines than
 * most have when it is first seen, and the file is mapped as a whole before its end is known.
 */
#ifndef JD_TOOL_IMAGE_FRAMES_H
#define JD_TOOL_IMAGE_FRAMES_H

#include "jdtool/perf/perf_data.h"
#include "jdtool/resolve/frame.h"
#include "jdtool/resolve/source_texts.h"

/* Nothing else is there: neither x86-64 nor aarch64 have user addresses beyond 2^56. */
#define IMAGE_FRAMES_BASE  UINT64_C(0x1000000000000000)
#define IMAGE_FRAMES_SPACE UINT64_C(0x0000000100000000) /* for each JVM of a recording */

struct image_frames;

/* number: of the JVM in the recording, from 0. NULL: no memory. */
struct image_frames *image_frames_new(uint32_t number);
void image_frames_free(struct image_frames *frames); /* NULL is fine */

/*
 * The address for an INLINED frame, a SUBJECT, or an INTERPRETED one with a method of its own, as a
 * chain is to have it. The same method, kind and line have the same address. Where there is no room
 * for a further line it is that of another line of the method; 0: there is none for a further
 * method (more than a million), which is counted, or no memory, then *err is -ENOMEM.
 */
uint64_t image_frames_address(struct image_frames *frames, const struct resolved_frame *frame,
                              int *err);

bool image_frames_is_empty(const struct image_frames *frames);

/* Where the image is to be mapped, from file offset 0 on. */
uint64_t image_frames_start(const struct image_frames *frames);

/* Frames without an address, of those asked for. */
uint64_t image_frames_lost(const struct image_frames *frames);

/*
 * Writes the image; suffixes are put behind the names of inlined and of interpreted methods. 0 or
 * a negative errno after a message.
 */
int image_frames_write(const struct image_frames *frames, uint16_t machine, const char *inlined,
                       const char *interpreted, struct source_path *source_path, const char *path,
                       uint8_t build_id[BUILD_ID_MAX]);

#endif
