/* In the place of base/message.c, all of it: nearly every input is an error, and nobody reads them.
 */
#ifndef JD_FUZZ_SILENT_H
#define JD_FUZZ_SILENT_H

#include "jdtool/base/message.h"

void message_program(const char *name)
{
    (void)name;
}

void error_message(const char *format, ...)
{
    (void)format;
}

int failed_to(int err, const char *format, ...)
{
    (void)format;
    return err;
}

void warning_message(const char *format, ...)
{
    (void)format;
}

void info_message(const char *format, ...)
{
    (void)format;
}

void detail_message(const char *prefix, const char *format, ...)
{
    (void)prefix;
    (void)format;
}

#endif
