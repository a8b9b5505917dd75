#include "jdtool/base/others_file.h"
#include "jdtool/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ATTEMPTS 1000

/* ---- Opening ---- */

int open_resolved(int directory, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC), .resolve = resolve};
    int fd = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        fd = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
        if (fd >= 0 || errno != EAGAIN) {
            break;
        }
    }
    return fd < 0 ? -errno : fd;
}

/* A name in a directory, which becomes what is opened. */
static int step(int *at, const char *name, int flags)
{
    int next = strcmp(name, "..") == 0 ? -1 : openat(*at, name, flags | O_NOFOLLOW | O_CLOEXEC);
    int err = next >= 0 ? 0 : strcmp(name, "..") == 0 ? -EXDEV : -errno;
    descriptor_close(*at);
    *at = next;
    return err;
}

int open_below_by_steps(int directory, const char *path, int flags)
{
    char names[PATH_MAX];
    char *rest = names;
    size_t size = strlen(path) + 1;
    if (size > sizeof names) {
        return -ENAMETOOLONG;
    }
    memcpy(names, path, size);
    int at = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    int err = at < 0 ? -errno : 0;
    for (char *name; !err && (name = strsep(&rest, "/"));) {
        if (!rest) {
            err = step(&at, *name ? name : ".", flags);
        } else if (*name) {
            err = step(&at, name, O_PATH | O_DIRECTORY);
        }
    }
    return err ? err : at;
}

int open_below(int directory, const char *path, int flags)
{
    while (*path == '/') {
        path++;
    }
    path = *path ? path : ".";
    int fd = open_resolved(directory, path, flags,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    return fd == -ENOSYS || fd == -EPERM ? open_below_by_steps(directory, path, flags) : fd;
}

/* The mount that it lies on, by the kernel's number; -1: not known. */
static long mount_of(int fd)
{
    static const char key[] = "mnt_id:";
    char path[40];
    char line[64];
    long number = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    while (file && number < 0 && fgets(line, sizeof line, file)) {
        bool is = strncmp(line, key, sizeof key - 1) == 0;
        number = is ? strtol(line + sizeof key - 1, NULL, 10) : -1;
    }
    if (file) {
        fclose(file);
    }
    return number;
}

int open_directory_in_by_mount(int directory, const char *name)
{
    if (strchr(name, '/') || strcmp(name, "..") == 0) {
        return -EXDEV;
    }
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    long mount = mount_of(fd);
    if (mount < 0 || mount != mount_of(directory)) {
        close(fd);
        return -EXDEV;
    }
    return fd;
}

int open_directory_in(int directory, const char *name)
{
    int fd = open_resolved(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                           RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);
    return fd == -ENOSYS || fd == -EPERM ? open_directory_in_by_mount(directory, name) : fd;
}

/* The next one of a path, which becomes *at. */
static int make_step(int *at, const char *name)
{
    bool is_above = strcmp(name, "..") == 0 || strcmp(name, ".") == 0;
    int err = is_above ? -EXDEV : mkdirat(*at, name, 0700) != 0 && errno != EEXIST ? -errno : 0;
    int next = err ? -1 : openat(*at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    err = !err && next < 0 ? -errno : err;
    close(*at);
    *at = next;
    return err;
}

int make_below(int directory, const char *path)
{
    char name[NAME_MAX + 1];
    int at = fcntl(directory, F_DUPFD_CLOEXEC, 0);
    int err = at < 0 ? -errno : 0;
    while (!err && *path) {
        size_t length = strcspn(path, "/");
        snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : 0), path);
        err = length > NAME_MAX ? -ENAMETOOLONG : length ? make_step(&at, name) : 0;
        path += length + (path[length] == '/');
    }
    if (err && at >= 0) {
        close(at);
    }
    return err ? err : at;
}

/* The descriptor, when it is one of a regular file; else it is closed. */
static int regular(int fd, struct stat *status)
{
    if (fd < 0) {
        return fd;
    }
    int err = fstat(fd, status) != 0 ? -errno : S_ISREG(status->st_mode) ? 0 : -EINVAL;
    if (err) {
        close(fd);
    }
    return err ? err : fd;
}

int open_file_below(int directory, const char *path, uid_t owner, int flags)
{
    struct stat status;
    int fd = regular(open_below(directory, path, flags | O_NONBLOCK | O_NOCTTY), &status);
    if (fd >= 0 && status.st_uid != owner && status.st_uid != geteuid()) {
        close(fd);
        return -EPERM;
    }
    return fd;
}

int open_regular(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
    return regular(fd < 0 ? -errno : fd, &status);
}

char *directory_path(const char *given)
{
    struct stat status;
    char *absolute = realpath(given, NULL);
    int err = errno;
    if (!absolute && given[0] == '/' && stat(given, &status) == 0 && S_ISDIR(status.st_mode)) {
        return strdup(given);
    }
    errno = err;
    return absolute;
}

/* ---- Copying ---- */

static int copy_range(int from, int to, off_t at, off_t end)
{
    if (lseek(to, at, SEEK_SET) < 0) {
        return -errno;
    }
    while (at < end) {
        ssize_t n = sendfile(to, from, &at, (size_t)(end - at));
        if (n <= 0) {
            return n < 0 ? -errno : 0; /* it was cut meanwhile */
        }
    }
    return 0;
}

int copy_file_data(int from, int to, uint64_t limit)
{
    struct stat status;
    int err = fstat(from, &status) != 0 ? -errno : 0;
    /* No further than it is long now: one that still grows would never end. */
    for (off_t at = 0; !err && at < status.st_size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO) {
            break; /* a hole to its end */
        }
        off_t end = data < 0 ? status.st_size : lseek(from, data, SEEK_HOLE);
        data = data < 0 ? at : data; /* a file system without holes */
        end = end < 0 || end > status.st_size ? status.st_size : end;
        bool too_much = (uint64_t)(end - data) > limit;
        end = too_much ? data + (off_t)limit : end;
        err = copy_range(from, to, data, end);
        err = !err && too_much ? -EFBIG : err;
        limit -= (uint64_t)(end - data);
        at = end;
    }
    return err;
}

DIR *directory_open(int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (!entries && fd >= 0) {
        close(fd);
    }
    return entries;
}

const struct dirent *directory_next(DIR *entries)
{
    const struct dirent *entry = entries ? readdir(entries) : NULL;
    while (entry && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)) {
        entry = readdir(entries);
    }
    return entry;
}

void directory_close(DIR *entries)
{
    if (entries) {
        closedir(entries);
    }
}

bool directory_is_empty(int directory)
{
    DIR *entries = directory_open(directory, ".");
    bool is = entries && !directory_next(entries);
    directory_close(entries);
    return is;
}
