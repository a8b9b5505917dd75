/*
 * A JFR file, as JDK Mission Control, the JDK's own jfr, IntelliJ and async-profiler's jfrconv read
 * it: one chunk with a header, the events, the constants that they refer to, and the metadata that
 * describes both (jfr_types.h). Ticks are nanoseconds on the recording's clock.
 *
 * A stack is the number of its innermost node, a method that of its function, a thread its own; all
 * of them + 1, because 0 is nothing.
 */
#include "jdtool/exports/export.h"
#include "jdtool/exports/jfr_types.h"
#include "jdtool/profile/thread_labels.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As async-profiler numbers them, whose reader does not look at the names. */
enum frame_type { INTERPRETED, JIT_COMPILED, INLINED, NATIVE, CPP, KERNEL, C1_COMPILED };
enum { RUNNABLE = 1 }; /* the only state of a thread that is told */

#define HEADER_SIZE 68
#define SECOND      UINT64_C(1000000000)

/* Numbers that viewers show as "N/A". */
#define UNKNOWN_SHORT UINT64_C(0x8000)
#define UNKNOWN_INT   UINT64_C(0x80000000)
#define UNKNOWN_LONG  (UINT64_C(1) << 63)

/* What a node is to an event. */
enum node_flag {
    NODE_IS_JAVA = 1, /* it, or some caller of it, is a Java method */
    NODE_IS_USED = 2, /* its stack is told */
};

struct jfr {
    const struct profile *profile;
    struct packed_output *output;
    struct bytes events, constants, metadata;
    struct jfr_event *kinds; /* by event */
    struct jfr_labels labels;
    uint8_t *nodes;                              /* enum node_flag */
    bool *java_threads;                          /* by thread */
    struct string_table symbols, classes, texts; /* numbers + 1 */
    struct string_table subjects;                /* methods of marks, behind all functions */
    uint64_t start;                              /* ticks, of all that is told */
    uint64_t until;
};

/* ---- Names ---- */

static const char *const primitives[] = {"boolean", "Z", "byte",   "B", "char", "C",
                                         "short",   "S", "int",    "I", "long", "J",
                                         "float",   "F", "double", "D", "void", "V"};

static const char *primitive_of(const char *name, size_t size)
{
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i += 2) {
        if (strlen(primitives[i]) == size && strncmp(primitives[i], name, size) == 0) {
            return primitives[i + 1];
        }
    }
    return NULL;
}

/* A class as it stands in a file: "java/util/ArrayList". In Java's spelling a hidden one has its
 * address behind a slash, and behind '+' here, as in the JDK's recordings. */
static void put_class_name(struct bytes *out, const char *name, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool is_hidden = size - i > 3 && strncmp(name + i, "/0x", 3) == 0;
        char letter = name[i];
        bytes_u8(out, (uint8_t)(is_hidden       ? '+'
                                : letter == '.' ? '/'
                                : letter == ';' ? ':'
                                                : letter));
    }
}

/* A type as a descriptor has it: "int[]" as "[I". */
static void put_type_name(struct bytes *out, const char *name, size_t size)
{
    for (; size > 2 && strncmp(name + size - 2, "[]", 2) == 0; size -= 2) {
        bytes_u8(out, '[');
    }
    const char *primitive = primitive_of(name, size);
    if (primitive) {
        bytes_u8(out, (uint8_t)*primitive);
        return;
    }
    bytes_u8(out, 'L');
    put_class_name(out, name, size);
    bytes_u8(out, ';');
}

/* "(int,java.lang.String)" as "(ILjava/lang/String;)L;": what is returned, Java's spelling does not
 * say, and viewers take this for unknown. That of names=jvm is right as it is. */
static void put_descriptor(struct bytes *out, const char *descriptor)
{
    size_t size = descriptor ? strlen(descriptor) : 0;
    if (size < 2 || descriptor[0] != '(') {
        bytes_put(out, "()L;", 4);
        return;
    }
    if (descriptor[size - 1] != ')') {
        bytes_put(out, descriptor, size);
        return;
    }
    bytes_u8(out, '(');
    const char *at = descriptor + 1;
    const char *end = descriptor + size - 1;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *next = comma ? comma : end;
        while (at < next && *at == ' ') {
            at++;
        }
        if (at < next) {
            put_type_name(out, at, (size_t)(next - at));
        }
        at = comma ? comma + 1 : end;
    }
    bytes_put(out, ")L;", 3);
}

/* The number of what was put into `text`, which is emptied for the next. */
static uint64_t number_of(struct string_table *table, struct bytes *text)
{
    bytes_u8(text, '\0');
    uint64_t number = text->failed ? 0 : (uint64_t)string_table_add(table, (char *)text->at) + 1;
    text->size = 0;
    return number;
}

