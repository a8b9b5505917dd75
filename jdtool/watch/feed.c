#include "jdtool/watch/feed.h"

#include "jdtool/base/message.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/sampler/sampler.h"
#include "jdtool/watch/watch_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* perf hands over what waits in its buffers when these are half full, or when it is spoken to. */
#define PING_EVERY_MS 1000

/* perf writes what it has and ends within a moment of being told; one that does not is stuck. */
#define PERF_END_MS 10000

/* A turn of our own sampler takes what waits, that often where nothing wakes it, and not more often
 * than that, in ms. */
#define TURN_EVERY_MS 500
#define TURN_RESTS_MS 5

/* Of our own sampler, of each processor: 30 whole copies of stacks, and many more of real ones. */
#define BUFFER_SIZE ((size_t)2 << 20)

struct feed {
    const struct watch_jvm_options *options;
    char *event;
    struct sampler_options sampler_options;
    struct sampler *sampler; /* NULL: perf samples */
    pid_t none;              /* the list of its processes, which is empty */
    int64_t rests_until;
    bool waits; /* what woke us waits until then */
    /* Of perf */
    struct perf_run perf;
    pid_t jvms[WATCHED_MAX];
    size_t count;
    bool stale;
    int64_t next_ping, ends_before;
    bool told_to_end;
};

/* ---- Which ---- */

/* What only perf has, or why ours cannot; NULL: nothing. */
static const char *lacks(const struct feed *feed)
{
    const struct counter *event = &feed->sampler_options.event;
    if (feed->options->sampler == SAMPLER_PERF) {
        return "";
    }
    if (!event->is_known || counter_is_software(event)) {
        return "only perf has the event";
    }
    return sampler_lacks(NULL, 0);
}

unsigned feed_frequency(const struct feed *feed)
{
    return counter_frequency(&feed->sampler_options.event,
                             perf_allowed_frequency(feed->options->frequency));
}

static int open_sampler(struct feed *feed)
{
    static char program[] = "jdperf";
    static char verb[] = "watch";
    static char *const words[] = {program, verb, NULL};
    const struct watch_jvm_options *options = feed->options;
    feed->sampler_options = (struct sampler_options){
        .processes = &feed->none,
        .is_for_each = true,
        .reads_no_files = true, /* which are others': the slicer does */
        .event = feed->sampler_options.event,
        .frequency = feed_frequency(feed),
        .stack_size = options->stack_size,
        .buffer = options->buffer ? perf_buffer_bytes(options->buffer) : BUFFER_SIZE,
        .command = words,
    };
    return sampler_new(&feed->sampler_options, &feed->sampler);
}

int feed_new(const struct watch_jvm_options *options, struct feed **out)
{
    struct feed *feed = calloc(1, sizeof *feed);
    *out = feed;
    if (!feed) {
        return failed_to(-ENOMEM, "start");
    }
    feed->options = options;
    feed->perf = NO_PERF;
    feed->event = perf_choose_event(options->event);
    if (!feed->event) {
        return failed_to(-ENOMEM, "start");
    }
    (void)counter_parse(feed->event, &feed->sampler_options.event);
    const char *why = lacks(feed);
    if (counter_is_software(&feed->sampler_options.event)) {
        info_message("how many %s a sample stands for is the kernel's guess, and can be many times "
                     "wrong; jdperf record -e %s counts them right",
                     feed->event, feed->event);
    }
    if (why && *why) {
        info_message(
            "perf takes the samples, too few of threads that live for a few milliseconds: %s", why);
    }
    if (!why && open_sampler(feed) == 0) {
        return 0;
    }
    if (!perf_sees_kernel()) {
        tell_of_no_kernel();
    }
    return perf_check() ? -ENOENT : 0;
}

void feed_free(struct feed *feed)
{
    if (feed) {
        sampler_free(feed->sampler);
        perf_free(&feed->perf);
        free(feed->event);
        free(feed);
    }
}

bool feed_is_own(const struct feed *feed)
{
    return feed->sampler != NULL;
}

/* ---- perf ---- */

static void perf_arguments(struct feed *feed)
{
    const struct watch_jvm_options *options = feed->options;
    struct perf_run *perf = &feed->perf;
    char frequency[16];
    char stacks[32];
    char pids[WATCHED_MAX * 12] = "";
    size_t used = 0;
    for (size_t i = 0; i < feed->count; i++) {
        used += (size_t)snprintf(pids + used, sizeof pids - used, "%s%d", i ? "," : "",
                                 (int)feed->jvms[i]);
    }
    snprintf(frequency, sizeof frequency, "%u", feed_frequency(feed));
    snprintf(stacks, sizeof stacks, "dwarf,%u", options->stack_size);
    WORDS_ADD(&perf->arguments, perf_program(), "record", "-k", "mono", "-e", feed->event, "-F",
              frequency, "-o", "-", PERF_OF_TASKS, "-p", pids, "--call-graph", stacks,
              "--proc-map-timeout", PERF_MAPS_TIMEOUT);
    perf_add_build_ids(perf);
    /* Only root may have more than perf_event_mlock_kb. */
    if (options->buffer || geteuid() == 0) {
        WORDS_ADD(&perf->arguments, "-m", options->buffer ? options->buffer : "2M");
    }
}

