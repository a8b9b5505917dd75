/* Fuzzes the reader of JFR recordings, chunk by chunk. */
#include "jdtool/events/jfr_events.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int take(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    uint64_t *count = context;
    (void)pid;
    (void)tid;
    if (mark->kind != MARK_JFR || mark->until < mark->from || !mark->text || !*mark->text ||
        strlen(mark->subject) > 1024) {
        fprintf(stderr, "a mark that is none\n");
        abort();
    }
    return ++*count > 100000 ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t count = 0;
    while (size >= 16) {
        uint64_t chunk;
        memcpy(&chunk, data + 8, sizeof chunk);
        chunk = be64toh(chunk);
        if (chunk == 0 || chunk > size) {
            chunk = size;
        }
        /* A buffer of its own size, so that a byte beyond it is noticed. */
        uint8_t *bytes = malloc((size_t)chunk);
        if (!bytes) {
            abort();
        }
        memcpy(bytes, data, (size_t)chunk);
        (void)jfr_chunk_read(bytes, (size_t)chunk, take, &count);
        free(bytes);
        data += chunk;
        size -= (size_t)chunk;
    }
    return 0;
}
