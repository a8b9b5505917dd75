#include "jdtool/live/profile_dir.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char first_line[] = "jdperf-profile=1\n";

/* Behind a name stand ".old" and ".PID". */
enum { NAME_ROOM = 24 };

static int open_directory(int parent, const char *name)
{
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static bool is_profile(int directory)
{
    char line[sizeof first_line] = "";
    int fd = openat(directory, "profile", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, line, sizeof line - 1) == (ssize_t)sizeof line - 1 &&
              strcmp(line, first_line) == 0;
    descriptor_close(fd);
    return is;
}

static const char *our_name(void)
{
    const struct passwd *user = getpwuid(geteuid());
    return user ? user->pw_name : "us";
}

/* ---- Where it is to be ---- */

/* "a/b/c": opens a/b; the name is c. */
static int split(struct profile_dir *profile, char *path, const char *given)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (strlen(name) + NAME_ROOM > NAME_MAX) {
        error_message("the name of the output directory is too long");
        return STATUS_USAGE;
    }
    memcpy(profile->name, name, strlen(name) + 1);
    if (slash) {
        *slash = '\0';
    }
    const char *parent = !slash ? "." : *path ? path : "/";
    profile->parent = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (profile->parent < 0) {
        error_message("failed to create %s: directory %s does not exist", given, parent);
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

/* As the kernel calls it. */
static int name_it(struct profile_dir *profile, const char *given)
{
    char parent[PATH_MAX];
    bool has_name = descriptor_path(profile->parent, parent);
    int n = snprintf(profile->path, sizeof profile->path, "%s/%s",
                     strcmp(parent, "/") == 0 ? "" : parent, profile->name);
    if (!has_name || n >= PATH_MAX - 64) {
        error_message("failed to find %s: %s", given, strerror(has_name ? ENAMETOOLONG : errno));
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

/* Opens what is there, unless nothing is; what is ours to use: empty, or a profile. */
static int look_at_it(struct profile_dir *profile)
{
    struct stat status;
    int directory = profile->directory = open_directory(profile->parent, profile->name);
    if (directory < 0 && errno == ENOENT) {
        return STATUS_DONE;
    }
    bool is = directory >= 0 && is_profile(directory);
    if (directory < 0 || (!is && !directory_is_empty(directory))) {
        error_message("%s exists and is not a profile of jdperf; use another -o DIR",
                      profile->path);
        return STATUS_FAILED;
    }
    /* Whoever it belongs to could put links into it, through which we would write elsewhere. */
    if (!is && (fstat(directory, &status) != 0 || status.st_uid != geteuid())) {
        error_message("%s is another user's directory; use another -o DIR", profile->path);
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

/* Commas part the agent's options, '=' HotSpot's -agentpath. */
static bool agent_takes(const char *path)
{
    return !strpbrk(path, ",\"'\n");
}

int profile_choose(struct profile_dir *profile, const char *given)
{
    char path[PATH_MAX];
    char resolved[PATH_MAX];
    size_t length = strlen(given);
    *profile = NO_PROFILE_DIR;
    while (length > 0 && given[length - 1] == '/') {
        length--;
    }
    if (length == 0 || length >= PATH_MAX - 64) {
        error_message(length ? "the path of the output directory is too long"
                             : "the output directory cannot be /");
        return STATUS_USAGE;
    }
    memcpy(path, given, length);
    path[length] = '\0';
    const char *name = basename(path);
    bool has_no_name = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (has_no_name && (!realpath(path, resolved) || !resolved[1])) {
        error_message("failed to find %s: %s", path, strerror(resolved[1] ? errno : EISDIR));
        return STATUS_FAILED;
    }
    int status = split(profile, has_no_name ? resolved : path, given);
    status = status ? status : name_it(profile, given);
    status = status ? status : look_at_it(profile);
    if (!status && !agent_takes(profile->path)) {
        error_message(
            "the agent cannot be given a directory with a comma, a quote or a line break in its "
            "path: %s",
            profile->path);
        status = STATUS_USAGE;
    }
    return status;
}

void profile_dir_close(struct profile_dir *profile)
{
    descriptor_close(profile->directory);
    descriptor_close(profile->parent);
    profile->directory = profile->parent = -1;
}

/* ---- Making it ---- */

static void identify(struct guarded_directory *one, const struct stat *status)
{
    one->device = status->st_dev;
    one->inode = status->st_ino;
}

/* Said before it is done, so that it is undone in any case. */
static int move(int parent, const char *from, const char *to, struct guarded_directory *moved)
{
    struct stat status;
    snprintf(moved->name, sizeof moved->name, "%s", to);
    if (renameat(parent, from, parent, to) != 0) {
        failed_to(-errno, "rename %s to %s", from, to);
        moved->name[0] = '\0';
        return STATUS_FAILED;
    }
    if (fstatat(parent, to, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        identify(moved, &status);
    }
    return STATUS_DONE;
}

/* Renames an earlier profile out of the way, and one before that. */
static int put_aside(struct profile_dir *profile)
{
    struct guarded_profile *guarded = profile->guarded;
    int parent = profile->parent;
    char earlier[NAME_MAX + 1];
    char older[NAME_MAX + 1];
    int status = STATUS_DONE;
    snprintf(earlier, sizeof earlier, "%.*s.old", NAME_MAX - NAME_ROOM, profile->name);
    snprintf(older, sizeof older, "%.*s.%d", NAME_MAX - 12, earlier, (int)getpid());
    int fd = open_directory(parent, earlier);
    if (fd >= 0 || errno != ENOENT) {
        bool is = fd >= 0 && is_profile(fd);
        if (!is) {
            error_message("failed to move the earlier profile: %s.old exists and is not a profile; "
                          "remove it or use another -o DIR",
                          profile->path);
        }
        status = is ? move(parent, earlier, older, &guarded->older) : STATUS_FAILED;
    }
    descriptor_close(fd);
    status = status ? status : move(parent, profile->name, earlier, &guarded->earlier);
    close(profile->directory);
    profile->directory = -1;
    return status;
}

/* Ours, and empty still when nobody else may write into it any more. */
static int take_over(const struct profile_dir *profile)
{
    struct stat status;
    int err = fchmod(profile->directory, 0700) != 0 || fstat(profile->directory, &status) != 0
                  ? -errno
                  : 0;
    if (!err && status.st_uid != geteuid()) {
        err = -EPERM;
    }
    return err ? err : directory_is_empty(profile->directory) ? 0 : -ENOTEMPTY;
}

static int make_new(struct profile_dir *profile, bool *made)
{
    if (mkdirat(profile->parent, profile->name, 0700) != 0) {
        int err = errno;
        error_message("failed to make %s: its directory is not writable for %s (%s); use -o with a "
                      "directory that is",
                      profile->path, our_name(), strerror(err));
        return STATUS_FAILED;
    }
    *made = true;
    profile->directory = open_directory(profile->parent, profile->name);
    int err = profile->directory < 0 ? -errno : take_over(profile);
    return failed_to(err, "open %s, because it was replaced", profile->path) ? STATUS_FAILED
                                                                             : STATUS_DONE;
}

static int make(struct profile_dir *profile, const char *given)
{
    struct guarded_profile *guarded = profile->guarded;
    struct stat status;
    int result = STATUS_DONE;
    snprintf(guarded->itself.name, sizeof guarded->itself.name, "%s", profile->name);
    if (profile->directory < 0) {
        result = make_new(profile, &guarded->made);
    } else {
        int err = take_over(profile);
        if (err) {
            failed_to(err, "take over the empty directory %s", given);
            return STATUS_FAILED;
        }
        guarded->inside = true;
    }
    if (!result && fstat(profile->directory, &status) == 0) {
        identify(&guarded->itself, &status);
    }
    return result;
}

int profiles_make(const char *given, int *directory)
{
    struct profile_dir profiles;
    bool made;
    int status = profile_choose(&profiles, given);
    if (!status && profiles.directory >= 0) {
        error_message("%s exists already; use another -o DIR", profiles.path);
        status = STATUS_USAGE;
    }
    status = status ? status : make_new(&profiles, &made);
    *directory = status ? -1 : fcntl(profiles.directory, F_DUPFD_CLOEXEC, 10);
    if (!status && *directory < 0) {
        failed_to(-errno, "open %s", profiles.path);
        status = STATUS_FAILED;
    }
    profile_dir_close(&profiles);
    return status;
}

int profile_create(struct profile_dir *profile, struct guarded_profile *guarded, const char *given)
{
    static const struct guarded_directory none;
    profile->guarded = guarded;
    guarded->made = guarded->inside = false;
    guarded->itself = guarded->earlier = guarded->older = none;
    guarded->parent = profile->parent;
    atomic_store(&guarded->unsettled, true);
    int status = profile->directory >= 0 && is_profile(profile->directory) ? put_aside(profile)
                                                                           : STATUS_DONE;
    status = status ? status : make(profile, given);
    snprintf(profile->at, sizeof profile->at, "/proc/%d/fd/%d", (int)getpid(), profile->directory);
    char created[64];
    time_t now = time(NULL);
    struct tm local;
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &local));
    if (!status && (profile_set(profile->directory, NULL, NULL) ||
                    profile_set(profile->directory, "created", created))) {
        error_message(
            "failed to write into %s: is the disk full? Use -o with a directory on another disk",
            given);
        status = STATUS_FAILED;
    }
    return status;
}

int profile_set(int directory, const char *key, const char *value)
{
    int fd =
        openat(directory, "profile", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "ae") : NULL;
    if (!file) {
        int err = -errno;
        descriptor_close(fd);
        return err;
    }
    fputs(key ? key : first_line, file);
    if (key) {
        putc('=', file);
        for (; *value; value++) {
            putc(*value == '\n' ? ' ' : *value, file);
        }
        putc('\n', file);
    }
    int err = ferror(file) ? -EIO : 0;
    return fclose(file) != 0 && !err ? -errno : err;
}

/* ---- Its end ---- */

/* What is in it, and where `whole` itself, if it is still the one that stands there. */
static void remove_known(int parent, const struct guarded_directory *one, bool whole)
{
    struct stat status;
    int fd = one->name[0] ? open_directory(parent, one->name) : -1;
    bool is = fd >= 0 && fstat(fd, &status) == 0 && status.st_dev == one->device &&
              status.st_ino == one->inode;
    if (is) {
        remove_contents(fd);
    }
    descriptor_close(fd);
    if (whole && fd >= 0) { /* which takes nothing but an empty one */
        (void)unlinkat(parent, one->name, AT_REMOVEDIR);
    }
}

void profile_settle(struct profile_dir *profile)
{
    struct guarded_profile *guarded = profile->guarded;
    atomic_store(&guarded->unsettled, false);
    if (guarded->earlier.name[0]) {
        info_message("the earlier profile is now %s.old", profile->path);
    }
}

void profile_remove_older(const struct profile_dir *profile)
{
    remove_known(profile->parent, &profile->guarded->older, true);
}

void profile_undo(struct guarded_profile *guarded)
{
    char old[NAME_MAX + 1];
    if (!atomic_exchange(&guarded->unsettled, false)) {
        return;
    }
    if (guarded->made || guarded->inside) {
        remove_known(guarded->parent, &guarded->itself, guarded->made);
    }
    snprintf(old, sizeof old, "%s", guarded->earlier.name);
    if (old[0]) {
        char name[NAME_MAX + 1];
        snprintf(name, sizeof name, "%.*s", (int)(strlen(old) - strlen(".old")), old);
        (void)renameat(guarded->parent, old, guarded->parent, name);
    }
    if (guarded->older.name[0]) {
        snprintf(old, sizeof old, "%.*s",
                 (int)(strrchr(guarded->older.name, '.') - guarded->older.name),
                 guarded->older.name);
        (void)renameat(guarded->parent, guarded->older.name, guarded->parent, old);
    }
}
