#include "agent/session/session_clock.h"

#include "writer/message.h"
#include "writer/own_thread.h"
#include "writer/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Leases ---- */

/* Whether anybody holds it. Takes no lock itself. */
static bool lease_is_held(int lease)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(lease, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

int lease_open(const char *path)
{
    struct stat status = {0};
    int lease = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    const char *reason = NULL;
    int error = -EINVAL;
    if (lease < 0 || fstat(lease, &status) != 0) {
        error = -errno;
        reason = strerror(-error);
    } else if (!S_ISREG(status.st_mode)) {
        reason = "not a regular file";
    } else if (!lease_is_held(lease)) {
        reason = "nobody holds it";
    }
    if (reason) {
        message(MESSAGE_ERROR, "failed to take the lease %s: %s", path, reason);
        lease_close(lease);
        return error;
    }
    return lease;
}

void lease_close(int lease)
{
    if (lease >= 0) {
        close(lease);
    }
}

/* ---- The clock ---- */

/* Between two looks at a lease. A session of nobody's lasts as long at most. */
enum { LEASE_SECONDS = 2 };

/* One clock runs at a time; a thread whose number is not the current one was cancelled. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static uint64_t current;

struct running {
    struct session_clock clock;
    uint64_t number;
    struct timespec end; /* of its duration */
};

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec > b->tv_sec || (a->tv_sec == b->tv_sec && a->tv_nsec > b->tv_nsec);
}

/* When to look next, and what is the matter if nothing else has happened by then. */
static enum session_end next_look(const struct running *running, struct timespec *at)
{
    *at = running->end;
    if (running->clock.lease < 0) {
        return SESSION_OVER;
    }
    const struct timespec probe = stamp_in_ms(UINT64_C(1000) * LEASE_SECONDS);
    if (running->clock.seconds && is_later(&probe, at)) {
        return SESSION_OVER;
    }
    *at = probe;
    return SESSION_ORPHANED;
}

/* Waits until the session is to end. False: cancelled. */
static bool wait_for_end(const struct running *running, enum session_end *why)
{
    bool over = false;
    pthread_mutex_lock(&lock);
    while (current == running->number && !over) {
        struct timespec at;
        *why = next_look(running, &at);
        int error = 0;
        while (current == running->number && error == 0) {
            error = pthread_cond_timedwait(&changed, &lock, &at);
        }
        over = *why == SESSION_OVER || !lease_is_held(running->clock.lease);
    }
    over = over && current == running->number;
    pthread_mutex_unlock(&lock);
    return over;
}

static bool is_current(uint64_t number)
{
    pthread_mutex_lock(&lock);
    bool is = current == number;
    pthread_mutex_unlock(&lock);
    return is;
}

static void *run(void *argument)
{
    struct running running = *(struct running *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), "jdagent clock");
    enum session_end why = SESSION_OVER;
    bool over = wait_for_end(&running, &why);
    lease_close(running.clock.lease);
    const struct timespec second = {.tv_sec = 1};
    while (over && is_current(running.number) &&
           !running.clock.expired(running.clock.session, why)) {
        nanosleep(&second, NULL);
    }
    return NULL;
}

int session_clock_start(const struct session_clock *clock)
{
    struct running *running = malloc(sizeof(*running));
    int error = running ? 0 : -ENOMEM;
    if (running) {
        pthread_once(&once, make_condition);
        running->clock = *clock;
        running->end = stamp_in_ms((uint64_t)clock->seconds * 1000);
        pthread_mutex_lock(&lock);
        running->number = ++current;
        pthread_mutex_unlock(&lock);
        error = own_thread_start(run, running, OWN_THREAD_JAVA_STACK, NULL);
    }
    if (error) {
        free(running);
        lease_close(clock->lease);
    }
    return error;
}

void session_clock_cancel(void)
{
    pthread_once(&once, make_condition);
    pthread_mutex_lock(&lock);
    current++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
