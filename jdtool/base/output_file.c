#include "jdtool/base/output_file.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE ((size_t)256 * 1024)

struct output_file {
    int fd;
    int error; /* the first one, negative errno */
    uint64_t at;
    size_t used; /* of the buffer; it belongs at `at - used` */
    char *path;
    char *temporary; /* "": the file has no name yet */
    uint8_t buffer[BUFFER_SIZE];
};

/* NULL: no memory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

int output_path_check(const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        error_message("failed to write %s: not a regular file", path);
        return S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL;
    }
    char *directory = directory_of(path);
    int err = !directory ? -ENOMEM : 0;
    if (directory && faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) != 0) {
        err = -errno;
    }
    free(directory);
    return failed_to(err, "write %s", path);
}

void output_file_fail(struct output_file *file, int err)
{
    if (!file->error) {
        file->error = err;
    }
}

static void write_at(struct output_file *file, uint64_t offset, const uint8_t *bytes, size_t size)
{
    while (size > 0 && !file->error) {
        ssize_t n = pwrite(file->fd, bytes, size, (off_t)offset);
        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                continue;
            }
            output_file_fail(file, n < 0 ? -errno : -EIO);
            return;
        }
        bytes += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
}

static void flush(struct output_file *file)
{
    write_at(file, file->at - file->used, file->buffer, file->used);
    file->used = 0;
}

/* A file without a name in the directory of path, or -1: the file system has none. */
static int open_nameless(const char *path)
{
    char *directory = directory_of(path);
    int fd = directory ? open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    free(directory);
    return fd;
}

int output_file_open(const char *path, struct output_file **out)
{
    int err = output_path_check(path);
    if (err) {
        return err;
    }
    struct output_file *file = malloc(sizeof *file);
    if (!file) {
        return failed_to(-ENOMEM, "write %s", path);
    }
    memset(file, 0, offsetof(struct output_file, buffer)); /* whose pages are a recording's time */
    file->fd = -1;
    file->path = strdup(path);
    if (!file->path || asprintf(&file->temporary, "%s.XXXXXX", path) < 0) {
        file->temporary = NULL;
        err = -ENOMEM;
    }
    if (!err) {
        file->fd = open_nameless(path);
        if (file->fd >= 0) {
            file->temporary[0] = '\0';
        } else {
            file->fd = mkostemp(file->temporary, O_CLOEXEC); /* mode 0600 */
            err = file->fd < 0 ? -errno : 0;
        }
    }
    if (err) {
        failed_to(err, "write %s", path);
        if (file->fd < 0 && file->temporary) {
            file->temporary[0] = '\0'; /* nothing was made */
        }
        output_file_abort(file);
        return err;
    }
    *out = file;
    return 0;
}

int output_file_open_of(const char *in, const char *path, struct output_file **out)
{
    struct stat source;
    struct stat status;
    if (stat(in, &source) == 0 && stat(path, &status) == 0 && source.st_dev == status.st_dev &&
        source.st_ino == status.st_ino) {
        error_message("failed to write %s: it is the input", path);
        return -EINVAL;
    }
    return output_file_open(path, out);
}

int output_file_descriptor(const struct output_file *file)
{
    return file->fd;
}

void output_file_put(struct output_file *file, const void *bytes, size_t size)
{
    if (size > BUFFER_SIZE - file->used) {
        flush(file);
        if (size >= BUFFER_SIZE) {
            write_at(file, file->at, bytes, size);
            file->at += size;
            return;
        }
    }
    if (size > 0) {
        memcpy(file->buffer + file->used, bytes, size);
        file->used += size;
        file->at += size;
    }
}

void output_file_put_at(struct output_file *file, uint64_t offset, const void *bytes, size_t size)
{
    flush(file);
    write_at(file, offset, bytes, size);
}

void output_file_seek(struct output_file *file, uint64_t offset)
{
    flush(file);
    file->at = offset;
}

uint64_t output_file_tell(const struct output_file *file)
{
    return file->at;
}

/* Gives a file without a name its own, or one beside its place: a link cannot replace what is
 * there. */
static int name_it(struct output_file *file)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
    for (int attempt = 0; attempt < 100; attempt++) {
        free(file->temporary);
        int length = attempt == 0 ? asprintf(&file->temporary, "%s", file->path)
                                  : asprintf(&file->temporary, "%s.%d-%d", file->path,
                                             (int)getpid(), attempt);
        if (length < 0) {
            file->temporary = NULL;
            return -ENOMEM;
        }
        if (linkat(AT_FDCWD, link, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) == 0) {
            return 0;
        }
        int err = -errno;
        file->temporary[0] = '\0';
        if (err != -EEXIST) {
            return err;
        }
    }
    return -EEXIST;
}

/* A number of the environment, as sudo writes it: from 1 on. */
static bool number_of(const char *name, uid_t *number)
{
    const char *text = getenv(name);
    char *end;
    errno = 0;
    unsigned long value = text && isdigit((unsigned char)*text) ? strtoul(text, &end, 10) : 0;
    if (value == 0 || errno || *end || value >= UINT_MAX) {
        return false;
    }
    *number = (uid_t)value;
    return true;
}

bool output_caller(uid_t *uid, gid_t *gid)
{
    return geteuid() == 0 && number_of("SUDO_UID", uid) && number_of("SUDO_GID", gid);
}

void output_file_hand_over(struct output_file *file)
{
    uid_t uid;
    gid_t gid;
    struct stat status;
    if (file->fd < 0 || !output_caller(&uid, &gid)) {
        return;
    }
    char *directory = directory_of(file->path);
    bool could = directory && stat(directory, &status) == 0 &&
                 (status.st_uid == uid || (status.st_mode & S_IWOTH));
    free(directory);
    if (could && fchown(file->fd, uid, gid) != 0) {
        output_file_fail(file, -errno);
    }
}

int output_file_finish(struct output_file *file)
{
    flush(file);
    if (!file->error && file->temporary[0] == '\0') {
        output_file_fail(file, name_it(file));
    }
    if (close(file->fd) < 0) { /* NFS tells of a full disk here */
        output_file_fail(file, -errno);
    }
    file->fd = -1;
    if (!file->error && strcmp(file->temporary, file->path) != 0 &&
        rename(file->temporary, file->path) < 0) {
        output_file_fail(file, -errno);
    }
    int err = file->error;
    if (err) {
        failed_to(err, "write %s", file->path);
    } else {
        file->temporary[0] = '\0';
    }
    output_file_abort(file);
    return err;
}

void output_file_abort(struct output_file *file)
{
    if (!file) {
        return;
    }
    descriptor_close(file->fd);
    if (file->temporary && file->temporary[0]) {
        unlink(file->temporary);
    }
    free(file->temporary);
    free(file->path);
    free(file);
}
