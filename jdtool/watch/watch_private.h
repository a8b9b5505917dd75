/* Between the loop (watch.c) and what it tells of itself (report.c). */
#ifndef JD_TOOL_WATCH_WATCH_PRIVATE_H
#define JD_TOOL_WATCH_WATCH_PRIVATE_H

#include "jdtool/live/process.h"
#include "jdtool/watch/doors.h"
#include "jdtool/watch/feed.h"
#include "jdtool/watch/finder.h"
#include "jdtool/watch/keeper.h"
#include "jdtool/watch/slicing.h"
#include "jdtool/watch/watch.h"

struct watched_totals {
    uint64_t slices, samples, frames, unnamed, cpu_ns;
};

/*
 *     WAITS ──> ATTACHES ──> WATCHED ──> ENDS ──> forgotten
 *       ^── failed ──┴── dropped ┘   the JVM has ended, its last slice has not come
 */
enum watched_state { WATCHED_WAITS, WATCHED_ATTACHES, WATCHED, WATCHED_ENDS };

struct watched_process {
    struct live_process process;
    uid_t uid;
    enum watched_state state;
    struct labels labels; /* once it was attached to */
    struct watched_totals totals;
    uint64_t cpu_before; /* by slicers before this one */
    int64_t next_try;
    unsigned tries;
    char trouble[256]; /* why the last try failed, "": it did not */
    uint32_t share;    /* of a processor, in hundredths of a percent; 0: no limit */
    uint32_t one_in;   /* of its samples is taken */
    /* When the window began over which the share is held: */
    uint64_t window_cpu, window_samples;
    uint64_t samples; /* that have come to this slicer */
    bool is_settled;  /* its first window, which has its files to read, is over */
};

struct watch {
    const struct watch_options *options;
    struct waiting waiting;
    struct finder *finder;
    struct slice_files *files;
    struct pusher *pusher;
    struct doors *doors;
    struct feed *feed;
    struct keeper keeper;
    struct slicing slicing;
    struct pollfd *polled;
    struct watched_process *jvms[WATCHED_MAX];
    size_t count;
    struct watched_totals gone; /* of JVMs that have ended */
    uint64_t ended, refused;    /* JVMs: that have ended, beyond WATCHED_MAX */
    uint64_t file_failures;
    int64_t since;
    bool told_full;
    bool is_ending;        /* nothing is begun any more */
    bool slicer_is_to_end; /* it was told so */
    int64_t slicer_next_try, keeper_next_try;
    unsigned slicer_tries;
    uint64_t lost, lost_before;    /* samples, by the slicer that runs and those before it */
    int64_t window_end, next_hold; /* ms */
    uint64_t window_cpu;           /* of all */
    int64_t paused_since;          /* ms; 0: perf samples */
    uint64_t paused_ns;
};

/* What all processes have used, and hold now. */
uint64_t watch_cpu_ns(const struct watch *watch);
uint64_t watch_rss(const struct watch *watch);
uint64_t watch_rss_of(pid_t process);

/* Text for the caller to free; NULL: no memory. context: the struct watch. */
char *watch_status(void *context);
char *watch_metrics(void *context);

/* The last that a process of ours has said in such a file, without "jdperf: " in front. */
void watch_last_words(int says, char *why, size_t size);

#endif
