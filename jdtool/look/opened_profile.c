#include "jdtool/look/opened_profile.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/base/verb.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

/* perf makes directories of paths; nothing of ours is deeper. */
enum { DEPTH_MAX = 64, ENTRIES_MAX = 1000000, TEXT_MAX = 65536 };

static const char first_line[] = "jdperf-profile=1\n";

/* The beginning of one of its files, NUL behind it. Its size, 0 where it cannot be read. */
static size_t read_beginning(const struct opened_profile *profile, const char *name, char *text,
                             size_t room)
{
    int fd = open_file_below(profile->directory, name, profile->owner, O_RDONLY);
    ssize_t size = fd < 0 ? 0 : read(fd, text, room - 1);
    descriptor_close(fd);
    text[size > 0 ? size : 0] = '\0';
    return size > 0 ? (size_t)size : 0;
}

/* ---- Links ---- */

struct walk {
    int profile;
    unsigned entries;
    char path[PATH_MAX]; /* below it, of what is looked at */
};

/* Without openat2, or of one that leads nowhere yet: it goes up no further than the profile, and
 * only to begin with, since what is named before a ".." may be a link to elsewhere. */
static int check_link_by_text(const struct walk *walk)
{
    char text[PATH_MAX];
    ssize_t size = readlinkat(walk->profile, walk->path, text, sizeof text - 1);
    if (size < 0) {
        return -errno;
    }
    text[size] = '\0';
    int above = 0;
    for (const char *at = walk->path; *at; at++) {
        above += *at == '/';
    }
    const char *rest = text;
    for (; strncmp(rest, "../", 3) == 0; rest += 3) {
        above--;
    }
    return *text == '/' || above < 0 || strstr(rest, "..") ? -EXDEV : 0;
}

/* Not for long, since who can put a file there can put another. What is read later is opened in
 * such a way again; perf, which reads others, follows what it finds. */
