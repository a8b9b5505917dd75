#include "jdtool/sampler/filter.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/sampler/pid_namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attr)
{
    int result = (int)syscall(SYS_bpf, command, attr, sizeof *attr);
    return result < 0 ? -errno : result;
}

/*
 * tgid = that of the running thread in our namespace (pid_namespace_running), whose value in the
 * map the rule then has.
 */
#define RULE_MAX 10

/* Which of the map is kept, whose value is in r0: an address, or 0. */
struct rule {
    const struct bpf_insn *list;
    size_t count;
};

static int load_program(enum bpf_prog_type type, int processes, const struct pid_namespace *ours,
                        struct rule rule)
{
    const struct bpf_insn in_first[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_current_pid_tgid},
        {.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 0, .imm = 32},
        {.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = 10, .src_reg = 0, .off = -4},
    };
    const struct bpf_insn in_another[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1},
        /* struct bpf_pidns_info { u32 pid, tgid; } at fp-8, so tgid at fp-4 */
        {.code = BPF_ST | BPF_MEM | BPF_DW, .dst_reg = 10, .off = -8, .imm = 0},
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .imm = (int32_t)ours->device},
        {.imm = (int32_t)(ours->device >> 32)},
        {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 2, .imm = (int32_t)ours->inode},
        {.imm = (int32_t)(ours->inode >> 32)},
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
    };
    bool is_first = !ours->inode;
    struct bpf_insn program[sizeof in_another / sizeof *in_another +
                            sizeof look_up / sizeof *look_up + RULE_MAX];
    size_t head = is_first ? sizeof in_first : sizeof in_another;
    size_t tail = rule.count * sizeof *program;
    memcpy(program, is_first ? in_first : in_another, head);
    memcpy((uint8_t *)program + head, look_up, sizeof look_up);
    memcpy((uint8_t *)program + head + sizeof look_up, rule.list, tail);
    union bpf_attr attr = {
        .prog_type = type,
        .insns = (uintptr_t)program,
        .insn_cnt = (uint32_t)((head + sizeof look_up + tail) / sizeof *program),
        .license = (uintptr_t) "Apache-2.0",
    };
    return bpf(BPF_PROG_LOAD, &attr);
}

/* It is in the map, and a random number is not above what stands there, unless that is 0. */
static const struct bpf_insn by_chance[] = {
    {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .imm = 0, .off = 6},
    {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 7, .src_reg = 0},
    {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 7, .imm = 0, .off = 2},
    {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32},
    {.code = BPF_JMP | BPF_JGT | BPF_X, .dst_reg = 0, .src_reg = 7, .off = 2},
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
    {.code = BPF_JMP | BPF_EXIT},
    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0}, /* it is dropped */
    {.code = BPF_JMP | BPF_EXIT},
};

/* It is in the map; another program, as soon as there is one, goes on with it. */
static int load_handing_on(enum bpf_prog_type type, const struct filter *filter, int next,
                           const struct pid_namespace *ours)
{
    const struct bpf_insn hand_on[] = {
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .imm = 0, .off = 6}, /* it is dropped */
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6},
        {.code = BPF_LD | BPF_DW | BPF_IMM,
         .dst_reg = 2,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = next},
        {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 0},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_tail_call},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
    };
    return load_program(type, filter->processes, ours,
                        (struct rule){hand_on, sizeof hand_on / sizeof *hand_on});
}

/* A ring has neither keys nor values. */
static int create_map(enum bpf_map_type type, uint32_t entries)
{
    uint32_t size = type == BPF_MAP_TYPE_RINGBUF ? 0 : sizeof(uint32_t);
    union bpf_attr attr = {
        .map_type = type, .key_size = size, .value_size = size, .max_entries = entries};
    return bpf(BPF_MAP_CREATE, &attr);
}

/* next: the array, where it hands on. A descriptor or a negative errno. */
static int load_kind(const struct filter *filter, const struct pid_namespace *ours, unsigned kind,
                     enum bpf_prog_type type, int *next)
{
    const struct rule rule = {by_chance, sizeof by_chance / sizeof *by_chance};
    if (!(kind & FILTER_HANDS_ON)) {
        return load_program(type, filter->processes, ours, rule);
    }
    *next = create_map(BPF_MAP_TYPE_PROG_ARRAY, 1);
    return *next < 0 ? *next : load_handing_on(type, filter, *next, ours);
}

static int load(struct filter *filter, const struct pid_namespace *ours, unsigned kind)
{
    filter->processes = create_map(BPF_MAP_TYPE_HASH, FILTER_PROCESSES_MAX);
    if (filter->processes < 0) {
        return filter->processes;
    }
    filter->program = load_kind(filter, ours, kind, BPF_PROG_TYPE_PERF_EVENT, &filter->next);
    if (filter->program >= 0 && kind & FILTER_FOR_PROBES) {
        filter->probes = load_kind(filter, ours, kind, BPF_PROG_TYPE_KPROBE, &filter->next_probe);
        return filter->probes < 0 ? filter->probes : 0;
    }
    return filter->program < 0 ? filter->program : 0;
}

int filter_load(struct filter *filter, unsigned kind)
{
    struct pid_namespace ours;
    int err = pid_namespace_read(&ours);
    *filter = FILTER_NONE;
    if (err) {
        return err;
    }
    /* Below Linux 5.11 maps count as locked memory. */
    const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
    (void)setrlimit(RLIMIT_MEMLOCK, &all);
    err = load(filter, &ours, kind);
    if (err) {
        filter_close(filter);
    }
    return err;
}

