/*
 * How good a profile is: how many frames in generated code have a name, why the others have none,
 * how many stacks reach their thread's root, what got lost, and what to do about it.
 *
 * As JSON it is what scripts read:
 *   verdict                "good", "bad", or "empty" when no frame is in generated code
 *   unnamed_frames_share   of all frames in generated code; above SCORECARD_UNNAMED_LIMIT it is bad
 *   rooted_share           of all stacks with such frames; below SCORECARD_ROOTED_LIMIT it is bad
 *   warnings               what is wrong and the remedy, each a sentence
 * and the counts these are made of.
 */
#ifndef JD_TOOL_SCORECARD_H
#define JD_TOOL_SCORECARD_H

#include "jdtool/sinks/call_chains.h"
#include "jdtool/unwind/stack_copies.h"

#include <stdio.h>

/* The one place that says how many unnamed frames are too many. */
#define SCORECARD_UNNAMED_LIMIT 0.05
/* And how many stacks have to reach their root: with fewer, who called whom is guesswork. */
#define SCORECARD_ROOTED_LIMIT 0.5

/* Why a frame in generated code has no name. */
enum unnamed_reason {
    UNNAMED_NO_DUMP,     /* the JVM had no dump, or none that can be used */
    UNNAMED_BEFORE_DUMP, /* sampled before the agent was there */
    UNNAMED_AFTER_DUMP,  /* sampled behind the last record: the dump ended, or was torn */
    UNNAMED_BEFORE_LOAD, /* the code's record bears a later time */
    UNNAMED_UNKNOWN,     /* nothing was ever reported there */
    UNNAMED_REASONS,
};

struct scorecard;

/* The native code must live longer. NULL: no memory. */
struct scorecard *scorecard_new(struct native_code *native);
void scorecard_free(struct scorecard *scorecard);

/* Counts a sample as recorded (or unwound), before inlined frames are added. */
void scorecard_add(struct scorecard *scorecard, const struct process *process,
                   const struct perf_sample *sample);

/* What is known only at the end. */
struct scorecard_facts {
    const char *recording;
    const char *result;
    const struct processes *processes;
    const struct jvms *jvms;
    const char *const *images;          /* by jvm, NULL: none */
    bool had_stack_copies;              /* recorded with --call-graph dwarf */
    const struct stack_counts *unwound; /* how that ended; NULL: the copies were not unwound */
    bool has_chains;
    uint64_t malformed; /* samples that are none, and not in the result */
};

/* 0 or a negative errno after a message. */
int scorecard_write_json(const struct scorecard *scorecard, const struct scorecard_facts *facts,
                         const char *path);
void scorecard_print(const struct scorecard *scorecard, const struct scorecard_facts *facts,
                     FILE *out);

#endif
