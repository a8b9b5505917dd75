#include "jdtool/live/perf_map.h"

#include "jdtool/base/message.h"
#include "jdtool/live/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool perf_map_is_elsewhere(const struct target *target)
{
    return !target->same_files || target->ns_pid != target->process.pid;
}

/* A new file in our /tmp, which becomes the map by a rename: whoever has put something there
 * before, a link say, does not have us write elsewhere. */
struct new_map {
    int tmp;
    int fd;
    char name[48];
    char temporary[64];
};

static int new_map_open(struct new_map *map, pid_t pid)
{
    snprintf(map->name, sizeof map->name, "perf-%d.map", (int)pid);
    snprintf(map->temporary, sizeof map->temporary, ".%s.%d", map->name, (int)getpid());
    map->fd = -1;
    map->tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (map->tmp >= 0) {
        (void)unlinkat(map->tmp, map->temporary, 0);
        map->fd = openat(map->tmp, map->temporary,
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return map->fd < 0 ? -errno : 0;
}

static int new_map_finish(struct new_map *map, int err)
{
    if (map->fd >= 0 && close(map->fd) != 0 && !err) {
        err = -errno;
    }
    if (map->fd >= 0 && !err && renameat(map->tmp, map->temporary, map->tmp, map->name) != 0) {
        err = -errno;
    }
    if (map->fd >= 0 && err) {
        (void)unlinkat(map->tmp, map->temporary, 0);
    }
    if (map->tmp >= 0) {
        close(map->tmp);
    }
    return err;
}

/* Of the map of a JVM that sees other files; a method takes some 100 bytes. */
#define MAP_DATA_MAX (256ULL << 20)

static int copy_all(int from, int to)
{
    int err = copy_file_data(from, to, MAP_DATA_MAX);
    if (err == -EFBIG) {
        info_message("the map is cut after %llu MB, which is all that is taken of one",
                     MAP_DATA_MAX >> 20);
        err = 0;
    }
    return err;
}

static int fail(pid_t pid, int err)
{
    error_message("failed to write /tmp/perf-%d.map: %s", (int)pid, strerror(-err));
    return err;
}

int perf_map_publish(const struct target *target)
{
    char path[64];
    if (!perf_map_is_elsewhere(target)) {
        return 0;
    }
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)target->ns_pid);
    int from = target_open_file(target, path);
    if (from < 0) {
        return -ENOENT;
    }
    struct new_map map;
    int err = new_map_open(&map, target->process.pid);
    err = new_map_finish(&map, err ? err : copy_all(from, map.fd));
    close(from);
    return err ? fail(target->process.pid, err) : 0;
}

int perf_map_from_dump(const struct target *target, const char *dump, struct waiting *waiting)
{
    int from = target_open_file(target, dump);
    char path[64];
    if (from < 0) {
        error_message("failed to open %s of process %d: %s", dump, (int)target->process.pid,
                      strerror(-from));
        return from;
    }
    struct new_map map;
    struct child child = NO_CHILD;
    int err = new_map_open(&map, target->process.pid);
    snprintf(path, sizeof path, "/proc/self/fd/%d", from);
    if (!err) {
        char *const arguments[] = {"/proc/self/exe", "map", path, NULL};
        struct child_options options = {.arguments = arguments,
                                        .in = -1,
                                        .out = map.fd,
                                        .err = STDERR_FILENO,
                                        .keep = &from,
                                        .keep_count = 1,
                                        .own_group = true,
                                        .death_signal = SIGKILL};
        err = child_start(&child, &options);
    }
    if (!err) {
        err = child_wait(&child, waiting, deadline_in(60000), true);
        err = !err && child.status ? -EIO : err;
    }
    child_end(&child);
    err = new_map_finish(&map, err);
    close(from);
    return err && err != -EINTR ? fail(target->process.pid, err) : err;
}

long perf_map_count(const struct target *target, char path[64])
{
    struct stat status;
    char text[65536];
    snprintf(path, 64, "/tmp/perf-%d.map", (int)target->process.pid);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        int err = fd < 0 ? -errno : -EINVAL;
        if (fd >= 0) {
            close(fd);
        }
        return err;
    }
    long count = 0;
    ssize_t n;
    while ((n = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < n; i++) {
            count += text[i] == '\n';
        }
    }
    close(fd);
    return count;
}
