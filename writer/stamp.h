/*
 * The two clocks that stamps are of.
 */
#ifndef JD_WRITER_STAMP_H
#define JD_WRITER_STAMP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* What a time namespace adds to CLOCK_MONOTONIC. The kernel's samples are without it. */
extern _Atomic uint64_t stamp_offset;

/* Finds that out; before the first stamp. */
void stamp_begin(void);

/* CLOCK_MONOTONIC in ns. */
static inline uint64_t stamp_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The moment of CLOCK_MONOTONIC so far from now, to wait for. */
static inline struct timespec stamp_in_ms(uint64_t ms)
{
    const uint64_t ns = stamp_monotonic() + ms * 1000000;
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000),
                             .tv_nsec = (long)(ns % 1000000000)};
}

/* As the kernel stamps samples; with `tsc` the processor's own count, which only x86-64 has. */
static inline uint64_t stamp_now(bool tsc)
{
#ifdef __x86_64__
    if (tsc) {
        return __builtin_ia32_rdtsc();
    }
#else
    (void)tsc;
#endif
    return stamp_monotonic() - atomic_load_explicit(&stamp_offset, memory_order_relaxed);
}

#endif
