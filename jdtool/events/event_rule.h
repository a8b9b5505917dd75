/*
 * Events that are more than a clock's ticks: what a sample of one weighs, and what it is about. An
 * allocation weighs the bytes it stands for, a wait its nanoseconds.
 */
#ifndef JD_TOOL_EVENT_RULE_H
#define JD_TOOL_EVENT_RULE_H

#include "jdtool/objects/objects.h"
#include "jdtool/perf/perf_data.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum event_kind {
    EVENT_SAMPLED, /* by a clock, a counter, or a tracepoint we know nothing of */
    EVENT_ALLOC,   /* format/event_probe.h; so the next two */
    EVENT_LOCK,
    EVENT_EXCEPTION,
    EVENT_OFF_CPU,  /* sched:sched_switch in a recording that tells when threads come back: blocked
                     */
    EVENT_RUNNABLE, /* a second one in it: preempted. And what is left of a wait after its end */
    EVENT_WOKEN,    /* sched:sched_wakeup in one, which is that end; none of the profile's */
    EVENT_WAKER,    /* sched:sched_waking in one: who wakes a thread */
    EVENT_DEOPT,
    EVENT_UNMOUNT,  /* a virtual thread gives its carrier up, */
    EVENT_MOUNT,    /* and has one again: its samples end the wait, and are none of the profile's */
    EVENT_TIMELINE, /* its samples become marks (marks.h), and are none of the profile's */
};

struct event_rule {
    enum event_kind kind;
    const char *name; /* what people call it; NULL: as perf does */
    const char *unit; /* of its weights; NULL: as of any event */
};

/* The rule for an event by its name, which may be NULL; has_switches: the recording has
 * PERF_RECORD_SWITCH. */
struct event_rule event_rule_of(const char *name, bool has_switches);

/* That for the second of two events that would be EVENT_OFF_CPU. */
extern const struct event_rule event_runnable;

#define EVENT_SUBJECT_MAX 512

/* What one sample tells. */
struct event_facts {
    enum event_kind kind;
    uint64_t weight;
    int32_t request;      /* of a deoptimisation */
    uint64_t virtual_id;  /* of an unmount or mount; else 0: that of who ran */
    uint64_t told_within; /* of a mount: ns of the wait in which the unmount was being told */
    uint64_t left_out;    /* events like it that the agent did not tell of */
    char subject[EVENT_SUBJECT_MAX]; /* the class, as Java writes it; "": none is told */
};

/*
 * Reads a sample of an event of that kind. Where its raw data are not what they should be it is a
 * sample of weight 1 without a subject. Of an off-CPU sample the weight is still to come, and of an
 * unmount it is how many it stands for.
 */
void event_facts_read(enum event_kind kind, const struct perf_sample *sample,
                      struct event_facts *facts);

/* A class as Java writes it of its signature: "[[Ljava/lang/String;" as "java.lang.String[][]".
 * What is no signature stays as it is, control characters apart. */
void event_class_name(const char *signature, size_t size, char out[EVENT_SUBJECT_MAX]);

/* Why a thread gave its processor up, by a sample of sched:sched_switch. */
enum switch_reason {
    SWITCH_BLOCKED,   /* it waits for something */
    SWITCH_PREEMPTED, /* for a processor: another thread has got it */
    SWITCH_ENDED,     /* it will not come back */
};
enum switch_reason event_switch_reason(const struct perf_sample *sample);

/* The thread that a sample of sched:sched_wakeup is about, by its number in the first PID
 * namespace; 0: not known. */
uint32_t event_woken_thread(const struct perf_sample *sample);

/* ---- Deoptimisations ---- */

/* Why compiled code was given up, in words. */

#define DEOPT_REASONS 32
#define DEOPT_FILES   8 /* libjvm.so of so many JDKs; others are asked each time */

/* Zero one to start; nothing is to be freed. */
struct deopt_names {
    struct deopt_file {
        uint32_t object;               /* its id */
        char names[DEOPT_REASONS][48]; /* the longest has 33 letters */
        bool asked[DEOPT_REASONS];
    } files[DEOPT_FILES];
    uint32_t count;
};

/*
 * "[unstable_if, reinterpret]" of an uncommon trap's request (struct deopt_probe_raw). The reasons'
 * numbers are another JDK's others: their names are read out of the libjvm.so that was probed, and
 * where it cannot be read (or NULL) it is "[reason 23, reinterpret]". A request above 0 is the
 * number of a constant whose class was not loaded (Deoptimization::trap_request_reason).
 */
void deopt_name(struct deopt_names *names, struct object *libjvm, int32_t request, char *out,
                size_t size);

#endif
