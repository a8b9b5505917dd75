/*
 * What the parts of a recording share: record.c leads it from beginning to end, record_perf.c has
 * perf record, record_naming.c has the code named.
 */
#ifndef JD_TOOL_RECORDER_H
#define JD_TOOL_RECORDER_H

#include "jdtool/base/packed_file.h"
#include "jdtool/live/command.h"
#include "jdtool/live/guard.h"
#include "jdtool/live/profile_dir.h"
#include "jdtool/record/clocks.h"
#include "jdtool/record/event_list.h"
#include "jdtool/record/family.h"
#include "jdtool/record/joining.h"
#include "jdtool/record/machine.h"
#include "jdtool/record/naming.h"
#include "jdtool/record/perf_run.h"
#include "jdtool/record/record.h"
#include "jdtool/sampler/sampler.h"

#include <stdbool.h>
#include <termios.h>

/* One that runs already. */
struct running_jvm {
    struct target target;
    struct joining joining;
    struct guardian guardian; /* of its session, but of the first JVM's */
};

struct recorder {
    const struct record_options *options;
    struct waiting waiting;
    struct running_jvm *jvms; /* of -p and --match, or of the command and without the agent */
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
    pid_t *sampled;     /* by it */
    bool own;           /* which is at work, in the place of perf */
    bool by_thread;     /* and samples threads, for it may not sample processors */
    bool is_user_alone; /* whoever samples may not sample the kernel */
    struct command command;
    struct family family; /* its processes */
    struct naming naming;
    struct clocks clocks;
    int64_t deadline; /* once it samples */
    int naming_in;    /* until the naming has it */
    int pipe_end; /* ours of the pipe from perf to the naming: its end is told when all is there */
    /* What the JVMs' agents have written is read seldom, once it is named: it is packed. Where the
     * recording itself is kept it stays as perf reads it. */
    struct packing **packing;
    uint32_t packing_count, packing_room;
    int pack_every;
    bool interrupted; /* by Ctrl-C, which is meant for the command, too */
    struct termios terminal;
    bool has_terminal;
    /*
     * What is not kept but looked at (jdperf top): starts who reads what is sampled, which comes on
     * `in`, in the place of the naming. There is then no profile, and a JVM that cannot be attached
     * to is left out. An exit status, after a message unless 0. NULL: it is a profile.
     */
    int (*start_reader)(struct recorder *recorder, int in);
    void *reader;
    int more; /* numbers of further processes go there to our own sampler; 0: it takes none */
};

/* JVMs of a command that began without the agent: the first place that array_reserve makes, as
 * sessions point into it. */
#define COMMAND_JVMS_MAX 64

/* A JVM's place in a recording that is not kept is its own from beginning to end. */
#define RECORDING_LOOKED_AT_MAX 256

/* Nothing has begun. NULL: no memory, after a message. */
struct recorder *recorder_new(const struct record_options *options);

/* All until it records; what fails here leaves nothing behind. An exit status. */
int recorder_begin(struct recorder *recorder);

/* Of one that is not kept, and for which our own sampler is at work: attaches to a further JVM and
 * samples it. 0 or a negative errno after a message. */
int recorder_join(struct recorder *recorder, pid_t pid);

/* The same: a JVM has ended, and its place is free. */
void recorder_leave(struct recorder *recorder, uint32_t jvm);

/* Ends whatever is still there, in the order that nobody is left waiting. */
void recorder_free(struct recorder *recorder);

/* "fp", "none", "auto", "kernel", "copy": as the profile says it. */
const char *recorder_stacks(const struct recorder *recorder);

/* Warns where copied stacks that are kept could fill the disk. */
void recorder_estimate(const struct recorder *recorder);

/* Bytes of stack that are copied for events beside the clock's, 0: none; and whether those that
 * tell how far theirs reaches go by that. */
unsigned recorder_event_stack(const struct recorder *recorder, bool *by_reach);

/* A processor's buffer, as -m has it. Each event is to be told, also in a burst, and on a machine
 * so busy that whoever reads has to wait for a processor; but all buffers together take 256 MB at
 * most. */
const char *recorder_buffer(const struct recorder *recorder);

/* Puts the kernel's probes where the JVM's files are. */
void recorder_define_probes(struct recorder *recorder);

/* Whether our own sampler is to be at work, by what is asked for and can be had; says why not where
 * that was asked for. */
void recorder_choose_sampler(struct recorder *recorder);

/* Starts perf, or our own sampler unless that is ready, waits until it samples, and starts the
 * naming behind it where it is piped. An exit status, after a message unless 0. */
int recorder_start_perf(struct recorder *recorder);

/* Has our own sampler open its events, which takes it longer than all else, in a process beside us.
 * It samples when it is started. An exit status, after a message unless 0. */
int recorder_ready_sampler(struct recorder *recorder);

/* Starts it and waits until it samples; where it has failed, recorder->own is false afterwards,
 * and nothing has happened. An exit status, after a message unless 0. */
int recorder_start_sampler(struct recorder *recorder);

/* It samples from now on: its time runs, and the JVMs' clocks count, unless it looks at a part of
 * them only, of which their time says nothing. */
void recorder_samples(struct recorder *recorder);

/* Says what is recorded, and what ends it. */
void recorder_tell(const struct recorder *recorder);

/* Ends perf. An exit status, after a message unless 0: it has recorded nothing. */
int recorder_end_perf(struct recorder *recorder);

/* Makes the pipe from perf to the naming, where there is to be one; and starts the naming, or the
 * reader, at its end. An exit status, after a message unless 0. */
int recorder_open_pipe(struct recorder *recorder);
int recorder_start_naming(struct recorder *recorder);

/* Packs a part of what the JVMs' agents have written, while it records. Returns after how many ms
 * it wants to be called again. */
int64_t recorder_pack(struct recorder *recorder);

/* Has what was recorded named, and says where to look at it. An exit status of naming_finish. */
int recorder_name(struct recorder *recorder);

/* Whom it samples: the JVMs that run already, or the command, which may not run yet; of -a nobody.
 * Returns how many; *list is for the caller to free, NULL: no memory. */
size_t recorder_processes(const struct recorder *recorder, pid_t **list);

/* The same as "4711,4712". */
char *recorder_pids(const struct recorder *recorder);

/* Words as a shell would take them, for the caller to free; NULL: no memory. */
char *quoted_command(char *const *words);

#endif
