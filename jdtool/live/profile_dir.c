#include "jdtool/live/profile_dir.h"

#include "jdtool/base/message.h"
#include "jdtool/base/verb.h"
#include "jdtool/live/staging.h"

#include <dirent.h>
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

static bool is_profile(const char *path)
{
    char name[PATH_MAX + 16];
    char line[sizeof first_line] = "";
    snprintf(name, sizeof name, "%s/profile", path);
    int fd = open(name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, line, sizeof line - 1) == (ssize_t)sizeof line - 1 &&
              strcmp(line, first_line) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return is;
}

static bool is_empty(const char *path)
{
    DIR *entries = opendir(path);
    struct dirent *entry;
    int count = 0;
    while (entries && (entry = readdir(entries))) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    if (entries) {
        closedir(entries);
    }
    return entries && count == 0;
}

static const char *our_name(void)
{
    const struct passwd *user = getpwuid(geteuid());
    return user ? user->pw_name : "us";
}

/* Sets the absolute path of `given`, whose parent has to be there. Splits it where wanted. */
static int resolve(struct profile_dir *profile, const char *given)
{
    char path[PATH_MAX];
    size_t length = strlen(given);
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
    struct stat status;
    bool exists = lstat(path, &status) == 0;
    if (exists && (!S_ISDIR(status.st_mode) || (!is_profile(path) && !is_empty(path)))) {
        error_message("%s exists and is not a profile of jdperf; use another -o DIR", path);
        return STATUS_FAILED;
    }
    /* Whoever it belongs to could put links into it, through which we would write elsewhere. */
    if (exists && status.st_uid != geteuid() && !is_profile(path)) {
        error_message("%s is another user's directory: it is left alone; use another -o DIR", path);
        return STATUS_FAILED;
    }
    char resolved[PATH_MAX];
    if (exists) {
        if (!realpath(path, profile->path)) {
            error_message("failed to find %s: %s", path, strerror(errno));
            return STATUS_FAILED;
        }
        return 0;
    }
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (slash) {
        *slash = '\0';
    }
    const char *parent = !slash ? "." : *path ? path : "/";
    if (!realpath(parent, resolved)) {
        error_message("failed to create %.*s: directory %s does not exist", (int)length, given,
                      parent);
        return STATUS_FAILED;
    }
    int n = snprintf(profile->path, sizeof profile->path, "%s/%s",
                     strcmp(resolved, "/") == 0 ? "" : resolved, name);
    return n > 0 && n < PATH_MAX - 64 ? 0 : STATUS_FAILED;
}

/* Renames an earlier profile out of the way, and one before that. */
static int put_aside(struct profile_dir *profile)
{
    struct guarded_profile *guarded = profile->guarded;
    char earlier[PATH_MAX];
    struct stat status;
    snprintf(earlier, sizeof earlier, "%.*s.old", PATH_MAX - 8, profile->path);
    if (lstat(earlier, &status) == 0) {
        if (!S_ISDIR(status.st_mode) || !is_profile(earlier)) {
            error_message("failed to move the earlier profile: %s exists and is not a profile; "
                          "remove it or use another -o DIR",
                          earlier);
            return STATUS_FAILED;
        }
        snprintf(guarded->older, sizeof guarded->older, "%.*s.%d", PATH_MAX - 16, earlier,
                 (int)getpid());
        if (rename(earlier, guarded->older) != 0) {
            error_message("failed to rename %s: %s", earlier, strerror(errno));
            guarded->older[0] = '\0';
            return STATUS_FAILED;
        }
    }
    if (rename(profile->path, earlier) != 0) {
        error_message("failed to rename %s to %s: %s", profile->path, earlier, strerror(errno));
        return STATUS_FAILED;
    }
    memcpy(guarded->earlier, earlier, sizeof earlier);
    return 0;
}

/* By its descriptor: ours, and empty still when nobody else may write into it any more. */
static int take_over(const char *path)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 || fstat(fd, &status) != 0 ? -errno : 0;
    if (!err && status.st_uid != geteuid()) {
        err = -EPERM;
    }
    if (!err && fchmod(fd, 0700) != 0) {
        err = -errno;
    }
    if (fd >= 0) {
        close(fd);
    }
    return err ? err : is_empty(path) ? 0 : -ENOTEMPTY;
}

