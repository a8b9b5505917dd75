/*
 * Slices as files, NAME-PID-YYYYMMDDTHHMMSSZ.pb.gz in one directory; what is older than wanted, or
 * more, goes. Files of such names that were there before count, too; no other file is touched.
 */
#ifndef JD_TOOL_WATCH_FILES_H
#define JD_TOOL_WATCH_FILES_H

#include "jdtool/watch/slice_pipe.h"

struct slice_files;

struct slice_files_options {
    const char *directory; /* made if it is not there; no link. Held from then on */
    uint64_t keep_seconds; /* 0: by size alone */
    uint64_t keep_bytes;   /* 0: by age alone */
};

/* Options are kept, not copied. 0 or a negative errno after a message. */
int slice_files_new(const struct slice_files_options *options, struct slice_files **out);
void slice_files_free(struct slice_files *files); /* NULL is fine */

/* Writes one, and removes what is too much. 0 or a negative errno after a message. */
int slice_files_give(struct slice_files *files, const struct labels *labels, int pid,
                     uint64_t from_ns, const uint8_t *body, size_t size);

/* What is there. */
void slice_files_counts(const struct slice_files *files, uint64_t *count, uint64_t *bytes);

#endif
