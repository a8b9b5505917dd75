#include "jdtool/watch/jvm.h"

#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/ask.h"
#include "jdtool/live/guard.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/record/joining.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/watch/slice_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* What a JVM leaves on its disk while it is watched: four closed segments and the one that is
 * written. */
#define AGENT_OPTIONS "methods=on,lines=tree,segment=8M,keep=4"

/* And with --threads the newest 64 MB of a journal. */
#define THREADS_OPTION ",threads=on"

/* perf hands over what waits in its buffers when these are half full, or when it is spoken to. */
#define PING_EVERY_MS 1000

/* perf writes what it has and ends within a moment of being told; one that does not is stuck. */
#define PERF_END_MS 10000

/* So long after its end a slice waits for samples that are under way: a ping and what the stream
 * waits for. */
#define SLACK_NS UINT64_C(2500000000)

struct watched {
    const struct watch_jvm_options *options;
    struct waiting waiting;
    struct target target;
    struct guardian guardian;
    struct joining joining;
    char *event;
    struct perf_run perf;
    struct labels labels;
    struct export_settings settings;
    struct slices_options slices;
    struct sample_sink *sink;
    int64_t next_ping;
    int64_t window_end;   /* of the time over which cpu_max is held, ms */
    uint64_t window_cpu;  /* used at its beginning */
    int64_t paused_since; /* ms; 0: it samples */
    uint64_t paused_ns;
    bool told_to_end;    /* perf was */
    int64_t ends_before; /* or is killed, ms */
    bool has_grown;
};

/* ---- What it costs ---- */

static uint64_t rusage_ns(const struct rusage *usage)
{
    return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) *
               UINT64_C(1000000000) +
           ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000;
}

