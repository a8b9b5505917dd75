/* What recording needs of this machine. */
#include "jdtool/base/descriptor.h"
#include "jdtool/doctor/doctor.h"
#include "jdtool/live/child.h"
#include "jdtool/live/kernel.h"
#include "jdtool/live/leftovers.h"
#include "jdtool/live/target.h"
#include "jdtool/live/verbs.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/sampler/sampler.h"
#include "jdtool/walk/program.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* Runs perf; what it says is in `answer`. Its exit status, or -1: it could not be run. */
static int run_perf(const struct doctor *doctor, char *const *arguments, char *answer, size_t size)
{
    struct child_options options = {.arguments = arguments};
    int status = -1;
    *answer = '\0';
    return child_talk(&options, doctor->waiting, deadline_in(20000), answer, size, &status)
               ? -1
               : status;
}

static bool has_perf(void)
{
    return program_exists(perf_program());
}

static void check_perf(struct doctor *doctor)
{
    char *const arguments[] = {(char *)perf_program(), "--version", NULL};
    char answer[512];
    if (!has_perf()) {
        doctor_poor(doctor,
                    "apt-get install linux-perf (Ubuntu: linux-tools-generic; Fedora, RHEL, SUSE: "
                    "perf)",
                    "not installed: only cycles and the clock can be sampled, and no profile be "
                    "shown by perf");
        return;
    }
    (void)run_perf(doctor, arguments, answer, sizeof answer);
    doctor_tell_perf(doctor, answer);
}

/* As run_perf, of a short recording. For events of BPF programs perf would also wait up to a second
 * at the end. */
static int try_recording(const struct doctor *doctor, char *answer, size_t size)
{
    char *arguments[] = {(char *)perf_program(),
                         "record",
                         PERF_OF_TASKS,
                         "-BN",
                         "-e",
                         "cpu-clock",
                         "-o",
                         "/dev/null",
                         "--",
                         "true",
                         NULL};
    return run_perf(doctor, arguments, answer, size);
}

/* Where only perf might sample, which may have capabilities of its own. */
static void check_sampling_by_perf(struct doctor *doctor, const char *remedy)
{
    char answer[4096] = "not installed";
    long paranoid = kernel_number("perf_event_paranoid", 0);
    if (has_perf() && try_recording(doctor, answer, sizeof answer) == 0) {
        doctor_poor(doctor, remedy,
                    "allowed for perf alone: threads that live for a few milliseconds have too few "
                    "samples%s",
                    perf_sees_kernel() ? "" : ", and the kernel has none");
    } else if (geteuid() != 0 && paranoid > 2) {
        doctor_bad(doctor, remedy, "kernel.perf_event_paranoid is %ld: only root may sample",
                   paranoid);
    } else if (kernel_filters()) {
        doctor_bad(doctor, remedy, "a seccomp filter refuses perf_event_open, as in containers");
    } else {
        const char *words = answer + strspn(answer, "\n");
        doctor_bad(doctor, remedy, "refused; perf: %.*s", (int)strcspn(words, "\n"), words);
    }
}

static void check_sampling(struct doctor *doctor)
{
    const char *remedy =
        kernel_filters()
            ? "record from the host: jdperf record PID; or start the container with --cap-add "
              "PERFMON and a seccomp profile that allows perf_event_open"
            : "run jdperf as root, or as root: sysctl kernel.perf_event_paranoid=1";
    const char *user = target_user(geteuid());
    if (!doctor->lacks) {
        doctor_good(doctor, "allowed for %s", user);
    } else if (sampler_lacks_by_thread(NULL, 0) || (!sampler_sees_kernel() && perf_sees_kernel())) {
        check_sampling_by_perf(doctor, remedy);
    } else {
        doctor_poor(doctor, remedy, "allowed for %s, but thread by thread, which costs more%s: %s",
                    user, sampler_sees_kernel() ? "" : ", and not in the kernel", doctor->lacks);
    }
}

static void check_stacks(struct doctor *doctor)
{
    const char *lacks = doctor->lacks ? doctor->lacks : walk_program_lacks();
    if (lacks) {
        doctor_poor(doctor, "run jdperf as root, with libbpf 1, on Linux 5.17 or later",
                    "copied, not walked in the kernel: that costs more, and most stacks of virtual "
                    "threads lack their callers: %s",
                    lacks);
    } else {
        doctor_good(doctor, "walked in the kernel");
    }
}

static void check_counters(struct doctor *doctor)
{
    if (perf_counts_cycles()) {
        doctor_good(doctor, "hardware counters available: cycles can be sampled");
    } else {
        doctor_poor(doctor, "in a VM: pass the PMU through from its host",
                    "no hardware counters: jdperf uses the timer cpu-clock (100 us at best, blind "
                    "while interrupts are off)");
    }
}

static void check_clock(struct doctor *doctor)
{
    if (kernel_shifts_clock()) {
        doctor_bad(doctor, "run jdperf outside of it (as root: nsenter -t 1 -T jdperf …)",
                   "this time namespace has another clock than the kernel's samples");
    } else {
        doctor_good(doctor, "samples and dumps share CLOCK_MONOTONIC");
    }
}

static void check_stack_depth(struct doctor *doctor)
{
    long depth = kernel_number("perf_event_max_stack", 127);
    if (depth >= 512) {
        doctor_good(doctor, "with --stacks fp up to %ld frames", depth);
    } else {
        doctor_poor(doctor,
                    "as root, with no perf running: sysctl kernel.perf_event_max_stack=1024",
                    "with --stacks fp only %ld frames; Java stacks are often deeper", depth);
    }
}

