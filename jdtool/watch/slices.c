#include "jdtool/watch/slices.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct slices_sink {
    struct sample_sink sink;
    const struct slices_options *options;
    const struct recording *recording;
    struct recording described; /* with a wall clock, for the formats */
    struct profile *profile;    /* NULL: the slice has no sample yet */
    bool keeps_times;           /* some format does */
    uint64_t from, until;       /* of the slice, on the recording's clock; 0: none has begun */
    uint64_t given_until;       /* the last one's */
    struct slice slice;
};

static int no_memory(void)
{
    return failed_to(-ENOMEM, "make a slice");
}

static void forget(struct slices_sink *sink)
{
    profile_free(sink->profile);
    sink->profile = NULL;
    sink->slice = (struct slice){0};
    sink->from = sink->until = 0;
}

static int64_t wall_offset(void)
{
    return (int64_t)(clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC));
}

/* perf's pipe may tell of its clock only at its end. */
static void describe(struct slices_sink *sink)
{
    sink->described = *sink->recording;
    sink->described.verdict = sink->options->note;
    if (!sink->described.has_wall) {
        sink->described.wall_offset = wall_offset();
        sink->described.has_wall = true;
    }
}

static int write_body(struct slices_sink *sink, uint32_t index, uint8_t **body)
{
    const struct export_format *format = sink->options->formats[index];
    struct profile view;
    struct packed_output *output;
    int err = packed_output_open_memory(true, &output);
    if (err) {
        return err;
    }
    bool apart = sink->options->by_thread;
    err = profile_view(sink->profile, format->keeps_times, apart, !apart, &view);
    if (!err) {
        err = format->write(&view, sink->options->settings, output);
        profile_view_free(sink->profile, &view);
    }
    if (err) {
        packed_output_abort(output);
        return err == -ENOMEM ? no_memory() : err;
    }
    err = packed_output_take(output, body, &sink->slice.sizes[index]);
    sink->slice.bodies[index] = err ? NULL : *body;
    return err;
}

static int give(struct slices_sink *sink)
{
    uint8_t *bodies[SLICE_FORMATS_MAX] = {0};
    int err = 0;
    if (sink->slice.samples == 0) {
        forget(sink);
        return 0;
    }
    describe(sink);
    sink->slice.lost = sink->recording->counts.lost_samples;
    sink->slice.let_go_early = sink->recording->counts.let_go_early;
    struct profile *profile = sink->profile;
    profile->recording = &sink->described;
    profile->from = profile->from < sink->from ? profile->from : sink->from;
    profile->until = profile->until > sink->until - 1 ? profile->until : sink->until - 1;
    sink->given_until = sink->until;
    sink->slice.from = sink->from + (uint64_t)sink->described.wall_offset;
    sink->slice.until = sink->until + (uint64_t)sink->described.wall_offset;
    for (uint32_t i = 0; !err && i < sink->options->format_count; i++) {
        err = write_body(sink, i, &bodies[i]);
    }
    if (!err) {
        err = sink->options->take(sink->options->context, &sink->slice);
    }
    for (size_t i = 0; i < SLICE_FORMATS_MAX; i++) {
        free(bodies[i]);
    }
    forget(sink);
    return err;
}

/* ---- As a sample sink ---- */

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct slices_sink *sink = (struct slices_sink *)base;
    sink->recording = recording;
    return 0;
}

/* Ends a slice that is over at that time. */
static int advance(struct slices_sink *sink, uint64_t time)
{
    return sink->until && time >= sink->until ? give(sink) : 0;
}

static int before(struct sample_sink *base, uint64_t time, bool *holds)
{
    struct slices_sink *sink = (struct slices_sink *)base;
    int err = advance(sink, time);
    *holds = sink->until != 0;
    return err;
}

static void count_frames(struct slices_sink *sink, const struct resolved_sample *sample)
{
    sink->slice.samples++;
    for (uint32_t at = sample->node; at; at = sample->stacks->nodes[at].caller) {
        const struct location *location = stack_table_at(sample->stacks, at);
        sink->slice.frames += location->line_count;
        sink->slice.unnamed += location_own(location)->kind == RESOLVED_UNKNOWN;
    }
}

static int add_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct slices_sink *sink = (struct slices_sink *)base;
    if (sample->is_late_part) {
        return 0; /* it has been counted with its kernel part */
    }
    int err = advance(sink, sample->time);
    if (!sink->until) {
        /* Slices of all JVMs begin at the same times. */
        uint64_t time = sample->time > sink->given_until ? sample->time : sink->given_until;
        sink->from = time - time % sink->options->length;
        sink->until = sink->from + sink->options->length;
    }
    struct resolved_sample merged = *sample;
    if (!sink->options->by_thread && !sink->keeps_times) {
        merged.thread.tid = merged.thread.pid;
        merged.thread.comm = merged.thread.process_name = "";
    }
    if (!err && !sink->profile && (sink->profile = profile_new(sink->keeps_times))) {
        sink->profile->keeps_identities = sink->options->by_thread;
        sink->profile->joins_runs = true;
    }
    if (!err && (!sink->profile || profile_add(sink->profile, &merged))) {
        err = no_memory();
    }
    count_frames(sink, sample);
    return err;
}

int slices_sink_turn(struct sample_sink *base, uint64_t now, uint64_t slack)
{
    struct slices_sink *sink = (struct slices_sink *)base;
    return sink->until && now >= sink->until + slack ? give(sink) : 0;
}

static void release(struct sample_sink *base)
{
    forget((struct slices_sink *)base);
    free(base);
}

static int end(struct sample_sink *base)
{
    int err = give((struct slices_sink *)base);
    release(base);
    return err;
}

int slices_sink_new(const struct slices_options *options, struct sample_sink **out)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .before = before, .sample = add_sample, .end = end, .abort = release};
    struct slices_sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        return no_memory();
    }
    sink->sink.ops = &ops;
    sink->options = options;
    for (uint32_t i = 0; i < options->format_count; i++) {
        sink->keeps_times |= options->formats[i]->keeps_times;
    }
    *out = &sink->sink;
    return 0;
}
