/*
 * Lock rules, asserted: a function whose comment says that a lock is held says so in code, too. In
 * debug builds and under sanitizers, that is in the unit tests, a call without it aborts; elsewhere
 * nothing is checked, for the agent aborts no JVM.
 */
#ifndef JD_WRITER_LOCK_HELD_H
#define JD_WRITER_LOCK_HELD_H

#include <pthread.h>

#ifdef JD_CHECK_LOCKS
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Whether anybody holds it: who is not asked, but where it was forgotten a test of one thread finds
 * it free. */
#define lock_is_held(lock) lock_is_held_in(lock, __func__)

static inline void lock_is_held_in(pthread_mutex_t *lock, const char *function)
{
    if (pthread_mutex_trylock(lock) != EBUSY) {
        (void)fprintf(stderr, "%s: its lock is not held\n", function);
        abort();
    }
}
#else
#define lock_is_held(lock) ((void)(lock))
#endif

#endif