static uint64_t symbol(struct jfr *j, const char *text)
{
    return (uint64_t)string_table_add(&j->symbols, text) + 1;
}

/* The number of a class by its name in Java's spelling; an array's is its descriptor. */
static uint64_t class_of(struct jfr *j, const char *name)
{
    struct bytes text = {0};
    size_t size = strlen(name);
    if (size > 2 && strcmp(name + size - 2, "[]") == 0) {
        put_type_name(&text, name, size);
    } else {
        put_class_name(&text, name, size);
    }
    uint64_t number = number_of(&j->classes, &text);
    j->constants.failed |= text.failed;
    bytes_free(&text);
    return number;
}

/* What stands for a class where there is none: "libjvm" of "/usr/lib/jvm/…/libjvm.so". */
static uint64_t module_class(struct jfr *j, const struct module *module)
{
    char text[128];
    const char *name = module && module->kind == MODULE_KERNEL ? "kernel"
                       : module && module->kind == MODULE_JVM  ? "jvm-code"
                       : module                                ? profile_module_name(module)
                                                               : "unknown";
    const char *end = strstr(name, ".so");
    size_t size = end && end != name ? (size_t)(end - name) : strlen(name);
    size_t at = 0;
    for (size_t i = 0; i < size && at + 1 < sizeof text; i++) {
        if (name[i] != '[' && name[i] != ']') {
            text[at++] = (char)(strchr("./;", name[i]) ? '_' : name[i]);
        }
    }
    text[at] = '\0';
    return class_of(j, text);
}

/* ---- What there is to tell ---- */

static bool is_java(const struct profile_function *function)
{
    return function->method && function->method->class_name && function->method->method_name;
}

static bool location_is_java(const struct profile *profile, const struct profile_location *location)
{
    for (uint32_t i = 0; i < location->line_count; i++) {
        uint32_t function = profile->lines[location->first_line + i].function;
        if (is_java(&profile->functions[function])) {
            return true;
        }
    }
    return false;
}

static int find_java(struct jfr *j)
{
    const struct profile *profile = j->profile;
    j->nodes = calloc((size_t)profile->node_count + 1, sizeof *j->nodes);
    j->java_threads = calloc((size_t)profile->thread_count + 1, sizeof *j->java_threads);
    if (!j->nodes || !j->java_threads) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < profile->node_count; i++) {
        const struct profile_node *node = &profile->nodes[i];
        bool of_caller = node->parent != PROFILE_NONE && (j->nodes[node->parent] & NODE_IS_JAVA);
        if (of_caller || location_is_java(profile, &profile->locations[node->location])) {
            j->nodes[i] = NODE_IS_JAVA;
        }
    }
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        j->java_threads[sample->thread] |=
            sample->node != PROFILE_NONE && (j->nodes[sample->node] & NODE_IS_JAVA);
    }
    return 0;
}

static void find_span(struct jfr *j)
{
    const struct profile *profile = j->profile;
    j->start = profile->total_count ? profile->from : UINT64_MAX;
    j->until = profile->until;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        bool is_wait = j->kinds[sample->event].is_wait;
        uint64_t begun =
            is_wait && sample->weight < sample->time ? sample->time - sample->weight : sample->time;
        j->start = begun < j->start ? begun : j->start;
    }
    for (uint32_t i = 0; i < profile->mark_count; i++) {
        const struct profile_mark *mark = &profile->marks[i];
        j->start = mark->from < j->start ? mark->from : j->start;
        j->until = mark->until > j->until ? mark->until : j->until;
    }
}

/* How each of the recording's events is told: as the JDK's own, or as one of ours. Of clocks and
 * counters the first is what viewers take for the profile. */
