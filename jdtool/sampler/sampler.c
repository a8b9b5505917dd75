#include "jdtool/sampler/sampler.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/sampler/limiter.h"
#include "jdtool/sampler/present.h"
#include "jdtool/sampler/processors.h"
#include "jdtool/sampler/registers.h"
#include "jdtool/sampler/switches.h"
#include "jdtool/sampler/switches_shared.h"
#include "jdtool/sampler/threads.h"
#include "jdtool/sampler/tracepoints.h"
#include "jdtool/sampler/turn.h"
#include "jdtool/walk/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PROCESSORS_MAX 8192

/* Of a processor: 120 whole copies of stacks, or where they are taken seldom 30, which come in 0.3
 * s and more; and some thousand records of the side-band. The kernel clears all of it before
 * anything can begin. */
#define BUFFER_SIZE    ((size_t)8 << 20)
#define BUFFER_SELDOM  ((size_t)2 << 20)
#define SELDOM_HZ      100
#define BUFFERS_MAX    ((size_t)256 << 20) /* of all processors together */
#define SIDE_BAND_SIZE ((size_t)1 << 20)
#define HALVINGS_MAX   5 /* which fits perf_event_mlock_kb as it is by default */

/* Rings are read when one fills, or after so much of the time since the recording began, in ms:
 * ever less often, for whoever reads on is woken, too. What starts maps most of its files at first,
 * and is taken apart while it starts. */
#define TURN_PART  8
#define TURN_LEAST 20
#define TURN_MOST  1000
#define TURN_SHOWN 250 /* the most where somebody looks on */

/* What a sampled process forks starts, too: from then on as if the recording had begun so many ms
 * before that. */
#define TURN_FORKS 2000

/* What is forked is sampled within so many ms, however often that is. */
#define TURN_RESTS 5

/* Of what software counts one is kept of so many at first, and at most (follow_bursts). */
#define BURST_FIRST 64
#define BURST_MOST  (UINT32_C(1) << 20)
#define BURST_STEP  16 /* times as many at the next step, since a short time tells little */

struct sampler {
    const struct sampler_options *options;
    struct perf_event_attr events[TURN_EVENTS_MAX]; /* the clock first */
    struct perf_event_attr side_band;
    struct turn_rings *processors; /* by number */
    struct threads threads;        /* that have the events, where processors have none */
    struct limiter *limiter;       /* NULL: events are not limited */
    struct switches *switches;     /* NULL: nothing of the scheduler is recorded */
    bool *online;
    uint32_t processor_count;
    size_t buffer;            /* of the samples of a processor */
    unsigned halvings;        /* of all rings: who is not root may lock so much only */
    time_t looked;            /* when it was asked last which are on line */
    bool is_open;             /* who comes online now comes late */
    bool begun;               /* a recording */
    bool has_told;            /* of that */
    bool walks;               /* stacks, or failed to */
    uint64_t lost;            /* samples, of processors that have gone */
    uint64_t given, followed; /* samples, when bursts were followed last; and when that was */
    bool stopped;
    struct turn turn;
};

/* ---- Rights ---- */

/* An event of any processor at all. */
static int try_event(void)
{
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .disabled = 1,
    };
    unsigned here = 0;
    (void)syscall(SYS_getcpu, &here, NULL, NULL);
    int fd = (int)syscall(SYS_perf_event_open, &attr, -1, here, -1, PERF_FLAG_FD_CLOEXEC);
    int err = fd < 0 ? -errno : 0;
    descriptor_close(fd);
    return err;
}

/* Why records of them would not be known by our numbers; NULL: they are. */
static const char *lacks_numbers(const pid_t *processes, size_t count)
{
    struct stat ours;
    if (stat("/proc/self/ns/pid", &ours) != 0) {
        return "/proc is not there";
    }
    bool is_first = ours.st_ino == 0xEFFFFFFC; /* PROC_PID_INIT_INO: whose numbers are all's */
    for (size_t i = 0; i < count; i++) {
        char path[64];
        struct stat its;
        snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)processes[i]);
        if (stat(path, &its) != 0) {
            return "/proc tells nothing of the process";
        }
        if (!is_first && (ours.st_ino != its.st_ino || ours.st_dev != its.st_dev)) {
            return "the process is in another PID namespace, and we are not in the first";
        }
    }
    return NULL;
}

const char *sampler_lacks(const pid_t *processes, size_t count)
{
    return try_event() ? "sampling processors needs root or CAP_PERFMON"
                       : lacks_numbers(processes, count);
}

const char *sampler_lacks_by_thread(const pid_t *processes, size_t count)
{
    return threads_may_be_sampled(false) ? lacks_numbers(processes, count)
                                         : "threads may not be sampled either";
}

bool sampler_sees_kernel(void)
{
    return threads_may_be_sampled(true);
}

/* ---- Events ---- */

/* An event that counts nothing, of whose ring somebody is woken when so many bytes are in it. */
static struct perf_event_attr nothing(uint32_t wakeup)
{
    return (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = TURN_SAMPLE_TYPE,
        .sample_id_all = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = wakeup,
    };
}

/* What all events have in common whose records lie in the ring of samples: one clock, one form of
 * what stands behind them. */
static struct perf_event_attr in_samples_ring(const struct sampler *sampler)
{
    return (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .sample_id_all = 1,
        .disabled = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)((sampler->buffer >> sampler->halvings) / 4),
        .read_format = ring_read_format(),
    };
}

