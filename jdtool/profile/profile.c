#include "jdtool/profile/profile.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/profile/profile_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct profile *profile_new(bool keep_times)
{
    struct profile *profile = calloc(1, sizeof *profile);
    struct profile_private *private = calloc(1, sizeof *private);
    if (!profile || !private) {
        free(profile);
        free(private);
        return NULL;
    }
    private->of_nodes.element = private->of_locations.element = sizeof(uint32_t);
    profile->keeps_times = keep_times;
    profile->private = private;
    return profile;
}

void profile_close(struct profile *profile)
{
    struct profile_private *private = profile->private;
    hash_map_free(&private->functions);
    hash_map_free(&private->codes);
    hash_map_free(&private->locations);
    hash_map_free(&private->nodes);
    hash_map_free(&private->threads);
    hash_map_free(&private->plain_threads);
    hash_map_free(&private->tracks);
    hash_map_free(&private->samples);
    stack_notes_free(&private->of_nodes);
    stack_notes_free(&private->of_locations);
    free(private->path);
    private->path = NULL;
    private->path_room = 0;
}

void profile_free(struct profile *profile)
{
    if (!profile) {
        return;
    }
    struct profile_private *private = profile->private;
    profile_close(profile);
    intern_free(&private->strings);
    free(private->method_function);
    free(private->module_function);
    free(private->group);
    free(private);
    free(profile->functions);
    free(profile->lines);
    free((void *)profile->codes);
    free(profile->locations);
    free(profile->nodes);
    free(profile->threads);
    free(profile->plain_threads);
    free(profile->tracks);
    free(profile->samples);
    free(profile->marks);
    free(profile->modules);
    free(profile);
}

void profile_tell_losses(const struct profile *profile, const char *path)
{
    if (profile->cut_stacks) {
        warning_message("%s: %" PRIu64 " stacks are cut at their inner end: there are more "
                        "different ones than %u nodes hold",
                        path, profile->cut_stacks, PROFILE_NODES_MAX);
    }
    if (profile->late_parts) {
        warning_message("%s: %" PRIu64 " user parts of stacks are left out, which the kernel "
                        "recorded apart (perf record --call-graph fp,defer) from samples that are "
                        "not here",
                        path, profile->late_parts);
    }
}

const char *profile_module_name(const struct module *module)
{
    if (!module || !module->path) {
        return "[unknown]";
    }
    const char *slash = strrchr(module->path, '/');
    return slash && slash[1] ? slash + 1 : module->path;
}

/* ---- Threads ---- */

static int track_of(struct profile *profile, uint32_t pid, uint32_t tid, uint32_t *id)
{
    struct profile_private *private = profile->private;
    uint64_t hash = (uint64_t)pid << 32 | tid;
    struct hash_map_cursor cursor = hash_map_start(&private->tracks, hash);
    while ((*id = hash_map_next(&private->tracks, &cursor)) != HASH_MAP_NONE) {
        if (profile->tracks[*id].pid == pid && profile->tracks[*id].tid == tid) {
            return 0;
        }
    }
    if (array_reserve(&profile->tracks, profile->track_count, &private->track_room,
                      sizeof *profile->tracks) ||
        hash_map_add(&private->tracks, hash, profile->track_count)) {
        return -ENOMEM;
    }
    *id = profile->track_count++;
    profile->tracks[*id] = (struct profile_track){.pid = pid, .tid = tid, .thread = PROFILE_NONE};
    return 0;
}

