/*
 * What the parts of a recording share: record.c leads it from beginning to end, record_perf.c has
 * perf record, record_naming.c has the code named.
 */
#ifndef JD_TOOL_LIVE_RECORDING_H
#define JD_TOOL_LIVE_RECORDING_H

#include "jdtool/live/command.h"
#include "jdtool/live/guard.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/record/clocks.h"
#include "jdtool/record/event_list.h"
#include "jdtool/record/joining.h"
#include "jdtool/record/machine.h"
#include "jdtool/record/naming.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/record/record.h"
#include "jdtool/sampler/sampler.h"

#include <stdbool.h>
#include <termios.h>

/* One that runs already. */
struct recorded_jvm {
    struct target target;
    struct joining joining;
    struct guardian guardian; /* of its session, but of the first JVM's */
};

struct recording {
    const struct record_options *options;
    struct waiting waiting;
    struct recorded_jvm *jvms; /* of -p and --match; NULL: none */
    uint32_t jvm_count, jvm_room;
    struct guardian guardian; /* of the profile, the probes, and the first JVM's session */
    struct profile_dir profile;
    struct machine machine; /* of -a */
    char *event;
    bool copied;   /* stacks are copied */
    bool walks;    /* and most of them are walked in the kernel instead */
    bool discards; /* perf.data goes when it was named well */
    bool piped;    /* perf writes into a pipe, nothing raw is kept */
    unsigned frequency;
    struct event_list events; /* beside that one */
    struct perf_run perf;
    struct sampler_options sampler; /* of our own */
    struct sampler_event sampled_events[SAMPLER_EVENTS_MAX];
    pid_t *sampled; /* by it */
    bool own;       /* which is at work, in the place of perf */
    bool by_thread; /* and samples threads, for it may not sample processors */
    struct command command;
    struct naming naming;
    struct clocks clocks;
    int naming_in; /* until the naming has it */
    int pipe_end;  /* ours of the pipe from perf to the naming: its end is told when all is there */
    bool interrupted; /* by Ctrl-C, which is meant for the command, too */
    struct termios terminal;
    bool has_terminal;
    /*
     * What is not kept but looked at (jdperf top): starts who reads what is sampled, which comes on
     * `in`, in the place of the naming. There is then no profile, and a JVM that cannot be attached
     * to is left out. An exit status, after a message unless 0. NULL: it is a profile.
     */
    int (*start_reader)(struct recording *recording, int in);
    void *reader;
    int more; /* numbers of further processes go there to our own sampler; 0: it takes none */
};

/* A JVM's place in a recording that is not kept is its own from beginning to end. */
#define RECORDING_LOOKED_AT_MAX 256

/* Nothing has begun. NULL: no memory, after a message. */
struct recording *recording_new(const struct record_options *options);

/* All until it records; what fails here leaves nothing behind. An exit status. */
int recording_begin(struct recording *recording);

/* Of one that is not kept, and for which our own sampler is at work: attaches to a further JVM and
 * samples it. 0 or a negative errno after a message. */
int recording_join(struct recording *recording, pid_t pid);

/* The same: a JVM has ended, and its place is free. */
void recording_leave(struct recording *recording, uint32_t jvm);

/* Ends whatever is still there, in the order that nobody is left waiting. */
void recording_free(struct recording *recording);

/* "fp", "none", "auto", "kernel", "copy": as the profile says it. */
const char *recording_stacks(const struct recording *recording);

/* Warns where copied stacks that are kept could fill the disk. */
void recording_estimate(const struct recording *recording);

/* Bytes of stack that are copied for events beside the clock's, 0: none; and whether those that
 * tell how far theirs reaches go by that. */
unsigned recording_event_stack(const struct recording *recording, bool *by_reach);

/* A processor's buffer, as -m has it. Each event is to be told, also in a burst, and on a machine
 * so busy that whoever reads has to wait for a processor; but all buffers together take 256 MB at
 * most. */
const char *recording_buffer(const struct recording *recording);

/* Puts the kernel's probes where the JVM's files are. */
void recording_define_probes(struct recording *recording);

/* Whether our own sampler is to be at work, by what is asked for and can be had; says why not where
 * that was asked for. */
void recording_choose_sampler(struct recording *recording);

/* Starts perf, or our own sampler unless that is ready, and the naming behind it where it is piped,
 * and waits until it samples. An exit status, after a message unless 0. */
int recording_start_perf(struct recording *recording);

/* Has our own sampler open its events, which takes it longer than all else, in a process beside us.
 * It samples when it is started. An exit status, after a message unless 0. */
int recording_ready_sampler(struct recording *recording);

/* Starts it and waits until it samples; where it has failed, recording->own is false afterwards,
 * and nothing has happened. An exit status, after a message unless 0. */
int recording_start_sampler(struct recording *recording);

/* Says what is recorded, and what ends it. */
void recording_tell(const struct recording *recording);

/* Ends perf. An exit status, after a message unless 0: it has recorded nothing. */
int recording_end_perf(struct recording *recording);

/* Makes the pipe from perf to the naming, where there is to be one; and starts the naming, or the
 * reader, at its end. An exit status, after a message unless 0. */
int recording_open_pipe(struct recording *recording);
int recording_start_naming(struct recording *recording);

/* Has what was recorded named, and says where to look at it. An exit status of naming_finish. */
int recording_name(struct recording *recording);

/* The JVMs that run already, "4711,4712", or the command; for the caller to free; NULL: no memory.
 */
char *recording_pids(const struct recording *recording);

/* Words as a shell would take them, for the caller to free; NULL: no memory. */
char *quoted_command(char *const *words);

#endif
