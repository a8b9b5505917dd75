/*
 * Who we are, without asking the kernel each time.
 *
 * A fork of the process inherits our open files and our locks, perhaps locked. Whatever it does
 * must not reach the parent's files, so everything that writes remembers the generation in which it
 * was opened and does nothing in another. The count is kept by pthread_atfork: comparing it costs a
 * load, where comparing getpid() would cost a system call for each event. What goes around
 * pthread_atfork (vfork, posix_spawn, which is what HotSpot starts processes with) execs at once
 * and never gets to run our code.
 */
#ifndef JD_WRITER_PROCESS_H
#define JD_WRITER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

/* Has to be called once before the others count; more often is fine. 0 or a negative errno. */
int process_watch_forks(void);

/* Grows by one in the child of each fork. */
unsigned process_generation(void);

/* The calling thread's id, asked of the kernel once for each thread. */
pid_t process_thread_id(void);

/* Whether that thread of the process runs or waits for a processor, and for nothing else. False
 * where /proc does not say. */
bool process_thread_is_runnable(pid_t thread);

#endif
