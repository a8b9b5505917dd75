/* What the sink that counts (scorecard.c) and its report (scorecard_report.c) share. */
#ifndef JD_TOOL_SCORECARD_PRIVATE_H
#define JD_TOOL_SCORECARD_PRIVATE_H

#include "jdtool/base/hash_map.h"
#include "jdtool/score/processor_time.h"
#include "jdtool/score/scorecard.h"

#include <stdio.h>

/* What is counted of samples in JVMs: numbers alone, which are added up process by process. */
struct scorecard_tally {
    uint64_t samples;
    uint64_t generated; /* whose own address is in generated code */
    uint64_t generated_named;
    /* Of JVMs with a journal of threads: samples, those on virtual threads, with labels, and of
     * which the journal lacks who ran. */
    uint64_t journal, on_virtual, labelled, unknown;
    uint64_t frames; /* in generated code, inlined ones not counted */
    uint64_t frames_named;
    uint64_t interpreted;       /* of those: interpreted, with a method's name, */
    uint64_t interpreted_stubs; /* and with none but the interpreter's */
    uint64_t unnamed[UNNAMED_REASONS];
    uint64_t nowhere;    /* user stacks whose innermost address lies in no file and no dump, */
    uint64_t unreadable; /* and in a file that could not be read, or was refused */
    uint64_t stacks;     /* with a user part */
    uint64_t stacks_rooted;
    uint64_t stacks_frozen;    /* of parked virtual threads: neither rooted nor broken */
    uint64_t stacks_short;     /* not rooted, and two user frames or less */
    uint64_t ends[STACK_ENDS]; /* of those stacks */
    uint64_t cpu_samples;      /* of the event that weighs processor time, */
    uint64_t cpu_weight;       /* and nanoseconds */
};

/* The machine frames of the program from a stack's node on outwards. 16 bits: a record, or a copy
 * of a stack, has no room for more than 8,192 addresses. */
struct scorecard_frames {
    uint16_t is_known;
    uint16_t all;
    uint16_t generated, unnamed, interpreted; /* of those, */
    uint16_t nameless;                        /* and of the interpreter, without a method, */
    uint16_t stubs;                           /* or of which nobody looked for one */
};

/* Processes with a tally of their own; what more there are share one. */
#define SCORECARD_PROCESSES_MAX 65536

struct scorecard {
    struct sample_sink sink;
    struct scorecard_options options;
    const struct recording *recording;

    uint64_t samples; /* all */
    /* Of each process: whether it is a JVM may be known later. */
    struct scorecard_process {
        uint32_t pid;
        bool is_jvm;
        struct scorecard_tally tally;
    } * processes;
    uint32_t process_count;
    uint32_t process_room;
    struct hash_map by_pid;
    struct stack_notes frames; /* struct scorecard_frames of each node */
    struct stack_notes own;    /* the same of each location by itself */
    uint32_t *path;            /* of a new stack: its nodes, innermost first */
    uint32_t path_room;
    struct scorecard_tally jvms; /* all JVMs together, at the end */

    /* Where stacks end for want of call-frame information: the first files, and how many. */
    struct scorecard_bare {
        const struct module *module; /* NULL: free */
        uint64_t stacks;
    } bare[8];

    const struct recorded_event *cpu_event; /* NULL: there is none */
    /* What the kernel accounted to each JVM, by the end; NULL: nobody knows. */
    struct processor_time *times;
    uint32_t time_count;
    unsigned left_out; /* of the events that were asked for: enum left_out */

    /* The same for each event of the recording, by its id. */
    struct scorecard_event {
        uint64_t samples, weight;
        uint64_t left_out; /* by a limit on how many are told */
        uint64_t frames, frames_named, interpreted_stubs;
        uint64_t stacks, stacks_rooted, stacks_frozen;
    } * events;

    struct scorecard_image {
        const struct module *module;
        char *path;
    } * images;
    uint32_t image_count;
    uint32_t image_room;
};

/* ---- The verdict ---- */

enum verdict { VERDICT_GOOD, VERDICT_FAIR, VERDICT_BAD, VERDICT_EMPTY };

/* Processor time of JVMs: what the kernel accounted, and what of it is in the profile. */
struct time_account {
    bool is_known;
    uint64_t ns, more; /* as struct processor_time has them */
    uint64_t weight, samples;
    double period; /* what a sample stands for, ns */
};

struct judgement {
    enum verdict verdict;
    char reason[400]; /* "": good, or empty */
    struct time_account time;
};

/* Of one process or, pid 0, of all whose time is known together. */
struct time_account scorecard_time(const struct scorecard *scorecard, uint32_t pid);

/* NAN: not known. */
double time_accounted_share(const struct time_account *time);

/* By the limits of scorecard.h. */
enum verdict judge_time(const struct time_account *time);

double scorecard_unnamed_share(const struct scorecard *scorecard);
double scorecard_rooted_share(const struct scorecard *scorecard);

/* Whether the JVM does not provide the event. */
bool scorecard_lacks(const struct scorecard *scorecard, const struct recorded_jvm *jvm,
                     const char *event);

/* Whether its libjvm.so is another than the one with the recording's probes. */
bool scorecard_is_unprobed(const struct scorecard *scorecard, uint32_t pid);

/* Stacks that could reach their root: those of parked virtual threads cannot. */
uint64_t scorecard_judged_stacks(const struct scorecard *scorecard);

void scorecard_judge(const struct scorecard *scorecard, struct judgement *judgement);
const char *verdict_name(enum verdict verdict);

/* The same in words, "" of an empty one: the one place that makes them. */
void verdict_words(const struct judgement *judgement, char words[SCORECARD_WORDS_MAX]);

/* ---- The report (scorecard_report.c) ---- */

/* Writes what the options ask for. 0 or a negative errno after a message. */
int scorecard_report(const struct scorecard *scorecard);

#endif
