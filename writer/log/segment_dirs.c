/*
 * The directories of segments that are there, as far as this process made them:
 *
 *   made   [0]  [1]  ...  [made_count - 1]
 *          give way ->    is written to
 *
 *   D1  Each is held by a descriptor, so that no other directory's files are removed.
 *   D2  All but the last are closed, and only of those it is known how large they are.
 */
#include "writer/log/segment_dirs.h"

#include "writer/array.h"
#include "writer/invariant.h"
#include "writer/message.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 2, NAME_BYTES = 32, SESSIONS_MAX = 1000000, NUMBERS_TRIED = 1000 };

struct made_file {
    char name[NAME_BYTES];
    dev_t device;
    ino_t inode;
};

struct made {
    char name[NAME_BYTES];
    int fd;
    uint64_t bytes;
    struct made_file files[FILES_MAX];
    unsigned file_count;
};

struct segment_dirs {
    int parent;
    char path[PATH_MAX];
    uint64_t number;   /* of the last one */
    struct made *made; /* the oldest first */
    uint32_t made_count;
    size_t made_room;
};

static int fail(const char *what, const char *path, int error)
{
    message(MESSAGE_ERROR, "failed to %s the directory %s: %s", what, path, strerror(-error));
    return error;
}

/* Whether there are segments; 1, 0, or a negative errno. */
static int has_segments(int directory)
{
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    if (!stream) {
        int error = -errno;
        if (fd >= 0) {
            close(fd);
        }
        return error;
    }
    int found = 0;
    for (struct dirent *entry; !found && (entry = readdir(stream));) {
        found = strncmp(entry->d_name, "segment-", strlen("segment-")) == 0;
    }
    closedir(stream);
    return found;
}

