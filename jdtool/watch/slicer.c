/*
 * A sink that hands each sample to the slices of its JVM, and measures what it has cost: from
 * `before`, after which it is resolved, to its end. What cannot be said to be of one JVM (reading,
 * ordering) is in no JVM's cost.
 */
#include "jdtool/watch/slicer.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/confined/confined.h"
#include "jdtool/pipeline/stream.h"
#include "jdtool/watch/slice_pipe.h"
#include "jdtool/watch/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* So long after its end a slice waits for samples that are under way: a turn of the sampler's, and
 * what the stream waits for. */
#define SLACK_NS UINT64_C(2500000000)

/* What JVMs have cost is told this often, in ns. */
#define TELL_EVERY UINT64_C(1000000000)

/* Records of all JVMs that wait for their dumps, in bytes: of a busy processor some seconds. */
#define QUEUE_BUDGET ((size_t)64 << 20)

/* What is kept of a watched JVM. It does not move: labels and slices point into it. */
struct part {
    uint32_t pid;
    uint64_t ends_at; /* on CLOCK_MONOTONIC, ns; 0: not yet known */
    uint32_t one_in;  /* of its samples comes */
    char note[160];   /* "": all came, in this slice */
    struct labels labels;
    struct export_settings settings;
    struct slices_options slices;
    struct sample_sink *sink;
    uint64_t cpu_ns, samples, told_samples;
    uint64_t grown; /* bytes that its data has made us take beyond what we had taken before */
    struct slicer *slicer;
};

struct slicer {
    struct sample_sink sink;
    const struct slicer_options *options;
    const struct recording *recording; /* NULL: it has not begun */
    struct part *parts[WATCHED_MAX];
    uint32_t count;
    struct bytes orders; /* that have come, and are not done */
    struct labels labels;
    struct slicer_at_work *at_work;
    uint64_t since; /* on the processor's clock: when the sample at hand was begun with */
    uint64_t next_tell;
};

static int no_memory(void)
{
    return failed_to(-ENOMEM, "make slices");
}

static int send(const struct part *part, enum slice_message_kind kind, const struct slice *slice)
{
    const struct slicer *slicer = part->slicer;
    struct slice_message message = {
        .magic = SLICE_MAGIC,
        .kind = kind,
        .pid = part->pid,
        .cpu_ns = part->cpu_ns,
        .samples = part->samples,
        .lost = slicer->recording ? slicer->recording->counts.lost_samples : 0,
    };
    if (slice) {
        message.slice = *slice;
    }
    return slice_send(slicer->options->out, &message); /* the watch has ended: so do we, silently */
}

/* ---- JVMs ---- */

static void note_rate(struct part *part)
{
    part->note[0] = '\0';
    if (part->one_in > 1) {
        snprintf(part->note, sizeof part->note,
                 "thinned: one in %u of its samples was taken, and counts for as many, since the "
                 "JVM's share of a processor was used up",
                 part->one_in);
    }
}

static int take_slice(void *context, const struct slice *slice)
{
    struct part *part = context;
    int err = send(part, SLICE_PROFILE, slice);
    note_rate(part); /* the next one has samples at this rate alone */
    return err;
}

static struct part *find_part(const struct slicer *slicer, uint32_t pid)
{
    for (uint32_t i = 0; i < slicer->count; i++) {
        if (slicer->parts[i]->pid == pid) {
            return slicer->parts[i];
        }
    }
    return NULL;
}

/* What we take at most is raised by the JVM whose data is read meanwhile. */
static void work_on(void *context, uint32_t pid)
{
    struct slicer *slicer = context;
    struct slicer_at_work *at_work = slicer->at_work;
    struct rusage usage;
    uint32_t before = at_work->pid;
    if (before == pid || getrusage(RUSAGE_SELF, &usage) != 0) {
        return;
    }
    uint64_t peak = (uint64_t)usage.ru_maxrss * 1024;
    uint64_t more = peak - at_work->peak;
    struct part *part = before && more ? find_part(slicer, before) : NULL;
    if (part) {
        part->grown += more;
        if (part->grown > at_work->grown) {
            at_work->grower = before;
            at_work->grown = part->grown;
        }
    }
    at_work->peak = peak;
    at_work->pid = pid;
}

static int begin_part(struct slicer *slicer, uint32_t pid, const struct labels *labels)
{
    const struct slicer_options *options = slicer->options;
    struct part *part = find_part(slicer, pid);
    if (part) { /* it is watched again, before its last slice was given */
        part->ends_at = 0;
        return 0;
    }
    part = slicer->count < WATCHED_MAX ? calloc(1, sizeof *part) : NULL;
    if (!part) {
        return no_memory();
    }
    part->pid = pid;
    part->slicer = slicer;
    for (uint32_t i = 0; i < labels->count; i++) {
        labels_set(&part->labels, labels->names[i], labels->values[i]);
    }
    part->settings = (struct export_settings){
        .path = "slice",
        .no_threads = !options->threads,
        .service = labels_get(&part->labels, "service_name"),
        .labels = part->labels.list,
        .label_count = part->labels.count,
    };
    part->slices = (struct slices_options){
        .length = options->slice * UINT64_C(1000000000),
        .formats = {options->formats[0], options->formats[1]},
        .format_count = options->format_count,
        .settings = &part->settings,
        .note = part->note,
        .by_thread = options->threads,
        .take = take_slice,
        .context = part,
    };
    int err = slices_sink_new(&part->slices, &part->sink);
    if (err) {
        free(part);
        return err;
    }
    slicer->parts[slicer->count++] = part;
    return part->sink->ops->begin(part->sink, slicer->recording);
}

