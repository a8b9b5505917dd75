#ifndef JD_TOOL_PROCESSES_H
#define JD_TOOL_PROCESSES_H

#include "jdtool/base/file_identity.h"

#include <dirent.h>
#include <limits.h>
#include <sys/types.h>

/* Calls take for every process that /proc lists, until it returns false. */
void processes_walk(bool (*take)(void *context, pid_t pid), void *context);

/* The threads of a process: those that process_next gives, one after the other, until it gives 0.
 * NULL, which process_next and directory_close take: it has ended. */
DIR *process_threads_open(pid_t pid);
pid_t process_next(DIR *numbers);

/* Its directory in /proc, and its root directory, to open other files below them; -1: it has ended,
 * or is not to be looked into. */
int process_directory_open(pid_t pid);
int process_root_open(pid_t pid);

/*
 * A field of the text of /proc/PID/stat, as proc(5) counts them, from the third on: where it
 * begins. The second is in parentheses and may hold anything. NULL: it has fewer.
 */
const char *process_stat_field(const char *text, int number);
#define PROCESS_STAT_STATE  3
#define PROCESS_STAT_PARENT 4
#define PROCESS_STAT_START  22 /* when it began, in ticks since the machine did */

/* A line of /proc/PID/maps. */
struct process_mapping {
    uint64_t start, end, offset;
    struct file_identity file; /* without a build-id */
    const char *rights;        /* "r-xp", and what is behind */
};

/* Calls take for each mapping in the maps that are open as fd, until it returns false; closes fd,
 * which may be -1. */
void process_mappings(int fd, bool (*take)(void *context, struct process_mapping *mapping),
                      void *context);

/* The directory that a process was chrooted to, which the kernel puts in front of the paths in its
 * maps; "": none, or it cannot be told. */
struct process_root {
    char path[PATH_MAX];
};

/* directory: /proc/PID, open. */
void process_root_read(int directory, struct process_root *root);

/* How long such a path is without the kernel's mark on a file that has no name any more. */
size_t process_path_length(const char *path);

/* Such a path as the process itself sees it: a part of the given one. */
const char *process_path(const struct process_root *root, const char *path);

#endif
