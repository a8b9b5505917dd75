#include "jdtool/watch/files.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/output_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NAME_SIZE 128
#define SUFFIX    "Z.pb.gz"

struct kept {
    uint64_t time; /* seconds since 1970 */
    uint64_t size;
    char *name;
};

struct slice_files {
    const struct slice_files_options *options;
    int directory;
    struct kept *list; /* the oldest first; those before `first` are gone */
    uint32_t first, count, room;
    uint64_t bytes;
};

/* The time in "…-20261121T184500Z.pb.gz"; false: no name of ours. */
static bool time_of(const char *name, uint64_t *seconds)
{
    static const char form[] = "-00000000T000000" SUFFIX;
    size_t length = strlen(name);
    struct tm tm = {0};
    if (length < sizeof form || length >= NAME_SIZE) {
        return false;
    }
    const char *at = name + length - (sizeof form - 1);
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (form[i] == '0' ? !isdigit((unsigned char)at[i]) : form[i] != at[i]) {
            return false;
        }
    }
    /* NOLINTNEXTLINE(cert-err34-c): digits, all of them, as was just seen */
    sscanf(at, "-%4d%2d%2dT%2d%2d%2d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
           &tm.tm_min, &tm.tm_sec);
    tm.tm_year -= 1900;
    tm.tm_mon--;
    *seconds = (uint64_t)timegm(&tm);
    return true;
}

static int add(struct slice_files *files, const char *name, uint64_t seconds, uint64_t size)
{
    /* What is gone makes room first. */
    if (files->list && files->first > 1024 && files->first > files->count / 2) {
        memmove(files->list, files->list + files->first,
                (files->count - files->first) * sizeof *files->list);
        files->count -= files->first;
        files->first = 0;
    }
    char *copy = strdup(name);
    if (!copy || ARRAY_RESERVE(files->list, files->count, files->room) || !files->list) {
        free(copy);
        return -ENOMEM;
    }
    files->list[files->count++] = (struct kept){.time = seconds, .size = size, .name = copy};
    files->bytes += size;
    return 0;
}

static int compare(const void *a, const void *b)
{
    const struct kept *first = a;
    const struct kept *second = b;
    return ORDER(first->time, second->time);
}

static int read_directory(struct slice_files *files)
{
    DIR *entries = directory_open(files->directory, ".");
    const struct dirent *entry;
    int err = entries ? 0 : -errno;
    while (!err && (entry = directory_next(entries))) {
        struct stat status;
        uint64_t seconds;
        if (time_of(entry->d_name, &seconds) &&
            fstatat(files->directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(status.st_mode)) {
            err = add(files, entry->d_name, seconds, (uint64_t)status.st_size);
        }
    }
    directory_close(entries);
    if (!err && files->list) {
        qsort(files->list, files->count, sizeof *files->list, compare);
    }
    return err;
}

/* A directory that we made belongs to who called sudo. If it is not ours any more, who owns the one
 * above has put another there. */
static int hand_over(int directory)
{
    uid_t uid;
    gid_t gid;
    struct stat status;
    if (!output_caller(&uid, &gid)) {
        return 0;
    }
    bool is_ours = fstat(directory, &status) == 0 && status.st_uid == 0 && !(status.st_mode & 077);
    return !is_ours ? -EPERM : fchown(directory, uid, gid) == 0 ? 0 : -errno;
}

/* Made if it is not there. A link is not followed: who owns the directory above may have put it
 * there. A descriptor or a negative errno. */
static int open_directory(const char *given)
{
    char path[PATH_MAX];
    size_t length = strlen(given);
    while (length > 1 && given[length - 1] == '/') { /* behind it a link would be followed */
        length--;
    }
    if (length >= sizeof path) {
        return -ENAMETOOLONG;
    }
    memcpy(path, given, length);
    path[length] = '\0';
    bool is_made = mkdir(path, 0700) == 0;
    if (!is_made && errno != EEXIST) {
        return -errno;
    }
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int err = is_made ? hand_over(fd) : 0;
    if (err) {
        close(fd);
    }
    return err ? err : fd;
}

int slice_files_new(const struct slice_files_options *options, struct slice_files **out)
{
    struct slice_files *files = calloc(1, sizeof *files);
    int err = files ? 0 : -ENOMEM;
    if (!err) {
        files->options = options;
        files->directory = open_directory(options->directory);
        err = files->directory < 0 ? files->directory : read_directory(files);
    }
    if (err) {
        error_message("failed to keep profiles in %s: %s", options->directory,
                      err == -ENOTDIR ? "it is no directory, or a link to one" : strerror(-err));
        slice_files_free(files);
        return err;
    }
    *out = files;
    return 0;
}

void slice_files_free(struct slice_files *files)
{
    if (!files) {
        return;
    }
    for (uint32_t i = files->first; i < files->count; i++) {
        free(files->list[i].name);
    }
    descriptor_close(files->directory);
    free(files->list);
    free(files);
}

static void remove_old(struct slice_files *files)
{
    const struct slice_files_options *options = files->options;
    uint64_t now = (uint64_t)time(NULL);
    while (files->first < files->count) {
        struct kept *oldest = &files->list[files->first];
        bool too_old = options->keep_seconds && oldest->time + options->keep_seconds < now;
        bool too_much = options->keep_bytes && files->bytes > options->keep_bytes;
        if (!too_old && !too_much) {
            return;
        }
        (void)unlinkat(files->directory, oldest->name, 0);
        files->bytes -= oldest->size;
        free(oldest->name);
        oldest->name = NULL;
        files->first++;
    }
}

static void make_name(const struct labels *labels, int pid, time_t seconds, char name[NAME_SIZE])
{
    const char *service = labels_get(labels, "service_name");
    char day[32];
    struct tm tm;
    strftime(day, sizeof day, "%Y%m%dT%H%M%S", gmtime_r(&seconds, &tm));
    int n = snprintf(name, NAME_SIZE, "%.60s-%d-%s" SUFFIX, service ? service : "java", pid, day);
    for (int i = 0; i < n && name[i]; i++) {
        if (!isalnum((unsigned char)name[i]) && !strchr("-_.", name[i])) {
            name[i] = '_';
        }
    }
    if (name[0] == '.') {
        name[0] = '_';
    }
}

int slice_files_give(struct slice_files *files, const struct labels *labels, int pid,
                     uint64_t from_ns, const uint8_t *body, size_t size)
{
    char name[NAME_SIZE];
    char path[NAME_SIZE + 32];
    struct output_file *file;
    time_t seconds = (time_t)(from_ns / UINT64_C(1000000000));
    make_name(labels, pid, seconds, name);
    /* Whatever stands at the directory's own path by now. */
    snprintf(path, sizeof path, "/proc/self/fd/%d/%s", files->directory, name);
    int err = output_file_open(path, &file);
    if (!err) {
        output_file_hand_over(file);
        output_file_put(file, body, size);
        err = output_file_finish(file);
    }
    if (!err && add(files, name, (uint64_t)seconds, size)) {
        failed_to(-ENOMEM, "remember %s", name);
        err = -ENOMEM;
    }
    remove_old(files);
    return err;
}

void slice_files_counts(const struct slice_files *files, uint64_t *count, uint64_t *bytes)
{
    *count = files ? files->count - files->first : 0;
    *bytes = files ? files->bytes : 0;
}
