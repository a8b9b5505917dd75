/*
 * The bytes of a recording, one after the other: from a file, or from a pipe that somebody writes
 * at the same time. They go through a window, so memory does not grow with the recording; a file is
 * not mapped, for one that shrinks would kill us.
 */
#ifndef JD_TOOL_PERF_INPUT_H
#define JD_TOOL_PERF_INPUT_H

#include "jdtool/perf/perf_data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most that perf_input_need gives at once. */
#define PERF_INPUT_NEED_MAX ((size_t)128 * 1024)

struct perf_input;

/* Opens a regular file, or with "-" what stdin is. 0 or a negative errno (-EISDIR: a directory,
 * -EINVAL: no regular file); no message. */
int perf_input_open(const char *path, struct perf_input **out);
void perf_input_close(struct perf_input *input); /* NULL is fine */

/* Whether it is a regular file, which has a size and can be read anywhere. */
bool perf_input_is_file(const struct perf_input *input);
uint64_t perf_input_size(const struct perf_input *input);

/* Reads exactly size bytes at an offset of a file. 0 or a negative errno (-ENODATA: it ends). */
int perf_input_read_at(const struct perf_input *input, uint64_t offset, void *to, size_t size);

/* A file's bytes [offset, end) come next. */
void perf_input_seek(struct perf_input *input, uint64_t offset, uint64_t end);

/*
 * Of a file whose records have much that is left where it is: so many bytes are read at once, and
 * the kernel is told to have what follows in memory.
 */
void perf_input_by_pieces(struct perf_input *input, size_t piece);

/*
 * Makes the next `size` bytes stand together, at *at until the next call. Returns how many there
 * are: fewer at the end only; or a negative errno. Waits for a pipe's writer.
 */
int64_t perf_input_need(struct perf_input *input, size_t size, const uint8_t **at);

/* Goes on behind `size` bytes; of a pipe no more than perf_input_need gave. */
void perf_input_skip(struct perf_input *input, uint64_t size);

/* The offset of the next byte. */
uint64_t perf_input_offset(const struct perf_input *input);

/*
 * Waits until there are bytes, at most so many milliseconds. True: there are, or it has ended, or
 * asking failed: perf_input_need will not wait for its first byte. False: nothing came.
 */
bool perf_input_wait(const struct perf_input *input, int milliseconds);

/* ---- Packed records ---- */

/*
 * The records of 'perf record -z': perf packs what it takes out of the kernel's buffers with one
 * zstd stream and cuts that into PERF_RECORD_COMPRESSED records, so a record of the kernel may
 * begin in one of them and end in the next (zstd_compress_stream_to_records in
 * tools/perf/util/zstd.c). What perf writes by itself stands between them as it is.
 */

struct perf_unpack;

struct perf_unpack *perf_unpack_new(void);         /* NULL: no memory */
void perf_unpack_free(struct perf_unpack *unpack); /* NULL is fine */

/* Hands in the payload of the next packed record; it must live until perf_unpack_next returns 0. */
void perf_unpack_feed(struct perf_unpack *unpack, const void *packed, size_t size);

/*
 * The next whole record: 1, 0 when more has to be handed in first, -EINVAL when what was handed in
 * is no such stream. The record's bytes live until the next call.
 */
int perf_unpack_next(struct perf_unpack *unpack, struct perf_record *record);

/* Whether the stream has ended inside a record. */
bool perf_unpack_is_cut_off(const struct perf_unpack *unpack);

#endif
