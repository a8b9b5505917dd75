#include "jdtool/confined/rights.h"

#include "format/jitdump.h"
#include "format/methods.h"
#include "format/threads.h"
#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/text.h"
#include "jdtool/objects/objects.h"

#include <ctype.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

/* What may be read: a file by its number, a directory by its path, too. */
struct readable {
    struct stat status;
    char *path; /* of a directory, or of what is not there yet, as the kernel calls it; NULL: a file
                 */
};

struct writable {
    struct stat status; /* of the directory */
    int directory;
    char *given, *absolute; /* its paths, ending in '/' */
    char *name;
    size_t stem; /* that many bytes of the name begin those of its images; 0: it has none */
};

struct held {
    char *path;
    int directory;
};

struct rights {
    struct readable *readables;
    struct writable *writables;
    struct held *helds;
    uint32_t readable_count, readable_room, writable_count, writable_room, held_count, held_room;
};

struct rights *rights_new(void)
{
    return calloc(1, sizeof(struct rights));
}

static void free_writable(struct writable *writable)
{
    descriptor_close(writable->directory);
    free(writable->given);
    free(writable->absolute);
    free(writable->name);
}

void rights_free(struct rights *rights)
{
    for (uint32_t i = 0; rights && i < rights->readable_count; i++) {
        free(rights->readables[i].path);
    }
    for (uint32_t i = 0; rights && i < rights->writable_count; i++) {
        free_writable(&rights->writables[i]);
    }
    for (uint32_t i = 0; rights && i < rights->held_count; i++) {
        free(rights->helds[i].path);
    }
    if (rights) {
        free(rights->helds);
        free(rights->readables);
        free(rights->writables);
    }
    free(rights);
}

/* ---- What is held ---- */

static bool same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

void rights_hold(struct rights *rights, const char *path, int directory)
{
    struct held held = {strdup(path), directory};
    if (held.path && ARRAY_RESERVE(rights->helds, rights->held_count, rights->held_room) == 0) {
        rights->helds[rights->held_count++] = held;
    } else {
        free(held.path);
    }
}

void rights_let_go(struct rights *rights, int directory)
{
    for (uint32_t i = 0; i < rights->held_count; i++) {
        if (rights->helds[i].directory == directory) {
            free(rights->helds[i].path);
            rights->helds[i] = rights->helds[--rights->held_count];
            return;
        }
    }
}

bool rights_hold_process(const struct rights *rights, int directory)
{
    struct statfs system;
    struct stat its;
    struct stat ours;
    bool is = rights->held_count > 0 && fstatfs(directory, &system) == 0 &&
              system.f_type == PROC_SUPER_MAGIC && fstat(directory, &its) == 0;
    for (uint32_t i = 0; is && i < rights->held_count; i++) {
        if (fstat(rights->helds[i].directory, &ours) == 0 && same(&its, &ours)) {
            return true;
        }
    }
    return false;
}

bool rights_hold_word(struct rights *rights, const char *word)
{
    char *path;
    long directory = strtol(word, &path, 10);
    if (path == word || directory < 0 || directory > INT_MAX || path[0] != ':' || path[1] != '/') {
        return false;
    }
    rights_hold(rights, path + 1, (int)directory);
    return true;
}

int rights_held(const struct rights *rights, const char *path, const char **rest)
{
    for (uint32_t i = 0; i < rights->held_count; i++) {
        const struct held *held = &rights->helds[i];
        size_t size = strlen(held->path);
        if (strncmp(path, held->path, size) == 0 && (path[size] == '/' || path[size] == '\0')) {
            path += size + strspn(path + size, "/");
            *rest = *path ? path : ".";
            return held->directory;
        }
    }
    return -1;
}

static int open_named(const struct rights *rights, const char *path, int flags)
{
    const char *rest;
    int directory = rights_held(rights, path, &rest);
    return directory >= 0 ? openat(directory, rest, flags) : open(path, flags);
}

/* ---- Giving ---- */

/* The directory's part of a path; NULL: no memory. */
static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

