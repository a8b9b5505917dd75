#include "jdtool/sampler/switches.h"

#include "jdtool/sampler/switches_shared.h"
#include "jdtool/sampler/tracepoints.h"
#include "jdtool/walk/libbpf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

LIBBPF_OBJECT(jd_switches_object);

enum { TRACEPOINTS = 3 };

static const struct {
    const char *event, *program;
} tracepoints[TRACEPOINTS] = {
    {"sched_switch", "on_switch"}, {"sched_waking", "on_waking"}, {"sched_wakeup", "on_wakeup"}};

struct switches {
    struct bpf_object *object;
    int events[TRACEPOINTS]; /* that the programs are on; 0: none yet */
};

/* An event of our own thread, which stays off: the program runs for everybody. */
static int run_at(struct switches *switches, uint32_t which, int64_t id)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
                                   .size = sizeof attr,
                                   .config = (uint64_t)id,
                                   .sample_period = 1,
                                   .disabled = 1};
    int event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (event < 0) {
        return -errno;
    }
    switches->events[which] = event;
    int program = bpf.program_fd(bpf.find_program(switches->object, tracepoints[which].program));
    return ioctl(event, PERF_EVENT_IOC_SET_BPF, program) == 0 ? 0 : -errno;
}

int switches_map(const struct switches *switches, const char *name)
{
    return bpf.map_fd(bpf.find_map(switches->object, name));
}

/* Among the sampler's events, of which the clock is number 0; 0: there is none. */
static uint16_t number_of(const struct sampler_options *options, enum sampler_follows what)
{
    uint16_t at = 0;
    while (at < options->event_count && options->events[at].follows != what) {
        at++;
    }
    return at < options->event_count ? at + 1 : 0;
}

static int configure(const struct switches *switches, const struct sampler_options *options,
                     const int64_t ids[TRACEPOINTS], bool is_for_all)
{
    const uint32_t zero = 0;
    struct switches_config config = {.is_for_all = is_for_all,
                                     .switched = (uint16_t)ids[0],
                                     .waking = (uint16_t)ids[1],
                                     .woken = (uint16_t)ids[2],
                                     .blocked_event = number_of(options, FOLLOWS_BLOCKED),
                                     .waking_event = number_of(options, FOLLOWS_WAKING)};
    (void)pid_namespace_read(&config.ours);
    return bpf.update(switches_map(switches, "configs"), &zero, &config, BPF_ANY);
}

static int start(struct switches *switches, const struct sampler_options *options, int processes)
{
    int64_t ids[TRACEPOINTS];
    int err = 0;
    for (uint32_t i = 0; i < TRACEPOINTS && !err; i++) {
        ids[i] = tracepoint_id("sched", tracepoints[i].event);
        err = ids[i] < 0 ? (int)ids[i] : 0;
    }
    if (!err && processes >= 0) {
        err = bpf.reuse_fd(bpf.find_map(switches->object, "processes"), processes);
    }
    err = err ? err : bpf.load(switches->object);
    err = err ? err : configure(switches, options, ids, processes < 0);
    for (uint32_t i = 0; i < TRACEPOINTS && !err; i++) {
        err = run_at(switches, i, ids[i]);
    }
    return err;
}

const char *switches_new(const struct sampler_options *options, int processes,
                         struct switches **out)
{
    struct switches *switches = calloc(1, sizeof *switches);
    *out = NULL;
    if (!switches) {
        return "there is no memory";
    }
    const char *lacks =
        libbpf_open(jd_switches_object, jd_switches_object_end, "jdperf_switch", &switches->object);
    int err = lacks ? 0 : start(switches, options, processes);
    if (lacks || err) {
        switches_free(switches);
        return lacks ? lacks
                     : libbpf_refusal(
                           err, "this kernel does not take the programs that follow the scheduler");
    }
    *out = switches;
    return NULL;
}

void switches_free(struct switches *switches)
{
    if (switches) {
        for (uint32_t i = 0; i < TRACEPOINTS && switches->events[i] > 0; i++) {
            close(switches->events[i]);
        }
        if (switches->object) {
            bpf.close(switches->object);
        }
        free(switches);
    }
}

int switches_hand_on(const struct switches *switches, int program)
{
    const uint32_t zero = 0;
    return bpf.update(switches_map(switches, "next"), &zero, &program, BPF_ANY);
}

uint64_t switches_left_out(const struct switches *switches)
{
    const uint32_t zero = 0;
    uint64_t count = 0;
    (void)bpf.look_up(switches_map(switches, "left_out"), &zero, &count);
    return count;
}

int switches_output(const struct switches *switches, enum sampler_follows what, uint32_t processor,
                    int event)
{
    static const char *const outputs[] = {[FOLLOWS_BLOCKED] = "blocked",
                                          [FOLLOWS_PREEMPTED] = "preempted",
                                          [FOLLOWS_WAKING] = "waking",
                                          [FOLLOWS_WOKEN] = "woken"};
    return bpf.update(switches_map(switches, outputs[what]), &processor, &event, BPF_ANY);
}
