/* Descriptors of files; -1 is none. */
#ifndef JD_TOOL_DESCRIPTOR_H
#define JD_TOOL_DESCRIPTOR_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Closes it, where it is one. */
static inline void descriptor_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* In a process that was forked: closes all of its parent's but the first three and these, of which
 * some may be none. Linux 5.9; before that they stay open. */
static inline void descriptors_close_but(const int *keep, size_t count)
{
    for (unsigned from = STDERR_FILENO + 1; from;) {
        unsigned next = UINT_MAX;
        for (size_t i = 0; i < count; i++) {
            next = keep[i] >= 0 && (unsigned)keep[i] >= from && (unsigned)keep[i] < next
                       ? (unsigned)keep[i]
                       : next;
        }
        if (next > from) {
            (void)syscall(SYS_close_range, from, next == UINT_MAX ? next : next - 1, 0);
        }
        from = next + 1; /* 0 behind the last */
    }
}

/* Writes all of it; blocks. 0 or a negative errno. */
static inline int descriptor_write(int fd, const void *bytes, size_t size)
{
    for (const char *at = bytes; size > 0;) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* Reads [offset, offset + size) of a file into `to`, fewer bytes where the file ends: how many, or
 * a negative errno. */
static inline ssize_t descriptor_read_at(int fd, void *to, size_t size, uint64_t offset)
{
    size_t have = 0;
    while (have < size) {
        ssize_t n = pread(fd, (char *)to + have, size - have, (off_t)(offset + have));
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n == 0) {
            break;
        }
        have += n > 0 ? (size_t)n : 0;
    }
    return (ssize_t)have;
}

/* As the kernel calls what is open. False: it has no name. */
static inline bool descriptor_path(int fd, char path[PATH_MAX])
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = '\0';
    return path[0] == '/';
}

/* Reads the beginning of a small text file, in `directory` or AT_FDCWD, through no link at the
 * path's end, NUL behind it: how many bytes; "" and a negative errno where it cannot be read. */
static inline ssize_t descriptor_text(int directory, const char *path, char *text, size_t size)
{
    int fd = openat(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    n = n < 0 ? -errno : n;
    descriptor_close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n;
}

#endif