/* The values of a sample, and where they are from. */
static void describe_stack(struct perf_event_attr *attr, struct turn_event *look,
                           unsigned stack_size)
{
    bool copies = look->has_stack && stack_size > 0;
    look->has_copies = copies;
    attr->sample_type =
        TURN_SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD |
        (look->has_stack ? PERF_SAMPLE_CALLCHAIN : UINT64_C(0)) |
        (look->has_raw ? PERF_SAMPLE_RAW : UINT64_C(0)) |
        (copies ? PERF_SAMPLE_REGS_USER | (uint64_t)PERF_SAMPLE_STACK_USER : UINT64_C(0));
    attr->sample_regs_user = copies ? REGISTERS : 0;
    attr->sample_stack_user = copies ? stack_size : 0;
    attr->exclude_callchain_user = copies;
}

/* May come without bound: exceptions and deoptimisations, by probes in libjvm.so. Events of the
 * agent it limits itself. */
static bool is_limited(const struct sampler_event *event)
{
    return event->has_stack && event->follows == FOLLOWS_NOTHING &&
           (event->arguments == PROBE_NOTHING || event->arguments == PROBE_DEOPT);
}

/* The recording's own probes, each time that one is passed, and what is told of the scheduler. */
static int describe_tracepoint(struct sampler *sampler, uint32_t at)
{
    const struct sampler_event *event = &sampler->options->events[at - 1];
    struct turn_event *look = &sampler->turn.events[at];
    int64_t id = tracepoint_id(event->group, event->event);
    struct perf_event_attr *attr = &sampler->events[at];
    *attr = in_samples_ring(sampler);
    attr->type = PERF_TYPE_TRACEPOINT;
    attr->config = (uint64_t)id;
    attr->sample_period = 1;
    *look = (struct turn_event){.has_stack = event->has_stack,
                                .has_raw = true,
                                .is_limited = is_limited(event),
                                .is_of_another = event->follows == FOLLOWS_WOKEN,
                                .has_backs = event->follows == FOLLOWS_PREEMPTED};
    describe_stack(attr, look, event->stack_size);
    return id < 0 ? (int)id : 0;
}

/* A process that is forked is sampled from when we hear of it: where nothing tells us of those of
 * sampled processes alone, we are woken by the forks of all, and by what they map. */
static bool hears_forks(const struct sampler *sampler)
{
    const struct turn *turn = &sampler->turn;
    return !turn->is_for_all && !turn->is_for_each && turn->filter.forks.told < 0;
}

static int describe_events(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    int err = 0;
    sampler->turn.events->has_stack = true;
    struct perf_event_attr *clock = sampler->events;
    *clock = in_samples_ring(sampler);
    clock->type = options->event.type;
    clock->config = options->event.config;
    clock->freq = options->period == 0;
    clock->sample_freq = options->period ? options->period : options->frequency;
    if (counter_is_software(&options->event)) { /* the filter thins them (follow_bursts) */
        clock->freq = 0;
        clock->sample_period = 1;
    }
    clock->exclude_guest = 1;
    clock->exclude_hv = 1;
    clock->exclude_idle = counter_is_timer(&options->event); /* arm64's counters refuse it */
    clock->precise_ip = options->by_thread ? 0 : options->event.precise & 3;
    clock->exclude_kernel = options->is_user_alone || options->event.exclude_kernel;
    clock->exclude_user = options->event.exclude_user;
    describe_stack(clock, sampler->turn.events, options->stack_size);
    for (uint32_t i = 1; i < sampler->turn.event_count && !err; i++) {
        err = describe_tracepoint(sampler, i);
    }
    /*
     * Without build_id: the kernel (5.12 to at least 6.18) leaves PERF_RECORD_MISC_MMAP_BUILD_ID
     * set for whoever hears of the mapping next (perf_event_mmap_output restores the header's size
     * and type, not misc), and perf 6.1 crashes at an inode that claims to be a build-id. An event
     * of all processes would end every recording on the machine so.
     */
    struct perf_event_attr *side_band = &sampler->side_band;
    *side_band =
        nothing(hears_forks(sampler) ? 1 : (uint32_t)((SIDE_BAND_SIZE >> sampler->halvings) / 4));
    side_band->disabled = side_band->mmap = side_band->mmap2 = 1;
    side_band->comm = side_band->comm_exec = side_band->task = 1;
    if (options->by_thread) { /* they are opened as they count */
        clock->sample_freq = (uint64_t)options->frequency * options->by_thread;
        clock->inherit = sampler->side_band.inherit = 1;
        clock->disabled = sampler->side_band.disabled = 0;
    }
    return err;
}

/* Of a process' (0: ours, -1: all) on a processor. */
static int open_event_of(struct perf_event_attr *attr, pid_t process, int processor)
{
    for (;;) { /* as precise as the processor can */
        int fd =
            (int)syscall(SYS_perf_event_open, attr, process, processor, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0 || errno == ENODEV || errno == ENXIO || !attr->precise_ip) {
            return fd < 0 ? -errno : fd;
        }
        attr->precise_ip--;
    }
}

static int open_event(struct perf_event_attr *attr, int processor)
{
    return open_event_of(attr, -1, processor);
}

