/*
 * Records packed as 'perf record -z' packs them (perf_unpack.h): one zstd stream, cut into
 * PERF_RECORD_COMPRESSED records. Each holds a flushed part of the stream, for perf takes one that
 * gives nothing for damaged.
 */
#ifndef JD_TOOL_PERF_PACK_H
#define JD_TOOL_PERF_PACK_H

#include "jdtool/base/output_file.h"
#include "jdtool/perf/perf_data.h"

struct perf_pack;

struct perf_pack *perf_pack_new(void);       /* NULL: no memory */
void perf_pack_free(struct perf_pack *pack); /* NULL is fine */

/* Packs `size` bytes of records into the file, where they may stay behind until perf_pack_flush.
 * An error is the file's. */
void perf_pack_put(struct perf_pack *pack, struct output_file *file, const void *bytes,
                   size_t size);
void perf_pack_flush(struct perf_pack *pack, struct output_file *file);

/* What HEADER_COMPRESSED says, when all is packed. */
#define PERF_PACK_WORDS 5
void perf_pack_describe(const struct perf_pack *pack, uint32_t words[PERF_PACK_WORDS]);

#endif
