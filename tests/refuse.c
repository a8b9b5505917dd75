/*
 * refuse WHAT[,WHAT...] COMMAND...: runs the command where the kernel refuses that, as a container
 * does (bpf, signals, filters, events, processors) or as an older kernel, which has it not: one of
 * the names below, which "refuse list" lists, or linux-5.4, what came after that. What system calls
 * are told by a pointer is read by a tracer.
 */
#include <elf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* What of a call is looked at. */
enum part {
    ALL,
    ARGUMENT,      /* the low half of one has bits of `mask` that are `value`'s */
    MORE_THAN,     /* it is above `value` */
    POINTED_AT,    /* 8 bytes at `offset` from what it points at have any of `mask` */
    CALLS_HELPER,  /* it loads a BPF program that calls helper `value` */
    ANSWERED_BY_US /* as ARGUMENT; -error is what it returns */
};

#define LINUX(major, minor) ((major) << 8 | (minor))
#define NOT_IN_TIME         0 /* refused by rules, not for its age */

static const struct refused {
    const char *name;
    unsigned since;
    uint32_t call;
    enum part part;
    int error;
    unsigned argument, offset;
    uint64_t mask, value;
} table[] = {
    {"bpf", NOT_IN_TIME, SYS_bpf, ALL, EPERM, 0, 0, 0, 0},
    {"filters", NOT_IN_TIME, SYS_seccomp, ALL, EPERM, 0, 0, 0, 0},
    {"signals", NOT_IN_TIME, SYS_pidfd_send_signal, ALL, EPERM, 0, 0, 0, 0},
    {"events", NOT_IN_TIME, SYS_perf_event_open, ALL, EPERM, 0, 0, 0, 0},
    {"processors", NOT_IN_TIME, SYS_perf_event_open, ARGUMENT, EACCES, 1, 0, UINT32_MAX,
     UINT32_MAX},
    {"listener", LINUX(5, 0), SYS_seccomp, ARGUMENT, EINVAL, 1, 0, SECCOMP_FILTER_FLAG_NEW_LISTENER,
     SECCOMP_FILTER_FLAG_NEW_LISTENER},
    {"pidfd_send_signal", LINUX(5, 1), SYS_pidfd_send_signal, ALL, ENOSYS, 0, 0, 0, 0},
    {"pidfd_open", LINUX(5, 3), SYS_pidfd_open, ALL, ENOSYS, 0, 0, 0, 0},
    {"clone3", LINUX(5, 3), SYS_clone3, ALL, ENOSYS, 0, 0, 0, 0},
    {"probe_read_user", LINUX(5, 5), SYS_bpf, CALLS_HELPER, EINVAL, 0, 0, 0,
     BPF_FUNC_probe_read_user},
    {"pidfd_getfd", LINUX(5, 6), SYS_pidfd_getfd, ALL, ENOSYS, 0, 0, 0, 0},
    {"openat2", LINUX(5, 6), SYS_openat2, ALL, ENOSYS, 0, 0, 0, 0},
    {"get_ns_current_pid_tgid", LINUX(5, 7), SYS_bpf, CALLS_HELPER, EINVAL, 0, 0, 0,
     BPF_FUNC_get_ns_current_pid_tgid},
    {"faccessat2", LINUX(5, 8), SYS_faccessat2, ALL, ENOSYS, 0, 0, 0, 0},
    {"ringbuf_output", LINUX(5, 8), SYS_bpf, CALLS_HELPER, EINVAL, 0, 0, 0,
     BPF_FUNC_ringbuf_output},
    {"close_range", LINUX(5, 9), SYS_close_range, ALL, ENOSYS, 0, 0, 0, 0},
    {"get_current_task_btf", LINUX(5, 11), SYS_bpf, CALLS_HELPER, EINVAL, 0, 0, 0,
     BPF_FUNC_get_current_task_btf},
    {"build_id", LINUX(5, 12), SYS_perf_event_open, POINTED_AT, EINVAL, 0, 40, UINT64_C(1) << 34,
     0},
    {"landlock", LINUX(5, 13), SYS_landlock_create_ruleset, ALL, ENOSYS, 0, 0, 0, 0},
    {"landlock", LINUX(5, 13), SYS_landlock_add_rule, ALL, ENOSYS, 0, 0, 0, 0},
    {"landlock", LINUX(5, 13), SYS_landlock_restrict_self, ALL, ENOSYS, 0, 0, 0, 0},
    /* SECCOMP_ADDFD_FLAG_SEND, without which nobody here asks. */
    {"addfd_send", LINUX(5, 14), SYS_ioctl, ARGUMENT, EINVAL, 1, 0, UINT32_MAX,
     SECCOMP_IOCTL_NOTIF_ADDFD},
    {"task_pt_regs", LINUX(5, 15), SYS_bpf, CALLS_HELPER, EINVAL, 0, 0, 0, BPF_FUNC_task_pt_regs},
    {"vma_name", LINUX(5, 17), SYS_prctl, ARGUMENT, EINVAL, 0, 0, UINT32_MAX, PR_SET_VMA},
    {"loop", LINUX(5, 17), SYS_bpf, CALLS_HELPER, EINVAL, 0, 0, 0, BPF_FUNC_loop},
    /* Landlock's first version, then its second: which it is, and more than it knows of. */
    {"landlock_refer", LINUX(5, 19), SYS_landlock_create_ruleset, ANSWERED_BY_US, -1, 2, 0,
     UINT32_MAX, 1},
    {"landlock_refer", LINUX(5, 19), SYS_landlock_create_ruleset, MORE_THAN, E2BIG, 1, 0, 0, 8},
    {"landlock_refer", LINUX(5, 19), SYS_landlock_create_ruleset, POINTED_AT, EINVAL, 0, 0,
     ~UINT64_C(0x1fff), 0},
    {"landlock_truncate", LINUX(6, 2), SYS_landlock_create_ruleset, ANSWERED_BY_US, -2, 2, 0,
     UINT32_MAX, 1},
    {"landlock_truncate", LINUX(6, 2), SYS_landlock_create_ruleset, MORE_THAN, E2BIG, 1, 0, 0, 8},
    {"landlock_truncate", LINUX(6, 2), SYS_landlock_create_ruleset, POINTED_AT, EINVAL, 0, 0,
     ~UINT64_C(0x3fff), 0},
};

