/*
 * How good a profile is: how many frames in generated code have a name, why the others have none,
 * how many stacks reach their thread's root, what got lost, and what to do about it.
 *
 * As JSON it is what scripts read:
 *   verdict                "good", "bad", or "empty" when no frame is in generated code
 *   unnamed_frames_share   of all frames in generated code; above SCORECARD_UNNAMED_LIMIT it is bad
 *   rooted_share           of all stacks with such frames but the frozen ones of virtual threads,
 *                          whose callers lie in the heap; below SCORECARD_ROOTED_LIMIT it is bad
 *   events                 samples, weight, frames and stacks of each event
 *   warnings               what is wrong and the remedy, each a sentence
 * and the counts these are made of.
 */
#ifndef JD_TOOL_SCORECARD_H
#define JD_TOOL_SCORECARD_H

#include "jdtool/sinks/sample_sink.h"

/* The one place that says how many unnamed frames are too many. */
#define SCORECARD_UNNAMED_LIMIT 0.05
/* And how many stacks have to reach their root: with fewer, who called whom is guesswork. */
#define SCORECARD_ROOTED_LIMIT 0.5

struct scorecard_options {
    const char *json;   /* where it goes; NULL: nowhere */
    bool print;         /* for people, to stdout */
    const char *result; /* what was made of the recording; NULL: nothing */
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
