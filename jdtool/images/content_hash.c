#include "jdtool/images/content_hash.h"

#include <string.h>

#define C1 UINT64_C(0x87c37b91114253d5)
#define C2 UINT64_C(0x4cf5ad432745937f)

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t mix_low(uint64_t word)
{
    return rotate(word * C1, 31) * C2;
}

static uint64_t mix_high(uint64_t word)
{
    return rotate(word * C2, 33) * C1;
}

static uint64_t finish(uint64_t value)
{
    value = (value ^ value >> 33) * UINT64_C(0xff51afd7ed558ccd);
    value = (value ^ value >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return value ^ value >> 33;
}

void content_hash_add(struct content_hash *hash, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    uint64_t low = hash->low;
    uint64_t high = hash->high;
    uint64_t words[2];
    for (size_t left = size; left >= sizeof words; left -= sizeof words, at += sizeof words) {
        memcpy(words, at, sizeof words);
        low = (rotate(low ^ mix_low(words[0]), 27) + high) * 5 + 0x52dce729;
        high = (rotate(high ^ mix_high(words[1]), 31) + low) * 5 + 0x38495ab5;
    }
    words[0] = words[1] = 0;
    if (size % sizeof words) {
        memcpy(words, at, size % sizeof words);
    }
    low ^= mix_low(words[0]) ^ size;
    high ^= mix_high(words[1]) ^ size;
    low += high;
    high += low;
    low = finish(low);
    high = finish(high);
    hash->low = low + high;
    hash->high = high + hash->low;
}
