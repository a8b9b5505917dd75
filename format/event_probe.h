/*
 * Events of the JVM as perf samples: the agent's JVMTI callback calls an empty function that it
 * exports, jdperf puts a uprobe on that function, and perf takes a sample there with the thread's
 * whole stack. What the function is given comes with the sample, by the definition that jdperf
 * writes; here is what both sides and the reader have to agree on.
 *
 * The functions begin with a nop of five bytes (of aarch64 with one of four): the kernel emulates
 * that, while it single-steps most other instructions, at ten times the cost. They are protected,
 * so that calls do not go through a linkage table, where a search by name would find a second one.
 */
#ifndef JD_FORMAT_EVENT_PROBE_H
#define JD_FORMAT_EVENT_PROBE_H

#include <stdint.h>

/* The group of a recording's probes: this and the recorder's pid. */
#define EVENT_PROBE_GROUP "jdagent_"

/* The events of a group. */
#define EVENT_PROBE_ALLOC     "alloc"
#define EVENT_PROBE_LOCK      "lock"
#define EVENT_PROBE_EXCEPTION "exception"
#define EVENT_PROBE_DEOPT     "deopt"
#define EVENT_PROBE_UNMOUNT   "unmount"
#define EVENT_PROBE_MOUNT     "mount"
#define EVENT_PROBE_TIMELINE  "timeline"

/* What the agent exports: void f(uint64_t value, uint64_t base, uint32_t scale, const char *name);
 * of allocations with a further argument, uint32_t far. */
#define EVENT_PROBE_ALLOC_FUNCTION   "jdagent_event_alloc"
#define EVENT_PROBE_LOCK_FUNCTION    "jdagent_event_lock"
#define EVENT_PROBE_UNMOUNT_FUNCTION "jdagent_event_unmount"
#define EVENT_PROBE_MOUNT_FUNCTION   "jdagent_event_mount"

/*
 * perf copies stacks of one size, however much of it there is, and most stacks of allocations are
 * shallow. So the agent says whether the thread's is `far` from its root, and perf has the event
 * twice, for the one and for the other, with copies of these sizes. The reader takes two such
 * tracepoints in a row for one event.
 */
#define EVENT_STACK_NEAR 8192
#define EVENT_STACK_FAR  32768

/* What libjvm.so exports: Throwable.fillInStackTrace comes here, whoever throws. */
#define EVENT_PROBE_EXCEPTION_FUNCTION "JVM_FillInStackTrace"

/* And what only its symbol table has: where compiled code comes to that met what it was not
 * compiled for, in the thread that ran it. Deoptimization::uncommon_trap_inner(JavaThread *, int).
 */
#define EVENT_PROBE_DEOPT_FUNCTION "_ZN14Deoptimization19uncommon_trap_innerEP10JavaThreadi"

/* What a probe fetches. */
enum probe_arguments {
    PROBE_NOTHING,
    PROBE_EVENT, /* of the agent's functions */
    PROBE_ALLOC, /* and whether the stack is far from its root */
    PROBE_DEOPT,
};

/*
 * A sample's raw data (PERF_SAMPLE_RAW): the kernel's head of a trace entry and of a uprobe's, then
 * the arguments in the order of the definition, without padding. Little-endian as the machines are.
 * An exception's has none behind `ip`; an allocation's ends with `far`, for perf's filter alone.
 */
struct event_probe_raw {
    uint16_t type; /* of the tracepoint */
    uint8_t flags;
    uint8_t preempt_count;
    int32_t pid;
    uint64_t ip;
    uint64_t value; /* alloc: the object's bytes; lock: nanoseconds waited; unmount and mount: the
                       virtual thread's id */
    uint64_t base;  /* alloc: mean bytes between samples; lock: what is always told, in ns; unmount:
                       how many before it were left out for want of room; mount: ns that it took to
                       tell of the unmount, which are no wait */
    uint32_t scale; /* the agent tells one of so many, when there are too many */
    uint32_t name;  /* __data_loc: where the string stands, from `type` on, and its size << 16 */
};
_Static_assert(sizeof(struct event_probe_raw) == 40, "event_probe_raw");

/* The same of a deoptimisation: ~request has the action in its lowest three bits, the reason in the
 * next five; where request is not below 0, a class was not loaded
 * (Deoptimization::trap_request_action and _reason). */
struct deopt_probe_raw {
    uint16_t type;
    uint8_t flags;
    uint8_t preempt_count;
    int32_t pid;
    uint64_t ip;
    int32_t request;
} __attribute__((packed));
_Static_assert(sizeof(struct deopt_probe_raw) == 20, "deopt_probe_raw");

/*
 * What the JVM itself does (jdperf record --timeline). All of libjvm's places are probes of one
 * event, and tell which of them it was: an event of perf's costs a descriptor for each thread and
 * processor, and there are a dozen places.
 */
enum timeline_probe {
    TIMELINE_GC_BEGIN = 1, /* number: a full one was asked for */
    TIMELINE_GC_END,
    TIMELINE_GC_MEMORY,       /* text 0: the collector that works on a pool of memory */
    TIMELINE_OPERATION_BEGIN, /* text 0: its name; number: 0 at a safepoint */
    TIMELINE_OPERATION_END,
    TIMELINE_SAFEPOINT_BEGIN, /* threads are asked to stop */
    TIMELINE_SAFEPOINT_END,   /* they go on */
    TIMELINE_COMPILE_BEGIN,   /* texts: compiler, class, method, signature */
    TIMELINE_COMPILE_END,     /* number: it succeeded */
    TIMELINE_THREAD_START,    /* text 0: its name; number: Java's id */
    TIMELINE_THREAD_STOP,
    TIMELINE_PARK_BEGIN,
    TIMELINE_PARK_END,
    TIMELINE_PROBES,
};

#define TIMELINE_TEXTS 4

/* Its raw data. A text is not ended where it ends: it is as long as `sizes` says, at most. */
struct timeline_probe_raw {
    uint16_t type;
    uint8_t flags;
    uint8_t preempt_count;
    int32_t pid;
    uint64_t ip;
    uint32_t what; /* enum timeline_probe */
    uint32_t number;
    uint32_t sizes[TIMELINE_TEXTS];
    uint32_t texts[TIMELINE_TEXTS]; /* __data_loc, as event_probe_raw's name */
};
_Static_assert(sizeof(struct timeline_probe_raw) == 56, "timeline_probe_raw");

#endif
