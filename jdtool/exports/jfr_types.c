#include "jdtool/exports/jfr_types.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Packing ---- */

void jfr_number(struct bytes *out, uint64_t value)
{
    uint8_t packed[9];
    size_t size = 0;
    for (; value >= 0x80 && size < 8; value >>= 7) {
        packed[size++] = (uint8_t)(value | 0x80);
    }
    packed[size++] = (uint8_t)value;
    bytes_put(out, packed, size);
}

void jfr_text(struct bytes *out, const char *text)
{
    enum { NONE = 0, EMPTY = 1, UTF8 = 3 };
    if (!text || !*text) {
        bytes_u8(out, text ? EMPTY : NONE);
        return;
    }
    size_t size = strlen(text);
    bytes_u8(out, UTF8);
    jfr_number(out, size);
    bytes_put(out, text, size);
}

enum {
    SIZE_BYTES = 4
}; /* a size of up to 2^28, each byte but the last saying that there is more */

size_t jfr_begin(struct bytes *out, uint64_t type)
{
    size_t begun = out->size;
    bytes_grow(out, SIZE_BYTES + 1);
    jfr_number(out, type);
    return begun;
}

void jfr_end(struct bytes *out, size_t begun)
{
    enum { WIDE = SIZE_BYTES + 1 };
    if (out->failed) {
        return;
    }
    size_t size = out->size - begun;
    for (size_t i = 0; i < WIDE; i++, size >>= 7) {
        out->at[begun + i] = (uint8_t)((size & 0x7f) | (i < WIDE - 1 ? 0x80 : 0));
    }
}

/* ---- What is declared ---- */

enum field_kind {
    PLAIN,
    TIME,        /* a moment in ticks */
    EPOCH,       /* in milliseconds since 1970 */
    TICKS,       /* a duration in ticks */
    NANOSECONDS, /* a duration */
    MILLISECONDS,
    BYTES,
    SHARE, /* of 1 */
};

struct field {
    const char *name;
    enum jfr_type type;
    enum field_kind kind;
    const char *label;
    bool is_shared; /* the number of a constant */
    bool is_array;
};

#define FIELDS_MAX 9

struct type {
    enum jfr_type id;
    const char *name;
    const char *label;    /* of events; NULL: it is none */
    const char *category; /* the same, with ", " between its steps */
    bool is_simple;       /* it is its only field */
    struct field fields[FIELDS_MAX];
};

/* clang-format off */
#define START        {"startTime", JFR_LONG, TIME, "Start Time", false, false}
#define DURATION     {"duration", JFR_LONG, TICKS, "Duration", false, false}
#define EVENT_THREAD {"eventThread", JFR_THREAD, PLAIN, "Event Thread", true, false}
#define SAMPLED      {"sampledThread", JFR_THREAD, PLAIN, "Thread", true, false}
#define STACK        {"stackTrace", JFR_STACK_TRACE, PLAIN, "Stack Trace", true, false}
#define STATE        {"state", JFR_THREAD_STATE, PLAIN, "Thread State", true, false}
#define TEXT(name, label)            {name, JFR_STRING, PLAIN, label, false, false}
#define NUMBER(name, type, label)    {name, type, PLAIN, label, false, false}
#define REFERENCE(name, type, label) {name, type, PLAIN, label, true, false}

/* What is no event, and what is one; behind them the fields. */
#define TYPE(id, name, ...) {id, name, NULL, NULL, false, {__VA_ARGS__}}
#define SIMPLE(id, name, field) {id, name, NULL, NULL, true, {field}}
#define EVENT(id, name, label, category, ...) {id, name, label, category, false, {__VA_ARGS__}}
/* clang-format on */

#define JVM      "Java Virtual Machine"
#define JAVA     "Java Application"
#define SYSTEM   "Operating System"
#define RECORDER "Flight Recorder"

/* async-profiler's reader goes by the order of fields, not by what the metadata say, of the
 * samples, allocations and waits, and reads no field behind them. Of threads it skips numbers
 * there. */
