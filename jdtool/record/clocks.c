#include "jdtool/record/clocks.h"

#include "jdtool/base/array.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/processes.h"
#include "jdtool/live/target.h"
#include "jdtool/record/machine.h"
#include "jdtool/score/processor_time.h"

#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MS = 100, LOOK_MS_MOST = 10000, PROCESSES_MAX = 4096 };

/* ---- One clock ---- */

/* Since when it runs, in ticks since the machine's start. 0: not known. */
static unsigned long long start_of(const struct live_process *process)
{
    char text[1024];
    ssize_t n = process_read(process, "stat", text, sizeof text);
    const char *start = n > 0 ? process_stat_field(text, PROCESS_STAT_START) : NULL;
    return start ? strtoull(start, NULL, 10) : 0;
}

static unsigned long long ticks_now(void)
{
    return clock_ns(CLOCK_BOOTTIME) / (NS_PER_SECOND / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/* Its clock goes by its number, which is its own as long as it is not reaped: a signal that is none
 * still reaches it then. */
static bool read_clock(struct jvm_clock *jvm)
{
    uint64_t ns;
    bool is = process_cpu_time(jvm->process.pid, &ns) &&
              syscall(SYS_pidfd_send_signal, jvm->process.pidfd, 0, NULL, 0) == 0;
    jvm->last = is ? ns : jvm->last;
    return is;
}

/* Which libjvm.so has the probes was guessed from the command, which may be a script. */
static void judge_probes(const struct stat *probed, struct jvm_clock *jvm)
{
    char path[PATH_MAX];
    struct stat status;
    struct target target;
    if (!probed->st_ino || jvm->is_judged || !jvm->is_jvm ||
        target_open(&target, jvm->process.pid) != 0) {
        return;
    }
    int file = target_libjvm(&target, path) ? target_open_file(&target, path) : -1;
    if (file >= 0 && fstat(file, &status) == 0) {
        jvm->is_judged = true;
        jvm->is_unprobed = status.st_ino != probed->st_ino || status.st_dev != probed->st_dev;
    }
    descriptor_close(file);
    target_close(&target);
}

static void look_at(const struct clocks *clocks, struct jvm_clock *jvm)
{
    if (jvm->has_ended) {
        return;
    }
    bool lives = process_lives(&jvm->process); /* asked first: what ends behind it is still read */
    jvm->is_exact = read_clock(jvm);
    jvm->has_ended = !lives || !jvm->is_exact;
    jvm->looked_at = now_ms();
    if (jvm->is_exact) {
        jvm->read_at = jvm->looked_at;
    }
    if (!jvm->has_ended) {
        judge_probes(&clocks->libjvm, jvm);
    }
}

/* What it may have had between the last look at its clock and the one that found it gone. */
static uint64_t missed(const struct jvm_clock *jvm)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    return jvm->is_exact
               ? 0
               : (uint64_t)(jvm->looked_at - jvm->read_at + 1) * 1000000 * (uint64_t)processors;
}

/* ---- Which there are ---- */

static struct jvm_clock *add(struct clocks *clocks, pid_t pid)
{
    struct jvm_clock jvm = {.process = NO_PROCESS, .since = now_ms(), .is_jvm = true};
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (clocks->jvms[i].process.pid == pid) {
            clocks->jvms[i].is_jvm = true;
            return NULL;
        }
    }
    if (clocks->count >= PROCESSES_MAX ||
        ARRAY_RESERVE(clocks->jvms, clocks->count, clocks->room) != 0) {
        return NULL;
    }
    if (process_open(pid, &jvm.process) != 0) {
        jvm.has_ended = true;
        jvm.process.pid = pid;
    }
    clocks->jvms[clocks->count] = jvm;
    return &clocks->jvms[clocks->count++];
}

void clocks_add(struct clocks *clocks, pid_t pid)
{
    struct jvm_clock *jvm = clocks->profile ? add(clocks, pid) : NULL;
    if (jvm) {
        look_at(clocks, jvm);
        jvm->begin = jvm->last;
    }
}

static bool add_running(void *clocks, pid_t pid, const char *name)
{
    (void)name;
    clocks_add(clocks, pid);
    return true;
}

