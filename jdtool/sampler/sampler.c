#include "jdtool/sampler/sampler.h"

#include "jdtool/base/message.h"
#include "jdtool/sampler/filter.h"
#include "jdtool/sampler/perf_pipe.h"
#include "jdtool/sampler/present.h"
#include "jdtool/sampler/ring.h"
#include "jdtool/sampler/stack_ends.h"

#include <errno.h>
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

#if defined __x86_64__
/* ax, bx, cx, dx, si, di, bp, sp, ip, r8 to r15 (asm/perf_regs.h). */
#define REGISTERS      UINT64_C(0xff01ff)
#define REGISTER_COUNT 17
#define STACK_POINTER  7
#elif defined __aarch64__
/* x0 to x29, lr, sp, pc. */
#define REGISTERS      ((UINT64_C(1) << 33) - 1)
#define REGISTER_COUNT 33
#define STACK_POINTER  31
#else
#error "the registers of this machine are not known here"
#endif

#define PROCESSORS_MAX (PERF_PIPE_IDS_MAX / 2)

/* Of a processor: 60 whole copies of stacks, and some thousand records of the side-band. */
#define BUFFER_SIZE    ((size_t)4 << 20)
#define SIDE_BAND_SIZE ((size_t)256 << 10)

/* Rings are looked at this often at least, in ms. */
#define TURN_EVERY 100

/* Both kinds of events have the same trailer behind records that are no samples. */
#define TRAILER                                                                                    \
    (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | (uint64_t)PERF_SAMPLE_CPU)

struct sampler {
    const struct sampler_options *options;
    struct perf_event_attr clock, side_band;
    struct filter filter;
    struct numbered sampled; /* of struct sampled_process */
    struct stack_ends ends;
    struct ring *rings; /* the side-band's, then the clock's, of each processor */
    uint64_t *ids;
    uint32_t count; /* of rings */
    uint64_t throttled;
    struct perf_pipe pipe;
    _Alignas(8) uint8_t record[65536];
};

struct sampled_process {
    uint64_t pid; /* the first member */
    bool is_sampled;
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
            TRAILER | PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
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
    sampler->side_band = (struct perf_event_attr){
        .size = sizeof sampler->side_band,
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_DUMMY,
        .sample_type = TRAILER,
        .sample_id_all = 1,
        .disabled = 1,
        .mmap = 1,
        .mmap2 = 1,
        .build_id = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .exclude_kernel = 1,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .wakeup_events = 1, /* a process that is forked is sampled from when we hear of it */
    };
}

static int open_event(struct perf_event_attr *attr, int processor)
{
    int fd;
    do { /* as precise as the processor can */
        fd = (int)syscall(SYS_perf_event_open, attr, -1, processor, -1, PERF_FLAG_FD_CLOEXEC);
    } while (fd < 0 && errno != ENODEV && attr->precise_ip-- > 0);
    if (fd < 0) {
        attr->precise_ip = 0;
        return -errno;
    }
    return fd;
}

static int add_ring(struct sampler *sampler, struct perf_event_attr *attr, int processor,
                    size_t size)
{
    struct ring *ring = &sampler->rings[sampler->count];
    int fd = open_event(attr, processor);
    int err = fd < 0 ? fd : ring_open(ring, fd, size);
    if (!err && ioctl(fd, PERF_EVENT_IOC_ID, &sampler->ids[sampler->count]) != 0) {
        err = -errno;
        ring_close(ring);
    }
    if (err && fd >= 0) {
        close(fd);
    }
    sampler->count += !err;
    return err;
}

/* One that went off line meanwhile is left out. */
static int open_all(struct sampler *sampler, struct perf_event_attr *attr, size_t size)
{
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    uint32_t before = sampler->count;
    int err = 0;
    for (int i = 0; i < processors && i < PROCESSORS_MAX && !err; i++) {
        err = add_ring(sampler, attr, i, size);
        err = err == -ENODEV || err == -ENXIO ? 0 : err;
    }
    return err ? err : sampler->count > before ? 0 : -ENODEV;
}

static int switch_events(const struct sampler *sampler, uint32_t from, uint32_t until,
                         unsigned long request)
{
    int err = 0;
    for (uint32_t i = from; i < until && !err; i++) {
        err = ioctl(sampler->rings[i].event, request, 0) == 0 ? 0 : -errno;
    }
    return err;
}

/* ---- Who is sampled ---- */

static bool is_sampled(const struct sampler *sampler, uint32_t pid)
{
    const struct sampled_process *process = numbered_find(&sampler->sampled, pid);
    return process && process->is_sampled;
}

static int sample_process(struct sampler *sampler, uint32_t pid, bool is)
{
    struct sampled_process *process =
        is ? numbered_get(&sampler->sampled, pid, NULL) : numbered_find(&sampler->sampled, pid);
    if (!process) {
        return is ? -ENOMEM : 0;
    }
    int err = is == process->is_sampled ? 0
              : is                      ? filter_add(&sampler->filter, (pid_t)pid)
                                        : filter_remove(&sampler->filter, (pid_t)pid);
    process->is_sampled = is && !err;
    return err;
}

