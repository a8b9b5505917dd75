/*
 * jdperf watch: profiles of all JVMs of a machine, for as long as it runs, by three processes,
 * however many JVMs there are:
 *
 *     the watch    finds JVMs, samples them all (feed.h), writes and pushes slices, says how it
 *                  stands, and holds shares of processor and memory
 *     the keeper   attaches to JVMs and holds their sessions (keeper.h)
 *     the slicer   resolves samples and makes slices, without any rights (slicer.h)
 *
 *     JVM found ──> keeper attaches ──> the slicer gets its labels ──> its samples are taken
 *                                                                          │
 *     files, servers <── slices <── slicer <── recording, through a pipe <─┘
 *
 * A JVM whose data the slicer dies of is dropped, and tried again ever more rarely; the slicer is
 * started anew for the others. A slicer that has grown too large is started anew, too.
 */
#ifndef JD_TOOL_WATCH_WATCH_H
#define JD_TOOL_WATCH_WATCH_H

#include "jdtool/record/record.h"
#include "jdtool/watch/files.h"
#include "jdtool/watch/push.h"

#define WATCHED_MAX 256

/* How each JVM is sampled and told of. */
struct watch_jvm_options {
    unsigned slice; /* seconds */
    unsigned frequency;
    const char *event; /* NULL: what the machine has */
    enum sampler_kind sampler;
    const char *buffer; /* as perf's -m; NULL: what fits */
    unsigned stack_size;
    bool threads;              /* are told apart */
    const char *service_from;  /* see labels_set_service */
    const char *agent_options; /* "": none */
    const struct export_format *formats[SLICE_FORMATS_MAX];
    uint32_t format_count;
    const char *const *labels; /* the user's "name=value", NULL-terminated */
};

struct watch_options {
    const int *pids;    /* of -p, ended by 0; NULL: all */
    char *const *match; /* parts of names, one of which a JVM's has; NULL: all */
    const char *name;
    const char *listen;
    unsigned duration; /* seconds; 0: no end */
    /* Percent of a processor, over which fewer samples are taken: for a JVM, for all JVMs of a
     * user, for all; 0: no limit. */
    unsigned cpu_max, user_cpu_max, all_cpu_max;
    uint64_t memory_max; /* bytes of all processes, over which the slicer is started anew */
    struct watch_jvm_options jvm;
    struct slice_files_options files; /* directory NULL: none are kept */
    struct pusher_options push;
};

/* An exit status. */
int watch(const struct watch_options *options);

#endif
