/*
 * From the queue to the sinks: a sample is resolved and given to each, at once, or, where its
 * thread begins to wait or its user part is still to come, when that is known.
 */
#include "jdtool/perf/perf_data.h"
#include "jdtool/pipeline/stream_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What the JVM itself does, as marks for the sinks ---- */

/* How often in a recording with a timeline it is looked how full the code cache is: each look goes
 * through all pieces of code, and of all together through so many. */
#define CODE_CACHE_LOOKS  100
#define CODE_CACHE_PIECES 4000000

int stream_join_sinks(struct stream *stream)
{
    int err = sink_thread_free(stream->sink_thread);
    stream->sink_thread = NULL;
    return err;
}

static int give_mark(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    struct stream *stream = context;
    struct resolved_thread thread;
    int err = stream_join_sinks(stream);
    err = err ? err : resolver_thread(stream->resolver, pid, tid, mark->until, &thread);
    struct resolved_mark given = *mark;
    given.thread = &thread;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        err = sink->ops->mark ? sink->ops->mark(sink, &given) : 0;
    }
    return err;
}

/* A sampled deoptimisation is a mark, too: of "pkg.Cls.m(int):12", with which its stack begins
 * behind its reason. 0 or a negative errno after a message. */
static int give_deopt(struct stream *stream, const struct resolved_sample *sample)
{
    char reason[64] = "";
    char method[1024] = "";
    struct resolved_mark mark = {
        .kind = MARK_DEOPT, .from = sample->time, .until = sample->time, .text = reason};
    struct resolved_frame frames[2];
    uint32_t count = stack_table_lines(sample->stacks, sample->node, frames, 2);
    if (count > 0 && frames[0].kind == RESOLVED_SUBJECT) {
        const char *name = frames[0].method->name; /* in brackets */
        snprintf(reason, sizeof reason, "%.*s", (int)strcspn(name + 1, "]"), name + 1);
    }
    if (count > 1 && frames[1].method) {
        int size = snprintf(method, sizeof method, "%s", frames[1].method->name);
        if (frames[1].line && size < (int)sizeof method) {
            snprintf(method + size, sizeof method - (size_t)size, ":%" PRIu32, frames[1].line);
        }
        mark.subject = method;
    }
    return give_mark(stream, sample->thread.pid, sample->thread.tid, &mark);
}

/* A sample of an event of the timeline, which makes or ends a mark. The same. */
static int take_timeline(struct stream *stream, const struct perf_sample *sample)
{
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_add(stream->marks, sample, &taker);
    return err == -ENOMEM ? stream_no_memory(stream) : err;
}

struct look {
    struct stream *stream;
    uint64_t time;
};

static int give_code_bytes(void *context, uint32_t pid, uint64_t bytes)
{
    const struct look *look = context;
    struct resolved_mark mark = {
        .kind = MARK_CODE_CACHE, .from = look->time, .until = look->time, .number = bytes};
    return give_mark(look->stream, pid, pid, &mark);
}

/* The dumps tell how much code there was at any time, once they are read. */
static int look_into_code_caches(struct stream *stream)
{
    const struct recording *recording = &stream->facts.recording;
    uint64_t span = recording->until > recording->from ? recording->until - recording->from : 0;
    uint64_t pieces = resolver_code_count(stream->resolver) + 1;
    uint64_t looks = CODE_CACHE_PIECES / pieces + 2;
    int err = 0;
    looks = looks < CODE_CACHE_LOOKS ? looks : CODE_CACHE_LOOKS;
    for (uint64_t i = 0; i <= looks && span && !err; i++) {
        struct look look = {stream, recording->from + span / looks * i};
        err = resolver_code_bytes(stream->resolver, look.time, give_code_bytes, &look);
    }
    return err;
}

/* What had begun before the recording is not told, as of probes. */
static int give_logged(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    struct stream *stream = context;
    if (mark->from < stream->facts.recording.from) {
        return 0;
    }
    stream->has_timeline = true;
    return give_mark(stream, pid, tid, mark);
}

