/* Where dumps lie: the files that processes map, and those that options name. */
#include "jdtool/base/array.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/resolve/dumps_private.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool dump_files_has_name(const char *path)
{
    const char *name = base_name(path);
    if (strncmp(name, "jit-", 4) != 0 || !isdigit((unsigned char)name[4])) {
        return false;
    }
    name += 4;
    while (isdigit((unsigned char)*name)) {
        name++;
    }
    return strcmp(name, ".dump") == 0;
}

/* ---- Finding the file ---- */

struct marker *dump_files_marker(const struct dumps *dumps, uint32_t pid, const char *path)
{
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        if (dumps->markers[i].pid == pid && strcmp(dumps->markers[i].path, path) == 0) {
            return &dumps->markers[i];
        }
    }
    return NULL;
}

static bool is_of_another(const struct dumps *dumps, const struct marker *own, uint64_t inode)
{
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        const struct marker *other = &dumps->markers[i];
        if (other->pid != own->pid && strcmp(other->path, own->path) == 0 &&
            other->inode == inode) {
            return own->inode != 0;
        }
    }
    return false;
}

/* Below the process' root no link is followed, which would lead into our own files: the kernel
 * recorded the path without any. */
static bool stat_in_root(uint32_t pid, const char *path, struct stat *status)
{
    char name[48];
    snprintf(name, sizeof name, "/proc/%u/root", pid);
    int root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = root < 0 ? -1 : open_below(root, path, O_PATH);
    bool is = fd >= 0 && fstat(fd, status) == 0;
    if (fd >= 0) {
        close(fd);
    }
    if (root >= 0) {
        close(root);
    }
    return is;
}

/*
 * Where the file may be: the recorded path; the same in the root directory of the process, which
 * may live in a container; beside the recording, where it was copied. Path names are used again
 * (pids repeat, in containers above all), so a file with the recorded inode goes first, and one
 * that another JVM of the recording mapped under this name is that one's.
 */
bool dump_files_find(const struct dumps *dumps, const struct marker *marker, char path[PATH_MAX])
{
    char candidates[3][PATH_MAX];
    const char *recording = perf_data_path(dumps->data);
    int directory = (int)(base_name(recording) - recording);
    int sizes[3] = {
        snprintf(candidates[0], PATH_MAX, "%s", marker->path),
        snprintf(candidates[1], PATH_MAX, "/proc/%u/root%s", marker->pid, marker->path),
        snprintf(candidates[2], PATH_MAX, "%.*s%s", directory, recording, base_name(marker->path)),
    };
    bool found = false;
    for (int i = 0; i < 3; i++) {
        struct stat status;
        bool is = sizes[i] < PATH_MAX && (i == 1 ? stat_in_root(marker->pid, marker->path, &status)
                                                 : stat(candidates[i], &status) == 0);
        if (!is || !S_ISREG(status.st_mode)) {
            continue;
        }
        bool same = marker->inode && status.st_ino == marker->inode;
        if (same || (!found && !is_of_another(dumps, marker, status.st_ino))) {
            memcpy(path, candidates[i], PATH_MAX);
            found = true;
        }
        if (same) {
            break;
        }
    }
    return found;
}

int dumps_notice(struct dumps *dumps, const struct mapping *mapping)
{
    uint32_t pid = mapping->pid;
    char path[PATH_MAX];
    if (!mapping->executable || !dump_files_has_name(mapping->path) ||
        dump_files_marker(dumps, pid, mapping->path)) {
        return 0;
    }
    char *kept = strdup(mapping->path);
    if (!kept || array_reserve(&dumps->markers, dumps->marker_count, &dumps->marker_room,
                               sizeof *dumps->markers)) {
        free(kept);
        return -ENOMEM;
    }
    struct marker *marker = &dumps->markers[dumps->marker_count++];
    *marker = (struct marker){.pid = pid, .path = kept, .inode = mapping->inode, .fd = -1};
    if (dumps->options.live && dump_files_find(dumps, marker, path)) {
        marker->opened = strdup(path);
        marker->fd = marker->opened ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    }
    return 0;
}

static void free_marker(struct marker *marker)
{
    if (marker->fd >= 0) {
        (void)close(marker->fd);
    }
    free(marker->path);
    free(marker->opened);
}

void dump_files_gone(struct dumps *dumps, const struct process *process)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        if (dumps->markers[i].process == process->number) {
            free_marker(&dumps->markers[i]);
        } else {
            dumps->markers[left++] = dumps->markers[i];
        }
    }
    dumps->marker_count = left;
}

void dump_files_free(struct dumps *dumps)
{
    for (uint32_t i = 0; i < dumps->marker_count; i++) {
        free_marker(&dumps->markers[i]);
    }
    free(dumps->markers);
    free(dumps->named);
}

/* ---- Dumps that options name ---- */

int dump_files_read_named(struct dumps *dumps)
{
    uint32_t count = dumps->options.named_count;
    dumps->named = calloc(count + (size_t)1, sizeof *dumps->named);
    if (!dumps->named) {
        return dumps_no_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        struct named_dump *named = &dumps->named[i];
        struct jitdump_reader *reader;
        struct stat status;
        named->path = dumps->options.named[i];
        int err = dumps->options.live ? jitdump_reader_follow(named->path, &reader)
                                      : jitdump_reader_open(named->path, &reader);
        if (!err) {
            named->header = *jitdump_reader_header(reader);
            named->readable = true;
            jitdump_reader_close(reader);
        } else if (err != -EINVAL) {
            return err;
        } /* no dump, or one that was killed before its header: the others are not to suffer */
        named->inode = stat(named->path, &status) == 0 ? status.st_ino : 0;
    }
    dumps->unused = count;
    return 0;
}

/* How far from its beginning, by its header, a dump would have been mapped at that time; 0: nobody
 * can tell. */
static uint64_t distance_of(const struct named_dump *named, uint64_t from)
{
    uint64_t began = named->header.timestamp;
    if (!named->readable || from == 0 || (named->header.flags & JITDUMP_FLAGS_ARCH_TIMESTAMP)) {
        return 0;
    }
    return began > from ? began - from : from - began;
}

struct named_dump *dump_files_named_for(const struct dumps *dumps, const struct marker *marker,
                                        uint64_t from)
{
    struct named_dump *by_name = NULL;
    struct named_dump *by_pid = NULL;
    uint64_t least = MAPS_WITHIN;
    for (uint32_t i = 0; i < dumps->options.named_count; i++) {
        struct named_dump *named = &dumps->named[i];
        if (named->used) {
            continue;
        }
        if (strcmp(base_name(named->path), base_name(marker->path)) == 0) {
            if (marker->inode && marker->inode == named->inode) {
                return named;
            }
            uint64_t distance = distance_of(named, from);
            if (distance <= least && (!by_name || distance < least)) {
                by_name = named;
                least = distance;
            }
        } else if (!by_pid && named->readable && named->header.pid == marker->pid) {
            by_pid = named;
        }
    }
    return by_name ? by_name : by_pid;
}

void dumps_tell_unused(const struct dumps *dumps)
{
    for (uint32_t i = 0; i < dumps->options.named_count; i++) {
        const struct named_dump *named = &dumps->named[i];
        if (!named->used && named->readable) {
            warning_message("no process of this recording is the JVM of %s (pid %u); it is left "
                            "out",
                            named->path, named->header.pid);
        }
    }
}