/* utime and stime of a child that runs, in clock ticks, stand behind its name. */
static uint64_t child_cpu_ns(pid_t pid)
{
    struct live_process process;
    char text[1024];
    unsigned long long ticks[2] = {0};
    if (process_open(pid, &process) != 0) {
        return 0;
    }
    ssize_t n = process_read(&process, "stat", text, sizeof text);
    process_close(&process);
    const char *at = n > 0 ? strrchr(text, ')') : NULL;
    for (int field = 2; at && field < 14; field++) {
        at = strchr(at + 1, ' ');
    }
    if (at) {
        char *end;
        ticks[0] = strtoull(at, &end, 10);
        ticks[1] = strtoull(end, NULL, 10);
    }
    return (ticks[0] + ticks[1]) * UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t rss_now(void)
{
    char text[128] = "";
    char *end;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    (void)strtoull(text, &end, 10);
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- Slices ---- */

static uint64_t cpu_now(const struct watched *watched)
{
    struct rusage own;
    getrusage(RUSAGE_SELF, &own);
    return rusage_ns(&own) + child_cpu_ns(watched->perf.child.pid);
}

static int send(struct watched *watched, enum slice_message_kind kind, const struct slice *slice)
{
    struct slice_message message = {
        .magic = SLICE_MAGIC,
        .kind = kind,
        .cpu_ns = cpu_now(watched),
        .rss = rss_now(),
        .paused_ns = watched->paused_ns,
    };
    if (slice) {
        message.slice = *slice;
    }
    return slice_send(watched->options->out, &message, &watched->labels);
}

static int take_slice(void *context, const struct slice *slice)
{
    struct watched *watched = context;
    return send(watched, SLICE_PROFILE, slice); /* the watch has ended: so do we, silently */
}

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void end_perf(struct watched *watched)
{
    if (!watched->told_to_end) {
        watched->told_to_end = true;
        watched->ends_before = deadline_in(PERF_END_MS);
        child_signal(&watched->perf.child, SIGINT);
    }
}

/*
 * Holds the share of a processor: when a window's is used up, perf stops sampling until the window
 * ends. The first one has the JVM's symbols to read and is left out.
 */
#define WINDOW_MS 15000

/* In hundredths of a percent. The watch changes it as JVMs of the same user come and go. */
static uint32_t share_now(const struct watched *watched)
{
    uint32_t share = watched->options->cpu_max * 100;
    if (watched->options->share >= 0) {
        (void)!pread(watched->options->share, &share, sizeof share, 0);
    }
    return share;
}

static void hold_share(struct watched *watched)
{
    int64_t now = now_ms();
    uint64_t limit = (uint64_t)WINDOW_MS * 100 * share_now(watched);
    if (now >= watched->window_end) {
        if (watched->paused_since) {
            (void)!write(watched->perf.control, "enable\n", 7);
            watched->paused_ns += (uint64_t)(now - watched->paused_since) * 1000000;
            watched->paused_since = 0;
        }
        watched->window_end = now + WINDOW_MS;
        watched->window_cpu = cpu_now(watched);
    } else if (limit && !watched->paused_since && watched->window_cpu &&
               cpu_now(watched) - watched->window_cpu > limit) {
        (void)!write(watched->perf.control, "disable\n", 8);
        watched->paused_since = now;
    }
}

/* Between records: signals, perf's buffers, the clock, and what we hold. */
static int turn(void *context)
{
    struct watched *watched = context;
    const struct watch_jvm_options *options = watched->options;
    char answers[256];
    struct pollfd ack = {.fd = watched->perf.ack, .events = POLLIN};
    if (wait_for(&watched->waiting, &ack, 1, 0, true) == -EINTR) {
        end_perf(watched);
    }
    if (ack.revents & POLLIN) {
        (void)!read(watched->perf.ack, answers, sizeof answers);
    }
    if (watched->told_to_end && now_ms() >= watched->ends_before) {
        child_signal(&watched->perf.child, SIGKILL);
    }
    if (now_ms() >= watched->next_ping && !watched->told_to_end) {
        watched->next_ping = deadline_in(PING_EVERY_MS);
        (void)!write(watched->perf.control, "ping\n", 5);
        hold_share(watched);
        if (!process_lives(&watched->target.process)) {
            end_perf(watched);
        }
        if (rss_now() > options->memory_max) {
            watched->has_grown = true;
            end_perf(watched);
        }
    }
    return slices_sink_turn(watched->sink, monotonic_ns(), SLACK_NS);
}

/* ---- Its beginning ---- */

static int attach(struct watched *watched)
{
    const struct watch_jvm_options *options = watched->options;
    if (target_find(&watched->target, options->jvm, &watched->waiting) ||
        ask_prepare(&watched->target)) {
        return STATUS_FAILED;
    }
    labels_of_process(&watched->labels, &watched->target.process, options->service_from,
                      options->labels);
    if (send(watched, SLICE_LABELS, NULL) || guard_start(&watched->guardian, &watched->target)) {
        return STATUS_FAILED;
    }
    const struct joining_options joining = {
        .agent_options = options->agent_options,
        .more = options->threads ? AGENT_OPTIONS THREADS_OPTION : AGENT_OPTIONS,
    };
    return joining_start(&watched->joining, &watched->target, &watched->waiting,
                         watched->guardian.shared, &joining)
               ? STATUS_FAILED
               : STATUS_DONE;
}

static void perf_arguments(struct watched *watched)
{
    const struct watch_jvm_options *options = watched->options;
    struct perf_run *perf = &watched->perf;
    char frequency[16];
    char pid[16];
    char stacks[32];
    snprintf(frequency, sizeof frequency, "%u", options->frequency);
    snprintf(pid, sizeof pid, "%d", (int)watched->target.process.pid);
    snprintf(stacks, sizeof stacks, "dwarf,%u", options->stack_size);
    perf_add(perf, perf_program(), "record", "-k", "mono", "-e", watched->event, "-F", frequency,
             "-o", "-", "--buildid-mmap", PERF_OF_TASKS, "-p", pid, "--call-graph", stacks,
             "--proc-map-timeout", PERF_MAPS_TIMEOUT, NULL);
    /* Only root may have more than perf_event_mlock_kb. */
    if (options->buffer || geteuid() == 0) {
        perf_add(perf, "-m", options->buffer ? options->buffer : "2M", NULL);
    }
}

static int start_perf(struct watched *watched)
{
    int ends[2];
    watched->event = perf_choose_event(watched->options->event);
    perf_tell_of_kernel();
    if (!watched->event || pipe2(ends, O_CLOEXEC) != 0) {
        error_message("failed to start perf: %s", strerror(errno));
        return STATUS_FAILED;
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, 1 << 20); /* as much as anybody may have */
    setenv("PERF_CONFIG", "/dev/null", 1);
    perf_arguments(watched);
    int err = perf_start(&watched->perf, ends[1]);
    close(ends[1]);
    if (!err && dup2(ends[0], STDIN_FILENO) < 0) {
        err = -errno;
    }
    close(ends[0]);
    watched->window_end = deadline_in(WINDOW_MS);
    /* What it writes before it samples fits into the pipe. */
    err = err ? err : perf_wait_until_it_samples(&watched->perf, &watched->waiting);
    if (err && process_lives(&watched->target.process) && !watched->waiting.ended_by) {
        perf_end(&watched->perf, &watched->waiting);
        char *words = perf_words(watched->perf.says);
        (void)perf_explain_failure(words, watched->event);
        free(words);
    }
    return err ? STATUS_FAILED : STATUS_DONE;
}

/* ---- All of it ---- */

static int resolve(struct watched *watched)
{
    const struct watch_jvm_options *options = watched->options;
    struct stream_result result;
    watched->settings = (struct export_settings){
        .path = "slice",
        .no_threads = !options->threads,
        .service = labels_get(&watched->labels, "service_name"),
        .labels = watched->labels.list,
        .label_count = watched->labels.count,
    };
    watched->slices = (struct slices_options){
        .length = options->slice * UINT64_C(1000000000),
        .formats = {options->formats[0], options->formats[1]},
        .format_count = options->format_count,
        .settings = &watched->settings,
        .by_thread = options->threads,
        .take = take_slice,
        .context = watched,
    };
    if (slices_sink_new(&watched->slices, &watched->sink)) {
        return STATUS_FAILED;
    }
    const struct stream_options stream = {
        .input = "-",
        .symbolize = true,
        .sparing = true,
        .turn = turn,
        .context = watched,
    };
    struct sample_sink *sinks[] = {watched->sink};
    return stream_run(&stream, sinks, 1, &result) ? STATUS_FAILED : STATUS_DONE;
}

static int run(struct watched *watched)
{
    if (waiting_start(&watched->waiting)) {
        return STATUS_FAILED;
    }
    int status = attach(watched);
    status = status ? status : start_perf(watched);
    status = status ? status : resolve(watched);
    perf_end(&watched->perf, &watched->waiting);
    return watched->has_grown && !status ? STATUS_GROWN : status;
}

int watch_jvm(const struct watch_jvm_options *options)
{
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched) {
        error_message("failed to start: %s", strerror(ENOMEM));
        return STATUS_FAILED;
    }
    watched->options = options;
    watched->target = NO_TARGET;
    watched->joining = NO_JOINING;
    watched->perf = (struct perf_run){.says = -1, .control = -1, .ack = -1, .child = NO_CHILD};
    int status = run(watched);
    perf_free(&watched->perf);
    if (watched->guardian.shared) {
        (void)session_leave(&watched->joining.session);
    }
    guard_end(&watched->guardian);
    fetch_close(&watched->joining.fetch);
    target_close(&watched->target);
    free(watched->event);
    free(watched);
    return status;
}
