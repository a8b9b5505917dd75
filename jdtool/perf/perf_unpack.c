#include "jdtool/perf/perf_unpack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define ROOM ((size_t)256 * 1024) /* several records of the largest size; memory stays at that */

struct perf_unpack {
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    size_t at;          /* of the next record in bytes */
    size_t size;        /* valid bytes */
    bool may_have_more; /* zstd had to stop for want of room */
    _Alignas(8) uint8_t bytes[ROOM];
};

struct perf_unpack *perf_unpack_new(void)
{
    struct perf_unpack *unpack = calloc(1, sizeof *unpack);
    if (!unpack) {
        return NULL;
    }
    unpack->stream = ZSTD_createDStream();
    if (!unpack->stream) {
        free(unpack);
        return NULL;
    }
    (void)ZSTD_initDStream(unpack->stream);
    return unpack;
}

void perf_unpack_free(struct perf_unpack *unpack)
{
    if (unpack) {
        (void)ZSTD_freeDStream(unpack->stream);
        free(unpack);
    }
}

void perf_unpack_feed(struct perf_unpack *unpack, const void *packed, size_t size)
{
    unpack->in = (ZSTD_inBuffer){.src = packed, .size = size};
}

bool perf_unpack_is_cut_off(const struct perf_unpack *unpack)
{
    return unpack->at < unpack->size;
}

/* Unpacks what there is room for. 1, 0 when nothing came, or -EINVAL. */
static int fill(struct perf_unpack *unpack)
{
    if (unpack->in.pos == unpack->in.size && !unpack->may_have_more) {
        return 0;
    }
    memmove(unpack->bytes, unpack->bytes + unpack->at, unpack->size - unpack->at);
    unpack->size -= unpack->at;
    unpack->at = 0;
    ZSTD_outBuffer out = {.dst = unpack->bytes, .size = ROOM, .pos = unpack->size};
    if (ZSTD_isError(ZSTD_decompressStream(unpack->stream, &out, &unpack->in))) {
        return -EINVAL;
    }
    unpack->may_have_more = out.pos == out.size;
    bool came = out.pos > unpack->size;
    unpack->size = out.pos;
    return came || unpack->in.pos < unpack->in.size;
}

int perf_unpack_next(struct perf_unpack *unpack, struct perf_record *record)
{
    for (;;) {
        struct perf_event_header header = {0};
        size_t left = unpack->size - unpack->at;
        if (left >= sizeof header) {
            memcpy(&header, unpack->bytes + unpack->at, sizeof header);
            if (header.size < sizeof header || header.size % 8) {
                return -EINVAL;
            }
        }
        if (left >= sizeof header && left >= header.size) {
            *record = (struct perf_record){
                .type = header.type,
                .misc = header.misc,
                .size = header.size,
                .bytes = unpack->bytes + unpack->at,
            };
            unpack->at += header.size;
            return 1;
        }
        int more = fill(unpack);
        if (more <= 0) {
            return more;
        }
    }
}
