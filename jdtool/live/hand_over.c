#include "jdtool/live/hand_over.h"

#include "jdtool/base/message.h"
#include "jdtool/base/output_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A profile is some four deep. */
#define DEPTH_MAX 32

static int give_contents(int directory, uid_t uid, gid_t gid, int depth);

/* Whoever gets it cannot reach it before the directory is his, which is the last to be given: what
 * was looked at here is what is given. */
static int give_one(int parent, const char *name, uid_t uid, gid_t gid, int depth)
{
    struct stat status;
    int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &status) != 0 ? -errno : 0;
    if (!err && S_ISDIR(status.st_mode)) {
        int inner = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        err = inner < 0 ? -errno : give_contents(inner, uid, gid, depth - 1);
    }
    bool shared = !err && !S_ISDIR(status.st_mode) && status.st_nlink > 1;
    if (!err && !shared && fchownat(fd, "", uid, gid, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) {
        err = -errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    return err;
}

/* Closes the directory. */
static int give_contents(int directory, uid_t uid, gid_t gid, int depth)
{
    DIR *entries = fdopendir(directory);
    const struct dirent *entry;
    int err = !entries ? -errno : depth > 0 ? 0 : -ELOOP;
    while (!err && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            err = give_one(directory, entry->d_name, uid, gid, depth);
        }
    }
    if (entries) {
        closedir(entries);
    } else {
        close(directory);
    }
    return err;
}

int hand_over(int directory, const char *path)
{
    uid_t uid;
    gid_t gid;
    struct stat status;
    if (!output_caller(&uid, &gid)) {
        return 0;
    }
    int err = fstat(directory, &status) != 0 ? -errno : 0;
    if (!err && (status.st_uid != 0 || (status.st_mode & 077))) {
        err = -EPERM;
    }
    int inner = err ? -1 : openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    err = err ? err : inner < 0 ? -errno : give_contents(inner, uid, gid, DEPTH_MAX);
    err = err ? err : fchown(directory, uid, gid) != 0 ? -errno : 0;
    if (err) {
        error_message("failed to give %s to user %u, who called sudo: %s", path, (unsigned)uid,
                      strerror(-err));
    }
    return err;
}