static int add_ring(struct perf_event_attr *attr, pid_t process, int processor, struct ring *ring,
                    size_t size)
{
    int fd = open_event_of(attr, process, processor);
    int err = fd < 0 ? fd : ring_open(ring, fd, size);
    if (err && fd >= 0) {
        close(fd);
    }
    return err;
}

static void close_ring(struct ring *ring)
{
    if (ring->page) {
        ring_close(ring);
        close(ring->event);
    }
}

static int switch_ring(const struct ring *ring, unsigned long request)
{
    return !ring->page || ioctl(ring->event, request, 0) == 0 ? 0 : -errno;
}

static void close_processor(struct turn_rings *rings)
{
    close_ring(&rings->side_band);
    close_ring(&rings->samples);
    if (rings->walked_event > 0) {
        close(rings->walked_event);
    }
    for (uint32_t i = 1; i < TURN_EVENTS_MAX && rings->events[i] > 0; i++) {
        close(rings->events[i]);
    }
    *rings = (struct turn_rings){0};
}

/* Where walks write, and who limits events: it lies in the ring of the samples. */
static int add_walked(const struct sampler *sampler, uint32_t processor, struct turn_rings *rings)
{
    const struct walker *walker = sampler->turn.walker;
    const struct limiter *limiter = sampler->limiter;
    bool is_loaded = walker && walker_program(walker, WALK_OF_CLOCK) >= 0;
    if (rings->walked_event > 0 || !(limiter || is_loaded)) {
        return 0;
    }
    struct perf_event_attr attr = {
        .size = sizeof attr,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_BPF_OUTPUT,
        .sample_type = TURN_SAMPLE_TYPE | PERF_SAMPLE_RAW,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .read_format = ring_read_format(),
    };
    int fd = open_event(&attr, (int)processor);
    if (fd < 0) {
        return fd;
    }
    rings->walked_event = fd;
    bool is = ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings->samples.event) == 0 &&
              ioctl(fd, PERF_EVENT_IOC_ID, &rings->walked_id) == 0;
    return !is       ? -errno
           : limiter ? limiter_output(limiter, processor, fd)
                     : walker_output(walker, processor, fd);
}

/* The kernel's number of a processor's event; the first processor's stands for all of them. */
static int take_id(struct turn *turn, struct turn_rings *rings, uint32_t at, int event)
{
    if (ioctl(event, PERF_EVENT_IOC_ID, &rings->ids[at]) != 0) {
        return -errno;
    }
    turn->events[at].id = turn->events[at].id ? turn->events[at].id : rings->ids[at];
    return 0;
}

/* What it tells lies in the ring of the clock's samples. */
static int add_event(struct sampler *sampler, uint32_t processor, struct turn_rings *rings,
                     uint32_t at)
{
    struct turn *turn = &sampler->turn;
    const struct sampler_event *event = &sampler->options->events[at - 1];
    const char *filter = event->follows ? NULL : event->filter;
    struct perf_event_attr attr = sampler->events[at];
    if (event->follows) { /* is written by a program, as if it were the tracepoint's */
        attr.type = PERF_TYPE_SOFTWARE;
        attr.config = PERF_COUNT_SW_BPF_OUTPUT;
    }
    int fd = open_event(&attr, (int)processor);
    if (fd < 0) {
        return fd;
    }
    rings->events[at] = fd;
    if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, rings->samples.event) != 0 ||
        (filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) != 0)) {
        return -errno;
    }
    int err = take_id(turn, rings, at, fd);
    if (!err && event->follows) {
        return switches_output(sampler->switches, event->follows, processor, fd);
    }
    const union walk_cookie cookie = {.event = turn->events[at].has_copies ? (uint16_t)at : 0,
                                      .type = (uint16_t)attr.config,
                                      .arguments = (uint16_t)event->arguments,
                                      .limit = turn->events[at].is_limited ? (uint16_t)at : 0};
    bool reads_cookie = turn->walker || sampler->limiter;
    return err || turn->filter.probes < 0
               ? err
               : filter_apply_to_probe(&turn->filter, fd, reads_cookie ? cookie.word : 0);
}

/* A ring of that processor that is of no thread, which could end: an event of ours that tells
 * nothing, like the one that is given. */
static int add_ring_of_ours(const struct perf_event_attr *like, int processor, struct ring *ring,
                            size_t size)
{
    struct perf_event_attr attr = nothing(like->wakeup_watermark);
    return add_ring(&attr, 0, processor, ring, size);
}

/* The events of a processor on threads: what they lie in is told before their samples. */
static int add_threads(struct sampler *sampler, int processor, struct turn_rings *rings)
{
    const struct sampler_options *options = sampler->options;
    struct threads *threads = &sampler->threads;
    int err = add_ring_of_ours(&sampler->side_band, processor, &rings->side_band,
                               SIDE_BAND_SIZE >> sampler->halvings);
    err = err ? err
              : add_ring_of_ours(sampler->events, processor, &rings->samples,
                                 sampler->buffer >> sampler->halvings);
    for (size_t i = 0; i < options->process_count && !err; i++) {
        pid_t process = options->processes[i];
        err = threads_add(threads, process, processor, &sampler->side_band, rings->side_band.event);
        err = err ? err
                  : threads_add(threads, process, processor, sampler->events, rings->samples.event);
    }
    return err ? err : take_id(&sampler->turn, rings, 0, rings->samples.event);
}