static const struct type types[] = {
    {.id = JFR_BOOLEAN, .name = "boolean"},
    {.id = JFR_CHAR, .name = "char"},
    {.id = JFR_FLOAT, .name = "float"},
    {.id = JFR_DOUBLE, .name = "double"},
    {.id = JFR_BYTE, .name = "byte"},
    {.id = JFR_SHORT, .name = "short"},
    {.id = JFR_INT, .name = "int"},
    {.id = JFR_LONG, .name = "long"},
    {.id = JFR_STRING, .name = "java.lang.String"},
    TYPE(JFR_CLASS, "java.lang.Class", REFERENCE("classLoader", JFR_CLASS_LOADER, "Class Loader"),
         REFERENCE("name", JFR_SYMBOL, "Name"), REFERENCE("package", JFR_PACKAGE, "Package"),
         NUMBER("modifiers", JFR_INT, "Access Modifiers"), NUMBER("hidden", JFR_BOOLEAN, "Hidden")),
    TYPE(JFR_THREAD, "java.lang.Thread", TEXT("osName", "OS Thread Name"),
         NUMBER("osThreadId", JFR_LONG, "OS Thread Id"), TEXT("javaName", "Java Thread Name"),
         NUMBER("javaThreadId", JFR_LONG, "Java Thread Id"),
         NUMBER("virtual", JFR_BOOLEAN, "Virtual Thread")),
    TYPE(JFR_CLASS_LOADER, "java.lang.ClassLoader", REFERENCE("type", JFR_CLASS, "Type"),
         REFERENCE("name", JFR_SYMBOL, "Name")),
    TYPE(JFR_PACKAGE, "jdk.types.Package", REFERENCE("name", JFR_SYMBOL, "Name")),
    SIMPLE(JFR_SYMBOL, "jdk.types.Symbol", TEXT("string", "String")),
    TYPE(JFR_METHOD, "jdk.types.Method", REFERENCE("type", JFR_CLASS, "Type"),
         REFERENCE("name", JFR_SYMBOL, "Name"), REFERENCE("descriptor", JFR_SYMBOL, "Descriptor"),
         NUMBER("modifiers", JFR_INT, "Access Modifiers"), NUMBER("hidden", JFR_BOOLEAN, "Hidden")),
    SIMPLE(JFR_FRAME_TYPE, "jdk.types.FrameType", TEXT("description", "Description")),
    TYPE(JFR_STACK_FRAME, "jdk.types.StackFrame", REFERENCE("method", JFR_METHOD, "Java Method"),
         NUMBER("lineNumber", JFR_INT, "Line Number"),
         NUMBER("bytecodeIndex", JFR_INT, "Bytecode Index"),
         REFERENCE("type", JFR_FRAME_TYPE, "Frame Type")),
    TYPE(JFR_STACK_TRACE, "jdk.types.StackTrace", NUMBER("truncated", JFR_BOOLEAN, "Truncated"),
         {"frames", JFR_STACK_FRAME, PLAIN, "Stack Frames", false, true}),
    SIMPLE(JFR_THREAD_STATE, "jdk.types.ThreadState", TEXT("name", "Name")),

    EVENT(JFR_EXECUTION_SAMPLE, "jdk.ExecutionSample", "Method Profiling Sample", JVM ", Profiling",
          START, SAMPLED, STACK, STATE),
    EVENT(JFR_NATIVE_METHOD_SAMPLE, "jdk.NativeMethodSample", "Method Profiling Sample Native",
          JVM ", Profiling", START, SAMPLED, STACK, STATE),
    EVENT(JFR_ALLOCATION_SAMPLE, "jdk.ObjectAllocationSample", "Object Allocation Sample", JAVA,
          START, EVENT_THREAD, STACK, REFERENCE("objectClass", JFR_CLASS, "Object Class"),
          {"weight", JFR_LONG, BYTES, "Sample Weight", false, false}),
    EVENT(JFR_MONITOR_ENTER, "jdk.JavaMonitorEnter", "Java Monitor Blocked", JAVA, START, DURATION,
          EVENT_THREAD, STACK, REFERENCE("monitorClass", JFR_CLASS, "Monitor Class"),
          REFERENCE("previousOwner", JFR_THREAD, "Previous Monitor Owner"),
          NUMBER("address", JFR_LONG, "Monitor Address")),
    EVENT(JFR_EXCEPTION_THROW, "jdk.JavaExceptionThrow", "Java Exception", JAVA, START,
          EVENT_THREAD, STACK, TEXT("message", "Message"),
          REFERENCE("thrownClass", JFR_CLASS, "Class"), NUMBER("weight", JFR_LONG, "Weight")),
    /* Never written: errors are exceptions here, but views ask for both. */
    EVENT(JFR_ERROR_THROW, "jdk.JavaErrorThrow", "Java Error", JAVA, START, EVENT_THREAD, STACK,
          TEXT("message", "Message"), REFERENCE("thrownClass", JFR_CLASS, "Class")),
    EVENT(JFR_THREAD_PARK, "jdk.ThreadPark", "Java Thread Park", JAVA, START, DURATION,
          EVENT_THREAD, STACK, REFERENCE("parkedClass", JFR_CLASS, "Class Parked On"),
          {"timeout", JFR_LONG, NANOSECONDS, "Park Timeout", false, false},
          {"until", JFR_LONG, EPOCH, "Park Until", false, false},
          NUMBER("address", JFR_LONG, "Address of Object Parked")),
    EVENT(JFR_THREAD_START, "jdk.ThreadStart", "Java Thread Start", JAVA, START, EVENT_THREAD,
          STACK, REFERENCE("thread", JFR_THREAD, "New Java Thread"),
          REFERENCE("parentThread", JFR_THREAD, "Parent Java Thread")),
    EVENT(JFR_THREAD_END, "jdk.ThreadEnd", "Java Thread End", JAVA, START, EVENT_THREAD,
          REFERENCE("thread", JFR_THREAD, "Java Thread")),
    EVENT(JFR_GC_PHASE_PAUSE, "jdk.GCPhasePause", "GC Phase Pause", JVM ", GC, Phases", START,
          DURATION, EVENT_THREAD, NUMBER("gcId", JFR_INT, "GC Identifier"), TEXT("name", "Name")),
    EVENT(JFR_VM_OPERATION, "jdk.ExecuteVMOperation", "VM Operation", JVM ", Runtime", START,
          DURATION, EVENT_THREAD, TEXT("operation", "Operation"),
          NUMBER("safepoint", JFR_BOOLEAN, "At Safepoint")),
    EVENT(JFR_COMPILATION, "jdk.Compilation", "Compilation", JVM ", Compiler", START, DURATION,
          EVENT_THREAD, TEXT("compiler", "Compiler"), REFERENCE("method", JFR_METHOD, "Method"),
          NUMBER("compileLevel", JFR_SHORT, "Compilation Level"),
          NUMBER("succeded", JFR_BOOLEAN, "Succeeded")),
    EVENT(JFR_DEOPTIMIZATION, "jdk.Deoptimization", "Deoptimization", JVM ", Compiler", START,
          EVENT_THREAD, REFERENCE("method", JFR_METHOD, "Method"),
          NUMBER("lineNumber", JFR_INT, "Line Number"), NUMBER("bci", JFR_INT, "Bytecode Index"),
          TEXT("reason", "Reason")),
    EVENT(JFR_CPU_LOAD, "jdk.CPULoad", "CPU Load", SYSTEM ", Processor", START,
          {"jvmUser", JFR_FLOAT, SHARE, "JVM User", false, false},
          {"jvmSystem", JFR_FLOAT, SHARE, "JVM System", false, false},
          {"machineTotal", JFR_FLOAT, SHARE, "Machine Total", false, false}),
    EVENT(JFR_OS_INFORMATION, "jdk.OSInformation", "OS Information", SYSTEM, START,
          TEXT("osVersion", "OS Version")),
    EVENT(JFR_CPU_INFORMATION, "jdk.CPUInformation", "CPU Information", SYSTEM ", Processor", START,
          TEXT("cpu", "Type"), TEXT("description", "Description"),
          NUMBER("sockets", JFR_INT, "Sockets"), NUMBER("cores", JFR_INT, "Cores"),
          NUMBER("hwThreads", JFR_INT, "Hardware Threads")),
    EVENT(JFR_JVM_INFORMATION, "jdk.JVMInformation", "JVM Information", JVM, START,
          TEXT("jvmName", "JVM Name"), TEXT("jvmVersion", "JVM Version"),
          TEXT("jvmArguments", "JVM Command Line Arguments"),
          TEXT("jvmFlags", "JVM Settings File Arguments"),
          TEXT("javaArguments", "Java Application Arguments"),
          {"jvmStartTime", JFR_LONG, EPOCH, "JVM Start Time", false, false},
          NUMBER("pid", JFR_LONG, "Process Identifier")),
    EVENT(JFR_ACTIVE_RECORDING, "jdk.ActiveRecording", "Flight Recording", RECORDER, START,
          DURATION, NUMBER("id", JFR_LONG, "Id"), TEXT("name", "Name"),
          TEXT("destination", "Destination"),
          {"maxAge", JFR_LONG, MILLISECONDS, "Max Age", false, false},
          {"maxSize", JFR_LONG, BYTES, "Max Size", false, false},
          {"recordingStart", JFR_LONG, EPOCH, "Start Time", false, false},
          {"recordingDuration", JFR_LONG, MILLISECONDS, "Recording Duration", false, false}),
    EVENT(JFR_ACTIVE_SETTING, "jdk.ActiveSetting", "Recording Setting", RECORDER, START,
          NUMBER("id", JFR_LONG, "Event Id"), TEXT("name", "Setting Name"),
          TEXT("value", "Setting Value")),
    EVENT(JFR_SAFEPOINT, "jdagent.Safepoint", "Safepoint", JVM ", Runtime, Safepoint", START,
          DURATION, EVENT_THREAD, TEXT("operations", "Operations"),
          {"timeToSafepoint", JFR_LONG, NANOSECONDS, "Time to Safepoint", false, false}),
    EVENT(JFR_CODE_CACHE, "jdagent.CodeCache", "Code Cache", JVM ", Code Cache", START,
          {"used", JFR_LONG, BYTES, "Code", false, false}),
    EVENT(JFR_RECORDING, "jdagent.Recording", "Recording", RECORDER, START,
          TEXT("command", "Command"), TEXT("host", "Host"), TEXT("sampler", "Sampler"),
          TEXT("verdict", "Verdict")),
};

