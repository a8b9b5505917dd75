#include "agent/duration.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

/* One clock runs at a time; a thread whose number is not the current one was cancelled. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static uint64_t current;

struct clock {
    uint64_t number;
    struct timespec end;
    void (*expired)(uint64_t session);
    uint64_t session;
};

static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void *run(void *argument)
{
    struct clock clock = *(struct clock *)argument;
    free(argument);
    pthread_setname_np(pthread_self(), "jdagent clock");
    int error = 0;
    pthread_mutex_lock(&lock);
    while (current == clock.number && error == 0) {
        error = pthread_cond_timedwait(&changed, &lock, &clock.end);
    }
    bool over = current == clock.number;
    pthread_mutex_unlock(&lock);
    if (over) {
        clock.expired(clock.session);
    }
    return NULL;
}

/* The JVM's signals (suspension, stack dumps, SIGTERM) are for threads that it knows. */
static int create_thread(struct clock *clock)
{
    enum { STACK_BYTES = 256 * 1024 };
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all;
    sigset_t before;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread, &attributes, run, clock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -error;
}

int duration_start(uint32_t seconds, void (*expired)(uint64_t session), uint64_t session)
{
    struct clock *clock = malloc(sizeof(*clock));
    if (!clock) {
        return -ENOMEM;
    }
    pthread_once(&once, make_condition);
    clock_gettime(CLOCK_MONOTONIC, &clock->end);
    clock->end.tv_sec += (time_t)seconds;
    clock->expired = expired;
    clock->session = session;
    pthread_mutex_lock(&lock);
    clock->number = ++current;
    pthread_mutex_unlock(&lock);
    int error = create_thread(clock);
    if (error) {
        free(clock);
    }
    return error;
}

void duration_cancel(void)
{
    pthread_once(&once, make_condition);
    pthread_mutex_lock(&lock);
    current++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}
