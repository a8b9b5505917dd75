#include "jdtool/confined/confined.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confine.h"
#include "jdtool/confined/requests.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A sanitizer wants threads, its own memory and /proc: there the work is done without all this. */
#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define CANNOT_BE_CONFINED 1
#endif
#endif
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define CANNOT_BE_CONFINED 1
#endif
#ifndef CANNOT_BE_CONFINED
#define CANNOT_BE_CONFINED 0
#endif

enum { LOOK_SECONDS = 60 };

/* Which of them end programs by a user's wish. */
static const int wishes[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

#define NO_CONFINING "this kernel, or a filter around us, cannot confine who reads it"

static bool here;
static const uint32_t proof = 0x4a444341; /* the parent looks for it in the child */

bool confined_here(void)
{
    return here;
}

void *confined_shared(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void confined_unshare(void *memory, size_t size)
{
    if (memory) {
        munmap(memory, size);
    }
}

/* Which process it is, and what it may. */
struct confined {
    struct requests requests;
};

/* ---- The child ---- */

struct ends {
    int says[2];  /* the listener's number, or a negative errno */
    int hears[2]; /* a byte: it may begin */
};

static void become_confined(const struct confined_options *options, struct ends *ends,
                            const sigset_t *signals)
{
    int listener = -1;
    char go;
    close(ends->says[0]);
    close(ends->hears[1]);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int err = confine(options->cpu_seconds, &listener);
    int says = err ? err : listener;
    if (write(ends->says[1], &says, sizeof says) != sizeof says || err ||
        read(ends->hears[0], &go, 1) != 1) {
        _exit(STATUS_FAILED);
    }
    close(listener);
    close(ends->says[1]);
    close(ends->hears[0]);
    if (!options->inner) {
        sigprocmask(SIG_SETMASK, signals, NULL);
    }
    here = true;
    exit(options->work(options->context));
}

/* ---- The parent ---- */

static bool take_listener(struct requests *requests, int number, uint64_t its_proof)
{
    requests->listener = (int)syscall(SYS_pidfd_getfd, requests->pidfd, number, 0);
    return requests->listener >= 0 && requests_can(requests, its_proof, proof);
}

/* Answers it until it ends. Signals that come to us are meant for it. */
static void serve(const struct requests *requests, int signals)
{
    struct pollfd all[] = {{.fd = requests->pidfd, .events = POLLIN},
                           {.fd = signals, .events = POLLIN},
                           {.fd = requests->listener, .events = POLLIN}};
    struct signalfd_siginfo info;
    while (poll(all, 3, -1) >= 0 || errno == EINTR) {
        if (all[2].revents & POLLIN) {
            (void)requests_answer(requests);
        } else if (all[2].revents) {
            all[2].fd = -1;
        }
        if (all[1].revents && read(signals, &info, sizeof info) == sizeof info) {
            (void)kill(requests->pid, (int)info.ssi_signo); /* not reaped: still its number */
        }
        if (all[0].revents) {
            return;
        }
    }
}

/* As a program without a second process would end. */
static void end_by(int number)
{
    sigset_t it;
    sigemptyset(&it);
    sigaddset(&it, number);
    signal(number, SIG_DFL);
    raise(number);
    sigprocmask(SIG_UNBLOCK, &it, NULL);
}

static int ended(const struct confined_options *options, int status)
{
    if (WIFEXITED(status)) {
        return WEXITSTATUS(status);
    }
    int number = WTERMSIG(status);
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes && !options->inner; i++) {
        if (number == wishes[i]) {
            end_by(number);
        }
    }
    if (number == SIGPIPE) {
        return STATUS_DONE; /* whoever reads our output has seen enough */
    }
    const char *why = strsignal(number);
    error_message("failed to read %s: the process that reads it died (%s)", options->what,
                  number == SIGXCPU ? "it took too long"
                  : why             ? why
                                    : "of a signal");
    detail_message("", "It had no rights: nothing was changed but what it was to write.");
    return STATUS_FAILED;
}

static void tell_unconfined(const char *what, const char *why)
{
    if (why) {
        warning_message("reading %s with all %s: %s", what,
                        geteuid() == 0 ? "rights of root" : "your rights", why);
    }
}

/* In this process, with all that it may do. */
static int work_here(const struct confined_options *options, const char *why)
{
    tell_unconfined(options->what, why);
    return options->work(options->context);
}

static pid_t start(const struct confined_options *options, struct ends *ends,
                   const sigset_t *before)
{
    pid_t pid = fork();
    if (pid == 0) {
        become_confined(options, ends, before);
    }
    close(ends->says[1]);
    close(ends->hears[0]);
    return pid;
}

static int run(const struct confined_options *options, struct ends *ends, const sigset_t *before,
               int signals)
{
    int number = -1;
    int status = 0;
    fflush(NULL); /* or it is written twice */
    pid_t pid = start(options, ends, before);
    struct requests requests = {.listener = -1,
                                .pid = pid,
                                .rights = options->rights,
                                .pidfd = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1};
    bool can = requests.pidfd >= 0 &&
               read(ends->says[0], &number, sizeof number) == sizeof number && number >= 0 &&
               take_listener(&requests, number, (uintptr_t)&proof) &&
               write(ends->hears[1], "", 1) == 1;
    close(ends->says[0]);
    close(ends->hears[1]);
    if (can) {
        serve(&requests, signals);
    } else if (pid > 0) {
        kill(pid, SIGKILL);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    descriptor_close(requests.listener);
    descriptor_close(requests.pidfd);
    sigprocmask(SIG_SETMASK, before, NULL);
    return can ? ended(options, status) : work_here(options, NO_CONFINING);
}

int confined_run(const struct confined_options *options)
{
    struct ends ends;
    sigset_t signals;
    sigset_t before;
    if (CANNOT_BE_CONFINED) {
        return work_here(options, NULL);
    }
    tzset(); /* reads a file */
    sigemptyset(&signals);
    for (size_t i = 0; i < sizeof wishes / sizeof *wishes; i++) {
        sigaddset(&signals, wishes[i]);
    }
    if (pipe2(ends.says, O_CLOEXEC) != 0) {
        return work_here(options, strerror(errno));
    }
    if (pipe2(ends.hears, O_CLOEXEC) != 0) {
        close(ends.says[0]);
        close(ends.says[1]);
        return work_here(options, strerror(errno));
    }
    sigprocmask(SIG_BLOCK, &signals, &before);
    int fd = options->inner ? -1 : signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    int status = run(options, &ends, &before, fd);
    descriptor_close(fd);
    return status;
}

void confined_look(const char *what, int (*work)(void *context), void *context)
{
    struct rights *none = rights_new();
    if (none) {
        (void)confined_run(&(struct confined_options){.rights = none,
                                                      .what = what,
                                                      .cpu_seconds = LOOK_SECONDS,
                                                      .inner = true,
                                                      .work = work,
                                                      .context = context});
    }
    rights_free(none);
}

/* ---- A program of others' ---- */

void confined_program_begin(struct confined_program *program, const char *what, int place)
{
    *program = (struct confined_program){what, confine_rules(), false};
    if (program->rules >= 0) {
        confine_allow(program->rules, place, true);
    }
}

void confined_program_end(struct confined_program *program)
{
    descriptor_close(program->rules);
    program->rules = -1;
}

void confined_allow(struct confined_program *program, int fd)
{
    if (program->rules >= 0) {
        confine_allow(program->rules, fd, false);
    }
}

void confined_allow_path(struct confined_program *program, const char *path)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        confined_allow(program, fd);
        close(fd);
    }
}

