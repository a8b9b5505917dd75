/*
 * Whose numbers of processes we and our BPF programs speak of: those of our PID namespace. In
 * another one than the first the plain helper's numbers are not ours, and a helper that takes the
 * namespace gives them (Linux 5.7), for threads of that very namespace.
 */
#ifndef JD_TOOL_PID_NAMESPACE_H
#define JD_TOOL_PID_NAMESPACE_H

#include <linux/types.h>

struct pid_namespace {
    __u64 device, inode; /* 0: the first */
};

#ifdef __bpf__

/* pid << 32 | tid of who runs; 0: of another PID namespace. */
static __always_inline __u64 pid_namespace_running(const struct pid_namespace *ours)
{
    struct bpf_pidns_info ids = {0};
    if (!ours->inode) {
        return bpf_get_current_pid_tgid();
    }
    bpf_get_ns_current_pid_tgid(ours->device, ours->inode, &ids, sizeof ids);
    return (__u64)ids.tgid << 32 | ids.pid;
}

#else

#include <errno.h>
#include <sys/stat.h>

/* The inode of the first one (PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE 0xEFFFFFFCu

/* Ours. 0 or a negative errno; *ours is then the first. */
static inline int pid_namespace_read(struct pid_namespace *ours)
{
    struct stat status;
    *ours = (struct pid_namespace){0};
    if (stat("/proc/self/ns/pid", &status) != 0) {
        return -errno;
    }
    if (status.st_ino != FIRST_PID_NAMESPACE) {
        *ours = (struct pid_namespace){status.st_dev, status.st_ino};
    }
    return 0;
}

#endif

#endif
