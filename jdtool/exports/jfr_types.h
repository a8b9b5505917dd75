/*
 * The types of a JFR file: what is declared in its metadata, and what its events then refer to by
 * number. Names are the JDK's own (jdk.ExecutionSample) where it has an event for a thing, because
 * viewers look for those; what it has none for is called jdagent.
 */
#ifndef JD_TOOL_JFR_TYPES_H
#define JD_TOOL_JFR_TYPES_H

#include "jdtool/base/bytes.h"
#include "jdtool/base/intern.h"

enum jfr_type {
    /* 0 and 1 are the format's own: metadata and checkpoints. */
    JFR_BOOLEAN = 4,
    JFR_CHAR,
    JFR_FLOAT,
    JFR_DOUBLE,
    JFR_BYTE,
    JFR_SHORT,
    JFR_INT,
    JFR_LONG,
    JFR_STRING,
    JFR_CLASS,
    JFR_THREAD,
    JFR_CLASS_LOADER,
    JFR_PACKAGE,
    JFR_SYMBOL,
    JFR_METHOD,
    JFR_FRAME_TYPE,
    JFR_STACK_FRAME,
    JFR_STACK_TRACE,
    JFR_THREAD_STATE,
    JFR_LABEL, /* annotations */
    JFR_CATEGORY,
    JFR_TIMESTAMP,
    JFR_TIMESPAN,
    JFR_DATA_AMOUNT,
    JFR_PERCENTAGE,
    JFR_EXECUTION_SAMPLE, /* events */
    JFR_NATIVE_METHOD_SAMPLE,
    JFR_ALLOCATION_SAMPLE,
    JFR_MONITOR_ENTER,
    JFR_EXCEPTION_THROW,
    JFR_ERROR_THROW,
    JFR_THREAD_PARK,
    JFR_THREAD_START,
    JFR_THREAD_END,
    JFR_GC_PHASE_PAUSE,
    JFR_VM_OPERATION,
    JFR_COMPILATION,
    JFR_DEOPTIMIZATION,
    JFR_CPU_LOAD,
    JFR_OS_INFORMATION,
    JFR_CPU_INFORMATION,
    JFR_JVM_INFORMATION,
    JFR_ACTIVE_RECORDING,
    JFR_ACTIVE_SETTING,
    JFR_SAFEPOINT,
    JFR_CODE_CACHE,
    JFR_RECORDING,
    JFR_OWN, /* the first of those that only this recording has */
};

/* How a recording's event is told. */
struct jfr_event {
    enum jfr_type type;
    char name[80];     /* JFR_OWN and above */
    const char *label; /* the same */
    bool is_wait;      /* the same: it has a duration; else a weight */
    bool is_time;      /* weights are nanoseconds */
    bool is_bytes;
};

/* Keys of the program's labels, for each of which a thread has a field. */
struct jfr_labels {
    const char *keys[32];
    char fields[32][80]; /* what the fields are called */
    uint32_t count;
};

/* Puts the metadata event behind what is there. */
void jfr_put_metadata(struct bytes *out, const struct jfr_event *events, uint32_t event_count,
                      const struct jfr_labels *labels, uint64_t time);

/* An unsigned number as JFR packs it: like LEB128, but a ninth byte is whole. */
void jfr_number(struct bytes *out, uint64_t value);
/* A text where it stands; NULL: none. */
void jfr_text(struct bytes *out, const char *text);

/* What begins with its own size: a place for that, and what to do when it is complete. */
size_t jfr_begin(struct bytes *out, uint64_t type);
void jfr_end(struct bytes *out, size_t begun);

#endif
