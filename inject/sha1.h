/*
 * SHA-1 (RFC 3174), which is what linkers take for build-ids: it tells contents apart, it protects
 * nothing.
 */
#ifndef JD_INJECT_SHA1_H
#define JD_INJECT_SHA1_H

#include <stddef.h>
#include <stdint.h>

#define SHA1_SIZE 20

struct sha1 {
    uint32_t state[5];
    uint64_t size;
    uint8_t block[64];
};

void sha1_start(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, const void *bytes, size_t size);
void sha1_finish(struct sha1 *sha1, uint8_t out[SHA1_SIZE]);

#endif
