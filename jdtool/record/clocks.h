/*
 * The processor time that the kernel accounts to JVMs while they are sampled, read from their own
 * clocks (clock_getcpuclockid: nanoseconds, ended threads included), for the scorecard. A clock is
 * there until its process is reaped: of a command of ours and of what lives the last reading is
 * exact, of a JVM that somebody else reaps it is as old as the last look, and what it may have had
 * since is told beside it.
 */
#ifndef JD_TOOL_RECORD_CLOCKS_H
#define JD_TOOL_RECORD_CLOCKS_H

#include "jdtool/live/process.h"
#include "jdtool/live/wait.h"

#include <stdint.h>
#include <sys/stat.h>

struct clocks {
    const char *profile; /* NULL: nothing is read */
    bool of_machine;
    bool of_command;
    unsigned long long start; /* of the recording, in the unit of /proc/PID/stat's start time */
    int64_t begun;            /* the same, ms */
    uint64_t listed;          /* when the directory was changed whose dumps are known; 0: not */
    int changes;              /* an inotify of it; 0: there is none */
    int watch;                /* its only one */
    unsigned left_out;        /* of the events that were asked for: enum left_out */
    struct stat libjvm;       /* that has the recording's probes; st_ino 0: none has */
    struct jvm_clock {
        struct live_process process;
        int64_t since;        /* it is known, ms */
        uint64_t begin, last; /* ns */
        int64_t read_at;      /* the last time, ms; 0: never */
        int64_t looked_at;    /* the last look, ms: if it has ended, the first one behind that */
        bool has_ended, is_exact;
        bool is_jvm;                 /* a command need not be one */
        bool is_judged, is_unprobed; /* whether its libjvm.so was looked at, and is another */
        ino_t dump;                  /* in the profile; 0: none is known */
    } * jvms;
    uint32_t count, room;
};

/* From now on; `profile` stays the caller's. With a command all JVMs count that have a dump in the
 * profile, with `of_machine` all that are there. command 0: there is none. */
void clocks_start(struct clocks *clocks, const char *profile, pid_t command, bool of_machine);

/* A JVM that runs already: its time counts from now on. */
void clocks_add(struct clocks *clocks, pid_t pid);

/* One that began behind clocks_start, and has no dump in the profile: all of its time counts. */
void clocks_add_begun(struct clocks *clocks, pid_t pid);

/* wait_for with until_ended, that meanwhile looks for JVMs that begin with a dump in the profile,
 * and at the clocks. `descriptors` has room for one more. */
int clocks_wait(struct clocks *clocks, struct waiting *waiting, struct pollfd *descriptors,
                unsigned count, int64_t deadline);

/* The last look, when perf no longer samples and still is there; leaves the file in the profile. */
void clocks_finish(struct clocks *clocks);

void clocks_free(struct clocks *clocks);

#endif
