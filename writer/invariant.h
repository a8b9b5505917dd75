/*
 * Invariants, asserted by the numbers that they have at the head of their file. In debug builds and
 * under sanitizers, that is in the unit tests, one that does not hold aborts; elsewhere nothing is
 * checked, for the agent aborts no JVM.
 *
 * Among them are lock rules: a function whose comment says that a lock is held says so in code,
 * too.
 */
#ifndef JD_WRITER_INVARIANT_H
#define JD_WRITER_INVARIANT_H

#include <pthread.h>

#ifdef JD_CHECK_INVARIANTS
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define invariant(number, holds) invariant_in(#number, holds, __FILE__, __LINE__)

static inline void invariant_in(const char *number, bool holds, const char *file, int line)
{
    if (!holds) {
        (void)fprintf(stderr, "%s:%d: %s does not hold\n", file, line, number);
        abort();
    }
}

/* Whether anybody holds it: who is not asked, but where it was forgotten a test of one thread finds
 * it free. */
#define lock_is_held(lock)                                                                         \
    invariant_in("that its lock is held", pthread_mutex_trylock(lock) == EBUSY, __FILE__, __LINE__)
#else
#define invariant(number, holds) ((void)0)
#define lock_is_held(lock)       ((void)(lock))
#endif

#endif
