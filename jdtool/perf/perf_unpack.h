/*
 * The records of 'perf record -z': perf packs what it takes out of the kernel's buffers with one
 * zstd stream and cuts that into PERF_RECORD_COMPRESSED records, so a record of the kernel may
 * begin in one of them and end in the next (zstd_compress_stream_to_records in
 * tools/perf/util/zstd.c). What perf writes by itself stands between them as it is.
 */
#ifndef JD_TOOL_PERF_UNPACK_H
#define JD_TOOL_PERF_UNPACK_H

#include "jdtool/perf/perf_data.h"

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
