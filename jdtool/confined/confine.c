#include "jdtool/confined/confine.h"

#include "jdtool/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY_MIN ((rlim_t)2 << 30)

/* ---- Whether it can be ---- */

/*
 * A call's answer can be a descriptor (Linux 5.14): else the kernel does not know the flag, before
 * it looks for the call. A filter cannot be taken back, so a child has it.
 */
static void try_answering(void)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    int err = filter ? seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(fchown), 0) : -ENOMEM;
    err = err ? err : seccomp_load(filter);
    int listener = err ? -1 : seccomp_notify_fd(filter);
    struct seccomp_notif_addfd none = {.flags = SECCOMP_ADDFD_FLAG_SEND,
                                       .srcfd = (uint32_t)listener};
    bool is =
        listener >= 0 && ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &none) < 0 && errno != EINVAL;
    _exit(is ? EXIT_SUCCESS : EXIT_FAILURE);
}

static bool can_be_answered(void)
{
    int status = -1;
    if (syscall(SYS_pidfd_getfd, -1, -1, 0) < 0 && errno != EBADF) { /* Linux 5.6 */
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        try_answering();
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && status == 0;
}

/* ---- Limits ---- */

/* As much memory as the machine has: what a file claims to hold shall not push others out of it. */
static void limit(int resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) == 0 && now.rlim_max > most) {
        now.rlim_cur = now.rlim_cur < most ? now.rlim_cur : most;
        now.rlim_max = most;
        (void)setrlimit(resource, &now);
    }
}

static void set_limits(uint32_t cpu_seconds)
{
    struct sysinfo machine;
    rlim_t memory = sysinfo(&machine) == 0 ? (rlim_t)machine.totalram * machine.mem_unit : 0;
    limit(RLIMIT_DATA, memory < MEMORY_MIN ? MEMORY_MIN : memory);
    limit(RLIMIT_CORE, 0); /* others' data would lie in it */
    limit(RLIMIT_NOFILE, 65536);
    struct rlimit cpu = {cpu_seconds, cpu_seconds + (rlim_t)5}; /* SIGXCPU first, then SIGKILL */
    if (cpu_seconds) {
        (void)setrlimit(RLIMIT_CPU, &cpu);
    }
}

/* ---- Names ---- */

/* As linux/landlock.h has it since 6.12; older kernels take its beginning. */
struct landlock_attributes {
    uint64_t files, ports, scopes;
};

/* Rights over files that read or run them, and those that there are over what is no directory. */
#define READS                                                                                      \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define OF_FILES                                                                                   \
    (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE |   \
     UINT64_C(0xc000)) /* truncating, and a device's ioctl */

/* Everything that Landlock knows; *size: how much of the structure the kernel takes. False: it has
 * it not. */
static bool know_all(struct landlock_attributes *all, size_t *size)
{
    /* By the version of its interface, from 1 on: the rights over files (an older kernel refuses
     * those it does not know). */
    static const struct {
        uint64_t files;
        size_t size;
    } versions[] = {{0x1fff, 8},  {0x3fff, 8},  {0x7fff, 8},
                    {0x7fff, 16}, {0xffff, 16}, {0xffff, 24}};
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1) {
        return false;
    }
    long last = sizeof versions / sizeof *versions;
    version = version < last ? version : last;
    *all = (struct landlock_attributes){versions[version - 1].files, 0x3, 0x3};
    *size = versions[version - 1].size;
    return true;
}

/* Without an exception. A descriptor, or -ENOSYS. */
static int rules_new(void)
{
    struct landlock_attributes all;
    size_t size;
    int rules =
        know_all(&all, &size) ? (int)syscall(SYS_landlock_create_ruleset, &all, size, 0) : -1;
    return rules < 0 ? -ENOSYS : rules;
}

