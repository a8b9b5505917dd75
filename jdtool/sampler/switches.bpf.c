/*
 * Follows the threads of the processes that are sampled through the scheduler: when they give their
 * processor up, when they are woken, when they have one again, and whom they wake. What is
 * recorded is what the tracepoints of these moments tell, as if an event on each had written it.
 *
 * Events on the tracepoints themselves cannot be filtered by process: a program that says no hides
 * the tracepoint from everybody's events, and the kernel's other filters know no set of processes.
 * These programs always say yes, and write what they choose into events of ours
 * (PERF_COUNT_SW_BPF_OUTPUT), which have registers and copies of stacks like any other.
 *
 * The kernel lends its helpers to programs under the GPL: this file alone may be used under the
 * GPL, version 2, as well as under the project's own license.
 */
#include <linux/ptrace.h>

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf_helpers.h>

#include "jdtool/sampler/maps.bpf.h"
#include "jdtool/sampler/switches_shared.h"

typedef __u32 u32;
typedef __u64 u64;

char LICENSE[] SEC("license") = "GPL";

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct switches_config);
} configs SEC(".maps");

/* The threads that have no processor, by their number in the first PID namespace: process and
 * thread in ours. Not more than that are followed. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, SWITCHES_THREADS_MAX);
    __type(key, u32);
    __type(value, u64);
} away SEC(".maps");

/* How often one was not, for there were too many. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u64);
} left_out SEC(".maps");

/* By processor: what a program that walks stacks (walk/walk.bpf.c) is to write, and that program,
 * as soon as there is one. The kernel runs no two of these at a time on a processor. */
TOLD;
NEXT;

/* By processor: the events that are written. */
OUTPUT(blocked);
OUTPUT(preempted); /* and who is back */
OUTPUT(waking);
OUTPUT(woken);

/* What the tracepoints tell, from the head on, which programs may not read. */
struct switched_entry {
    u64 head;
    u64 prev_comm[2];
    u32 prev_pid, prev_prio;
    u64 prev_state;
    u64 next_comm[2];
    u32 next_pid, next_prio;
};
struct wake_entry {
    u64 head;
    u64 comm[2];
    u32 pid, prio;
    u64 processor; /* 4 bytes in the kernel's */
};

static __always_inline bool is_sampled(const struct switches_config *config, u64 ids)
{
    u32 pid = ids >> 32;
    return pid && (config->is_for_all || bpf_map_lookup_elem(&processes, &pid));
}

/* Has it written by the program that walks stacks. Returns only where there is none. */
static __always_inline void hand_on(void *ctx, u32 event, bool is_waking, const void *entry,
                                    u32 size)
{
    const u32 zero = 0;
    struct switches_told *t = bpf_map_lookup_elem(&told, &zero);
    if (t) {
        t->event = event;
        t->is_waking = is_waking;
        __builtin_memcpy(t->entry, entry, size);
        bpf_tail_call(ctx, &next, 0);
    }
}

/* False: there are too many. */
static __always_inline bool goes_away(u32 thread, u64 ids)
{
    const u32 zero = 0;
    if (bpf_map_update_elem(&away, &thread, &ids, BPF_ANY) == 0) {
        return true;
    }
    u64 *count = bpf_map_lookup_elem(&left_out, &zero);
    if (count) {
        __sync_fetch_and_add(count, 1);
    }
    return false;
}

SEC("tracepoint/sched/sched_switch")
int on_switch(struct switched_entry *ctx)
{
    const u32 zero = 0;
    const struct switches_config *config = bpf_map_lookup_elem(&configs, &zero);
    u32 next_pid = ctx->next_pid;
    u32 prev = ctx->prev_pid;
    const u64 *its = bpf_map_lookup_elem(&away, &next_pid);
    if (its) {
        struct switches_back back = {.tid = (u32)*its, .pid = *its >> 32};
        bpf_map_delete_elem(&away, &next_pid);
        bpf_perf_event_output(ctx, &preempted, BPF_F_CURRENT_CPU, &back, sizeof back);
    }
    u64 ids = config ? pid_namespace_running(&config->ours) : 0;
    u64 state = ctx->prev_state;
    bool is_blocked = state & 3; /* TASK_INTERRUPTIBLE, TASK_UNINTERRUPTIBLE */
    /* TASK_RUNNING; or TASK_REPORT_MAX, where the kernel itself was preempted. */
    bool is_preempted = state == 0 || state == 0x100;
    if (!config || !is_sampled(config, ids) || !(is_blocked || is_preempted) ||
        !goes_away(prev, ids)) {
        return 1;
    }
    struct switched_entry entry = {
        .head = config->switched | (u64)prev << 32,
        .prev_comm = {ctx->prev_comm[0], ctx->prev_comm[1]},
        .prev_pid = prev,
        .prev_prio = ctx->prev_prio,
        .prev_state = state,
        .next_comm = {ctx->next_comm[0], ctx->next_comm[1]},
        .next_pid = next_pid,
        .next_prio = ctx->next_prio,
    };
    if (is_blocked) {
        hand_on(ctx, config->blocked_event, false, &entry, sizeof entry);
        bpf_perf_event_output(ctx, &blocked, BPF_F_CURRENT_CPU, &entry, sizeof entry);
    } else {
        bpf_perf_event_output(ctx, &preempted, BPF_F_CURRENT_CPU, &entry, sizeof entry);
    }
    return 1;
}

static __always_inline struct wake_entry entry_of(const struct wake_entry *ctx, u64 type)
{
    return (struct wake_entry){
        .head = type | bpf_get_current_pid_tgid() << 32,
        .comm = {ctx->comm[0], ctx->comm[1]},
        .pid = ctx->pid,
        .prio = ctx->prio,
        .processor = *(const volatile u32 *)&ctx->processor,
    };
}

SEC("tracepoint/sched/sched_waking")
int on_waking(struct wake_entry *ctx)
{
    const u32 zero = 0;
    const struct switches_config *config = bpf_map_lookup_elem(&configs, &zero);
    if (config && is_sampled(config, pid_namespace_running(&config->ours))) {
        struct wake_entry entry = entry_of(ctx, config->waking);
        hand_on(ctx, config->waking_event, true, &entry, sizeof entry);
        bpf_perf_event_output(ctx, &waking, BPF_F_CURRENT_CPU, &entry, sizeof entry);
    }
    return 1;
}

/* Of who is woken its number in our PID namespace is told, by which readers know it. */
SEC("tracepoint/sched/sched_wakeup")
int on_wakeup(struct wake_entry *ctx)
{
    const u32 zero = 0;
    const struct switches_config *config = bpf_map_lookup_elem(&configs, &zero);
    u32 thread = ctx->pid;
    const u64 *its = bpf_map_lookup_elem(&away, &thread);
    if (config && its) {
        struct wake_entry entry = entry_of(ctx, config->woken);
        entry.pid = (u32)*its;
        bpf_perf_event_output(ctx, &woken, BPF_F_CURRENT_CPU, &entry, sizeof entry);
    }
    return 1;
}
