/*
 * Where an export goes: a file, standard output or memory, gzipped or as it is. What is put there
 * is gathered; the first error is remembered and told by packed_output_finish, so that the calls
 * before it need no check.
 */
#ifndef JD_TOOL_PACKED_OUTPUT_H
#define JD_TOOL_PACKED_OUTPUT_H

#include "jdtool/base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <string.h>

struct packed_output;

/* What every packed_output begins with: its buffer, for packed_output_put alone. */
struct packed_buffer {
    uint8_t *at; /* for the next byte */
    uint8_t *end;
};

/* Starts one that goes to `path` (copied; "-" is standard output), gzipped if asked. 0 or a
 * negative errno after a message. */
int packed_output_open(const char *path, bool gzip, struct packed_output **out);

/* Starts one that stays in memory. */
int packed_output_open_memory(bool gzip, struct packed_output **out);

/* Puts what has no room in the buffer. */
void packed_output_overflow(struct packed_output *output, const void *bytes, size_t size);

static inline void packed_output_put(struct packed_output *output, const void *bytes, size_t size)
{
    struct packed_buffer *buffer = (struct packed_buffer *)output;
    if (size < (size_t)(buffer->end - buffer->at)) {
        memcpy(buffer->at, bytes, size);
        buffer->at += size;
    } else {
        packed_output_overflow(output, bytes, size);
    }
}

void packed_output_text(struct packed_output *output, const char *text);
void packed_output_printf(struct packed_output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* For a writer's own errors: remembered like those of a write; err is a negative errno. */
void packed_output_fail(struct packed_output *output, int err);

/* How much was put, in bytes before gzip. */
uint64_t packed_output_size(const struct packed_output *output);

/* Completes it and frees it. 0 or a negative errno after a message; a file is then not there. */
int packed_output_finish(struct packed_output *output);

/* The same for one in memory: *bytes is the caller's to free. */
int packed_output_take(struct packed_output *output, uint8_t **bytes, size_t *size);

/* Puts the bytes behind what is in `out`, packed as a whole in zlib's wrapping. False: they would
 * not become fewer, or there is no memory; `out` is then as it was. */
bool packed_output_whole(const void *bytes, size_t size, struct bytes *out);

/* Frees it and leaves no file. NULL is fine. */
void packed_output_abort(struct packed_output *output);

#endif
