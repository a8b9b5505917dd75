/*
 * A disk that can be told to be slow of understanding, or full. For tests that are linked with
 * -Wl,--wrap=pwritev, so that what the writer calls pwritev comes here first. What is told or read
 * while a thread of the writer's writes is atomic.
 */
#ifndef JD_TESTS_FAULTY_DISK_H
#define JD_TESTS_FAULTY_DISK_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>

static struct {
    _Atomic(size_t) chunk; /* takes at most so many bytes at once; 0: all */
    atomic_bool interrupt; /* every second call is interrupted */
    _Atomic(size_t) room;  /* bytes that the disk has left when `error` is set */
    atomic_int error;      /* what a write beyond them fails with; 0: there is always room */
    atomic_uint calls;
    atomic_bool hangs; /* while it is set */
} faulty_disk;

/* As at the start, though a thread of the test before may look at it still. */
static inline void faulty_disk_mend(void)
{
    faulty_disk.chunk = 0;
    faulty_disk.interrupt = false;
    faulty_disk.room = 0;
    faulty_disk.error = 0;
    faulty_disk.calls = 0;
    faulty_disk.hangs = false;
}

ssize_t __real_pwritev(int fd, const struct iovec *parts, int count, off_t offset);
ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t offset);

ssize_t __wrap_pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    struct iovec taken[1024];
    size_t size = 0;
    while (atomic_load(&faulty_disk.hangs)) {
        usleep(1000);
    }
    if (count < 1 || count > 1024) {
        errno = EINVAL;
        return -1;
    }
    for (int i = 0; i < count; i++) {
        taken[i] = parts[i];
        size += parts[i].iov_len;
    }
    faulty_disk.calls++;
    if (faulty_disk.interrupt && faulty_disk.calls % 2 == 1) {
        errno = EINTR;
        return -1;
    }
    if (faulty_disk.chunk && size > faulty_disk.chunk) {
        size = faulty_disk.chunk;
    }
    if (faulty_disk.error) {
        if (faulty_disk.room == 0) {
            errno = faulty_disk.error;
            return -1;
        }
        size = size > faulty_disk.room ? faulty_disk.room : size;
        faulty_disk.room -= size;
    }
    for (int i = 0; i < count; i++) {
        taken[i].iov_len = taken[i].iov_len < size ? taken[i].iov_len : size;
        size -= taken[i].iov_len;
    }
    return __real_pwritev(fd, taken, count, offset);
}

#endif
