/* The labels that a program has set on a thread: lines of "key=value" (struct resolved_thread). */
#ifndef JD_TOOL_THREAD_LABELS_H
#define JD_TOOL_THREAD_LABELS_H

#include <stdbool.h>
#include <stddef.h>

/* The most of a key or a value; the journal holds less (THREADS_TEXT_MAX). What saved samples have
 * beyond it is cut. */
#define THREAD_LABEL_MAX 2048

/* Calls `take` for each; a line without '=' has the value "". 0 or what `take` returned. */
int labels_each(const char *labels, int (*take)(void *context, const char *key, const char *value),
                void *context);

/* The value of a key, in `value`. False: there is none; labels may be NULL. */
bool labels_value(const char *labels, const char *key, char value[THREAD_LABEL_MAX]);

/* Whether one of the lines fits: "key=value", where * and ? are wildcards, or a key alone. */
bool labels_fit(const char *labels, const char *pattern);

#endif
