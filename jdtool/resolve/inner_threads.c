#include "jdtool/resolve/inner_threads.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define NOT_ASKED UINT32_MAX

struct inner_thread {
    uint64_t tid;
    uint32_t number;  /* of whom the next one is; NOT_ASKED */
    uint32_t inner;   /* 0: it had ended when it was asked for */
    uint32_t noticed; /* of who had the tid when that was told last; 0: nobody had any more */
    uint64_t noticed_start;
};

void inner_threads_init(struct inner_threads *threads, uint32_t pid, uint32_t inner_pid)
{
    *threads = (struct inner_threads){
        .list = NUMBERED(struct inner_thread), .pid = pid, .inner_pid = inner_pid};
}

void inner_threads_free(struct inner_threads *threads)
{
    numbered_free(&threads->list);
}

/* The first and the last of the numbers behind a key: from the outermost namespace that this /proc
 * shows to the innermost one. False: there are none. */
static bool outer_and_inner(const char *status, const char *key, uint32_t *outer, uint32_t *inner)
{
    const char *at = strstr(status, key);
    const char *end = at ? strchr(at + 1, '\n') : NULL;
    bool has_one = false;
    for (at = at ? at + strlen(key) : NULL; at && end; has_one = true) {
        char *behind;
        unsigned long value = strtoul(at, &behind, 10);
        if (behind == at || behind > end) {
            break;
        }
        *outer = has_one ? *outer : (uint32_t)value;
        *inner = (uint32_t)value;
        at = behind;
    }
    return has_one;
}

/* When a thread began, on CLOCK_MONOTONIC and at most a clock tick too early; UINT64_MAX: that
 * cannot be told. */
static uint64_t start_of(int directory)
{
    char stat[1024];
    const char *at = descriptor_text(directory, "stat", stat, sizeof stat) > 0
                         ? process_stat_field(stat, PROCESS_STAT_START)
                         : NULL;
    if (!at) {
        return UINT64_MAX;
    }
    uint64_t start = strtoull(at, NULL, 10) * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
    uint64_t monotonic = clock_ns(CLOCK_MONOTONIC); /* first: the difference is never negative */
    uint64_t asleep = clock_ns(CLOCK_BOOTTIME) - monotonic;
    return start > asleep ? start - asleep : 0;
}

static void tell_gone(struct inner_threads *threads)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%u", threads->pid);
    if (!threads->told && access(path, F_OK) != 0) {
        threads->told = true;
        warning_message("process %u ran in a container and has ended: the names of threads that "
                        "were not looked up before are unknown",
                        threads->pid);
    }
}

/* Asks /proc for a thread's own number and when it began; 0: it has ended. */
static uint32_t ask(const struct inner_threads *threads, uint32_t tid, uint64_t *start)
{
    char path[64];
    char status[8192];
    uint32_t pids[2];
    uint32_t tids[2];
    snprintf(path, sizeof path, "/proc/%u/task/%u", threads->pid, tid);
    /* Held, so that all that is read is of one thread. */
    int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return 0;
    }
    bool found = descriptor_text(directory, "status", status, sizeof status) > 0 &&
                 outer_and_inner(status, "\nNStgid:", &pids[0], &pids[1]) &&
                 outer_and_inner(status, "\nNSpid:", &tids[0], &tids[1]) &&
                 pids[0] == threads->pid && pids[1] == threads->inner_pid && tids[0] == tid;
    *start = found ? start_of(directory) : 0;
    (void)close(directory);
    return found ? tids[1] : 0;
}

int inner_threads_notice(struct inner_threads *threads, uint32_t tid)
{
    bool is_new;
    struct inner_thread *thread = numbered_get(&threads->list, tid, &is_new);
    if (!thread) {
        return -ENOMEM;
    }
    thread->number = is_new ? NOT_ASKED : thread->number;
    thread->noticed = ask(threads, tid, &thread->noticed_start);
    return 0;
}

int inner_threads_tid(struct inner_threads *threads, uint32_t tid, uint32_t number, uint64_t time,
                      uint32_t *out)
{
    bool is_new;
    struct inner_thread *thread = numbered_get(&threads->list, tid, &is_new);
    if (!thread) {
        return -ENOMEM;
    }
    if (is_new || thread->number != number) {
        uint64_t start = 0;
        uint32_t inner = ask(threads, tid, &start);
        if (!inner) {
            inner = thread->noticed;
            start = thread->noticed_start;
        }
        thread->number = number;
        thread->inner = start <= time ? inner : 0;
        if (!inner) {
            tell_gone(threads);
        }
    }
    *out = thread->inner;
    return 0;
}
