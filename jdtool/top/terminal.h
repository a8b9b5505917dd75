/*
 * The terminal of jdperf top. It is set up and put back by the process that lives longer than the
 * one that draws (top.h): whatever becomes of that one, the terminal is as it was.
 */
#ifndef JD_TOOL_TOP_TERMINAL_H
#define JD_TOOL_TOP_TERMINAL_H

#include <stdbool.h>

/* Pairs of colors. */
enum { TERMINAL_HOT = 1, TERMINAL_WARM };

/* Whether there is one to draw on, standard input and output. NULL, or why not, in words. */
const char *terminal_check(void);

/* Sets it up, after that. False: it cannot be. */
bool terminal_open(void);

/* The descriptor that keys come from; standard input may be another file by then. */
int terminal_keyboard(void);

/* Puts it back; safe to call again. */
void terminal_close(void);

#endif
