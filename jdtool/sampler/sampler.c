#include "jdtool/sampler/sampler.h"

#include "jdtool/base/message.h"
#include "jdtool/sampler/present.h"
#include "jdtool/sampler/registers.h"
#include "jdtool/sampler/turn.h"

#include <errno.h>
#include <fcntl.h>
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

/* Of a processor: 60 whole copies of stacks, and some thousand records of the side-band. */
#define BUFFER_SIZE    ((size_t)4 << 20)
#define SIDE_BAND_SIZE ((size_t)1 << 20)

/* Rings are looked at this often at least, in ms, and not more often than that, whatever others
 * fork and map. */
#define TURN_EVERY 100
#define TURN_RESTS 5

struct sampler {
    const struct sampler_options *options;
    struct perf_event_attr clock, side_band;
    struct turn_rings *processors; /* by number */
    uint32_t processor_count;
    struct turn turn;
};

const char *sampler_lacks(pid_t process)
{
    char path[64];
    struct stat ours;
    struct stat its;
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)process);
    if (geteuid() != 0) {
        return "only root may have the kernel filter samples";
    }
    if (stat("/proc/self/ns/pid", &ours) != 0 || stat(path, &its) != 0) {
        return "/proc tells nothing of the process";
    }
    bool is_first = ours.st_ino == 0xEFFFFFFC; /* PROC_PID_INIT_INO: whose numbers are all's */
    if (!is_first && (ours.st_ino != its.st_ino || ours.st_dev != its.st_dev)) {
        return "the process is in another PID namespace, and we are not in the first";
    }
    return NULL;
}

/* ---- Events ---- */

static void describe_events(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    size_t buffer = options->buffer ? options->buffer : BUFFER_SIZE;
    bool copies = options->stack_size > 0;
    sampler->clock = (struct perf_event_attr){
        .size = sizeof sampler->clock,
        .type = options->counts_cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE,
        .config = options->counts_cycles ? (uint64_t)PERF_COUNT_HW_CPU_CYCLES
                                         : (uint64_t)PERF_COUNT_SW_CPU_CLOCK,
        .freq = 1,
        .sample_freq = options->frequency,
        .sample_type =
            TURN_SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
            (copies ? PERF_SAMPLE_REGS_USER | (uint64_t)PERF_SAMPLE_STACK_USER : UINT64_C(0)),
        .sample_regs_user = copies ? REGISTERS : 0,
        .sample_stack_user = options->stack_size,
        .exclude_callchain_user = copies,
        .sample_id_all = 1,
        .disabled = 1,
        .exclude_guest = 1,
        .exclude_hv = 1,
        .exclude_idle = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(buffer / 4),
        .precise_ip = options->counts_cycles ? 3 : 0,
    };
    /*
     * Without build_id: the kernel (5.12 to at least 6.18) leaves PERF_RECORD_MISC_MMAP_BUILD_ID
     * set for whoever hears of the mapping next (perf_event_mmap_output restores the header's size
     * and type, not misc), and perf 6.1 crashes at an inode that claims to be a build-id. An event
     * of all processes would end every recording on the machine so.
     */
    sampler->side_band = (struct perf_event_attr){
        .size = sizeof sampler->side_band,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = TURN_SAMPLE_TYPE,
        .sample_id_all = 1,
        .disabled = 1,
        .mmap = 1,
        .mmap2 = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .watermark = 1,
        .wakeup_watermark = 1, /* a process that is forked is sampled from when we hear of it */
    };
}

static int open_event(struct perf_event_attr *attr, int processor)
{
    for (;;) { /* as precise as the processor can */
        int fd = (int)syscall(SYS_perf_event_open, attr, -1, processor, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd >= 0 || errno == ENODEV || errno == ENXIO || !attr->precise_ip) {
            return fd < 0 ? -errno : fd;
        }
        attr->precise_ip--;
    }
}

static int add_ring(struct perf_event_attr *attr, int processor, struct ring *ring, size_t size)
{
    int fd = open_event(attr, processor);
    int err = fd < 0 ? fd : ring_open(ring, fd, size);
    if (err && fd >= 0) {
        close(fd);
    }
    return err;
}

static int add_processor(struct sampler *sampler, int processor)
{
    size_t buffer = sampler->options->buffer;
    struct turn_rings *rings = &sampler->processors[processor];
    int err = add_ring(&sampler->side_band, processor, &rings->side_band, SIDE_BAND_SIZE);
    err =
        err ? err
            : add_ring(&sampler->clock, processor, &rings->samples, buffer ? buffer : BUFFER_SIZE);
    return err ? err : filter_apply(&sampler->turn.filter, rings->samples.event);
}

/* One that is off line is left out. */
static int add_processors(struct sampler *sampler)
{
    uint32_t added = 0;
    int err = 0;
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        err = add_processor(sampler, (int)i);
        added += !err;
        err = err == -ENODEV || err == -ENXIO ? 0 : err;
    }
    return err ? err : added ? 0 : -ENODEV;
}

static int switch_ring(const struct ring *ring, unsigned long request)
{
    return !ring->page || ioctl(ring->event, request, 0) == 0 ? 0 : -errno;
}

