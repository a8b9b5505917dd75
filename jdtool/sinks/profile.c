#include "jdtool/sinks/profile.h"

#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/sinks/profile_private.h"

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
    private->unknown_function = PROFILE_NONE;
    for (size_t i = 0; i < PROFILE_RECENT; i++) {
        private->recent[i].thread = PROFILE_NONE;
    }
    profile->keeps_times = keep_times;
    profile->private = private;
    return profile;
}

void profile_close(struct profile *profile)
{
    struct profile_private *private = profile->private;
    hash_map_free(&private->functions);
    hash_map_free(&private->locations);
    hash_map_free(&private->nodes);
    hash_map_free(&private->threads);
    hash_map_free(&private->tracks);
    hash_map_free(&private->samples);
    for (size_t i = 0; i < PROFILE_RECENT; i++) {
        free(private->recent[i].frames);
        free(private->recent[i].nodes);
        private->recent[i] = (struct profile_recent){.thread = PROFILE_NONE};
    }
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
    free(profile->locations);
    free(profile->nodes);
    free(profile->threads);
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
    profile->tracks[*id] = (struct profile_track){.pid = pid, .tid = tid};
    return 0;
}

static int thread_of(struct profile *profile, const struct resolved_thread *wanted, uint32_t *id)
{
    struct profile_private *private = profile->private;
    struct profile_thread thread = {
        .pid = wanted->pid,
        .tid = wanted->tid,
        .comm = profile_text(profile, wanted->comm ? wanted->comm : ""),
        .process_name = profile_text(profile, wanted->process_name ? wanted->process_name : ""),
    };
    bool identities = profile->keeps_identities;
    thread.virtual_id = identities ? wanted->virtual_id : 0;
    thread.virtual_name = profile_text(
        profile, thread.virtual_id && wanted->virtual_name ? wanted->virtual_name : "");
    thread.labels = profile_text(profile, identities && wanted->labels ? wanted->labels : "");
    if (!thread.comm || !thread.process_name || !thread.virtual_name || !thread.labels) {
        return -ENOMEM;
    }
    int err = track_of(profile, thread.pid, thread.tid, &thread.track);
    if (err) {
        return err;
    }
    uint64_t hash = hash_pair(hash_pair(thread.track, (uintptr_t)thread.comm),
                              hash_pair(thread.virtual_id, (uintptr_t)thread.labels));
    struct hash_map_cursor cursor = hash_map_start(&private->threads, hash);
    while ((*id = hash_map_next(&private->threads, &cursor)) != HASH_MAP_NONE) {
        struct profile_thread *known = &profile->threads[*id];
        if (known->track == thread.track && known->comm == thread.comm &&
            known->virtual_id == thread.virtual_id && known->labels == thread.labels) {
            known->process_name = thread.process_name; /* the last one it had */
            known->virtual_name = thread.virtual_name;
            break;
        }
    }
    if (*id == HASH_MAP_NONE) {
        if (array_reserve(&profile->threads, profile->thread_count, &private->thread_room,
                          sizeof *profile->threads) ||
            hash_map_add(&private->threads, hash, profile->thread_count)) {
            return -ENOMEM;
        }
        *id = profile->thread_count++;
        profile->threads[*id] = thread;
    }
    profile->tracks[thread.track].thread = *id;
    return 0;
}

/* What is remembered of the sample's thread; another's is forgotten for it. */
static struct profile_recent *recent_of(struct profile *profile,
                                        const struct resolved_thread *thread)
{
    uint64_t hash = hash_mix((uint64_t)thread->pid << 32 | thread->tid);
    struct profile_recent *recent = &profile->private->recent[hash % PROFILE_RECENT];
    if (recent->pid != thread->pid || recent->tid != thread->tid) {
        recent->pid = thread->pid;
        recent->tid = thread->tid;
        recent->thread = PROFILE_NONE;
        recent->count = 0;
    }
    return recent;
}

static bool has_identity(const struct profile_thread *known, const struct resolved_thread *wanted)
{
    return known->virtual_id == wanted->virtual_id &&
           strcmp(known->labels, wanted->labels ? wanted->labels : "") == 0 &&
           strcmp(known->virtual_name, wanted->virtual_name ? wanted->virtual_name : "") == 0;
}

/* The thread, which has mostly the names that it had. */
static int recent_thread_of(struct profile *profile, struct profile_recent *recent,
                            const struct resolved_thread *wanted, uint32_t *id)
{
    const struct profile_thread *known =
        recent->thread == PROFILE_NONE ? NULL : &profile->threads[recent->thread];
    int err = 0;
    if (!known || !wanted->comm || strcmp(known->comm, wanted->comm) != 0 ||
        !wanted->process_name || strcmp(known->process_name, wanted->process_name) != 0 ||
        (profile->keeps_identities && !has_identity(known, wanted))) {
        err = thread_of(profile, wanted, &recent->thread);
    }
    *id = recent->thread;
    return err;
}

/* ---- Samples ---- */

static int keep_sample(struct profile *profile, const struct profile_sample *sample)
{
    struct profile_private *private = profile->private;
    uint64_t hash = 0;
    if (!profile->keeps_times) {
        hash = hash_pair((uint64_t)sample->thread << 32 | sample->node, sample->event);
        struct hash_map_cursor cursor = hash_map_start(&private->samples, hash);
        uint32_t id;
        while ((id = hash_map_next(&private->samples, &cursor)) != HASH_MAP_NONE) {
            struct profile_sample *known = &profile->samples[id];
            if (known->node == sample->node && known->thread == sample->thread &&
                known->event == sample->event) {
                known->weight += sample->weight;
                known->count++;
                return 0;
            }
        }
    }
    if (array_reserve(&profile->samples, profile->sample_count, &private->sample_room,
                      sizeof *profile->samples) ||
        (!profile->keeps_times && hash_map_add(&private->samples, hash, profile->sample_count))) {
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
    struct profile_recent *recent = recent_of(profile, &sample->thread);
    int err = recent_thread_of(profile, recent, &sample->thread, &made->thread);
    if (!err) {
        err = profile_stack_of(profile, recent, sample, &made->node);
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

int profile_add(struct profile *profile, const struct resolved_sample *sample)
{
    struct profile_sample made;
    int err = profile_intern(profile, sample, &made);
    return err ? err : keep_sample(profile, &made);
}

/* ---- Marks ---- */

int profile_intern_thread(struct profile *profile, const struct resolved_thread *thread,
                          uint32_t *id)
{
    return recent_thread_of(profile, recent_of(profile, thread), thread, id);
}

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