void rights_read(struct rights *rights, const char *path)
{
    struct readable readable = {0};
    char name[PATH_MAX];
    if (!path || strcmp(path, "-") == 0) {
        return;
    }
    int fd = open_named(rights, *path ? path : ".", O_PATH | O_CLOEXEC);
    const char *later = fd >= 0 ? "" : strrchr(path, '/');
    if (fd < 0 && later) {
        char *directory = directory_of(path);
        fd = directory ? open_named(rights, directory, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
        free(directory);
    }
    bool is = fd >= 0 && fstat(fd, &readable.status) == 0 && descriptor_path(fd, name);
    if (is && S_ISDIR(readable.status.st_mode)) {
        is = asprintf(&readable.path, "%s%s", name, later) >= 0;
    }
    descriptor_close(fd);
    if (is &&
        ARRAY_RESERVE(rights->readables, rights->readable_count, rights->readable_room) == 0) {
        rights->readables[rights->readable_count++] = readable;
    } else {
        free(readable.path);
    }
}

void rights_read_list(struct rights *rights, const char *paths)
{
    char *copy = paths ? strdup(paths) : NULL;
    for (char *rest = copy, *path; (path = path_list_next(&rest));) {
        rights_read(rights, path);
    }
    free(copy);
}

void rights_read_objects(struct rights *rights, const char *build_id_dir)
{
    char path[PATH_MAX];
    const char *home = getenv("HOME");
    int size = snprintf(path, sizeof path, "%s/.debug", home ? home : "");
    rights_read(rights, build_id_dir ? build_id_dir : size < PATH_MAX ? path : NULL);
}

static void write_into(struct rights *rights, const char *path, bool images)
{
    static const char ending[] = ".data";
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!path || strcmp(path, "-") == 0) {
        return;
    }
    char absolute[PATH_MAX];
    struct writable writable = {
        .given = directory_of(path), .name = strdup(slash ? slash + 1 : path), .directory = -1};
    size_t size = writable.name ? strlen(writable.name) : 0;
    if (images) {
        bool ends =
            size > strlen(ending) && strcmp(writable.name + size - strlen(ending), ending) == 0;
        writable.stem = ends ? size - strlen(ending) : size;
    }
    if (writable.given) {
        writable.directory = open_named(rights, writable.given, O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    bool is = size > 0 && writable.directory >= 0 &&
              descriptor_path(writable.directory, absolute) &&
              fstat(writable.directory, &writable.status) == 0 &&
              asprintf(&writable.absolute, "%s%s", absolute, absolute[1] ? "/" : "") >= 0;
    if (is &&
        ARRAY_RESERVE(rights->writables, rights->writable_count, rights->writable_room) == 0) {
        rights->writables[rights->writable_count++] = writable;
    } else {
        writable.absolute = is ? writable.absolute : NULL;
        free_writable(&writable);
    }
}

void rights_write(struct rights *rights, const char *path)
{
    write_into(rights, path, false);
}

void rights_write_images(struct rights *rights, const char *path)
{
    write_into(rights, path, true);
}

void rights_of_words(struct rights *rights, char *const *words)
{
    for (; *words; words++) {
        const char *word = *words;
        const char *value = strchr(word, '=');
        if (strncmp(word, "-o", 2) == 0 || strncmp(word, "--o", 3) == 0) {
            bool is_whole = word[1] == '-' ? !value : !word[2];
            words += is_whole && words[1];
            rights_write(rights, is_whole                  ? *words
                                 : value && word[1] == '-' ? value + 1
                                                           : word + 2);
        } else {
            rights_read(rights, word);
            rights_read_list(rights, *word == '-' && value ? value + 1 : word);
        }
    }
}

/* ---- Judging ---- */

/* A file below a directory that was given. A second name that somebody has given to a file of
 * another's does not make it one of the directory's. */
static bool was_given(const struct rights *rights, const char *name, const struct stat *status)
{
    for (uint32_t i = 0; i < rights->readable_count; i++) {
        const struct readable *readable = &rights->readables[i];
        size_t size = readable->path ? strlen(readable->path) : 0;
        if (same(&readable->status, status)) {
            return true;
        }
        size -= size == 1; /* "/" */
        if (readable->path && strncmp(name, readable->path, size) == 0 &&
            (name[size] == '/' || name[size] == '\0') &&
            (S_ISDIR(status->st_mode) || status->st_nlink <= 1 ||
             status->st_uid == readable->status.st_uid)) {
            return true;
        }
    }
    return false;
}

/* "/proc/1/comm", "/proc/1/task/2/status", "/proc/1/task/2". */
static bool is_of_process(const char *name)
{
    static const char *const files[] = {"/comm", "/status", "/stat", "/maps", "/task", "", NULL};
    if (strncmp(name, "/proc/", 6) != 0 || !isdigit((unsigned char)name[6])) {
        return false;
    }
    name += 6 + strspn(name + 6, "0123456789");
    if (strncmp(name, "/task/", 6) == 0 && isdigit((unsigned char)name[6])) {
        name += 6 + strspn(name + 6, "0123456789");
    }
    for (size_t i = 0; files[i]; i++) {
        if (strcmp(name, files[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* What the system tells of itself. */
static bool is_of_system(const char *name)
{
    static const char *const files[] = {
        "/proc/kallsyms",
        "/proc/modules",
        "/proc/meminfo",
        "/proc/uptime",
        "/sys/kernel/notes",
        "/sys/devices/system/cpu/online",
        "/sys/devices/system/cpu/possible",
        NULL,
    };
    static const char zones[] = "/usr/share/zoneinfo/";
    for (size_t i = 0; files[i]; i++) {
        if (strcmp(name, files[i]) == 0) {
            return true;
        }
    }
    return strncmp(name, zones, strlen(zones)) == 0 || is_of_process(name);
}

/* The running kernel's names, of which root has kept a copy (objects_kernel_copy). */
static bool is_kept_kernel(const char *name, const struct stat *status)
{
    return text_begins(name, KERNEL_COPY) && status->st_uid == 0;
}

/* What its first bytes say that it is: machine code, or what an agent of ours writes. */
static bool is_of_a_profile(int fd, const char *name, const struct stat *status)
{
    static const uint32_t magics[] = {JITDUMP_MAGIC, JITDUMP_MAGIC_SWAPPED,
                                      METHODS_MAGIC, METHODS_MAGIC_SWAPPED,
                                      THREADS_MAGIC, THREADS_MAGIC_SWAPPED};
    const char *base = strrchr(name, '/') + 1;
    bool is_ours = strncmp(base, "jit-", 4) == 0;
    uint32_t magic;
    if (pread(fd, &magic, sizeof magic, 0) != sizeof magic) {
        return is_ours && status->st_size == 0; /* not written yet */
    }
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++) {
        if (magic == magics[i]) {
            return true;
        }
    }
    size_t size = strlen(base);
    return memcmp(&magic, ELFMAG, SELFMAG) == 0 ||
           (memcmp(&magic, "PK\3\4", 4) == 0 && strcmp(base, "src.zip") == 0) ||
           (is_ours && status->st_nlink == 1 && size > 4 && strcmp(base + size - 4, ".log") == 0);
}

bool rights_may_read(const struct rights *rights, int fd, const struct stat *status)
{
    char name[PATH_MAX];
    if (!descriptor_path(fd, name)) {
        return false;
    }
    if (S_ISDIR(status->st_mode)) {
        return was_given(rights, name, status) || is_of_system(name);
    }
    return S_ISREG(status->st_mode) &&
           (was_given(rights, name, status) || is_of_system(name) || is_kept_kernel(name, status) ||
            is_of_a_profile(fd, name, status));
}

/* "perf.jit.data" itself, "perf.jit.data.Xy" while it is written, "perf.jit-java.so". */
static bool is_name_of(const struct writable *writable, const char *name)
{
    size_t size = strlen(writable->name);
    if (strncmp(name, writable->name, size) == 0 && (!name[size] || name[size] == '.')) {
        return true;
    }
    return writable->stem && strncmp(name, writable->name, writable->stem) == 0 &&
           (name[writable->stem] == '.' || name[writable->stem] == '-');
}

/* "a/b" and "a/b/" are one. */
static bool is_path(const char *path, const char *directory)
{
    size_t size = strlen(directory);
    return strcmp(path, directory) == 0 ||
           (strlen(path) + 1 == size && strncmp(path, directory, size - 1) == 0);
}

int rights_writable(const struct rights *rights, const char *directory, const struct stat *status,
                    const char *name)
{
    for (uint32_t i = 0; i < rights->writable_count; i++) {
        const struct writable *writable = &rights->writables[i];
        bool is = is_path(directory, writable->given) || is_path(directory, writable->absolute) ||
                  (status && same(&writable->status, status));
        if (is && (!name || is_name_of(writable, name))) {
            return writable->directory;
        }
    }
    return -1;
}
