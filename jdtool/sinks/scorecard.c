#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/message.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/sinks/scorecard_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct scorecard *self(struct sample_sink *sink)
{
    return (struct scorecard *)sink;
}

static void free_scorecard(struct scorecard *scorecard)
{
    for (uint32_t i = 0; i < scorecard->image_count; i++) {
        free(scorecard->images[i].path);
    }
    hash_map_free(&scorecard->by_pid);
    free(scorecard->events);
    free(scorecard->images);
    free(scorecard->processes);
    free(scorecard);
}

static int no_memory(void)
{
    error_message("failed to count the samples: %s", strerror(ENOMEM));
    return -ENOMEM;
}

static int begin(struct sample_sink *sink, const struct recording *recording)
{
    struct scorecard *scorecard = self(sink);
    scorecard->recording = recording;
    scorecard->events = calloc((size_t)recording->event_count + 1, sizeof *scorecard->events);
    return scorecard->events ? 0 : no_memory();
}

/* ---- Counting ---- */

static bool is_generated(const struct resolved_frame *frame)
{
    return frame->code || frame->kind == RESOLVED_INTERPRETED || frame->unnamed != UNNAMED_NOT;
}

/* Whether an interpreted frame is named by its method, not by the interpreter. */
static bool is_named_interpreted(const struct resolved_frame *frame)
{
    return frame->method && frame->method->kind == RESOLVED_INTERPRETED;
}

static int count_without_dump(struct scorecard *scorecard, uint32_t pid)
{
    struct hash_map_cursor cursor = hash_map_start(&scorecard->by_pid, pid);
    uint32_t at;
    while ((at = hash_map_next(&scorecard->by_pid, &cursor)) != HASH_MAP_NONE) {
        if (scorecard->processes[at].pid == pid) {
            scorecard->processes[at].frames++;
            return 0;
        }
    }
    if (array_reserve(&scorecard->processes, scorecard->process_count, &scorecard->process_room,
                      sizeof *scorecard->processes) < 0 ||
        hash_map_add(&scorecard->by_pid, pid, scorecard->process_count) < 0) {
        return no_memory();
    }
    scorecard->processes[scorecard->process_count++] = (struct scorecard_process){pid, 1};
    return 0;
}

static int count_frame(struct scorecard *scorecard, struct scorecard_event *event,
                       const struct resolved_frame *frame, uint32_t pid)
{
    scorecard->frames++;
    event->frames++;
    event->frames_named += frame->unnamed == UNNAMED_NOT;
    if (frame->unnamed == UNNAMED_NO_DUMP) {
        return count_without_dump(scorecard, pid);
    }
    if (frame->unnamed != UNNAMED_NOT) {
        scorecard->unnamed[frame->unnamed]++;
        return 0;
    }
    scorecard->frames_named++;
    if (frame->kind == RESOLVED_INTERPRETED) {
        bool named = is_named_interpreted(frame);
        scorecard->interpreted += named;
        scorecard->interpreted_stubs += !named;
    }
    return 0;
}

static void count_stack(struct scorecard *scorecard, struct scorecard_event *event,
                        enum stack_end end, uint32_t user_frames)
{
    scorecard->stacks++;
    scorecard->ends[end]++;
    event->stacks++;
    event->stacks_rooted += end == STACK_ROOT;
    event->stacks_frozen += end == STACK_FROZEN;
    if (end == STACK_ROOT) {
        scorecard->stacks_rooted++;
    } else if (end == STACK_FROZEN) {
        scorecard->stacks_frozen++;
    } else if (end != STACK_CUT && user_frames <= 2) {
        scorecard->stacks_short++;
    }
}

/* Counted as the machine has them: inlined methods are part of the frame behind them. */
static int take_sample(struct sample_sink *sink, const struct resolved_sample *sample)
{
    struct scorecard *scorecard = self(sink);
    const struct perf_sample *recorded = sample->recorded;
    struct scorecard_event *event = &scorecard->events[sample->event->id];
    bool in_user = (recorded->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_USER;
    /* An event's own place is the JVM's, and cut off. */
    bool has_subject = sample->frame_count && sample->frames[0].kind == RESOLVED_SUBJECT;
    uint32_t user_frames = 0;
    bool has_java = false;
    int err = 0;
    scorecard->samples += !sample->is_late_part;
    event->samples += !sample->is_late_part;
    event->weight += sample->weight;
    event->left_out += sample->left_out;
    if (!sample->thread.is_jvm) {
        return 0;
    }
    scorecard->jvm_samples += !sample->is_late_part;
    if (sample->thread.has_journal && !sample->is_late_part) {
        scorecard->journal_samples++;
        scorecard->virtual_samples += sample->thread.virtual_id != 0;
        scorecard->label_samples += sample->thread.labels != NULL;
        scorecard->unknown_samples += sample->thread.is_unknown;
    }
    for (uint32_t i = 0; i < sample->frame_count && !err; i++) {
        const struct resolved_frame *frame = &sample->frames[i];
        if (frame->kind == RESOLVED_INLINED || frame->kind == RESOLVED_KERNEL ||
            frame->kind == RESOLVED_SUBJECT) {
            continue;
        }
        bool generated = is_generated(frame);
        if (generated && user_frames == 0 && in_user && !has_subject && !sample->is_late_part) {
            scorecard->java_samples++;
            scorecard->java_samples_named += frame->unnamed == UNNAMED_NOT;
        }
        user_frames++;
        if (generated) {
            has_java = true;
            err = count_frame(scorecard, event, frame, sample->thread.pid);
        }
    }
    if (has_java && sample->end != STACK_NONE) {
        count_stack(scorecard, event, sample->end, user_frames);
    }
    return err;
}

/* ---- The end ---- */

/* A process without a dump has none still, or its frames were sampled before it. */
static void settle(struct scorecard *scorecard)
{
    const struct recording *recording = scorecard->recording;
    for (uint32_t i = 0; i < scorecard->process_count; i++) {
        const struct scorecard_process *process = &scorecard->processes[i];
        enum unnamed_reason reason = UNNAMED_NO_DUMP;
        for (uint32_t j = 0; j < recording->jvm_count; j++) {
            if (recording->jvms[j]->pid == process->pid && recording->jvms[j]->index) {
                reason = UNNAMED_BEFORE_DUMP;
            }
        }
        scorecard->unnamed[reason] += process->frames;
    }
}

static int end(struct sample_sink *sink)
{
    struct scorecard *scorecard = self(sink);
    settle(scorecard);
    int err = scorecard_report(scorecard);
    free_scorecard(scorecard);
    return err;
}

static void abort_scorecard(struct sample_sink *sink)
{
    free_scorecard(self(sink));
}

void scorecard_sink_image(void *sink, const struct module *module, const char *path)
{
    struct scorecard *scorecard = self(sink);
    char *copy = strdup(path);
    if (!copy || array_reserve(&scorecard->images, scorecard->image_count, &scorecard->image_room,
                               sizeof *scorecard->images) < 0) {
        free(copy); /* the report does without */
        return;
    }
    scorecard->images[scorecard->image_count++] = (struct scorecard_image){module, copy};
}

struct sample_sink *scorecard_sink_new(const struct scorecard_options *options)
{
    static const struct sample_sink_ops ops = {
        .begin = begin,
        .sample = take_sample,
        .end = end,
        .abort = abort_scorecard,
    };
    struct scorecard *scorecard = calloc(1, sizeof *scorecard);
    if (!scorecard) {
        (void)no_memory();
        return NULL;
    }
    scorecard->sink.ops = &ops;
    scorecard->options = *options;
    return &scorecard->sink;
}