static void except(int rules, int fd, uint64_t files)
{
    struct landlock_path_beneath_attr beneath = {.allowed_access = files, .parent_fd = fd};
    struct landlock_attributes all;
    struct stat status;
    size_t size;
    if (fstat(fd, &status) == 0 && know_all(&all, &size)) {
        beneath.allowed_access &= all.files & (S_ISDIR(status.st_mode) ? UINT64_MAX : OF_FILES);
        (void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    }
}

static void except_path(int rules, const char *path, uint64_t files)
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    if (fd >= 0) {
        except(rules, fd, files);
        close(fd);
    }
}

void confine_allow(int rules, int fd, bool all)
{
    except(rules, fd, all ? UINT64_MAX : READS);
}

int confine_rules(void)
{
    static const char *const places[] = {
        /* programs, libraries, debug files, kernel modules, and how terminals work */
        "/usr", "/lib", "/lib64", "/bin", "/sbin", "/nix/store", "/etc/ld.so.cache",
        "/etc/alternatives", "/etc/terminfo",
        /* the machine, its events, and the kernel's symbols */
        "/proc/kallsyms", "/proc/modules", "/proc/version", "/proc/cpuinfo", "/proc/filesystems",
        "/proc/sys/kernel", "/sys/devices", "/sys/bus", "/sys/module", "/sys/kernel/notes",
        "/dev/zero", "/dev/urandom"};
    static const char *const devices[] = {"/dev/null", "/dev/tty"};
    int rules = rules_new();
    for (size_t i = 0; i < sizeof places / sizeof *places && rules >= 0; i++) {
        except_path(rules, places[i], READS);
    }
    for (size_t i = 0; i < sizeof devices / sizeof *devices && rules >= 0; i++) {
        except_path(rules, devices[i], UINT64_MAX);
    }
    return rules;
}

/* By its name a file is reached by these alone, from now on. */
static bool restrict_to(int rules)
{
    return rules >= 0 && syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

/* Not one. */
static void forget_names(void)
{
    int none = rules_new();
    (void)restrict_to(none);
    descriptor_close(none);
}

/* ---- Capabilities ---- */

/* All but those of a set that it has. */
static int drop_capabilities(uint64_t but)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3] = {0};
    struct __user_cap_data_struct kept[_LINUX_CAPABILITY_U32S_3] = {0};
    (void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    if (but && syscall(SYS_capget, &header, has) == 0) {
        for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
            uint32_t bits = has[i].permitted & (uint32_t)(but >> 32 * i);
            kept[i] = (struct __user_cap_data_struct){bits, bits, bits};
        }
    }
    if (syscall(SYS_capset, &header, kept) != 0) {
        return -errno;
    }
    /* Programs have them, then, whoever they are run as. */
    for (int capability = 0; but >> capability; capability++) {
        if (but >> capability & 1) {
            (void)!prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
        }
    }
    return 0;
}

/* ---- Calls ---- */

/* Calls that only use what is open, the process' own memory and its own signals. */
static const int allowed[] = {
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(preadv),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(pwrite64),
    SCMP_SYS(pwritev),
    SCMP_SYS(lseek),
    SCMP_SYS(close),
    SCMP_SYS(close_range),
    SCMP_SYS(fstat),
    SCMP_SYS(fstatfs),
    SCMP_SYS(dup),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    SCMP_SYS(fcntl),
    SCMP_SYS(ftruncate),
    SCMP_SYS(fallocate),
    SCMP_SYS(fadvise64),
    SCMP_SYS(fsync),
    SCMP_SYS(fdatasync),
    SCMP_SYS(sendfile),
    SCMP_SYS(copy_file_range),
    SCMP_SYS(getdents64),
    SCMP_SYS(getcwd),
    SCMP_SYS(pipe2),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(select),
    SCMP_SYS(pselect6),
    SCMP_SYS(eventfd2),
    SCMP_SYS(memfd_create),
    SCMP_SYS(brk),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(msync),
    SCMP_SYS(mincore),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigpending),
    SCMP_SYS(signalfd4),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(getpid),
    SCMP_SYS(gettid),
    SCMP_SYS(getppid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
    SCMP_SYS(sysinfo),
    SCMP_SYS(uname),
    SCMP_SYS(getrlimit),
    SCMP_SYS(getrusage),
    SCMP_SYS(times),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getcpu),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(recvfrom),
    SCMP_SYS(shutdown),
};

