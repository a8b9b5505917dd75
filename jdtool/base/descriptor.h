/* Descriptors of files; -1 is none. */
#ifndef JD_TOOL_DESCRIPTOR_H
#define JD_TOOL_DESCRIPTOR_H

#include <errno.h>
#include <stddef.h>
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

#endif