int stream_end_timeline(struct stream *stream)
{
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_end(stream->marks, stream->time, &taker);
    stream->facts.recording.counts.marks_lost = marks_lost(stream->marks);
    if (!err && !stream->has_timeline) { /* or each thing would be told twice */
        err = resolver_logs(stream->resolver, give_logged, stream);
    }
    return err || !stream->has_timeline ? err : look_into_code_caches(stream);
}

/* ---- To the sinks ---- */

static int give_record(struct stream *stream, const struct perf_record *record, bool superseded)
{
    int err = 0;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        err = sink->ops->record ? sink->ops->record(sink, record, superseded) : 0;
    }
    return err;
}

int stream_give_code(void *context, const struct resolved_code *code)
{
    const struct stream *stream = context;
    int err = 0;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        err = sink->ops->code ? sink->ops->code(sink, code) : 0;
    }
    return err;
}

/* Before a sample of that time: when no sink needs the earlier ones any more, what is dead goes. */
static int let_go(struct stream *stream, uint64_t time)
{
    bool is_held = false;
    int err = 0;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        bool holds = true;
        err = sink->ops->before ? sink->ops->before(sink, time, &holds) : 0;
        is_held |= holds;
    }
    return err || is_held ? err : resolver_forget(stream->resolver);
}

/* Whether the sinks' thread can give it: all that it points to stays. `stays`: so does the sample
 * itself. */
static bool can_be_passed(const struct resolved_sample *sample, const struct event_facts *event,
                          bool stays)
{
    return stays && event->kind == EVENT_SAMPLED && !sample->branch_count &&
           !sample->thread.has_journal;
}

/* stays: until the batch behind its own is read. */
static int deliver_sample(struct stream *stream, struct perf_sample *sample,
                          const struct event_facts *event, bool stays)
{
    struct recording *recording = &stream->facts.recording;
    struct resolved_sample resolved;
    int err = sample->type == PERF_RECORD_SAMPLE ? let_go(stream, sample->time) : 0;
    if (!err && stream->sink_thread && resolver_is_full(stream->resolver)) {
        err = sink_thread_wait(stream->sink_thread);
    }
    err = err ? err : resolver_sample(stream->resolver, sample, event, &resolved);
    if (!stream->sink_thread) {
        resolver_report(stream->resolver, recording); /* JVMs may have been found */
    }
    if (!err && stream->wants_codes) {
        err = resolver_codes(stream->resolver, sample->time, stream_give_code, stream);
    }
    if (err) {
        return err;
    }
    resolved.event = event->kind == EVENT_RUNNABLE
                         ? recording_runnable(&stream->facts) /* or woken */
                         : recording_event(&stream->facts, sample);
    resolved.weight = event->weight;
    resolved.left_out = event->left_out;
    resolved.cpu = sample->cpu;
    if (event->kind != EVENT_SAMPLED) {
        sample->period = event->weight;
    }
    if (!resolved.is_late_part) {
        recording->from = recording->counts.samples == 0 || sample->time < recording->from
                              ? sample->time
                              : recording->from;
        recording->until = sample->time > recording->until ? sample->time : recording->until;
        recording->counts.samples++;
    }
    if (stream->sink_thread && can_be_passed(&resolved, event, stays)) {
        return sink_thread_give(stream->sink_thread, &resolved);
    }
    err = stream_join_sinks(stream);
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        err = stream->sinks[i]->ops->sample(stream->sinks[i], &resolved);
    }
    return !err && event->kind == EVENT_DEOPT ? give_deopt(stream, &resolved) : err;
}

/* ---- Call chains in two parts ---- */