static int check_link(const struct walk *walk)
{
    int fd =
        open_resolved(walk->profile, walk->path, O_PATH, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    descriptor_close(fd);
    /* What it leads through may come to be: perf's files are put into buildid/ later. */
    return fd >= 0                                          ? 0
           : fd == -ENOENT || fd == -ENOSYS || fd == -EPERM ? check_link_by_text(walk)
                                                            : fd;
}

static int check_directory(struct walk *walk, int parent, const char *name, int depth);

static int check_entry(struct walk *walk, int directory, const struct dirent *entry, int depth)
{
    size_t size = strlen(walk->path);
    struct stat status;
    int n = snprintf(walk->path + size, sizeof walk->path - size, "%s%s", size ? "/" : "",
                     entry->d_name);
    if (n >= (int)(sizeof walk->path - size) || ++walk->entries > ENTRIES_MAX) {
        return -E2BIG;
    }
    int err = fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? 0 : -errno;
    if (!err && S_ISLNK(status.st_mode)) {
        err = check_link(walk);
    } else if (!err && S_ISDIR(status.st_mode)) {
        err = check_directory(walk, directory, entry->d_name, depth + 1);
    }
    if (err == -ENOENT) {
        err = 0; /* it has gone meanwhile */
    }
    if (!err) {
        walk->path[size] = '\0'; /* else it is told */
    }
    return err;
}

static int check_directory(struct walk *walk, int parent, const char *name, int depth)
{
    DIR *entries = depth > DEPTH_MAX ? NULL : directory_open(parent, name);
    const struct dirent *entry;
    int err = entries ? 0 : depth > DEPTH_MAX ? -ELOOP : -errno;
    while (!err && (entry = directory_next(entries))) {
        err = check_entry(walk, dirfd(entries), entry, depth);
    }
    directory_close(entries);
    return err;
}

static int check_links(const struct opened_profile *profile)
{
    struct walk walk = {.profile = profile->directory};
    int err = check_directory(&walk, profile->directory, ".", 0);
    if (err == -EXDEV || err == -ELOOP) {
        error_message("the link %s/%s in this profile leads out of it: remove the link",
                      profile->path, walk.path);
        return STATUS_USAGE;
    }
    if (err) {
        error_message("failed to check the profile %s: %s%s%s", profile->path, walk.path,
                      walk.path[0] ? ": " : "", strerror(-err));
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

/* ---- Whose it is ---- */

bool opened_profile_is_ours(const struct opened_profile *profile)
{
    uid_t caller;
    gid_t group;
    return profile->owner == geteuid() ||
           (output_caller(&caller, &group) && profile->owner == caller);
}

void opened_profile_be_owner(const struct opened_profile *profile)
{
    uid_t uid;
    gid_t gid;
    if (output_caller(&uid, &gid) && profile->owner == uid) {
        setfsgid(gid);
        setfsuid(uid);
    }
}

void opened_profile_be_ourselves(void)
{
    setfsuid(geteuid());
    setfsgid(getegid());
}

static int check_owner(const struct opened_profile *profile)
{
    if (geteuid() != 0 || getenv(TRUST_VARIABLE) || opened_profile_is_ours(profile)) {
        return STATUS_DONE;
    }
    const struct passwd *user = getpwuid(profile->owner);
    char number[32];
    snprintf(number, sizeof number, "user %u", profile->owner);
    error_message(
        "%s belongs to %s, who may have put anything into it. Open it as that user, or add --trust",
        profile->path, user ? user->pw_name : number);
    return STATUS_USAGE;
}

/* ---- Opening ---- */

static int open_directory(const char *given, struct opened_profile *profile)
{
    struct stat status;
    profile->directory = open(given, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (profile->directory < 0 && (errno == ENOENT || errno == ENOTDIR)) {
        error_message(errno == ENOENT
                          ? "there is no profile %s: make one with jdperf record, or name "
                            "the directory of another"
                          : "%s is a file; a profile is a directory",
                      given);
        return STATUS_USAGE;
    }
    if (profile->directory < 0 || !descriptor_path(profile->directory, profile->path) ||
        fstat(profile->directory, &status) != 0) {
        failed_to(-errno, "open the profile %s", given);
        return STATUS_FAILED;
    }
    profile->owner = status.st_uid;
    return STATUS_DONE;
}

static int check(const char *given, const struct opened_profile *profile)
{
    char line[sizeof first_line];
    struct stat status;
    if (fstatat(profile->directory, "profile", &status, AT_SYMLINK_NOFOLLOW) != 0) {
        if (errno == EACCES) {
            failed_to(-errno, "open the profile %s", given);
            return STATUS_FAILED;
        }
        error_message("%s is not a profile of jdperf (it has no file 'profile')", given);
        return STATUS_USAGE;
    }
    int result = check_owner(profile);
    result = result ? result : check_links(profile);
    if (result) {
        return result;
    }
    (void)read_beginning(profile, "profile", line, sizeof line);
    if (strcmp(line, first_line) != 0) {
        error_message("%s is not a profile of jdperf (its file 'profile' has other contents)",
                      given);
        return STATUS_USAGE;
    }
    if (!opened_profile_has(profile, "perf.data") &&
        !opened_profile_has(profile, "perf.jit.data") &&
        !opened_profile_has(profile, "samples.saved")) {
        error_message("the profile %s has no perf.data: the recording failed", given);
        return STATUS_FAILED;
    }
    return STATUS_DONE;
}

int opened_profile_open(const char *given, struct opened_profile *profile)
{
    *profile = NO_PROFILE;
    int status = open_directory(given, profile);
    status = status ? status : check(given, profile);
    if (status) {
        opened_profile_close(profile);
    }
    return status;
}

void opened_profile_close(struct opened_profile *profile)
{
    descriptor_close(profile->directory);
    *profile = NO_PROFILE;
}

bool opened_profile_is_one(const char *given)
{
    struct stat status;
    int fd = open(given, O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is = fd >= 0 && fstatat(fd, "profile", &status, AT_SYMLINK_NOFOLLOW) == 0 &&
              S_ISREG(status.st_mode);
    descriptor_close(fd);
    return is;
}

bool opened_profile_has(const struct opened_profile *profile, const char *name)
{
    return faccessat(profile->directory, name, R_OK, 0) == 0;
}

bool opened_profile_get(const struct opened_profile *profile, const char *key, char *value,
                        size_t room)
{
    char text[TEXT_MAX];
    size_t length = strlen(key);
    bool found = false;
    (void)read_beginning(profile, "profile", text, sizeof text);
    const char *rest = text;
    size_t size;
    for (const char *line; (line = text_line(&rest, &size));) {
        if (size > length && strncmp(line, key, length) == 0 && line[length] == '=') {
            found = size - length <= room;
            snprintf(value, room, "%.*s", (int)(size - length - 1), line + length + 1);
        }
    }
    return found;
}

/* The text behind a key of the scorecard, which we write a line each. */
static bool text_of(const char *card, const char *key, char *text, size_t room)
{
    char pattern[64];
    snprintf(pattern, sizeof pattern, "\n  \"%s\": \"", key);
    const char *at = strstr(card, pattern);
    at = at ? at + strlen(pattern) : NULL;
    size_t size = at ? strcspn(at, "\"\n") : 0;
    if (!at || at[size] != '"' || size >= room) {
        return false;
    }
    memcpy(text, at, size);
    text[size] = '\0';
    return true;
}

void opened_profile_tell_doubts(const struct opened_profile *profile)
{
    char card[TEXT_MAX];
    char verdict[16];
    char reason[1024] = "";
    (void)read_beginning(profile, "scorecard.json", card, sizeof card);
    if (text_of(card, "verdict", verdict, sizeof verdict) &&
        (strcmp(verdict, "fair") == 0 || strcmp(verdict, "bad") == 0)) {
        (void)text_of(card, "verdict_reason", reason, sizeof reason);
        info_message("This profile is %s: %s.", verdict, reason);
    }
}
