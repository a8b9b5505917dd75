/*
 * What a stream is, for the files that make it one: stream.c (from the recording) and
 * stream_deliver.c (to the resolver and the sinks, and what the JVM itself does).
 */
#ifndef JD_TOOL_STREAM_PRIVATE_H
#define JD_TOOL_STREAM_PRIVATE_H

#include "jdtool/pipeline/stream.h"

#include "jdtool/events/event_rule.h"
#include "jdtool/events/marks.h"
#include "jdtool/perf/held.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/pipeline/reader.h"
#include "jdtool/pipeline/sink_thread.h"
#include "jdtool/resolve/resolver.h"
#include "jdtool/resolve/sample_sink.h"

/* ---- What a recording says of itself ---- */

struct recording_facts {
    struct recording recording;
    struct recorded_event *events;
    struct event_rule *rules; /* one for each event */
    char *command_line;
};

/* Start zeroed. May be called again when a pipe has told more. 0 or -ENOMEM. */
int recording_describe(struct recording_facts *facts, struct perf_data *data);
void recording_forget(struct recording_facts *facts);

/* The event of a sample, and what the sample weighs where no rule of event_rule.h says more. */
const struct recorded_event *recording_event(const struct recording_facts *facts,
                                             const struct perf_sample *sample);
uint64_t recording_weight(const struct perf_sample *sample);

/* The event of waits for a processor; NULL: the recording does not tell of them. */
const struct recorded_event *recording_runnable(const struct recording_facts *facts);

/* What kind of event it is of. */
enum event_kind recording_kind(const struct recording_facts *facts,
                               const struct perf_sample *sample);

/* ---- The stream ---- */

struct stream {
    const struct stream_options *options;
    struct sample_sink *const *sinks;
    uint32_t sink_count;
    struct sink_thread *sink_thread; /* NULL: sinks are given all here */
    struct perf_data *data;
    struct resolver *resolver;
    struct record_queue *queue;
    struct reader *reader;
    struct held *waits; /* samples of threads, until they are back */
    struct held *virtual_waits;
    struct held *late_chains;  /* and until their user part is there */
    struct perf_sample *whole; /* room for a sample whose stack is read now; NULL: none yet */
    uint64_t *chain;           /* the one that was joined last */
    size_t chain_room;
    struct marks *marks;
    bool has_timeline; /* some event of the recording is one */
    uint64_t time;     /* of the latest record or sample */
    struct recording_facts facts;
    bool live;
    bool wants_codes;
    bool reads_codes; /* some sink does so at its end */
    uint64_t arrived; /* when the latest sample did, of a pipe */
    uint64_t next_turn;
    uint64_t next_rest; /* when what nobody asked for goes */
};

/* Says that there is no memory; -ENOMEM. */
int stream_no_memory(const struct stream *stream);

/* From here on it is that process' data that is read; 0: of no one process. */
void stream_work_on(const struct stream *stream, uint32_t pid);
void stream_work_on_record(const struct stream *stream, const struct perf_record *record);

/* ---- stream_deliver.c. All: 0 or a negative errno after a message. ---- */

/* What was queued, in the order of time: noticed, kept for later, or resolved and given. */
int stream_deliver(struct stream *stream, const struct queued_record *queued);

/* A record that is no sample. */
int stream_deliver_record(struct stream *stream, const struct perf_record *record);

/* What waits still when the recording ends: threads, and chains for their user part. */
int stream_deliver_rest(struct stream *stream);

/* From now on the sinks are given all here. */
int stream_join_sinks(struct stream *stream);

/* A taker of code, for resolver_codes: gives it to the sinks. `context` is the stream. */
int stream_give_code(void *context, const struct resolved_code *code);

/* Marks that have not ended, and how full code caches were. Dumps are read by then. */
int stream_end_timeline(struct stream *stream);

#endif
