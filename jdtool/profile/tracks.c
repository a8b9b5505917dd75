#include "jdtool/profile/tracks.h"

#include "jdtool/base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t track_of(const struct profile *profile, const struct profile_sample *sample)
{
    return profile->threads[sample->thread].track;
}

static int compare_tracks(const void *a, const void *b)
{
    const struct track_samples *first = a;
    const struct track_samples *second = b;
    return ORDER(first->event, second->event) ?: ORDER(second->weight, first->weight) ?: ORDER(first->track, second->track);
}

int tracks_make(const struct profile *profile, struct tracks *tracks)
{
    static const enum sample_key keys[] = {BY_EVENT, BY_TRACK, BY_TIME, BY_NUMBER};
    uint32_t count = profile->sample_count;
    size_t most = (size_t)profile->track_count * profile->recording->event_count;
    most = most < count ? most : count;
    *tracks = (struct tracks){.order = profile_order(profile, keys),
                              .list = calloc(most + 1, sizeof *tracks->list)};
    if (!tracks->order || !tracks->list) {
        return -ENOMEM;
    }
    struct track_samples *last = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct profile_sample *sample = &profile->samples[tracks->order[i]];
        uint32_t track = track_of(profile, sample);
        if (!last || last->track != track || last->event != sample->event) {
            last = &tracks->list[tracks->count++];
            *last = (struct track_samples){
                .track = track, .event = sample->event, .samples = &tracks->order[i]};
        }
        last->count++;
        last->weight += sample->weight;
    }
    qsort(tracks->list, tracks->count, sizeof *tracks->list, compare_tracks);
    return 0;
}

void tracks_free(struct tracks *tracks)
{
    free(tracks->list);
    free(tracks->order);
    *tracks = (struct tracks){0};
}

void track_name(const struct profile *profile, const struct track_samples *track, char *text,
                size_t size)
{
    const struct profile_track *known = &profile->tracks[track->track];
    const struct profile_thread *thread = &profile->threads[known->thread];
    const struct recording *recording = profile->recording;
    const char *event = recording->event_count > 1 ? recording->events[track->event].name : NULL;
    snprintf(text, size, "%s/%u %s/%u%s%s", profile_process(thread), known->pid, thread->comm,
             known->tid, event ? " " : "", event ? event : "");
}
