#include "jdtool/base/processes.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/others_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

pid_t process_next(DIR *numbers)
{
    const struct dirent *entry;
    while (numbers && (entry = readdir(numbers))) {
        char *end;
        long number = strtol(entry->d_name, &end, 10);
        if (!*end && number > 0 && number <= INT_MAX) {
            return (pid_t)number;
        }
    }
    return 0;
}

void processes_walk(bool (*take)(void *context, pid_t pid), void *context)
{
    DIR *processes = opendir("/proc");
    pid_t pid;
    while ((pid = process_next(processes)) && take(context, pid)) {
    }
    directory_close(processes);
}

DIR *process_threads_open(pid_t pid)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    return opendir(path);
}

static int open_of(pid_t pid, const char *name)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%d%s", (int)pid, name);
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int process_directory_open(pid_t pid)
{
    return open_of(pid, "");
}

int process_root_open(pid_t pid)
{
    return open_of(pid, "/root");
}

const char *process_stat_field(const char *text, int number)
{
    const char *at = strrchr(text, ')');
    for (int field = 2; at && field < number; field++) {
        at = strchr(at + 1, ' ');
    }
    return at ? at + 1 : NULL;
}

/* "7f12-7f34 r-xp 00001000 08:01 1234   /path" */
static bool parse_mapping(char *line, struct process_mapping *mapping)
{
    char *at = line;
    line[strcspn(line, "\n")] = '\0';
    mapping->start = strtoull(line, &at, 16);
    mapping->end = *at == '-' ? strtoull(at + 1, &at, 16) : 0;
    if (mapping->end <= mapping->start || *at != ' ' || strlen(at) <= 5) {
        return false;
    }
    mapping->rights = at + 1;
    mapping->offset = strtoull(at + 5, &at, 16);
    mapping->file.major = (unsigned)strtoul(at, &at, 16);
    mapping->file.minor = *at == ':' ? (unsigned)strtoul(at + 1, &at, 16) : 0;
    mapping->file.inode = strtoull(at, &at, 10);
    mapping->file.path = at + strspn(at, " ");
    return true;
}

void process_mappings(int fd, bool (*take)(void *context, struct process_mapping *mapping),
                      void *context)
{
    FILE *maps = fd >= 0 ? fdopen(fd, "re") : NULL;
    char *line = NULL;
    size_t room = 0;
    bool more = maps != NULL;
    while (more && getline(&line, &room, maps) > 0) {
        struct process_mapping mapping = {0};
        more = !parse_mapping(line, &mapping) || take(context, &mapping);
    }
    free(line);
    if (maps) {
        (void)fclose(maps);
    } else {
        descriptor_close(fd);
    }
}

void process_root_read(int directory, struct process_root *root)
{
    ssize_t length = readlinkat(directory, "root", root->path, sizeof root->path - 1);
    root->path[length > 1 ? length : 0] = '\0'; /* "/" is in front of every path */
}

size_t process_path_length(const char *path)
{
    static const char deleted[] = " (deleted)";
    size_t length = strlen(path);
    size_t mark = sizeof deleted - 1;
    return length > mark && strcmp(path + length - mark, deleted) == 0 ? length - mark : length;
}

const char *process_path(const struct process_root *root, const char *path)
{
    size_t length = strlen(root->path);
    return strncmp(path, root->path, length) == 0 && path[length] == '/' ? path + length : path;
}
