/*
 * The one way jdtool tells the user something: "jdtool: failed to X for Y: reason" on stderr.
 */
#ifndef JD_TOOL_MESSAGE_H
#define JD_TOOL_MESSAGE_H

void error_message(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warning_message(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
