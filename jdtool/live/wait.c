#include "jdtool/live/wait.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define DESCRIPTORS_MAX 1040 /* a JVM each of a recording of many, and what else there is */

int64_t now_ms(void)
{
    return (int64_t)(clock_ns(CLOCK_MONOTONIC) / (NS_PER_SECOND / 1000));
}

int64_t deadline_in(int64_t ms)
{
    return now_ms() + ms;
}

int waiting_start(struct waiting *waiting)
{
    sigset_t ours;
    sigemptyset(&ours);
    sigaddset(&ours, SIGINT);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGHUP);
    sigaddset(&ours, SIGQUIT);
    *waiting = (struct waiting){.signals = -1};
    int err = sigprocmask(SIG_BLOCK, &ours, NULL) != 0 ? -errno : 0;
    /* Ignored (nohup) they stay so: an ignored signal is not even queued. */
    waiting->signals = err ? -1 : signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);
    if (waiting->signals < 0) {
        err = err ? err : -errno;
        return failed_to(err, "receive signals");
    }
    /* A broken pipe is an error of a write; a terminal may be told of from the background. */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    return 0;
}

static bool take_signals(struct waiting *waiting)
{
    struct signalfd_siginfo info;
    bool any = false;
    while (read(waiting->signals, &info, sizeof info) == sizeof info) {
        waiting->ended_by = waiting->ended_by ? waiting->ended_by : (int)info.ssi_signo;
        waiting->count++;
        any = true;
    }
    return any;
}

int wait_for(struct waiting *waiting, struct pollfd *descriptors, unsigned count, int64_t deadline,
             bool until_ended)
{
    struct pollfd all[DESCRIPTORS_MAX + 1];
    if (count > DESCRIPTORS_MAX) {
        return -EINVAL;
    }
    for (unsigned i = 0; i < count; i++) {
        all[i] = descriptors[i];
    }
    all[count] = (struct pollfd){.fd = waiting->signals, .events = POLLIN};
    for (;;) {
        if (until_ended && waiting->ended_by) {
            return -EINTR;
        }
        int64_t left = deadline == NO_DEADLINE ? -1 : deadline - now_ms();
        if (deadline != NO_DEADLINE && left < 0) {
            left = 0;
        }
        int n = poll(all, count + 1, left > INT32_MAX ? INT32_MAX : (int)left);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0 && all[count].revents && take_signals(waiting)) {
            return -EINTR;
        }
        for (unsigned i = 0; i < count; i++) {
            descriptors[i].revents = all[i].revents;
            if (n > 0 && all[i].fd >= 0 && all[i].revents) {
                return 0;
            }
        }
        if (n == 0 && deadline != NO_DEADLINE && now_ms() >= deadline) {
            return -ETIMEDOUT;
        }
    }
}

int wait_ms(struct waiting *waiting, int64_t ms)
{
    int err = wait_for(waiting, NULL, 0, deadline_in(ms), true);
    return err == -ETIMEDOUT ? 0 : err;
}
