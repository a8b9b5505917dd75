/* What the stack of an event tells: where the program's own part of it begins, what it is about. */
#ifndef JD_TOOL_EVENT_FRAMES_H
#define JD_TOOL_EVENT_FRAMES_H

#include "jdtool/events/event_rule.h"
#include "jdtool/resolve/frame.h"

/*
 * The first Java frame, from the innermost on: what is further in is the JVM on its way to the
 * event, and our own callback. `count`: there is none.
 */
uint32_t event_frames_java(const struct resolved_frame *frames, uint32_t count);

/*
 * The class of the exception whose stack trace is filled in: that of the outermost constructor of
 * those that call each other. A class that throws in its own constructor is known by its name,
 * which does not end as exceptions' do. NULL: not known.
 */
const char *event_frames_exception(const struct resolved_frame *frames, uint32_t count);

/* Whether a thread of that name (is_first: its process' first) with that stack waits for work to
 * come, as those of a pool do, and keeps nobody waiting. Until a thread has its name it has that of
 * the one that made it. */
bool event_frames_idle(const struct resolved_frame *frames, uint32_t count, const char *comm,
                       bool is_first);

/* The name of the frame that idle waits have for a root. */
#define EVENT_IDLE "[idle]"

#endif
