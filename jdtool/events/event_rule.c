#include "jdtool/events/event_rule.h"

#include "format/event_probe.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Where the kernel may not be sampled perf asks for user space alone, and puts a "u" behind the
 * event's name, without a colon where there is one already (evsel__fallback). */
static bool is_event(const char *name, const char *event)
{
    size_t size = strlen(event);
    return strncmp(name, event, size) == 0 &&
           (!name[size] || strcmp(name + size, "u") == 0 || strcmp(name + size, ":u") == 0);
}

const struct event_rule event_runnable = {EVENT_RUNNABLE, "runnable", "nanoseconds"};

struct event_rule event_rule_of(const char *name, bool has_switches)
{
    static const struct {
        const char *name;
        struct event_rule rule;
    } probes[] = {
        {EVENT_PROBE_ALLOC, {EVENT_ALLOC, "alloc", "bytes"}},
        {EVENT_PROBE_LOCK, {EVENT_LOCK, "lock", "nanoseconds"}},
        {EVENT_PROBE_EXCEPTION, {EVENT_EXCEPTION, "exception", "count"}},
        {EVENT_PROBE_DEOPT, {EVENT_DEOPT, "deopt", "count"}},
        {EVENT_PROBE_UNMOUNT, {EVENT_UNMOUNT, "virtual-wait", "nanoseconds"}},
        {EVENT_PROBE_MOUNT, {EVENT_MOUNT, "mount", "count"}},
        {EVENT_PROBE_TIMELINE, {EVENT_TIMELINE, "timeline", "count"}},
    };
    const struct event_rule sampled = {EVENT_SAMPLED, NULL, NULL};
    if (!name) {
        return sampled;
    }
    if (strcmp(name, "sched:sched_switch") == 0 && has_switches) {
        return (struct event_rule){EVENT_OFF_CPU, "off-cpu", "nanoseconds"};
    }
    if (strcmp(name, "sched:sched_wakeup") == 0 && has_switches) {
        return (struct event_rule){EVENT_WOKEN, "woken", "count"};
    }
    if (strcmp(name, "sched:sched_waking") == 0 && has_switches) {
        return (struct event_rule){EVENT_WAKER, "waker", "count"};
    }
    const char *event = strchr(name, ':');
    if (!event || strncmp(name, EVENT_PROBE_GROUP, sizeof EVENT_PROBE_GROUP - 1) != 0) {
        return sampled;
    }
    for (size_t i = 0; i < sizeof probes / sizeof *probes; i++) {
        if (is_event(event + 1, probes[i].name)) {
            return probes[i].rule;
        }
    }
    return sampled;
}

/* ---- The class ---- */

static const char *primitive(char letter)
{
    switch (letter) {
    case 'Z':
        return "boolean";
    case 'B':
        return "byte";
    case 'C':
        return "char";
    case 'S':
        return "short";
    case 'I':
        return "int";
    case 'J':
        return "long";
    case 'F':
        return "float";
    case 'D':
        return "double";
    default:
        return NULL;
    }
}

void event_class_name(const char *signature, size_t size, char out[EVENT_SUBJECT_MAX])
{
    size_t arrays = 0;
    while (arrays < size && signature[arrays] == '[') {
        arrays++;
    }
    const char *name = signature + arrays;
    size_t length = size - arrays;
    const char *word = length == 1 ? primitive(*name) : NULL;
    bool is_class = false;
    if (word) {
        name = word;
        length = strlen(word);
    } else if (length > 2 && *name == 'L' && name[length - 1] == ';') {
        name++;
        length -= 2;
        is_class = true;
    }
    size_t most = EVENT_SUBJECT_MAX - 1;
    size_t at = length < most ? length : most;
    for (size_t i = 0; i < at; i++) {
        out[i] = name[i];
        if (name[i] == '.' && is_class) {
            out[i] = '/'; /* of a hidden class: "pkg/Main$$Lambda.0x0000000078" */
        } else if (name[i] == '/' &&
                   !(i + 1 < length && name[i + 1] >= '0' && name[i + 1] <= '9')) {
            out[i] = '.'; /* but in a VM anonymous one of JDK 8 to 14, "pkg/Main$$Lambda$1/47" */
        } else if ((unsigned char)name[i] < ' ') {
            out[i] = '?';
        }
    }
    for (; arrays > 0 && at + 2 <= most; arrays--) {
        out[at++] = '[';
        out[at++] = ']';
    }
    out[at] = '\0';
}

static void read_subject(const struct perf_sample *sample, uint32_t place,
                         char out[EVENT_SUBJECT_MAX])
{
    uint32_t at = place & 0xffff;
    uint32_t size = place >> 16;
    if (at > sample->raw_size || size > sample->raw_size - at) {
        return;
    }
    const char *text = (const char *)sample->raw + at;
    event_class_name(text, strnlen(text, size), out);
}

/* ---- Weights ---- */

/*
 * HotSpot samples an allocation of s bytes with probability 1 - e^(-s/R), where R is the mean
 * distance of samples (JEP 331), so each stands for s / (1 - e^(-s/R)) bytes.
 */
static double bytes_of(uint64_t size, uint64_t mean)
{
    double s = (double)size;
    double share = mean ? -expm1(-s / (double)mean) : 1;
    return share > 0 ? s / share : (double)mean;
}

/* A wait of less than T is told with probability duration/T, and then stands for T. */
static double wait_of(uint64_t duration, uint64_t always)
{
    return (double)(duration > always ? duration : always);
}

