#include "jdtool/record/perf_run.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/kernel.h"
#include "jdtool/sampler/counter.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

const char *perf_program(void)
{
    const char *program = getenv("PERF");
    return program && *program ? program : "perf";
}

int perf_check(void)
{
    if (program_exists(perf_program())) {
        return 0;
    }
    error_message("failed to find perf: apt-get install linux-perf (Debian), linux-tools-generic "
                  "(Ubuntu) or perf (Fedora, RHEL, SUSE)");
    return -ENOENT;
}

/* Whether perf gets from us, or perf's file gives whoever runs it a capability that opens the
 * kernel to it (perfmon_capable()), as setcap writes it. */
static bool has_perfmon(void)
{
    char path[PATH_MAX];
    struct vfs_ns_cap_data data = {0};
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_PERFMON, 0, 0) == 1) {
        return true;
    }
    if (!program_find(perf_program(), path) ||
        getxattr(path, "security.capability", &data, sizeof data) < (ssize_t)XATTR_CAPS_SZ_2) {
        return false;
    }
    uint64_t permitted = le32toh(data.data[0].permitted) | (uint64_t)le32toh(data.data[1].permitted)
                                                               << 32;
    return permitted & (UINT64_C(1) << CAP_SYS_ADMIN | UINT64_C(1) << CAP_PERFMON);
}

bool perf_sees_kernel(void)
{
    return geteuid() == 0 || kernel_number("perf_event_paranoid", 0) <= 1 || has_perfmon();
}

unsigned perf_allowed_frequency(unsigned wanted)
{
    long most = kernel_number("perf_event_max_sample_rate", wanted);
    return most > 0 && most < (long)wanted ? (unsigned)most : wanted;
}

/* ---- The event ---- */

/* What the kernel says to an event that would count in our own code alone. 0 or an errno. */
static int refusal(struct perf_event_attr attr)
{
    attr.size = sizeof attr;
    attr.disabled = attr.exclude_kernel = attr.exclude_hv = 1;
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    int err = fd < 0 ? errno : 0;
    descriptor_close(fd);
    return err;
}

/* It says ENOENT where it has no counter, also to those whom it would refuse one. */
bool perf_counts_cycles(void)
{
    int err = refusal(
        (struct perf_event_attr){.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_CPU_CYCLES});
    return err != ENOENT && err != EOPNOTSUPP && err != ENODEV;
}

void perf_add_build_ids(struct perf_run *run)
{
    if (refusal((struct perf_event_attr){
            .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .build_id = 1}) != EINVAL) {
        WORDS_ADD(&run->arguments, "--buildid-mmap");
    }
}

char *perf_choose_event(const char *event)
{
    const char *wanted = event ? event : "cycles";
    struct counter counter;
    char *chosen = NULL;
    (void)counter_parse(wanted, &counter); /* with modifiers that only perf has it is cycles, too */
    if (counter_is_cycles(&counter) && !perf_counts_cycles()) {
        if (asprintf(&chosen, "cpu-clock%s", strchrnul(wanted, ':')) < 0) {
            return NULL;
        }
        info_message("this machine has no hardware counter for %s: sampling the timer %s instead",
                     wanted, chosen);
    } else {
        chosen = strdup(wanted);
    }
    return chosen;
}

size_t perf_buffer_bytes(const char *buffer)
{
    size_t digits = buffer ? strspn(buffer, "0123456789") : 0;
    unsigned long number = digits ? strtoul(buffer, NULL, 10) : 0;
    switch (digits ? buffer[digits] : 'B') {
    case 'B':
        return number;
    case 'K':
        return number << 10;
    case 'M':
        return number << 20;
    case 'G':
        return number << 30;
    default:
        return number * (size_t)sysconf(_SC_PAGESIZE);
    }
}

void tell_of_no_kernel(void)
{
    info_message("only root may sample the kernel here: the profile has no kernel frames "
                 "(kernel.perf_event_paranoid)");
}

