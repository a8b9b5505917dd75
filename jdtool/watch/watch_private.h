/* Between the loop (watch.c) and what it tells of itself (report.c). */
#ifndef JD_TOOL_WATCH_WATCH_PRIVATE_H
#define JD_TOOL_WATCH_WATCH_PRIVATE_H

#include "jdtool/live/child.h"
#include "jdtool/watch/doors.h"
#include "jdtool/watch/finder.h"
#include "jdtool/watch/watch.h"

struct watched_totals {
    uint64_t slices, samples, frames, unnamed, lost, cpu_ns, paused_ns;
};

struct watched_process {
    struct live_process process;
    uid_t uid;
    int share;          /* a file in memory with what it may use of a processor; -1: none */
    struct child child; /* of ours, for it; none: it waits for next_try */
    int from;           /* its slices; -1: none */
    int says;           /* its words, a file in memory; -1: none */
    struct slice_reader reader;
    struct watched_totals totals;
    uint64_t cpu_before; /* of children before this one */
    uint64_t rss;
    uint64_t lost_before, paused_before;
    int64_t next_try;
    unsigned tries;
    char trouble[256]; /* why the last one ended, "": well */
};

struct watch {
    const struct watch_options *options;
    struct waiting waiting;
    struct finder *finder;
    struct slice_files *files;
    struct pusher *pusher;
    struct doors *doors;
    struct watched_process *jvms[WATCHED_MAX];
    size_t count;
    struct watched_totals gone; /* of JVMs that have ended */
    uint64_t ended, refused;    /* JVMs: that have ended, beyond WATCHED_MAX */
    uint64_t file_failures;
    int64_t since;
    bool told_full;
};

/* Text for the caller to free; NULL: no memory. context: the struct watch. */
char *watch_status(void *context);
char *watch_metrics(void *context);

#endif
