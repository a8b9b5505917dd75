/*
 * jdperf watch: profiles of all JVMs of a machine, for as long as it runs.
 *
 * This process finds JVMs, starts a process for each (jvm.h), takes their slices, writes and pushes
 * them, and answers how it stands. It resolves nothing itself, so nothing of a JVM that has ended
 * stays in it but a few numbers.
 */
#ifndef JD_TOOL_WATCH_WATCH_H
#define JD_TOOL_WATCH_WATCH_H

#include "jdtool/watch/files.h"
#include "jdtool/watch/jvm.h"
#include "jdtool/watch/push.h"

#define WATCHED_MAX 256

struct watch_options {
    const int *pids; /* of -p, ended by 0; NULL: all */
    const char *match;
    const char *name;
    const char *listen;
    unsigned duration;     /* seconds; 0: no end */
    unsigned user_cpu_max; /* percent of a processor for all JVMs of a user; 0: no limit */
    struct watch_jvm_options jvm;
    struct slice_files_options files; /* directory NULL: none are kept */
    struct pusher_options push;
};

/* An exit status. */
int watch(const struct watch_options *options);

#endif
