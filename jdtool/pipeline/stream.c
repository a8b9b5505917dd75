/*
 * The way of a record: read and put in order (reader.c), waited for, resolved, given to the sinks
 * (stream_deliver.c). It is read once and decoded once: what waits is kept decoded.
 */
#include "jdtool/base/bytes.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/pipeline/stream_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What may wait. perf's own buffers have a few MB a processor, and two rounds of them wait. */
#define BUDGET ((size_t)192 << 20)

/* What samples of threads that wait may take, in bytes: a stack copy for each. */
#define WAITS_BUDGET ((size_t)256 << 20)

/* The same of virtual threads. */
#define VIRTUAL_WAITS_BUDGET ((size_t)256 << 20)

/* What samples may take whose user part is still to come. */
#define LATE_CHAINS_BUDGET ((size_t)64 << 20)

/* So long a living JVM has to tell of code after it was sampled, in ns. */
#define TELLS_WITHIN (UINT64_C(500) * 1000 * 1000)

/* While somebody waits for more, this often what can go goes, in ms; and when nobody does, who
 * takes the samples wakes us. */
#define WAKE_EVERY      100
#define WAKE_EVERY_MOST 2000

/* For samples that go early a dump is asked this often, in ns: when there are too many of them,
 * that would be for each. */
#define ASK_EVERY (UINT64_C(50) * 1000 * 1000)

/* What nobody asked for that long goes until it is asked for again, in ns. */
#define REST_EVERY (UINT64_C(15) * 1000 * 1000 * 1000)

/* PERF_RECORD_MISC_LOST_SAMPLES_BPF: dropped by a filter, as wanted. */
#define LOST_BPF (1u << 15)

void stream_work_on(const struct stream *stream, uint32_t pid)
{
    if (stream->options->work_on) {
        stream->options->work_on(stream->options->context, pid);
    }
}

void stream_work_on_record(const struct stream *stream, const struct perf_record *record)
{
    stream_work_on(stream, record->mapping                ? record->mapping->pid
                           : record->id.pid == UINT32_MAX ? 0
                                                          : record->id.pid);
}

int stream_no_memory(const struct stream *stream)
{
    return failed_to(-ENOMEM, "read %s", stream->options->input);
}

/* ---- Waiting ---- */

/* Until when a record has to wait for its JVM; 0: it has not. */
static uint64_t waits_until(const struct stream *stream, const struct queued_record *queued)
{
    if (queued->kind == QUEUED_RECORD || !resolver_may_grow(stream->resolver, queued->pid)) {
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

/* Whether it is later than that: the clock is read only where it was not when it was read last. */
static bool is_over(uint64_t moment, uint64_t *now)
{
    *now = moment > *now ? clock_ns(CLOCK_MONOTONIC) : *now;
    return moment <= *now;
}

/* Gives away what is due of a pipe. at_end: all of it, as soon as it may go. */
static int release(struct stream *stream, bool at_end)
{
    const struct queued_record *first;
    uint64_t now = 0;
    int err = 0;
    while (!err && (first = record_queue_first(stream->queue)) != NULL) {
        uint64_t until = waits_until(stream, first);
        uint64_t asked_since = until; /* it wants what was told by then */
        bool has_time = !at_end && !record_queue_is_full(stream->queue);
        if (!is_over(until, &now)) {
            if (at_end) {
                sleep_until(stream->arrived + TELLS_WITHIN); /* once for all that wait */
            } else if (has_time) {
                break;
            } else {
                stream->facts.recording.counts.let_go_early++;
                asked_since = clock_ns(CLOCK_MONOTONIC) - ASK_EVERY;
            }
        } else if (until && resolver_is_starting(stream->resolver, first->pid)) {
            asked_since = clock_ns(CLOCK_MONOTONIC) - ASK_EVERY;
        }
        if (until) {
            stream_work_on(stream, first->pid);
            err = resolver_update_process(stream->resolver, first->pid, asked_since);
        }
        if (until && has_time && !err && resolver_is_starting(stream->resolver, first->pid)) {
            break;
        }
        if (!err) {
            struct queued_record queued;
            record_queue_take(stream->queue, &queued);
            err = stream_deliver(stream, &queued);
            record_queue_give_back(stream->queue, &queued);
        }
    }
    return err;
}

/* ---- From the recording ---- */

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
    } else if (record->type == PERF_RECORD_THROTTLE) {
        counts->throttled++;
    }
}

