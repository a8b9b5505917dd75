/*
 * A growing array of bytes, made to be filled, written out and filled again: it keeps its memory,
 * so that a steady stream of records allocates nothing.
 *
 * Appending never has to be checked on its own: when memory or the limit runs out, the buffer turns
 * `failed`, further bytes are left out, and whoever filled it looks once, at the end.
 */
#ifndef JD_WRITER_BUFFER_H
#define JD_WRITER_BUFFER_H

#include "format/leb128.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct buffer {
    uint8_t *bytes;
    size_t size;     /* bytes in use */
    size_t capacity; /* bytes allocated */
    size_t limit;    /* never holds more than this */
    bool failed;     /* bytes are missing; until buffer_clear */
};

#define BUFFER_INIT(max_bytes) ((struct buffer){.limit = (max_bytes)})

/* Makes the buffer empty and sound again. Memory is kept, but for what one giant record took. */
void buffer_clear(struct buffer *buffer);

/* Gives the memory back; the buffer is then as BUFFER_INIT left it. */
void buffer_free(struct buffer *buffer);

/* Makes room for n bytes behind the last one. False, and `failed`, when there is none. */
bool buffer_grow(struct buffer *buffer, size_t n);

/* Appends n bytes for the caller to fill. NULL when there is no room; valid until the next call. */
static inline uint8_t *buffer_extend(struct buffer *buffer, size_t n)
{
    if (n > buffer->capacity - buffer->size && !buffer_grow(buffer, n)) {
        return NULL;
    }
    uint8_t *at = buffer->bytes + buffer->size;
    buffer->size += n;
    return at;
}

static inline void buffer_put(struct buffer *buffer, const void *bytes, size_t n)
{
    uint8_t *at = n ? buffer_extend(buffer, n) : NULL;
    if (at) {
        memcpy(at, bytes, n);
    }
}

/* Appends a string with its NUL. */
static inline void buffer_put_string(struct buffer *buffer, const char *string)
{
    buffer_put(buffer, string, strlen(string) + 1);
}

static inline void buffer_put_uleb(struct buffer *buffer, uint64_t value)
{
    if (buffer->capacity - buffer->size >= LEB128_MAX || buffer_grow(buffer, LEB128_MAX)) {
        buffer->size += uleb128_put(buffer->bytes + buffer->size, value);
    }
}

static inline void buffer_put_sleb(struct buffer *buffer, int64_t value)
{
    if (buffer->capacity - buffer->size >= LEB128_MAX || buffer_grow(buffer, LEB128_MAX)) {
        buffer->size += sleb128_put(buffer->bytes + buffer->size, value);
    }
}

#endif
