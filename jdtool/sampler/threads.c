#include "jdtool/sampler/threads.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/processes.h"
#include "jdtool/sampler/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(const struct perf_event_attr *attr, pid_t thread, int processor)
{
    int fd = (int)syscall(SYS_perf_event_open, attr, thread, processor, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

bool threads_may_be_sampled(bool in_kernel)
{
    const struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .exclude_kernel = !in_kernel,
        .exclude_hv = 1,
        .disabled = 1,
    };
    int fd = open_event(&attr, 0, -1);
    descriptor_close(fd);
    return fd >= 0;
}

/* Twice a processor for each thread are more than a shell usually gives. */
static void take_all_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int add_thread(struct threads *threads, pid_t thread, int processor,
                      const struct perf_event_attr *attr, int output)
{
    int fd = open_event(attr, thread, processor);
    if (fd == -ESRCH) {
        return 0;
    }
    int err =
        fd < 0 ? fd
        : array_reserve(&threads->events, threads->count, &threads->room, sizeof *threads->events)
            ? -ENOMEM
        : ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, output) ? -errno
                                                       : 0;
    if (err) {
        descriptor_close(fd);
        return err;
    }
    threads->events[threads->count++] = fd;
    return 0;
}

int threads_add(struct threads *threads, pid_t process, int processor,
                const struct perf_event_attr *attr, int output)
{
    int err = 0;
    if (!threads->count) {
        take_all_descriptors();
    }
    DIR *list = process_threads_open(process);
    for (pid_t thread; !err && (thread = process_next(list));) {
        err = add_thread(threads, thread, processor, attr, output);
    }
    directory_close(list);
    return err;
}

uint64_t threads_lost(const struct threads *threads)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < threads->count; i++) {
        lost += ring_lost(threads->events[i]);
    }
    return lost;
}

void threads_disable(const struct threads *threads)
{
    for (uint32_t i = 0; i < threads->count; i++) {
        (void)ioctl(threads->events[i], PERF_EVENT_IOC_DISABLE, 0);
    }
}

void threads_free(struct threads *threads)
{
    for (uint32_t i = 0; i < threads->count; i++) {
        close(threads->events[i]);
    }
    free(threads->events);
    *threads = (struct threads){0};
}
