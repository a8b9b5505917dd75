/*
 * A quarter of a program's time is a signal handler's: preloaded into `java`, as long as IN_SIGNAL
 * is set. What a signal interrupted did not call, so a walk goes on by the registers that the
 * kernel has saved.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

static volatile long sink;

static long now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

__attribute__((noinline)) static void burn_in_handler(long until)
{
    while (now() < until) {
        for (int i = 0; i < 1000; i++) {
            sink += i;
        }
    }
    sink++; /* no tail call */
}

static void on_signal(int number)
{
    int error = errno;
    (void)number;
    burn_in_handler(now() + 5000000);
    errno = error;
}

__attribute__((constructor)) static void start(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 20000}, {0, 20000}};
    if (getenv("IN_SIGNAL") && strcmp(program_invocation_short_name, "java") == 0) {
        sigaction(SIGPROF, &action, NULL);
        setitimer(ITIMER_PROF, &often, NULL);
    }
}
