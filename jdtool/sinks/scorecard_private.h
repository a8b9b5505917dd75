/* What the sink that counts (scorecard.c) and its report (scorecard_report.c) share. */
#ifndef JD_TOOL_SCORECARD_PRIVATE_H
#define JD_TOOL_SCORECARD_PRIVATE_H

#include "jdtool/base/hash_map.h"
#include "jdtool/sinks/scorecard.h"

#include <stdio.h>

struct scorecard {
    struct sample_sink sink;
    struct scorecard_options options;
    const struct recording *recording;

    uint64_t samples;      /* all */
    uint64_t jvm_samples;  /* in processes that are JVMs */
    uint64_t java_samples; /* whose own address is in generated code */
    uint64_t java_samples_named;
    /* Of JVMs with a journal of threads: samples, those on virtual threads, with labels, and of
     * which the journal lacks who ran. */
    uint64_t journal_samples, virtual_samples, label_samples, unknown_samples;
    uint64_t frames; /* in generated code, inlined ones not counted */
    uint64_t frames_named;
    uint64_t interpreted;       /* of those: interpreted, with a method's name, */
    uint64_t interpreted_stubs; /* and with none but the interpreter's */
    uint64_t unnamed[UNNAMED_REASONS];
    uint64_t stacks; /* with a frame in generated code */
    uint64_t stacks_rooted;
    uint64_t stacks_frozen;    /* of parked virtual threads: neither rooted nor broken */
    uint64_t stacks_short;     /* not rooted, and two user frames or less */
    uint64_t ends[STACK_ENDS]; /* of those stacks */

    /* The same for each event of the recording, by its id. */
    struct scorecard_event {
        uint64_t samples, weight;
        uint64_t left_out; /* by a limit on how many are told */
        uint64_t frames, frames_named;
        uint64_t stacks, stacks_rooted, stacks_frozen;
    } * events;

    /* Frames with UNNAMED_NO_DUMP by process: it may have mapped its dump later. */
    struct scorecard_process {
        uint32_t pid;
        uint64_t frames;
    } * processes;
    uint32_t process_count;
    uint32_t process_room;
    struct hash_map by_pid;

    struct scorecard_image {
        const struct module *module;
        char *path;
    } * images;
    uint32_t image_count;
    uint32_t image_room;
};

/* Writes what the options ask for. 0 or a negative errno after a message. */
int scorecard_report(const struct scorecard *scorecard);

#endif