/* Nothing may be mapped unseen before a sample is taken there: the side-bands are first. */
static int switch_all(const struct sampler *sampler, unsigned long request)
{
    int err = 0;
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        err = switch_ring(&sampler->processors[i].side_band, request);
    }
    for (uint32_t i = 0; i < sampler->processor_count && !err; i++) {
        err = switch_ring(&sampler->processors[i].samples, request);
    }
    return err;
}

/* ---- From beginning to end ---- */

static int tell_failure(const char *what, int err)
{
    error_message("failed to %s: %s", what, strerror(-err));
    return err;
}

static int begin(struct sampler *sampler)
{
    const struct sampler_options *options = sampler->options;
    struct turn *turn = &sampler->turn;
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    sampler->processor_count = processors < PROCESSORS_MAX ? (uint32_t)processors : PROCESSORS_MAX;
    describe_events(sampler);
    sampler->processors = calloc(sampler->processor_count, sizeof *sampler->processors);
    if (!sampler->processors) {
        return tell_failure("sample", -ENOMEM);
    }
    int err = filter_load(&turn->filter);
    err = err ? err : turn_sample_process(turn, (uint32_t)options->process, true);
    if (err) {
        return tell_failure("load a BPF program that filters samples", err);
    }
    err = add_processors(sampler);
    err = err ? err : switch_all(sampler, PERF_EVENT_IOC_ENABLE);
    for (uint32_t i = 0; i < sampler->processor_count && !err && !turn->id; i++) {
        const struct ring *ring = &sampler->processors[i].samples;
        err = !ring->page || ioctl(ring->event, PERF_EVENT_IOC_ID, &turn->id) == 0 ? 0 : -errno;
    }
    if (err) {
        return tell_failure("open the processors' events", err);
    }
    /* With what comes in the side-band's rings, and the build-ids that we put there. */
    struct perf_event_attr told = sampler->clock;
    told.mmap = told.mmap2 = told.comm = told.comm_exec = told.task = told.build_id = 1;
    perf_pipe_describe(&turn->pipe, &told, options->counts_cycles ? "cycles" : "cpu-clock",
                       &turn->id, 1, options->command);
    present_kernel(&turn->pipe);
    present_process(&turn->pipe, options->process);
    return write(options->begun, "", 1) == 1 ? 0 : -EPIPE;
}

/* Whether who reads is waited for when he has no room. */
static void wait_for_reader(const struct sampler *sampler, bool does)
{
    int out = sampler->options->out;
    int flags = fcntl(out, F_GETFL);
    (void)fcntl(out, F_SETFL, does ? flags & ~O_NONBLOCK : flags | O_NONBLOCK);
}

static int take_turn(struct sampler *sampler)
{
    return turn_take(&sampler->turn, sampler->processors, sampler->processor_count);
}

static int sample(struct sampler *sampler, int signals)
{
    uint32_t count = 2;
    struct pollfd *polled = calloc((size_t)2 * sampler->processor_count + count, sizeof *polled);
    if (!polled) {
        return tell_failure("sample", -ENOMEM);
    }
    polled[0] = (struct pollfd){.fd = signals, .events = POLLIN};
    for (uint32_t i = 0; i < sampler->processor_count; i++) {
        const struct turn_rings *rings = &sampler->processors[i];
        if (rings->side_band.page && rings->samples.page) {
            polled[count++] = (struct pollfd){.fd = rings->side_band.event, .events = POLLIN};
            polled[count++] = (struct pollfd){.fd = rings->samples.event, .events = POLLIN};
        }
    }
    int err = 0;
    wait_for_reader(sampler, false);
    while (!err && !polled[0].revents) {
        err = take_turn(sampler);
        bool waits = perf_pipe_waiting(&sampler->turn.pipe) > 0;
        polled[1] = (struct pollfd){.fd = waits ? sampler->options->out : -1, .events = POLLOUT};
        if (poll(polled, 1, TURN_RESTS) == 0) {
            (void)poll(polled, count, TURN_EVERY);
        }
    }
    (void)switch_all(sampler, PERF_EVENT_IOC_DISABLE);
    wait_for_reader(sampler, true);
    err = err ? err : perf_pipe_flush(&sampler->turn.pipe);
    err = err ? err : take_turn(sampler);
    free(polled);
    return err == -EPIPE ? 0 : err; /* who reads has ended first, and knows why */
}

static void close_all(struct sampler *sampler)
{
    for (uint32_t i = 0; sampler->processors && i < sampler->processor_count; i++) {
        struct ring *both[] = {&sampler->processors[i].side_band, &sampler->processors[i].samples};
        for (size_t k = 0; k < 2; k++) {
            if (both[k]->page) {
                ring_close(both[k]);
                close(both[k]->event);
            }
        }
    }
    free(sampler->processors);
}

int sampler_run(const struct sampler_options *options)
{
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler) {
        return tell_failure("sample", -ENOMEM);
    }
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigaddset(&ends, SIGQUIT);
    signal(SIGPIPE, SIG_IGN);
    sampler->options = options;
    turn_new(&sampler->turn, options->stack_size, options->out);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    int err = signals < 0 ? tell_failure("sample", -errno) : begin(sampler);
    err = err ? err : sample(sampler, signals);
    close_all(sampler);
    if (signals >= 0) {
        close(signals);
    }
    turn_free(&sampler->turn);
    free(sampler);
    return err;
}
