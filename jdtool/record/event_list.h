/*
 * What a recording tells beside its samples of the clock: allocations, contended monitors,
 * exceptions, waits, what the JVM itself does. Each is an event of perf's with stacks of its own;
 * what this machine or user may not have is named and left out, and the rest is recorded.
 */
#ifndef JD_TOOL_LIVE_EVENT_LIST_H
#define JD_TOOL_LIVE_EVENT_LIST_H

#include "jdtool/record/perf_run.h"
#include "jdtool/record/probes.h"
#include "jdtool/record/record.h"
#include "jdtool/sampler/sampler.h"

struct event_list {
    bool alloc, locks, exceptions, off_cpu, wakers; /* that are recorded */
    bool timeline, deopts;                          /* the two of --timeline */
    bool parks;                                     /* in the timeline, as was asked for */
    bool virtual_waits;                             /* with off_cpu and who ran */
    bool log;                                       /* the JVM's own log in the place of timeline */
    char group[PROBES_GROUP_MAX];                   /* of the probes */
    int held[8];                                    /* an event of ours on each, see probes_hold */
    unsigned held_count;
};

/* Which of those that are asked for may be had here. Says of each other one why not. */
void event_list_choose(struct event_list *events, const struct record_options *options);

bool event_list_is_empty(const struct event_list *events);

/* Those of enum left_out that were asked for and are not among them. */
unsigned event_list_left_out(const struct event_list *events, const struct record_options *options);

/* What the agent is to be told for them: ",alloc=N,locks=Nns,threads=on", or "". */
void event_list_agent_options(const struct event_list *events, const struct record_options *options,
                              char *text, size_t size);

/* Where the files are that probes go into, as seen below the directory root (-1: ours). */
struct event_files {
    int root;
    int agent_root; /* the agent's own */
    const char *agent;
    const char *libjvm; /* NULL: not found */
};

/* Defines the probes, which the guardian removes. What fails is told and left out. */
void event_list_define(struct event_list *events, const struct event_files *files);

/* The events as they follow the one that is sampled. stack_size 0: by frame pointers. by_reach:
 * where the event tells how far its stack reaches, by that instead. Returns how many. */
uint32_t event_list_get(const struct event_list *events, unsigned stack_size, bool by_reach,
                        struct sampler_event list[SAMPLER_EVENTS_MAX]);

/* The same as arguments of perf record. */
void event_list_arguments(const struct event_list *events, struct perf_run *perf,
                          unsigned stack_size, bool by_reach);

/* Somebody else has opened the events, who is the last to close them then, and waits for it. */
void event_list_let_go(struct event_list *events);

/*
 * The event as perf takes it when the others are not to get its rate: "cycles/freq=99/u". For the
 * caller to free; NULL: no memory.
 */
char *event_with_rate(const char *event, unsigned frequency, const char *period);

#endif
