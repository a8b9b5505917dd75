/*
 * One watched JVM: a process of its own that attaches, has perf sample it, resolves what comes and
 * hands a slice each time to the watch that started it. Whatever becomes of it (a hostile dump, a
 * JVM that hangs, memory) is its own, and goes with it.
 *
 * It ends when its JVM does, when the watch does, or when it has grown over its limit: then it is
 * started anew.
 */
#ifndef JD_TOOL_WATCH_JVM_H
#define JD_TOOL_WATCH_JVM_H

#include "jdtool/exports/export.h"

#include <stdint.h>

/* Its exit status when it is to be started anew at once. */
#define STATUS_GROWN 4

struct watch_jvm_options {
    const char *jvm; /* its pid */
    int out;         /* where slices go (slice_pipe.h) */
    unsigned slice;  /* seconds */
    unsigned frequency;
    const char *event;  /* NULL: what the machine has */
    const char *buffer; /* perf's -m; NULL: what fits */
    unsigned stack_size;
    uint64_t memory_max;       /* bytes of its own memory, over which it ends */
    bool threads;              /* are told apart */
    unsigned cpu_max;          /* percent of a processor, over which it pauses; 0: no limit */
    const char *service_from;  /* see labels_set_service */
    int share;                 /* a descriptor of what it may use now, see shares_of_processor, as
                                  uint32_t; -1: cpu_max alone */
    const char *agent_options; /* "": none */
    const struct export_format *formats[2];
    uint32_t format_count;
    const char *const *labels; /* the user's "name=value", NULL-terminated */
};

/* An exit status. */
int watch_jvm(const struct watch_jvm_options *options);

#endif
