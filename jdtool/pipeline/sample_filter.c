#include "jdtool/pipeline/sample_filter.h"

#include "format/fnv1a.h"
#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/resolve/resolver.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INCLUDES, EXCLUDES, SIDES };

/* What is known of a method's name, by method id, or of a stack, by node. */
enum { NOT_TRIED = 0, NO_MATCH = 1, MATCH = 2 };

struct tried {
    uint8_t of[SIDES];
};

struct sample_filter {
    struct sample_sink sink;
    struct sample_sink *behind;
    const struct sample_filter_options *options;
    const struct recording *recorded;
    struct recording recording; /* as the sink behind sees it */
    struct recorded_event event;
    regex_t patterns[SIDES][SAMPLE_FILTER_WORDS_MAX];
    uint32_t pattern_counts[SIDES];
    struct tried *methods;
    uint32_t method_room;
    struct stack_notes nodes; /* of struct tried */
    bool has_first;
    uint64_t first; /* sample's time */
    char group[THREAD_LABEL_MAX];
};

/* ---- Which samples ---- */

static bool fits(const struct sample_filter_words *words, const char *name, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%" PRIu32, number);
    for (uint32_t i = 0; i < words->count; i++) {
        if (strcmp(words->list[i], text) == 0 || (name && fnmatch(words->list[i], name, 0) == 0)) {
            return true;
        }
    }
    return words->count == 0;
}

static bool is_event(const char *name, const char *wanted)
{
    size_t size = strlen(wanted);
    return strncmp(name, wanted, size) == 0 && (name[size] == '\0' || name[size] == ':');
}

static bool has_match(const struct sample_filter *filter, int side, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < filter->pattern_counts[side] && !found; i++) {
        found = regexec(&filter->patterns[side][i], name, 0, NULL, 0) == 0;
    }
    return found;
}

/* Without memory for it, an answer is found again each time. */
static bool matches(struct sample_filter *filter, int side, const struct resolved_method *method)
{
    if (ARRAY_REACH(filter->methods, method->id, filter->method_room)) {
        return has_match(filter, side, method->name);
    }
    uint8_t *answer = &filter->methods[method->id].of[side];
    if (*answer == NOT_TRIED) {
        *answer = has_match(filter, side, method->name) ? MATCH : NO_MATCH;
    }
    return *answer == MATCH;
}

static bool has_line(struct sample_filter *filter, int side, const struct location *location)
{
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct resolved_method *method = location->lines[i].method;
        if (method && matches(filter, side, method)) {
            return true;
        }
    }
    return false;
}

/* Whether a stack has such a frame: from its innermost node out, up to one whose answer is known;
 * that is then the answer of all that were passed. */
static bool has_frame(struct sample_filter *filter, int side, const struct resolved_sample *sample)
{
    const struct stack_table *stacks = sample->stacks;
    struct tried *nodes = filter->nodes.list;
    uint32_t at = sample->node;
    bool found = false;
    for (; at && !found; at = stacks->nodes[at].caller) {
        if (nodes[at].of[side] != NOT_TRIED) {
            found = nodes[at].of[side] == MATCH;
            break;
        }
        found = has_line(filter, side, stack_table_at(stacks, at));
    }
    for (uint32_t passed = sample->node; passed != at; passed = stacks->nodes[passed].caller) {
        nodes[passed].of[side] = found ? MATCH : NO_MATCH;
    }
    return found;
}

static bool fits_thread(const struct sample_filter_words *words,
                        const struct resolved_thread *thread)
{
    return fits(words, thread->comm, thread->tid) ||
           (thread->virtual_id &&
            fits(words, thread->virtual_name,
                 thread->virtual_id <= UINT32_MAX ? (uint32_t)thread->virtual_id : 0));
}

static bool fits_labels(const struct sample_filter_words *words, const char *labels)
{
    for (uint32_t i = 0; i < words->count; i++) {
        if (labels_fit(labels, words->list[i])) {
            return true;
        }
    }
    return words->count == 0;
}

static bool passes(struct sample_filter *filter, const struct resolved_sample *sample)
{
    const struct sample_filter_options *options = filter->options;
    uint64_t behind = sample->time > filter->first ? sample->time - filter->first : 0;
    return behind >= options->from && (!options->until || behind < options->until) &&
           (!options->event || is_event(sample->event->name, options->event)) &&
           fits(&options->pids, NULL, sample->thread.pid) &&
           fits(&options->comms, sample->thread.process_name, sample->thread.pid) &&
           fits_thread(&options->threads, &sample->thread) &&
           fits_labels(&options->labels, sample->thread.labels) &&
           (!options->includes.count || has_frame(filter, INCLUDES, sample)) &&
           (!options->excludes.count || !has_frame(filter, EXCLUDES, sample));
}

/* ---- Groups ---- */

/* Puts the group in the place of the thread. What stands for a process of its own keeps its pid. */
static void group(struct sample_filter *filter, struct resolved_thread *thread)
{
    const struct sample_filter_options *options = filter->options;
    if (options->grouping == GROUP_BY_VIRTUAL && thread->virtual_id) {
        virtual_thread_stands(thread, filter->group, sizeof filter->group);
    } else if (options->grouping == GROUP_BY_PROCESS) {
        thread->comm = ""; /* profile_close names it */
        thread->tid = thread->pid;
        thread->virtual_id = 0;
    } else if (options->grouping == GROUP_BY_LABEL) {
        if (!labels_value(thread->labels, options->group_label, filter->group)) {
            snprintf(filter->group, sizeof filter->group, "[no %s]", options->group_label);
        }
        thread->comm = filter->group;
        thread->tid = RESOLVED_OWN_TID | (uint32_t)fnv1a(FNV1A_START, filter->group);
    }
}