/* Before it has waited for its turn. */
static int take_record(struct stream *stream, const struct perf_record *record)
{
    count_losses(stream, record);
    stream_work_on_record(stream, record);
    int err = stream->sink_thread ? sink_thread_wait(stream->sink_thread) : 0;
    return err ? err : resolver_notice(stream->resolver, record);
}

static int take_sample(struct stream *stream, const struct read_item *item)
{
    if (!stream->live) {
        return 0;
    }
    stream->arrived = item->arrival;
    stream_work_on(stream, item->sample->pid);
    return resolver_prepare(stream->resolver, item->sample, item->arrival - ASK_EVERY);
}

static int take(struct stream *stream, const struct read_item *item)
{
    switch (item->kind) {
    case READ_OWN:
        return stream_deliver_record(stream, item->record);
    case READ_RECORD:
        return take_record(stream, item->record);
    case READ_SAMPLE:
        return take_sample(stream, item);
    case READ_DUE:
        return stream_deliver(stream, &item->due);
    default:
        return 0;
    }
}

static void count_read(struct stream *stream)
{
    struct recording_counts *counts = &stream->facts.recording.counts;
    reader_count(stream->reader, &counts->records, &counts->malformed);
}

/* What is due of a pipe goes, and who wanted to be called is. */
static int take_turn(struct stream *stream)
{
    count_read(stream);
    int err = release(stream, false);
    if (!err) {
        stream_work_on(stream, 0);
    }
    resolver_let_go(stream->resolver, stream->time, stream->reads_codes);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now >= stream->next_rest) {
        stream->next_rest = now + REST_EVERY;
        resolver_rest(stream->resolver);
    }
    if (!err && stream->options->turn && now >= stream->next_turn) {
        stream->next_turn = now + (uint64_t)WAKE_EVERY * 1000 * 1000;
        err = recording_describe(&stream->facts, stream->data) ? stream_no_memory(stream) : 0;
        err = err ? err : stream->options->turn(stream->options->context);
    }
    return err;
}

static int read_pipe(struct stream *stream)
{
    int wait = stream->options->turn ? WAKE_EVERY : WAKE_EVERY_MOST;
    struct read_item item = {.kind = READ_NOTHING};
    int more = 1;
    while (more > 0) {
        bool is_due = !perf_data_wait(stream->data, wait);
        int err = 0;
        if (!is_due) {
            more = reader_next(stream->reader, &item);
            err = more > 0 ? take(stream, &item) : 0;
            is_due = more > 0 && (item.kind == READ_ROUND || record_queue_is_full(stream->queue));
        }
        if (!err && is_due) {
            err = take_turn(stream);
        }
        more = err ? err : more;
    }
    return more;
}

static int read_file(struct stream *stream)
{
    struct read_item item;
    int more;
    while ((more = reader_next(stream->reader, &item)) > 0) {
        int err = take(stream, &item);
        if (!err && stream->sink_thread && reader_is_at_end(stream->reader)) {
            err = sink_thread_pass(stream->sink_thread);
        }
        if (err) {
            return err;
        }
    }
    return more;
}

static int read_all(struct stream *stream)
{
    int err = stream->live ? read_pipe(stream) : read_file(stream);
    if (!err) {
        count_read(stream);
    }
    return err;
}

/* ---- All of it ---- */

/* Where what is read lives long enough, nothing that they keep goes before their end, and no code
 * comes but in records. */
static void start_sink_thread(struct stream *stream)
{
    bool can =
        reader_is_ahead(stream->reader) && !stream->wants_codes && stream->options->dump_count == 0;
    for (uint32_t i = 0; i < stream->sink_count; i++) {
        can &= !stream->sinks[i]->ops->before;
    }
    stream->sink_thread = can ? sink_thread_new(stream->sinks, stream->sink_count) : NULL;
}

static int begin(struct stream *stream)
{
    int err = 0;
    for (uint32_t i = 0; i < stream->sink_count && !err; i++) {
        struct sample_sink *sink = stream->sinks[i];
        stream->wants_codes |= sink->ops->code != NULL;
        stream->reads_codes |= sink->reads_code;
        err = sink->ops->begin(sink, &stream->facts.recording);
    }
    if (!err) {
        start_sink_thread(stream);
    }
    return err;
}