bool perf_leaves_out(char *const *options)
{
    static const char *const prefixes[] = {"-C", "--cpu=", "-G", "--cgroup=", "-u", "--uid="};
    for (; *options; options++) {
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            if (strncmp(*options, prefixes[i], strlen(prefixes[i])) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* ---- Running ---- */

int perf_start(struct perf_run *run, int out)
{
    int control[2] = {-1, -1};
    int ack[2] = {-1, -1};
    run->says = memfd_create("perf", MFD_CLOEXEC);
    int err =
        run->says < 0 || pipe2(control, O_CLOEXEC) != 0 || pipe2(ack, O_CLOEXEC) != 0 ? -errno : 0;
    if (!err) {
        char text[64];
        snprintf(text, sizeof text, "fd:%d,%d", control[0], ack[1]);
        WORDS_ADD(&run->arguments, "--control", text);
        err = run->arguments.failed ? -ENOMEM : 0;
    }
    if (!err) {
        const int keep[] = {control[0], ack[1]};
        run->child_control = control[0];
        run->child_ack = ack[1];
        struct child_options options = {
            .arguments = run->arguments.list,
            .in = -1,
            .out = out,
            .err = run->says,
            .keep = keep,
            .keep_count = 2,
            .own_group = true, /* Ctrl-C is for us, who then end it */
            .work = run->work,
            .context = run->context,
            .death_signal = SIGINT,
        };
        err = child_start(&run->child, &options);
    }
    descriptor_close(control[0]);
    descriptor_close(ack[1]);
    run->control = control[1];
    run->ack = ack[0];
    return failed_to(err, "start perf");
}

/* What perf answers, or a byte of our own work: 0; -ECHILD: it has ended, or as wait_for. */
static int hear(const struct perf_run *run, struct waiting *waiting, int64_t deadline,
                bool until_ended)
{
    char answer[64];
    struct pollfd both[] = {{.fd = run->ack, .events = POLLIN},
                            {.fd = run->child.pidfd, .events = POLLIN}};
    int err = wait_for(waiting, both, 2, deadline, until_ended);
    bool heard = !err && (both[0].revents & POLLIN) &&
                 read(run->ack, answer, run->work ? 1 : sizeof answer) > 0;
    return err ? err : heard ? 0 : -ECHILD;
}

int perf_wait_until_it_samples(struct perf_run *run, struct waiting *waiting)
{
    return write(run->control, "ping\n", 5) == 5 ? hear(run, waiting, NO_DEADLINE, true) : -ECHILD;
}

void perf_stop_sampling(struct perf_run *run, struct waiting *waiting)
{
    if (run->child.pidfd < 0) {
        return;
    }
    if (run->work) {
        child_signal(&run->child, SIGINT);
    } else if (write(run->control, "disable\n", 8) != 8) {
        return;
    }
    (void)hear(run, waiting, deadline_in(5000), false); /* it may wait for who reads its pipe */
}

void perf_end(struct perf_run *run, struct waiting *waiting)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
    if (run->work && run->child.pidfd >= 0 && !child_ended(&run->child)) {
        child_signal(&run->child, SIGINT);
        /* Whether it has written all that it has: closing what it has open takes it longer. */
        run->closes = hear(run, waiting, deadline_in(30000), false) == 0;
    }
    if (run->closes) {
        return;
    }
    for (size_t i = 0; i < 3 && run->child.pidfd >= 0 && !child_ended(&run->child); i++) {
        child_signal(&run->child, signals[i]);
        /* It has files to look at, and may have a slow disk or reader. */
        (void)child_wait(&run->child, waiting, i == 2 ? NO_DEADLINE : deadline_in(30000), false);
    }
}

/* ---- What it says ---- */

char *perf_words(int says)
{
    enum { LIMIT = 256 * 1024 };
    struct stat status;
    if (says < 0 || fstat(says, &status) != 0) {
        return NULL;
    }
    size_t size = status.st_size > LIMIT ? LIMIT : (size_t)status.st_size;
    char *words = malloc(size + 1);
    ssize_t n = words ? pread(says, words, size, 0) : 0;
    if (words) {
        words[n > 0 ? n : 0] = '\0';
    }
    return words;
}

static void tell_lines(const char *words, const char *prefix, unsigned most, bool all)
{
    size_t length;
    for (const char *line; most > 0 && (line = text_line(&words, &length));) {
        bool usual = strncmp(line, "[ perf record: Woken up", 23) == 0 ||
                     strncmp(line, "[ perf record: Captured", 23) == 0 ||
                     strncmp(line, "Events disabled", 15) == 0;
        if (length > 0 && (all || !usual)) {
            int shown = (int)(length > 500 ? 500 : length);
            if (strncmp(line, "jdperf: ", 8) == 0) { /* a sampler of ours */
                info_message("%.*s", shown - 8, line + 8);
            } else {
                detail_message(prefix, "%.*s", shown, line);
            }
            most--;
        }
    }
}

void perf_tell_words(const struct perf_run *run)
{
    char *words = perf_words(run->says);
    if (words && strstr(words, "No space left")) {
        info_message("the disk is full: the recording ended early");
    }
    if (words) {
        tell_lines(words, "perf: ", 8, false);
    }
    free(words);
}

static int explain(const char *words, const char *event)
{
    if (strstr(words, "event syntax error")) {
        error_message("perf has no event '%s' (perf list shows all)", event);
        return STATUS_USAGE;
    }
    if (strstr(words, "Usage: perf record") && strstr(words, "Error:")) {
        error_message("perf does not accept these options:");
        tell_lines(words, "", 3, true);
        return STATUS_USAGE;
    }
    if (strstr(words, "ermission") || strstr(words, "not permitted") || strstr(words, "paranoid") ||
        strstr(words, "ccess")) {
        if (geteuid() != 0 && kernel_number("perf_event_paranoid", 0) > 2) {
            error_message("perf cannot sample: kernel.perf_event_paranoid is %ld, and you are not "
                          "root",
                          kernel_number("perf_event_paranoid", 0));
            info_message("  run jdperf as root, or as root allow it until the next boot: sysctl "
                         "kernel.perf_event_paranoid=1");
        } else if (kernel_filters()) {
            error_message(
                "perf cannot sample: a seccomp filter forbids perf_event_open, as in containers");
            info_message("  record from the host with jdperf record PID, or start the container "
                         "with --cap-add PERFMON and a seccomp profile that allows "
                         "perf_event_open");
        } else {
            error_message("perf cannot sample: the kernel refused");
            info_message("  run jdperf as root, or give perf the right: setcap "
                         "cap_perfmon,cap_sys_ptrace+ep $(command -v perf)");
        }
    }
    error_message("perf said:");
    tell_lines(words, "", 12, true);
    return STATUS_FAILED;
}

int perf_explain_failure(const struct perf_run *run, const char *event)
{
    char *words = perf_words(run->says);
    int status = STATUS_FAILED;
    if (words && *words) {
        status = explain(words, event);
    } else {
        int signal = child_killed_by(run->child.status);
        error_message(signal ? "signal %d ended perf, which said nothing"
                             : "perf ended with status %d, and said nothing",
                      signal ? signal : run->child.status);
    }
    free(words);
    return status;
}

void perf_free(struct perf_run *run)
{
    if (!run->closes) {
        child_end(&run->child);
    }
    const int descriptors[] = {run->says, run->control, run->ack, run->child.pidfd};
    for (size_t i = 0; i < 4; i++) {
        descriptor_close(descriptors[i]);
    }
    words_free(&run->arguments);
    *run = NO_PERF;
}
