#include "jdtool/base/processes.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>

void processes_walk(bool (*take)(void *context, pid_t pid), void *context)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    bool more = true;
    while (processes && more && (entry = readdir(processes))) {
        char *end;
        long pid = strtol(entry->d_name, &end, 10);
        if (!*end && pid > 0 && pid <= INT_MAX) {
            more = take(context, (pid_t)pid);
        }
    }
    if (processes) {
        closedir(processes);
    }
}
