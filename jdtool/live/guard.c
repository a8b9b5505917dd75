#include "jdtool/live/guard.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/live/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

void guard_leave_session(struct guarded *guarded, const struct target *target)
{
    struct waiting waiting = {.signals = -1};
    struct live_session session;
    struct guarded_session *note = &guarded->session;
    enum guarded_kind kind = atomic_load(&note->kind);
    if (kind == GUARD_NOTHING) {
        return;
    }
    session_init(&session, target, &waiting, NULL, "");
    memcpy(session.agent, note->agent, sizeof session.agent);
    session_adopt(&session, note->staging, note->leased, kind == GUARD_SESSION);
    (void)session_leave(&session);
}

/* ---- In the guardian ---- */

static void watch(int theirs, struct guarded *shared, const struct target *target)
{
    char byte;
    prctl(PR_SET_NAME, "jdperf-guardian");
    while (read(theirs, &byte, 1) < 0 && errno == EINTR) {
    }
    if (!atomic_load(&shared->done)) {
        if (target) {
            guard_leave_session(shared, target);
        }
        profile_undo(&shared->profile);
    }
    if (atomic_load(&shared->has_probes)) {
        probes_remove(shared->probes); /* who has opened them ends by itself, and holds them */
    }
    _exit(0);
}

/* ---- In us ---- */

/* Descriptors of the terminal or a pipe would keep whoever reads them from seeing our end. */
static void let_go_of_streams(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3 && null >= 0; i++) {
        dup2(null, i);
    }
}

/* Those of other JVMs' guardians among what is open would keep these from seeing our end, and what
 * is removed would stay on the disk. */
static void let_go_of_descriptors(int theirs, const struct target *target, int directory)
{
    const int keep[] = {theirs, directory, target ? target->process.pidfd : -1,
                        target ? target->process.directory : -1, target ? target->root : -1};
    descriptors_close_but(keep, sizeof keep / sizeof *keep);
}

int guard_start(struct guardian *guardian, const struct target *target, int directory)
{
    int ends[2] = {-1, -1};
    *guardian = (struct guardian){.ours = -1, .child = NO_CHILD};
    void *memory = mmap(NULL, sizeof(struct guarded), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int err = memory == MAP_FAILED || pipe2(ends, O_CLOEXEC) != 0 ? -errno : 0;
    if (!err) {
        guardian->shared = memory;
        guardian->child.pid = fork();
        err = guardian->child.pid < 0 ? -errno : 0;
    }
    if (!err && guardian->child.pid == 0) {
        setsid();
        close(ends[1]);
        let_go_of_streams();
        let_go_of_descriptors(ends[0], target, directory);
        watch(ends[0], memory, target);
    }
    descriptor_close(ends[0]);
    if (err) {
        failed_to(err, "start a guardian");
        descriptor_close(ends[1]);
        return err;
    }
    guardian->ours = ends[1];
    guardian->child.pidfd = (int)syscall(SYS_pidfd_open, guardian->child.pid, 0);
    return 0;
}

void guard_release(struct guardian *guardian)
{
    if (!guardian->shared) {
        return;
    }
    atomic_store(&guardian->shared->done, true);
    if (!atomic_load(&guardian->shared->has_probes)) {
        child_signal(&guardian->child, SIGKILL);
    }
}

void guard_end(struct guardian *guardian)
{
    if (!guardian->shared) {
        return;
    }
    guard_release(guardian);
    close(guardian->ours);
    if (!atomic_load(&guardian->shared->has_probes)) {
        child_end(&guardian->child);
    } else if (child_ended(&guardian->child)) {
        probes_remove(guardian->shared->probes); /* somebody has killed it */
        child_end(&guardian->child);
    } else {
        close(guardian->child.pidfd); /* it goes on by itself */
    }
    munmap(guardian->shared, sizeof *guardian->shared);
    guardian->shared = NULL;
}