/* Its events, and who is sampled by them. */
static int add_all(struct sampler *sampler, uint32_t processor, struct turn_rings *rings)
{
    int err = add_ring(&sampler->side_band, -1, (int)processor, &rings->side_band,
                       SIDE_BAND_SIZE >> sampler->halvings);
    err = err ? err
              : add_ring(sampler->events, -1, (int)processor, &rings->samples,
                         sampler->buffer >> sampler->halvings);
    err = err ? err : take_id(&sampler->turn, rings, 0, rings->samples.event);
    err = err ? err : add_walked(sampler, processor, rings);
    for (uint32_t i = 1; i < sampler->turn.event_count && !err; i++) {
        err = add_event(sampler, processor, rings, i);
    }
    if (!err && sampler->turn.filter.program >= 0) {
        err = filter_apply(&sampler->turn.filter, rings->samples.event);
    }
    bool is_early = sampler->options->go > 0 && !sampler->begun;
    return err || is_early ? err : switch_ring(&rings->side_band, PERF_EVENT_IOC_ENABLE);
}

/* Its samples count from here on; what they lie in is told before them. */
static int add_processor(struct sampler *sampler, uint32_t processor)
{
    struct turn_rings *rings = &sampler->processors[processor];
    int err = sampler->options->by_thread ? add_threads(sampler, (int)processor, rings)
                                          : add_all(sampler, processor, rings);
    if (err) {
        close_processor(rings);
    }
    return err;
}

/* Samples of a processor, where the kernel counts them. */
static uint64_t lost_by(const struct turn_rings *rings)
{
    uint64_t lost = rings->samples.page ? ring_lost(rings->samples.event) : 0;
    lost += rings->walked_event > 0 ? ring_lost(rings->walked_event) : 0;
    for (uint32_t i = 1; i < TURN_EVENTS_MAX && rings->events[i] > 0; i++) {
        lost += ring_lost(rings->events[i]);
    }
    return lost;
}

static int switch_processor(const struct turn_rings *rings, unsigned long request)
{
    int err = switch_ring(&rings->samples, request);
    for (uint32_t i = 1; i < TURN_EVENTS_MAX && rings->events[i] > 0 && !err; i++) {
        err = ioctl(rings->events[i], request, 0) == 0 ? 0 : -errno;
    }
    return err;
}

static int switch_samples(const struct sampler *sampler, unsigned long request)
{
    int err = 0;
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        err = switch_processor(&sampler->processors[i], request);
    }
    return err;
}

/* One that comes while others are sampled; without it the recording goes on. */
static int add_late(struct sampler *sampler, uint32_t processor)
{
    struct turn_rings *rings = &sampler->processors[processor];
    int err = rings->is_refused ? 0 : add_processor(sampler, processor);
    err = err || !sampler->begun ? err : switch_processor(rings, PERF_EVENT_IOC_ENABLE);
    if (err && err != -ENODEV && err != -ENXIO) {
        rings->is_refused = true;
        error_message("processor %u came online and is not sampled: %s", (unsigned)processor,
                      strerror(-err));
    }
    return 0;
}

/* An event ends with its processor, and does not begin again when that comes back. What it has
 * written was read. */
static int look_at_processors(struct sampler *sampler)
{
    int err = 0;
    if (!processors_read(sampler->online, sampler->processor_count)) {
        memset(sampler->online, true, sampler->processor_count * sizeof *sampler->online);
    }
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        struct turn_rings *rings = &sampler->processors[i];
        bool is_open = rings->samples.page != NULL;
        if (!sampler->online[i]) {
            sampler->lost += lost_by(rings);
            close_processor(rings);
        } else if (!is_open && sampler->is_open) {
            err = add_late(sampler, i);
        } else if (!is_open) {
            err = add_processor(sampler, i);
            err = err == -ENODEV || err == -ENXIO ? 0 : err; /* it has just gone */
        }
    }
    sampler->looked = time(NULL);
    return err;
}

static void close_rings(struct sampler *sampler)
{
    for (uint32_t i = 0; sampler->processors && i < sampler->processor_count; i++) {
        close_processor(&sampler->processors[i]);
    }
    threads_free(&sampler->threads);
}

/* The programs on the scheduler's tracepoints and on probes run until these are closed, and put
 * walked stacks into an event of their own. Left enabled, it would tell of waits that begin, and
 * nobody of their ends, for as long as the rings are read. */
static void disable_all(const struct sampler *sampler)
{
    for (uint32_t i = 0; i < sampler->processor_count; i++) {
        int walked = sampler->processors[i].walked_event;
        if (walked > 0) {
            (void)ioctl(walked, PERF_EVENT_IOC_DISABLE, 0);
        }
    }
    (void)switch_samples(sampler, PERF_EVENT_IOC_DISABLE);
    threads_disable(&sampler->threads);
    for (uint32_t i = 0; i < sampler->processor_count; i++) {
        (void)switch_ring(&sampler->processors[i].side_band, PERF_EVENT_IOC_DISABLE);
    }
}

