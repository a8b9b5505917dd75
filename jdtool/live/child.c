#include "jdtool/live/child.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_program(const char *path)
{
    struct stat status;
    return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool program_find(const char *name, char *found)
{
    const char *path = getenv("PATH");
    if (strchr(name, '/')) {
        return snprintf(found, PATH_MAX, "%s", name) < PATH_MAX && is_program(name);
    }
    bool is = false;
    char *copy = strdup(path ? path : "/usr/bin:/bin");
    for (char *rest = copy, *directory; copy && !is && (directory = strsep(&rest, ":"));) {
        int n = snprintf(found, PATH_MAX, "%s/%s", *directory ? directory : ".", name);
        is = n < PATH_MAX && is_program(found);
    }
    free(copy);
    return is;
}

bool program_exists(const char *name)
{
    char found[PATH_MAX];
    return program_find(name, found);
}

/* ---- In the child ---- */

/* Puts a descriptor where the program expects it; -1: /dev/null. */
static int place(int from, int to)
{
    if (from < 0) {
        from = open("/dev/null", O_RDWR | O_CLOEXEC);
    }
    if (from == to) {
        return fcntl(to, F_SETFD, 0);
    }
    return from < 0 || dup2(from, to) < 0 ? -1 : 0;
}

/* Ours may lie where the program's are to come: they are moved out of the way first. */
static int place_all(const struct child_options *options)
{
    int from[3] = {options->in, options->out, options->err};
    for (int i = 0; i < 3; i++) {
        if (from[i] >= 0 && from[i] < 3 && from[i] != i &&
            (from[i] = fcntl(from[i], F_DUPFD_CLOEXEC, 3)) < 0) {
            return -1;
        }
    }
    for (int i = 0; i < 3; i++) {
        if (place(from[i], i) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < options->keep_count; i++) {
        if (fcntl(options->keep[i], F_SETFD, 0) != 0) {
            return -1;
        }
    }
    return 0;
}

static int drop_to(const struct child_options *options)
{
    if (!options->drop) {
        return 0;
    }
    return setgroups(0, NULL) != 0 || setresgid(options->gid, options->gid, options->gid) != 0 ||
                   setresuid(options->uid, options->uid, options->uid) != 0
               ? -1
               : 0;
}

static void run(const struct child_options *options, const sigset_t *signals, pid_t parent,
                int report)
{
    signal(SIGPIPE, SIG_DFL);
    signal(SIGTTOU, SIG_DFL);
    if ((options->own_group && setpgid(0, 0) != 0) || place_all(options) != 0 ||
        drop_to(options) != 0) {
        goto failed;
    }
    /* Behind the change of user, which clears it. */
    if (options->death_signal) {
        prctl(PR_SET_PDEATHSIG, options->death_signal);
        if (getppid() != parent) {
            _exit(125); /* it has died already */
        }
    }
    if (options->work) {
        close(report);
        _exit(options->work(options->context));
    }
    int status = options->prepare ? options->prepare(options->context) : 0;
    if (status != 0) {
        _exit(status);
    }
    sigprocmask(SIG_SETMASK, signals, NULL);
    execvp(options->arguments[0], options->arguments);
failed:;
    int err = errno;
    (void)!write(report, &err, sizeof err);
    _exit(127);
}

/* ---- In the parent ---- */

int child_start(struct child *child, const struct child_options *options)
{
    *child = NO_CHILD;
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0) {
        return -errno;
    }
    /* Signals that end us are blocked since waiting_start; the program has none blocked. */
    sigset_t none;
    sigset_t before;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    pid_t parent = getpid();
    child->own_group = options->own_group;
    child->pid = fork();
    int err = child->pid < 0 ? -errno : 0;
    if (child->pid == 0) {
        close(report[0]);
        run(options, &none, parent, report[1]);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    close(report[1]);
    if (!err) {
        child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
        err = child->pidfd < 0 ? -errno : 0;
    }
    int failure = 0;
    /* With `prepare` the program may be run much later; then its absence is its exit status. */
    if (!err && !options->prepare && read(report[0], &failure, sizeof failure) == sizeof failure) {
        err = -failure;
    }
    close(report[0]);
    if (err && child->pid > 0) {
        kill(child->pid, SIGKILL);
        waitpid(child->pid, NULL, 0);
    }
    if (err) {
        descriptor_close(child->pidfd);
        *child = NO_CHILD;
    }
    return err;
}

static bool reap(struct child *child, int flags)
{
    siginfo_t info = {0};
    if (child->reaped || child->pidfd < 0) {
        return true;
    }
    while (waitid(P_PID, (id_t)child->pid, &info, WEXITED | flags) != 0) {
        if (errno != EINTR) {
            child->reaped = true; /* somebody else's now */
            return true;
        }
    }
    if (info.si_pid == 0) {
        return false;
    }
    child->status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
    child->reaped = true;
    return true;
}

bool child_ended(struct child *child)
{
    return reap(child, WNOHANG);
}

void child_signal(const struct child *child, int number)
{
    if (child->pidfd >= 0 && !child->reaped) {
        kill(child->pid, number); /* not reaped, so the number is its own still */
    }
}

void child_end(struct child *child)
{
    if (child->pidfd >= 0) {
        if (!child_ended(child)) {
            if (child->own_group) {
                kill(-child->pid, SIGKILL);
            }
            child_signal(child, SIGKILL);
            reap(child, 0);
        }
        close(child->pidfd);
    }
    child->pidfd = -1;
    child->pid = 0;
}

int child_wait(struct child *child, struct waiting *waiting, int64_t deadline, bool until_ended)
{
    struct pollfd ends = {.fd = child->pidfd, .events = POLLIN};
    if (child_ended(child)) {
        return 0;
    }
    int err = wait_for(waiting, &ends, 1, deadline, until_ended);
    if (err == 0) {
        reap(child, 0);
    }
    return err;
}

int child_run(const struct child_options *options, struct waiting *waiting)
{
    struct child child = NO_CHILD;
    int err = child_start(&child, options);
    while (!err && (err = child_wait(&child, waiting, NO_DEADLINE, false)) == -EINTR) {
        if (waiting->ended_by != SIGINT && waiting->ended_by != SIGQUIT) {
            child_signal(&child, waiting->ended_by);
        }
        err = 0;
    }
    int status = err ? STATUS_FAILED : child.status;
    child_end(&child);
    failed_to(err, "run %s", options->arguments[0]);
    return status;
}

/* Reads what is there; false at the end. */
static bool gather(int from, char *answer, size_t size, size_t *used)
{
    char dropped[4096];
    bool full = *used + 1 >= size;
    ssize_t n =
        full ? read(from, dropped, sizeof dropped) : read(from, answer + *used, size - 1 - *used);
    if (n > 0 && !full) {
        *used += (size_t)n;
        answer[*used] = '\0';
    }
    return n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN));
}