/* In the first session-N that was not there yet. */
static int take_session(struct segment_dirs *dirs)
{
    char name[NAME_BYTES] = "";
    int error = -EEXIST;
    for (unsigned number = 2; error == -EEXIST && number < SESSIONS_MAX; number++) {
        snprintf(name, sizeof(name), "session-%u", number);
        error = mkdirat(dirs->parent, name, 0700) == 0 ? 0 : -errno;
    }
    int fd = error ? -1 : openat(dirs->parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    error = error ? error : fd < 0 ? -errno : 0;
    size_t length = strlen(dirs->path);
    if (length + sizeof("/") + strlen(name) > sizeof(dirs->path)) {
        error = error ? error : -ENAMETOOLONG;
    } else {
        snprintf(dirs->path + length, sizeof(dirs->path) - length, "/%s", name);
    }
    if (!error) {
        close(dirs->parent);
        dirs->parent = fd;
    }
    return error;
}

int segment_dirs_open(int directory, const char *path, struct segment_dirs **out)
{
    struct segment_dirs *dirs = calloc(1, sizeof(*dirs));
    if (!dirs) {
        return fail("use", path, -ENOMEM);
    }
    snprintf(dirs->path, sizeof(dirs->path), "%s", path);
    dirs->parent =
        openat(directory, directory == AT_FDCWD ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int error = dirs->parent < 0 ? -errno : has_segments(dirs->parent);
    error = error > 0 ? take_session(dirs) : error;
    if (error) {
        fail("use", dirs->path, error);
        segment_dirs_close(dirs);
        return error;
    }
    *out = dirs;
    return 0;
}

static struct made *last(const struct segment_dirs *dirs)
{
    return &dirs->made[dirs->made_count - 1];
}

#ifdef JD_CHECK_INVARIANTS
static void check(const struct segment_dirs *dirs)
{
    for (uint32_t i = 0; i < dirs->made_count; i++) {
        invariant(D1, dirs->made[i].fd >= 0);
        invariant(D2, i + 1 < dirs->made_count || dirs->made[i].bytes == 0);
    }
}
#else
static void check(const struct segment_dirs *dirs)
{
    (void)dirs;
}
#endif

int segment_dirs_present(const struct segment_dirs *dirs)
{
    return last(dirs)->fd;
}

int segment_dirs_parent(const struct segment_dirs *dirs, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s", dirs->path);
    return dirs->parent;
}

static int make(struct segment_dirs *dirs, struct made *made)
{
    int error = -EEXIST;
    for (int i = 0; error == -EEXIST && i < NUMBERS_TRIED; i++) { /* somebody else's stays */
        snprintf(made->name, sizeof(made->name), "segment-%06llu",
                 (unsigned long long)++dirs->number);
        error = mkdirat(dirs->parent, made->name, 0700) == 0 ? 0 : -errno;
    }
    if (error) {
        return error;
    }
    made->fd = openat(dirs->parent, made->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return made->fd < 0 ? -errno : 0;
}

int segment_dirs_begin(struct segment_dirs *dirs, char path[PATH_MAX], int *fd)
{
    struct made made = {.fd = -1};
    if (!ARRAY_RESERVE(dirs->made, dirs->made_room, dirs->made_count + 1)) {
        return fail("make a segment in", dirs->path, -ENOMEM);
    }
    int error = make(dirs, &made);
    int n = snprintf(path, PATH_MAX, "%s", dirs->path);
    if (n < 0 || (size_t)n + sizeof("/") + sizeof(made.name) > PATH_MAX) {
        error = error ? error : -ENAMETOOLONG;
    } else {
        snprintf(path + n, PATH_MAX - (size_t)n, "/%s", made.name);
    }
    if (error) {
        if (made.fd >= 0) {
            close(made.fd);
        }
        return error == -ENOSPC || error == -EDQUOT ? error : fail("make", path, error);
    }
    dirs->made[dirs->made_count++] = made;
    check(dirs);
    *fd = made.fd;
    return 0;
}

void segment_dirs_add_file(struct segment_dirs *dirs, const char *name, int fd)
{
    struct made *made = last(dirs);
    struct stat status;
    if (made->file_count < FILES_MAX && fstat(fd, &status) == 0) {
        struct made_file *file = &made->files[made->file_count++];
        snprintf(file->name, sizeof(file->name), "%s", name);
        file->device = status.st_dev;
        file->inode = status.st_ino;
    }
}

/* Somebody may have put another file in ours' place, which is not ours to remove. */
static void remove_one(struct segment_dirs *dirs, struct made *made)
{
    for (unsigned i = 0; i < made->file_count; i++) {
        const struct made_file *file = &made->files[i];
        struct stat there;
        if (fstatat(made->fd, file->name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
            there.st_ino == file->inode && there.st_dev == file->device) {
            (void)unlinkat(made->fd, file->name, 0);
        }
    }
    close(made->fd);
    (void)unlinkat(dirs->parent, made->name, AT_REMOVEDIR); /* where nobody else has put anything */
}

void segment_dirs_abandon(struct segment_dirs *dirs)
{
    remove_one(dirs, last(dirs));
    dirs->made_count--;
}

void segment_dirs_closed(struct segment_dirs *dirs, uint64_t bytes)
{
    last(dirs)[-1].bytes = bytes;
}

bool segment_dirs_give_way(struct segment_dirs *dirs)
{
    if (dirs->made_count < 2) {
        return false;
    }
    remove_one(dirs, &dirs->made[0]);
    dirs->made_count--;
    memmove(dirs->made, dirs->made + 1, dirs->made_count * sizeof(*dirs->made));
    check(dirs);
    return true;
}

static uint64_t closed_bytes(const struct segment_dirs *dirs)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i + 1 < dirs->made_count; i++) {
        bytes += dirs->made[i].bytes;
    }
    return bytes;
}

void segment_dirs_keep(struct segment_dirs *dirs, uint32_t count, uint64_t bytes)
{
    while (((count && dirs->made_count > count) || (bytes && closed_bytes(dirs) > bytes)) &&
           segment_dirs_give_way(dirs)) {
    }
}

void segment_dirs_close(struct segment_dirs *dirs)
{
    if (!dirs) {
        return;
    }
    for (uint32_t i = 0; i < dirs->made_count; i++) {
        close(dirs->made[i].fd);
    }
    if (dirs->parent >= 0) {
        close(dirs->parent);
    }
    free(dirs->made);
    free(dirs);
}
