/*
 * Where resolved samples go: perf.data with its images, the scorecard, each export. A sink has
 * begin, sample, end; what it needs is in the sample, and it asks nobody.
 *
 *     begin            the recording is known: its events and clock; of a pipe not yet all else
 *     before           the next sample is of that time: only for who can let go of earlier ones
 *     record, sample   by time, as far as memory allows (what came too late is counted); a sample
 *                      whose user part the kernel recorded late comes behind younger ones of other
 *                      threads
 *     mark             what the JVM itself did, when it is over: not in the order of beginnings
 *     code             a piece of code a dump tells of, touched or not; only for who asks for it
 *     end              everything was told; the sink finishes its file
 *     abort            instead of end: frees everything and leaves no file
 *
 * A sink that fails says so once (error_message) and returns a negative errno; the stream then
 * ends, all sinks are aborted, and the tool ends with 1.
 */
#ifndef JD_TOOL_SAMPLE_SINK_H
#define JD_TOOL_SAMPLE_SINK_H

#include "jdtool/events/mark.h"
#include "jdtool/resolve/frame.h"
#include "jdtool/resolve/stack_table.h"

struct perf_data;
struct perf_record;
struct perf_sample;

/* One event of the recording, as its users name it. */
struct recorded_event {
    uint32_t id;        /* from 0 */
    const char *name;   /* "cpu-clock", "cycles", "sched:sched_switch"; as the unit never NULL */
    const char *unit;   /* of weights: "nanoseconds", "bytes", "count" */
    uint64_t frequency; /* Hz, 0: sampled by period */
    uint64_t period;    /* 0: sampled by frequency */
    bool is_processor_time; /* weights are all of the threads' time on processors, the kernel's too
                             */
};

static inline bool event_is_time(const struct recorded_event *event)
{
    return strcmp(event->unit, "nanoseconds") == 0;
}

static inline bool event_is_bytes(const struct recorded_event *event)
{
    return strcmp(event->unit, "bytes") == 0;
}

/* Its stacks end in the kernel's scheduler, whatever the thread waited for, or woke whom for. */
static inline bool event_is_of_scheduler(const struct recorded_event *event)
{
    return strcmp(event->name, "off-cpu") == 0 || strcmp(event->name, "runnable") == 0 ||
           strcmp(event->name, "waker") == 0;
}

/* One dump of a JVM. A process may have had several, one after the other. */
struct recorded_jvm {
    uint32_t pid;
    uint32_t number;             /* among the process' dumps, from 0 */
    const char *recorded;        /* the dump's path as the JVM sees it; NULL: --dump told of it */
    const char *dump;            /* where it was opened; NULL: not found */
    const char *problem;         /* why it is of no use; NULL: it is used */
    const char *warning;         /* it is used and damaged; NULL: it is sound */
    uint64_t from;               /* when it was mapped */
    const struct module *module; /* NULL: of no use */
    struct code_index *index;    /* NULL: of no use */
    const struct method_names *names; /* NULL: none */
};

/* What was counted; complete at the end. */
struct recording_counts {
    uint64_t records, samples;
    uint64_t lost_records;     /* by the kernel's count */
    uint64_t lost_samples;     /* by the kernel's count, those that a filter dropped left out */
    uint64_t throttled;        /* times that the kernel held an event back */
    uint64_t filtered_samples; /* dropped by a BPF filter, as wanted */
    uint64_t malformed;        /* samples that are none, and reach no sink */
    uint64_t let_go_early;     /* samples of a living JVM that could not wait for its dump */
    uint64_t late;             /* records that came later than order could be kept for */
    uint64_t frames_cut;       /* left out of stacks that were too deep (STACK_CUT) */
    uint64_t inlines_cut;      /* addresses with too many inlined methods: the outermost are gone */
    uint64_t mappings_cut;     /* mappings and processes beyond the limits */
    uint64_t marks_lost;       /* whose beginning or end was lost, or for which was no room */
    uint64_t waits_lost;       /* of threads whose return was lost, or for which was no room */
    uint64_t walked;           /* samples whose stacks were walked in the kernel */
    uint64_t refuted;          /* of these, where a frame was not as the walk had assumed */
    /* Stacks that were both walked and copied; of these, where the copy ended first, and where the
     * two differ. */
    uint64_t compared, compared_short, compared_differing;
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
    uint64_t from, until;                   /* of the samples; until is known at the end only */
    bool has_chains;                        /* samples have call chains */
    bool has_copies;                        /* samples have copies of the stack */
    bool unwound;                           /* and these are unwound here */
    const struct recorded_jvm *const *jvms; /* grows; so does the count */
    uint32_t jvm_count;
    struct recording_counts counts;
    const char *verdict;    /* its scorecard's, in words, at the end; NULL or "": there is none */
    struct perf_data *data; /* for the perf.data sink alone */
};