/* The chain of a sample without the marker and with the late part's behind it. */
static int join_chain(struct stream *stream, struct perf_sample *sample,
                      const struct perf_sample *part)
{
    size_t own = sample->chain_count - PERF_DEFERRED_WORDS;
    size_t count = own + part->chain_count;
    if (count > stream->chain_room) {
        uint64_t *grown = realloc(stream->chain, count * sizeof *grown);
        if (!grown) {
            return stream_no_memory(stream);
        }
        stream->chain = grown;
        stream->chain_room = count;
    }
    memcpy(stream->chain, sample->chain, own * sizeof *stream->chain);
    memcpy(stream->chain + own, part->chain, part->chain_count * sizeof *stream->chain);
    sample->chain = stream->chain;
    sample->chain_count = count;
    return 0;
}

/*
 * A sample whose user part came later is told then, as of its own time: none of its thread's can
 * have come between them but those that wait for the same part.
 */
static int deliver_kept(struct stream *stream, struct held_sample *kept,
                        const struct perf_sample *part)
{
    struct perf_sample *sample = kept->sample;
    enum event_kind kind = recording_kind(&stream->facts, sample);
    struct event_facts event = {.kind = kind};
    if (kind != EVENT_SAMPLED && kind != EVENT_OFF_CPU) {
        event_facts_read(kind, sample, &event);
    }
    event.weight = kept->weight;
    int err = part ? join_chain(stream, sample, part) : 0;
    return err ? err : deliver_sample(stream, sample, &event, false);
}

/* All in a list, which is freed. */
static int deliver_list(struct stream *stream, struct held_sample *list,
                        const struct perf_sample *part)
{
    int err = 0;
    while (list) {
        struct held_sample *next = list->next;
        err = err ? err : deliver_kept(stream, list, part);
        free(list);
        list = next;
    }
    return err;
}

/* What of the thread waits for the part with that cookie; with another one its part was lost. */
static struct held_sample *take_waiting(struct stream *stream, uint32_t tid, uint64_t cookie,
                                        bool lost)
{
    uint64_t its = 0;
    const struct held_sample *first = held_first(stream->late_chains, tid);
    bool is_it = first && perf_sample_awaits_user(first->sample, &its) && (its != cookie) == lost;
    return is_it ? held_take(stream->late_chains, tid) : NULL;
}

/* Gives a sample away, or keeps it until its user part is there. A thread has samples of one cookie
 * at most there. */
static int deliver_whole(struct stream *stream, struct perf_sample *sample,
                         const struct event_facts *event, bool stays)
{
    uint64_t cookie;
    int err = 0;
    if (perf_sample_awaits_user(sample, &cookie)) {
        err = deliver_list(stream, take_waiting(stream, sample->tid, cookie, true), NULL);
        if (!err && held_add(stream->late_chains, sample->tid, sample, event->weight)) {
            return 0;
        }
    }
    return err ? err : deliver_sample(stream, sample, event, stays);
}

/* The recording ends, and these have not come back to user mode. */
static int deliver_incomplete(struct stream *stream)
{
    struct held_sample *list;
    uint32_t from = 0;
    int err = 0;
    while (!err && (list = held_take_next(stream->late_chains, HELD_OF_ALL, &from)) != NULL) {
        err = deliver_list(stream, list, NULL);
    }
    return err;
}

/* ---- Waits ---- */

/*
 * The sample of a thread that waits is told when the wait is over, as of that moment: what it was
 * called from is still there then, and only now it is known how long it took. told_within: ns of
 * that in which the sample was being taken, and the thread did not wait. Who has been woken since
 * (`since` is then that time) waited for a processor.
 */
static int deliver_wait(struct stream *stream, const struct held_sample *wait, uint64_t until,
                        uint64_t told_within)
{
    struct perf_sample sample = *wait->sample;
    struct event_facts event;
    enum event_kind kind = recording_kind(&stream->facts, &sample);
    event_facts_read(kind, &sample, &event);
    bool is_awake = kind == EVENT_OFF_CPU && wait->since > sample.time;
    event.kind = is_awake ? EVENT_RUNNABLE : kind;
    uint64_t duration = until > wait->since ? until - wait->since : 0;
    uint64_t waited = duration > told_within ? duration - told_within : 0;
    event.weight = waited < UINT64_MAX / event.weight ? waited * event.weight : UINT64_MAX;
    sample.time = wait->since + duration;
    return deliver_whole(stream, &sample, &event, false);
}