/* Gives its last slice away. */
static int end_part(struct slicer *slicer, uint32_t index)
{
    struct part *part = slicer->parts[index];
    slicer->parts[index] = slicer->parts[--slicer->count];
    work_on(slicer, part->pid);
    int err = part->sink->ops->end(part->sink);
    err = err ? err : send(part, SLICE_ENDED, NULL);
    free(part);
    return err;
}

static void thin_part(struct part *part, uint32_t one_in)
{
    uint32_t before = part->one_in;
    part->one_in = one_in;
    if (one_in > before || one_in > 1) {
        note_rate(part); /* else what the slice has of the other rate is told until its end */
    }
}

/* ---- Orders ---- */

static int follow(struct slicer *slicer, const struct slice_order *order)
{
    struct part *part = find_part(slicer, order->pid);
    if (order->kind == ORDER_BEGIN) {
        return begin_part(slicer, order->pid, &slicer->labels);
    }
    if (!part && order->kind == ORDER_END) { /* nothing is left of it */
        const struct part none = {.pid = order->pid, .slicer = slicer};
        return send(&none, SLICE_ENDED, NULL);
    }
    if (part && order->kind == ORDER_THIN) {
        thin_part(part, order->one_in);
    } else if (part && order->kind == ORDER_END) {
        part->ends_at = clock_ns(CLOCK_MONOTONIC) + SLACK_NS;
    }
    return 0;
}

static int take_orders(struct slicer *slicer)
{
    struct bytes *orders = &slicer->orders;
    struct slice_order order;
    uint8_t some[4096];
    ssize_t n;
    while ((n = read(slicer->options->orders, some, sizeof some)) > 0) {
        bytes_put(orders, some, (size_t)n);
    }
    if (orders->failed) {
        return no_memory();
    }
    size_t done = 0;
    size_t size;
    int err = 0;
    while (!err && (size = slice_order_take(orders->at + done, orders->size - done, &order,
                                            &slicer->labels)) > 0) {
        done += size;
        err = follow(slicer, &order);
    }
    if (done) {
        orders->size -= done;
        memmove(orders->at, orders->at + done, orders->size);
    }
    return err;
}

/* ---- As a sample sink ---- */

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct slicer *slicer = (struct slicer *)base;
    slicer->recording = recording;
    return take_orders(slicer);
}

static int before(struct sample_sink *base, uint64_t time, bool *holds)
{
    struct slicer *slicer = (struct slicer *)base;
    int err = 0;
    *holds = false;
    for (uint32_t i = 0; i < slicer->count && !err; i++) {
        struct sample_sink *sink = slicer->parts[i]->sink;
        bool its = false;
        err = sink->ops->before(sink, time, &its);
        *holds |= its;
    }
    slicer->since = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return err;
}

/* Whose JVM is not known is not watched any more: orders come before the samples. */
static int add_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct slicer *slicer = (struct slicer *)base;
    struct part *part = find_part(slicer, sample->thread.pid);
    int err = part ? 0 : take_orders(slicer);
    part = part ? part : find_part(slicer, sample->thread.pid);
    if (err || !part) {
        return err;
    }
    err = part->sink->ops->sample(part->sink, sample);
    part->samples++;
    part->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - slicer->since;
    return err;
}

static int turn(void *context)
{
    struct slicer *slicer = context;
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    bool tells = now >= slicer->next_tell;
    int err = take_orders(slicer);
    for (uint32_t i = 0; i < slicer->count && !err;) {
        struct part *part = slicer->parts[i];
        work_on(slicer, part->pid);
        if (part->ends_at && now >= part->ends_at) {
            err = end_part(slicer, i);
            continue;
        }
        err = slices_sink_turn(part->sink, now, SLACK_NS);
        if (!err && tells && part->samples != part->told_samples) {
            part->told_samples = part->samples;
            err = send(part, SLICE_COST, NULL);
        }
        i++;
    }
    work_on(slicer, 0);
    slicer->next_tell = tells ? now + TELL_EVERY : slicer->next_tell;
    return err;
}

static int end(struct sample_sink *base)
{
    struct slicer *slicer = (struct slicer *)base;
    int err = 0;
    while (slicer->count && !err) {
        err = end_part(slicer, 0);
    }
    return err;
}

static void give_up(struct sample_sink *base)
{
    struct slicer *slicer = (struct slicer *)base;
    while (slicer->count) {
        struct part *part = slicer->parts[--slicer->count];
        part->sink->ops->abort(part->sink);
        free(part);
    }
}

int slicer(const struct slicer_options *options)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .before = before, .sample = add_sample, .end = end, .abort = give_up};
    struct slicer *slicer = calloc(1, sizeof *slicer);
    if (!slicer) {
        (void)no_memory();
        return STATUS_FAILED;
    }
    prctl(PR_SET_NAME, "jdperf-slicer");
    slicer->sink.ops = &ops;
    slicer->options = options;
    slicer->at_work = mmap(NULL, sizeof *slicer->at_work, PROT_READ | PROT_WRITE, MAP_SHARED,
                           options->at_work, 0);
    int status = STATUS_FAILED;
    if (slicer->at_work == MAP_FAILED) {
        failed_to(-errno, "start");
    } else if (confined_enter(options->parent)) {
        const struct stream_options stream = {
            .input = "-",
            .symbolize = true,
            .sparing = true,
            .budget = QUEUE_BUDGET,
            .work_on = work_on,
            .turn = turn,
            .context = slicer,
        };
        struct sample_sink *sinks[] = {&slicer->sink};
        struct stream_result result;
        status = stream_run(&stream, sinks, 1, &result) ? STATUS_FAILED : STATUS_DONE;
    }
    bytes_free(&slicer->orders);
    free(slicer);
    return status;
}
