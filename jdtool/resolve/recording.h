/* What a recording says of itself, for struct recording. */
#ifndef JD_TOOL_RECORDING_H
#define JD_TOOL_RECORDING_H

#include "jdtool/events/event_rule.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/resolve/sample_sink.h"

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

#endif