/* A thread under all that is told of it, made where there is none. */
static int intern_thread(struct profile_thread **list, uint32_t *count, uint32_t *room,
                         struct hash_map *map, const struct profile_thread *thread, uint32_t *id)
{
    uint64_t hash = hash_pair(hash_pair(thread->track, (uintptr_t)thread->comm),
                              hash_pair(thread->virtual_id, (uintptr_t)thread->labels));
    struct hash_map_cursor cursor = hash_map_start(map, hash);
    while ((*id = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
        struct profile_thread *known = &(*list)[*id];
        if (known->track == thread->track && known->comm == thread->comm &&
            known->virtual_id == thread->virtual_id && known->labels == thread->labels) {
            known->process_name = thread->process_name; /* the last one it had */
            known->virtual_name = thread->virtual_name;
            return 0;
        }
    }
    if (array_reserve(list, *count, room, sizeof **list) || hash_map_add(map, hash, *count)) {
        return -ENOMEM;
    }
    *id = (*count)++;
    (*list)[*id] = *thread;
    return 0;
}

/* A thread of that track under names that it did not have in its last sample. Sets *id. */
static int rename_thread(struct profile *profile, uint32_t track,
                         const struct resolved_thread *wanted, uint32_t *id)
{
    struct profile_private *private = profile->private;
    const char *none = profile_text(profile, "");
    struct profile_thread thread = {
        .pid = wanted->pid,
        .tid = wanted->tid,
        .comm = profile_text(profile, wanted->comm ? wanted->comm : ""),
        .process_name = profile_text(profile, wanted->process_name ? wanted->process_name : ""),
        .track = track,
        .virtual_name = none,
        .labels = none,
    };
    if (!thread.comm || !thread.process_name || !none) {
        return -ENOMEM;
    }
    int err = 0;
    if (profile->keeps_identities) {
        err = intern_thread(&profile->plain_threads, &profile->plain_thread_count,
                            &private->plain_thread_room, &private->plain_threads, &thread,
                            &thread.plain);
        thread.virtual_id = wanted->virtual_id;
        thread.virtual_name = profile_text(
            profile, thread.virtual_id && wanted->virtual_name ? wanted->virtual_name : "");
        thread.labels = profile_text(profile, wanted->labels ? wanted->labels : "");
        err = thread.virtual_name && thread.labels ? err : -ENOMEM;
    }
    if (!err) {
        err = intern_thread(&profile->threads, &profile->thread_count, &private->thread_room,
                            &private->threads, &thread, id);
    }
    if (!err) {
        profile->tracks[track].thread = *id;
    }
    return err;
}

static bool has_identity(const struct profile_thread *known, const struct resolved_thread *wanted)
{
    return known->virtual_id == wanted->virtual_id &&
           strcmp(known->labels, wanted->labels ? wanted->labels : "") == 0 &&
           strcmp(known->virtual_name, wanted->virtual_name ? wanted->virtual_name : "") == 0;
}

/* The thread, which has mostly the names that it had. */
int profile_intern_thread(struct profile *profile, const struct resolved_thread *wanted,
                          uint32_t *id)
{
    uint32_t track;
    if (track_of(profile, wanted->pid, wanted->tid, &track)) {
        return -ENOMEM;
    }
    *id = profile->tracks[track].thread;
    const struct profile_thread *known = *id == PROFILE_NONE ? NULL : &profile->threads[*id];
    bool is_same = known && wanted->comm && strcmp(known->comm, wanted->comm) == 0 &&
                   wanted->process_name && strcmp(known->process_name, wanted->process_name) == 0 &&
                   (!profile->keeps_identities || has_identity(known, wanted));
    return is_same ? 0 : rename_thread(profile, track, wanted, id);
}

/* ---- Samples ---- */

/* Adds a sample to those that are there, or to the one that it is equal to. */
static int merge_sample(struct profile *profile, struct hash_map *map, uint32_t *room,
                        const struct profile_sample *sample)
{
    uint64_t hash = hash_pair((uint64_t)sample->thread << 32 | sample->node, sample->event);
    struct hash_map_cursor cursor = hash_map_start(map, hash);
    uint32_t id;
    while ((id = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
        struct profile_sample *known = &profile->samples[id];
        if (known->node == sample->node && known->thread == sample->thread &&
            known->event == sample->event) {
            known->weight += sample->weight;
            known->count += sample->count;
            return 0;
        }
    }
    if (array_reserve(&profile->samples, profile->sample_count, room, sizeof *profile->samples) ||
        hash_map_add(map, hash, profile->sample_count)) {
        return -ENOMEM;
    }
    profile->samples[profile->sample_count++] = *sample;
    return 0;
}

int profile_intern(struct profile *profile, const struct resolved_sample *sample,
                   struct profile_sample *made)
{
    *made = (struct profile_sample){
        .time = sample->time, .weight = sample->weight, .count = 1, .event = sample->event->id};
    int err = profile_intern_thread(profile, &sample->thread, &made->thread);
    if (!err) {
        err = profile_stack_of(profile, sample, &made->node);
    }
    if (err) {
        return err;
    }
    if (profile->total_count == 0 || sample->time < profile->from) {
        profile->from = sample->time;
    }
    if (sample->time > profile->until) {
        profile->until = sample->time;
    }
    profile->total_count++;
    return 0;
}

int profile_keep(struct profile *profile, const struct profile_sample *sample)
{
    struct profile_private *private = profile->private;
    if (!profile->keeps_times) {
        return merge_sample(profile, &private->samples, &private->sample_room, sample);
    }
    if (array_reserve(&profile->samples, profile->sample_count, &private->sample_room,
                      sizeof *profile->samples)) {
        return -ENOMEM;
    }
    profile->samples[profile->sample_count++] = *sample;
    return 0;
}

int profile_add(struct profile *profile, const struct resolved_sample *sample)
{
    struct profile_sample made;
    int err = profile_intern(profile, sample, &made);
    return err ? err : profile_keep(profile, &made);
}

/* ---- Marks ---- */

int profile_add_mark(struct profile *profile, const struct resolved_mark *mark)
{
    struct profile_mark made = {
        .from = mark->from,
        .until = mark->until,
        .number = mark->number,
        .text = profile_text(profile, mark->text ? mark->text : ""),
        .subject = profile_text(profile, mark->subject ? mark->subject : ""),
        .kind = (uint8_t)mark->kind,
        .is_open = mark->is_open,
    };
    if (!made.text || !made.subject || profile_intern_thread(profile, mark->thread, &made.thread) ||
        array_reserve(&profile->marks, profile->mark_count, &profile->private->mark_room,
                      sizeof *profile->marks)) {
        return -ENOMEM;
    }
    profile->marks[profile->mark_count++] = made;
    return 0;
}

/* ---- Views ---- */

void profile_view_free(const struct profile *profile, struct profile *view)
{
    if (view->samples != profile->samples) {
        free(view->samples);
    }
    if (view->threads != profile->threads && view->threads != profile->plain_threads) {
        free(view->threads);
    }
    if (view->tracks != profile->tracks) {
        free(view->tracks);
    }
    if (view->marks != profile->marks) {
        free(view->marks);
    }
}

static void *copy_of(const void *list, size_t count, size_t element)
{
    void *copy = malloc((count + 1) * element);
    return copy && count ? memcpy(copy, list, count * element) : copy;
}

/* Threads without identities: whoever had a number of one has that of its plain one. */
static int view_plainly(const struct profile *profile, struct profile *view)
{
    view->threads = profile->plain_threads;
    view->thread_count = profile->plain_thread_count;
    view->samples = copy_of(profile->samples, profile->sample_count, sizeof *view->samples);
    view->tracks = copy_of(profile->tracks, profile->track_count, sizeof *view->tracks);
    view->marks = copy_of(profile->marks, profile->mark_count, sizeof *view->marks);
    for (uint32_t i = 0; view->samples && i < view->sample_count; i++) {
        view->samples[i].thread = profile->threads[view->samples[i].thread].plain;
    }
    for (uint32_t i = 0; view->tracks && i < view->track_count; i++) {
        view->tracks[i].thread = profile->threads[view->tracks[i].thread].plain;
    }
    for (uint32_t i = 0; view->marks && i < view->mark_count; i++) {
        view->marks[i].thread = profile->threads[view->marks[i].thread].plain;
    }
    return view->samples && view->tracks && view->marks ? 0 : -ENOMEM;
}

/* Equal samples are one, and threads are those of samples: marks are nothing without times. */
static int view_without_times(const struct profile *profile, struct profile *view)
{
    const struct profile_sample *samples = view->samples;
    const struct profile_thread *threads = view->threads;
    uint32_t *numbers = malloc(((size_t)view->thread_count + 1) * sizeof *numbers);
    struct profile_thread *used = malloc(((size_t)view->thread_count + 1) * sizeof *used);
    struct hash_map map = {0};
    uint32_t room = 0;
    int err = numbers && used ? 0 : -ENOMEM;
    uint32_t sample_count = view->sample_count;
    for (uint32_t i = 0; !err && i < view->thread_count; i++) {
        numbers[i] = PROFILE_NONE;
    }
    view->threads = used;
    view->thread_count = view->mark_count = view->sample_count = 0;
    view->samples = NULL;
    view->keeps_times = false;
    for (uint32_t i = 0; !err && i < sample_count; i++) {
        struct profile_sample sample = samples[i];
        uint32_t *number = &numbers[sample.thread];
        if (*number == PROFILE_NONE) {
            *number = view->thread_count++;
            used[*number] = threads[sample.thread];
        }
        sample.thread = *number;
        err = merge_sample(view, &map, &room, &sample);
    }
    if (samples != profile->samples) {
        free((void *)samples);
    }
    hash_map_free(&map);
    free(numbers);
    return err;
}

int profile_view(const struct profile *profile, bool times, bool identities, struct profile *view)
{
    int err = 0;
    *view = *profile;
    if (profile->keeps_identities && !identities) {
        view->keeps_identities = false;
        err = view_plainly(profile, view);
    }
    /* One that is merged already is merged again where threads became one. */
    if (!err && !times && (profile->keeps_times || view->samples != profile->samples)) {
        err = view_without_times(profile, view);
    }
    if (err) {
        profile_view_free(profile, view);
    }
    return err;
}