static void check_kernel_symbols(struct doctor *doctor)
{
    long restricted = kernel_number("kptr_restrict", 0);
    if (restricted == 0 || (restricted == 1 && geteuid() == 0)) {
        doctor_good(doctor, "kernel frames have names");
    } else {
        doctor_poor(doctor, "as root: sysctl kernel.kptr_restrict=0",
                    "kernel.kptr_restrict is %ld: kernel frames have no names", restricted);
    }
}

static void check_agent(struct doctor *doctor)
{
    if (access(live_agent(), R_OK) == 0) {
        doctor_good(doctor, "%s", live_agent());
    } else {
        doctor_bad(doctor, "install jdagent again, or build it: scripts/quickstart.sh",
                   "not found at %s", live_agent());
    }
}

static void check_jdtool(struct doctor *doctor)
{
    char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    doctor_good(doctor, "%s", path);
}

/* The version in the `release` file of a JDK's home. */
static void read_version(const char *home, char version[64])
{
    static const char key[] = "JAVA_VERSION=\"";
    char path[PATH_MAX + 16];
    char text[4096];
    snprintf(path, sizeof path, "%s/release", home);
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    descriptor_close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, key);
    at = at ? at + sizeof key - 1 : "";
    snprintf(version, 64, "%.*s", (int)strcspn(at, "\"\n"), at);
}

static bool has_sources(const char *home)
{
    char path[PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/lib/src.zip", home);
    bool has = access(path, R_OK) == 0;
    snprintf(path, sizeof path, "%s/src.zip", home);
    return has || access(path, R_OK) == 0;
}

static void check_java(struct doctor *doctor)
{
    char wanted[PATH_MAX + 16] = "java";
    char found[PATH_MAX];
    char home[PATH_MAX];
    char version[64];
    char remedy[128];
    const char *given = getenv("JAVA_HOME");
    if (given && *given) {
        snprintf(wanted, sizeof wanted, "%s/bin/java", given);
    }
    if (!program_find(wanted, found) && !program_find("java", found)) {
        doctor_poor(
            doctor,
            "apt-get install openjdk-17-jdk-headless; you can still record JVMs of other JDKs",
            "none on PATH");
        return;
    }
    if (!realpath(found, home)) {
        snprintf(home, sizeof home, "%s", found);
    }
    char *bin = strstr(home, "/bin/java");
    if (bin) {
        *bin = '\0';
    }
    read_version(home, version);
    if (has_sources(home)) {
        doctor_good(doctor, "%s in %s, with its sources", *version ? version : "unknown version",
                    home);
    } else {
        snprintf(remedy, sizeof remedy, "apt-get install openjdk-%.*s-source",
                 (int)strcspn(version, "."), version);
        doctor_poor(doctor, remedy,
                    "%s in %s, without sources: annotate shows none for the JDK's methods",
                    *version ? version : "unknown version", home);
    }
}

static void check_attach_tool(struct doctor *doctor)
{
    static const char remedy[] = "apt-get install jattach";
    if (program_exists("jattach")) {
        doctor_good(doctor, "jattach");
    } else if (program_exists("jcmd")) {
        doctor_poor(doctor, remedy, "jcmd, which cannot reach into containers");
    } else {
        doctor_poor(doctor, remedy, "none: jdperf cannot attach to running JVMs");
    }
}

static void check_disassembler(struct doctor *doctor)
{
    if (program_exists("objdump") && program_exists("addr2line")) {
        doctor_good(doctor, "objdump and addr2line, for what perf shows of native code");
    } else {
        doctor_poor(doctor, "apt-get install binutils",
                    "no objdump or addr2line: perf shows no machine code or lines of native code");
    }
}

static void check_space(struct doctor *doctor)
{
    struct statvfs status;
    char here[PATH_MAX];
    if (statvfs(".", &status) != 0 || !getcwd(here, sizeof here)) {
        doctor_poor(doctor, "check with df", "unknown for the working directory");
        return;
    }
    doctor_tell_space(doctor, (uint64_t)status.f_bavail * status.f_frsize, here);
}

static void check_cache(struct doctor *doctor)
{
    char path[PATH_MAX];
    const char *home = getenv("HOME");
    snprintf(path, sizeof path, "%s/.debug", home ? home : "");
    doctor_tell_cache(doctor, home ? leftover_size(AT_FDCWD, path) : 0, path);
}

static void count(void *context, const struct leftover *leftover)
{
    (void)leftover;
    ++*(unsigned *)context;
}

static void check_leftovers(struct doctor *doctor)
{
    unsigned found = 0;
    leftovers_find(true, count, &found);
    if (found) {
        doctor_poor(doctor, "jdperf clean --all (-n lists them)",
                    "%u perf maps, dumps and directories of JVMs that have ended", found);
    } else {
        doctor_good(doctor, "no stale perf maps and dumps");
    }
}

void doctor_examine_machine(struct doctor *doctor)
{
    static const struct {
        const char *name;
        void (*check)(struct doctor *doctor);
    } checks[] = {
        {"perf", check_perf},
        {"sampling", check_sampling},
        {"counters", check_counters},
        {"clock", check_clock},
        {"stacks", check_stacks},
        {"stack depth", check_stack_depth},
        {"kernel symbols", check_kernel_symbols},
        {"agent", check_agent},
        {"jdtool", check_jdtool},
        {"java", check_java},
        {"attach tool", check_attach_tool},
        {"disassembler", check_disassembler},
        {"space", check_space},
        {"build id cache", check_cache},
        {"leftovers", check_leftovers},
    };
    doctor->lacks = sampler_lacks(NULL, 0);
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        doctor->check = checks[i].name;
        checks[i].check(doctor);
    }
}
