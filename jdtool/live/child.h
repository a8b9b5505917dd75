/*
 * Programs that are run for us: perf, jattach, the injector, the command. Each is held by a pidfd,
 * so that a signal never goes to another process that got its number, and waited for by poll.
 */
#ifndef JD_TOOL_LIVE_CHILD_H
#define JD_TOOL_LIVE_CHILD_H

#include "jdtool/live/wait.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct child {
    pid_t pid;  /* 0: none */
    int pidfd;  /* readable when it has ended; -1: none */
    int status; /* when it has been reaped: its exit status, 128 + N when signal N ended it */
    bool reaped;
    bool own_group;
};

#define NO_CHILD ((struct child){.pidfd = -1})

struct child_options {
    char *const *arguments; /* NULL-terminated; the first is looked up in PATH */
    int in, out, err;       /* descriptors for the child; -1: /dev/null */
    const int *keep;        /* further descriptors that it inherits by number */
    size_t keep_count;
    bool own_group;   /* Ctrl-C is not for it */
    int death_signal; /* it gets this one when we die; 0: none */
    bool drop;        /* run as this user and group, without further groups */
    uid_t uid;
    gid_t gid;
    int others_end;    /* for child_talk, a pidfd: it ends a moment after that process; 0: none */
    const char *still; /* for child_talk: said when it takes more than 3 s; NULL: nothing */
    /* Instead of a program: it returns the exit status. Signals that end us stay blocked in it. */
    int (*work)(void *context);
    /* Called in the child before the program is run; what it returns unless 0 is the exit status.
     */
    int (*prepare)(void *context);
    void *context;
};

/* Whether there is such a program: a path, or a name to be found in PATH; and where, in PATH_MAX
 * bytes. */
bool program_exists(const char *name);
bool program_find(const char *name, char *found);

/* Starts it. 0 or a negative errno without a message: -ENOENT there is no such program. */
int child_start(struct child *child, const struct child_options *options);

/* The signal that a status tells of; 0: none. perf ends with 255 for many reasons. */
static inline int child_killed_by(int status)
{
    return status > 128 && status <= 128 + SIGRTMAX ? status - 128 : 0;
}

/* Takes the status of one that has ended; false: it has not. */
bool child_ended(struct child *child);

/* Sends a signal; nothing when it was reaped already. */
void child_signal(const struct child *child, int number);

/* Kills it if it runs, with its group if that is its own, takes its status and forgets it. */
void child_end(struct child *child);

/*
 * Waits for its end. 0: it has ended; -ETIMEDOUT, -EINTR as wait_for.
 */
int child_wait(struct child *child, struct waiting *waiting, int64_t deadline, bool until_ended);

/*
 * Runs a program to its end and returns its exit status, or STATUS_FAILED after a message. Signals
 * that come to us are passed on to it; Ctrl-C is the terminal's to tell it.
 */
int child_run(const struct child_options *options, struct waiting *waiting);

/*
 * Runs a program to its end in a group of its own, without standard input, and gathers what it
 * says on both of its outputs: up to size - 1 bytes with a NUL behind them, what is more is read
 * and dropped. 0 with its exit status in *status; -ETIMEDOUT or -EINTR (a signal has come to us):
 * it was killed; or another negative errno: it could not be started. No message.
 */
int child_talk(const struct child_options *options, struct waiting *waiting, int64_t deadline,
               char *answer, size_t size, int *status);

#endif