/* It began under the recording's eyes: all of its time counts. One that ran before is another. */
void clocks_add_begun(struct clocks *clocks, pid_t pid)
{
    struct jvm_clock *jvm = clocks->profile ? add(clocks, pid) : NULL;
    if (jvm && !jvm->has_ended && start_of(&jvm->process) < clocks->start) {
        jvm->has_ended = true;
    }
}

static bool add_later(void *context, pid_t pid, const char *name)
{
    (void)name;
    clocks_add_begun(context, pid);
    return true;
}

/* A dump, which bears the number that its JVM has for itself, and that JVM by our number. */
struct search {
    const struct clocks *clocks;
    struct stat dump;
    pid_t inner, found;
};

static bool is_its_jvm(void *context, pid_t pid)
{
    struct search *search = context;
    struct live_process process;
    if (process_open(pid, &process) != 0) {
        return true;
    }
    if (process_status(&process, "NSpid", true, 10) == (unsigned long long)search->inner &&
        start_of(&process) >= search->clocks->start &&
        process_maps_inode(&process, search->dump.st_dev, search->dump.st_ino)) {
        search->found = pid;
    }
    process_close(&process);
    return !search->found;
}

static bool ran_before(const struct clocks *clocks, pid_t pid)
{
    struct live_process process;
    bool before = process_open(pid, &process) == 0 && start_of(&process) < clocks->start;
    process_close(&process);
    return before;
}

/* The JVM of that dump. What has not its number for us is in a PID namespace of its own. */
static void add_writer(struct clocks *clocks, const char *path)
{
    long inner = strtol(strrchr(path, '/') + sizeof "/jit-" - 1, NULL, 10);
    struct search search = {.clocks = clocks, .inner = (pid_t)inner, .found = 0};
    if (inner <= 0 || inner > INT_MAX || stat(path, &search.dump) != 0) {
        return;
    }
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (clocks->jvms[i].dump == search.dump.st_ino) {
            return;
        }
        if (clocks->jvms[i].process.pid == search.inner && !clocks->jvms[i].has_ended) {
            /* It may have begun before us: the command. */
            search.found = search.inner;
        }
    }
    if (!search.found && is_its_jvm(&search, search.inner)) {
        processes_walk(is_its_jvm, &search);
    }
    if (!search.found && ran_before(clocks, search.inner)) {
        return; /* that has another JVM's number; the dump's may map it in a moment */
    }
    pid_t pid = search.found ? search.found : search.inner; /* which has ended, then */
    clocks_add_begun(clocks, pid);
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (clocks->jvms[i].process.pid == pid) {
            clocks->jvms[i].dump = search.dump.st_ino;
        }
    }
}

/* JVMs that have begun tell so by their dump, and whatever is put into a directory changes its
 * time; but what is put in within the same tick of the clock, as it was. */
static void find_begun(struct clocks *clocks)
{
    struct words dumps;
    struct stat status;
    if (stat(clocks->profile, &status) == 0) {
        uint64_t changed =
            (uint64_t)status.st_mtim.tv_sec * NS_PER_SECOND + (uint64_t)status.st_mtim.tv_nsec;
        if (changed == clocks->listed) {
            return;
        }
        clocks->listed = clock_ns(CLOCK_REALTIME) - changed > NS_PER_SECOND ? changed : 0;
    }
    if (dump_list_read(&dumps, clocks->profile, clocks->profile) == 0) {
        for (size_t i = 0; i < dumps.count; i++) {
            add_writer(clocks, dumps.list[i]);
        }
    }
    words_free(&dumps);
}

/* ---- All of them ---- */

void clocks_start(struct clocks *clocks, const char *profile, pid_t command, bool of_machine)
{
    clocks->profile = profile;
    clocks->of_machine = of_machine;
    clocks->of_command = command != 0;
    clocks->start = ticks_now();
    clocks->begun = now_ms();
    if (command) { /* held back since it was made: nothing of its time is gone */
        int changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        clocks->watch = changes > 0 ? inotify_add_watch(changes, profile, IN_CREATE) : -1;
        if (clocks->watch >= 0) {
            clocks->changes = changes;
        } else {
            descriptor_close(changes);
        }
        struct jvm_clock *jvm = add(clocks, command);
        if (jvm) {
            jvm->is_jvm = false; /* as far as is known */
        }
    }
    if (of_machine) {
        target_walk(add_running, clocks);
    }
}