/* The thread that is woken: the head of a trace entry, then its name. */
static void read_woken(const struct perf_sample *sample, char out[EVENT_SUBJECT_MAX])
{
    enum { HEAD = 8, COMM = 16 };
    if (sample->raw && sample->raw_size >= HEAD + COMM) {
        const char *comm = (const char *)sample->raw + HEAD;
        snprintf(out, EVENT_SUBJECT_MAX, "[wakes %.*s]", (int)strnlen(comm, COMM), comm);
    }
}

/* 0, which no request is: there is none. */
static int32_t read_request(const struct perf_sample *sample)
{
    struct deopt_probe_raw raw = {0};
    if (sample->raw && sample->raw_size >= sizeof raw) {
        memcpy(&raw, sample->raw, sizeof raw);
    }
    return raw.request;
}

void event_facts_read(enum event_kind kind, const struct perf_sample *sample,
                      struct event_facts *facts)
{
    struct event_probe_raw raw;
    facts->kind = kind;
    facts->weight = 1;
    facts->left_out = 0;
    facts->virtual_id = 0;
    facts->told_within = 0;
    facts->subject[0] = '\0';
    if (kind == EVENT_WAKER) {
        read_woken(sample, facts->subject);
    }
    facts->request = kind == EVENT_DEOPT ? read_request(sample) : 0;
    if ((kind == EVENT_EXCEPTION || kind == EVENT_DEOPT) && sample->period > 1) {
        facts->weight = sample->period; /* one of so many was kept (jdtool/sampler/limiter.h) */
        facts->left_out = sample->period - 1;
    }
    bool is_virtual = kind == EVENT_UNMOUNT || kind == EVENT_MOUNT;
    if ((kind != EVENT_ALLOC && kind != EVENT_LOCK && !is_virtual) || !sample->raw ||
        sample->raw_size < sizeof raw) {
        return;
    }
    memcpy(&raw, sample->raw, sizeof raw);
    uint32_t scale = raw.scale ? raw.scale : 1;
    if (is_virtual) {
        facts->virtual_id = raw.value;
        facts->weight = scale;
        if (kind == EVENT_MOUNT) {
            facts->told_within = raw.base;
        } else {
            facts->left_out = scale - 1 + (raw.base <= UINT32_MAX ? raw.base : 0);
        }
        return;
    }
    double each =
        kind == EVENT_ALLOC ? bytes_of(raw.value, raw.base) : wait_of(raw.value, raw.base);
    double weight = each * scale;
    facts->weight = weight < 1e18 ? (uint64_t)(weight + 0.5) : UINT64_C(1000000000000000000);
    facts->left_out = scale - 1;
    read_subject(sample, raw.name, facts->subject);
}

enum switch_reason event_switch_reason(const struct perf_sample *sample)
{
    /* The head of a trace entry, prev_comm, prev_pid, prev_prio, prev_state (a long). */
    enum { STATE_AT = 8 + 16 + 4 + 4 };
    const uint64_t dead = 0x10 | 0x20 | 0x40 | 0x80; /* and parked kernel threads */
    const uint64_t blocked = 0x1 | 0x2 | 0x4 | 0x8;  /* asleep in two ways, stopped, traced */
    uint64_t state;
    if (!sample->raw || sample->raw_size < STATE_AT + sizeof state) {
        return SWITCH_BLOCKED;
    }
    memcpy(&state, sample->raw + STATE_AT, sizeof state);
    return state & dead ? SWITCH_ENDED : state & blocked ? SWITCH_BLOCKED : SWITCH_PREEMPTED;
}

uint32_t event_woken_thread(const struct perf_sample *sample)
{
    enum { PID_AT = 8 + 16 }; /* behind the head and comm */
    uint32_t thread = 0;
    if (sample->raw && sample->raw_size >= PID_AT + sizeof thread) {
        memcpy(&thread, sample->raw + PID_AT, sizeof thread);
    }
    return thread;
}

/* ---- Deoptimisations ---- */

#define REASON_TABLE "_ZN14Deoptimization17_trap_reason_nameE"

static struct deopt_file *file_of(struct deopt_names *names, const struct object *libjvm)
{
    uint32_t i = 0;
    while (i < names->count && names->files[i].object != object_id(libjvm)) {
        i++;
    }
    if (i == DEOPT_FILES) {
        i = 0;
        names->files[0] = (struct deopt_file){0};
    }
    names->count = i == names->count ? i + 1 : names->count;
    names->files[i].object = object_id(libjvm);
    return &names->files[i];
}

/* The action's numbers have been these since JDK 8. */
void deopt_name(struct deopt_names *names, struct object *libjvm, int32_t request, char *out,
                size_t size)
{
    static const char *const actions[] = {"none", "maybe_recompile", "reinterpret",
                                          "make_not_entrant", "make_not_compilable"};
    uint32_t bits = ~(uint32_t)request;
    uint32_t action = bits & 7;
    uint32_t reason = bits >> 3 & (DEOPT_REASONS - 1);
    const char *action_name =
        action < sizeof actions / sizeof *actions ? actions[action] : "unknown";
    struct deopt_file *file = libjvm ? file_of(names, libjvm) : NULL;
    if (file && !file->asked[reason]) {
        char *name = file->names[reason];
        file->asked[reason] = true;
        if (!object_table_text(libjvm, REASON_TABLE, reason, name, sizeof file->names[reason]) ||
            strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789") != strlen(name)) {
            name[0] = '\0';
        }
    }
    if (request > 0) {
        snprintf(out, size, "[unloaded, reinterpret]");
    } else if (request == 0 || !file || !file->names[reason][0]) {
        snprintf(out, size, "[reason %u, %s]", reason, action_name);
    } else {
        snprintf(out, size, "[%s, %s]", file->names[reason], action_name);
    }
}
