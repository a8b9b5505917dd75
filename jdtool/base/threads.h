/* Threads of our own: few, each for one thing that is done beside something else. */
#ifndef JD_TOOL_THREADS_H
#define JD_TOOL_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* On how many processors we may run at the same time; 1 where that is not known. */
int threads_at_once(void);

/*
 * Starts one that gets no signals: those are for who waits for them. False: it could not be
 * started. To be joined.
 */
bool threads_start(pthread_t *thread, void *(*work)(void *), void *context);

#endif
