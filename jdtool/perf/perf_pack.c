#include "jdtool/perf/perf_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* What a record has of the stream, before it is packed: packed it has room in one even where it
 * cannot be made smaller. perf allots as much for each record (comp_mmap_len). */
#define CHUNK      ((size_t)56 * 1024)
#define CHUNK_ROOM ((size_t)64 * 1024)
#define LEVEL      1 /* a fifth of the time of 3, for a fifth more bytes */

_Static_assert(CHUNK + CHUNK / 64 + 512 < PERF_RECORD_SIZE_MAX, "a chunk that is not smaller");

struct perf_pack {
    ZSTD_CCtx *stream;
    size_t size; /* of what waits in the chunk */
    uint64_t plain_bytes, packed_bytes;
    uint8_t chunk[CHUNK];
    _Alignas(8) uint8_t record[PERF_RECORD_SIZE_MAX];
};

struct perf_pack *perf_pack_new(void)
{
    struct perf_pack *pack = calloc(1, sizeof *pack);
    if (pack) {
        pack->stream = ZSTD_createCCtx();
    }
    if (!pack || !pack->stream ||
        ZSTD_isError(ZSTD_CCtx_setParameter(pack->stream, ZSTD_c_compressionLevel, LEVEL))) {
        perf_pack_free(pack);
        return NULL;
    }
    return pack;
}

void perf_pack_free(struct perf_pack *pack)
{
    if (pack) {
        (void)ZSTD_freeCCtx(pack->stream);
        free(pack);
    }
}

void perf_pack_flush(struct perf_pack *pack, struct output_file *file)
{
    struct perf_event_header header = {.type = PERF_USER_COMPRESSED};
    ZSTD_inBuffer in = {.src = pack->chunk, .size = pack->size};
    ZSTD_outBuffer out = {.dst = pack->record + sizeof header,
                          .size = sizeof pack->record - sizeof header};
    if (pack->size == 0) {
        return;
    }
    if (ZSTD_compressStream2(pack->stream, &out, &in, ZSTD_e_flush) != 0) { /* or it has an error */
        output_file_fail(file, -ENOMEM);
        return;
    }
    header.size = (uint16_t)(sizeof header + out.pos);
    memcpy(pack->record, &header, sizeof header);
    output_file_put(file, pack->record, header.size);
    pack->plain_bytes += pack->size;
    pack->packed_bytes += header.size;
    pack->size = 0;
}

void perf_pack_put(struct perf_pack *pack, struct output_file *file, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    while (size > 0) {
        size_t n = CHUNK - pack->size < size ? CHUNK - pack->size : size;
        memcpy(pack->chunk + pack->size, from, n);
        pack->size += n;
        from += n;
        size -= n;
        if (pack->size == CHUNK) {
            perf_pack_flush(pack, file);
        }
    }
}

void perf_pack_describe(const struct perf_pack *pack, uint32_t words[PERF_PACK_WORDS])
{
    uint64_t packed = pack->packed_bytes ? pack->packed_bytes : 1;
    words[0] = 0; /* the version */
    words[1] = 1; /* zstd */
    words[2] = LEVEL;
    words[3] = (uint32_t)((pack->plain_bytes + packed / 2) / packed); /* the ratio */
    words[4] = CHUNK_ROOM;
}
