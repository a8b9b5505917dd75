/* Repeatable random numbers: a failing run says its seed, and runs again with JDAGENT_SEED. */
#ifndef JD_TESTS_RANDOM_H
#define JD_TESTS_RANDOM_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t random_seed(void)
{
    const char *given = getenv("JDAGENT_SEED");
    return given ? strtoull(given, NULL, 0) : 1;
}

/* splitmix64 */
static inline uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(random_next(state) % limit);
}

#endif
