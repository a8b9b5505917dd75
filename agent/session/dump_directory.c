/*
 * A path is walked component by component, each opened relative to the one before, so what was
 * checked is what is used, whoever moves things meanwhile.
 */
#include "agent/session/dump_directory.h"

#include "agent/session/options.h"
#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* As many symbolic links as the kernel itself follows on one path. */
enum { LINKS_MAX = 40, NAMES_TRIED = 1000 };

/* A walk: the directory that was reached, and where it is. */
struct walk {
    int fd;
    char path[PATH_MAX]; /* without symbolic links; "" is the root */
    char rest[PATH_MAX]; /* of the way, relative to it */
    unsigned links;
    char foreign[PATH_MAX]; /* the first directory on the way that somebody else owns; "": none */
    uid_t owner;            /* of that */
};

static int fail(const char *what, const char *path, int error)
{
    message(MESSAGE_ERROR, "failed to %s the directory %s: %s", what, path, strerror(error));
    return -error;
}

static long read_number(const char *path)
{
    char text[32] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0) {
        close(fd);
    }
    return n > 0 ? strtol(text, NULL, 10) : -1;
}

/* Whether this user namespace knows every user. One that does not shows strangers, the real root
 * among them, all as the same "overflow" user. */
static bool knows_all_users(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long inside = 0;
    unsigned long outside = 0;
    unsigned long count = 0;
    char line[128] = "";
    if (map) {
        if (!fgets(line, sizeof(line), map)) {
            line[0] = '\0';
        }
        fclose(map);
    }
    char *end = line;
    inside = strtoul(end, &end, 10);
    outside = strtoul(end, &end, 10);
    count = strtoul(end, &end, 10);
    return !map || (inside == 0 && outside == 0 && count == UINT32_MAX);
}

static bool is_trusted(uid_t owner)
{
    if (owner == 0 || owner == geteuid()) {
        return true;
    }
    return (long)owner == read_number("/proc/sys/kernel/overflowuid") && !knows_all_users();
}

static int refuse(const char *what, const char *path, uid_t owner)
{
    message(MESSAGE_ERROR,
            "failed to use the %s %s: it belongs to user %lu, who could lead the dump elsewhere; "
            "only root's and those of user %lu are used",
            what, path, (unsigned long)owner, (unsigned long)geteuid());
    return -EPERM;
}

/* Appends a component to a path. False: there is no room. */
static bool append(char path[PATH_MAX], const char *name)
{
    size_t n = strlen(path);
    int more = snprintf(path + n, PATH_MAX - n, "/%s", name);
    return more >= 0 && (size_t)more < PATH_MAX - n;
}

/* Takes the next component off the way. False: it is at its end. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 1])
{
    size_t skip = strspn(walk->rest, "/");
    size_t length = strcspn(walk->rest + skip, "/");
    if (length == 0) {
        return false;
    }
    snprintf(name, NAME_MAX + 1, "%.*s", (int)length, walk->rest + skip);
    memmove(walk->rest, walk->rest + skip + length, strlen(walk->rest + skip + length) + 1);
    return true;
}

static int start_at_root(struct walk *walk)
{
    if (walk->fd >= 0) {
        close(walk->fd);
    }
    walk->path[0] = '\0';
    walk->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return walk->fd < 0 ? fail("open", "/", errno) : 0;
}

/* Puts what a link says in its place on the way. */
static int follow(struct walk *walk, const char *name)
{
    char target[PATH_MAX];
    char rest[PATH_MAX];
    ssize_t n = readlinkat(walk->fd, name, target, sizeof(target) - 1);
    if (n < 0) {
        return fail("follow", name, errno);
    }
    target[n] = '\0';
    int length = snprintf(rest, sizeof(rest), "%s/%s", target, walk->rest);
    if (++walk->links > LINKS_MAX || length < 0 || (size_t)length >= sizeof(rest)) {
        return fail("follow", name, ELOOP);
    }
    memcpy(walk->rest, rest, (size_t)length + 1);
    return target[0] == '/' ? start_at_root(walk) : 0;
}

/* Up one directory, for a link's "..": the path has none left but what was walked down. */
static int go_up(struct walk *walk)
{
    char way[PATH_MAX * 2];
    char *last = strrchr(walk->path, '/');
    if (last) {
        *last = '\0';
    }
    int length = snprintf(way, sizeof(way), "%s/%s", walk->path, walk->rest);
    if (length < 0 || length >= PATH_MAX) {
        return fail("open", walk->path, ENAMETOOLONG);
    }
    memcpy(walk->rest, way, (size_t)length + 1);
    return start_at_root(walk);
}

