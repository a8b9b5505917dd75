/*
 * Data of others is read by a process that has no rights: no capability, no new program, no socket,
 * no other process, and no file by its name. It has what is open already, and asks us, its parent,
 * for the rest: the kernel holds its calls of open, stat, rename and their like (seccomp's user
 * notification), we look what it wants, do it if its rights allow that, and hand it the descriptor.
 * So the code that reads knows nothing of this, and libelf's is confined as well.
 *
 * Whoever has a dump overflow a buffer in it gets that process, and can say something wrong about
 * the profile, or nothing.
 */
#ifndef JD_TOOL_CONFINED_H
#define JD_TOOL_CONFINED_H

#include "jdtool/confined/rights.h"

#include <stddef.h>
#include <sys/types.h>

/* Of the processor, for a profile that is whole: none takes that long. */
#define CONFINED_SECONDS 3600

struct confined_options {
    const struct rights *rights;
    const char *what;           /* is read, for messages */
    uint32_t cpu_seconds;       /* of the processor at most; 0: as many as it takes */
    bool inner;                 /* a moment's work in a program that takes signals itself */
    int (*work)(void *context); /* returns the exit status */
    void *context;
};

/*
 * Does the work in such a process, with our standard input and outputs, and returns its exit
 * status. When it dies, that is told, and the status is STATUS_FAILED; when a signal ended it that
 * ends programs by a user's wish, we end in the same way. Signals that come to us reach it. Where
 * the kernel has not what this needs (5.14, or a seccomp filter of others around us), the work is
 * done right here; the user is told.
 */
int confined_run(const struct confined_options *options);

/* A moment's work on what is open already, of which memory that is shared tells: with no rights at
 * all. */
void confined_look(const char *what, int (*work)(void *context), void *context);

/*
 * For a program of others' that reads others' data by itself, perf. It may read what programs need
 * of the system and what it is allowed besides, change nothing but what is below one directory, and
 * tell nobody (confine.h). Where it cannot be confined, the user is told, and it has his
 * rights.
 */
struct confined_program {
    const char *what; /* is read, for messages */
    int rules;        /* -1: it cannot be */
    bool of_others;   /* it is to read another user's files */
};

/* `place`: the directory it may write into. End it in any case. */
void confined_program_begin(struct confined_program *program, const char *what, int place);
void confined_program_end(struct confined_program *program);

/* It may read an open file, or a directory with what is below it; or what is at a path. */
void confined_allow(struct confined_program *program, int fd);
void confined_allow_path(struct confined_program *program, const char *path);

/* In its process, before it is run, as child_options.prepare with that context. 0. */
int confined_prepare(void *program);

/*
 * A program of ours that reads others' data for as long as we run, beside us. We start it with one
 * end of a pair of stream sockets, by which it calls confined_enter before it reads anything; we
 * call confined_meet with the other. From then on it gets what it asks for by confined_answer,
 * which is due whenever the descriptor of confined_listener is readable.
 */
struct confined;

/* In that program: from here on it has no rights. False: nobody wants it any more. */
bool confined_enter(int parent);

/*
 * In us, within some seconds. `rights` are kept. Where it cannot be confined it goes on as it is,
 * and the user is told, as of confined_run. 0 or a negative errno: it is to be ended.
 */
int confined_meet(int child, pid_t pid, const char *what, const struct rights *rights,
                  struct confined **out);
void confined_part(struct confined *confined); /* NULL is fine */

int confined_listener(const struct confined *confined); /* -1: there is none (any more) */
void confined_answer(struct confined *confined);

/* Memory that such a process shares with us, zeroed: how a work tells more than its exit status,
 * which is to be doubted like what it has read. NULL: there is none. */
void *confined_shared(size_t size);
void confined_unshare(void *memory, size_t size);

/* Whether this process is such a one. */
bool confined_here(void);

#endif
