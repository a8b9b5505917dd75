#include "jdtool/watch/keeper.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/guard.h"
#include "jdtool/record/joining.h"
#include "jdtool/watch/watch_private.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a JVM leaves on its disk while it is watched: four closed segments and the one that is
 * written. */
#define AGENT_OPTIONS "methods=on,lines=tree,segment=8M,keep=4"

/* And with --threads the newest 64 MB of a journal. */
#define THREADS_OPTION ",threads=on"

/* At the end: so many JVMs are asked at a time, and a silent one is not waited for any longer. */
#define LEAVING_MAX   32
#define LEAVE_ALL_MS  12000
#define KEEPER_END_MS 15000

struct keeper_order {
    pid_t jvm;
    int attaches;
};

/* A session that is held, for who has to leave it in the keeper's place. */
struct keeper_note {
    atomic_int jvm; /* 0: none */
    struct guarded guarded;
};

struct keeper_notes {
    struct keeper_note list[WATCHED_MAX];
};

struct kept {
    struct target target;
    struct joining joining;
    struct keeper_note *note;
};

/* In the keeper. It does not move: joinings point to targets. */
struct keeping {
    const struct watch_jvm_options *options;
    struct waiting waiting;
    int orders, says;
    int theirs; /* the watch's end of the orders */
    struct keeper_notes *notes;
    struct kept *list[WATCHED_MAX];
    uint32_t count;
};

/* ---- Words ---- */

static void forget_words(const struct keeping *keeping)
{
    (void)!ftruncate(keeping->says, 0);
    (void)lseek(keeping->says, 0, SEEK_SET);
}

/* ---- One JVM ---- */

static int attach_to(struct keeping *keeping, struct kept *kept, pid_t jvm)
{
    const struct watch_jvm_options *options = keeping->options;
    char word[16];
    snprintf(word, sizeof word, "%d", (int)jvm);
    if (target_find(&kept->target, word, &keeping->waiting) || ask_prepare(&kept->target)) {
        return -EIO;
    }
    const struct joining_options joining = {
        .agent_options = options->agent_options,
        .more = options->threads ? AGENT_OPTIONS THREADS_OPTION : AGENT_OPTIONS,
    };
    atomic_store(&kept->note->jvm, (int)jvm);
    int err = joining_start(&kept->joining, &kept->target, &keeping->waiting, &kept->note->guarded,
                            &joining);
    fetch_close(&kept->joining.fetch); /* who resolves opens the dump itself */
    return err;
}

static void let_go(struct kept *kept)
{
    (void)session_leave(&kept->joining.session);
    atomic_store(&kept->note->jvm, 0);
    target_close(&kept->target);
    free(kept);
}

static struct keeper_note *free_note(const struct keeping *keeping)
{
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        if (!atomic_load(&keeping->notes->list[i].jvm)) {
            return &keeping->notes->list[i];
        }
    }
    return NULL;
}

static void attach(struct keeping *keeping, pid_t jvm, struct keeper_answer *answer)
{
    struct keeper_note *note = free_note(keeping);
    struct kept *kept = note ? malloc(sizeof *kept) : NULL;
    *answer = (struct keeper_answer){.jvm = jvm, .failed = !kept};
    forget_words(keeping);
    if (kept) {
        *kept = (struct kept){.target = NO_TARGET, .joining = NO_JOINING, .note = note};
        answer->failed = attach_to(keeping, kept, jvm) != 0;
    }
    if (answer->failed) {
        watch_last_words(keeping->says, answer->why, sizeof answer->why);
    }
    if (answer->failed && kept) {
        let_go(kept);
    } else if (kept) {
        keeping->list[keeping->count++] = kept;
    }
}

/* A JVM that lives has to be asked, which may take its time. */
static pid_t leave_aside(struct kept *kept)
{
    bool lives = process_lives(&kept->target.process);
    pid_t child = lives ? fork() : -1;
    if (child == 0) {
        (void)session_leave(&kept->joining.session);
        atomic_store(&kept->note->jvm, 0);
        _exit(0);
    }
    if (child > 0) { /* which has the lease, too */
        kept->joining.session.leave = false;
        close(kept->joining.session.lease);
        kept->joining.session.lease = -1;
        staging_close(&kept->joining.session.staging);
        target_close(&kept->target);
        free(kept);
    } else {
        let_go(kept);
    }
    return child;
}

static void leave(struct keeping *keeping, pid_t jvm)
{
    for (uint32_t i = 0; i < keeping->count; i++) {
        if (keeping->list[i]->target.process.pid == jvm) {
            (void)leave_aside(keeping->list[i]);
            keeping->list[i] = keeping->list[--keeping->count];
            return;
        }
    }
}

/* ---- All of them ---- */

/* What has ended of those that leave. True: none is left. */
static bool reap(bool wait)
{
    pid_t pid;
    while ((pid = waitpid(-1, NULL, wait ? 0 : WNOHANG)) > 0) {
        if (wait) {
            return false;
        }
    }
    return pid < 0 && errno == ECHILD;
}