static int choose_kinds(struct jfr *j)
{
    static const struct {
        const char *event;
        enum jfr_type type;
        const char *name;
        const char *label;
        bool is_wait;
    } known[] = {
        {"alloc", JFR_ALLOCATION_SAMPLE, "", "", false},
        {"lock", JFR_MONITOR_ENTER, "", "", true},
        {"exception", JFR_EXCEPTION_THROW, "", "", false},
        {"off-cpu", JFR_OWN, "jdagent.OffCPU", "Off-CPU", true},
        {"runnable", JFR_OWN, "jdagent.RunQueue", "Waiting for a Processor", true},
        {"virtual-wait", JFR_OWN, "jdagent.VirtualThreadWait", "Virtual Thread Wait", true},
        {"waker", JFR_OWN, "jdagent.Waker", "Waker", false},
        {"deopt", JFR_OWN, "jdagent.DeoptimizationSample", "Deoptimization Sample", false},
    };
    const struct recording *recording = j->profile->recording;
    bool has_clock = false;
    j->kinds = calloc((size_t)recording->event_count + 1, sizeof *j->kinds);
    if (!j->kinds) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        struct jfr_event *kind = &j->kinds[i];
        const char *name = event->name;
        *kind = (struct jfr_event){.type = JFR_EXECUTION_SAMPLE, .label = name};
        kind->is_time = event_is_time(event);
        kind->is_bytes = event_is_bytes(event);
        for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
            if (strcmp(known[k].event, name) == 0) {
                kind->type = known[k].type;
                kind->label = known[k].label;
                kind->is_wait = known[k].is_wait;
                snprintf(kind->name, sizeof kind->name, "%s", known[k].name);
            }
        }
        if (kind->type == JFR_EXECUTION_SAMPLE && has_clock) {
            char text[64];
            export_event_name(event, text, sizeof text);
            kind->type = JFR_OWN;
            snprintf(kind->name, sizeof kind->name, "jdagent.%s", text);
        }
        has_clock |= kind->type == JFR_EXECUTION_SAMPLE;
        if (kind->type == JFR_OWN) {
            kind->type = JFR_OWN + i;
        }
    }
    return 0;
}

/* ---- Labels ---- */

static uint32_t label_number(const struct jfr_labels *labels, const char *key)
{
    uint32_t i = 0;
    while (i < labels->count && strcmp(labels->keys[i], key) != 0) {
        i++;
    }
    return i;
}

static int note_label(void *context, const char *key, const char *value)
{
    (void)value;
    struct jfr *j = context;
    struct jfr_labels *labels = &j->labels;
    const uint32_t most = sizeof labels->keys / sizeof *labels->keys;
    uint32_t number = label_number(labels, key);
    if (number < labels->count || number == most) {
        return 0;
    }
    uint32_t text = string_table_add(&j->texts, key);
    char *field = labels->fields[number];
    int size = snprintf(field, sizeof labels->fields[0] - 4, "label_%s", key);
    for (int i = 0; i < size && field[i]; i++) {
        field[i] = (char)(isalnum((unsigned char)field[i]) ? field[i] : '_');
    }
    for (uint32_t i = 0; i < number; i++) {
        if (strcmp(labels->fields[i], field) == 0) { /* "a.b" and "a-b" */
            /* Two digits: there are 32 labels at most. */
            snprintf(field + strlen(field), 4, "_%u", number % 100U);
        }
    }
    labels->keys[number] = j->texts.list[text];
    labels->count = number + 1;
    return 0;
}

struct label_values {
    struct jfr *jfr;
    uint64_t numbers[32]; /* of texts; 0: none */
};

static int note_value(void *context, const char *key, const char *value)
{
    struct label_values *values = context;
    uint32_t number = label_number(&values->jfr->labels, key);
    if (number < values->jfr->labels.count) {
        values->numbers[number] = (uint64_t)string_table_add(&values->jfr->texts, value) + 1;
    }
    return 0;
}

static void put_labels(struct jfr *j, const struct profile_thread *thread)
{
    struct label_values values = {.jfr = j};
    (void)labels_each(thread->labels, note_value, &values);
    for (uint32_t i = 0; i < j->labels.count; i++) {
        jfr_number(&j->constants, values.numbers[i]);
    }
}

/* ---- Events ---- */

static void number(struct jfr *j, uint64_t value)
{
    jfr_number(&j->events, value);
}

static void put_float(struct jfr *j, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    for (int shift = 24; shift >= 0; shift -= 8) {
        bytes_u8(&j->events, (uint8_t)(bits >> shift));
    }
}

/* The class that an event is about, which stands in its stack as the innermost node: that leaves
 * it. 0: none. */
static uint64_t take_subject(struct jfr *j, uint32_t *node)
{
    const struct profile *profile = j->profile;
    if (*node == PROFILE_NONE) {
        return 0;
    }
    const struct profile_location *location = &profile->locations[profile->nodes[*node].location];
    const struct profile_line *line = &profile->lines[location->first_line];
    if (line->kind != RESOLVED_SUBJECT) {
        return 0;
    }
    *node = profile->nodes[*node].parent;
    return class_of(j, profile->functions[line->function].name);
}

static uint64_t stack_of(struct jfr *j, uint32_t node)
{
    if (node == PROFILE_NONE) {
        return 0;
    }
    j->nodes[node] |= NODE_IS_USED;
    return (uint64_t)node + 1;
}

