/*
 * The way of a record: read (perf_data_next), put in order (record_queue), waited for, resolved,
 * given to the sinks. A sample's stack copy is most of a recording: while the sample waits, what is
 * valid of the copy is kept at most, and where it can be read again, from a file, none of it.
 */
#include "jdtool/stream.h"

#include "jdtool/base/message.h"
#include "jdtool/perf/late_chains.h"
#include "jdtool/perf/record_queue.h"
#include "jdtool/perf/waits.h"
#include "jdtool/resolve/marks.h"
#include "jdtool/resolve/recording.h"
#include "jdtool/resolve/resolver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What may wait. perf's own buffers have a few MB a processor, and two rounds of them wait. */
#define BUDGET ((size_t)192 << 20)

/* What samples of threads that wait may take, in bytes: a stack copy for each. */
#define WAITS_BUDGET ((size_t)256 << 20)

/* What samples may take whose user part is still to come. */
#define LATE_CHAINS_BUDGET ((size_t)64 << 20)

/* So long a living JVM has to tell of code after it was sampled, in ns. */
#define TELLS_WITHIN (UINT64_C(500) * 1000 * 1000)

/* While somebody waits for more, this often what can go goes, in ms. */
#define WAKE_EVERY 100

/* How often in a recording with a timeline it is looked how full the code cache is: each look goes
 * through all pieces of code, and of all together through so many. */
#define CODE_CACHE_LOOKS  100
#define CODE_CACHE_PIECES 4000000

/* PERF_RECORD_MISC_LOST_SAMPLES_BPF: dropped by a filter, as wanted. */
#define LOST_BPF (1u << 15)

enum queued_kind {
    QUEUED_RECORD,
    QUEUED_SAMPLE,
    QUEUED_COPY, /* a struct perf_sample, and the bytes it points to */
};

struct stream {
    const struct stream_options *options;
    struct sample_sink *const *sinks;
    uint32_t sink_count;
    uint32_t begun; /* sinks that were */
    struct perf_data *data;
    struct resolver *resolver;
    struct record_queue *queue;
    struct waits *waits;
    struct late_chains *late_chains;
    struct marks *marks;
    bool has_timeline; /* some event of the recording is one */
    uint64_t time;     /* of the latest record or sample */
    struct recording_facts facts;
    bool live;
    bool wants_codes;
    uint64_t updated; /* when dumps were last asked */
    uint64_t next_turn;
    uint8_t *stack; /* PERF_RECORD_SIZE_MAX bytes, once a copy was read again */
};

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

static int no_memory(const struct stream *stream)
{
    error_message("failed to read %s: %s", stream->options->input, strerror(ENOMEM));
    return -ENOMEM;
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

static int give_code(void *context, const struct resolved_code *code)
{
    const struct stream *stream = context;
    int err = 0;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        err = sink->ops->code ? sink->ops->code(sink, code) : 0;
    }
    return err;
}

static int give_mark(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    const struct stream *stream = context;
    struct resolved_thread thread;
    int err = resolver_thread(stream->resolver, pid, tid, mark->until, &thread);
    struct resolved_mark given = *mark;
    given.thread = &thread;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        err = sink->ops->mark ? sink->ops->mark(sink, &given) : 0;
    }
    return err;
}

/* "pkg.Cls.m(int):12" of what the stack of a deoptimisation begins with, behind its reason. */
static int give_deopt(struct stream *stream, const struct resolved_sample *sample)
{
    char reason[64] = "";
    char method[1024] = "";
    struct resolved_mark mark = {
        .kind = MARK_DEOPT, .from = sample->time, .until = sample->time, .text = reason};
    const struct resolved_frame *frames = sample->frames;
    if (sample->frame_count > 0 && frames[0].kind == RESOLVED_SUBJECT) {
        const char *name = frames[0].method->name; /* in brackets */
        snprintf(reason, sizeof reason, "%.*s", (int)strcspn(name + 1, "]"), name + 1);
    }
    if (sample->frame_count > 1 && frames[1].method) {
        int size = snprintf(method, sizeof method, "%s", frames[1].method->name);
        if (frames[1].line && size < (int)sizeof method) {
            snprintf(method + size, sizeof method - (size_t)size, ":%" PRIu32, frames[1].line);
        }
        mark.subject = method;
    }
    return give_mark(stream, sample->thread.pid, sample->thread.tid, &mark);
}

