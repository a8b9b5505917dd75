#include "jdtool/perf/perf_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The shell takes the variable's value as one word, whatever is in it. */
#define PERF "\"${PERF:-perf}\" "

int perf_major_version(void)
{
    int major = 0;
    FILE *perf = popen(PERF "--version 2>/dev/null", "re"); /* NOLINT(cert-env33-c) */
    if (!perf) {
        return 0;
    }
    static const char prefix[] = "perf version ";
    char line[256];
    if (fgets(line, sizeof line, perf) && strncmp(line, prefix, sizeof prefix - 1) == 0) {
        major = (int)strtol(line + sizeof prefix - 1, NULL, 10);
    }
    pclose(perf);
    return major;
}

bool perf_has_libunwind(void)
{
    bool has = true;
    /* NOLINTNEXTLINE(cert-env33-c) */
    FILE *perf = popen(PERF "version --build-options 2>/dev/null", "re");
    if (!perf) {
        return has;
    }
    char line[256];
    while (fgets(line, sizeof line, perf)) {
        /* "libunwind: [ on ]"; another line is about libunwind for other architectures. */
        const char *option = line + strspn(line, " ");
        if (strncmp(option, "libunwind:", strlen("libunwind:")) == 0) {
            has = strstr(option, "[ on") != NULL;
        }
    }
    pclose(perf);
    return has;
}
