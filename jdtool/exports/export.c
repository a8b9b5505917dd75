#include "jdtool/exports/export.h"

#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/threads.h"
#include "jdtool/profile/saved.h"

#include <ctype.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct export_format format_collapsed, format_firefox, format_flame, format_html,
    format_jfr, format_otlp, format_otlp_json, format_pprof, format_regions, format_report,
    format_speedscope, format_timeline, format_timeline_json;

const struct export_format *const export_formats[] = {
    &format_html,      &format_pprof,    &format_firefox,       &format_jfr,   &format_speedscope,
    &format_collapsed, &format_otlp,     &format_otlp_json,     &format_flame, &format_report,
    &format_regions,   &format_timeline, &format_timeline_json, NULL};

const struct export_format *export_format_of(const char *name)
{
    for (size_t i = 0; export_formats[i]; i++) {
        if (strcmp(export_formats[i]->name, name) == 0) {
            return export_formats[i];
        }
    }
    return NULL;
}

const struct export_format *export_choose(const char *word, const char **file)
{
    size_t size = strcspn(word, "=");
    *file = word[size] ? word + size + 1 : NULL;
    for (size_t i = 0; export_formats[i]; i++) {
        const struct export_format *format = export_formats[i];
        if (format->file && strncmp(format->name, word, size) == 0 && !format->name[size]) {
            return *file && !**file ? NULL : format;
        }
    }
    return NULL;
}

const struct export_format *export_by_ending(const char *path)
{
    static const struct {
        const char *end;
        const struct export_format *format;
    } ends[] = {
        {".html", &format_html},
        {".pb.gz", &format_pprof},
        {".pprof", &format_pprof},
        {".speedscope.json", &format_speedscope},
        {".json", &format_firefox},
        {".json.gz", &format_firefox},
        {".jfr", &format_jfr},
        {".txt", &format_collapsed},
        {".collapsed", &format_collapsed},
        {".collapsed.gz", &format_collapsed},
    };
    size_t size = strlen(path);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i].end);
        if (size > end && strcmp(path + size - end, ends[i].end) == 0) {
            return ends[i].format;
        }
    }
    return NULL;
}

void export_format_names(bool all, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; export_formats[i] && used < size; i++) {
        if (all || export_formats[i]->file) {
            int length = snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                  export_formats[i]->name);
            used += length > 0 ? (size_t)length : 0;
        }
    }
}

void export_event_name(const struct recorded_event *event, char *text, size_t size)
{
    const char *name = event->name;
    if (strncmp(name, "cpu-clock", 9) == 0 || strncmp(name, "task-clock", 10) == 0) {
        name = "cpu";
    }
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++) {
        text[i] = (char)(isalnum((unsigned char)name[i]) ? name[i] : '_');
    }
    text[i] = '\0';
}

const char *export_kind_name(enum resolved_kind kind)
{
    static const char *const names[RESOLVED_KINDS] = {
        [RESOLVED_UNKNOWN] = "unknown",         [RESOLVED_KERNEL] = "kernel",
        [RESOLVED_NATIVE] = "native",           [RESOLVED_STUB] = "stub",
        [RESOLVED_COMPILED] = "compiled",       [RESOLVED_INLINED] = "inlined",
        [RESOLVED_INTERPRETED] = "interpreted", [RESOLVED_SUBJECT] = "subject",
    };
    return names[kind];
}

uint64_t export_event_period(const struct recorded_event *event)
{
    if (event->period) {
        return event->period;
    }
    return event_is_time(event) && event->frequency ? UINT64_C(1000000000) / event->frequency : 0;
}

uint64_t export_wall_time(const struct profile *profile, uint64_t time)
{
    const struct recording *recording = profile->recording;
    return recording->has_wall ? time + (uint64_t)recording->wall_offset : time;
}

/* ---- The sink ---- */

struct export_sink {
    struct sample_sink sink;
    const struct export_order *orders;
    uint32_t count;
    bool keeps_samples;  /* else saved ones are all that is wanted, and those are told at once */
    bool keeps_times;    /* some format does; without them marks tell nothing */
    struct saved *saved; /* NULL: nobody wants them */
    struct profile *profile;
};