static int begin_perf(struct feed *feed, int out)
{
    perf_free(&feed->perf);
    feed->perf = NO_PERF;
    setenv("PERF_CONFIG", "/dev/null", 1);
    perf_arguments(feed);
    feed->stale = feed->told_to_end = false;
    feed->next_ping = deadline_in(PING_EVERY_MS);
    return perf_start(&feed->perf, out);
}

static int turn_perf(struct feed *feed)
{
    char answers[256];
    struct pollfd ack = {.fd = feed->perf.ack, .events = POLLIN};
    if (feed->perf.child.pidfd < 0) {
        return 0;
    }
    if (feed->told_to_end && now_ms() >= feed->ends_before) {
        child_signal(&feed->perf.child, SIGKILL);
    }
    while (poll(&ack, 1, 0) == 1 && (ack.revents & POLLIN) &&
           read(feed->perf.ack, answers, sizeof answers) > 0) {
    }
    if (!feed->told_to_end && now_ms() >= feed->next_ping) {
        feed->next_ping = deadline_in(PING_EVERY_MS);
        (void)!write(feed->perf.control, "ping\n", 5);
    }
    return child_ended(&feed->perf.child) && !feed->told_to_end ? -ECHILD : 0;
}

/* ---- Either ---- */

int feed_begin(struct feed *feed, int out)
{
    if (feed->sampler) {
        return sampler_begin(feed->sampler, out);
    }
    return out < 0 ? 0 : begin_perf(feed, out);
}

int feed_add(struct feed *feed, pid_t jvm)
{
    if (feed->sampler) {
        const char *why = sampler_lacks(&jvm, 1);
        return why ? -EXDEV : sampler_add(feed->sampler, jvm);
    }
    if (feed->count == WATCHED_MAX) {
        return -E2BIG;
    }
    feed->jvms[feed->count++] = jvm;
    feed->stale = true;
    return 0;
}

void feed_remove(struct feed *feed, pid_t jvm)
{
    if (feed->sampler) {
        (void)sampler_remove(feed->sampler, jvm);
    }
    for (size_t i = 0; i < feed->count; i++) {
        if (feed->jvms[i] == jvm) {
            feed->jvms[i] = feed->jvms[--feed->count];
            return;
        }
    }
}

bool feed_is_stale(const struct feed *feed)
{
    return feed->stale;
}

bool feed_thin(struct feed *feed, pid_t jvm, uint32_t one_in)
{
    return feed->sampler && sampler_thin(feed->sampler, jvm, one_in) == 0;
}

void feed_pause(struct feed *feed, bool pauses)
{
    if (!feed->sampler && feed->perf.child.pidfd >= 0 && !feed->told_to_end) {
        (void)!write(feed->perf.control, pauses ? "disable\n" : "enable\n", pauses ? 8 : 7);
    }
}

uint32_t feed_polled_max(const struct feed *feed)
{
    return feed->sampler ? sampler_descriptors_max(feed->sampler) : 2;
}

uint32_t feed_descriptors(const struct feed *feed, struct pollfd *list)
{
    if (feed->sampler) {
        return sampler_descriptors(feed->sampler, list);
    }
    uint32_t count = 0;
    /* What has ended is ready for ever, and would be so until the next try. */
    if (feed->perf.child.pidfd >= 0 && !feed->perf.child.reaped) {
        list[count++] = (struct pollfd){.fd = feed->perf.child.pidfd, .events = POLLIN};
        list[count++] = (struct pollfd){.fd = feed->perf.ack, .events = POLLIN};
    }
    return count;
}

int feed_turn(struct feed *feed)
{
    if (!feed->sampler) {
        return turn_perf(feed);
    }
    int64_t now = now_ms();
    feed->waits = now < feed->rests_until;
    if (feed->waits) {
        return 0;
    }
    feed->rests_until = now + TURN_RESTS_MS;
    return sampler_turn(feed->sampler);
}

int feed_turn_within(const struct feed *feed)
{
    return feed->waits ? TURN_RESTS_MS : TURN_EVERY_MS;
}

void feed_words(const struct feed *feed, char *why, size_t size)
{
    why[0] = '\0';
    if (!feed->sampler && feed->perf.says >= 0) {
        watch_last_words(feed->perf.says, why, size);
    }
}

void feed_stop(struct feed *feed)
{
    if (feed->sampler) {
        sampler_stop(feed->sampler);
        (void)sampler_turn(feed->sampler);
    } else if (!feed->told_to_end && feed->perf.child.pidfd >= 0) {
        feed->told_to_end = true;
        feed->ends_before = deadline_in(PERF_END_MS);
        child_signal(&feed->perf.child, SIGINT);
    }
}

bool feed_has_ended(struct feed *feed)
{
    return feed->sampler ? sampler_waiting(feed->sampler) == 0
                         : feed->perf.child.pidfd < 0 || child_ended(&feed->perf.child);
}

pid_t feed_process(const struct feed *feed)
{
    return !feed->sampler && feed->perf.child.pidfd >= 0 ? feed->perf.child.pid : 0;
}