/* ---- Records ---- */

static uint32_t u32_at(const uint8_t *record, size_t at)
{
    uint32_t value;
    memcpy(&value, record + at, sizeof value);
    return value;
}

static uint64_t u64_at(const uint8_t *record, size_t at)
{
    uint64_t value;
    memcpy(&value, record + at, sizeof value);
    return value;
}

/* FORK: pid, ppid, tid, ptid, time. A process' child is sampled as it is; a number that is given to
 * another process is not. */
static void take_fork(struct sampler *sampler)
{
    uint32_t pid = u32_at(sampler->record, 8);
    uint32_t parent = u32_at(sampler->record, 12);
    if (pid != parent) {
        stack_ends_forget(&sampler->ends, pid);
        (void)sample_process(sampler, pid, is_sampled(sampler, parent));
    }
    if (is_sampled(sampler, pid)) {
        stack_ends_thread(&sampler->ends, u32_at(sampler->record, 16), u64_at(sampler->record, 24));
    }
}

/* A record of the side-band, which tells of all processes: of those that are sampled it is given
 * on. */
static void take_side_band(struct sampler *sampler, const struct ring *ring, uint64_t at,
                           const struct perf_event_header *header)
{
    ring_copy(ring, at, sampler->record, header->size);
    switch (header->type) {
    case PERF_RECORD_FORK:
        if (header->size < 32) {
            return;
        }
        take_fork(sampler);
        break;
    case PERF_RECORD_COMM:
        if (header->misc & PERF_RECORD_MISC_COMM_EXEC) {
            stack_ends_forget(&sampler->ends, u32_at(sampler->record, 8));
        }
        break;
    case PERF_RECORD_EXIT:
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        break;
    default: /* LOST: of whom is not known */
        perf_pipe_put(&sampler->pipe, sampler->record, header->size);
        return;
    }
    if (is_sampled(sampler, u32_at(sampler->record, 8))) {
        perf_pipe_put(&sampler->pipe, sampler->record, header->size);
    }
}

/*
 * IDENTIFIER, IP, TID, TIME, CPU, PERIOD, how many addresses of the chain and these, then the ABI
 * of the registers and, unless it is 0, these, the size of the copy, the copy, and how much of it
 * is valid.
 */
enum { TID_AT = 24, TIME_AT = 32, CHAIN_AT = 56 };

static void take_sample(struct sampler *sampler, const struct ring *ring, uint64_t at,
                        const struct perf_event_header *header)
{
    uint64_t ids = ring_u64(ring, at + TID_AT);
    if (!is_sampled(sampler, (uint32_t)ids) || ids >> 32 == UINT32_MAX) {
        return; /* a thread so near its end that it has no number any more (-1) */
    }
    uint64_t chain = ring_u64(ring, at + CHAIN_AT);
    uint64_t registers = CHAIN_AT + 8 + 8 * chain; /* from the record's start */
    size_t size = header->size;
    if (!sampler->options->stack_size || chain > size / 8 || registers + 16 > size) {
        ring_copy(ring, at, sampler->record, size);
        perf_pipe_put(&sampler->pipe, sampler->record, size);
        return;
    }
    bool has_registers = ring_u64(ring, at + registers) != 0;
    uint64_t stack =
        registers + 8 + (has_registers ? UINT64_C(8) * REGISTER_COUNT : 0); /* its size */
    uint64_t copied = stack + 8 <= size ? ring_u64(ring, at + stack) : 0;
    if (!has_registers || !copied || stack + 16 + copied > size) {
        ring_copy(ring, at, sampler->record, size);
        perf_pipe_put(&sampler->pipe, sampler->record, size);
        return;
    }
    uint64_t pointer = ring_u64(ring, at + registers + 8 + UINT64_C(8) * STACK_POINTER);
    uint64_t valid = ring_u64(ring, at + stack + 8 + copied);
    uint64_t end = stack_ends_of(&sampler->ends, (uint32_t)ids, (uint32_t)(ids >> 32), pointer,
                                 ring_u64(ring, at + TIME_AT));
    valid = valid < end - pointer ? valid : end - pointer;
    uint64_t kept = (valid + 7) & ~UINT64_C(7);
    kept = kept < copied ? kept : copied;
    if (!kept) { /* nothing was readable there; a size of 0 has no end behind it */
        kept = copied < 8 ? copied : 8;
    }
    /* The record, with a smaller copy and what is valid of that. */
    uint8_t *record = sampler->record;
    ring_copy(ring, at, record, stack + 8 + kept);
    struct perf_event_header cut = *header;
    cut.size = (uint16_t)(stack + 16 + kept);
    memcpy(record, &cut, sizeof cut);
    memcpy(record + stack, &kept, sizeof kept);
    memcpy(record + stack + 8 + kept, &valid, sizeof valid);
    perf_pipe_put(&sampler->pipe, record, cut.size);
}

