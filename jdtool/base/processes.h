#ifndef JD_TOOL_PROCESSES_H
#define JD_TOOL_PROCESSES_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls take for every process that /proc lists, until it returns false. */
void processes_walk(bool (*take)(void *context, pid_t pid), void *context);

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
    uint64_t start, end, offset, inode;
    unsigned major, minor;
    const char *rights; /* "r-xp", and what is behind */
    char *path;         /* "": none */
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

/* Such a path as the process itself sees it: a part of the given one. */
const char *process_path(const struct process_root *root, const char *path);

#endif