static void release(struct sample_sink *base)
{
    struct export_sink *sink = (struct export_sink *)base;
    saved_abort(sink->saved);
    profile_free(sink->profile);
    free(sink);
}

static int no_memory(const struct export_sink *sink)
{
    return failed_to(-ENOMEM, "write %s", sink->orders[0].settings.path);
}

static bool wants_identities(const struct export_order *order)
{
    return !order->format || (order->format->identities && !order->settings.no_threads);
}

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct export_sink *sink = (struct export_sink *)base;
    sink->profile = profile_new(sink->keeps_times);
    if (!sink->profile) {
        return no_memory(sink);
    }
    sink->profile->recording = recording;
    for (uint32_t i = 0; i < sink->count; i++) {
        sink->profile->keeps_identities |= wants_identities(&sink->orders[i]);
    }
    return sink->saved && saved_begin(sink->saved, sink->profile) ? no_memory(sink) : 0;
}

static int add_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct export_sink *sink = (struct export_sink *)base;
    struct profile_sample made;
    if (sample->is_late_part) {
        sink->profile->late_parts++; /* it has been counted with its kernel part */
        return 0;
    }
    if (profile_intern(sink->profile, sample, &made) ||
        (sink->saved && saved_sample(sink->saved, &made, sample)) ||
        (sink->keeps_samples && profile_keep(sink->profile, &made))) {
        return no_memory(sink);
    }
    return 0;
}

static int add_mark(struct sample_sink *base, const struct resolved_mark *mark)
{
    struct export_sink *sink = (struct export_sink *)base;
    uint32_t thread;
    if (sink->saved && (profile_intern_thread(sink->profile, mark->thread, &thread) ||
                        saved_mark(sink->saved, mark, thread))) {
        return no_memory(sink);
    }
    return sink->keeps_times && profile_add_mark(sink->profile, mark) ? no_memory(sink) : 0;
}

static bool wants_gzip(const struct export_order *order)
{
    const char *path = order->settings.path;
    size_t size = strlen(path);
    return order->format->gzip || (size > 3 && strcmp(path + size - 3, ".gz") == 0);
}

/* Whether there is something to write. 0, or -ENODATA after a message. */
static int check_order(const struct export_sink *sink, const struct export_order *order)
{
    const char *path = order->settings.path;
    const struct export_format *format = order->format;
    if (!format->of_none && sink->profile->total_count == 0 &&
        (!format->of_marks || sink->profile->mark_count == 0)) {
        bool is_shown = strcmp(path, "-") == 0;
        error_message("%s%s%sthere are no samples, or the selection matches none",
                      is_shown ? "" : "failed to write ", is_shown ? "" : path,
                      is_shown ? "" : ": ");
        return -ENODATA;
    }
    profile_tell_losses(sink->profile, path);
    return 0;
}

static int write_order(const struct export_sink *sink, const struct export_order *order)
{
    const char *path = order->settings.path;
    const struct export_format *format = order->format;
    struct profile profile;
    struct packed_output *output;
    int err = profile_view(sink->profile, format->keeps_times || format->adds_up,
                           wants_identities(order) || format->adds_up, false, &profile);
    if (err) {
        return no_memory(sink);
    }
    struct export_memory *memory = order->settings.memory;
    err = memory ? packed_output_open_memory(format->gzip, &output)
                 : packed_output_open(path, wants_gzip(order), &output);
    if (!err) {
        err = format->write(&profile, &order->settings, output);
        if (!err) {
            err = memory ? packed_output_take(output, &memory->bytes, &memory->size)
                         : packed_output_finish(output);
        } else {
            packed_output_abort(output);
            err = err == -ENOMEM ? no_memory(sink) : err;
        }
    }
    profile_view_free(sink->profile, &profile);
    return err;
}

/* Results that are written from one profile, which nothing changes any more, by several threads. */
struct writing {
    const struct export_sink *sink;
    uint32_t count;   /* of the orders: those that are to be written */
    atomic_uint next; /* that nobody has begun */
    atomic_int err;   /* of one that failed */
};

