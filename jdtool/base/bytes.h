/* A growing run of bytes, for what is written in sections. An allocation that fails sets `failed`,
 * and what is put afterwards is lost: asked for once, at the end. Zero one to start. */
#ifndef JD_TOOL_BYTES_H
#define JD_TOOL_BYTES_H

#include "format/leb128.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    uint8_t *at;
    size_t size;
    size_t room;
    bool failed;
};

/* Makes room for `size` more bytes, which the caller fills. NULL when there is no memory. */
static inline uint8_t *bytes_grow(struct bytes *bytes, size_t size)
{
    if (size > SIZE_MAX / 4 - bytes->size) {
        bytes->failed = true;
        return NULL;
    }
    if (size > bytes->room - bytes->size) {
        size_t room = bytes->room ? bytes->room * 2 : 4096;
        while (room - bytes->size < size) {
            room *= 2;
        }
        uint8_t *grown = realloc(bytes->at, room);
        if (!grown) {
            bytes->failed = true;
            return NULL;
        }
        bytes->at = grown;
        bytes->room = room;
    }
    bytes->size += size;
    return bytes->at + bytes->size - size;
}

static inline void bytes_put(struct bytes *bytes, const void *from, size_t size)
{
    uint8_t *to = size ? bytes_grow(bytes, size) : NULL;
    if (to) {
        memcpy(to, from, size);
    }
}

static inline void bytes_u8(struct bytes *bytes, uint8_t value)
{
    bytes_put(bytes, &value, sizeof value);
}

static inline void bytes_u16(struct bytes *bytes, uint16_t value)
{
    bytes_put(bytes, &value, sizeof value);
}

static inline void bytes_u32(struct bytes *bytes, uint32_t value)
{
    bytes_put(bytes, &value, sizeof value);
}

static inline void bytes_u64(struct bytes *bytes, uint64_t value)
{
    bytes_put(bytes, &value, sizeof value);
}

static inline void bytes_uleb(struct bytes *bytes, uint64_t value)
{
    size_t size = bytes->size;
    uint8_t *to = bytes_grow(bytes, LEB128_MAX);
    bytes->size = to ? size + uleb128_put(to, value) : size;
}

static inline void bytes_sleb(struct bytes *bytes, int64_t value)
{
    uint8_t out[LEB128_MAX];
    bytes_put(bytes, out, sleb128_put(out, value));
}

static inline void bytes_string(struct bytes *bytes, const char *text)
{
    bytes_put(bytes, text, strlen(text) + 1);
}

/* Zeros up to the next multiple of `alignment`, a power of two. */
static inline void bytes_align(struct bytes *bytes, size_t alignment)
{
    size_t size = -bytes->size & (alignment - 1);
    uint8_t *to = size ? bytes_grow(bytes, size) : NULL;
    if (to) {
        memset(to, 0, size);
    }
}

/* Overwrites four bytes put before. */
static inline void bytes_patch_u32(struct bytes *bytes, size_t offset, uint32_t value)
{
    if (!bytes->failed) {
        memcpy(bytes->at + offset, &value, sizeof value);
    }
}

/* Gives back the room that is not used. */
static inline void bytes_fit(struct bytes *bytes)
{
    uint8_t *fitting = bytes->size ? realloc(bytes->at, bytes->size) : NULL;
    if (fitting) {
        bytes->at = fitting;
        bytes->room = bytes->size;
    }
}

static inline void bytes_free(struct bytes *bytes)
{
    free(bytes->at);
    *bytes = (struct bytes){0};
}

#endif
