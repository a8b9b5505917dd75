#include "jdtool/sampler/filter.h"

#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The inode of the first PID namespace (PROC_PID_INIT_INO). */
#define FIRST_PID_NAMESPACE UINT64_C(0xEFFFFFFC)

static int bpf(int command, union bpf_attr *attr)
{
    int result = (int)syscall(SYS_bpf, command, attr, sizeof *attr);
    return result < 0 ? -errno : result;
}

/*
 * tgid = that of the running thread; return tgid is in the map, and a random number is not above
 * what stands there, unless that is 0. In another PID namespace than the first the plain helper's
 * numbers are not ours, and a helper that takes the namespace gives them (Linux 5.7), for threads
 * of that very namespace.
 */
static int load_program(enum bpf_prog_type type, int processes, const struct stat *namespace)
{
    const struct bpf_insn in_first[] = {
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid},
        {.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 0, .imm = 32},
        {.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = 10, .src_reg = 0, .off = -4},
    };
    const struct bpf_insn in_another[] = {
        /* struct bpf_pidns_info { u32 pid, tgid; } at fp-8, so tgid at fp-4 */
        {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 10, .off = -8, .imm = 0},
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .imm = (int32_t) namespace->st_dev},
        {.imm = (int32_t)((uint64_t) namespace->st_dev >> 32)},
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 2, .imm = (int32_t) namespace->st_ino},
        {.imm = (int32_t)((uint64_t) namespace->st_ino >> 32)},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 3, .src_reg = 10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 3, .imm = -8},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4, .imm = 8},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_ns_current_pid_tgid},
    };
    const struct bpf_insn look_up[] = {
        {.code = BPF_LD | BPF_DW | BPF_IMM,
         .dst_reg = 1,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = processes},
        {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .imm = 0, .off = 6},
        {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 6, .src_reg = 0},
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 6, .imm = 0, .off = 2},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32},
        {.code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = 0, .src_reg = 6, .off = 2},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0}, /* it is dropped */
        {.code = BPF_JMP | BPF_EXIT},
    };
    bool is_first = namespace->st_ino == FIRST_PID_NAMESPACE;
    struct bpf_insn
        program[sizeof in_another / sizeof *in_another + sizeof look_up / sizeof *look_up];
    size_t head = is_first ? sizeof in_first : sizeof in_another;
    memcpy(program, is_first ? in_first : in_another, head);
    memcpy((uint8_t *)program + head, look_up, sizeof look_up);
    union bpf_attr attr = {
        .prog_type = type,
        .insns = (uintptr_t)program,
        .insn_cnt = (uint32_t)((head + sizeof look_up) / sizeof *program),
        .license = (uintptr_t) "Apache-2.0",
    };
    return bpf(BPF_PROG_LOAD, &attr);
}

int filter_load(struct filter *filter, bool for_probes)
{
    struct stat namespace;
    *filter = FILTER_NONE;
    if (stat("/proc/self/ns/pid", &namespace) != 0) {
        return -errno;
    }
    /* Below Linux 5.11 maps count as locked memory. */
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_MEMLOCK, &all);
    union bpf_attr attr = {.map_type = BPF_MAP_TYPE_HASH,
                           .key_size = sizeof(uint32_t),
                           .value_size = sizeof(uint32_t),
                           .max_entries = FILTER_PROCESSES_MAX};
    filter->processes = bpf(BPF_MAP_CREATE, &attr);
    int err = filter->processes < 0 ? filter->processes : 0;
    if (!err) {
        filter->program = load_program(BPF_PROG_TYPE_PERF_EVENT, filter->processes, &namespace);
        err = filter->program < 0 ? filter->program : 0;
    }
    if (!err && for_probes) {
        filter->probes = load_program(BPF_PROG_TYPE_KPROBE, filter->processes, &namespace);
        err = filter->probes < 0 ? filter->probes : 0;
    }
    if (err) {
        filter_close(filter);
    }
    return err;
}

void filter_close(struct filter *filter)
{
    if (filter->processes >= 0) {
        close(filter->processes);
    }
    if (filter->program >= 0) {
        close(filter->program);
    }
    if (filter->probes >= 0) {
        close(filter->probes);
    }
    *filter = FILTER_NONE;
}

int filter_add(const struct filter *filter, pid_t process, uint32_t one_in)
{
    uint32_t key = (uint32_t)process;
    uint32_t value = one_in > 1 ? UINT32_MAX / one_in : 0;
    union bpf_attr attr = {
        .map_fd = (uint32_t)filter->processes, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
    return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int filter_remove(const struct filter *filter, pid_t process)
{
    uint32_t key = (uint32_t)process;
    union bpf_attr attr = {.map_fd = (uint32_t)filter->processes, .key = (uintptr_t)&key};
    return bpf(BPF_MAP_DELETE_ELEM, &attr);
}

int filter_apply(const struct filter *filter, int event)
{
    return ioctl(event, PERF_EVENT_IOC_SET_BPF, filter->program) == 0 ? 0 : -errno;
}

/* The programs of a uprobe are those of all its events. */
int filter_apply_to_probe(const struct filter *filter, int event)
{
    return ioctl(event, PERF_EVENT_IOC_SET_BPF, filter->probes) == 0 || errno == EEXIST ? 0
                                                                                        : -errno;
}
