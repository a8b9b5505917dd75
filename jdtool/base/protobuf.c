#include "jdtool/base/protobuf.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

static void put_key(struct bytes *message, uint32_t field, enum wire_type type)
{
    bytes_uleb(message, (uint64_t)field << 3 | type);
}

void protobuf_uint(struct bytes *message, uint32_t field, uint64_t value)
{
    if (value) {
        put_key(message, field, WIRE_VARINT);
        bytes_uleb(message, value);
    }
}

void protobuf_fixed64(struct bytes *message, uint32_t field, uint64_t value)
{
    if (value) {
        put_key(message, field, WIRE_FIXED64);
        bytes_u64(message, value);
    }
}

void protobuf_bytes(struct bytes *message, uint32_t field, const void *bytes, size_t size)
{
    put_key(message, field, WIRE_BYTES);
    bytes_uleb(message, size);
    bytes_put(message, bytes, size);
}

size_t protobuf_begin(struct bytes *message, uint32_t field)
{
    put_key(message, field, WIRE_BYTES);
    bytes_u8(message, 0); /* most lengths take one byte; protobuf_end moves what takes more */
    return message->size;
}

void protobuf_end(struct bytes *message, size_t begun)
{
    uint8_t length[LEB128_MAX];
    size_t size = message->size - begun;
    size_t more = uleb128_put(length, size) - 1;
    if (message->failed || (more && !bytes_grow(message, more))) {
        return;
    }
    if (more) {
        memmove(message->at + begun + more, message->at + begun, size);
    }
    memcpy(message->at + begun - 1, length, more + 1);
}