static int finish(struct stream *stream)
{
    int err = 0;
    if (stream->live) { /* nobody waits for a JVM that has ended since, and told all */
        record_queue_finish(stream->queue);
        err = resolver_update(stream->resolver, false);
        err = err ? err : release(stream, true);
    }
    err = err ? err : stream_deliver_rest(stream);
    if (!err) {
        err = resolver_update(stream->resolver, true);
    }
    if (!err) {
        err = stream_end_timeline(stream);
    }
    if (!err && stream->wants_codes) {
        err = resolver_codes(stream->resolver, UINT64_MAX, stream_give_code, stream);
    }
    if (!err && recording_describe(&stream->facts, stream->data)) { /* a pipe has told more */
        err = stream_no_memory(stream);
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
                                              .unwind = !options->keep_stacks,
                                              .sparing = options->sparing};
    int err = perf_data_open(options->input, &stream->data);
    if (!err) {
        stream->live = perf_data_is_live(stream->data);
        err = resolver_new(stream->data, &resolver, &stream->resolver);
    }
    if (err) {
        return err;
    }
    if (resolver_unwinds(stream->resolver)) {
        perf_data_leave_copies(stream->data);
    }
    stream->queue = record_queue_new(options->budget ? options->budget : BUDGET);
    stream->waits = held_new(WAITS_BUDGET);
    stream->virtual_waits = held_new(VIRTUAL_WAITS_BUDGET);
    stream->late_chains = held_new(LATE_CHAINS_BUDGET);
    stream->marks = marks_new();
    stream->reader =
        stream->queue ? reader_new(stream->data, stream->queue, resolver_unwinds(stream->resolver))
                      : NULL;
    if (!stream->reader || !stream->waits || !stream->virtual_waits || !stream->late_chains ||
        !stream->marks || recording_describe(&stream->facts, stream->data)) {
        return stream_no_memory(stream);
    }
    struct recording *recording = &stream->facts.recording;
    recording->verdict = options->verdict;
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
    int unsunk = stream_join_sinks(&stream);
    err = err ? err : unsunk;
    if (!err) {
        err = finish(&stream);
    }
    if (!err) {
        resolver_tell(stream.resolver);
        count_jvms(&stream.facts.recording, result);
        resolver_settle(stream.resolver); /* sinks need memory to end */
    }
    err = end_sinks(&stream, err);
    reader_free(stream.reader);
    record_queue_free(stream.queue);
    held_free(stream.waits);
    held_free(stream.virtual_waits);
    held_free(stream.late_chains);
    free(stream.whole);
    free(stream.chain);
    marks_free(stream.marks);
    resolver_free(stream.resolver);
    recording_forget(&stream.facts);
    perf_data_close(stream.data);
    return err;
}

/* ---- What a recording says of itself ---- */

/* How many strings, then each: bytes, 32 bits wide, and the text padded with NULs. */
static char *read_command_line(struct perf_data *data)
{
    size_t size;
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_CMDLINE, &size);
    struct bytes line = {0};
    uint32_t count = 0;
    size_t at = sizeof count;
    if (!section || size < sizeof count) {
        return NULL;
    }
    memcpy(&count, section, sizeof count);
    for (uint32_t i = 0; i < count && size - at >= sizeof(uint32_t); i++) {
        uint32_t length;
        memcpy(&length, section + at, sizeof length);
        at += sizeof length;
        if (length > size - at) {
            break;
        }
        if (i > 0) {
            bytes_u8(&line, ' ');
        }
        bytes_put(&line, section + at, strnlen((const char *)section + at, length));
        at += length;
    }
    bytes_u8(&line, 0);
    if (line.failed) {
        bytes_free(&line);
        return NULL;
    }
    return (char *)line.at;
}

static uint32_t read_cpu_count(struct perf_data *data)
{
    size_t size;
    uint32_t counts[2] = {0, 0}; /* there, and online */
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_NRCPUS, &size);
    if (section && size >= sizeof counts) {
        memcpy(counts, section, sizeof counts);
    }
    return counts[1];
}

/* Version, clock, then one moment by the wall and by that clock. */
static void read_clock(struct perf_data *data, struct recording *recording)
{
    struct {
        uint32_t version, clock;
        uint64_t wall, time;
    } clock;
    size_t size;
    const uint8_t *section = perf_data_feature(data, PERF_FEATURE_CLOCK_DATA, &size);
    if (section && size >= sizeof clock) {
        memcpy(&clock, section, sizeof clock);
        recording->has_wall = clock.version == 1;
        recording->wall_offset = (int64_t)(clock.wall - clock.time);
    }
}

