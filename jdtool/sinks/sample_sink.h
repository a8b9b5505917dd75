/*
 * Where resolved samples go: perf.data with its images, the scorecard, each export. A sink has
 * begin, sample, end; what it needs is in the sample, and it asks nobody.
 *
 *     begin            the recording is known: clock, machine, command line; its events
 *     record, sample   in the recording's order; samples by time where a sink says so
 *     end              everything was told; the sink finishes its file
 *     abort            instead of end: frees everything and leaves no file
 *
 * A sink that fails says so once (error_message) and returns a negative errno; the stream then
 * ends, all sinks are aborted, and the tool ends with 1.
 */
#ifndef JD_TOOL_SAMPLE_SINK_H
#define JD_TOOL_SAMPLE_SINK_H

#include "jdtool/resolve/frame.h"

struct perf_record;
struct perf_sample;

/* One event of the recording, as its users name it. */
struct recorded_event {
    uint32_t id;        /* from 0 */
    const char *name;   /* "cpu-clock", "cycles", "sched:sched_switch" */
    const char *unit;   /* of weights: "nanoseconds", "bytes", "count" */
    uint64_t frequency; /* Hz, 0: sampled by period */
    uint64_t period;    /* 0: sampled by frequency */
};

/* What is known of the recording as a whole. Strings live as long as it and may be NULL. */
struct recording {
    const char *path; /* "-" for a pipe */
    const char *hostname, *os_release, *arch, *cpu, *command_line, *perf_version;
    uint32_t cpu_count;
    const struct recorded_event *events;
    uint32_t event_count;
    /* Wall-clock time (ns since 1970) is time + wall_offset; has_wall: from HEADER_CLOCK_DATA. */
    int64_t wall_offset;
    bool has_wall;
    uint64_t from, until; /* of the samples; until is known at the end only */
};

struct resolved_thread {
    uint32_t pid, tid;        /* as perf sees them */
    const char *comm;         /* the thread's name at that time; "" unknown */
    const char *process_name; /* the main thread's; "" unknown */
    const struct module *jvm; /* the process' generated code, NULL: none */
};

struct resolved_sample {
    const struct recorded_event *event;
    uint64_t time;   /* the recording's clock, ns */
    uint64_t weight; /* in the event's unit: the period, or what a rule for the event made of it */
    uint32_t cpu;
    struct resolved_thread thread;
    const struct resolved_frame *frames; /* innermost first; lives until `sample` returns */
    uint32_t frame_count;                /* 0: nothing is known but thread and time */
    enum stack_end end;
    /* For the perf.data sink alone: the sample as it was recorded. */
    const struct perf_sample *recorded;
};

struct sample_sink;

struct sample_sink_ops {
    int (*begin)(struct sample_sink *sink, const struct recording *recording);
    /* A record that is no sample, as it came. NULL: not wanted. */
    int (*record)(struct sample_sink *sink, const struct perf_record *record);
    int (*sample)(struct sample_sink *sink, const struct resolved_sample *sample);
    /* Frees the sink, on failure too. */
    int (*end)(struct sample_sink *sink);
    void (*abort)(struct sample_sink *sink);
};

/* What every sink begins with. */
struct sample_sink {
    const struct sample_sink_ops *ops;
};

#endif