/* ---- Forks ---- */

/* It is in the map: its number, which stands at fp-4, is written to the ring. */
static int load_teller(const struct filter *filter, const struct pid_namespace *ours)
{
    const struct bpf_insn tell[] = {
        {.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .imm = 0, .off = 7},
        {.code = BPF_LD | BPF_DW | BPF_IMM,
         .dst_reg = 1,
         .src_reg = BPF_PSEUDO_MAP_FD,
         .imm = filter->forks.told},
        {0},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10},
        {.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = 4},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4, .imm = 0},
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ringbuf_output},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    return load_program(BPF_PROG_TYPE_RAW_TRACEPOINT, filter->processes, ours,
                        (struct rule){tell, sizeof tell / sizeof *tell});
}

/* The ring's positions, each in a page of its own: ours, and the kernel's. */
static int map_positions(struct filter_forks *forks, size_t page)
{
    void *ours = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, forks->told, 0);
    void *its = mmap(NULL, page, PROT_READ, MAP_SHARED, forks->told, (off_t)page);
    if (its == MAP_FAILED || ours == MAP_FAILED) {
        (void)(ours != MAP_FAILED && munmap(ours, page));
        (void)(its != MAP_FAILED && munmap(its, page));
        return -ENOMEM;
    }
    forks->read = ours;
    forks->written = its;
    return 0;
}

static void close_forks(struct filter_forks *forks)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (forks->read) {
        (void)munmap(forks->read, page);
        (void)munmap((void *)forks->written, page);
    }
    descriptor_close(forks->there);
    descriptor_close(forks->program);
    descriptor_close(forks->told);
    *forks = FILTER_NONE.forks;
}

int filter_tell_forks(struct filter *filter)
{
    struct filter_forks *forks = &filter->forks;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct pid_namespace ours;
    if (filter->processes < 0 || pid_namespace_read(&ours) != 0) {
        return -ENOENT;
    }
    forks->told = create_map(BPF_MAP_TYPE_RINGBUF, (uint32_t)page);
    forks->program = forks->told < 0 ? forks->told : load_teller(filter, &ours);
    union bpf_attr attr = {.raw_tracepoint = {.name = (uintptr_t) "sched_process_fork",
                                              .prog_fd = (uint32_t)forks->program}};
    forks->there = forks->program < 0 ? forks->program : bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
    int err = forks->there < 0 ? forks->there : map_positions(forks, page);
    if (err) {
        close_forks(forks);
    }
    return err;
}

void filter_forks_seen(const struct filter *filter)
{
    const struct filter_forks *forks = &filter->forks;
    if (forks->read) {
        uint64_t written = __atomic_load_n(forks->written, __ATOMIC_ACQUIRE);
        __atomic_store_n(forks->read, written, __ATOMIC_SEQ_CST);
    }
}

void filter_close(struct filter *filter)
{
    close_forks(&filter->forks);
    descriptor_close(filter->processes);
    descriptor_close(filter->next);
    descriptor_close(filter->program);
    descriptor_close(filter->probes);
    descriptor_close(filter->next_probe);
    for (uint32_t i = 0; i < filter->link_count; i++) {
        close(filter->links[i]);
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

static int set_next(int next, int program)
{
    uint32_t first = 0;
    union bpf_attr attr = {
        .map_fd = (uint32_t)next, .key = (uintptr_t)&first, .value = (uintptr_t)&program};
    return next < 0 ? 0 : bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

int filter_hand_on(const struct filter *filter, int program, int probes)
{
    int err = set_next(filter->next, program);
    return err ? err : set_next(filter->next_probe, probes);
}

int filter_replace_probes(struct filter *filter, int program, int next)
{
    int probes = fcntl(program, F_DUPFD_CLOEXEC, 0);
    int next_probe = probes < 0 ? -1 : fcntl(next, F_DUPFD_CLOEXEC, 0);
    if (next_probe < 0) {
        int err = -errno;
        descriptor_close(probes);
        return err;
    }
    descriptor_close(filter->probes);
    descriptor_close(filter->next_probe);
    filter->probes = probes;
    filter->next_probe = next_probe;
    return 0;
}

int filter_apply(const struct filter *filter, int event)
{
    return ioctl(event, PERF_EVENT_IOC_SET_BPF, filter->program) == 0 ? 0 : -errno;
}

/* The programs of a uprobe are those of all its events. A link holds the one that it is made by. */
int filter_apply_to_probe(struct filter *filter, int event, uint64_t cookie)
{
    union bpf_attr attr = {.link_create = {.prog_fd = (uint32_t)filter->probes,
                                           .target_fd = (uint32_t)event,
                                           .attach_type = BPF_PERF_EVENT,
                                           .perf_event.bpf_cookie = cookie}};
    bool is_room = filter->link_count < FILTER_PROBES_MAX;
    int link = cookie && is_room ? bpf(BPF_LINK_CREATE, &attr) : -EINVAL;
    if (link >= 0) {
        filter->links[filter->link_count++] = link;
    }
    return link >= 0 || link == -EEXIST ||
                   ioctl(event, PERF_EVENT_IOC_SET_BPF, filter->probes) == 0 || errno == EEXIST
               ? 0
               : -errno;
}
