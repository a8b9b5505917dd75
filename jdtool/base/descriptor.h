/* Descriptors of files; -1 is none. */
#ifndef JD_TOOL_DESCRIPTOR_H
#define JD_TOOL_DESCRIPTOR_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

/* Closes it, where it is one. */
static inline void descriptor_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
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

#endif