/* A thread that was blocked goes back to the processors' queue: so far it waited for something. */
static int take_wakeup(struct stream *stream, const struct perf_sample *wakeup)
{
    struct held_sample *wait = held_first(stream->waits, event_woken_thread(wakeup));
    if (!wait || !recording_runnable(&stream->facts) || wait->since > wait->sample->time ||
        recording_kind(&stream->facts, wait->sample) != EVENT_OFF_CPU) {
        return 0; /* or it was awake already */
    }
    int err = deliver_wait(stream, wait, wakeup->time, 0);
    wait->since = wakeup->time > wait->since ? wakeup->time : wait->since;
    return err;
}

/* Takes out the thread's wait, if it has one, and tells it. */
static int end_wait(struct stream *stream, struct held *waits, uint64_t thread, uint64_t until,
                    uint64_t told_within)
{
    struct held_sample *wait = held_take(waits, thread);
    int err = wait ? deliver_wait(stream, wait, until, told_within) : 0;
    free(wait);
    return err;
}

/* In place of one whose end was lost. */
static void begin_wait(struct stream *stream, struct held *waits, uint64_t thread,
                       const struct perf_sample *sample)
{
    struct held_sample *lost = held_take(waits, thread);
    stream->facts.recording.counts.waits_lost += lost != NULL;
    stream->facts.recording.counts.waits_lost += !held_add(waits, thread, sample, 0);
    free(lost);
}

/* A thread has got a processor. */
static int take_switch(struct stream *stream, const struct perf_record *record)
{
    bool is_in = !(record->misc & PERF_RECORD_MISC_SWITCH_OUT);
    bool is_switch =
        record->type == PERF_RECORD_SWITCH || record->type == PERF_RECORD_SWITCH_CPU_WIDE;
    return is_switch && is_in ? end_wait(stream, stream->waits, record->id.tid, record->id.time, 0)
                              : 0;
}

/* A virtual thread of a process: numbers of both kinds are given one after the other, and pids end
 * at 2^22 (PID_MAX_LIMIT). */
static uint64_t virtual_key(uint32_t pid, uint64_t id)
{
    return (uint64_t)pid << 40 ^ id;
}

/* A virtual thread's wait begins where it is unmounted and ends where it is mounted. */
static int take_virtual(struct stream *stream, const struct perf_sample *sample,
                        enum event_kind kind)
{
    struct event_facts facts;
    event_facts_read(kind, sample, &facts);
    uint64_t key = virtual_key(sample->pid, facts.virtual_id);
    if (kind == EVENT_MOUNT) {
        return end_wait(stream, stream->virtual_waits, key, sample->time, facts.told_within);
    }
    begin_wait(stream, stream->virtual_waits, key, sample);
    return 0;
}

/* Waits of threads of that process, or all, that have lasted until now. */
static int deliver_waiting(struct stream *stream, struct held *waits, uint32_t pid)
{
    struct held_sample *wait;
    uint32_t from = 0;
    int err = 0;
    while (!err && (wait = held_take_next(waits, pid, &from)) != NULL) {
        err = deliver_wait(stream, wait, stream->time, 0);
        free(wait);
    }
    return err;
}

/* What a thread has not ended; and a process' virtual threads have no end of their own. Its memory
 * is known before this record is taken. */
static int end_thread(struct stream *stream, const struct perf_record *record)
{
    if (record->type != PERF_RECORD_EXIT) {
        return 0;
    }
    uint32_t pid = perf_record_u32(record, 8);
    uint32_t tid = perf_record_u32(record, 16);
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_end_thread(stream->marks, tid, stream->time, &taker);
    return err || pid != tid ? err : deliver_waiting(stream, stream->virtual_waits, pid);
}