static void put_thread_and_stack(struct jfr *j, uint32_t thread, uint32_t node)
{
    number(j, (uint64_t)thread + 1);
    number(j, stack_of(j, node));
}

static enum jfr_type type_of(const struct jfr *j, const struct profile_sample *sample)
{
    enum jfr_type type = j->kinds[sample->event].type;
    bool of_java = sample->node != PROFILE_NONE && (j->nodes[sample->node] & NODE_IS_JAVA);
    return type == JFR_EXECUTION_SAMPLE && !of_java ? JFR_NATIVE_METHOD_SAMPLE : type;
}

static void put_sample(struct jfr *j, const struct profile_sample *sample)
{
    const struct jfr_event *kind = &j->kinds[sample->event];
    enum jfr_type type = type_of(j, sample);
    uint32_t node = sample->node;
    bool has_subject =
        type == JFR_ALLOCATION_SAMPLE || type == JFR_MONITOR_ENTER || type == JFR_EXCEPTION_THROW;
    uint64_t subject = has_subject ? take_subject(j, &node) : 0;
    size_t begun = jfr_begin(&j->events, type);
    uint64_t lasted = kind->is_wait ? sample->weight : 0;
    number(j, lasted < sample->time ? sample->time - lasted : 0);
    if (kind->is_wait || type >= JFR_OWN) {
        number(j, sample->weight);
    }
    put_thread_and_stack(j, sample->thread, node);
    switch (type) {
    case JFR_EXECUTION_SAMPLE:
    case JFR_NATIVE_METHOD_SAMPLE:
        number(j, RUNNABLE);
        break;
    case JFR_ALLOCATION_SAMPLE:
        number(j, subject);
        number(j, sample->weight);
        break;
    case JFR_MONITOR_ENTER:
        number(j, subject);
        number(j, 0);
        number(j, 0);
        break;
    case JFR_EXCEPTION_THROW:
        jfr_text(&j->events, NULL);
        number(j, subject);
        number(j, sample->weight);
        break;
    default:
        break;
    }
    jfr_end(&j->events, begun);
}

/* The number of a method that a mark names. */
static uint64_t subject_method(struct jfr *j, const char *name)
{
    return *name ? (uint64_t)j->profile->function_count + 1 + string_table_add(&j->subjects, name)
                 : 0;
}

/* "pkg.Cls.m(int):42": *line is 42, and `name` what stands before it. 0: it has no line. */
static uint32_t cut_line(const char *subject, char *name, size_t size)
{
    const char *colon = strrchr(subject, ':');
    bool has_line = colon && isdigit((unsigned char)colon[1]);
    snprintf(name, size, "%.*s", has_line ? (int)(colon - subject) : (int)strlen(subject), subject);
    return has_line ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
}

static void put_mark(struct jfr *j, const struct profile_mark *mark, uint32_t gc)
{
    static const struct {
        enum jfr_type type;
        bool has_duration;
    } known[MARK_KINDS] = {
        [MARK_SAFEPOINT] = {JFR_SAFEPOINT, true},
        [MARK_OPERATION] = {JFR_VM_OPERATION, true},
        [MARK_GC] = {JFR_GC_PHASE_PAUSE, true},
        [MARK_COMPILE] = {JFR_COMPILATION, true},
        [MARK_DEOPT] = {JFR_DEOPTIMIZATION, false},
        [MARK_THREAD_START] = {JFR_THREAD_START, false},
        [MARK_THREAD_STOP] = {JFR_THREAD_END, false},
        [MARK_PARK] = {JFR_THREAD_PARK, true},
        [MARK_CODE_CACHE] = {JFR_CODE_CACHE, false},
    };
    char name[1024];
    uint32_t line;
    size_t begun = jfr_begin(&j->events, known[mark->kind].type);
    number(j, mark->from);
    if (known[mark->kind].has_duration) {
        number(j, mark->until - mark->from);
    }
    if (mark->kind != MARK_CODE_CACHE) {
        number(j, (uint64_t)mark->thread + 1);
    }
    switch ((enum mark_kind)mark->kind) {
    case MARK_SAFEPOINT:
        jfr_text(&j->events, mark->text);
        number(j, mark->number);
        break;
    case MARK_OPERATION:
        jfr_text(&j->events, mark->text);
        bytes_u8(&j->events, mark->number == 0);
        break;
    case MARK_GC:
        number(j, gc);
        snprintf(name, sizeof name, "%s%s", mark->text[0] ? mark->text : "GC Pause",
                 mark->number ? " (full)" : "");
        jfr_text(&j->events, name);
        break;
    case MARK_COMPILE:
        jfr_text(&j->events, mark->text);
        number(j, subject_method(j, mark->subject));
        number(j, strcmp(mark->text, "C2") == 0 ? 4 : UNKNOWN_SHORT);
        bytes_u8(&j->events, mark->number == 0);
        break;
    case MARK_DEOPT:
        line = cut_line(mark->subject, name, sizeof name);
        number(j, subject_method(j, name));
        number(j, line ? line : UNKNOWN_INT);
        number(j, UNKNOWN_INT);
        jfr_text(&j->events, mark->text);
        break;
    case MARK_THREAD_START:
        number(j, 0); /* its stack, and below its parent */
        number(j, (uint64_t)mark->thread + 1);
        number(j, 0);
        break;
    case MARK_THREAD_STOP:
        number(j, (uint64_t)mark->thread + 1);
        break;
    case MARK_PARK:
        for (int i = 0; i < 5; i++) { /* stack, class, timeout, until, address */
            number(j, 0);
        }
        break;
    case MARK_CODE_CACHE:
        number(j, mark->number);
        break;
    default:
        break;
    }
    jfr_end(&j->events, begun);
}

