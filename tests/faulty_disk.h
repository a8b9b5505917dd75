/*
 * A disk that can be told to be slow of understanding, or full. For tests that are linked with
 * -Wl,--wrap=pwrite, so that what the writer calls pwrite comes here first.
 */
#ifndef JD_TESTS_FAULTY_DISK_H
#define JD_TESTS_FAULTY_DISK_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

static struct {
    size_t chunk;   /* takes at most so many bytes at once; 0: all */
    bool interrupt; /* every second call is interrupted */
    uint64_t room;  /* bytes that the disk has left when `error` is set */
    int error;      /* what a write beyond them fails with; 0: there is always room */
    unsigned calls;
} faulty_disk;

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset);

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
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
    return __real_pwrite(fd, bytes, size, offset);
}

#endif
