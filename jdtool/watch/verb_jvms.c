/* jdperf jvms: the JVMs of this machine. */
#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/processes.h"
#include "jdtool/base/text.h"
#include "jdtool/live/target.h"
#include "jdtool/live/verbs.h"
#include "jdtool/watch/labels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS    100 /* how long their processor time is watched */
#define CGROUP_MAX (64 << 10)

struct jvm_row {
    pid_t pid;
    uint64_t cpu_time; /* ns, when it was found; then of the look alone */
    bool has_cpu_time;
    char *name;
};

struct jvm_list {
    struct jvm_row *rows;
    uint32_t count, room;
};

static bool take(void *context, pid_t pid, const char *name)
{
    struct jvm_list *list = context;
    if (ARRAY_RESERVE(list->rows, list->count, list->room)) {
        return false;
    }
    struct jvm_row *row = &list->rows[list->count];
    *row = (struct jvm_row){.pid = pid, .name = strdup(name)};
    row->has_cpu_time = process_cpu_time(pid, &row->cpu_time);
    list->count += row->name != NULL;
    return row->name != NULL;
}

static int compare(const void *a, const void *b)
{
    const struct jvm_row *x = a, *y = b;
    return ORDER(y->cpu_time, x->cpu_time) ?: ORDER(x->pid, y->pid);
}

static void read_container(const struct live_process *process, char container[16])
{
    char unit[LABEL_VALUE_MAX];
    bool is_pod;
    size_t size;
    char *cgroup = process_read_all(process, "cgroup", CGROUP_MAX, &size);
    labels_from_cgroup(cgroup ? cgroup : "", unit, container, &is_pod);
    free(cgroup);
}

/* Why record -p would not get far, "yes" where it would. */
static const char *can_be_profiled(const struct target *target)
{
    char path[PATH_MAX];
    if (geteuid() != 0 && (geteuid() != target->uid || !target->same_files)) {
        return "with sudo";
    }
    if (target_agent(target, path)) {
        return "yes"; /* it needs no attaching */
    }
    struct process_halt halt;
    if (process_is_halted(&target->process, &halt)) {
        return halt.is_frozen ? "no: frozen" : "no: stopped";
    }
    if (process_has_argument(&target->process, "-XX:+DisableAttachMechanism")) {
        return "no: refuses attach";
    }
    return target_listens(target) ? "yes" : "no: starting";
}

static void print_row(const struct jvm_row *row, double seconds)
{
    struct target target = NO_TARGET;
    char java[16] = "?", container[16] = "", cpu[16] = "?";
    const char *user = "?", *profile = "with sudo";
    int err = target_open(&target, row->pid);
    if (err == -ESRCH || err == -ENOEXEC) {
        return; /* it has ended meanwhile */
    }
    if (err == 0) {
        user = target_user(target.uid);
        profile = can_be_profiled(&target);
        read_container(&target.process, container);
        if (target.java) {
            snprintf(java, sizeof java, "%d", target.java);
        }
    }
    if (row->has_cpu_time) {
        snprintf(cpu, sizeof cpu, "%.0f%%", (double)row->cpu_time / 1e7 / seconds);
    }
    printf("%8d  %-10.10s %4s %6s  %-12s  %-19s  ", (int)row->pid, user, java, cpu,
           *container ? container : "-", profile);
    text_print(stdout, row->name);
    putchar('\n');
    target_close(&target);
}

/* Processes called java that we may not look into: by what kills a guess, their name. Ours have
 * capabilities that we have not: their java has some (setcap). */
struct hidden {
    uint32_t count, ours;
};

static bool count_hidden(void *context, pid_t pid)
{
    struct hidden *hidden = context;
    struct stat status;
    struct live_process process;
    char text[64];
    if (process_open(pid, &process) == 0) {
        bool is = process_read(&process, "comm", text, sizeof text) > 0 &&
                  strcmp(text, "java\n") == 0 && process_read(&process, "maps", text, 2) < 0;
        hidden->count += is;
        hidden->ours += is && fstatat(process.directory, "", &status, AT_EMPTY_PATH) == 0 &&
                        status.st_uid == geteuid();
        process_close(&process);
    }
    return true;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    struct jvm_list list = {0};
    struct waiting waiting;
    int status = verb_options(verb, argc, argv, NULL, NULL);
    if (status) {
        return status;
    }
    if (waiting_start(&waiting)) {
        return STATUS_FAILED;
    }
    int64_t begin = now_ms();
    target_walk(take, &list);
    if (list.count > 0) {
        wait_ms(&waiting, LOOK_MS);
    }
    for (uint32_t i = 0; i < list.count; i++) {
        uint64_t before = list.rows[i].cpu_time, now = 0;
        list.rows[i].has_cpu_time &= process_cpu_time(list.rows[i].pid, &now);
        list.rows[i].cpu_time = list.rows[i].has_cpu_time && now > before ? now - before : 0;
    }
    double seconds = (double)(now_ms() - begin) / 1000;
    if (list.count > 0) {
        qsort(list.rows, list.count, sizeof *list.rows, compare);
        printf("%8s  %-10s %4s %6s  %-12s  %-19s  %s\n", "PID", "USER", "JDK", "CPU", "CONTAINER",
               "CAN BE PROFILED", "NAME");
    }
    for (uint32_t i = 0; i < list.count; i++) {
        print_row(&list.rows[i], seconds);
        free(list.rows[i].name);
    }
    free(list.rows);
    struct hidden hidden = {0};
    processes_walk(count_hidden, &hidden);
    if (hidden.count > 0) {
        info_message("%u java process%s not listed, for lack of rights; root sees all",
                     hidden.count, hidden.count == 1 ? " is" : "es are");
    }
    if (hidden.ours > 0) {
        info_message("  yours %s more capabilities than you (getcap shows those of a java), or "
                     "began as another user's",
                     hidden.ours == 1 ? "has" : "have");
    }
    if (hidden.count == 0 && list.count == 0) {
        info_message("no JVM runs here");
    }
    return waiting.ended_by ? 128 + waiting.ended_by : finish_output();
}

const struct verb live_jvms = {
    .name = "jvms",
    .words = VERB_HAS_NO_WORDS,
    .run = run,
    .help = "usage: jdperf jvms\n"
            "\n"
            "Lists the JVMs of this machine, the busiest first: process id, user, JDK, current\n"
            "CPU usage, container, whether jdperf record can profile it, and the main class or\n"
            "jar with its arguments. Instead of a process id you can also give jdperf a part of\n"
            "this name that no other JVM has (jdperf top NAME, jdperf record -p NAME).\n",
};
