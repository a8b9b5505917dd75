#include "inject/perf_version.h"

#include <stdio.h>

int perf_major_version(void)
{
    int major = 0;
    FILE *perf = popen("perf --version 2>/dev/null", "re"); /* NOLINT(cert-env33-c): no input */
    if (!perf) {
        return 0;
    }
    if (fscanf(perf, "perf version %d", &major) != 1) {
        major = 0;
    }
    pclose(perf);
    return major;
}
