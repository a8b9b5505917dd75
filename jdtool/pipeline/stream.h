/*
 * A recording, read once, its samples resolved once, and given to all sinks: from a file, or from a
 * pipe while perf records and the JVMs run.
 *
 * A sample of a JVM that runs waits until the JVM has told of the code that it may be in: HotSpot
 * tells late, 0.2 ms mostly, one time in a hundred 13 ms, and more under load. What waits has a
 * budget; a sample that has to go earlier is counted (recording_counts.let_go_early).
 */
#ifndef JD_TOOL_STREAM_H
#define JD_TOOL_STREAM_H

#include "jdtool/resolve/sample_sink.h"

struct stream_options {
    const char *input;        /* "-": stdin */
    const char *build_id_dir; /* where perf record left copies of files; NULL: its default */
    char *const *dumps;       /* to be used in place of those of that name, or of that JVM */
    uint32_t dump_count;
    bool symbolize;   /* name native and kernel functions */
    bool keep_stacks; /* stack copies are not unwound */
    size_t budget;    /* bytes that records may take while they wait; 0: 192 MB */
    /* Where a scorecard among the sinks leaves its verdict, for those behind it (struct recording);
     * NULL: there is none. */
    const char *verdict;
    bool sparing; /* with memory: no lines of native code whose debug information is large */
    /* Called with the process whose data is read from now on, 0: of no one process, for who wants
     * to know whose it was when this process is no more; NULL: nobody does. */
    void (*work_on)(void *context, uint32_t pid);
    /* Called while a pipe is read, some times a second: 0, or a negative errno after a message,
     * which ends the stream. NULL: nothing is to be done. */
    int (*turn)(void *context);
    void *context;
};

/* What became of the dumps. */
struct stream_result {
    uint32_t jvms;
    uint32_t usable;
};

/*
 * Reads it to its end. The sinks are used up, on failure too. 0 or a negative errno after a
 * message.
 */
int stream_run(const struct stream_options *options, struct sample_sink *const *sinks,
               uint32_t count, struct stream_result *result);

#endif
