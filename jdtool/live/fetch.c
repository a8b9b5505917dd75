#include "jdtool/live/fetch.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const suffixes[FETCH_BESIDE] = {
    [FETCH_METHODS] = "methods", [FETCH_THREADS] = "threads", [FETCH_LOG] = "log"};

/* The name of what stands beside the dump. */
static void beside(const struct fetch *fetch, const char *suffix, char name[80])
{
    snprintf(name, 80, "%.*s.%s", (int)(strlen(fetch->name) - strlen(".dump")), fetch->name,
             suffix);
}

static bool is_same(int fd, const char *path)
{
    struct stat one;
    struct stat other;
    return fstat(fd, &one) == 0 && stat(path, &other) == 0 && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

int fetch_find(struct fetch *fetch, const struct target *target, const char *dump,
               const char *profile)
{
    char directory[PATH_MAX];
    snprintf(directory, sizeof directory, "%s", dump);
    char *slash = strrchr(directory, '/');
    *fetch = NO_FETCH;
    if (!slash || strlen(slash + 1) >= sizeof fetch->name || strlen(slash + 1) <= 5) {
        return -EINVAL;
    }
    memcpy(fetch->name, slash + 1, strlen(slash + 1) + 1);
    *slash = '\0';
    fetch->pid = target->process.pid;
    fetch->owner = target->uid;
    fetch->directory = target_open_directory(target, directory);
    fetch->dump = fetch->directory < 0
                      ? fetch->directory
                      : open_file_below(fetch->directory, fetch->name, fetch->owner, O_RDONLY);
    if (fetch->dump < 0) {
        int err = fetch->dump;
        fetch_close(fetch);
        return err;
    }
    char path[PATH_MAX + 80];
    snprintf(path, sizeof path, "%s/%s", profile, fetch->name);
    fetch->in_profile = is_same(fetch->dump, path);
    return 0;
}

static int copy(int from, const char *path, const char *name)
{
    char temporary[PATH_MAX + 96];
    snprintf(temporary, sizeof temporary, "%s.part", path);
    int to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    int err = to < 0 ? -errno : copy_file_data(from, to, FETCH_DATA_MAX);
    if (err == -EFBIG) {
        info_message("%s is cut after %llu GB, the limit of a copied file", name,
                     FETCH_DATA_MAX >> 30);
        err = 0;
    }
    if (to >= 0 && close(to) != 0 && !err) {
        err = -errno;
    }
    if (!err && rename(temporary, path) != 0) {
        err = -errno;
    }
    if (err && to >= 0) {
        (void)unlink(temporary);
    }
    return err;
}

/* Where this JVM's files go: the profile, or where that has a file of another's of this name, a
 * directory of its own in it. */
static int place_for(const struct fetch *fetch, const char *profile, char place[PATH_MAX])
{
    struct stat status;
    int n = snprintf(place, PATH_MAX, "%.*s/%s", PATH_MAX - 128, profile, fetch->name);
    bool taken = n < PATH_MAX && lstat(place, &status) == 0 && !is_same(fetch->dump, place);
    n = taken ? snprintf(place, PATH_MAX, "%.*s/jvm-%d", PATH_MAX - 128, profile, (int)fetch->pid)
              : snprintf(place, PATH_MAX, "%.*s", PATH_MAX - 128, profile);
    return taken && mkdir(place, 0700) != 0 && errno != EEXIST ? -errno : n < 0 ? -EINVAL : 0;
}

void fetch_find_rest(struct fetch *fetch)
{
    char name[80];
    for (int i = 0; i < FETCH_BESIDE && fetch->dump >= 0; i++) {
        if (fetch->beside[i] < 0) {
            beside(fetch, suffixes[i], name);
            fetch->beside[i] = open_file_below(fetch->directory, name, fetch->owner, O_RDONLY);
        }
    }
}

int fetch_copy(struct fetch *fetch, const char *profile, bool detach)
{
    char place[PATH_MAX];
    char path[PATH_MAX + 96];
    char name[80];
    if (fetch->dump < 0 || (fetch->in_profile && !detach)) {
        return 0;
    }
    fetch_find_rest(fetch);
    int err = place_for(fetch, profile, place);
    if (!err) {
        snprintf(path, sizeof path, "%s/%s", place, fetch->name);
        err = copy(fetch->dump, path, fetch->name);
    }
    for (int i = 0; i < FETCH_BESIDE && !err; i++) {
        if (fetch->beside[i] >= 0) {
            beside(fetch, suffixes[i], name);
            snprintf(path, sizeof path, "%s/%s", place, name);
            err = copy(fetch->beside[i], path, name);
        }
    }
    return failed_to(err, "copy %s into the profile", fetch->name);
}

void fetch_close(struct fetch *fetch)
{
    const int descriptors[] = {fetch->dump, fetch->directory, fetch->beside[0], fetch->beside[1],
                               fetch->beside[2]};
    for (size_t i = 0; i < sizeof descriptors / sizeof *descriptors; i++) {
        descriptor_close(descriptors[i]);
    }
    *fetch = NO_FETCH;
}
