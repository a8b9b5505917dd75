/* The kernel's clocks, in nanoseconds. */
#ifndef JD_TOOL_CLOCK_H
#define JD_TOOL_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SECOND UINT64_C(1000000000)

/* A clock that every kernel has (CLOCK_MONOTONIC …), which is why it cannot fail. */
static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * NS_PER_SECOND + (uint64_t)time.tv_nsec;
}

#endif