/* ---- The tree of elements ---- */

/* An element is its name, attributes, and children, whose number stands before them. */
struct tree {
    struct bytes *out;
    struct string_table *strings;
};

static void word(const struct tree *tree, const char *text)
{
    jfr_number(tree->out, string_table_add(tree->strings, text));
}

static void number_word(const struct tree *tree, uint64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, value);
    word(tree, text);
}

static void element(const struct tree *tree, const char *name, uint32_t attributes)
{
    word(tree, name);
    jfr_number(tree->out, attributes);
}

static void children(const struct tree *tree, uint32_t count)
{
    jfr_number(tree->out, count);
}

static void put_annotation(const struct tree *tree, enum jfr_type type, const char *value)
{
    element(tree, "annotation", value ? 2 : 1);
    word(tree, "class");
    number_word(tree, type);
    if (value) {
        word(tree, "value");
        word(tree, value);
    }
    children(tree, 0);
}

static void put_category(const struct tree *tree, const char *category)
{
    uint32_t steps = 1;
    for (const char *at = category; (at = strstr(at, ", ")); at += 2) {
        steps++;
    }
    element(tree, "annotation", 1 + steps);
    word(tree, "class");
    number_word(tree, JFR_CATEGORY);
    for (uint32_t i = 0; i < steps; i++) {
        char text[80];
        size_t size = 0;
        while (category[size] && strncmp(category + size, ", ", 2) != 0) {
            size++;
        }
        snprintf(text, sizeof text, "value-%" PRIu32, i);
        word(tree, text);
        snprintf(text, sizeof text, "%.*s", (int)size, category);
        word(tree, text);
        category += size + (category[size] ? 2 : 0);
    }
    children(tree, 0);
}

