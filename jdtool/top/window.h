/*
 * The last seconds of a recording that goes on: a sink that keeps their samples as a profile, so
 * that whatever is made of a profile can be made of them.
 */
#ifndef JD_TOOL_TOP_WINDOW_H
#define JD_TOOL_TOP_WINDOW_H

#include "jdtool/profile/profile.h"

struct window;

/* Whose samples are looked at. */
struct window_choice {
    uint32_t pid, tid; /* 0: of all processes, of all threads */
};

/* length: ns. *sink is the window itself, for the stream, which frees it. 0 or -ENOMEM after a
 * message. */
int window_new(uint64_t length, struct window **window, struct sample_sink **sink);

/* What is known of the recording; NULL: it has not begun. */
const struct recording *window_recording(const struct window *window);

/* ns that samples are there of at the time `now`, the length at most. It begins anew now and then,
 * so that what it needs stays as small as what it shows. */
uint64_t window_span(const struct window *window, uint64_t now);

/*
 * The chosen samples of the window, which ends `now` (CLOCK_MONOTONIC): all but its samples is the
 * window's own. It is good until the stream goes on; free it. 0 or -ENOMEM.
 */
int window_view(const struct window *window, uint64_t now, const struct window_choice *choice,
                struct profile *view);
void window_view_free(struct profile *view);

#endif