static void look(struct clocks *clocks)
{
    if (!clocks->profile) {
        return;
    }
    if (clocks->of_command) {
        find_begun(clocks);
    }
    for (uint32_t i = 0; i < clocks->count; i++) {
        look_at(clocks, &clocks->jvms[i]);
    }
}

/* Of a JVM that ends a thirtieth of what it has run may be missed, each look being a wake of a
 * processor. One that has just begun, and whose dump is not known, may be short. */
static int64_t next_look(const struct clocks *clocks)
{
    int64_t since = clocks->begun;
    for (uint32_t i = 0; i < clocks->count; i++) {
        const struct jvm_clock *jvm = &clocks->jvms[i];
        since = !jvm->has_ended && jvm->since > since ? jvm->since : since;
    }
    bool may_begin = clocks->of_command && (!clocks->changes || !clocks->listed);
    int64_t ms = may_begin ? 0 : (now_ms() - since) / 30;
    return deadline_in(ms < LOOK_MS ? LOOK_MS : ms > LOOK_MS_MOST ? LOOK_MS_MOST : ms);
}

/* Whether the directory has changed: who begins there is looked for a moment later. */
static bool take_changes(struct clocks *clocks, const struct pollfd *ours)
{
    char events[4096];
    bool has = ours->revents && read(clocks->changes, events, sizeof events) > 0;
    clocks->listed = has ? 0 : clocks->listed;
    return has;
}

int clocks_wait(struct clocks *clocks, struct waiting *waiting, struct pollfd *descriptors,
                unsigned count, int64_t deadline)
{
    struct pollfd *ours = &descriptors[count];
    int err = -ETIMEDOUT;
    while (err == -ETIMEDOUT && now_ms() < deadline) {
        int64_t next = clocks->profile ? next_look(clocks) : deadline;
        *ours = (struct pollfd){.fd = clocks->changes ? clocks->changes : -1, .events = POLLIN};
        err = wait_for(waiting, descriptors, count + 1, next < deadline ? next : deadline, true);
        if (err == -ETIMEDOUT) {
            look(clocks);
        } else if (!err && take_changes(clocks, ours)) {
            err = -ETIMEDOUT;
        }
    }
    return err;
}

void clocks_finish(struct clocks *clocks)
{
    char path[PATH_MAX + 32];
    if (!clocks->profile) {
        return;
    }
    if (clocks->changes) { /* its close waits 17 ms for the kernel to free a watch: begun now */
        (void)inotify_rm_watch(clocks->changes, clocks->watch);
    }
    look(clocks);
    if (clocks->of_machine) {
        target_walk(add_later, clocks);
        look(clocks);
    }
    struct processor_time *times = calloc(clocks->count + 1, sizeof *times);
    uint32_t count = 0;
    for (uint32_t i = 0; i < clocks->count && times; i++) {
        const struct jvm_clock *jvm = &clocks->jvms[i];
        if (jvm->is_jvm) {
            times[count++] = (struct processor_time){
                .pid = (uint32_t)jvm->process.pid,
                .is_known = jvm->read_at != 0,
                .ns = jvm->last - jvm->begin,
                .more = missed(jvm),
                .is_unprobed = jvm->is_unprobed,
            };
        }
    }
    snprintf(path, sizeof path, "%s/%s", clocks->profile, PROCESSOR_TIME_FILE);
    if (times) {
        (void)processor_times_write(path, times, count,
                                    clocks->left_out); /* told, and not known then */
    }
    free(times);
}

void clocks_free(struct clocks *clocks)
{
    for (uint32_t i = 0; i < clocks->count; i++) {
        process_close(&clocks->jvms[i].process);
    }
    free(clocks->jvms);
    if (clocks->changes) {
        close(clocks->changes);
    }
    *clocks = (struct clocks){0};
}
