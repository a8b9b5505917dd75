/* jdperf map: a perf map for tools that read nothing else. */
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/live/by_hand.h"
#include "jdtool/live/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Perf maps, /tmp/perf-PID.map: the one that a JVM's agent writes, in the JVM's own /tmp and under
 * its own pid, and the one on this side, where perf, bcc and bpftrace look for it.
 */

/* Whether the JVM's map is elsewhere than where it is looked for. */
static bool perf_map_is_elsewhere(const struct target *target)
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
    descriptor_close(map->tmp);
    return err;
}

/* Of the map of a JVM that sees other files; a method takes some 100 bytes. */
#define MAP_DATA_MAX (256ULL << 20)

static int copy_all(int from, int to)
{
    int err = copy_file_data(from, to, MAP_DATA_MAX);
    if (err == -EFBIG) {
        info_message("the map is cut after %llu MB, its limit", MAP_DATA_MAX >> 20);
        err = 0;
    }
    return err;
}

static int fail(pid_t pid, int err)
{
    return failed_to(err, "write /tmp/perf-%d.map", (int)pid);
}

/* Brings the JVM's map to this side. 0 or a negative errno after a message; -ENOENT without one:
 * there is none yet. */
static int perf_map_publish(const struct target *target)
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

/* Makes the map on this side of a dump of the JVM's (its path as the JVM sees it). 0 or a negative
 * errno after a message. */
static int perf_map_from_dump(const struct target *target, const char *dump,
                              struct waiting *waiting)
{
    int from = target_open_file(target, dump);
    char path[64];
    if (from < 0) {
        return failed_to(from, "open %s of process %d", dump, (int)target->process.pid);
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

/* How many names are in the map on this side, and its path. Negative errno: there is none. */
static long perf_map_count(const struct target *target, char path[64])
{
    struct stat status;
    char text[65536];
    snprintf(path, 64, "/tmp/perf-%d.map", (int)target->process.pid);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        int err = fd < 0 ? -errno : -EINVAL;
        descriptor_close(fd);
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

struct map_options {
    bool follow;
    const char *given; /* for the agent */
};

/* dump: of a session that writes no map; "": it writes one. */
static int refresh(struct by_hand *work, const char *dump)
{
    return dump[0] ? perf_map_from_dump(&work->target, dump, &work->waiting)
                   : perf_map_publish(&work->target);
}

/* Says what there is, and keeps it up to date until a signal or the JVM's end. */
static int show(struct by_hand *work, const char *dump, bool follow)
{
    char path[64];
    int err = refresh(work, dump);
    long count = err ? err : perf_map_count(&work->target, path);
    if (count < 0) {
        if (err == -ENOENT || !err) {
            error_message("there is no perf map of process %d", (int)work->target.process.pid);
        }
        return STATUS_FAILED;
    }
    info_message("%ld names in %s", count, path);
    if (!follow) {
        return STATUS_DONE;
    }
    info_message("keeping it up to date until Ctrl-C");
    while (!work->waiting.ended_by) {
        struct pollfd ends = {.fd = work->target.process.pidfd, .events = POLLIN};
        if (wait_for(&work->waiting, &ends, 1, deadline_in(1000), true) == 0) {
            break;
        }
        err = refresh(work, dump);
        if (err && err != -EINTR && err != -ENOENT) {
            return STATUS_FAILED;
        }
    }
    return STATUS_DONE;
}

static int others_session(struct by_hand *work, bool follow)
{
    const char *dump = work->status.has_map ? "" : work->status.dump;
    int pid = (int)work->target.process.pid;
    /* Its end is not ours to decide, but while we look at it it is not to end. */
    (void)session_join(&work->session, &work->status);
    if (work->status.has_map) {
        info_message("a session in process %d already updates the map", pid);
    } else if (dump[0]) {
        /* It cannot be joined by one that writes a map; its dump holds all that one needs. */
        info_message("a session runs in process %d: making the map from its dump", pid);
    } else {
        error_message("the session in process %d writes neither a map nor a dump: jdperf stop %d "
                      "first",
                      pid, pid);
        return STATUS_FAILED;
    }
    int status = show(work, dump, follow);
    (void)session_leave(&work->session);
    return status;
}

static int own_session(struct by_hand *work, const char *options, bool follow)
{
    char text[SESSION_OPTIONS_MAX];
    session_announce_warning(&work->target);
    snprintf(text, sizeof text, "mode=map%s%s", *options ? "," : "", options);
    int err = session_start(&work->session, NULL, true, text, NULL);
    if (err == -EEXIST) { /* begun since we have asked */
        return session_status(&work->session, &work->status) ? STATUS_FAILED
                                                             : others_session(work, follow);
    }
    if (err) {
        return STATUS_FAILED;
    }
    int status = show(work, "", follow);
    if (session_leave(&work->session)) {
        status = STATUS_FAILED;
    }
    /* What the agent has written at its end. */
    if (process_lives(&work->target.process)) {
        (void)perf_map_publish(&work->target);
    }
    return status;
}

/* perf-map-agent's PERF_MAP_OPTIONS are parted by blanks. */
static char *options_of(const char *text)
{
    char *options = strdup(text ? text : "");
    char *to = options;
    for (const char *at = options; at && *at; at++) {
        bool blank = *at == ' ' || *at == '\t' || *at == '\n';
        if (!blank || (to > options && to[-1] != ',')) {
            *to = *at;
            if (blank) {
                *to = ',';
            }
            to++;
        }
    }
    while (to && to > options && to[-1] == ',') {
        to--;
    }
    if (to) {
        *to = '\0';
    }
    return options;
}

static int map(const struct verb *verb, struct by_hand *work, const void *context)
{
    const struct map_options *options = context;
    char *text = options_of(options->given);
    int status = STATUS_FAILED;
    (void)verb;
    if (text && session_status(&work->session, &work->status) == 0) {
        status = work->status.running ? others_session(work, options->follow)
                                      : own_session(work, text, options->follow);
    }
    free(text);
    return status;
}

static int run(const struct verb *verb, int argc, char **argv)
{
    static const struct verb_option table[] = {
        OPTION_FLAG("follow", 0, struct map_options, follow),
        OPTION_TEXT("agent-options", 0, struct map_options, given),
        OPTION_END,
    };
    struct map_options options = {.given = getenv("PERF_MAP_OPTIONS")};
    return by_hand(verb, argc, argv, table, &options, "of which JVM", map);
}

const struct verb live_map = {
    .name = "map",
    .run = run,
    .help = "usage: jdperf map PID [--follow] [--agent-options LIST]\n"
            "\n"
            "Writes the perf map of a JVM, /tmp/perf-PID.map, for perf top, perf report, bcc\n"
            "and bpftrace. A map has no times: it is right for the moment, and wrong for code\n"
            "that came and went.\n"
            "\n"
            "      --follow        keep it up to date until Ctrl-C\n"
            "      --agent-options LIST  names=…, unfold=…, suffixes=on and other options\n"
            "                      for the agent (default: $PERF_MAP_OPTIONS)\n"
            "\n"
            "For a JVM in a container, the map is also copied to the host's /tmp under the\n"
            "host's pid. perf top and perf report as root need -f (--force) for a map that\n"
            "belongs to another user.\n",
};
