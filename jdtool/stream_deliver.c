/*
 * From the queue to the sinks: a sample is resolved and given to each, at once, or, where its
 * thread begins to wait or its user part is still to come, when that is known.
 */
#include "jdtool/stream_private.h"

#include "jdtool/base/message.h"
#include "jdtool/perf/mapping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* A stack copy that did not wait with its sample. */
static int fetch_stack(struct stream *stream, struct perf_sample *sample)
{
    size_t size = sample->stack_dyn_size;
    if (!stream->stack) {
        stream->stack = malloc(PERF_RECORD_SIZE_MAX);
    }
    if (!stream->stack) {
        return stream_no_memory(stream);
    }
    int err = perf_data_read(stream->data, sample->stack_offset, stream->stack, size);
    if (err) {
        error_message("failed to read %s again: %s", stream->options->input, strerror(-err));
        return err;
    }
    sample->stack = stream->stack;
    return 0;
}

static int deliver_sample(struct stream *stream, struct perf_sample *sample,
                          const struct event_facts *event)
{
    struct recording *recording = &stream->facts.recording;
    struct resolved_sample resolved;
    int err = sample->stack_offset ? fetch_stack(stream, sample) : 0;
    if (err) {
        return err;
    }
    err = resolver_sample(stream->resolver, sample, event, &resolved);
    resolver_report(stream->resolver, recording); /* JVMs may have been found */
    if (!err && stream->wants_codes) {
        err = resolver_codes(stream->resolver, sample->time, stream_give_code, stream);
    }
    if (err) {
        return err;
    }
    resolved.event = recording_event(&stream->facts, sample);
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
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        err = stream->sinks[i]->ops->sample(stream->sinks[i], &resolved);
    }
    return !err && event->kind == EVENT_DEOPT ? stream_give_deopt(stream, &resolved) : err;
}

static void decode(const struct stream *stream, const struct queued_record *queued,
                   struct perf_sample *sample)
{
    if (queued->kind == QUEUED_COPY) {
        memcpy(sample, queued->bytes, sizeof *sample);
        return;
    }
    struct perf_event_header header;
    memcpy(&header, queued->bytes, sizeof header);
    const struct perf_record record = {
        .type = header.type, .misc = header.misc, .size = header.size, .bytes = queued->bytes};
    (void)perf_sample_decode(stream->data, &record, sample); /* it could be, before */
}

/* ---- Call chains in two parts ---- */

/*
 * A sample whose user part came later is told then, as of its own time: none of its thread's can
 * have come between them but those that wait for the same part.
 */
static int deliver_kept(struct stream *stream, struct late_sample *kept,
                        const struct perf_sample *part)
{
    struct perf_sample sample;
    decode(stream, &kept->queued, &sample);
    sample.time = kept->queued.time; /* a wait's is its end */
    enum event_kind kind = recording_kind(&stream->facts, &sample);
    struct event_facts event = {.kind = kind};
    if (kind != EVENT_SAMPLED && kind != EVENT_OFF_CPU) {
        event_facts_read(kind, &sample, &event);
    }
    event.weight = kept->weight;
    if (part && late_chain_join(stream->late_chains, &sample, part)) {
        return stream_no_memory(stream);
    }
    return deliver_sample(stream, &sample, &event);
}

/* All in a list, which is freed. */
static int deliver_list(struct stream *stream, struct late_sample *list,
                        const struct perf_sample *part)
{
    int err = 0;
    while (list) {
        struct late_sample *next = list->next;
        err = err ? err : deliver_kept(stream, list, part);
        free(list);
        list = next;
    }
    return err;
}

/* Gives a sample away, or keeps it until its user part is there. */
static int deliver_whole(struct stream *stream, const struct queued_record *queued,
                         struct perf_sample *sample, const struct event_facts *event)
{
    uint64_t cookie;
    int err = 0;
    if (queued->kind == QUEUED_SAMPLE && late_chain_awaits(sample, &cookie)) {
        struct queued_record kept = *queued;
        kept.time = sample->time;
        err = deliver_list(stream,
                           late_chains_take_others(stream->late_chains, sample->tid, cookie), NULL);
        if (!err &&
            late_chains_keep(stream->late_chains, sample->tid, cookie, &kept, event->weight)) {
            return 0;
        }
    }
    return err ? err : deliver_sample(stream, sample, event);
}

/* The recording ends, and these have not come back to user mode. */
static int deliver_incomplete(struct stream *stream)
{
    struct late_sample *list;
    int err = 0;
    while (!err && (list = late_chains_take_any(stream->late_chains)) != NULL) {
        err = deliver_list(stream, list, NULL);
    }
    return err;
}

/* ---- Waits ---- */

/*
 * The sample of a thread that waits is told when the wait is over, as of that moment: what it was
 * called from is still there then, and only now it is known how long it took. told_within: ns of
 * that in which the sample was being taken, and the thread did not wait.
 */
static int deliver_wait(struct stream *stream, const struct queued_record *queued, uint64_t until,
                        uint64_t told_within)
{
    struct perf_sample sample;
    decode(stream, queued, &sample);
    struct event_facts event;
    event_facts_read(recording_kind(&stream->facts, &sample), &sample, &event);
    uint64_t duration = until > sample.time ? until - sample.time : 0;
    uint64_t waited = duration > told_within ? duration - told_within : 0;
    event.weight = waited < UINT64_MAX / event.weight ? waited * event.weight : UINT64_MAX;
    sample.time += duration;
    return deliver_whole(stream, queued, &sample, &event);
}