/* What is refused as forbidden, to programs as well. */
static const int forbidden[] = {
    SCMP_SYS(ptrace),
    SCMP_SYS(socket),
    SCMP_SYS(socketpair),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(bpf),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(mount),
    SCMP_SYS(setuid),
    SCMP_SYS(setresuid),
    SCMP_SYS(chroot),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(fchmod),
    SCMP_SYS(fchmodat),
    SCMP_SYS(truncate),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(keyctl),
    SCMP_SYS(setns),
    SCMP_SYS(unshare),
};

/* The same, to who works on what is open. Everything else is unknown to this process, so that a
 * newer libc goes on with the older call. */
static const int forbidden_inside[] = {
    SCMP_SYS(execve),  SCMP_SYS(execveat),     SCMP_SYS(fork),      SCMP_SYS(vfork),
    SCMP_SYS(chdir),   SCMP_SYS(fchdir),       SCMP_SYS(symlinkat), SCMP_SYS(mkdirat),
    SCMP_SYS(mknodat), SCMP_SYS(memfd_secret),
};

/* The same, to programs: Landlock does not see what these change of a file. The numbers are of
 * calls that libseccomp 2.5 has no names for: fchmodat2, setxattrat, removexattrat, file_setattr.
 */
static const int forbidden_outside[] = {
    SCMP_SYS(chmod),
    SCMP_SYS(chown),
    SCMP_SYS(lchown),
    SCMP_SYS(fchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(fsetxattr),
    SCMP_SYS(utime),
    SCMP_SYS(utimes),
    SCMP_SYS(futimesat),
    SCMP_SYS(utimensat),
    SCMP_SYS(removexattr),
    SCMP_SYS(lremovexattr),
    SCMP_SYS(fremovexattr),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(syslog),
    452,
    463,
    466,
    469,
};

/* The calls that the parent answers. */
static const int asked[] = {
    SCMP_SYS(openat),     SCMP_SYS(openat2),  SCMP_SYS(access),     SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),   SCMP_SYS(rename),   SCMP_SYS(renameat),   SCMP_SYS(renameat2),
    SCMP_SYS(linkat),     SCMP_SYS(fchown),   SCMP_SYS(stat),       SCMP_SYS(lstat),
    SCMP_SYS(statx),
};

/* Of some only a part: compared are the bits of `mask`. */
struct part {
    int call;
    unsigned argument;
    uint64_t mask, value;
};

static int add_parts(scmp_filter_ctx filter)
{
    const struct part parts[] = {
        {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
        {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
        {SCMP_SYS(ioctl), 1, UINT32_MAX, TCGETS},
        {SCMP_SYS(ioctl), 1, UINT32_MAX, TIOCGWINSZ},
        {SCMP_SYS(ioctl), 1, UINT32_MAX, FIONREAD},
        {SCMP_SYS(prctl), 0, UINT32_MAX, PR_SET_VMA},          /* glibc names its heap */
        {SCMP_SYS(prlimit64), 2, UINT64_MAX, 0},               /* asks only */
        {SCMP_SYS(kill), 1, UINT32_MAX, 0},                    /* whether it lives */
        {SCMP_SYS(tgkill), 0, UINT32_MAX, (uint64_t)getpid()}, /* abort */
        {SCMP_SYS(sendto), 4, UINT64_MAX, 0},                  /* to whom it is connected with */
        {SCMP_SYS(accept4), 3, UINT32_MAX, SOCK_CLOEXEC | SOCK_NONBLOCK},
    };
    int err = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !err; i++) {
        err = seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, parts[i].call, 1,
            SCMP_CMP(parts[i].argument, SCMP_CMP_MASKED_EQ, parts[i].mask, parts[i].value));
    }
    /* What is open, and what has a name. */
    if (!err) {
        err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1,
                               SCMP_CMP(3, SCMP_CMP_MASKED_EQ, UINT32_MAX, AT_EMPTY_PATH));
    }
    if (!err) {
        err = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, SCMP_SYS(newfstatat), 1,
                               SCMP_CMP(3, SCMP_CMP_MASKED_EQ, AT_EMPTY_PATH, 0));
    }
    /* A thread, which has no more rights than its process, and no process. libc tries clone3 first,
     * whose flags a filter does not see: it is unknown. */
    if (!err) {
        err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                               SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    }
    if (!err) {
        err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
    }
    return err;
}

