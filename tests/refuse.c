/*
 * refuse bpf|signals|filters|processors COMMAND...: runs the command where the kernel refuses
 * programs (bpf), signals by descriptor, further filters of calls, or events of processors:
 * perf_event_open for all processes. As older kernels and containers do.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The low half of an argument, on a machine whose byte order is ours: little. */
#define ARGUMENT(i) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (size_t)(i)))

int main(int argc, char **argv)
{
    bool is_processors = argc > 1 && strcmp(argv[1], "processors") == 0;
    const char *what = argc > 1 ? argv[1] : "";
    uint32_t call = strcmp(what, "bpf") == 0       ? SYS_bpf
                    : strcmp(what, "filters") == 0 ? SYS_seccomp
                                                   : SYS_pidfd_send_signal;
    const struct sock_filter one[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_filter processors[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT(1)), /* the process */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, UINT32_MAX, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (argc < 3) {
        return 2;
    }
    struct sock_fprog program = {
        .len = (unsigned short)(is_processors ? sizeof processors / sizeof *processors
                                              : sizeof one / sizeof *one),
        .filter = (struct sock_filter *)(is_processors ? processors : one),
    };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        perror("refuse");
        return 2;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
