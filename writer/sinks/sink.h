/*
 * A sink is a place where code is reported: a jitdump, a perf map, Intel's JIT Profiling API. It
 * only encodes: what is told, to which part of a range, and from when it counts, has been decided
 * above it, in one place for all sinks (writer/occupancy/occupancy.h), which alone calls what is
 * declared here, from one thread at a time, and never in a fork of the process.
 *
 * Each function returns 0 or a negative errno. A sink that fails for good says so once, through
 * message.h, closes itself at a record boundary, sets `failed`, and is not called again but for
 * stats and close: a failure costs the profile, never the process.
 */
#ifndef JD_WRITER_SINK_H
#define JD_WRITER_SINK_H

#include "writer/code.h"
#include "writer/occupancy/occupant.h"

struct sink_stats {
    uint64_t records;  /* loads and moves written */
    uint64_t bytes;    /* in the file, where there is one */
    uint64_t dropped;  /* loads that did not get written */
    const char *path;  /* of the present file, NULL where there is none; until the next call */
    uint64_t segments; /* begun until now; 0: there are none */
    bool failed;
    bool paused;     /* for want of room on the disk … */
    bool has_paused; /* … at some time, of which it has told */
};

struct sink;

struct sink_ops {
    /*
     * Waits a moment where load would have to refuse what a quick disk is about to have room for;
     * `patient`: longer. On any thread at any time, without the lock. NULL: load never refuses.
     */
    void (*make_room)(struct sink *sink, bool patient);
    /* Code is there now. What it overlaps is gone. What the sink has to know of it until its end it
     * hands to the occupant of the stay (occupant_keep). An error: this piece is not told of. */
    int (*load)(struct sink *sink, const struct code *code, const struct stay *stay);
    /* The code of `stay`, told of before, went from one address to another. */
    int (*move)(struct sink *sink, uint64_t from, uint64_t to, uint64_t size,
                const struct stay *stay);
    void (*stats)(struct sink *sink, struct sink_stats *stats);
    /* Waits, not for ever, until all that was told is where it belongs. As make_room; false: it is
     * not. NULL: it always is. */
    bool (*settle)(struct sink *sink);
    /*
     * Writes what has to be written at the end, closes the file, frees the sink. In a fork of the
     * process (`in_fork`) the file is not ours to write to or close neatly.
     */
    void (*close)(struct sink *sink, bool in_fork);
};

/* The first member of every sink. */
struct sink {
    const struct sink_ops *ops;
    bool failed;
};

#endif