static void put_field(const struct tree *tree, const struct field *field)
{
    static const struct {
        enum jfr_type type;
        const char *value;
    } annotations[] = {
        [TIME] = {JFR_TIMESTAMP, "TICKS"},
        [EPOCH] = {JFR_TIMESTAMP, "MILLISECONDS_SINCE_EPOCH"},
        [TICKS] = {JFR_TIMESPAN, "TICKS"},
        [NANOSECONDS] = {JFR_TIMESPAN, "NANOSECONDS"},
        [MILLISECONDS] = {JFR_TIMESPAN, "MILLISECONDS"},
        [BYTES] = {JFR_DATA_AMOUNT, "BYTES"},
        [SHARE] = {JFR_PERCENTAGE, NULL},
    };
    element(tree, "field", 2 + field->is_shared + field->is_array);
    word(tree, "name");
    word(tree, field->name);
    word(tree, "class");
    number_word(tree, field->type);
    if (field->is_shared) {
        word(tree, "constantPool");
        word(tree, "true");
    }
    if (field->is_array) {
        word(tree, "dimension");
        word(tree, "1");
    }
    children(tree, (field->label != NULL) + (field->kind != PLAIN));
    if (field->label) {
        put_annotation(tree, JFR_LABEL, field->label);
    }
    if (field->kind != PLAIN) {
        put_annotation(tree, annotations[field->kind].type, annotations[field->kind].value);
    }
}

static void put_labels(const struct tree *tree, const struct jfr_labels *labels)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct field field = REFERENCE(labels->fields[i], JFR_STRING, labels->keys[i]);
        put_field(tree, &field);
    }
}

