#include "writer/output_file.h"

#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { PRIVATE_MODE = 0600 };

/* Why a path is refused, as the end of a message. */
static const char *what_is_in_place(int directory, const char *name)
{
    struct stat there;
    if (fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return "something was in its place";
    }
    switch (there.st_mode & S_IFMT) {
    case S_IFREG:
        return there.st_uid == geteuid() ? "a file is in its place; remove it, then try again"
                                         : "somebody else's file is in its place";
    case S_IFLNK:
        return "a symbolic link is in its place; remove it, then try again";
    case S_IFDIR:
        return "a directory is in its place; remove it, then try again";
    case S_IFIFO:
        return "a FIFO is in its place; remove it, then try again";
    default:
        return "a device or socket is in its place";
    }
}

/*
 * A file that is open here is locked. The lock belongs to the open file, not to the process: two
 * copies of this library in one process, which know nothing of each other, see each other's. A file
 * system without locks has none to see.
 */
static bool lock(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/*
 * Removes what stands in the file's place if it is a stale file of our own. Somebody may put
 * another thing there between the look and the removal; unlink follows no link, and O_EXCL refuses
 * whatever is there afterwards.
 */
static int remove_stale(int directory, const char *name)
{
    struct stat there;
    if (fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? 0 : -errno;
    }
    if (!S_ISREG(there.st_mode) || there.st_uid != geteuid()) {
        return -EEXIST;
    }
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool in_use = fd >= 0 && !lock(fd);
    int error = in_use ? -EBUSY : unlinkat(directory, name, 0) == 0 || errno == ENOENT ? 0 : -errno;
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

/* A process may run with stderr closed: what it prints must not end up in our file. */
static int above_stderr(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int error = errno;
    close(fd);
    errno = error;
    return higher;
}

static int open_new(int directory, const char *name)
{
    int fd =
        openat(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_MODE);
    fd = above_stderr(fd);
    if (fd >= 0) {
        (void)lock(fd);
    }
    return fd;
}

static int open_private(int directory, const char *name, enum output_file_in_place in_place)
{
    int fd = open_new(directory, name);
    if (fd < 0 && errno == EEXIST && in_place == OUTPUT_FILE_REPLACE_STALE) {
        int error = remove_stale(directory, name);
        if (error) {
            return error;
        }
        fd = open_new(directory, name);
    }
    return fd < 0 ? -errno : fd;
}

int output_file_create(struct output_file *file, int directory, const char *path,
                       enum output_file_in_place in_place)
{
    *file = (struct output_file){.fd = -1, .owner = getpid(), .path = strdup(path)};
    const char *slash = strrchr(path, '/');
    const char *name = directory != AT_FDCWD && slash ? slash + 1 : path;
    int fd = file->path ? open_private(directory, name, in_place) : -ENOMEM;
    if (fd < 0) {
        const char *why = fd == -EEXIST  ? what_is_in_place(directory, name)
                          : fd == -EBUSY ? "it is being written, by another copy of the agent"
                                         : strerror(-fd);
        if (fd != -EEXIST || in_place != OUTPUT_FILE_REFUSE_QUIETLY) {
            message(MESSAGE_ERROR, "failed to create %s: %s", path, why);
        }
        output_file_release(file);
        return fd;
    }
    file->fd = fd;
    /* The umask may have taken away more than it should: the user is going to read the file. */
    if (fchmod(fd, PRIVATE_MODE) != 0) {
        int error = errno;
        message(MESSAGE_ERROR, "failed to make %s private: %s", path, strerror(error));
        output_file_discard(file);
        return -error;
    }
    struct rlimit limit;
    file->size_limited = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
    return 0;
}

/* What one record is made of, in the order in which it stands in the file. */
struct pieces {
    struct iovec *list; /* used up */
    int count;
    uint64_t hole; /* bytes of zero behind them, at the file's end */
};

/* Leaves out the first n bytes. */
static void skip(struct pieces *pieces, size_t n)
{
    while (pieces->count > 0 && n >= pieces->list->iov_len) {
        n -= pieces->list->iov_len;
        pieces->list++;
        pieces->count--;
    }
    if (pieces->count > 0) {
        pieces->list->iov_base = (char *)pieces->list->iov_base + n;
        pieces->list->iov_len -= n;
    }
}

/* Writes everything or returns a negative errno. */
static int write_all(const struct output_file *file, uint64_t offset, struct pieces pieces)
{
    skip(&pieces, 0); /* empty ones */
    while (pieces.count > 0) {
        ssize_t n = pwritev(file->fd, pieces.list, pieces.count, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? -errno : -EIO;
        }
        offset += (uint64_t)n;
        skip(&pieces, (size_t)n);
    }
    return pieces.hole && ftruncate(file->fd, (off_t)(offset + pieces.hole)) != 0 ? -errno : 0;
}

/*
 * As write_all, with SIGXFSZ blocked for this thread, and the one that our write caused (the kernel
 * sends it to the thread that wrote) taken away before it is unblocked. Three system calls more,
 * and so only where a limit was set when the file was opened. HotSpot ignores the signal anyway;
 * this is for everybody else who uses the writer.
 */
static int write_all_limited(const struct output_file *file, uint64_t offset, struct pieces pieces)
{
    sigset_t file_size;
    sigset_t before;
    sigemptyset(&file_size);
    sigaddset(&file_size, SIGXFSZ);
    int error = -pthread_sigmask(SIG_BLOCK, &file_size, &before);
    if (error) {
        return error;
    }
    error = write_all(file, offset, pieces);
    if (error == -EFBIG) {
        const struct timespec at_once = {0};
        while (sigtimedwait(&file_size, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static int write_or_close(struct output_file *file, uint64_t offset, struct pieces pieces)
{
    if (file->fd < 0) {
        return -EPIPE;
    }
    int error = file->size_limited ? write_all_limited(file, offset, pieces)
                                   : write_all(file, offset, pieces);
    if (error) {
        bool is_full = error == -ENOSPC || error == -EDQUOT;
        bool cut = ftruncate(file->fd, (off_t)file->size) == 0;
        if (cut && is_full && file->outlives_full_disk) {
            return error;
        }
        message(MESSAGE_ERROR, "failed to write %s: %s; it ends here%s", file->path,
                strerror(-error), cut ? "" : ", with a record that is not whole");
        output_file_close(file);
    }
    return error;
}

int output_file_append_pieces(struct output_file *file, struct iovec *pieces, int count,
                              uint64_t hole)
{
    uint64_t size = hole;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    int error = write_or_close(file, file->size, (struct pieces){pieces, count, hole});
    file->size += error ? 0 : size;
    return error;
}

int output_file_append(struct output_file *file, const void *record, size_t size)
{
    struct iovec piece = {(void *)record, size};
    return output_file_append_pieces(file, &piece, 1, 0);
}

int output_file_overwrite(struct output_file *file, uint64_t offset, const void *bytes, size_t size)
{
    struct iovec piece = {(void *)bytes, size};
    return write_or_close(file, offset, (struct pieces){&piece, 1, 0});
}

int output_file_replace(struct output_file *file, struct output_file *by)
{
    if (rename(by->path, file->path) != 0) {
        int error = errno;
        message(MESSAGE_ERROR, "failed to replace %s: %s", file->path, strerror(error));
        output_file_discard(by);
        return -error;
    }
    char *path = file->path;
    file->path = NULL;
    output_file_release(file);
    free(by->path);
    *file = *by;
    file->path = path;
    *by = (struct output_file){.fd = -1};
    return 0;
}

void output_file_close(struct output_file *file)
{
    if (file->fd < 0) {
        return;
    }
    struct stat written;
    if (file->path && fstat(file->fd, &written) == 0 && written.st_nlink == 0) {
        message(MESSAGE_WARNING, "somebody removed %s while it was written; its contents are lost",
                file->path);
    }
    if (file->owner == getpid()) {
        flock(file->fd, LOCK_UN); /* not left to the descriptor's end: children may have it, too */
    }
    close(file->fd);
    file->fd = -1;
}

void output_file_release(struct output_file *file)
{
    output_file_close(file);
    free(file->path);
    file->path = NULL;
}

void output_file_discard(struct output_file *file)
{
    output_file_close(file);
    if (file->path) {
        (void)unlink(file->path);
    }
    output_file_release(file);
}
