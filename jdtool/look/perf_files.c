#include "jdtool/look/perf_files.h"

#include "jdtool/base/descriptor.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/text.h"
#include "jdtool/live/child.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/record/perf_run.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Names of all JVMs of a machine. */
#define NAMES_MAX ((size_t)4 << 20)

struct perf_files {
    char recording[PATH_MAX + 64];
    char profile[PATH_MAX]; /* ending in '/' */
    bool are_more;          /* than there is room for */
    size_t size;
    char names[NAMES_MAX + 1]; /* a NUL behind each */
};

/* ---- Their names ---- */

/* In a process without rights. */
static int list_names(void *context)
{
    struct perf_files *files = context;
    struct intern known = {0};
    struct perf_data *data;
    struct perf_record record;
    if (perf_data_open(files->recording, &data) != 0) {
        return 1;
    }
    while (perf_data_next(data, &record) > 0) {
        const char *path =
            record.mapping && !record.mapping->anonymous ? record.mapping->file.path : "";
        size_t size = strlen(path) + 1;
        uint32_t count = known.count;
        if (path[0] != '/' || path[1] == '/' || size > PATH_MAX ||
            text_begins(path, files->profile) || !intern(&known, path) || known.count == count) {
            continue;
        }
        files->are_more |= size > NAMES_MAX - files->size;
        if (!files->are_more) {
            memcpy(files->names + files->size, path, size);
            files->size += size;
        }
    }
    intern_free(&known);
    perf_data_close(data);
    return 0;
}

struct perf_files *perf_files_list(const struct opened_profile *profile, const char *name)
{
    struct perf_files *shared = confined_shared(sizeof *shared);
    struct perf_files *files = calloc(1, sizeof *files);
    struct rights *rights = rights_new();
    if (shared && files && rights) {
        snprintf(shared->recording, sizeof shared->recording, "%s/%s", profile->path, name);
        snprintf(shared->profile, sizeof shared->profile, "%.*s/", PATH_MAX - 2, profile->path);
        rights_hold(rights, profile->path, profile->directory);
        rights_read(rights, profile->path);
        (void)confined_run(&(struct confined_options){.rights = rights,
                                                      .what = "the recording",
                                                      .cpu_seconds = CONFINED_SECONDS,
                                                      .inner = true,
                                                      .work = list_names,
                                                      .context = shared});
        memcpy(files, shared, sizeof *files);
        files->size = files->size < NAMES_MAX ? files->size : NAMES_MAX;
        files->names[files->size] = '\0'; /* it may have said anything */
        if (files->are_more) {
            warning_message("the recording names too many files: perf cannot read all of them");
        }
    } else {
        free(files);
        files = NULL;
    }
    rights_free(rights);
    confined_unshare(shared, sizeof *shared);
    return files;
}

void perf_files_free(struct perf_files *files)
{
    free(files);
}

const char *perf_files_next(const struct perf_files *files, const char *before)
{
    const char *next = before ? before + strlen(before) + 1 : files->names;
    return next < files->names + files->size ? next : NULL;
}

/* ---- What perf may read of them ---- */

/* By the rules for who reads them without rights. The kernel names files without links: one that is
 * in the path now has come since. A file is looked at before it is opened, since opening a device
 * or a FIFO already does something. */
static void allow(struct confined_program *program, const struct rights *none, const char *path)
{
    char link[32];
    struct stat status;
    int named = open_resolved(AT_FDCWD, path, O_PATH, RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS);
    int fd = -1;
    if (named >= 0 && fstat(named, &status) == 0 && S_ISREG(status.st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", named);
        fd = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    if (fd >= 0 && rights_may_read(none, fd, &status)) {
        confined_allow(program, fd);
    }
    descriptor_close(fd);
    descriptor_close(named);
}

/* HOME/lib/server/libjvm.so has its sources in HOME/lib/src.zip or HOME/src.zip, a JDK 8's
 * HOME/jre/lib/amd64/server/libjvm.so, too. */
static void allow_sources(struct confined_program *program, const struct rights *none,
                          const char *path)
{
    static const char source[] = "/src.zip";
    char above[PATH_MAX + sizeof source];
    size_t size = strlen(path);
    if (size >= PATH_MAX || !strstr(path, "/server/libjvm.so")) {
        return;
    }
    memcpy(above, path, size + 1);
    char *slash = strrchr(above, '/');
    for (int depth = 0; depth < 5 && slash; depth++) {
        memcpy(slash, source, sizeof source);
        allow(program, none, above);
        *slash = '\0';
        slash = strrchr(above, '/');
    }
}

void perf_files_allow(const struct perf_files *files, const struct opened_profile *profile,
                      int place, struct confined_program *program)
{
    struct rights *none = rights_new();
    struct utsname system;
    char path[PATH_MAX];
    confined_program_begin(program, profile->path, place);
    program->of_others = !opened_profile_is_ours(profile);
    confined_allow(program, profile->directory);
    if (program_find(perf_program(), path)) {
        confined_allow_path(program, path);
    }
    if (none && uname(&system) == 0) {
        snprintf(path, sizeof path, "/boot/vmlinux-%s", system.release);
        allow(program, none, path);
    }
    for (const char *name = NULL; none && (name = perf_files_next(files, name));) {
        allow(program, none, name);
        allow_sources(program, none, name);
    }
    rights_free(none);
}