static void put_marks(struct jfr *j)
{
    uint32_t collections = 0;
    for (uint32_t i = 0; i < j->profile->mark_count; i++) {
        collections += j->profile->marks[i].kind == MARK_GC;
        put_mark(j, &j->profile->marks[i], collections);
    }
}

/* ---- What viewers show of the recording as a whole ---- */

static void put_setting(struct jfr *j, enum jfr_type type, const char *name, const char *value)
{
    size_t begun = jfr_begin(&j->events, JFR_ACTIVE_SETTING);
    number(j, j->start);
    number(j, type);
    jfr_text(&j->events, name);
    jfr_text(&j->events, value);
    jfr_end(&j->events, begun);
}

static void put_settings(struct jfr *j)
{
    const struct recording *recording = j->profile->recording;
    for (uint32_t i = 0; i < recording->event_count; i++) {
        const struct recorded_event *event = &recording->events[i];
        uint64_t period = export_event_period(event);
        char text[48];
        put_setting(j, j->kinds[i].type, "enabled", "true");
        put_setting(j, j->kinds[i].type, "event", event->name);
        if (j->kinds[i].type == JFR_EXECUTION_SAMPLE && period && j->kinds[i].is_time) {
            snprintf(text, sizeof text, "%" PRIu64 " ns", period);
            put_setting(j, JFR_EXECUTION_SAMPLE, "period", text);
        }
    }
}

static void put_machine(struct jfr *j)
{
    const struct recording *recording = j->profile->recording;
    size_t begun = jfr_begin(&j->events, JFR_OS_INFORMATION);
    char text[256];
    number(j, j->start);
    snprintf(text, sizeof text, "Linux %s", recording->os_release ? recording->os_release : "");
    jfr_text(&j->events, text);
    jfr_end(&j->events, begun);
    begun = jfr_begin(&j->events, JFR_CPU_INFORMATION);
    number(j, j->start);
    jfr_text(&j->events, recording->arch);
    jfr_text(&j->events, recording->cpu);
    number(j, UNKNOWN_INT);
    number(j, UNKNOWN_INT);
    number(j, recording->cpu_count ? recording->cpu_count : UNKNOWN_INT);
    jfr_end(&j->events, begun);
    begun = jfr_begin(&j->events, JFR_RECORDING);
    number(j, j->start);
    jfr_text(&j->events, recording->command_line);
    jfr_text(&j->events, recording->hostname);
    jfr_text(&j->events, recording->perf_version);
    jfr_text(&j->events, recording->verdict);
    jfr_end(&j->events, begun);
    begun = jfr_begin(&j->events, JFR_ACTIVE_RECORDING);
    number(j, j->start);
    number(j, j->until - j->start);
    number(j, 1);
    jfr_text(&j->events, "jdagent");
    jfr_text(&j->events, NULL);
    number(j, UNKNOWN_LONG);
    number(j, UNKNOWN_LONG);
    number(j, export_wall_time(j->profile, j->start) / 1000000);
    number(j, (j->until - j->start) / 1000000);
    jfr_end(&j->events, begun);
}

/* Of each JVM what is known of it, once. */
static void put_jvms(struct jfr *j)
{
    const struct profile *profile = j->profile;
    uint32_t told = 0; /* the pid of the one before: modules of a process are mostly in a row */
    for (uint32_t i = 0; i < profile->module_count; i++) {
        const struct module *module = profile->modules[i];
        if (!module || module->kind != MODULE_JVM || module->pid == told) {
            continue;
        }
        told = module->pid;
        size_t begun = jfr_begin(&j->events, JFR_JVM_INFORMATION);
        number(j, j->start);
        for (int k = 0; k < 5; k++) {
            jfr_text(&j->events, NULL);
        }
        number(j, UNKNOWN_LONG);
        number(j, told);
        jfr_end(&j->events, begun);
    }
}

