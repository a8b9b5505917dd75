/*
 * The one way jdtool tells the user something: "jdtool: failed to X for Y: reason" on stderr.
 */
#ifndef JD_TOOL_MESSAGE_H
#define JD_TOOL_MESSAGE_H

/* Whose words they are: "jdtool" unless this was called with a string that lives on. */
void message_program(const char *name);

void error_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warning_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says "failed to " what the format says, and why: an error, a negative errno, which it returns. 0:
 * says nothing. */
int failed_to(int err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What goes on, and a line that belongs to the message before it, with "    " and a word in front
 * ("" or "perf: "). */
void info_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void detail_message(const char *prefix, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