/* A thread has got a processor: that ends its wait, if it had one. */
static int take_switch(struct stream *stream, const struct perf_record *record)
{
    bool is_in = !(record->misc & PERF_RECORD_MISC_SWITCH_OUT);
    bool is_switch =
        record->type == PERF_RECORD_SWITCH || record->type == PERF_RECORD_SWITCH_CPU_WIDE;
    struct queued_record queued;
    if (!is_switch || !is_in) {
        return 0;
    }
    struct perf_sample_id id = perf_record_id(stream->data, record);
    return waits_take(stream->waits, id.tid, &queued) ? deliver_wait(stream, &queued, id.time, 0)
                                                      : 0;
}

static void keep_wait(struct waits *waits, uint64_t thread, const struct queued_record *queued,
                      const struct perf_sample *sample)
{
    uint8_t *kept = waits_add(waits, thread, queued);
    if (kept && queued->kind == QUEUED_COPY) {
        struct perf_sample copy = *sample;
        perf_sample_move(&copy, queued->bytes, kept);
        memcpy(kept, &copy, sizeof copy);
    }
}

/* A virtual thread of a process: numbers of both kinds are given one after the other, and pids end
 * at 2^22 (PID_MAX_LIMIT). */
static uint64_t virtual_key(uint32_t pid, uint64_t id)
{
    return (uint64_t)pid << 40 ^ id;
}

/* A virtual thread's wait begins where it is unmounted and ends where it is mounted. */
static int take_virtual(struct stream *stream, const struct queued_record *queued,
                        const struct perf_sample *sample, enum event_kind kind)
{
    struct event_facts facts;
    struct queued_record begun;
    event_facts_read(kind, sample, &facts);
    uint64_t key = virtual_key(sample->pid, facts.virtual_id);
    if (kind == EVENT_UNMOUNT) {
        keep_wait(stream->virtual_waits, key, queued, sample);
    } else if (waits_take(stream->virtual_waits, key, &begun)) {
        return deliver_wait(stream, &begun, sample->time, facts.told_within);
    }
    return 0;
}

/* Waits of threads of that process, or all, that have lasted until now. */
static int deliver_waiting(struct stream *stream, struct waits *waits, uint32_t pid)
{
    struct queued_record queued;
    uint32_t from = 0;
    int err = 0;
    while (!err && waits_take_next(waits, pid, &from, &queued)) {
        err = deliver_wait(stream, &queued, stream->time, 0);
    }
    return err;
}

/* Its virtual threads have no end of their own. Its memory is known before this record is taken. */
static int end_process(struct stream *stream, const struct perf_record *record)
{
    if (record->type != PERF_RECORD_EXIT) {
        return 0;
    }
    uint32_t pid = perf_record_u32(record, 8);
    uint32_t tid = perf_record_u32(record, 16);
    return pid == tid ? deliver_waiting(stream, stream->virtual_waits, pid) : 0;
}

/* Threads that wait still when the recording ends. */
static int deliver_unfinished(struct stream *stream)
{
    int err = deliver_waiting(stream, stream->waits, WAITS_OF_ALL);
    err = err ? err : deliver_waiting(stream, stream->virtual_waits, WAITS_OF_ALL);
    stream->facts.recording.counts.waits_lost =
        waits_lost(stream->waits) + waits_lost(stream->virtual_waits);
    return err;
}

/* ---- In the order of time ---- */

int stream_deliver_record(struct stream *stream, const struct perf_record *record)
{
    bool superseded;
    int err = end_process(stream, record);
    err = err ? err : resolver_record(stream->resolver, record, &superseded);
    err = err ? err : give_record(stream, record, superseded);
    return err ? err : take_switch(stream, record);
}

int stream_deliver(struct stream *stream, const struct queued_record *queued)
{
    stream->time = queued->time > stream->time ? queued->time : stream->time;
    if (queued->kind == QUEUED_RECORD) {
        struct perf_event_header header;
        memcpy(&header, queued->bytes, sizeof header);
        const struct perf_record record = {
            .type = header.type, .misc = header.misc, .size = header.size, .bytes = queued->bytes};
        return stream_deliver_record(stream, &record);
    }
    struct perf_sample sample;
    decode(stream, queued, &sample);
    if (sample.type == PERF_RECORD_CALLCHAIN_DEFERRED) {
        struct late_sample *list = late_chains_take(stream->late_chains, sample.tid, sample.cookie);
        if (list) {
            return deliver_list(stream, list, &sample);
        }
    }
    enum event_kind kind = recording_kind(&stream->facts, &sample);
    if (kind == EVENT_OFF_CPU && sample.type == PERF_RECORD_SAMPLE) {
        if (event_is_wait(&sample)) {
            keep_wait(stream->waits, sample.tid, queued, &sample);
        }
        return 0;
    }
    if (kind == EVENT_UNMOUNT || kind == EVENT_MOUNT) {
        return sample.type == PERF_RECORD_SAMPLE ? take_virtual(stream, queued, &sample, kind) : 0;
    }
    if (kind == EVENT_TIMELINE) {
        stream->has_timeline = true;
        return sample.type == PERF_RECORD_SAMPLE ? stream_take_timeline(stream, &sample) : 0;
    }
    struct event_facts event = {.kind = EVENT_SAMPLED, .weight = recording_weight(&sample)};
    if (kind != EVENT_SAMPLED && sample.type == PERF_RECORD_SAMPLE) {
        event_facts_read(kind, &sample, &event);
    }
    return deliver_whole(stream, queued, &sample, &event);
}

int stream_deliver_rest(struct stream *stream)
{
    int err = deliver_unfinished(stream);
    return err ? err : deliver_incomplete(stream);
}