/* Counters are fewer than who wants them: for how much of the time we had ours. */
static void tell_multiplexed(const struct sampler *sampler)
{
    double enabled = 0;
    double running = 0;
    for (uint32_t i = 0; i < sampler->processor_count; i++) {
        const struct ring *ring = &sampler->processors[i].samples;
        struct ring_counts counts;
        if (ring->page && ring_read(ring->event, &counts)) {
            enabled += (double)counts.enabled;
            running += (double)counts.running;
        }
    }
    if (running < 0.98 * enabled) {
        error_message("other programs use the hardware counters, too: %s was sampled only "
                      "%.0f %% of the time (use -e cpu-clock)",
                      sampler->options->event.name, 100 * running / enabled);
    }
}

/* What was lost behind the last record of a ring its ring does not tell. */
static void tell_lost(struct sampler *sampler)
{
    uint64_t lost = sampler->lost + threads_lost(&sampler->threads);
    for (uint32_t i = 0; i < sampler->processor_count; i++) {
        lost += lost_by(&sampler->processors[i]);
    }
    turn_tell_lost(&sampler->turn, lost);
}

/* What was left out, and why. */
static void tell_left_out(const struct sampler *sampler)
{
    uint64_t waits = sampler->switches ? switches_left_out(sampler->switches) : 0;
    if (sampler->turn.left_out) {
        error_message("%u processes were not sampled: no more than %d may be at a time",
                      (unsigned)sampler->turn.left_out, FILTER_PROCESSES_MAX);
    }
    if (waits) {
        error_message("%" PRIu64 " waits were not recorded: of no more than %d threads they are at "
                      "a time",
                      waits, SWITCHES_THREADS_MAX);
    }
}

/* ---- From beginning to end ---- */

static int tell_failure(const char *what, int err)
{
    return failed_to(err, "%s", what);
}

/* Whether who reads is waited for when he has no room. */
static void wait_for_reader(const struct sampler *sampler, bool does)
{
    int out = sampler->turn.pipe.fd;
    int flags = fcntl(out, F_GETFL);
    (void)fcntl(out, F_SETFL, does ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

/* How many events tell of the scheduler; the others are probes. */
static uint32_t count_following(const struct sampler_options *options)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < options->event_count; i++) {
        count += options->events[i].follows != FOLLOWS_NOTHING;
    }
    return count;
}

static bool has_probes(const struct sampler_options *options)
{
    return count_following(options) < options->event_count;
}

static int load_filter(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    struct turn *turn = &sampler->turn;
    int err = 0;
    turn->is_for_all = !options->processes;
    bool is_software = counter_is_software(&options->event);
    turn->one_in = !is_software      ? options->by_thread
                   : options->period ? options->period
                                     : BURST_FIRST;
    if (!turn->is_for_all && !options->by_thread) {
        err = filter_load(&turn->filter, (options->walker ? FILTER_HANDS_ON : FILTER_PLAIN) |
                                             (has_probes(options) ? FILTER_FOR_PROBES : 0U));
    }
    if (options->walker && err) {
        walker_lacks(options->walker, "that needs root, or CAP_BPF and CAP_PERFMON");
    } else if (options->walker) {
        turn->walker = options->walker;
        turn->compares = walker_compares(options->walker);
    }
    turn->is_for_each = options->is_for_each;
    if (!err && !turn->is_for_each) {
        (void)filter_tell_forks(&turn->filter);
    }
    turn->reads_no_files = options->reads_no_files;
    if (err && is_software) { /* each of each process would come here */
        return tell_failure("load a BPF program that filters samples", err);
    }
    if (err) {
        error_message("failed to load a BPF program that filters samples (%s): dropping those of "
                      "other processes later costs more. CAP_BPF or root avoids this",
                      strerror(-err));
        err = 0;
    }
    for (size_t i = 0; options->processes && i < options->process_count && !err; i++) {
        err = turn_sample_process(turn, (uint32_t)options->processes[i], true);
    }
    return err ? tell_failure("filter samples", err) : 0;
}

/* What may come without bound, and what is to be done about it. */
static void limit_events(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    bool is_any = false;
    for (uint32_t i = 0; i < options->event_count; i++) {
        is_any |= is_limited(&options->events[i]);
    }
    const char *lacks = is_any ? limiter_new(&sampler->turn.filter, &sampler->limiter) : NULL;
    if (lacks) {
        info_message("each exception is recorded, however many there are: %s", lacks);
    }
}

/* With who walks. */
static void share_maps(const struct sampler *sampler)
{
    const struct switches *switches = sampler->switches;
    struct walk_maps maps = {.processes = sampler->turn.filter.processes,
                             .has_probes = has_probes(sampler->options)};
    const struct limiter *limiter = sampler->limiter;
    if (limiter) {
        maps.output = limiter_map(limiter, "output");
        maps.limits = limiter_map(limiter, "limits");
        maps.limit_states = limiter_map(limiter, "limit_states");
    }
    if (switches) {
        maps.told = switches_map(switches, "told");
        maps.blocked = switches_map(switches, "blocked");
        maps.waking = switches_map(switches, "waking");
    }
    walker_shares(sampler->turn.walker, &maps);
}

