#include "inject/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static void add_block(uint32_t state[5], const uint8_t *block)
{
    uint32_t w[80];
    for (size_t i = 0; i < 16; i++) {
        uint32_t word;
        memcpy(&word, block + 4 * i, sizeof word);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        word = __builtin_bswap32(word);
#endif
        w[i] = word;
    }
    for (int i = 16; i < 80; i++) {
        w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t f = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                     : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                     : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                              : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = rotate(a, 5) + f + e + w[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void sha1_start(struct sha1 *sha1)
{
    *sha1 = (struct sha1){.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0}};
}

void sha1_add(struct sha1 *sha1, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    size_t used = sha1->size % 64;
    sha1->size += size;
    if (used && used + size >= 64) {
        memcpy(sha1->block + used, at, 64 - used);
        add_block(sha1->state, sha1->block);
        at += 64 - used;
        size -= 64 - used;
        used = 0;
    }
    for (; used == 0 && size >= 64; at += 64, size -= 64) {
        add_block(sha1->state, at);
    }
    if (size) {
        memcpy(sha1->block + used, at, size);
    }
}

void sha1_finish(struct sha1 *sha1, uint8_t out[SHA1_SIZE])
{
    static const uint8_t padding[64] = {0x80};
    uint8_t bits[8];
    for (int i = 0; i < 8; i++) {
        bits[i] = (uint8_t)(sha1->size * 8 >> (56 - 8 * i));
    }
    sha1_add(sha1, padding, 1 + (119 - sha1->size % 64) % 64);
    sha1_add(sha1, bits, sizeof bits);
    for (int i = 0; i < 5; i++) {
        for (int j = 0; j < 4; j++) {
            out[4 * i + j] = (uint8_t)(sha1->state[i] >> (24 - 8 * j));
        }
    }
}
