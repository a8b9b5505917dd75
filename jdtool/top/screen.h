/*
 * The terminal of jdperf top: a table of the window's JVMs, threads, methods, lines or events, or
 * the stacks, the source or the machine code of one row; and the keys.
 */
#ifndef JD_TOOL_TOP_SCREEN_H
#define JD_TOOL_TOP_SCREEN_H

#include "jdtool/top/table.h"
#include "jdtool/top/window.h"

struct source_texts;
struct screen;

struct screen_options {
    const struct window *window;
    const struct top_shared *shared;
    struct source_texts *sources; /* NULL: none */
    bool one_jvm;                 /* it begins with its methods, else with the JVMs */
    const char *about;            /* the event and its rate, in words */
};

/* Options are kept, not copied. NULL: no memory. */
struct screen *screen_new(const struct screen_options *options);
void screen_free(struct screen *screen);

/* Takes the keys that have been pressed, and draws what is to be drawn. 0; -ECANCELED: the user has
 * seen enough; or -ENOMEM. */
int screen_turn(struct screen *screen);

#endif