/* The events, of which none samples. */
static int open_all(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    struct turn *turn = &sampler->turn;
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    sampler->processor_count = processors < PROCESSORS_MAX ? (uint32_t)processors : PROCESSORS_MAX;
    size_t share = BUFFERS_MAX / sampler->processor_count;
    bool is_seldom = !options->period && options->frequency <= SELDOM_HZ &&
                     options->event_count == 0 && !options->by_thread;
    size_t wanted = is_seldom ? BUFFER_SELDOM : BUFFER_SIZE;
    sampler->buffer = options->buffer ? options->buffer : share < wanted ? share : wanted;
    turn->event_count = options->event_count + 1;
    sampler->processors = calloc(sampler->processor_count, sizeof *sampler->processors);
    sampler->online = calloc(sampler->processor_count, sizeof *sampler->online);
    if (!sampler->processors || !sampler->online) {
        return tell_failure("sample", -ENOMEM);
    }
    int err = load_filter(sampler);
    if (err) {
        return err;
    }
    limit_events(sampler);
    const char *lacks = count_following(options)
                            ? switches_new(options, turn->filter.processes, &sampler->switches)
                            : NULL;
    if (lacks) {
        error_message("failed to follow the scheduler: %s", lacks);
        return -ENOTSUP;
    }
    if (turn->walker) {
        share_maps(sampler);
    }
    err = describe_events(sampler);
    err = err ? err : look_at_processors(sampler);
    while (err == -EPERM && sampler->halvings < HALVINGS_MAX) {
        close_rings(sampler);
        sampler->halvings++;
        err = describe_events(sampler);
        err = err ? err : look_at_processors(sampler);
    }
    err = err || turn->events->id ? err : -ENODEV;
    sampler->is_open = !err;
    return err ? tell_failure("open the processors' events", err) : 0;
}

static void tell_process(void *context, uint32_t pid)
{
    struct sampler *sampler = context;
    const struct sampler_options *options = sampler->options;
    enum present_by by = options->is_held          ? PRESENT_BY_PATH
                         : options->reads_no_files ? PRESENT_BY_INODE
                                                   : PRESENT_BY_BUILD_ID;
    sampler->turn.carries |= present_process(&sampler->turn.pipe, (pid_t)pid, by);
}

/* What the recording is of. With what comes in the side-band's rings, and the build-ids that we put
 * there. */
static void describe(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    struct turn *turn = &sampler->turn;
    struct perf_pipe_event told[TURN_EVENTS_MAX];
    char names[TURN_EVENTS_MAX][128];
    for (uint32_t i = 0; i < turn->event_count; i++) {
        const struct sampler_event *event = i ? &options->events[i - 1] : NULL;
        snprintf(names[i], sizeof names[i], "%s%s%s", event ? event->group : "", event ? ":" : "",
                 event ? event->event : options->event.name);
        told[i] = (struct perf_pipe_event){sampler->events[i], names[i], turn->events[i].id};
    }
    struct perf_event_attr *attr = &told->attr;
    if (attr->freq) {
        attr->sample_freq = options->frequency; /* of what is given on */
    }
    attr->mmap = attr->mmap2 = attr->comm = attr->comm_exec = attr->task = 1;
    attr->context_switch = sampler->switches != NULL;
    attr->build_id = !options->reads_no_files;
    perf_pipe_describe(&turn->pipe, told, turn->event_count, options->command);
    if (options->event_count) {
        tracepoints_describe(&turn->pipe, options->events, options->event_count);
    }
}

/* Who waits for it reads processes' clocks then, against which samples are held. */
static bool tell(const struct sampler *sampler)
{
    return write(sampler->options->begun, "", 1) == 1;
}

/* What is sampled from here on, and all that was there before. */
static int begin(struct sampler *sampler)
{
    struct turn *turn = &sampler->turn;
    int err = 0;
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        err = switch_ring(&sampler->processors[i].side_band, PERF_EVENT_IOC_ENABLE);
    }
    err = err ? err : switch_samples(sampler, PERF_EVENT_IOC_ENABLE);
    if (err) {
        return tell_failure("open the processors' events", err);
    }
    /* Not of who is held: he would run on while we read what he has mapped. */
    if (sampler->options->go > 0 && !sampler->options->is_held) {
        sampler->has_told = tell(sampler);
    }
    wait_for_reader(sampler, false); /* samples are taken already */
    describe(sampler);
    present_kernel(&turn->pipe);
    if (turn->is_for_all) {
        present_all(&turn->pipe);
    }
    turn_each_process(turn, tell_process, sampler);
    err = perf_pipe_flush(&turn->pipe);
    turn->begun = sampler->followed = clock_ns(CLOCK_MONOTONIC);
    return err;
}

static void notice(void *context, uint32_t pid)
{
    walker_notice(context, (pid_t)pid);
}

/* Begins to walk stacks when enough were copied, or these may lack callers in the heap, and does so
 * as soon as that can be. */
static void go_on_to_walk(struct sampler *sampler)
{
    struct turn *turn = &sampler->turn;
    if (walker_begins(turn->walker, turn->carries ? UINT64_MAX : turn->copied)) {
        turn_each_process(turn, notice, turn->walker);
    }
    int program = sampler->walks ? -1 : walker_program(turn->walker, WALK_OF_CLOCK);
    if (program < 0) {
        return;
    }
    int err = 0;
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        struct turn_rings *rings = &sampler->processors[i];
        err = rings->samples.page ? add_walked(sampler, i, rings) : 0;
    }
    err =
        err ? err
            : filter_hand_on(&turn->filter, program, walker_program(turn->walker, WALK_OF_PROBES));
    if (!err && sampler->switches) {
        err = switches_hand_on(sampler->switches, walker_program(turn->walker, WALK_OF_SWITCHES));
    }
    sampler->walks = true;
    if (err) {
        (void)tell_failure("walk stacks, which are copied", err);
    }
}

