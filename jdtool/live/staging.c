#include "jdtool/live/staging.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* The first that the JVM may run code from, for the agent has to be mapped, and that has room for
 * a dump; where none has, the one with the most. */
const char *const staging_places[] = {"/tmp", "/var/tmp", "/dev/shm", NULL};

#define RANDOM_LETTERS 8

enum { LEAST_FILES = 8 }; /* the directory, the agent, the lease, and what the session writes */

/* ---- Leases ---- */

/* Locks of the open file, not of the process (F_SETLK): closing some other descriptor of the same
 * file does not give them up. */
static int lock(int lease, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    return fcntl(lease, F_OFD_SETLK, &all) == 0 ? 0 : -errno;
}

int lease_take(int lease)
{
    int err = lock(lease, F_RDLCK);
    return err == -EACCES ? -EAGAIN : err;
}

bool lease_take_over(int lease)
{
    return lock(lease, F_WRLCK) == 0;
}

bool lease_is_held(int lease)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(lease, F_OFD_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}

/* ---- Choosing ---- */

static void choose_name(char name[STAGING_NAME_MAX], pid_t pid)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    uint8_t random[RANDOM_LETTERS] = {0};
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random) {
        int64_t now = now_ms();
        memcpy(random, &now, sizeof random);
    }
    int length = snprintf(name, STAGING_NAME_MAX, "jdperf-%d.", (int)pid);
    for (int i = 0; i < RANDOM_LETTERS; i++) {
        name[length + i] = letters[random[i] % (sizeof letters - 1)];
    }
    name[length + RANDOM_LETTERS] = '\0';
}

bool staging_is_name(const char *name)
{
    static const char prefix[] = "jdperf-";
    if (strncmp(name, prefix, sizeof prefix - 1) != 0) {
        return false;
    }
    const char *at = name + sizeof prefix - 1;
    size_t digits = strspn(at, "0123456789");
    at += digits;
    size_t letters = 0;
    while (*at == '.' && isalnum((unsigned char)at[1 + letters])) {
        letters++;
    }
    return digits > 0 && *at == '.' && letters == RANDOM_LETTERS && at[1 + letters] == '\0';
}

/* A place that the JVM can write to: a directory, no link, not mounted read-only. */
static int open_place(const struct target *target, const char *path, struct statvfs *status)
{
    int fd = target_open_directory(target, path);
    if (fd >= 0 && (fstatvfs(fd, status) != 0 || (status->f_flag & ST_RDONLY))) {
        close(fd);
        fd = -EROFS;
    }
    return fd;
}

/* Up to STAGING_ENOUGH, beyond which more is not better. A file system without limits gives none.
 */
static uint64_t room_in(const struct statvfs *status)
{
    uint64_t bytes = (uint64_t)status->f_bavail * status->f_frsize;
    if (status->f_files > 0 && status->f_favail < LEAST_FILES) {
        return 0;
    }
    return status->f_blocks == 0 || bytes > STAGING_ENOUGH ? STAGING_ENOUGH : bytes;
}

/* Takes a place that is better than what we have. 0: there is no better one. */
static int plan_in(struct staging *staging, const struct target *target, const char *place)
{
    struct statvfs status = {0};
    int fd = open_place(target, place, &status);
    bool noexec = fd >= 0 && (status.f_flag & ST_NOEXEC) != 0;
    uint64_t room = fd >= 0 ? room_in(&status) : 0;
    bool better = staging->place < 0 || (staging->noexec && !noexec) ||
                  (staging->noexec == noexec && room > staging->room);
    if (fd < 0 || !better) {
        descriptor_close(fd);
        return -1;
    }
    descriptor_close(staging->place);
    staging->place = fd;
    staging->noexec = noexec;
    staging->room = room;
    snprintf(staging->path, sizeof staging->path, "%s/%s", place, staging->name);
    return noexec || room < STAGING_ENOUGH ? 1 : 0;
}

int staging_plan(struct staging *staging, const struct target *target, const char *path)
{
    *staging = NO_STAGING;
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (slash && strlen(slash + 1) < STAGING_NAME_MAX) {
        memcpy(staging->name, slash + 1, strlen(slash + 1) + 1);
    } else {
        choose_name(staging->name, target->ns_pid);
    }
    for (const char *const *place = staging_places; *place; place++) {
        bool is_there =
            slash && strncmp(path, *place, strlen(*place)) == 0 && path + strlen(*place) == slash;
        if ((!path || is_there) && plan_in(staging, target, *place) == 0) {
            return 0;
        }
    }
    if (staging->place >= 0) {
        return 0; /* it has a place at least for what is not run */
    }
    error_message("process %d cannot write to /tmp /var/tmp /dev/shm: mount a /tmp in it (docker: "
                  "--tmpfs /tmp:exec, Kubernetes: an emptyDir), or start it with the agent",
                  (int)target->process.pid);
    return -EROFS;
}

/* ---- Making ---- */

static int fail(const struct staging *staging, const struct target *target, const char *what,
                int err)
{
    failed_to(err, "%s %s of process %d", what, staging->path, (int)target->process.pid);
    staging_tell_room(staging, err);
    return err;
}