/* The processor time of each second, by the samples. Of programs that were not sampled it knows
 * nothing: so the machine's is no less than the JVM's. */
static int put_load(struct jfr *j)
{
    const struct profile *profile = j->profile;
    uint64_t seconds = (j->until - j->start) / SECOND;
    if (!profile->recording->cpu_count || seconds == 0 || seconds > 1000000) {
        return 0;
    }
    struct {
        uint64_t user, kernel;
    } *loads = calloc(seconds, sizeof *loads);
    if (!loads) {
        return -ENOMEM;
    }
    bool has_clock = false;
    for (uint32_t i = 0; i < profile->sample_count; i++) {
        const struct profile_sample *sample = &profile->samples[i];
        const struct jfr_event *kind = &j->kinds[sample->event];
        uint64_t second = (sample->time - j->start) / SECOND;
        if (kind->type != JFR_EXECUTION_SAMPLE || !kind->is_time || second >= seconds) {
            continue;
        }
        bool of_kernel = false;
        if (sample->node != PROFILE_NONE) {
            uint32_t location = profile->nodes[sample->node].location;
            uint32_t line = profile->locations[location].first_line;
            of_kernel = profile->lines[line].kind == RESOLVED_KERNEL;
        }
        *(of_kernel ? &loads[second].kernel : &loads[second].user) += sample->weight;
        has_clock = true;
    }
    double whole = (double)SECOND * profile->recording->cpu_count;
    for (uint64_t i = 0; has_clock && i < seconds; i++) {
        double user = (double)loads[i].user / whole;
        double kernel = (double)loads[i].kernel / whole;
        size_t begun = jfr_begin(&j->events, JFR_CPU_LOAD);
        number(j, j->start + (i + 1) * SECOND);
        put_float(j, user);
        put_float(j, kernel);
        put_float(j, user + kernel);
        jfr_end(&j->events, begun);
    }
    free(loads);
    return 0;
}

/* ---- Constants ---- */

/* A pool of constants of one type; an empty one breaks the JDK's reader. */
static void begin_pool(struct jfr *j, enum jfr_type type, uint64_t count, uint32_t *pools)
{
    jfr_number(&j->constants, type);
    jfr_number(&j->constants, count);
    ++*pools;
}

/* async-profiler's reader takes symbols in this form alone. */
static void put_symbol_text(struct bytes *out, const char *text)
{
    enum { UTF8 = 3 };
    size_t size = strlen(text);
    bytes_u8(out, UTF8);
    jfr_number(out, size);
    bytes_put(out, text, size);
}

/* The first has the number `first`. */
static void put_names(struct jfr *j, enum jfr_type type, const char *const *names, uint32_t count,
                      uint64_t first, uint32_t *pools)
{
    if (count == 0) {
        return;
    }
    begin_pool(j, type, count, pools);
    for (uint32_t i = 0; i < count; i++) {
        jfr_number(&j->constants, first + i);
        put_symbol_text(&j->constants, names[i]);
    }
}

static void put_threads(struct jfr *j, uint32_t *pools)
{
    const struct profile *profile = j->profile;
    if (profile->thread_count == 0) {
        return;
    }
    begin_pool(j, JFR_THREAD, profile->thread_count, pools);
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct profile_thread *thread = &profile->threads[i];
        const char *name = thread->comm[0] ? thread->comm : "[unknown]";
        const char *java_name = thread->virtual_id && thread->virtual_name[0] ? thread->virtual_name
                                : thread->virtual_id || j->java_threads[i]    ? name
                                                                              : NULL;
        jfr_number(&j->constants, (uint64_t)i + 1);
        jfr_text(&j->constants, name);
        jfr_number(&j->constants, thread->tid);
        jfr_text(&j->constants, java_name);
        jfr_number(&j->constants, thread->virtual_id);
        bytes_u8(&j->constants, thread->virtual_id != 0);
        put_labels(j, thread);
    }
}

static enum frame_type frame_type_of(const struct profile *profile, const struct profile_line *line)
{
    const struct profile_function *function = &profile->functions[line->function];
    if (line->kind == RESOLVED_KERNEL) {
        return KERNEL;
    }
    if (is_java(function) && line->kind == RESOLVED_INTERPRETED) {
        return INTERPRETED;
    }
    if (is_java(function) && line->kind == RESOLVED_COMPILED) {
        return line->tier >= 1 && line->tier <= 3 ? C1_COMPILED : JIT_COMPILED;
    }
    if (is_java(function) && line->kind == RESOLVED_INLINED) {
        return INLINED;
    }
    return strstr(function->name, "::") ? CPP : NATIVE;
}

