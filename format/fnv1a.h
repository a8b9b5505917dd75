/*
 * FNV-1a with 64 bits (Fowler, Noll, Vo): a hash of strings that are short and nobody's attack.
 */
#ifndef JD_FORMAT_FNV1A_H
#define JD_FORMAT_FNV1A_H

#include <stdint.h>

/* What the hash of a first string starts from. */
#define FNV1A_START UINT64_C(0xcbf29ce484222325)

/* The hash of a string without its NUL, behind what `state` is the hash of. */
static inline uint64_t fnv1a(uint64_t state, const char *string)
{
    for (; *string; string++) {
        state = (state ^ (unsigned char)*string) * UINT64_C(0x100000001b3);
    }
    return state;
}

#endif
