/*
 * A sink is a place where code is reported: a jitdump, a perf map, Intel's JIT Profiling API. One
 * interface, so that the agent sends each event to every open one and knows none of them.
 *
 * All functions may be called from any thread at the same time, but for close, which must be the
 * last call. Each returns 0 or a negative errno. A sink that fails in mid-run says so once, through
 * message.h, closes itself at a record boundary and answers -EPIPE from then on: a failure costs
 * the profile, never the process.
 */
#ifndef JD_WRITER_SINK_H
#define JD_WRITER_SINK_H

#include "writer/code.h"

struct sink;

struct sink_stats {
    uint64_t records; /* loads and moves written */
    uint64_t bytes;   /* in the file, where there is one */
    uint64_t dropped; /* loads that did not get written */
    const char *path; /* of the file, NULL where there is none; lives as long as the sink */
    bool failed;
};

/* What each kind of sink brings; only sink.c and the sinks themselves look inside. */
struct sink_ops {
    int (*load)(struct sink *sink, const struct code *code);
    int (*move)(struct sink *sink, uint64_t from, uint64_t to, uint64_t size);
    int (*unload)(struct sink *sink, uint64_t address);
    void (*swept)(struct sink *sink); /* NULL: of no interest */
    void (*stats)(struct sink *sink, struct sink_stats *stats);
    void (*close)(struct sink *sink);
};

/* The first member of every sink. */
struct sink {
    const struct sink_ops *ops;
};

/* Reports code that is there now. */
int sink_load(struct sink *sink, const struct code *code);

/* Reports that `size` bytes of code went from one address to another. */
int sink_move(struct sink *sink, uint64_t from, uint64_t to, uint64_t size);

/* Reports that the code that starts at `address` is no longer there. Unknown addresses are fine. */
int sink_unload(struct sink *sink, uint64_t address);

/*
 * Code that will be reported as unloaded from now on, up to the next call, has not run since this
 * moment. For a JVM that frees code in garbage collections: it tells of the end of code late, when
 * other code may already run at its place. Takes no lock.
 */
void sink_swept(struct sink *sink);

void sink_stats(struct sink *sink, struct sink_stats *stats);

/* Writes what has to be written at the end, closes the file, frees the sink. NULL is fine. */
void sink_close(struct sink *sink);

#endif