static void put_stack(struct jfr *j, uint32_t innermost)
{
    const struct profile *profile = j->profile;
    uint64_t depth = 0;
    for (uint32_t at = innermost; at != PROFILE_NONE; at = profile->nodes[at].parent) {
        depth += profile->locations[profile->nodes[at].location].line_count;
    }
    jfr_number(&j->constants, (uint64_t)innermost + 1);
    bytes_u8(&j->constants, 0); /* whole */
    jfr_number(&j->constants, depth);
    for (uint32_t at = innermost; at != PROFILE_NONE; at = profile->nodes[at].parent) {
        const struct profile_location *location = &profile->locations[profile->nodes[at].location];
        for (uint32_t i = 0; i < location->line_count; i++) {
            const struct profile_line *line = &profile->lines[location->first_line + i];
            jfr_number(&j->constants, (uint64_t)line->function + 1);
            jfr_number(&j->constants, line->line);
            jfr_number(&j->constants, 0); /* the bytecode's index */
            jfr_number(&j->constants, frame_type_of(profile, line));
        }
    }
}

static void put_stacks(struct jfr *j, uint32_t *pools)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < j->profile->node_count; i++) {
        count += (j->nodes[i] & NODE_IS_USED) != 0;
    }
    if (count == 0) {
        return;
    }
    begin_pool(j, JFR_STACK_TRACE, count, pools);
    for (uint32_t i = 0; i < j->profile->node_count; i++) {
        if (j->nodes[i] & NODE_IS_USED) {
            put_stack(j, i);
        }
    }
}

static void put_method(struct jfr *j, uint64_t id, uint64_t of_class, const char *name,
                       const char *descriptor)
{
    struct bytes text = {0};
    put_descriptor(&text, descriptor);
    jfr_number(&j->constants, id);
    jfr_number(&j->constants, of_class);
    jfr_number(&j->constants, symbol(j, name));
    jfr_number(&j->constants, number_of(&j->symbols, &text));
    jfr_number(&j->constants, 0); /* modifiers */
    bytes_u8(&j->constants, 0);   /* not hidden */
    j->constants.failed |= text.failed;
    bytes_free(&text);
}

/* "pkg.Cls.m(int)" taken apart where it has that form. */
static void put_subject(struct jfr *j, uint64_t id, const char *subject)
{
    char name[1024];
    snprintf(name, sizeof name, "%s", subject);
    char *open = strchr(name, '(');
    const char *descriptor = open ? strchr(subject, '(') : NULL;
    if (open) {
        *open = '\0';
    }
    char *dot = strrchr(name, '.');
    if (dot && dot != name) {
        *dot = '\0';
        put_method(j, id, class_of(j, name), dot + 1, descriptor);
    } else {
        put_method(j, id, module_class(j, NULL), name, descriptor);
    }
}

static void put_methods(struct jfr *j, uint32_t *pools)
{
    const struct profile *profile = j->profile;
    uint64_t count = (uint64_t)profile->function_count + j->subjects.count;
    if (count == 0) {
        return;
    }
    begin_pool(j, JFR_METHOD, count, pools);
    for (uint32_t i = 0; i < profile->function_count; i++) {
        const struct profile_function *function = &profile->functions[i];
        if (is_java(function)) {
            const struct resolved_method *method = function->method;
            put_method(j, (uint64_t)i + 1, class_of(j, method->class_name), method->method_name,
                       method->descriptor);
        } else {
            put_method(j, (uint64_t)i + 1, module_class(j, function->module), function->name, NULL);
        }
    }
    for (uint32_t i = 0; i < j->subjects.count; i++) {
        put_subject(j, (uint64_t)profile->function_count + 1 + i, j->subjects.list[i]);
    }
}

static void put_classes(struct jfr *j, uint32_t *pools)
{
    if (j->classes.count == 0) {
        return;
    }
    begin_pool(j, JFR_CLASS, j->classes.count, pools);
    for (uint32_t i = 0; i < j->classes.count; i++) {
        jfr_number(&j->constants, (uint64_t)i + 1);
        jfr_number(&j->constants, 0); /* loader */
        jfr_number(&j->constants, symbol(j, j->classes.list[i]));
        jfr_number(&j->constants, 0); /* package */
        jfr_number(&j->constants, 0); /* modifiers */
        bytes_u8(&j->constants, 0);   /* not hidden */
    }
}