#define ROWS (sizeof table / sizeof *table)

/* Marks the rows of a list. False: there is no such. */
static bool choose(char *list, bool *chosen)
{
    bool knows_all = true;
    char *rest;
    for (char *word = strtok_r(list, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        bool is_known = false;
        bool is_kernel = strncmp(word, "linux-", 6) == 0;
        char *dot = word;
        unsigned long major = is_kernel ? strtoul(word + 6, &dot, 10) : 0;
        unsigned long minor = *dot == '.' ? strtoul(dot + 1, NULL, 10) : 0;
        for (size_t i = 0; i < ROWS; i++) {
            bool is =
                is_kernel ? table[i].since > LINUX(major, minor) : strcmp(word, table[i].name) == 0;
            chosen[i] |= is;
            is_known |= is;
        }
        knows_all &= is_known;
    }
    return knows_all;
}

/* ---- Without a tracer ---- */

/* The low half of an argument, on a machine whose byte order is ours: little. */
#define LOW_HALF(i) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)(i)))

static bool wants_tracer(const struct refused *row)
{
    return row->part != ALL && row->part != ARGUMENT;
}

static bool load_filter(const bool *chosen)
{
    struct sock_filter list[7 * ROWS + 1];
    unsigned short count = 0;
    for (size_t i = 0; i < ROWS; i++) {
        const struct refused *row = &table[i];
        uint32_t verdict =
            wants_tracer(row) ? SECCOMP_RET_TRACE : SECCOMP_RET_ERRNO | (uint32_t)row->error;
        bool looks = row->part == ARGUMENT;
        if (!chosen[i]) {
            continue;
        }
        list[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                                     offsetof(struct seccomp_data, nr));
        list[count++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->call, 0, looks ? 4 : 1);
        if (looks) {
            list[count++] =
                (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, LOW_HALF(row->argument));
            list[count++] =
                (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)row->mask);
            list[count++] =
                (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)row->value, 0, 1);
        }
        list[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, verdict);
    }
    list[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = count, .filter = list};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int become(char **command)
{
    execvp(command[0], command);
    perror(command[0]);
    return 2;
}

/* ---- The tracer ---- */

static bool read_memory(pid_t thread, uint64_t at, void *to, size_t size)
{
    struct iovec ours = {to, size};
    struct iovec theirs = {(void *)(uintptr_t)at, size}; /* NOLINT(performance-no-int-to-ptr) */
    return process_vm_readv(thread, &ours, 1, &theirs, 1, 0) == (ssize_t)size;
}