void staging_tell_room(const struct staging *staging, int err)
{
    struct statvfs status;
    bool refused = err == -ECONNREFUSED && staging->place >= 0 &&
                   fstatvfs(staging->place, &status) == 0 && room_in(&status) < STAGING_ENOUGH / 4;
    if (refused || err == -ENOSPC || err == -EDQUOT) {
        info_message("  free some space in its /tmp, /var/tmp or /dev/shm, or start it with the "
                     "agent: jdperf record -- java …");
    }
}

int staging_open(struct staging *staging)
{
    staging->directory = open_directory_in(staging->place, staging->name);
    return staging->directory < 0 ? staging->directory : 0;
}

int staging_make(struct staging *staging, const struct target *target)
{
    struct stat status;
    struct timespec before;
    clock_gettime(CLOCK_REALTIME_COARSE, &before);
    if (mkdirat(staging->place, staging->name, 0700) != 0) {
        return fail(staging, target, "make the directory", -errno);
    }
    int err = staging_open(staging);
    if (!err && fstat(staging->directory, &status) != 0) {
        err = -errno;
    }
    /* Where its /tmp is not sticky, another directory of root's might have been put in its place,
     * and would be given away with all that is in it. */
    if (!err &&
        (status.st_uid != geteuid() || (status.st_mode & 07777) != 0700 ||
         status.st_ctim.tv_sec < before.tv_sec || !directory_is_empty(staging->directory))) {
        err = -EPERM;
    }
    if (err) {
        fail(staging, target, "open the directory", err);
        staging_remove(staging);
    }
    return err;
}

int staging_make_lease(const struct staging *staging, const struct target *target)
{
    int fd = openat(staging->directory, LEASE_NAME,
                    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int err = fd < 0 ? -errno : lease_take(fd);
    if (!err && target->uid != geteuid() && fchown(fd, target->uid, target->gid) != 0) {
        err = -errno;
    }
    if (err) {
        fail(staging, target, "make a lease in", err);
        descriptor_close(fd);
    }
    return err ? err : fd;
}

int staging_refuse_noexec(const struct target *target)
{
    error_message("process %d cannot load the agent or map its dump from /tmp /var/tmp /dev/shm: "
                  "all are mounted noexec; mount one without noexec (in a container: --tmpfs "
                  "/tmp:exec), run jdperf as the JVM's user, or start the JVM with the agent",
                  (int)target->process.pid);
    return -EACCES;
}

int staging_add_agent(const struct staging *staging, const struct target *target, const char *agent)
{
    if (staging->noexec) {
        return staging_refuse_noexec(target);
    }
    int from = open(agent, O_RDONLY | O_CLOEXEC);
    int to = openat(staging->directory, "libjdagent.so",
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0500);
    int err = from < 0 || to < 0 ? -errno : copy_file_data(from, to, UINT64_MAX);
    if (!err && target->uid != geteuid() && fchown(to, target->uid, target->gid) != 0) {
        err = -errno;
    }
    descriptor_close(from);
    if (to >= 0 && close(to) != 0 && !err) {
        err = -errno;
    }
    return err ? fail(staging, target, "copy the agent to", err) : 0;
}

int staging_give(struct staging *staging, const struct target *target)
{
    if (staging->given || target->uid == geteuid()) {
        return 0;
    }
    if (fchown(staging->directory, target->uid, target->gid) != 0) {
        return fail(staging, target, "give away", -errno);
    }
    staging->given = true;
    return 0;
}

/* ---- Removing ---- */

enum { DEPTH_MAX = 64 };

static int remove_below(int parent, const char *name, int depth);

static int empty(int directory, int depth)
{
    DIR *entries = directory_open(directory, ".");
    const struct dirent *entry;
    int err = entries ? 0 : -errno;
    while ((entry = directory_next(entries))) {
        int failed = remove_below(dirfd(entries), entry->d_name, depth);
        err = err ? err : failed;
    }
    directory_close(entries);
    return err;
}

static int remove_below(int parent, const char *name, int depth)
{
    if (unlinkat(parent, name, 0) == 0) {
        return 0;
    }
    if (errno != EISDIR && errno != EPERM) {
        return -errno;
    }
    int directory = open_directory_in(parent, name);
    if (directory < 0) {
        return directory;
    }
    int err = depth == 0 ? -ELOOP : empty(directory, depth - 1);
    close(directory);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 ? 0 : (err ? err : -errno);
}

int remove_tree(int place, const char *name)
{
    return remove_below(place, name, DEPTH_MAX);
}

void remove_contents(int directory)
{
    (void)empty(directory, DEPTH_MAX);
}

void staging_close(struct staging *staging)
{
    descriptor_close(staging->directory);
    descriptor_close(staging->place);
    staging->directory = staging->place = -1;
}

void staging_remove(struct staging *staging)
{
    if (staging->place >= 0) {
        (void)remove_tree(staging->place, staging->name);
    }
    staging_close(staging);
}