static bool counts_time(const struct perf_event_attr *attr)
{
    return attr->type == PERF_TYPE_SOFTWARE &&
           (attr->config == PERF_COUNT_SW_CPU_CLOCK || attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

/* Whether it tells when threads get and lose a processor. */
static bool has_switches(const struct perf_data *data)
{
    for (uint32_t i = 0; i < perf_data_event_count(data); i++) {
        if (perf_data_event(data, i)->attr.context_switch) {
            return true;
        }
    }
    return false;
}

int recording_describe(struct recording_facts *facts, struct perf_data *data)
{
    struct recording *recording = &facts->recording;
    uint32_t count = perf_data_event_count(data);
    if (!facts->events) {
        facts->events = calloc(count, sizeof *facts->events);
        facts->rules = calloc(count, sizeof *facts->rules);
        if (!facts->events || !facts->rules) {
            return -ENOMEM;
        }
    }
    bool switches = has_switches(data);
    for (uint32_t i = 0; i < count; i++) {
        const struct perf_event_attr *attr = &perf_data_event(data, i)->attr;
        const char *name = perf_data_event_name(data, i);
        facts->rules[i] = event_rule_of(name, switches);
        for (uint32_t k = 0; k < i && facts->rules[i].kind == EVENT_OFF_CPU; k++) {
            if (facts->rules[k].kind == EVENT_OFF_CPU) {
                facts->rules[i] = event_runnable;
            }
        }
        const struct event_rule *rule = &facts->rules[i];
        facts->events[i] = (struct recorded_event){
            .id = i,
            .name = rule->name ? rule->name
                    : name     ? name
                               : "event",
            .unit = rule->unit          ? rule->unit
                    : counts_time(attr) ? "nanoseconds"
                                        : "count",
            .frequency = attr->freq ? attr->sample_freq : 0,
            .period = attr->freq ? 0 : attr->sample_period,
            .is_processor_time = rule->kind == EVENT_SAMPLED && counts_time(attr) &&
                                 !attr->exclude_kernel && !attr->exclude_user,
        };
    }
    if (!facts->command_line) {
        facts->command_line = read_command_line(data);
    }
    recording->path = perf_data_path(data);
    recording->hostname = perf_data_string(data, PERF_FEATURE_HOSTNAME);
    recording->os_release = perf_data_string(data, PERF_FEATURE_OSRELEASE);
    recording->arch = perf_data_string(data, PERF_FEATURE_ARCH);
    recording->cpu = perf_data_string(data, PERF_FEATURE_CPUDESC);
    recording->perf_version = perf_data_string(data, PERF_FEATURE_VERSION);
    recording->command_line = facts->command_line;
    recording->cpu_count = read_cpu_count(data);
    recording->events = facts->events;
    /* What becomes marks, or ends waits, has no samples; it is recorded last. */
    while (count > 1 && (facts->rules[count - 1].kind == EVENT_TIMELINE ||
                         facts->rules[count - 1].kind == EVENT_MOUNT ||
                         facts->rules[count - 1].kind == EVENT_WOKEN)) {
        count--;
    }
    recording->event_count = count;
    recording->has_chains = perf_data_has(data, PERF_SAMPLE_CALLCHAIN);
    recording->has_copies = perf_data_has(data, PERF_SAMPLE_STACK_USER);
    recording->data = data;
    read_clock(data, recording);
    return 0;
}

void recording_forget(struct recording_facts *facts)
{
    free(facts->events);
    free(facts->rules);
    free(facts->command_line);
    *facts = (struct recording_facts){0};
}

const struct recorded_event *recording_event(const struct recording_facts *facts,
                                             const struct perf_sample *sample)
{
    const struct perf_event *first = perf_data_event(facts->recording.data, 0);
    return &facts->events[sample->event - first];
}

const struct recorded_event *recording_runnable(const struct recording_facts *facts)
{
    for (uint32_t i = 0; i < facts->recording.event_count; i++) {
        if (facts->rules[i].kind == EVENT_RUNNABLE) {
            return &facts->events[i];
        }
    }
    return NULL;
}

enum event_kind recording_kind(const struct recording_facts *facts,
                               const struct perf_sample *sample)
{
    const struct perf_event *first = perf_data_event(facts->recording.data, 0);
    return facts->rules[sample->event - first].kind;
}

uint64_t recording_weight(const struct perf_sample *sample)
{
    const struct perf_event_attr *attr = &sample->event->attr;
    if (sample->type != PERF_RECORD_SAMPLE) {
        return 0;
    }
    if (sample->has & PERF_SAMPLE_PERIOD) {
        return sample->period;
    }
    return attr->freq || attr->sample_period == 0 ? 1 : attr->sample_period;
}
