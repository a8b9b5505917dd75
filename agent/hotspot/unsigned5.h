/*
 * HotSpot's compressed numbers (utilities/unsigned5.hpp), in which nmethods' scopes and methods'
 * line tables are written.
 */
#ifndef JD_AGENT_UNSIGNED5_H
#define JD_AGENT_UNSIGNED5_H

#include <stdbool.h>
#include <stdint.h>

/* From JDK 20 on bytes stand for what they are minus 1, because 0 is never written. */
static inline unsigned unsigned5_excluded(int major)
{
    return major >= 20;
}

/*
 * Reads one number from *at on, which is moved behind it. A byte below 192 ends it, and so does the
 * fifth. False: the bytes end first, or an excluded one comes; *number is as it was then.
 */
static inline bool unsigned5_get(const uint8_t **at, const uint8_t *end, unsigned excluded,
                                 uint32_t *number)
{
    uint32_t sum = 0;
    for (unsigned i = 0; i < 5; i++) {
        if (*at >= end || **at < excluded) {
            return false;
        }
        uint32_t byte = *(*at)++;
        sum += (byte - excluded) << (6 * i);
        if (byte < 192) {
            break;
        }
    }
    *number = sum;
    return true;
}

#endif
