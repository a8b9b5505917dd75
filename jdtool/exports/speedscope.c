/*
 * speedscope's own format: a profile for each thread, its samples in the order of their times. Its
 * importer of pprof would lose inlined frames.
 */
#include "jdtool/base/array.h"
#include "jdtool/base/json_writer.h"
#include "jdtool/exports/export.h"
#include "jdtool/profile/tracks.h"

#include <errno.h>

struct speedscope {
    struct json_writer json;
    const struct profile *profile;
    uint32_t *path;
    uint32_t path_room;
};

static void put_frames(struct speedscope *s)
{
    json_object(&s->json, "shared");
    json_array(&s->json, "frames");
    for (uint32_t i = 0; i < s->profile->function_count; i++) {
        const struct profile_function *function = &s->profile->functions[i];
        json_object(&s->json, NULL);
        json_text(&s->json, "name", function->name);
        if (function->file) {
            json_text(&s->json, "file", function->file);
        }
        if (function->first_line) {
            json_uint(&s->json, "line", function->first_line);
        }
        json_end(&s->json);
    }
    json_end(&s->json);
    json_end(&s->json);
}

/* The frames of a stack, the root first. */
static int put_stack(struct speedscope *s, uint32_t node)
{
    const struct profile *profile = s->profile;
    uint32_t depth = 0;
    for (uint32_t at = node; at != PROFILE_NONE; at = profile->nodes[at].parent) {
        const struct profile_location *location = &profile->locations[profile->nodes[at].location];
        for (uint32_t i = 0; i < location->line_count; i++) {
            if (ARRAY_RESERVE(s->path, depth, s->path_room)) {
                return -ENOMEM;
            }
            s->path[depth++] = profile->lines[location->first_line + i].function;
        }
    }
    json_array(&s->json, NULL);
    while (depth > 0) {
        json_uint(&s->json, NULL, s->path[--depth]);
    }
    json_end(&s->json);
    return 0;
}

static const char *unit_of(const struct recorded_event *event)
{
    return event_is_time(event) || event_is_bytes(event) ? event->unit : "none";
}

static int put_track(struct speedscope *s, const struct track_samples *track)
{
    const struct profile *profile = s->profile;
    const struct recorded_event *event = &profile->recording->events[track->event];
    char name[256];
    track_name(profile, track, name, sizeof name);
    uint64_t total = 0;
    int err = 0;
    json_object(&s->json, NULL);
    json_text(&s->json, "type", "sampled");
    json_text(&s->json, "name", name);
    json_text(&s->json, "unit", unit_of(event));
    json_array(&s->json, "samples");
    for (uint32_t i = 0; !err && i < track->count; i++) {
        err = put_stack(s, profile->samples[track->samples[i]].node);
    }
    json_end(&s->json);
    json_array(&s->json, "weights");
    for (uint32_t i = 0; i < track->count; i++) {
        json_uint(&s->json, NULL, profile->samples[track->samples[i]].weight);
        total += profile->samples[track->samples[i]].weight;
    }
    json_end(&s->json);
    json_uint(&s->json, "startValue", 0);
    json_uint(&s->json, "endValue", total);
    json_end(&s->json);
    return err;
}

static int write_speedscope(const struct profile *profile, const struct export_settings *settings,
                            struct packed_output *output)
{
    (void)settings;
    struct speedscope s = {.profile = profile};
    struct tracks tracks;
    int err = tracks_make(profile, &tracks);
    json_start(&s.json, output);
    json_object(&s.json, NULL);
    json_text(&s.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    json_text(&s.json, "exporter", "jdagent");
    json_text(&s.json, "name", profile->recording->command_line);
    put_frames(&s);
    json_uint(&s.json, "activeProfileIndex", 0);
    json_array(&s.json, "profiles");
    for (uint32_t i = 0; !err && i < tracks.count; i++) {
        err = put_track(&s, &tracks.list[i]);
    }
    json_end(&s.json);
    json_end(&s.json);
    packed_output_text(output, "\n");
    tracks_free(&tracks);
    free(s.path);
    return err;
}

extern const struct export_format format_speedscope;
const struct export_format format_speedscope = {
    .name = "speedscope",
    .file = "profile.speedscope.json",
    .about = "for https://www.speedscope.app, each thread over time",
    .keeps_times = true,
    .write = write_speedscope,
};
