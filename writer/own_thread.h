/* A thread of ours in a process that is somebody else's. */
#ifndef JD_WRITER_OWN_THREAD_H
#define JD_WRITER_OWN_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* A stack for Java code, which runs where the JVM gets to know a thread. */
#define OWN_THREAD_JAVA_STACK ((size_t)1024 * 1024)

/*
 * Starts a thread that takes none of the process' signals (a JVM's suspension, stack dumps,
 * SIGTERM): they are for threads that it knows. *thread is to be joined or detached; NULL: it is
 * detached. 0 or a negative errno.
 */
int own_thread_start(void *(*start)(void *argument), void *argument, size_t stack_bytes,
                     pthread_t *thread);

#endif
