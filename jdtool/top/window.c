#include "jdtool/top/window.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <stdlib.h>

/* It begins anew when its profile has this many times its length, and this many samples. Nothing
 * that samples led to is kept then (sample_sink_ops.before). */
#define RENEW_LENGTHS 30
#define RENEW_SAMPLES 20000

struct window {
    struct sample_sink sink;
    uint64_t length;
    const struct recording *recording;
    struct profile *profile; /* NULL: no sample has come since it began anew */
    uint64_t since;          /* the time of its first sample */
};

static int no_memory(void)
{
    return failed_to(-ENOMEM, "keep samples");
}

/* ---- As a sample sink ---- */

static int begin(struct sample_sink *base, const struct recording *recording)
{
    ((struct window *)base)->recording = recording;
    return 0;
}

static int before(struct sample_sink *base, uint64_t time, bool *holds)
{
    struct window *window = (struct window *)base;
    const struct profile *profile = window->profile;
    if (profile && profile->sample_count > RENEW_SAMPLES &&
        time > window->since + RENEW_LENGTHS * window->length) {
        profile_free(window->profile);
        window->profile = NULL;
    }
    *holds = window->profile != NULL;
    return 0;
}

static int add_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct window *window = (struct window *)base;
    if (sample->is_late_part) {
        return 0;
    }
    if (!window->profile) {
        window->profile = profile_new(true);
        window->since = sample->time;
    }
    if (!window->profile) {
        return no_memory();
    }
    window->profile->recording = window->recording;
    return profile_add(window->profile, sample) ? no_memory() : 0;
}

static void release(struct sample_sink *base)
{
    struct window *window = (struct window *)base;
    profile_free(window->profile);
    free(window);
}

static int end(struct sample_sink *base)
{
    release(base);
    return 0;
}

int window_new(uint64_t length, struct window **out, struct sample_sink **sink)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .before = before, .sample = add_sample, .end = end, .abort = release};
    struct window *window = calloc(1, sizeof *window);
    if (!window) {
        return no_memory();
    }
    window->sink.ops = &ops;
    window->sink.reads_code = true;
    window->length = length;
    *out = window;
    *sink = &window->sink;
    return 0;
}

/* ---- For who looks ---- */

const struct recording *window_recording(const struct window *window)
{
    return window->recording;
}

uint64_t window_span(const struct window *window, uint64_t now)
{
    uint64_t age = window->profile && now > window->since ? now - window->since : 0;
    return age < window->length ? age : window->length;
}

int window_view(const struct window *window, uint64_t now, const struct window_choice *choice,
                struct profile *view)
{
    const struct profile *profile = window->profile;
    uint64_t from = now > window->length ? now - window->length : 0;
    *view = (struct profile){.recording = window->recording};
    if (!profile) {
        return 0;
    }
    *view = *profile;
    view->sample_count = 0;
    view->total_count = 0;
    view->samples = malloc(((size_t)profile->sample_count + 1) * sizeof *view->samples);
    if (!view->samples) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct profile_thread *thread = &profile->threads[sample->thread];
        if (sample->time >= from && sample->time <= now &&
            (!choice->pid || thread->pid == choice->pid) &&
            (!choice->tid || thread->tid == choice->tid)) {
            view->samples[view->sample_count++] = *sample;
            view->total_count += sample->count;
        }
    }
    return 0;
}

void window_view_free(struct profile *view)
{
    free(view->samples);
    view->samples = NULL;
}