/* Threads that wait still when the recording ends. */
static int deliver_unfinished(struct stream *stream)
{
    int err = deliver_waiting(stream, stream->waits, HELD_OF_ALL);
    return err ? err : deliver_waiting(stream, stream->virtual_waits, HELD_OF_ALL);
}

/* ---- In the order of time ---- */

int stream_deliver_record(struct stream *stream, const struct perf_record *record)
{
    bool superseded;
    stream_work_on_record(stream, record);
    int err = stream->sink_thread ? sink_thread_wait(stream->sink_thread) : 0;
    err = err ? err : end_thread(stream, record);
    err = err ? err : resolver_record(stream->resolver, record, &superseded);
    resolver_report(stream->resolver, &stream->facts.recording); /* JVMs may have been found */
    err = err ? err : give_record(stream, record, superseded);
    return err ? err : take_switch(stream, record);
}

/* What is valid of the copy of a stack that was left in the file, read into the same place each
 * time, which stays near the processor. */
static int read_stack(struct stream *stream, struct perf_sample **sample)
{
    if (!stream->whole) {
        stream->whole = malloc(PERF_SAMPLE_WHOLE_MAX);
        if (!stream->whole) {
            return stream_no_memory(stream);
        }
    }
    int err = perf_sample_complete(stream->data, *sample, stream->whole);
    *sample = stream->whole;
    return err;
}

int stream_deliver(struct stream *stream, const struct queued_record *queued)
{
    stream->time = queued->time > stream->time ? queued->time : stream->time;
    if (queued->kind == QUEUED_RECORD) {
        return stream_deliver_record(stream, queued->bytes);
    }
    struct perf_sample *sample = queued->bytes;
    stream_work_on(stream, sample->pid);
    int err = sample->stack_at ? read_stack(stream, &sample) : 0;
    if (err) {
        return err;
    }
    if (sample->type == PERF_RECORD_CALLCHAIN_DEFERRED) {
        struct held_sample *list = take_waiting(stream, sample->tid, sample->cookie, false);
        if (list) {
            return deliver_list(stream, list, sample);
        }
    }
    enum event_kind kind = recording_kind(&stream->facts, sample);
    if ((kind == EVENT_OFF_CPU || kind == EVENT_RUNNABLE) && sample->type == PERF_RECORD_SAMPLE) {
        enum switch_reason wanted =
            kind == EVENT_OFF_CPU ? SWITCH_BLOCKED : SWITCH_PREEMPTED; /* whatever was filtered */
        if (event_switch_reason(sample) == wanted) {
            begin_wait(stream, stream->waits, sample->tid, sample);
        }
        return 0;
    }
    if (kind == EVENT_WOKEN) {
        return sample->type == PERF_RECORD_SAMPLE ? take_wakeup(stream, sample) : 0;
    }
    if (kind == EVENT_UNMOUNT || kind == EVENT_MOUNT) {
        return sample->type == PERF_RECORD_SAMPLE ? take_virtual(stream, sample, kind) : 0;
    }
    if (kind == EVENT_TIMELINE) {
        stream->has_timeline = true;
        return sample->type == PERF_RECORD_SAMPLE ? take_timeline(stream, sample) : 0;
    }
    struct event_facts event = {.kind = EVENT_SAMPLED, .weight = recording_weight(sample)};
    if (kind != EVENT_SAMPLED && sample->type == PERF_RECORD_SAMPLE) {
        event_facts_read(kind, sample, &event);
    }
    return deliver_whole(stream, sample, &event, sample != stream->whole);
}

int stream_deliver_rest(struct stream *stream)
{
    int err = deliver_unfinished(stream);
    return err ? err : deliver_incomplete(stream);
}