/*
 * What software counts comes in bursts (counter.h). Of all events the filter keeps one in so many,
 * by chance, which weighs as much as these, so that the sum is as many as there were. By the last
 * turn it is decided how many, so that a second has about as many samples as the frequency.
 */
static void follow_bursts(struct sampler *sampler)
{
    struct turn *turn = &sampler->turn;
    const struct sampler_options *options = sampler->options;
    uint64_t time = clock_ns(CLOCK_MONOTONIC);
    double seconds = (double)(time - sampler->followed) / 1e9;
    double kept = (double)(turn->given - sampler->given);
    double wanted = (double)options->frequency * sampler->processor_count * seconds;
    uint32_t one_in = turn->one_in;
    if (kept > 2 * wanted && kept >= 8) {
        double times = kept < BURST_STEP * wanted ? kept / wanted : BURST_STEP;
        one_in = one_in < BURST_MOST ? (uint32_t)(one_in * times) : BURST_MOST;
    } else if (2 * kept < wanted && wanted >= 8) {
        one_in = one_in > 1 ? one_in / 2 : 1;
    } else if (wanted < 8) {
        return; /* too short to tell */
    }
    if (one_in != turn->one_in) {
        turn_thin(turn, one_in);
    }
    sampler->followed = time;
    sampler->given = turn->given;
}

static int take_turn(struct sampler *sampler)
{
    struct turn *turn = &sampler->turn;
    if (turn->walker && !sampler->stopped) {
        go_on_to_walk(sampler);
    }
    uint64_t copied = turn->copied;
    int err = turn_take(turn, sampler->processors, sampler->processor_count);
    if (turn->walker && turn->copied > copied) {
        walker_copied(turn->walker);
    }
    if (counter_is_software(&sampler->options->event) && !sampler->options->period) {
        follow_bursts(sampler);
    }
    if (time(NULL) != sampler->looked && !sampler->stopped) {
        int looked = look_at_processors(sampler);
        err = err ? err : looked;
    }
    return err;
}

/* ---- In a process that does other things, too ---- */

int sampler_new(const struct sampler_options *options, struct sampler **out)
{
    struct sampler *sampler = calloc(1, sizeof *sampler);
    *out = NULL;
    if (!sampler) {
        return tell_failure("sample", -ENOMEM);
    }
    sampler->options = options;
    turn_new(&sampler->turn, -1);
    int err = open_all(sampler);
    if (err) {
        sampler_free(sampler);
        return err;
    }
    *out = sampler;
    return 0;
}

void sampler_free(struct sampler *sampler)
{
    if (sampler) {
        close_rings(sampler);
        switches_free(sampler->switches);
        limiter_free(sampler->limiter);
        free(sampler->processors);
        free(sampler->online);
        turn_free(&sampler->turn);
        free(sampler);
    }
}

int sampler_begin(struct sampler *sampler, int out)
{
    struct perf_pipe *pipe = &sampler->turn.pipe;
    perf_pipe_free(pipe);
    *pipe = (struct perf_pipe){.fd = out, .err = out < 0 ? -EPIPE : 0};
    sampler->begun |= out >= 0;
    return out < 0 ? 0 : begin(sampler);
}

int sampler_add(struct sampler *sampler, pid_t process)
{
    int err = turn_sample_process(&sampler->turn, (uint32_t)process, true);
    if (!err) {
        tell_process(sampler, (uint32_t)process);
    }
    return err;
}

int sampler_remove(struct sampler *sampler, pid_t process)
{
    (void)take_turn(sampler); /* its last samples */
    present_no_more(&sampler->turn.pipe, process, clock_ns(CLOCK_MONOTONIC));
    return turn_sample_process(&sampler->turn, (uint32_t)process, false);
}

int sampler_thin(struct sampler *sampler, pid_t process, uint32_t one_in)
{
    return turn_thin_process(&sampler->turn, (uint32_t)process, one_in);
}

uint32_t sampler_descriptors(const struct sampler *sampler, struct pollfd *list)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sampler->processor_count; i++) {
        const struct turn_rings *rings = &sampler->processors[i];
        if (rings->samples.page) {
            list[count++] = (struct pollfd){.fd = rings->side_band.event, .events = POLLIN};
            list[count++] = (struct pollfd){.fd = rings->samples.event, .events = POLLIN};
        }
    }
    if (perf_pipe_waiting(&sampler->turn.pipe) > 0) {
        list[count++] = (struct pollfd){.fd = sampler->turn.pipe.fd, .events = POLLOUT};
    }
    return count;
}

uint32_t sampler_descriptors_max(const struct sampler *sampler)
{
    return 2 * sampler->processor_count + 1;
}

int sampler_turn(struct sampler *sampler)
{
    return take_turn(sampler);
}

void sampler_stop(struct sampler *sampler)
{
    sampler->stopped = true;
    disable_all(sampler);
}

size_t sampler_waiting(const struct sampler *sampler)
{
    return perf_pipe_waiting(&sampler->turn.pipe);
}

/* ---- In a process of its own ---- */

