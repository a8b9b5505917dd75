#include "jdtool/base/threads.h"

#include <sched.h>
#include <signal.h>

int threads_at_once(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

bool threads_start(pthread_t *thread, void *(*work)(void *), void *context)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is = pthread_create(thread, NULL, work, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is;
}