/* ---- The sink ---- */

/* Of a pipe, what describes it comes late: the sink behind is shown it when it comes. */
static void show_recording(struct sample_filter *filter)
{
    filter->recording = *filter->recorded;
    if (filter->options->event) {
        filter->recording.events = &filter->event;
        filter->recording.event_count = 1;
    }
}

static int begin(struct sample_sink *base, const struct recording *recording)
{
    struct sample_filter *filter = (struct sample_filter *)base;
    filter->recorded = recording;
    if (filter->options->event) {
        uint32_t i = 0;
        while (i < recording->event_count &&
               !is_event(recording->events[i].name, filter->options->event)) {
            i++;
        }
        if (i == recording->event_count) {
            char names[256] = "none";
            size_t used = 0;
            for (i = 0; i < recording->event_count && used < sizeof names; i++) {
                used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "",
                                         recording->events[i].name);
            }
            error_message("failed to find event %s in %s: its events are %s",
                          filter->options->event, recording->path, names);
            return -EINVAL;
        }
        filter->event = recording->events[i];
        filter->event.id = 0;
    }
    show_recording(filter);
    return filter->behind->ops->begin(filter->behind, &filter->recording);
}

static int pass_sample(struct sample_sink *base, const struct resolved_sample *sample)
{
    struct sample_filter *filter = (struct sample_filter *)base;
    if (!filter->has_first) {
        filter->has_first = true;
        filter->first = sample->time;
    }
    if (sample->node &&
        stack_notes_follow(&filter->nodes, sample->stacks->epoch, sample->stacks->node_count)) {
        return failed_to(-ENOMEM, "filter samples");
    }
    if (!passes(filter, sample)) {
        return 0;
    }
    if (!filter->options->event && filter->options->grouping == GROUP_BY_THREAD) {
        return filter->behind->ops->sample(filter->behind, sample);
    }
    struct resolved_sample passed = *sample;
    passed.event = filter->options->event ? &filter->event : sample->event;
    group(filter, &passed.thread);
    return filter->behind->ops->sample(filter->behind, &passed);
}

/* What lies in the chosen time, of the chosen processes. Threads and stacks choose samples: a pause
 * is everybody's. */
static int pass_mark(struct sample_sink *base, const struct resolved_mark *mark)
{
    struct sample_filter *filter = (struct sample_filter *)base;
    const struct sample_filter_options *options = filter->options;
    const struct sample_sink_ops *behind = filter->behind->ops;
    bool limited = options->from || options->until;
    uint64_t first = filter->first;
    uint64_t until = options->until;
    bool in_time = !limited || (filter->has_first && mark->until >= first + options->from &&
                                (!until || mark->from < first + until));
    bool passes = in_time && fits(&options->pids, NULL, mark->thread->pid) &&
                  fits(&options->comms, mark->thread->process_name, mark->thread->pid);
    return passes && behind->mark ? behind->mark(filter->behind, mark) : 0;
}

static void release(struct sample_filter *filter)
{
    for (int side = 0; side < SIDES; side++) {
        for (uint32_t i = 0; i < filter->pattern_counts[side]; i++) {
            regfree(&filter->patterns[side][i]);
        }
    }
    free(filter->methods);
    stack_notes_free(&filter->nodes);
    free(filter);
}

static int end(struct sample_sink *base)
{
    struct sample_filter *filter = (struct sample_filter *)base;
    show_recording(filter);
    int err = filter->behind->ops->end(filter->behind);
    release(filter);
    return err;
}

static void give_up(struct sample_sink *base)
{
    struct sample_filter *filter = (struct sample_filter *)base;
    filter->behind->ops->abort(filter->behind);
    release(filter);
}

static int compile(struct sample_filter *filter, int side, const struct sample_filter_words *words)
{
    for (uint32_t i = 0; i < words->count; i++) {
        char reason[128];
        int status = regcomp(&filter->patterns[side][i], words->list[i], REG_EXTENDED | REG_NOSUB);
        if (status != 0) {
            regerror(status, &filter->patterns[side][i], reason, sizeof reason);
            error_message("failed to understand the regular expression '%s': %s", words->list[i],
                          reason);
            return -EINVAL;
        }
        filter->pattern_counts[side]++;
    }
    return 0;
}

int sample_filter_new(const struct sample_filter_options *options, struct sample_sink *behind,
                      struct sample_sink **out)
{
    static const struct sample_sink_ops ops = {
        .begin = begin, .sample = pass_sample, .mark = pass_mark, .end = end, .abort = give_up};
    struct sample_filter *filter = calloc(1, sizeof *filter);
    if (!filter) {
        failed_to(-ENOMEM, "filter samples");
        behind->ops->abort(behind);
        return -ENOMEM;
    }
    filter->sink = (struct sample_sink){.ops = &ops, .reads_code = behind->reads_code};
    filter->nodes.element = sizeof(struct tried);
    filter->behind = behind;
    filter->options = options;
    int err = compile(filter, INCLUDES, &options->includes);
    err = err ? err : compile(filter, EXCLUDES, &options->excludes);
    if (err) {
        give_up(&filter->sink);
        return err;
    }
    *out = &filter->sink;
    return 0;
}
