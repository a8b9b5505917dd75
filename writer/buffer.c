#include "writer/buffer.h"

#include <stdlib.h>

/* What a buffer starts with, and what it keeps at most when it is cleared. */
enum { FIRST_CAPACITY = 4096, KEPT_CAPACITY = 1024 * 1024 };

bool buffer_grow(struct buffer *buffer, size_t n)
{
    if (buffer->failed || n > buffer->limit - buffer->size) {
        buffer->failed = true;
        /* A full buffer takes no shorter piece either: what came before must stay a prefix. */
        buffer->capacity = buffer->size;
        return false;
    }
    size_t wanted = buffer->size + n;
    size_t capacity = buffer->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : buffer->capacity;
    while (capacity < wanted) {
        capacity *= 2;
    }
    if (capacity > buffer->limit) {
        capacity = buffer->limit;
    }
    uint8_t *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->failed = true;
        buffer->capacity = buffer->size;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void buffer_clear(struct buffer *buffer)
{
    if (buffer->failed || buffer->capacity > KEPT_CAPACITY) {
        buffer_free(buffer);
    }
    buffer->size = 0;
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = BUFFER_INIT(buffer->limit);
}
