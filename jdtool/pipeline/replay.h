/*
 * Saved samples (saved.h), given to a sink as if they came from a recording.
 *
 * Such a file may come from somebody else: all that it says is checked.
 */
#ifndef JD_TOOL_REPLAY_H
#define JD_TOOL_REPLAY_H

#include "jdtool/resolve/sample_sink.h"

struct replay_options {
    const char *input;
    /* Open the dumps, beside the file or where they were, so that code has bytes; one that is not
     * there, or another one, is no failure. */
    bool wants_code;
};

/* Whether a file holds saved samples: false, too, when it cannot be read. */
bool replay_knows(const char *path);

/* Reads it to its end. The sink is used up, on failure too. 0 or a negative errno after a
 * message. */
int replay_run(const struct replay_options *options, struct sample_sink *sink);

#endif