/* After one that failed no more is begun. */
static void *write_next(void *context)
{
    struct writing *writing = context;
    uint32_t i;
    while (atomic_load(&writing->err) == 0 &&
           (i = atomic_fetch_add(&writing->next, 1)) < writing->count) {
        const struct export_order *order = &writing->sink->orders[i];
        int err = order->format ? write_order(writing->sink, order) : 0;
        if (err) {
            atomic_store(&writing->err, err);
        }
    }
    return NULL;
}

/* So many at the same time at most: each needs memory of its own. */
#define WRITERS_MAX 4

static int write_all(const struct export_sink *sink, uint32_t count)
{
    struct writing writing = {.sink = sink, .count = count};
    pthread_t threads[WRITERS_MAX];
    int processors = count > 1 ? threads_at_once() : 1;
    uint32_t most = processors < WRITERS_MAX ? (uint32_t)processors : WRITERS_MAX;
    uint32_t started = 0;
    while (started + 1 < most && started + 1 < count &&
           threads_start(&threads[started], write_next, &writing)) {
        started++;
    }
    (void)write_next(&writing);
    for (uint32_t i = 0; i < started; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    return atomic_load(&writing.err);
}

static int end(struct sample_sink *base)
{
    struct export_sink *sink = (struct export_sink *)base;
    int err = sink->saved ? saved_close(sink->saved) : 0;
    uint32_t count = 0;
    sink->saved = NULL;
    profile_close(sink->profile);
    while (!err && count < sink->count) {
        err = sink->orders[count].format ? check_order(sink, &sink->orders[count]) : 0;
        count += !err;
    }
    int unwritten = write_all(sink, count);
    release(base);
    return unwritten ? unwritten : err;
}

/* Said before the samples are read that would fill it. */
static int check_path(const struct export_settings *settings)
{
    bool is_file = !settings->memory && strcmp(settings->path, "-") != 0;
    return is_file ? output_path_check(settings->path) : 0;
}

int export_sink_new(const struct export_order *orders, uint32_t count, struct sample_sink **out)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .sample = add_sample, .mark = add_mark, .end = end, .abort = release};
    struct export_sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        return failed_to(-ENOMEM, "write %s", orders[0].settings.path);
    }
    sink->sink.ops = &ops;
    sink->orders = orders;
    sink->count = count;
    int err = 0;
    for (uint32_t i = 0; !err && i < count; i++) {
        sink->keeps_samples |= orders[i].format != NULL;
        sink->keeps_times |= orders[i].format && orders[i].format->keeps_times;
        sink->sink.reads_code |= orders[i].format && orders[i].format->reads_code;
        err = orders[i].format ? check_path(&orders[i].settings)
                               : saved_open(orders[i].settings.path, &sink->saved);
    }
    if (err) {
        release(&sink->sink);
        return err;
    }
    *out = &sink->sink;
    return 0;
}

/* ---- JSON documents ---- */

static void put_event(struct json_writer *json, const struct profile *profile, uint32_t number)
{
    const struct recorded_event *event = &profile->recording->events[number];
    struct profile_sum sum = profile_sum(profile, number);
    json_object(json, NULL);
    json_text(json, "name", event->name);
    json_text(json, "unit", event->unit);
    json_uint(json, "samples", sum.samples);
    json_uint(json, "weight", sum.weight);
    json_end(json);
}

void profile_json_events(struct json_writer *json, const struct profile *profile)
{
    json_array(json, "events");
    for (uint32_t i = 0; i < profile->recording->event_count; i++) {
        put_event(json, profile, i);
    }
    json_end(json);
}

void profile_json_begin(struct json_writer *json, const struct profile *profile,
                        struct packed_output *output)
{
    const struct recording *recording = profile->recording;
    json_start(json, output);
    json_object(json, NULL);
    json_uint(json, "version", 1);
    json_text(json, "recording", recording->path);
    json_text(json, "command", recording->command_line);
    json_text(json, "arch", recording->arch);
    json_uint(json, "samples", profile->total_count);
    profile_json_events(json, profile);
}

void profile_json_end(struct json_writer *json)
{
    json_end(json);
    packed_output_text(json->output, "\n");
}
