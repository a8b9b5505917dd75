#include "jdtool/record/family.h"

#include "jdtool/base/message.h"
#include "jdtool/base/processes.h"
#include "jdtool/live/command.h"
#include "jdtool/live/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* When more numbers than that were given since the last look, it is cheaper to read /proc: threads
 * have most of them, and are not listed there. */
enum { NUMBERS_MAX = 32 };

/* A JVM that has loaded its agents has at least eight threads; these may have begun some. */
enum { THREADS_MIN = 7 };

/* The last field of /proc/loadavg: the number given last, to a process or a thread (proc(5)). */
static pid_t newest(void)
{
    char text[128];
    const char *last = kernel_read("loadavg", text, sizeof text) ? strrchr(text, ' ') : NULL;
    return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

static bool is_in(const struct family *family, pid_t pid)
{
    for (uint32_t i = 0; i < family->count; i++) {
        if (family->list[i].process.pid == pid) {
            return true;
        }
    }
    return false;
}

static void add(struct family *family, pid_t pid)
{
    struct relative relative = {.process = NO_PROCESS};
    if (family->count < FAMILY_MAX && process_open(pid, &relative.process) == 0) {
        family->list[family->count++] = relative;
    }
}

/* A child of one that is in it. Its parent lives, or is another's by its number's new process: that
 * one would have begun later than its child. */
static bool take(void *context, pid_t pid)
{
    struct family *family = context;
    char name[32];
    char text[1024];
    snprintf(name, sizeof name, "%d/stat", (int)pid);
    const char *parent =
        kernel_read(name, text, sizeof text) ? process_stat_field(text, PROCESS_STAT_PARENT) : NULL;
    if (parent && is_in(family, (pid_t)strtol(parent, NULL, 10)) && !is_in(family, pid)) {
        add(family, pid);
    }
    return true;
}

struct numbers {
    struct family *family;
    pid_t after, until;
};

static bool take_one_of(void *context, pid_t pid)
{
    const struct numbers *numbers = context;
    return pid <= numbers->after || pid > numbers->until || take(numbers->family, pid);
}

static void remove_ended(struct family *family)
{
    for (uint32_t i = 0; i < family->count;) {
        if (process_lives(&family->list[i].process)) {
            i++;
        } else {
            process_close(&family->list[i].process);
            family->list[i] = family->list[--family->count];
        }
    }
}

void family_start(struct family *family, pid_t command)
{
    family->before = family->last = newest();
    add(family, command);
}

void family_look(struct family *family)
{
    remove_ended(family);
    pid_t now = newest();
    /* From the look before the last: a number is given before its process can be seen. */
    if (now < family->before) { /* they have begun anew */
        processes_walk(take, family);
    } else if (now - family->before > NUMBERS_MAX) {
        struct numbers numbers = {family, family->before, now};
        processes_walk(take_one_of, &numbers);
    } else {
        for (pid_t pid = family->before + 1; pid <= now; pid++) {
            (void)take(family, pid);
        }
    }
    family->before = family->last;
    family->last = now;
}

bool family_is_quiet(const struct family *family)
{
    return family->before == family->last;
}

/* Of a program that has more rights than we have the kernel shows nothing but its name, and takes
 * no samples for us (ptrace(2), "Ptrace access mode checking"). */
static void tell_hidden(const struct live_process *process)
{
    char name[64];
    ssize_t n = process_read(process, "comm", name, sizeof name);
    name[n > 0 ? strcspn(name, "\n") : 0] = '\0';
    if (geteuid() != 0 && strcmp(name, "java") == 0) {
        info_message("process %d (java) is not sampled: the kernel denies this user access to it, "
                     "because it has more capabilities (getcap shows those of a java), or because "
                     "its file cannot be read. Run jdperf as root",
                     (int)process->pid);
    }
}

/* Whether it was judged before, as the program that it is now, or cannot be yet. */
static bool was_judged(struct relative *relative)
{
    struct stat status;
    if (fstatat(relative->process.directory, "exe", &status, 0) != 0) {
        if (errno == EACCES && relative->inode != (ino_t)-1) {
            tell_hidden(&relative->process);
            relative->inode = (ino_t)-1;
        }
        return true;
    }
    if (status.st_ino == relative->inode && status.st_dev == relative->device) {
        return true;
    }
    if ((process_status(&relative->process, "SigCgt", false, 16) & 4) == 0) {
        return true;
    }
    /* Agents are loaded by the JVM's second thread when SIGQUIT is caught already; that of the VM,
     * those of the collector, the compilers and of references follow (Threads::create_vm). What a
     * JVM has forked has one, until it is another program. */
    if (process_status(&relative->process, "Threads", false, 10) < THREADS_MIN) {
        return true;
    }
    relative->inode = status.st_ino;
    relative->device = status.st_dev;
    return false;
}

bool family_next(struct family *family, struct target *target)
{
    char path[PATH_MAX];
    for (uint32_t i = 0; i < family->count; i++) {
        struct relative *relative = &family->list[i];
        if (was_judged(relative) || target_open(target, relative->process.pid) != 0) {
            continue;
        }
        if (process_lives(&relative->process) && !target_dump(target, path) &&
            target_listens(target) && !command_writes_archive(&target->process)) {
            return true;
        }
        target_close(target);
    }
    return false;
}

void family_free(struct family *family)
{
    for (uint32_t i = 0; i < family->count; i++) {
        process_close(&family->list[i].process);
    }
    family->count = 0;
}
