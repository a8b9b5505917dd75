#include "jdtool/base/message.h"

#include "jdtool/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *program = "jdtool";

void message_program(const char *name)
{
    program = name;
}

static void print(const char *kind, const char *format, va_list args)
{
    fflush(stdout);  /* so that the two streams stay in order on a terminal */
    char text[4096]; /* paths and names in it may be from a hostile file */
    vsnprintf(text, sizeof text, format, args);
    flockfile(stderr); /* a line is one thread's */
    fprintf(stderr, "%s: %s", program, kind);
    text_print(stderr, text);
    fputc('\n', stderr);
    funlockfile(stderr);
}

void error_message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("", format, args);
    va_end(args);
}

int failed_to(int err, const char *format, ...)
{
    char what[4096];
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(what, sizeof what, format, args);
        va_end(args);
        error_message("failed to %s: %s", what, strerror(-err));
    }
    return err;
}

void warning_message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("warning: ", format, args);
    va_end(args);
}

void info_message(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    print("", format, args);
    va_end(args);
}

void detail_message(const char *prefix, const char *format, ...)
{
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "    %s", prefix);
    text_print(stderr, text);
    fputc('\n', stderr);
}
