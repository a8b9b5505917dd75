#include "writer/own_thread.h"

#include <signal.h>

int own_thread_start(void *(*start)(void *argument), void *argument, size_t stack_bytes,
                     pthread_t *thread)
{
    pthread_attr_t attributes;
    pthread_t detached;
    sigset_t all;
    sigset_t before;
    int error = pthread_attr_init(&attributes);
    if (error) {
        return -error;
    }
    pthread_attr_setdetachstate(&attributes,
                                thread ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread ? thread : &detached, &attributes, start, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return -error;
}