/* False: it is to end before it has begun, or who would have said so has gone. */
static bool wait_for_go(int go, int signals)
{
    char said[64];
    struct pollfd both[] = {{.fd = signals, .events = POLLIN}, {.fd = go, .events = POLLIN}};
    while (poll(both, 2, -1) < 0 && errno == EINTR) {
    }
    return !both[0].revents && read(go, said, sizeof said) > 0;
}

/* Processes that are to be sampled from now on. When whoever names them has gone, nobody does. */
static void take_more(struct sampler *sampler, struct pollfd *polled)
{
    pid_t processes[64];
    ssize_t size = read(polled->fd, processes, sizeof processes);
    polled->revents = 0;
    if (size <= 0) {
        polled->fd = -1;
    }
    for (size_t i = 0; size > 0 && i < (size_t)size / sizeof *processes; i++) {
        (void)sampler_add(sampler, processes[i]);
    }
}

/* What is waited for besides the rings: signals, more processes, forks. */
enum { POLLED_OURS = 3 };

/* Until a turn is due, for it is time or a buffer fills, or a process may have been forked. True:
 * the turn. */
static bool wait_for_turn(const struct sampler *sampler, struct pollfd *polled, uint64_t due)
{
    uint32_t count = sampler_descriptors(sampler, &polled[POLLED_OURS]);
    uint64_t time = clock_ns(CLOCK_MONOTONIC);
    int wait = due > time ? (int)((due - time) / 1000000) + 1 : 0;
    if (poll(polled, count + POLLED_OURS, wait) == 0) {
        return true;
    }
    bool is_due = clock_ns(CLOCK_MONOTONIC) >= due;
    for (uint32_t i = 0; i < count && !is_due; i++) {
        bool is_side_band = i % 2 == 0 && i + 1 < count; /* else the pipe, which is the last */
        is_due = !is_side_band && polled[POLLED_OURS + i].revents;
    }
    return is_due || turn_side_band_fills(sampler->processors, sampler->processor_count);
}

/* When the turn behind the one of that time is due. */
static uint64_t turn_due(const struct sampler *sampler, uint64_t time)
{
    const uint64_t ms = 1000000;
    const struct turn *turn = &sampler->turn;
    uint64_t since =
        turn->forked > turn->begun + TURN_FORKS * ms ? turn->forked - TURN_FORKS * ms : turn->begun;
    uint64_t wanted = time > since ? (time - since) / ms / TURN_PART : 0;
    uint64_t most = sampler->options->is_for_each ? TURN_SHOWN : TURN_MOST;
    wanted = wanted < TURN_LEAST ? TURN_LEAST : wanted < most ? wanted : most;
    return time + wanted * ms;
}

static int sample(struct sampler *sampler, int signals)
{
    size_t most = (size_t)sampler_descriptors_max(sampler) + POLLED_OURS;
    struct pollfd *polled = calloc(most, sizeof *polled);
    if (!polled) {
        return tell_failure("sample", -ENOMEM);
    }
    int err = 0;
    int more = sampler->options->more;
    bool is_due = true;
    uint64_t last = 0;
    polled[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    polled[1] = (struct pollfd){.fd = more > 0 ? more : -1, .events = POLLIN};
    polled[2] = (struct pollfd){.fd = sampler->turn.filter.forks.told, .events = POLLIN};
    while (!err && !polled[0].revents) {
        filter_forks_seen(&sampler->turn.filter); /* before we look for them */
        if (is_due) {
            last = clock_ns(CLOCK_MONOTONIC);
            err = take_turn(sampler);
        } else {
            turn_take_forks(&sampler->turn, sampler->processors, sampler->processor_count);
        }
        if (polled[1].revents) {
            take_more(sampler, &polled[1]);
        }
        if (poll(polled, 1, is_due ? 0 : TURN_RESTS) == 0) {
            is_due = wait_for_turn(sampler, polled, turn_due(sampler, last));
        }
    }
    sampler_stop(sampler);
    (void)tell(sampler);
    wait_for_reader(sampler, true);
    err = err ? err : perf_pipe_flush(&sampler->turn.pipe);
    err = err ? err : take_turn(sampler);
    tell_lost(sampler);
    err = err ? err : perf_pipe_finish(&sampler->turn.pipe);
    tell_multiplexed(sampler);
    tell_left_out(sampler);
    if (sampler->turn.walker) {
        walker_tell(sampler->turn.walker);
    }
    /* For each tracepoint and probe the kernel waits for all processors, which nobody else has to.
     */
    close(sampler->turn.pipe.fd);
    sampler->turn.pipe.fd = -1;
    if (!err) {
        (void)tell(sampler);
    }
    free(polled);
    return !err || err == -EPIPE ? 0 /* who reads has ended first, and knows why */
                                 : tell_failure("sample", err);
}

int sampler_run(const struct sampler_options *options)
{
    struct sampler *sampler;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigaddset(&ends, SIGQUIT);
    signal(SIGPIPE, SIG_IGN);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    if (signals < 0) {
        return tell_failure("sample", -errno);
    }
    int err = sampler_new(options, &sampler);
    if (!err && options->go > 0 && !wait_for_go(options->go, signals)) {
        err = -ECANCELED;
    }
    err = err ? err : sampler_begin(sampler, options->out);
    err = err ? err : sampler->has_told || tell(sampler) ? 0 : -EPIPE;
    err = err ? err : sample(sampler, signals);
    sampler_free(sampler);
    close(signals);
    return err;
}
