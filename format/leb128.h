/*
 * LEB128, the variable-length integers of DWARF (DWARF 5, section 7.6). Shared by the trailer of
 * jitdump.h, the DWARF and the call-frame writers.
 */
#ifndef JD_FORMAT_LEB128_H
#define JD_FORMAT_LEB128_H

#include <stddef.h>
#include <stdint.h>

/* The longest encoding of a 64-bit value, in bytes. */
#define LEB128_MAX 10

/* Writes value at out, which has room for LEB128_MAX bytes. Returns the bytes written. */
static inline size_t uleb128_put(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    do {
        uint8_t byte = value & 0x7f;
        value >>= 7;
        out[n++] = value ? byte | 0x80 : byte;
    } while (value);
    return n;
}

/* As uleb128_put, for a signed value. */
static inline size_t sleb128_put(uint8_t *out, int64_t value)
{
    size_t n = 0;
    for (;;) {
        uint8_t byte = value & 0x7f;
        value >>= 7; /* arithmetic with gcc and clang */
        if ((value == 0 && !(byte & 0x40)) || (value == -1 && (byte & 0x40))) {
            out[n++] = byte;
            return n;
        }
        out[n++] = byte | 0x80;
    }
}

/*
 * Reads a value from [*at, end) and moves *at behind it. Returns 0, or -1 when the bytes end inside
 * the value or it does not fit 64 bits; *at is then unchanged.
 */
static inline int uleb128_get(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    uint64_t result = 0;
    unsigned shift = 0;
    for (const uint8_t *p = *at; p < end; p++, shift += 7) {
        uint64_t bits = *p & 0x7f;
        if (shift > 63 || (shift == 63 && bits > 1)) {
            return -1;
        }
        result |= bits << shift;
        if (!(*p & 0x80)) {
            *at = p + 1;
            *value = result;
            return 0;
        }
    }
    return -1;
}

/* As uleb128_get, for a signed value. */
static inline int sleb128_get(const uint8_t **at, const uint8_t *end, int64_t *value)
{
    uint64_t result = 0;
    unsigned shift = 0;
    for (const uint8_t *p = *at; p < end; p++) {
        uint64_t bits = *p & 0x7f;
        if (shift > 63 || (shift == 63 && bits != 0 && bits != 0x7f)) {
            return -1;
        }
        result |= bits << shift;
        shift += 7;
        if (!(*p & 0x80)) {
            if (shift < 64 && (*p & 0x40)) {
                result |= ~UINT64_C(0) << shift;
            }
            *at = p + 1;
            *value = (int64_t)result;
            return 0;
        }
    }
    return -1;
}

#endif
