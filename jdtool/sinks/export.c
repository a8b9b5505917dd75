#include "jdtool/sinks/export.h"

#include "jdtool/base/message.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const struct export_format format_collapsed, format_firefox, format_flame, format_otlp,
    format_otlp_json, format_pprof, format_regions, format_report, format_speedscope,
    format_timeline, format_timeline_json;

const struct export_format *const export_formats[] = {
    &format_pprof,   &format_firefox,   &format_speedscope,    &format_collapsed,
    &format_otlp,    &format_otlp_json, &format_flame,         &format_report,
    &format_regions, &format_timeline,  &format_timeline_json, NULL};

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
    const char *name = event->name ? event->name : "event";
    if (strncmp(name, "cpu-clock", 9) == 0 || strncmp(name, "task-clock", 10) == 0) {
        name = "cpu";
    }
    size_t i = 0;
    for (; name[i] && i + 1 < size; i++) {
        text[i] = (char)(isalnum((unsigned char)name[i]) ? name[i] : '_');
    }
    text[i] = '\0';
}

uint64_t export_event_period(const struct recorded_event *event)
{
    if (event->period) {
        return event->period;
    }
    bool is_time = event->unit && strcmp(event->unit, "nanoseconds") == 0;
    return is_time && event->frequency ? UINT64_C(1000000000) / event->frequency : 0;
}

void export_build_id(const struct module *module, char text[EXPORT_BUILD_ID_MAX])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < module->build_id_size && i < MODULE_BUILD_ID_MAX; i++) {
        snprintf(text + 2 * (size_t)i, 3, "%02x", module->build_id[i]);
    }
}

uint64_t export_wall_time(const struct profile *profile, uint64_t time)
{
    const struct recording *recording = profile->recording;
    return recording->has_wall ? time + (uint64_t)recording->wall_offset : time;
}

/* ---- The sink ---- */

struct export_sink {
    struct sample_sink sink;
    const struct export_format *format;
    const struct export_settings *settings;
    struct profile *profile;
};

static void release(struct sample_sink *base)
{
    struct export_sink *sink = (struct export_sink *)base;
    profile_free(sink->profile);
    free(sink);
}

static int no_memory(const struct export_sink *sink)
{
    error_message("failed to write %s: %s", sink->settings->path, strerror(ENOMEM));
    return -ENOMEM;
}

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct export_sink *sink = (struct export_sink *)base;
    sink->profile = profile_new(sink->format->keeps_times);
    if (!sink->profile) {
        return no_memory(sink);
    }
    sink->profile->recording = recording;
    sink->profile->keeps_identities = sink->format->identities && !sink->settings->no_threads;
    return 0;
}

static int add_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct export_sink *sink = (struct export_sink *)base;
    if (sample->is_late_part) {
        sink->profile->late_parts++; /* it has been counted with its kernel part */
        return 0;
    }
    return profile_add(sink->profile, sample) ? no_memory(sink) : 0;
}

static int add_mark(struct sample_sink *base, const struct resolved_mark *mark)
{
    struct export_sink *sink = (struct export_sink *)base;
    if (!sink->format->keeps_times) { /* without times they tell nothing */
        return 0;
    }
    return profile_add_mark(sink->profile, mark) ? no_memory(sink) : 0;
}

static bool wants_gzip(const struct export_sink *sink)
{
    size_t size = strlen(sink->settings->path);
    return sink->format->gzip || (size > 3 && strcmp(sink->settings->path + size - 3, ".gz") == 0);
}

static int write_profile(struct export_sink *sink)
{
    struct profile *profile = sink->profile;
    struct packed_output *output;
    if (profile->total_count == 0 && (!sink->format->of_marks || profile->mark_count == 0)) {
        error_message("failed to write %s: there are no samples, or no samples that were chosen",
                      sink->settings->path);
        return -ENODATA;
    }
    profile_tell_losses(profile, sink->settings->path);
    profile_close(profile);
    int err = packed_output_open(sink->settings->path, wants_gzip(sink), &output);
    if (err) {
        return err;
    }
    err = sink->format->write(profile, sink->settings, output);
    if (err) {
        packed_output_abort(output);
        return err == -ENOMEM ? no_memory(sink) : err;
    }
    return packed_output_finish(output);
}

static int end(struct sample_sink *base)
{
    int err = write_profile((struct export_sink *)base);
    release(base);
    return err;
}

int export_sink_new(const struct export_format *format, const struct export_settings *settings,
                    struct sample_sink **out)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .sample = add_sample, .mark = add_mark, .end = end, .abort = release};
    struct export_sink *sink = calloc(1, sizeof *sink);
    if (!sink) {
        error_message("failed to write %s: %s", settings->path, strerror(ENOMEM));
        return -ENOMEM;
    }
    sink->sink.ops = &ops;
    sink->format = format;
    sink->settings = settings;
    *out = &sink->sink;
    return 0;
}