int confined_prepare(void *context)
{
    const struct confined_program *program = context;
    int err = confine_program(program->rules, program->of_others);
    tell_unconfined(program->what, err ? NO_CONFINING : NULL);
    return 0;
}

/* ---- A program beside us ---- */

/* So long it may take to begin. */
#define MEET_MS 10000

/* What it says first. A program of its own lies at other addresses than we do. */
struct hello {
    int listener;   /* its number there, or a negative errno */
    uint64_t proof; /* where it is */
};

bool confined_enter(int parent)
{
    struct hello hello = {.listener = -ENOSYS, .proof = (uintptr_t)&proof};
    char go;
    tzset();
    if (!CANNOT_BE_CONFINED) {
        int err = confine(0, &hello.listener);
        hello.listener = err ? err : hello.listener;
    }
    bool is = write(parent, &hello, sizeof hello) == sizeof hello && read(parent, &go, 1) == 1;
    here = hello.listener >= 0;
    if (here) {
        close(hello.listener);
    }
    close(parent);
    return is;
}

int confined_meet(int child, pid_t pid, const char *what, const struct rights *rights,
                  struct confined **out)
{
    struct hello hello;
    struct pollfd said = {.fd = child, .events = POLLIN};
    *out = calloc(1, sizeof **out);
    if (!*out) {
        return -ENOMEM;
    }
    struct requests *requests = &(*out)->requests;
    *requests = (struct requests){.listener = -1,
                                  .pid = pid,
                                  .rights = rights,
                                  .pidfd = (int)syscall(SYS_pidfd_open, pid, 0)};
    int err = poll(&said, 1, MEET_MS) != 1                                 ? -ETIMEDOUT
              : read(child, &hello, sizeof hello) != (ssize_t)sizeof hello ? -EPIPE
                                                                           : 0;
    if (!err && hello.listener < 0) {
        tell_unconfined(what, CANNOT_BE_CONFINED ? NULL : NO_CONFINING);
    } else if (!err && !take_listener(requests, hello.listener, hello.proof)) {
        err = -EPERM;
    }
    if (!err && write(child, "", 1) != 1) {
        err = -EPIPE;
    }
    if (err) {
        confined_part(*out);
        *out = NULL;
    }
    return err;
}

void confined_part(struct confined *confined)
{
    if (!confined) {
        return;
    }
    descriptor_close(confined->requests.listener);
    descriptor_close(confined->requests.pidfd);
    free(confined);
}

int confined_listener(const struct confined *confined)
{
    return confined->requests.listener;
}

void confined_answer(struct confined *confined)
{
    struct pollfd asks = {.fd = confined->requests.listener, .events = POLLIN};
    if (poll(&asks, 1, 0) != 1) {
        return;
    }
    if (!(asks.revents & POLLIN) || !requests_answer(&confined->requests)) {
        close(confined->requests.listener); /* nobody asks any more */
        confined->requests.listener = -1;
    }
}
