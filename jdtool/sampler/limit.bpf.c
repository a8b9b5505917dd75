/*
 * Limits the events of uprobes of the processes that are sampled, whose stacks are copied; a
 * program that walks stacks (walk/walk.bpf.c) does so itself, as soon as there is one.
 *
 * The kernel lends its helpers to programs under the GPL: this file alone may be used under the
 * GPL, version 2, as well as under the project's own license.
 */
#include <linux/ptrace.h>

#include <linux/bpf.h>
#include <stdbool.h>
#include <stdint.h>

#include <bpf/bpf_helpers.h>

#include "jdtool/sampler/limit.bpf.h"
#include "jdtool/walk/shared.h"

typedef __u32 u32;
typedef __u64 u64;

char LICENSE[] SEC("license") = "GPL";

NEXT;

static __always_inline bool is_sampled(const struct limit_config *config)
{
    u32 pid = pid_namespace_running(&config->ours) >> 32;
    return config->is_for_all || (pid && bpf_map_lookup_elem(&processes, &pid));
}

SEC("kprobe")
int limited(void *ctx)
{
    const u32 zero = 0;
    const struct limit_config *config = bpf_map_lookup_elem(&limits, &zero);
    if (!config || !is_sampled(config)) {
        return 0;
    }
    bpf_tail_call(ctx, &next, 0);
    union walk_cookie probe = {.word = bpf_get_attach_cookie(ctx)};
    u64 weight = limit_weight(probe.limit);
    return weight && limit_tell(ctx, weight);
}