static int make(struct profile_dir *profile, const char *given)
{
    struct guarded_profile *guarded = profile->guarded;
    struct stat status;
    if (lstat(profile->path, &status) == 0) {
        int err = take_over(profile->path);
        if (err) {
            error_message("failed to take over the empty directory %s: %s", given, strerror(-err));
            return STATUS_FAILED;
        }
        guarded->inside = true;
        return 0;
    }
    if (mkdir(profile->path, 0700) != 0) {
        int err = errno;
        error_message("failed to make %s: its directory is not writable for %s (%s); use -o with a "
                      "directory that is",
                      given, our_name(), strerror(err));
        return STATUS_FAILED;
    }
    guarded->made = true;
    return 0;
}

/* Commas part the agent's options, '=' HotSpot's -agentpath. */
static bool agent_takes(const char *path)
{
    return !strpbrk(path, ",\"'\n");
}

int profile_create(struct profile_dir *profile, struct guarded_profile *guarded, const char *given)
{
    profile->guarded = guarded;
    int status = resolve(profile, given);
    if (status) {
        return status;
    }
    if (!agent_takes(profile->path)) {
        error_message("the agent cannot be given a directory with a comma or a quote in its path: "
                      "%s",
                      profile->path);
        return STATUS_USAGE;
    }
    guarded->made = guarded->inside = false;
    guarded->earlier[0] = guarded->older[0] = '\0';
    memcpy(guarded->path, profile->path, sizeof guarded->path);
    atomic_store(&guarded->unsettled, true);
    status = is_profile(profile->path) ? put_aside(profile) : 0;
    if (!status) {
        status = make(profile, given);
    }
    if (!status && lstat(profile->path, &profile->made) != 0) {
        error_message("failed to find %s again: %s", given, strerror(errno));
        status = STATUS_FAILED;
    }
    char created[64];
    time_t now = time(NULL);
    struct tm local;
    strftime(created, sizeof created, "%Y-%m-%dT%H:%M:%S%z", localtime_r(&now, &local));
    if (!status && (profile_set(profile, NULL, NULL) || profile_set(profile, "created", created))) {
        error_message(
            "failed to write into %s: is the disk full? Use -o with a directory on another disk",
            given);
        status = STATUS_FAILED;
    }
    return status;
}

int profile_set(const struct profile_dir *profile, const char *key, const char *value)
{
    char name[PATH_MAX + 16];
    snprintf(name, sizeof name, "%s/profile", profile->path);
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "ae") : NULL;
    if (!file) {
        int err = -errno;
        if (fd >= 0) {
            close(fd);
        }
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

static void remove_directory(const char *path)
{
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    if (!slash) {
        return;
    }
    *slash = '\0';
    int place = open(slash == parent ? "/" : parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (place >= 0) {
        (void)remove_tree(place, slash + 1);
        close(place);
    }
}

void profile_settle(struct profile_dir *profile)
{
    struct guarded_profile *guarded = profile->guarded;
    atomic_store(&guarded->unsettled, false);
    if (guarded->older[0]) {
        remove_directory(guarded->older);
    }
    if (guarded->earlier[0]) {
        info_message("the earlier profile is now %s", guarded->earlier);
    }
}

/* Empties the directory that was there before us. */
static void remove_contents(const char *path)
{
    int directory = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = opendir(path);
    struct dirent *entry;
    while (directory >= 0 && entries && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            (void)remove_tree(directory, entry->d_name);
        }
    }
    if (entries) {
        closedir(entries);
    }
    if (directory >= 0) {
        close(directory);
    }
}

void profile_undo(struct guarded_profile *guarded)
{
    if (!atomic_exchange(&guarded->unsettled, false)) {
        return;
    }
    if (guarded->made) {
        remove_directory(guarded->path);
    } else if (guarded->inside) {
        remove_contents(guarded->path);
    }
    if (guarded->earlier[0]) {
        (void)rename(guarded->earlier, guarded->path);
    }
    if (guarded->older[0]) {
        char old[PATH_MAX];
        snprintf(old, sizeof old, "%.*s.old", PATH_MAX - 8, guarded->path);
        (void)rename(guarded->older, old);
    }
}