/* What refers to others comes first: those are noted meanwhile. */
static void put_constants(struct jfr *j)
{
    static const char *const frame_types[] = {"Interpreted", "JIT compiled", "Inlined",    "Native",
                                              "C++",         "Kernel",       "C1 compiled"};
    static const char *const states[] = {"STATE_RUNNABLE"};
    uint32_t pools = 0;
    size_t begun = jfr_begin(&j->constants, 1);
    jfr_number(&j->constants, j->start);
    jfr_number(&j->constants, 0); /* duration */
    jfr_number(&j->constants, 0); /* no other checkpoint before it */
    jfr_number(&j->constants, 1);
    size_t count_at = j->constants.size;
    bytes_u8(&j->constants, 0);
    put_threads(j, &pools);
    put_stacks(j, &pools);
    put_methods(j, &pools);
    put_classes(j, &pools);
    put_names(j, JFR_FRAME_TYPE, frame_types, sizeof frame_types / sizeof *frame_types, INTERPRETED,
              &pools);
    put_names(j, JFR_THREAD_STATE, states, sizeof states / sizeof *states, RUNNABLE, &pools);
    put_names(j, JFR_STRING, j->texts.list, j->texts.count, 1, &pools);
    put_names(j, JFR_SYMBOL, j->symbols.list, j->symbols.count, 1, &pools);
    if (!j->constants.failed) {
        j->constants.at[count_at] = (uint8_t)pools;
    }
    jfr_end(&j->constants, begun);
}

/* ---- The chunk ---- */

static void put_u64(uint8_t *to, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        to[i] = (uint8_t)(value >> (56 - 8 * i));
    }
}

static void put_header(const struct jfr *j)
{
    uint8_t header[HEADER_SIZE] = {'F', 'L', 'R', '\0', 0, 2, 0, 0};
    uint64_t constants_at = HEADER_SIZE + j->events.size;
    uint64_t metadata_at = constants_at + j->constants.size;
    put_u64(header + 8, metadata_at + j->metadata.size);
    put_u64(header + 16, constants_at);
    put_u64(header + 24, metadata_at);
    put_u64(header + 32, export_wall_time(j->profile, j->start));
    put_u64(header + 40, j->until - j->start);
    put_u64(header + 48, j->start);
    put_u64(header + 56, SECOND);
    header[67] = 1; /* numbers are packed */
    packed_output_put(j->output, header, sizeof header);
}

static int put_all(struct jfr *j)
{
    const struct profile *profile = j->profile;
    int err = choose_kinds(j);
    err = err ? err : find_java(j);
    if (err) {
        return err;
    }
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        (void)labels_each(profile->threads[i].labels, note_label, j);
    }
    find_span(j);
    put_settings(j);
    put_machine(j);
    put_jvms(j);
    err = put_load(j);
    for (uint32_t i = 0; !err && i < profile->sample_count; i++) {
        put_sample(j, &profile->samples[i]);
    }
    put_marks(j);
    put_constants(j);
    jfr_put_metadata(&j->metadata, j->kinds, profile->recording->event_count, &j->labels, j->start);
    if (err || j->events.failed || j->constants.failed || j->metadata.failed || j->symbols.error ||
        j->classes.error || j->texts.error || j->subjects.error) {
        return -ENOMEM;
    }
    if (j->constants.size > INT32_MAX) { /* readers keep the size of a record in 32 bits */
        packed_output_fail(j->output, -EFBIG);
        return 0;
    }
    put_header(j);
    packed_output_put(j->output, j->events.at, j->events.size);
    packed_output_put(j->output, j->constants.at, j->constants.size);
    packed_output_put(j->output, j->metadata.at, j->metadata.size);
    return 0;
}

static int write_jfr(const struct profile *profile, const struct export_settings *settings,
                     struct packed_output *output)
{
    (void)settings;
    struct jfr *j = calloc(1, sizeof *j);
    if (!j) {
        return -ENOMEM;
    }
    j->profile = profile;
    j->output = output;
    int err = put_all(j);
    bytes_free(&j->events);
    bytes_free(&j->constants);
    bytes_free(&j->metadata);
    string_table_free(&j->symbols);
    string_table_free(&j->classes);
    string_table_free(&j->texts);
    string_table_free(&j->subjects);
    free(j->kinds);
    free(j->nodes);
    free(j->java_threads);
    free(j);
    return err;
}

extern const struct export_format format_jfr;
const struct export_format format_jfr = {
    .name = "jfr",
    .file = "profile.jfr",
    .about = "for JDK Mission Control, IntelliJ and the JDK's jfr",
    .keeps_times = true,
    .identities = true,
    .write = write_jfr,
};
