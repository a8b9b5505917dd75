#include "jdtool/compare/pooled.h"

#include "jdtool/base/message.h"
#include "jdtool/compare/comparison.h"
#include "jdtool/exports/export.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A side's runs as one profile, without times: a function, a line and a location a name, a sample
 * a node and event. */
struct pooled {
    struct recording recording;
    struct recorded_event *events;
    struct profile profile;
    struct profile_thread thread;
    struct profile_track track;
    char name[64];
};

static void pooled_free(struct pooled *pooled)
{
    free(pooled->events);
    free(pooled->profile.functions);
    free(pooled->profile.lines);
    free(pooled->profile.locations);
    free(pooled->profile.nodes);
    free(pooled->profile.samples);
}

static void put_names(const struct runs *runs, struct profile *profile)
{
    for (uint32_t i = 0; i < runs->name_count; i++) {
        const struct runs_name *name = &runs->names[i];
        profile->functions[i] = (struct profile_function){
            .name = name->text, .system_name = name->text, .file = name->file};
        profile->lines[i] =
            (struct profile_line){.function = i, .kind = name->kind, .tier = name->tier};
        profile->locations[i] = (struct profile_location){.first_line = i, .line_count = 1};
    }
    for (uint32_t i = 0; i < runs->node_count; i++) {
        profile->nodes[i] = (struct profile_node){runs->nodes[i].parent, runs->nodes[i].name};
    }
}

/* Each run counts alike, however much it took: what is shown are means of shares. */
static void put_samples(const struct runs *runs, uint32_t from, uint32_t until,
                        struct profile *profile)
{
    for (uint32_t e = 0; e < runs->event_count; e++) {
        const struct runs_event *event = &runs->events[e];
        double whole = 0;
        for (uint32_t k = from; k < until; k++) {
            whole += event->whole[k] / (until - from);
        }
        for (uint32_t i = 0; i < runs->node_count && i < event->room; i++) {
            double share = 0;
            for (uint32_t k = from; k < until; k++) {
                double weight = event->weights[(size_t)i * runs->run_count + k];
                share += event->whole[k] > 0 ? weight / event->whole[k] / (until - from) : 0;
            }
            if (share > 0) {
                profile->samples[profile->sample_count++] = (struct profile_sample){
                    .weight = (uint64_t)llround(share * whole), .count = 1, .node = i, .event = e};
            }
        }
    }
    profile->total_count = profile->sample_count;
}

static int pooled_make(const struct runs *runs, enum side side, struct pooled *pooled)
{
    uint32_t from = side == SIDE_BEFORE ? 0 : runs->before_count;
    uint32_t until = side == SIDE_BEFORE ? runs->before_count : runs->run_count;
    struct profile *profile = &pooled->profile;
    size_t samples = (size_t)runs->node_count * runs->event_count + 1;
    snprintf(pooled->name, sizeof pooled->name, "%u runs %s", until - from,
             side == SIDE_BEFORE ? "before" : "after");
    pooled->events = calloc((size_t)runs->event_count + 1, sizeof *pooled->events);
    profile->functions = calloc((size_t)runs->name_count + 1, sizeof *profile->functions);
    profile->lines = calloc((size_t)runs->name_count + 1, sizeof *profile->lines);
    profile->locations = calloc((size_t)runs->name_count + 1, sizeof *profile->locations);
    profile->nodes = calloc((size_t)runs->node_count + 1, sizeof *profile->nodes);
    profile->samples = calloc(samples, sizeof *profile->samples);
    if (!pooled->events || !profile->functions || !profile->lines || !profile->locations ||
        !profile->nodes || !profile->samples) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < runs->event_count; i++) {
        pooled->events[i] = (struct recorded_event){
            .id = i, .name = runs->events[i].name, .unit = runs->events[i].unit};
    }
    pooled->recording = (struct recording){.path = pooled->name,
                                           .events = pooled->events,
                                           .event_count = runs->event_count,
                                           .has_chains = true};
    pooled->thread =
        (struct profile_thread){.comm = "", .process_name = "", .virtual_name = "", .labels = ""};
    profile->recording = &pooled->recording;
    profile->threads = &pooled->thread;
    profile->tracks = &pooled->track;
    profile->function_count = profile->line_count = profile->location_count = runs->name_count;
    profile->node_count = runs->node_count;
    profile->thread_count = profile->track_count = 1;
    put_names(runs, profile);
    put_samples(runs, from, until, profile);
    return 0;
}

/* By node: a bit for each event of which it changed. NULL: no memory. */
static uint32_t *find_changed(struct runs *runs)
{
    uint32_t *changed = calloc((size_t)runs->node_count + 1, sizeof *changed);
    int err = changed ? 0 : -ENOMEM;
    for (uint32_t e = 0; !err && e < runs->event_count && e < 32; e++) {
        struct comparisons frames = {0};
        err = compare_frames(runs, e, &frames);
        for (uint32_t i = 0; !err && i < frames.count; i++) {
            changed[frames.list[i].id] |= (uint32_t)frames.list[i].is_change << e;
        }
        comparisons_free(&frames);
    }
    if (err) {
        free(changed);
        changed = NULL;
    }
    return changed;
}

static int write_before(const struct profile *profile, const struct export_settings *settings,
                        struct export_before *before)
{
    struct packed_output *output;
    uint8_t *bytes = NULL;
    int err = packed_output_open_memory(false, &output);
    if (err) {
        return err;
    }
    err = export_format_of("flame")->write(profile, settings, output);
    int taken = packed_output_take(output, &bytes, &before->size);
    before->bytes = bytes;
    return err ? err : taken;
}

int pooled_write_page(struct runs *runs, const char *path, const char *title)
{
    struct pooled sides[SIDES] = {0};
    uint32_t *changed = find_changed(runs);
    struct export_settings settings = {
        .path = path, .title = title, .changed = changed, .runs = runs->run_count};
    struct export_before before = {.name = sides[SIDE_BEFORE].name};
    struct packed_output *output;
    int err = changed ? 0 : -ENOMEM;
    for (uint32_t i = 0; !err && i < SIDES; i++) {
        err = pooled_make(runs, i, &sides[i]);
    }
    err = err ? err : write_before(&sides[SIDE_BEFORE].profile, &settings, &before);
    if (!err) {
        settings.before = &before;
        settings.name = sides[SIDE_AFTER].name;
        err = packed_output_open(path, false, &output);
        if (!err) {
            err = export_format_of("html")->write(&sides[SIDE_AFTER].profile, &settings, output);
            packed_output_fail(output, err);
            err = packed_output_finish(output);
        }
    } else {
        error_message("failed to write %s: %s", path, strerror(-err));
    }
    free((void *)before.bytes);
    pooled_free(&sides[SIDE_BEFORE]);
    pooled_free(&sides[SIDE_AFTER]);
    free(changed);
    return err;
}
