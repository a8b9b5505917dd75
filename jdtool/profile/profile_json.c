#include "jdtool/profile/profile_json.h"

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
