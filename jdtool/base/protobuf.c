#include "jdtool/base/protobuf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void protobuf_free(struct protobuf *message)
{
    free(message->bytes);
    *message = (struct protobuf){0};
}

uint8_t *protobuf_reserve(struct protobuf *message, size_t size)
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

static void put_key(struct protobuf *message, uint32_t field, enum wire_type type)
{
    protobuf_packed_uint(message, (uint64_t)field << 3 | type);
}

static void put_fixed64(struct protobuf *message, uint64_t value)
{
    uint8_t *to = protobuf_reserve(message, 8);
    for (int i = 0; to && i < 8; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
    message->size += to ? 8 : 0;
}

void protobuf_uint(struct protobuf *message, uint32_t field, uint64_t value)
{
    if (value) {
        put_key(message, field, WIRE_VARINT);
        protobuf_packed_uint(message, value);
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
    protobuf_packed_uint(message, size);
    protobuf_raw(message, bytes, size);
}

void protobuf_raw(struct protobuf *message, const void *bytes, size_t size)
{
    uint8_t *to = protobuf_reserve(message, size);
    if (to && size > 0) {
        memcpy(to, bytes, size);
        message->size += size;
    }
}

size_t protobuf_begin(struct protobuf *message, uint32_t field)
{
    put_key(message, field, WIRE_BYTES);
    /* Most lengths take one byte; protobuf_end moves what takes more. */
    if (protobuf_reserve(message, 1)) {
        message->size++;
    }
    return message->size;
}

void protobuf_end(struct protobuf *message, size_t begun)
{
    uint8_t length[PROTOBUF_VARINT_MAX];
    if (!protobuf_reserve(message, PROTOBUF_VARINT_MAX)) {
        return;
    }
    size_t size = message->size - begun;
    size_t length_size = protobuf_encode(size, length);
    memmove(message->bytes + begun + length_size - 1, message->bytes + begun, size);
    memcpy(message->bytes + begun - 1, length, length_size);
    message->size += length_size - 1;
}

void protobuf_packed_fixed64(struct protobuf *message, uint64_t value)
{
    put_fixed64(message, value);
}