static bool calls_helper(pid_t thread, const uint64_t *arguments, uint64_t helper)
{
    union bpf_attr attr;
    struct bpf_insn at;
    size_t size = offsetof(union bpf_attr, license);
    bool calls = false;
    if (arguments[0] != BPF_PROG_LOAD || !read_memory(thread, arguments[1], &attr, size)) {
        return false;
    }
    for (uint32_t i = 0; i < attr.insn_cnt && !calls &&
                         read_memory(thread, attr.insns + sizeof at * i, &at, sizeof at);
         i++) {
        calls = at.code == (BPF_JMP | BPF_CALL) && at.src_reg == 0 && (uint64_t)at.imm == helper;
    }
    return calls;
}

static bool is_refused(const struct refused *row, pid_t thread, const uint64_t *arguments)
{
    uint64_t argument = arguments[row->argument];
    uint64_t word = 0;
    switch (row->part) {
    case MORE_THAN:
        return argument > row->value;
    case POINTED_AT:
        return read_memory(thread, argument + row->offset, &word, sizeof word) && word & row->mask;
    case CALLS_HELPER:
        return calls_helper(thread, arguments, row->value);
    case ANSWERED_BY_US:
        return (argument & row->mask) == row->value;
    default:
        return false;
    }
}

/* The thread is about to call; it gets that instead. */
static void answer(pid_t thread, int64_t result)
{
    struct user_regs_struct registers;
    struct iovec all = {&registers, sizeof registers};
    ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &all);
#if defined __x86_64__
    registers.orig_rax = UINT64_MAX; /* no call */
    registers.rax = (uint64_t)result;
#else
    int none = -1;
    struct iovec call = {&none, sizeof none};
    ptrace(PTRACE_SETREGSET, thread, NT_ARM_SYSTEM_CALL, &call);
    registers.regs[0] = (uint64_t)result;
#endif
    ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &all);
}

static void judge(const bool *chosen, pid_t thread)
{
    struct __ptrace_syscall_info call;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof call, &call) <= 0) {
        return;
    }
    for (size_t i = 0; i < ROWS; i++) {
        if (chosen[i] && table[i].call == call.seccomp.nr &&
            is_refused(&table[i], thread, call.seccomp.args)) {
            answer(thread, -table[i].error);
            return;
        }
    }
}

static pid_t child;

static void hand_on(int number)
{
    kill(child, number);
}

/* Lets it go on, and those that it starts, until it has ended. Its status. */
static int trace(const bool *chosen)
{
    for (;;) {
        int status = 0;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 && errno == EINTR) {
            continue;
        }
        if (thread < 0) {
            return 2;
        }
        int event = status >> 16;
        int number = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
        if (!WIFSTOPPED(status) && thread == child) {
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        if (!WIFSTOPPED(status)) {
            continue;
        }
        if (event == PTRACE_EVENT_SECCOMP) {
            judge(chosen, thread);
        }
        bool stays = event == PTRACE_EVENT_STOP && number != SIGTRAP;
        ptrace(stays ? PTRACE_LISTEN : PTRACE_CONT, thread, 0, event ? 0 : number);
    }
}

static int run_traced(const bool *chosen, char **command)
{
    int go[2];
    char byte;
    if (pipe(go) != 0 || (child = fork()) < 0) {
        perror("refuse");
        return 2;
    }
    if (child == 0) {
        close(go[1]);
        if (read(go[0], &byte, 1) != 1 || !load_filter(chosen)) {
            perror("refuse");
            return 2;
        }
        close(go[0]);
        return become(command);
    }
    signal(SIGINT, hand_on);
    signal(SIGTERM, hand_on);
    long options =
        PTRACE_O_TRACESECCOMP | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
    if (ptrace(PTRACE_SEIZE, child, 0, options) != 0 || write(go[1], "", 1) != 1) {
        perror("refuse");
        return 2;
    }
    close(go[0]);
    close(go[1]);
    return trace(chosen);
}

int main(int argc, char **argv)
{
    bool chosen[ROWS] = {0};
    bool is_traced = false;
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        for (size_t i = 0; i < ROWS; i++) {
            if (i == 0 || strcmp(table[i].name, table[i - 1].name) != 0) {
                puts(table[i].name);
            }
        }
        return 0;
    }
    if (argc < 3 || !choose(argv[1], chosen)) {
        return 2;
    }
    for (size_t i = 0; i < ROWS; i++) {
        is_traced |= chosen[i] && wants_tracer(&table[i]);
    }
    if (is_traced) {
        return run_traced(chosen, argv + 2);
    }
    if (!load_filter(chosen)) {
        perror("refuse");
        return 2;
    }
    return become(argv + 2);
}
