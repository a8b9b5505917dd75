#include "jdtool/perf/perf_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int perf_major_version(void)
{
    int major = 0;
    /* The shell takes the variable's value as one word, whatever is in it. */
    FILE *perf = popen("\"${PERF:-perf}\" --version 2>/dev/null", "re"); /* NOLINT(cert-env33-c) */
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