static void leave_all(struct keeping *keeping)
{
    int64_t deadline = deadline_in(LEAVE_ALL_MS);
    struct waiting patient = {.signals = -1};
    uint32_t leaving = 0;
    while (keeping->count > 0) {
        leaving += leave_aside(keeping->list[--keeping->count]) > 0;
        if (leaving >= LEAVING_MAX) {
            (void)reap(true);
            leaving--;
        }
    }
    while (!reap(false) && now_ms() < deadline) {
        (void)wait_ms(&patient, 10);
    }
}

/* What a keeper held that has died. */
static void leave_noted(const struct keeping *keeping)
{
    for (size_t i = 0; i < WATCHED_MAX; i++) {
        struct keeper_note *note = &keeping->notes->list[i];
        pid_t jvm = atomic_load(&note->jvm);
        struct target target;
        pid_t child = jvm ? fork() : -1;
        if (child == 0) {
            if (target_open(&target, jvm) == 0) {
                guard_leave_session(&note->guarded, &target);
            }
            atomic_store(&note->jvm, 0);
            _exit(0);
        }
    }
    while (!reap(true)) {
    }
}

static int keep(void *context)
{
    struct keeping *keeping = context;
    struct keeper_order order;
    prctl(PR_SET_NAME, "jdperf-keeper");
    setsid();
    signal(SIGPIPE, SIG_IGN);
    close(keeping->theirs); /* or its end would never be seen */
    if (waiting_start(&keeping->waiting)) {
        return 1;
    }
    leave_noted(keeping);
    for (;;) {
        struct pollfd come = {.fd = keeping->orders, .events = POLLIN};
        if (wait_for(&keeping->waiting, &come, 1, NO_DEADLINE, true) ||
            recv(keeping->orders, &order, sizeof order, 0) != (ssize_t)sizeof order) {
            break; /* the watch is no more */
        }
        (void)reap(false);
        if (order.attaches) {
            struct keeper_answer answer;
            attach(keeping, order.jvm, &answer);
            if (send(keeping->orders, &answer, sizeof answer, MSG_NOSIGNAL) < 0) {
                break;
            }
        } else {
            leave(keeping, order.jvm);
        }
    }
    leave_all(keeping);
    return 0;
}

/* ---- In the watch ---- */

static int start(struct keeper *keeper, const struct watch_jvm_options *options)
{
    int ends[2];
    struct keeping *keeping = calloc(1, sizeof *keeping);
    if (!keeping || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        int err = keeping ? -errno : -ENOMEM;
        free(keeping);
        return err;
    }
    keeper->orders = ends[0];
    keeper->says = memfd_create("watch-keeper", MFD_CLOEXEC);
    *keeping = (struct keeping){.options = options,
                                .orders = ends[1],
                                .theirs = ends[0],
                                .says = keeper->says,
                                .notes = keeper->notes};
    const struct child_options child = {
        .in = -1,
        .out = -1,
        .err = keeper->says,
        .death_signal = SIGTERM,
        .work = keep,
        .context = keeping,
    };
    int err = keeper->says < 0 ? -errno : child_start(&keeper->child, &child);
    free(keeping);
    close(ends[1]);
    return err;
}

int keeper_start(struct keeper *keeper, const struct watch_jvm_options *options)
{
    *keeper = NO_KEEPER;
    void *notes = mmap(NULL, sizeof *keeper->notes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    keeper->notes = notes == MAP_FAILED ? NULL : notes;
    int err = keeper->notes ? start(keeper, options) : -ENOMEM;
    if (err) {
        keeper_end(keeper);
    }
    return err;
}

static void end(struct keeper *keeper)
{
    struct waiting patient = {.signals = -1};
    descriptor_close(keeper->orders);
    if (keeper->child.pidfd >= 0) {
        (void)child_wait(&keeper->child, &patient, deadline_in(KEEPER_END_MS), false);
    }
    child_end(&keeper->child);
    descriptor_close(keeper->says);
    struct keeper_notes *notes = keeper->notes;
    *keeper = NO_KEEPER;
    keeper->notes = notes;
}

int keeper_replace(struct keeper *keeper, const struct watch_jvm_options *options)
{
    end(keeper);
    return keeper->notes ? start(keeper, options) : -ENOMEM;
}

static int tell(struct keeper *keeper, pid_t jvm, int attaches)
{
    const struct keeper_order order = {jvm, attaches};
    return keeper->orders >= 0 &&
                   send(keeper->orders, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) > 0
               ? 0
               : -EPIPE;
}

int keeper_attach(struct keeper *keeper, pid_t jvm)
{
    return tell(keeper, jvm, 1);
}

int keeper_leave(struct keeper *keeper, pid_t jvm)
{
    return tell(keeper, jvm, 0);
}

int keeper_hear(struct keeper *keeper, struct keeper_answer *answer)
{
    ssize_t n =
        keeper->orders >= 0 ? recv(keeper->orders, answer, sizeof *answer, MSG_DONTWAIT) : 0;
    if (n == (ssize_t)sizeof *answer) {
        answer->why[sizeof answer->why - 1] = '\0';
        return 1;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -EPIPE;
}

void keeper_end(struct keeper *keeper)
{
    end(keeper);
    if (keeper->notes) {
        munmap(keeper->notes, sizeof *keeper->notes);
    }
    keeper->notes = NULL;
}
