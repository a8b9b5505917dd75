#include "jdtool/base/verb.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int wrong_usage(const struct verb *verb, const char *format, ...)
{
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof(reason), format, args);
    va_end(args);
    error_message("%s: %s", verb->name, reason);
    fprintf(stderr, "usage: jdtool %s %s\n", verb->name, verb->usage);
    return STATUS_USAGE;
}

int next_option(const struct verb *verb, int argc, char **argv, const char *letters,
                const struct option *options)
{
    /* A leading ':' tells a missing value from an unknown option, and keeps getopt silent. */
    char silent[64];
    snprintf(silent, sizeof(silent), ":%s", letters);
    int letter = getopt_long(argc, argv, silent, options, NULL);
    if (letter != '?' && letter != ':') {
        return letter;
    }
    wrong_usage(verb, letter == ':' ? "option '%s' needs a value" : "unknown option '%s'",
                argv[optind - 1]);
    return '?';
}

int finish_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return STATUS_DONE;
    }
    error_message("failed to write the output: %s", strerror(errno));
    return STATUS_FAILED;
}
