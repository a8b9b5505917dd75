/*
 * Preloaded into a JVM: a disk that takes its time. What is written to the files below
 * $SLOW_DISK_DIR takes $SLOW_DISK_MS each time (where $SLOW_DISK_SLOW is set, only while that file
 * is there), and waits for as long as the file $SLOW_DISK_HANG is there.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static void sleep_ms(long ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static bool is_below(int fd, const char *directory)
{
    char link[64];
    char path[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    size_t length = strlen(directory);
    return n > (ssize_t)length && memcmp(path, directory, length) == 0 && path[length] == '/';
}

static void take_time(int fd)
{
    const char *directory = getenv("SLOW_DISK_DIR");
    const char *ms = getenv("SLOW_DISK_MS");
    const char *hang = getenv("SLOW_DISK_HANG");
    if (!directory || !is_below(fd, directory)) {
        return;
    }
    const char *slow = getenv("SLOW_DISK_SLOW");
    if (ms && (!slow || access(slow, F_OK) == 0)) {
        sleep_ms(strtol(ms, NULL, 10));
    }
    while (hang && access(hang, F_OK) == 0) {
        sleep_ms(10);
    }
}

__attribute__((visibility("default"))) ssize_t pwritev(int fd, const struct iovec *pieces,
                                                       int count, off_t offset)
{
    static ssize_t (*next)(int, const struct iovec *, int, off_t);
    if (!next) {
        *(void **)&next = dlsym(RTLD_NEXT, "pwritev");
    }
    take_time(fd);
    return next(fd, pieces, count, offset);
}
