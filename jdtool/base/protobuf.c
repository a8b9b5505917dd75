#include "jdtool/base/protobuf.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define VARINT_MAX 10

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void protobuf_free(struct protobuf *message)
{
    free(message->bytes);
    *message = (struct protobuf){0};
}

/* Room for that many bytes more, or NULL. */
static uint8_t *reserve(struct protobuf *message, size_t size)
{
    if (message->error) {
        return NULL;
    }
    if (message->room - message->size < size) {
        size_t room = message->room ? message->room : 4096;
        while (room - message->size < size) {
            room *= 2;
        }
        uint8_t *grown = realloc(message->bytes, room);
        if (!grown) {
            message->error = -ENOMEM;
            return NULL;
        }
        message->bytes = grown;
        message->room = room;
    }
    return message->bytes + message->size;
}

static size_t encode(uint64_t value, uint8_t *to)
{
    size_t size = 0;
    while (value >= 0x80) {
        to[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to[size++] = (uint8_t)value;
    return size;
}

static void put_varint(struct protobuf *message, uint64_t value)
{
    bool fits = !message->error && message->room - message->size >= VARINT_MAX;
    uint8_t *to = fits ? message->bytes + message->size : reserve(message, VARINT_MAX);
    if (to) {
        message->size += encode(value, to);
    }
}

static void put_key(struct protobuf *message, uint32_t field, enum wire_type type)
{
    put_varint(message, (uint64_t)field << 3 | type);
}

static void put_fixed64(struct protobuf *message, uint64_t value)
{
    uint8_t *to = reserve(message, 8);
    for (int i = 0; to && i < 8; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
    message->size += to ? 8 : 0;
}

void protobuf_uint(struct protobuf *message, uint32_t field, uint64_t value)
{
    if (value) {
        put_key(message, field, WIRE_VARINT);
        put_varint(message, value);
    }
}

void protobuf_fixed64(struct protobuf *message, uint32_t field, uint64_t value)
{
    if (value) {
        put_key(message, field, WIRE_FIXED64);
        put_fixed64(message, value);
    }
}

void protobuf_bytes(struct protobuf *message, uint32_t field, const void *bytes, size_t size)
{
    put_key(message, field, WIRE_BYTES);
    put_varint(message, size);
    protobuf_raw(message, bytes, size);
}

void protobuf_raw(struct protobuf *message, const void *bytes, size_t size)
{
    uint8_t *to = reserve(message, size);
    if (to && size > 0) {
        memcpy(to, bytes, size);
        message->size += size;
    }
}

size_t protobuf_begin(struct protobuf *message, uint32_t field)
{
    put_key(message, field, WIRE_BYTES);
    /* Most lengths take one byte; protobuf_end moves what takes more. */
    if (reserve(message, 1)) {
        message->size++;
    }
    return message->size;
}

void protobuf_end(struct protobuf *message, size_t begun)
{
    uint8_t length[VARINT_MAX];
    if (!reserve(message, VARINT_MAX)) {
        return;
    }
    size_t size = message->size - begun;
    size_t length_size = encode(size, length);
    memmove(message->bytes + begun + length_size - 1, message->bytes + begun, size);
    memcpy(message->bytes + begun - 1, length, length_size);
    message->size += length_size - 1;
}

void protobuf_packed_uint(struct protobuf *message, uint64_t value)
{
    put_varint(message, value);
}

void protobuf_packed_fixed64(struct protobuf *message, uint64_t value)
{
    put_fixed64(message, value);
}