/* The tid of what is no thread of the kernel's has this bit, which is beyond those of threads
 * (PID_MAX_LIMIT is 2^22). */
#define RESOLVED_OWN_TID (UINT32_C(1) << 31)

struct resolved_thread {
    /* As perf sees them; of a virtual thread's own waits, where no thread carries it,
     * RESOLVED_OWN_TID and the thread's id, as where samples are grouped by virtual threads. */
    uint32_t pid, tid;
    const char *comm; /* its name at that time, the whole one where it is known; "" unknown */
    const char *process_name; /* the main thread's; "" unknown */
    const char *program;      /* what its JVM runs, main class or jar; NULL: not known */
    const struct module *jvm; /* the process' generated code, NULL: none */
    bool is_jvm;              /* with a dump or without */
    /* What the JVM's journal of threads tells of it (format/threads.h). */
    bool has_journal;
    bool is_unknown;          /* the journal lacks what this thread did then */
    uint64_t virtual_id;      /* of the virtual thread that it carried; 0: none */
    const char *virtual_name; /* "": it has none; NULL: there is no virtual thread */
    const char *labels;       /* that the program had set, lines of "key=value"; NULL: none */
};

struct resolved_sample {
    const struct recorded_event *event;
    uint64_t time;   /* the recording's clock, ns */
    uint64_t weight; /* in the event's unit: the period, or what a rule for the event made of it */
    uint64_t left_out; /* events like it that a limit left out; its weight stands for them, too */
    uint32_t cpu;
    struct resolved_thread thread;
    const struct stack_table *stacks; /* may be NULL where node is 0 */
    uint32_t node;                    /* 0: nothing is known but thread and time */
    enum stack_end end;
    /* A user part that the kernel recorded late (--call-graph fp,defer) and that belongs to no
     * sample that is here: no sample of its own. */
    bool is_late_part;
    /* Generated code that the sample touches beside its stack: that of branch records. */
    const struct resolved_code *const *branches;
    uint32_t branch_count;
    /*
     * For the perf.data sink, and for who asks what mode the processor was in: the sample as it
     * was recorded. Each address of its chain (no marker, no garbage) has its node here in the same
     * order. Where `unwound` is set, this holds for the kernel's part of the chain only, and the
     * other nodes are the user's part. Its time and period are this sample's time and weight.
     */
    const struct perf_sample *recorded;
};

struct sample_sink;

struct sample_sink_ops {
    int (*begin)(struct sample_sink *sink, const struct recording *recording);
    /*
     * A record that is no sample, as it came. superseded: a JVM's own mapping of memory for code or
     * of its dump, which would hide what the sink maps itself, or have the dump injected again.
     * What packs the recording or describes it as a whole (rounds, compressed records, attributes
     * and features of a pipe) does not come. NULL: not wanted.
     */
    int (*record)(struct sample_sink *sink, const struct perf_record *record, bool superseded);
    /*
     * The next sample has that time, as a rule. Sets *holds where the sink still needs what samples
     * pointed to until now; where no sink does, what of it is dead is freed, and numbers mean
     * something else. NULL: it needs all until its end.
     */
    int (*before)(struct sample_sink *sink, uint64_t time, bool *holds);
    /* Before the first sample that could touch it. NULL: that of samples is enough. */
    int (*code)(struct sample_sink *sink, const struct resolved_code *code);
    int (*sample)(struct sample_sink *sink, const struct resolved_sample *sample);
    int (*mark)(struct sample_sink *sink, const struct resolved_mark *mark); /* NULL: not wanted */
    /* Frees the sink, on failure too. */
    int (*end)(struct sample_sink *sink);
    void (*abort)(struct sample_sink *sink);
};

/* What every sink begins with. */
struct sample_sink {
    const struct sample_sink_ops *ops;
    bool reads_code; /* at its end it reads what the dumps have of code that samples touch */
};

#endif