static void drain(struct sampler *sampler, struct ring *ring)
{
    uint64_t at = ring_from(ring);
    uint64_t until = ring_until(ring);
    while (at < until) {
        uint64_t word = ring_u64(ring, at);
        struct perf_event_header header;
        memcpy(&header, &word, sizeof header);
        if (header.size < sizeof header || header.size > until - at) {
            at = until; /* the kernel does not do this */
            break;
        }
        if (header.type == PERF_RECORD_SAMPLE) {
            take_sample(sampler, ring, at, &header);
        } else if (header.type == PERF_RECORD_THROTTLE || header.type == PERF_RECORD_UNTHROTTLE) {
            sampler->throttled += header.type == PERF_RECORD_THROTTLE;
        } else {
            take_side_band(sampler, ring, at, &header);
        }
        at += header.size;
        ring_release(ring, at);
    }
    ring_release(ring, at);
}

/* The side-band's rings come first: a sample's process is known by then. */
static int take_turn(struct sampler *sampler)
{
    for (uint32_t i = 0; i < sampler->count; i++) {
        drain(sampler, &sampler->rings[i]);
    }
    perf_pipe_round(&sampler->pipe);
    return perf_pipe_flush(&sampler->pipe);
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
    uint32_t process = (uint32_t)options->process;
    describe_events(sampler);
    sampler->rings = calloc((size_t)2 * PROCESSORS_MAX, sizeof *sampler->rings);
    sampler->ids = calloc((size_t)2 * PROCESSORS_MAX, sizeof *sampler->ids);
    if (!sampler->rings || !sampler->ids) {
        return tell_failure("sample", -ENOMEM);
    }
    int err = filter_load(&sampler->filter);
    err = err ? err : sample_process(sampler, process, true);
    if (err) {
        return tell_failure("load a BPF program that filters samples", err);
    }
    err = open_all(sampler, &sampler->side_band, SIDE_BAND_SIZE);
    uint32_t side_band = sampler->count;
    err = err ? err
              : open_all(sampler, &sampler->clock, options->buffer ? options->buffer : BUFFER_SIZE);
    for (uint32_t i = side_band; i < sampler->count && !err; i++) {
        err = filter_apply(&sampler->filter, sampler->rings[i].event);
    }
    /* Nothing may be mapped unseen between what the kernel tells and what we read. */
    err = err ? err : switch_events(sampler, 0, side_band, PERF_EVENT_IOC_ENABLE);
    err = err ? err : switch_events(sampler, side_band, sampler->count, PERF_EVENT_IOC_ENABLE);
    if (err) {
        return tell_failure("open the processors' events", err);
    }
    struct perf_event_attr told = sampler->clock; /* with what comes in the side-band's rings */
    told.mmap = told.mmap2 = told.comm = told.comm_exec = told.task = told.build_id = 1;
    perf_pipe_describe(&sampler->pipe, &told, options->counts_cycles ? "cycles" : "cpu-clock",
                       sampler->ids, sampler->count, options->command);
    present_kernel(&sampler->pipe);
    present_process(&sampler->pipe, options->process);
    return write(options->begun, "", 1) == 1 ? 0 : -EPIPE;
}

static int sample(struct sampler *sampler, int signals)
{
    struct pollfd *polled = calloc(sampler->count + 1, sizeof *polled);
    bool is_over = false;
    int err = polled ? 0 : tell_failure("sample", -ENOMEM);
    for (uint32_t i = 0; i < sampler->count && polled; i++) {
        polled[i] = (struct pollfd){.fd = sampler->rings[i].event, .events = POLLIN};
    }
    if (polled) {
        polled[sampler->count] = (struct pollfd){.fd = signals, .events = POLLIN};
    }
    while (!err && !is_over) {
        (void)poll(polled, sampler->count + 1, TURN_EVERY);
        is_over = polled[sampler->count].revents != 0;
        if (is_over) {
            (void)switch_events(sampler, 0, sampler->count, PERF_EVENT_IOC_DISABLE);
        }
        err = take_turn(sampler);
    }
    free(polled);
    if (sampler->throttled) {
        error_message("the kernel held samples back %" PRIu64
                      " times: lower the frequency (-F), or raise kernel.perf_cpu_time_max_percent",
                      sampler->throttled);
    }
    return err == -EPIPE ? 0 : err; /* who reads has ended first, and knows why */
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
    sampler->filter = FILTER_NONE;
    sampler->pipe.fd = options->out;
    sampler->sampled = NUMBERED(struct sampled_process);
    stack_ends_new(&sampler->ends);
    int signals = signalfd(-1, &ends, SFD_CLOEXEC);
    int err = signals < 0 ? tell_failure("sample", -errno) : begin(sampler);
    err = err ? err : sample(sampler, signals);
    for (uint32_t i = 0; i < sampler->count; i++) {
        ring_close(&sampler->rings[i]);
        close(sampler->rings[i].event);
    }
    if (signals >= 0) {
        close(signals);
    }
    filter_close(&sampler->filter);
    numbered_free(&sampler->sampled);
    stack_ends_free(&sampler->ends);
    free(sampler->rings);
    free(sampler->ids);
    free(sampler);
    return err;
}