/* A stack copy that did not wait with its sample. */
static int fetch_stack(struct stream *stream, struct perf_sample *sample)
{
    size_t size = sample->stack_dyn_size;
    if (!stream->stack) {
        stream->stack = malloc(PERF_RECORD_SIZE_MAX);
    }
    if (!stream->stack) {
        return no_memory(stream);
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
        err = resolver_codes(stream->resolver, sample->time, give_code, stream);
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
    return !err && event->kind == EVENT_DEOPT ? give_deopt(stream, &resolved) : err;
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
    struct event_facts event = {.kind = kind, .weight = kept->weight};
    if (kind != EVENT_SAMPLED && kind != EVENT_OFF_CPU) {
        event_facts_read(kind, &sample, &event);
    }
    if (part && late_chain_join(stream->late_chains, &sample, part)) {
        return no_memory(stream);
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
 * called from is still there then, and only now it is known how long it took.
 */
static int deliver_wait(struct stream *stream, const struct queued_record *queued, uint64_t until)
{
    struct perf_sample sample;
    decode(stream, queued, &sample);
    struct event_facts event = {.kind = EVENT_OFF_CPU,
                                .weight = until > sample.time ? until - sample.time : 0};
    sample.time = until > sample.time ? until : sample.time;
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
    return waits_take(stream->waits, id.tid, &queued) ? deliver_wait(stream, &queued, id.time) : 0;
}

static void keep_wait(struct stream *stream, const struct queued_record *queued,
                      const struct perf_sample *sample)
{
    uint8_t *kept = waits_add(stream->waits, sample->tid, queued);
    if (kept && queued->kind == QUEUED_COPY) {
        struct perf_sample copy = *sample;
        perf_sample_move(&copy, queued->bytes, kept);
        memcpy(kept, &copy, sizeof copy);
    }
}

/* Threads that wait still when the recording ends. */
static int deliver_unfinished(struct stream *stream)
{
    struct queued_record queued;
    int err = 0;
    while (!err && waits_take_any(stream->waits, &queued)) {
        err = deliver_wait(stream, &queued, stream->time);
    }
    stream->facts.recording.counts.waits_lost = waits_lost(stream->waits);
    return err;
}

/* ---- What the JVM itself does ---- */

static int take_timeline(struct stream *stream, const struct perf_sample *sample)
{
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_add(stream->marks, sample, &taker);
    return err == -ENOMEM ? no_memory(stream) : err;
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

static int end_timeline(struct stream *stream)
{
    const struct mark_taker taker = {give_mark, stream};
    int err = marks_end(stream->marks, stream->time, &taker);
    stream->facts.recording.counts.marks_lost = marks_lost(stream->marks);
    return err || !stream->has_timeline ? err : look_into_code_caches(stream);
}

/* ---- In the order of time ---- */

static int deliver_record(struct stream *stream, const struct perf_record *record)
{
    bool superseded;
    int err = resolver_record(stream->resolver, record, &superseded);
    err = err ? err : give_record(stream, record, superseded);
    return err ? err : take_switch(stream, record);
}

static int deliver(struct stream *stream, const struct queued_record *queued)
{
    stream->time = queued->time > stream->time ? queued->time : stream->time;
    if (queued->kind == QUEUED_RECORD) {
        struct perf_event_header header;
        memcpy(&header, queued->bytes, sizeof header);
        const struct perf_record record = {
            .type = header.type, .misc = header.misc, .size = header.size, .bytes = queued->bytes};
        return deliver_record(stream, &record);
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
            keep_wait(stream, queued, &sample);
        }
        return 0;
    }
    if (kind == EVENT_TIMELINE) {
        stream->has_timeline = true;
        return sample.type == PERF_RECORD_SAMPLE ? take_timeline(stream, &sample) : 0;
    }
    struct event_facts event = {.kind = EVENT_SAMPLED, .weight = recording_weight(&sample)};
    if (kind != EVENT_SAMPLED && sample.type == PERF_RECORD_SAMPLE) {
        event_facts_read(kind, &sample, &event);
    }
    return deliver_whole(stream, queued, &sample, &event);
}

/* ---- Waiting ---- */

/* Until when a record has to wait for its JVM; 0: it has not. */
static uint64_t waits_until(const struct stream *stream, const struct queued_record *queued)
{
    if (!stream->live || queued->kind == QUEUED_RECORD ||
        !resolver_may_grow(stream->resolver, queued->pid)) {
        return 0;
    }
    return queued->arrival + TELLS_WITHIN;
}

static void sleep_until(uint64_t moment)
{
    struct timespec time = {.tv_sec = (time_t)(moment / UINT64_C(1000000000)),
                            .tv_nsec = (long)(moment % UINT64_C(1000000000))};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

/* Gives away what is due. at_end: all of it, as soon as it may go. */
static int release(struct stream *stream, bool at_end)
{
    const struct queued_record *first;
    int err = 0;
    while (!err && (first = record_queue_first(stream->queue)) != NULL) {
        uint64_t until = waits_until(stream, first);
        if (until && until > now()) {
            if (at_end) {
                sleep_until(until);
            } else if (record_queue_is_full(stream->queue)) {
                stream->facts.recording.counts.let_go_early++;
            } else {
                break;
            }
        }
        if (until && stream->updated < until) { /* or it is let go early */
            stream->updated = now();
            err = resolver_update(stream->resolver, false);
        }
        if (!err) {
            struct queued_record queued = *first;
            record_queue_pop(stream->queue);
            err = deliver(stream, &queued);
        }
    }
    return err;
}

/* ---- From the recording ---- */

/* Keeps a sample without its stack copy, or if that cannot be read again, without the invalid part
 * of it. 0 or -ENOMEM. */
static int queue_copy(struct stream *stream, struct queued_record *queued,
                      const struct perf_record *record, const struct perf_sample *sample)
{
    const uint8_t *from = record->bytes;
    size_t stack = (size_t)(sample->stack - from);
    size_t first = record->offset ? stack : stack + sample->stack_dyn_size;
    size_t at = (sizeof *sample + 15) & ~(size_t)15;
    queued->kind = QUEUED_COPY;
    queued->size = (uint32_t)(at + first + sample->tail.size);
    uint8_t *kept = record_queue_put(stream->queue, queued);
    if (!kept) {
        return -ENOMEM;
    }
    uint8_t *to = kept + at;
    struct perf_sample copy = *sample;
    memcpy(to, from, first);
    if (sample->tail.size) {
        memcpy(to + first, sample->tail.at, sample->tail.size);
    }
    perf_sample_move(&copy, from, to);
    if (record->offset) {
        copy.stack = NULL;
        copy.stack_offset = record->offset + stack;
    }
    copy.user = (struct perf_bytes){0};
    copy.tail.at = to + first;
    memcpy(kept, &copy, sizeof copy);
    return 0;
}

static int queue_record(struct stream *stream, struct queued_record *queued,
                        const struct perf_record *record)
{
    queued->size = record->size;
    void *kept = record_queue_put(stream->queue, queued);
    if (!kept) {
        return -ENOMEM;
    }
    memcpy(kept, record->bytes, record->size);
    return 0;
}

static void count_losses(struct stream *stream, const struct perf_record *record)
{
    struct recording_counts *counts = &stream->facts.recording.counts;
    uint64_t words[2] = {0};
    size_t size = record->size - sizeof(struct perf_event_header);
    memcpy(words, record->bytes + sizeof(struct perf_event_header),
           size < sizeof words ? size : sizeof words);
    if (record->type == PERF_RECORD_LOST) {
        counts->lost_records += words[1];
    } else if (record->type == PERF_RECORD_LOST_SAMPLES) {
        *(record->misc & LOST_BPF ? &counts->filtered_samples : &counts->lost_samples) += words[0];
    }
}

static int take_sample(struct stream *stream, const struct perf_record *record)
{
    struct perf_sample sample;
    if (perf_sample_decode(stream->data, record, &sample)) {
        stream->facts.recording.counts.malformed++; /* perf, too, makes nothing of one */
        return 0;
    }
    struct queued_record queued = {.time = sample.time,
                                   .arrival = stream->live ? now() : 0,
                                   .kind = QUEUED_SAMPLE,
                                   .pid = sample.pid};
    bool has_copy = sample.stack && resolver_unwinds(stream->resolver);
    return has_copy ? queue_copy(stream, &queued, record, &sample)
                    : queue_record(stream, &queued, record);
}

/* Records of perf's own have no time; those of the kernel may have none. */
static int take_record(struct stream *stream, const struct perf_record *record)
{
    if (record->type == PERF_USER_FINISHED_ROUND) {
        record_queue_round(stream->queue);
        return 0;
    }
    if (record->type >= PERF_USER_FIRST) {
        return deliver_record(stream, record);
    }
    count_losses(stream, record);
    int err = resolver_notice(stream->resolver, record);
    if (err) {
        return err;
    }
    uint64_t time = perf_record_id(stream->data, record).time;
    struct queued_record queued = {.time = time == UINT64_MAX ? 0 : time, .kind = QUEUED_RECORD};
    return queue_record(stream, &queued, record) ? no_memory(stream) : 0;
}

static int take(struct stream *stream, const struct perf_record *record)
{
    stream->facts.recording.counts.records++;
    if (!perf_record_has_sample(record)) {
        return take_record(stream, record);
    }
    return take_sample(stream, record) ? no_memory(stream) : 0;
}

/* What is due goes, and who wanted to be called is. */
static int take_turn(struct stream *stream)
{
    int err = release(stream, false);
    if (!err && stream->live && stream->options->turn && now() >= stream->next_turn) {
        stream->next_turn = now() + (uint64_t)WAKE_EVERY * 1000 * 1000;
        err = recording_describe(&stream->facts, stream->data) ? no_memory(stream) : 0;
        err = err ? err : stream->options->turn(stream->options->context);
    }
    return err;
}

static int read_all(struct stream *stream)
{
    struct perf_record record;
    int err = 0;
    for (;;) {
        if (stream->live && !perf_data_wait(stream->data, WAKE_EVERY)) {
            err = take_turn(stream);
            if (err) {
                return err;
            }
            continue;
        }
        int more = perf_data_next(stream->data, &record);
        if (more <= 0) {
            return more;
        }
        bool is_round = record.type == PERF_USER_FINISHED_ROUND;
        err = take(stream, &record);
        if (!err && (is_round || record_queue_is_full(stream->queue))) {
            err = take_turn(stream);
        }
        if (err) {
            return err;
        }
    }
}

/* ---- All of it ---- */

static int begin(struct stream *stream)
{
    int err = 0;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        stream->wants_codes |= sink->ops->code != NULL;
        err = sink->ops->begin(sink, &stream->facts.recording);
    }
    return err;
}

static int finish(struct stream *stream)
{
    record_queue_finish(stream->queue);
    int err = release(stream, true);
    err = err ? err : deliver_unfinished(stream);
    err = err ? err : deliver_incomplete(stream);
    if (!err) {
        err = resolver_update(stream->resolver, true);
    }
    if (!err) {
        err = end_timeline(stream);
    }
    if (!err && stream->wants_codes) {
        err = resolver_codes(stream->resolver, UINT64_MAX, give_code, stream);
    }
    if (!err && recording_describe(&stream->facts, stream->data)) { /* a pipe has told more */
        err = no_memory(stream);
    }
    stream->facts.recording.counts.late = record_queue_late(stream->queue);
    resolver_report(stream->resolver, &stream->facts.recording);
    return err;
}

static int open_stream(struct stream *stream)
{
    const struct stream_options *options = stream->options;
    const struct resolver_options resolver = {.build_id_dir = options->build_id_dir,
                                              .dumps = options->dumps,
                                              .dump_count = options->dump_count,
                                              .symbolize = options->symbolize,
                                              .unwind = !options->keep_stacks};
    int err = perf_data_open(options->input, &stream->data);
    if (!err) {
        stream->live = perf_data_is_live(stream->data);
        err = resolver_new(stream->data, &resolver, &stream->resolver);
    }
    if (err) {
        return err;
    }
    stream->queue = record_queue_new(BUDGET);
    stream->waits = waits_new(WAITS_BUDGET);
    stream->late_chains = late_chains_new(LATE_CHAINS_BUDGET);
    stream->marks = marks_new();
    if (!stream->queue || !stream->waits || !stream->late_chains || !stream->marks ||
        recording_describe(&stream->facts, stream->data)) {
        return no_memory(stream);
    }
    struct recording *recording = &stream->facts.recording;
    resolver_report(stream->resolver, recording);
    if (recording->has_copies && !recording->unwound && !options->keep_stacks) {
        warning_message("the stack copies of %s are of a machine that is neither x86-64 nor "
                        "aarch64; they are left as they are",
                        options->input);
    }
    return 0;
}

/* Ends all sinks, or from the first that fails on gives them up. */
static int end_sinks(struct stream *stream, int err)
{
    for (uint32_t i = 0; i < stream->sink_count; i++) {
        struct sample_sink *sink = stream->sinks[i];
        if (err) {
            sink->ops->abort(sink);
        } else {
            err = sink->ops->end(sink);
        }
    }
    return err;
}

static void count_jvms(const struct recording *recording, struct stream_result *result)
{
    result->jvms = recording->jvm_count;
    for (uint32_t i = 0; i < recording->jvm_count; i++) {
        result->usable += recording->jvms[i]->index != NULL;
    }
}

int stream_run(const struct stream_options *options, struct sample_sink *const *sinks,
               uint32_t count, struct stream_result *result)
{
    struct stream stream = {.options = options, .sinks = sinks, .sink_count = count};
    *result = (struct stream_result){0};
    int err = open_stream(&stream);
    if (!err) {
        err = begin(&stream);
    }
    if (!err) {
        err = read_all(&stream);
    }
    if (!err) {
        err = finish(&stream);
    }
    if (!err) {
        resolver_tell(stream.resolver);
        count_jvms(&stream.facts.recording, result);
        resolver_settle(stream.resolver); /* sinks need memory to end */
    }
    err = end_sinks(&stream, err);
    record_queue_free(stream.queue);
    waits_free(stream.waits);
    late_chains_free(stream.late_chains);
    marks_free(stream.marks);
    free(stream.stack);
    resolver_free(stream.resolver);
    recording_forget(&stream.facts);
    perf_data_close(stream.data);
    return err;
}