/* What was said of another process before its end is still heard. */
enum { SOON_MS = 200 };

int child_talk(const struct child_options *options, struct waiting *waiting, int64_t deadline,
               char *answer, size_t size, int *status)
{
    int says[2];
    size_t used = 0;
    answer[0] = '\0';
    if (pipe2(says, O_CLOEXEC) != 0) {
        return -errno;
    }
    struct child child;
    struct child_options with_pipe = *options;
    with_pipe.in = -1;
    with_pipe.out = with_pipe.err = says[1];
    with_pipe.own_group = true;
    with_pipe.death_signal = SIGKILL;
    int err = child_start(&child, &with_pipe);
    close(says[1]);
    fcntl(says[0], F_SETFL, O_NONBLOCK);
    int other = options->others_end;
    int64_t remind = options->still ? deadline_in(3000) : NO_DEADLINE;
    while (!err && !child_ended(&child)) {
        struct pollfd all[] = {{.fd = says[0], .events = POLLIN},
                               {.fd = child.pidfd, .events = POLLIN},
                               {.fd = other > 0 ? other : -1, .events = POLLIN}};
        err = wait_for(waiting, all, 3, deadline < remind ? deadline : remind, true);
        if (!err && all[2].revents) {
            int64_t soon = deadline_in(SOON_MS);
            deadline = soon < deadline ? soon : deadline;
            remind = NO_DEADLINE;
            other = 0;
        }
        if (err == -ETIMEDOUT && now_ms() < deadline) {
            info_message("%s", options->still);
            remind = NO_DEADLINE;
            err = 0;
            continue;
        }
        if (!err && all[0].revents && !gather(says[0], answer, size, &used)) {
            close(says[0]); /* it has closed its outputs, and runs on */
            says[0] = -1;
        }
    }
    /* What it has said last; a child of its own may hold the pipe open. */
    struct pollfd last = {.fd = says[0], .events = POLLIN};
    while (!err && says[0] >= 0 && poll(&last, 1, 0) > 0 && gather(says[0], answer, size, &used)) {
    }
    *status = child.status;
    child_end(&child);
    descriptor_close(says[0]);
    return err;
}