static void put_type(const struct tree *tree, const struct type *type,
                     const struct jfr_labels *labels)
{
    uint32_t fields = 0;
    while (fields < FIELDS_MAX && type->fields[fields].name) {
        fields++;
    }
    element(tree, "class", 2 + (type->label != NULL) + type->is_simple);
    word(tree, "name");
    word(tree, type->name);
    word(tree, "id");
    number_word(tree, type->id);
    if (type->label) {
        word(tree, "superType");
        word(tree, "jdk.jfr.Event");
    }
    if (type->is_simple) {
        word(tree, "simpleType");
        word(tree, "true");
    }
    children(tree, fields + (type->id == JFR_THREAD ? labels->count : 0) + (type->label ? 2 : 0));
    if (type->label) {
        put_annotation(tree, JFR_LABEL, type->label);
        put_category(tree, type->category);
    }
    for (uint32_t i = 0; i < fields; i++) {
        put_field(tree, &type->fields[i]);
    }
    if (type->id == JFR_THREAD) {
        put_labels(tree, labels);
    }
}

/* An annotation has a value, a category several. */
static void put_annotation_type(const struct tree *tree, enum jfr_type id, const char *name)
{
    const struct field value = {"value", JFR_STRING, PLAIN, NULL, false, id == JFR_CATEGORY};
    bool has_value = id != JFR_PERCENTAGE;
    element(tree, "class", 3);
    word(tree, "name");
    word(tree, name);
    word(tree, "id");
    number_word(tree, id);
    word(tree, "superType");
    word(tree, "java.lang.annotation.Annotation");
    children(tree, has_value);
    if (has_value) {
        put_field(tree, &value);
    }
}

static void put_own_type(const struct tree *tree, const struct jfr_event *event,
                         const struct jfr_labels *labels)
{
    const enum field_kind kind = event->is_time ? NANOSECONDS : event->is_bytes ? BYTES : PLAIN;
    const struct field duration = DURATION;
    const struct field weight = {"weight", JFR_LONG, kind, "Weight", false, false};
    const struct type type = {
        .id = event->type,
        .name = event->name,
        .label = event->label,
        .category = "jdagent",
        .fields = {START, event->is_wait ? duration : weight, EVENT_THREAD, STACK},
    };
    put_type(tree, &type, labels);
}

static void put_root(const struct tree *tree, const struct jfr_event *events, uint32_t event_count,
                     const struct jfr_labels *labels)
{
    static const struct {
        enum jfr_type id;
        const char *name;
    } annotations[] = {{JFR_LABEL, "jdk.jfr.Label"},
                       {JFR_CATEGORY, "jdk.jfr.Category"},
                       {JFR_TIMESTAMP, "jdk.jfr.Timestamp"},
                       {JFR_TIMESPAN, "jdk.jfr.Timespan"},
                       {JFR_DATA_AMOUNT, "jdk.jfr.DataAmount"},
                       {JFR_PERCENTAGE, "jdk.jfr.Percentage"}};
    const uint32_t annotation_count = sizeof annotations / sizeof *annotations;
    const uint32_t type_count = sizeof types / sizeof *types;
    uint32_t own = 0;
    for (uint32_t i = 0; i < event_count; i++) {
        own += events[i].type >= JFR_OWN;
    }
    element(tree, "root", 0);
    children(tree, 2);
    element(tree, "metadata", 0);
    children(tree, annotation_count + type_count + own);
    for (uint32_t i = 0; i < annotation_count; i++) {
        put_annotation_type(tree, annotations[i].id, annotations[i].name);
    }
    for (uint32_t i = 0; i < type_count; i++) {
        put_type(tree, &types[i], labels);
    }
    for (uint32_t i = 0; i < event_count; i++) {
        if (events[i].type >= JFR_OWN) {
            put_own_type(tree, &events[i], labels);
        }
    }
    element(tree, "region", 2);
    word(tree, "locale");
    word(tree, "en_US");
    word(tree, "gmtOffset");
    word(tree, "0");
    children(tree, 0);
}

void jfr_put_metadata(struct bytes *out, const struct jfr_event *events, uint32_t event_count,
                      const struct jfr_labels *labels, uint64_t time)
{
    /* One that no JDK's file has: jfr print confuses the types of two files with the same. */
    const uint64_t metadata_id = 0x7ffffffe;
    struct bytes elements = {0};
    struct string_table strings = {0};
    const struct tree tree = {&elements, &strings};
    put_root(&tree, events, event_count, labels);
    size_t begun = jfr_begin(out, 0);
    jfr_number(out, time);
    jfr_number(out, 0);
    jfr_number(out, metadata_id);
    jfr_number(out, strings.count);
    for (uint32_t i = 0; i < strings.count; i++) {
        jfr_text(out, strings.list[i]);
    }
    bytes_put(out, elements.at, elements.size);
    jfr_end(out, begun);
    out->failed |= elements.failed || strings.error;
    bytes_free(&elements);
    string_table_free(&strings);
}