/* Calls that this machine's kernel does not have are none. */
static int add(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
    int err = 0;
    for (size_t i = 0; i < count && !err; i++) {
        if (calls[i] >= 0) {
            err = seccomp_rule_add(filter, action, calls[i], 0);
        }
    }
    return err;
}

#define COUNT(list) (sizeof(list) / sizeof *(list))

static int filter_calls(int *listener)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (!filter) {
        return -ENOMEM;
    }
    int err = add(filter, SCMP_ACT_ALLOW, allowed, COUNT(allowed));
    err = err ? err : add(filter, SCMP_ACT_ERRNO(EPERM), forbidden, COUNT(forbidden));
    err = err ? err : add(filter, SCMP_ACT_ERRNO(EPERM), forbidden_inside, COUNT(forbidden_inside));
    err = err ? err : add(filter, SCMP_ACT_NOTIFY, asked, COUNT(asked));
    err = err ? err : add_parts(filter);
    err = err ? err : seccomp_load(filter);
    if (!err) {
        *listener = seccomp_notify_fd(filter);
        err = *listener < 0 ? -ENOSYS : 0;
    }
    seccomp_release(filter);
    return err;
}

int confine(uint32_t cpu_seconds, int *listener)
{
    if (!can_be_answered()) {
        return -ENOSYS;
    }
    set_limits(cpu_seconds);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -errno;
    }
    forget_names(); /* the filter does the same */
    int err = drop_capabilities(0);
    return err ? err : filter_calls(listener);
}

/* Of a new user's namespace, who has all capabilities there, and of what types into a terminal. */
static int add_program_parts(scmp_filter_ctx filter)
{
    int err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                               SCMP_CMP(0, SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER));
    err = err ? err : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    const uint64_t typing[] = {TIOCSTI, TIOCLINUX};
    for (size_t i = 0; i < COUNT(typing) && !err; i++) {
        err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                               SCMP_CMP(1, SCMP_CMP_MASKED_EQ, UINT32_MAX, typing[i]));
    }
    return err;
}

int confine_program(int rules, bool of_others)
{
    uint64_t kept = UINT64_C(1) << CAP_SYSLOG; /* the kernel's symbols have addresses */
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -errno;
    }
    limit(RLIMIT_CORE, 0);
    except_path(rules, "/proc/self", READS); /* that of the program, which this becomes */
    bool by_name = restrict_to(rules);
    if (of_others && by_name) {
        kept |= UINT64_C(1) << CAP_DAC_READ_SEARCH; /* of what the rules allow */
    }
    int err = drop_capabilities(kept);
    scmp_filter_ctx filter = err ? NULL : seccomp_init(SCMP_ACT_ALLOW);
    if (!filter) {
        return err ? err : -ENOMEM;
    }
    err = add(filter, SCMP_ACT_ERRNO(EPERM), forbidden, COUNT(forbidden));
    err =
        err ? err : add(filter, SCMP_ACT_ERRNO(EPERM), forbidden_outside, COUNT(forbidden_outside));
    err = err ? err : add_program_parts(filter);
    err = err ? err : seccomp_load(filter);
    seccomp_release(filter);
    return !err && !by_name ? -ENOSYS : err; /* the rest holds it all the same */
}
