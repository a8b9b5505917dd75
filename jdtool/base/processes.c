#include "jdtool/base/processes.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

const char *process_stat_field(const char *text, int number)
{
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < number; field++) {
        at = strchr(at + 1, ' ');
    }
    return at ? at + 1 : NULL;
}

void process_root_read(int directory, struct process_root *root)
{
    ssize_t length = readlinkat(directory, "root", root->path, sizeof root->path - 1);
    root->path[length > 1 ? length : 0] = '\0'; /* "/" is in front of every path */
}

const char *process_path(const struct process_root *root, const char *path)
{
    size_t length = strlen(root->path);
    return strncmp(path, root->path, length) == 0 && path[length] == '/' ? path + length : path;
}
