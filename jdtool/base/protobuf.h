/*
 * Writes protobuf messages: fields go into a growing buffer, a submessage's length is put in front
 * of it when it ends. Only what the formats here need: varints, 64-bit fixed, bytes, submessages,
 * packed lists. The first error is remembered in the buffer.
 */
#ifndef JD_TOOL_PROTOBUF_H
#define JD_TOOL_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero one to start. */
struct protobuf {
    uint8_t *bytes;
    size_t size, room;
    int error; /* 0 or -ENOMEM: nothing was added since */
};

void protobuf_free(struct protobuf *message);

/* A field of an integer type; negative ones are given as (uint64_t)value. Zero is left out, as
 * proto3 does. */
void protobuf_uint(struct protobuf *message, uint32_t field, uint64_t value);

/* A fixed64 field. */
void protobuf_fixed64(struct protobuf *message, uint32_t field, uint64_t value);

/* A field of bytes or a string; also when it is empty, for an element of a repeated one. */
void protobuf_bytes(struct protobuf *message, uint32_t field, const void *bytes, size_t size);

/* Fields that were encoded elsewhere. */
void protobuf_raw(struct protobuf *message, const void *bytes, size_t size);

/* Starts a submessage or a packed list; returns what protobuf_end wants. They may nest. */
size_t protobuf_begin(struct protobuf *message, uint32_t field);
void protobuf_end(struct protobuf *message, size_t begun);

/* The longest varint. */
#define PROTOBUF_VARINT_MAX 10

/* How many bytes it takes. */
static inline size_t protobuf_encode(uint64_t value, uint8_t *to)
{
    size_t size = 0;
    while (value >= 0x80) {
        to[size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    to[size++] = (uint8_t)value;
    return size;
}

/* Room for that many bytes more, or NULL. */
uint8_t *protobuf_reserve(struct protobuf *message, size_t size);

/* An element of a packed list. */
static inline void protobuf_packed_uint(struct protobuf *message, uint64_t value)
{
    bool fits = message->room - message->size >= PROTOBUF_VARINT_MAX && !message->error;
    uint8_t *to =
        fits ? message->bytes + message->size : protobuf_reserve(message, PROTOBUF_VARINT_MAX);
    if (to) {
        message->size += protobuf_encode(value, to);
    }
}

void protobuf_packed_fixed64(struct protobuf *message, uint64_t value);

#endif
