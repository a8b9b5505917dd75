/*
 * Files that are packed as a whole with zstd, under their own names: what is large in a profile and
 * read seldom. A file of others is taken for hostile: a few bytes can claim to be any number of
 * them.
 */
#ifndef JD_TOOL_PACKED_FILE_H
#define JD_TOOL_PACKED_FILE_H

#include "jdtool/base/output_file.h"

#include <stdbool.h>
#include <stdint.h>

/* Larger ones stay as they are: who reads a packed file has it all in memory. */
#define PACKED_FILE_MAX (UINT64_C(256) << 20)

/* Smaller ones stay as they are, too: it is not worth the time. */
#define PACKED_FILE_MIN (UINT64_C(1) << 20)

/*
 * Packs the regular file at `path`, which may still grow, at its end only: what was there when it
 * was looked at before is packed by packing_go_on, the rest by packing_end. NULL: it cannot be
 * read, or there is no memory; no message.
 */
struct packing;
struct packing *packing_new(const char *path);
void packing_free(struct packing *packing); /* NULL is fine */

const char *packing_path(const struct packing *packing);

/* Some milliseconds' work. True: there is more. */
bool packing_go_on(struct packing *packing);

/*
 * Frees it. The packed form of the whole file, which output_file_finish puts in its place and
 * output_file_abort drops. NULL where somebody has it open to write, as what comes later would be
 * lost, where it would save nothing, or for any other reason; no message.
 */
struct output_file *packing_end(struct packing *packing);

/*
 * What is in the file, whose beginning tells whether it is packed: `fd` itself where it is not, or
 * a file in memory in its place, fd being closed. `name` is for messages. A negative errno after a
 * message, fd being closed: -EINVAL: it is damaged, or holds more than PACKED_FILE_MAX bytes.
 */
int packed_file_unpack(int fd, const char *name);

#endif
