/*
 * How good a profile is, judged against what is independent of us: how many frames in generated
 * code have a name, how many of all user stacks of JVMs reach their thread's root, and how much of
 * the processor time that the kernel accounted to the JVMs is in their samples; what got lost, and
 * what to do about it. A JVM's samples count as its own even where the recording lost sight of it.
 *
 * As JSON it is what scripts read:
 *
 *     verdict                "good"; "fair", "bad": some limit below is not kept; "empty": no frame
 *                            is in generated code, and no time is missing
 *     verdict_reason         why not good, "; " between several; "" when it is, or nothing is there
 *     unnamed_frames_share   of all frames in generated code, and of samples in code that belongs
 *                            to no file, no dump, or a file that could not be read
 *     rooted_share           of all user stacks in JVMs but the frozen ones of virtual threads,
 *                            whose callers lie in the heap
 *     time_accounted_share   weight of the JVMs' cpu samples of the time the kernel accounted to
 *                            them; null: not known
 *     events                 samples, weight, frames and stacks of each event
 *     warnings               what is wrong and the remedy, each a sentence
 *
 * and the counts these are made of. Interpreted frames that say only "Interpreter" are those of
 * interpreted_frames that interpreted_frames_named lacks. They count like frames without a name
 * where stacks are unwound here; frame pointers cannot tell their methods, and are fair at worst.
 */
#ifndef JD_TOOL_SCORECARD_H
#define JD_TOOL_SCORECARD_H

#include "jdtool/resolve/sample_sink.h"

/* The one place that says what is good, and what is bad; what lies between is fair. */
#define SCORECARD_UNNAMED_GOOD  0.01
#define SCORECARD_UNNAMED_LIMIT 0.05
/* With fewer stacks that reach their root who called whom is guesswork. */
#define SCORECARD_ROOTED_GOOD  0.95
#define SCORECARD_ROOTED_LIMIT 0.5
/* Of several events each is judged for itself that has so many stacks: many of one hide none of
 * another. */
#define SCORECARD_EVENT_STACKS 100
/*
 * Time in the profile, as a share of what the kernel accounted. A sample falls by chance, three
 * standard deviations (of a Poisson count) of it: the profile is not good beyond a limit where one
 * that has all of the time would not be there by chance, which of 3,600 samples and more is the
 * limit itself; and bad where a profile at the limit would not be there by chance.
 */
#define SCORECARD_TIME_GOOD  0.95
#define SCORECARD_TIME_LIMIT 0.5
#define SCORECARD_TIME_ABOVE 1.05
#define SCORECARD_TIME_TWICE 2.0

/* Room for a verdict in words. */
#define SCORECARD_WORDS_MAX 512

struct scorecard_options {
    const char *json;   /* where it goes; NULL: nowhere */
    bool print;         /* for people, to stdout */
    const char *result; /* what was made of the recording; NULL: nothing */
    /* What the kernel accounted (processor_time.h), read at the end; NULL: nobody knows. */
    const char *processor_time;
    /* SCORECARD_WORDS_MAX bytes for the verdict in words, for sinks that end behind it: "good",
     * "fair: 91.2 % of ..."; "": nothing is there to judge. NULL: nobody wants them. */
    char *verdict;
};

/*
 * A sample sink that counts, and tells at its end. What it is given must live longer. NULL after a
 * message.
 */
struct sample_sink *scorecard_sink_new(const struct scorecard_options *options);

/* The image that a JVM's code is in, for the report; an image_written_fn whose context is the
 * sink. */
void scorecard_sink_image(void *sink, const struct module *module, const char *path);

#endif