/* Goes into a component; the last one is made when it is missing. */
static int enter(struct walk *walk, const char *name)
{
    struct stat status;
    bool last = strspn(walk->rest, "/") == strlen(walk->rest);
    if (last && !walk->foreign[0] && mkdirat(walk->fd, name, 0700) != 0 && errno != EEXIST) {
        append(walk->path, name);
        return fail("make", walk->path, errno);
    }
    if (fstatat(walk->fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode)) {
        if (is_trusted(status.st_uid) && !walk->foreign[0]) {
            return follow(walk, name);
        }
        append(walk->path, name);
        return refuse("symbolic link", walk->path, status.st_uid);
    }
    int fd = openat(walk->fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        int error = errno;
        append(walk->path, name);
        if (fd >= 0) {
            close(fd);
        }
        return fail("open", walk->path, error);
    }
    close(walk->fd);
    walk->fd = fd;
    if (!append(walk->path, name)) {
        return fail("open", walk->path, ENAMETOOLONG);
    }
    if (!is_trusted(status.st_uid) && !walk->foreign[0]) {
        memcpy(walk->foreign, walk->path, sizeof(walk->foreign));
        walk->owner = status.st_uid;
    }
    return 0;
}

/*
 * A directory that was made for us in somebody else's, as jdperf makes one where sudo was called:
 * it is ours, and closed to all others. They can put only one in its place that is the same, and
 * lies beside it: to move a directory into another one takes the right to write to it.
 */
static bool is_private(const struct walk *walk)
{
    struct stat status;
    return fstat(walk->fd, &status) == 0 && status.st_uid == geteuid() && !(status.st_mode & 077);
}

/* Walks to a directory. Its descriptor, or a negative errno after a message; `out` is where it is.
 */
static int walk_to(const char *path, char out[PATH_MAX])
{
    struct walk walk = {.fd = -1};
    char here[PATH_MAX] = "";
    if (path[0] != '/' && !getcwd(here, sizeof(here))) {
        return fail("find", ".", errno);
    }
    int length = snprintf(walk.rest, sizeof(walk.rest), "%s/%s", here, path);
    int result = length < 0 || (size_t)length >= sizeof(walk.rest)
                     ? fail("open", path, ENAMETOOLONG)
                     : start_at_root(&walk);
    char name[NAME_MAX + 1];
    while (result == 0 && next_name(&walk, name)) {
        if (strcmp(name, ".") == 0) {
            continue;
        }
        result = strcmp(name, "..") == 0 ? go_up(&walk) : enter(&walk, name);
    }
    if (result == 0 && walk.foreign[0] && !is_private(&walk)) {
        result = refuse("directory", walk.foreign, walk.owner);
    }
    if (result != 0) {
        if (walk.fd >= 0) {
            close(walk.fd);
        }
        return result;
    }
    snprintf(out, PATH_MAX, "%s", walk.path[0] ? walk.path : "/");
    return walk.fd;
}

/* Makes a directory of a new name in one, whose path `out` is, and becomes the new one's. Its
 * descriptor, or a negative errno after a message. */
static int make_new(int directory, char out[PATH_MAX])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    const size_t stem = strlen(out);
    char name[64] = "";
    int error = -EEXIST;
    for (int tries = 0; tries < NAMES_TRIED && error == -EEXIST; tries++) {
        struct timespec now;
        struct tm day;
        clock_gettime(CLOCK_REALTIME, &now);
        size_t length = localtime_r(&now.tv_sec, &day)
                            ? strftime(name, sizeof(name), "java-jit-%Y%m%d.", &day)
                            : (size_t)snprintf(name, sizeof(name), "java-jit-");
        /* Only to be unlike others': what is there already is not taken. */
        uint64_t number = ((uint64_t)now.tv_nsec << 24 ^ (uint64_t)getpid() << 4 ^
                           (uint64_t)now.tv_sec ^ (uint64_t)tries) *
                          UINT64_C(0x9e3779b97f4a7c15);
        for (int i = 0; i < 8; i++) {
            number ^= number >> 29;
            name[length++] = letters[number % (sizeof(letters) - 1)];
            number /= sizeof(letters) - 1;
        }
        name[length] = '\0';
        error = mkdirat(directory, name, 0700) == 0 ? 0 : -errno;
    }
    if (error || !append(out, name)) {
        out[stem] = '\0';
        return fail("make a directory in", out, error ? -error : ENAMETOOLONG);
    }
    int own = openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return own < 0 ? fail("open", out, errno) : own;
}

static int make_default(char out[PATH_MAX])
{
    const char *what = "the environment variable JITDUMPDIR";
    const char *base = getenv("JITDUMPDIR");
    if (!base || !*base) {
        what = "the environment variable HOME";
        base = getenv("HOME");
    }
    if (!base || !*base) {
        what = "the current directory";
        base = ".";
    }
    char error[OPTIONS_ERROR_MAX];
    if (options_check_path(what, base, error)) {
        message(MESSAGE_ERROR, "%s", error);
        return -EINVAL;
    }
    char path[PATH_MAX];
    static const char *const parts[] = {"", "/.debug", "/.debug/jit"};
    int directory = -1;
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        if (directory >= 0) {
            close(directory);
        }
        snprintf(path, sizeof(path), "%s%s", base, parts[i]);
        directory = walk_to(path, out);
        if (directory < 0) {
            return directory;
        }
    }
    int own = make_new(directory, out);
    close(directory);
    return own;
}

int dump_directory_make(const char *given, char out[PATH_MAX])
{
    return given[0] ? walk_to(given, out) : make_default(out);
}
