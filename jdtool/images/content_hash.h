/*
 * A fast hash that tells contents apart, for build-ids: MurmurHash3's x64 variant of 128 bits
 * (Austin Appleby, public domain). It protects nothing.
 */
#ifndef JD_TOOL_CONTENT_HASH_H
#define JD_TOOL_CONTENT_HASH_H

#include <stddef.h>
#include <stdint.h>

struct content_hash {
    uint64_t low;
    uint64_t high;
};

/* Takes in a run of bytes, with its length: where one ends counts (but for
 * an empty one at the start). Zero a hash to start. */
void content_hash_add(struct content_hash *hash, const void *bytes, size_t size);

#endif
