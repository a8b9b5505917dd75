/*
 * Which events of a uprobe are kept, where they may come 100,000 times a second: of each event and
 * processor one of 1, 2, 4 and so on, by chance, so that no window of time has many more than
 * `most`. Twice as many are left out as soon as that many were kept, half as many behind a window
 * that had few. An event is kept by a chance that hangs on what was before it alone, and weighs as
 * much as one divided by that: so the sum of weights is as many as there were, whatever comes.
 *
 * What is walked has its weight with it (walked_head::period); before a copy, which the kernel
 * writes, a record of our own tells it (WALKED_WEIGHS).
 */
#include "jdtool/perf/walked.h"
#include "jdtool/sampler/limit_shared.h"
#include "jdtool/sampler/maps.bpf.h"

/* By processor: the event that weights, and what was walked, are written into. */
OUTPUT(output);

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct limit_config);
} limits SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 16); /* an event's number is below */
    __type(key, __u32);
    __type(value, struct limit_state);
} limit_states SEC(".maps");

/* How many events the one that is there stands for; 0: it is left out. Another thread may come
 * between: then the rate is not quite right, and the weight is. number 0: it is not limited. */
static __always_inline __u64 limit_weight(__u32 number)
{
    __u32 zero = 0;
    const struct limit_config *config = bpf_map_lookup_elem(&limits, &zero);
    struct limit_state *state = bpf_map_lookup_elem(&limit_states, &number);
    if (!number || !config || !config->most || !state) {
        return 1;
    }
    __u64 window = bpf_ktime_get_ns() >> LIMIT_WINDOW_SHIFT;
    __u64 past = window - state->window;
    __u32 shift = state->shift;
    if (past) {
        bool is_few = past > 1 || 2 * state->kept < config->most;
        shift = !is_few ? shift : shift > past ? shift - (__u32)past : 0;
        state->window = window;
        state->kept = 0;
        state->shift = shift;
    }
    shift &= 31;
    if (bpf_get_prandom_u32() & ((1u << shift) - 1)) {
        return 0;
    }
    state->kept++;
    if (state->kept >= config->most) {
        state->kept = config->most / 2;
        state->shift = shift < LIMIT_SHIFT_MAX ? shift + 1 : shift;
    }
    return 1u << shift;
}

/* Of the sample that the kernel writes next. False: there is no room, not for the sample either,
 * and that is counted there. */
static __always_inline bool limit_tell(void *ctx, __u64 weight)
{
    struct walked_head told = {.magic = WALKED_MAGIC, .flags = WALKED_WEIGHS, .period = weight};
    return weight == 1 ||
           bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, &told, sizeof told) == 0;
}
