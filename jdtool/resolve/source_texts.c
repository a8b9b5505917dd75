#include "jdtool/resolve/source_texts.h"

#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"
#include "jdtool/base/text.h"
#include "jdtool/resolve/zip_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Where sources are ---- */

struct source_path {
    char **roots; /* those given, then the directories in them */
    unsigned count;
    bool has_files; /* there is something below them */
};

static int add(struct source_path *path, const char *root)
{
    char **roots = realloc(path->roots, (path->count + 1) * sizeof(char *));
    if (!roots) {
        return -ENOMEM;
    }
    path->roots = roots;
    roots[path->count] = strdup(root);
    return roots[path->count++] ? 0 : -ENOMEM;
}

static int add_given(struct source_path *path, const char *directories)
{
    char *copy = strdup(directories);
    int err = copy ? 0 : -ENOMEM;
    char *rest = copy;
    for (char *given; !err && (given = path_list_next(&rest));) {
        if (!*given) {
            continue;
        }
        char *absolute = directory_path(given);
        if (!absolute) {
            err = -errno;
            failed_to(-errno, "find source directory %s", given);
        } else {
            err = add(path, absolute);
        }
        free(absolute);
    }
    free(copy);
    return err;
}

static int add_modules(struct source_path *path, const char *root)
{
    DIR *directory = opendir(root);
    struct dirent *entry;
    int err = 0;
    while (directory && !err && (entry = readdir(directory))) {
        char below[PATH_MAX];
        struct stat status;
        int size = snprintf(below, sizeof below, "%s/%s", root, entry->d_name);
        path->has_files |= entry->d_name[0] != '.';
        if (entry->d_name[0] != '.' && size < (int)sizeof below && stat(below, &status) == 0 &&
            S_ISDIR(status.st_mode)) {
            err = add(path, below);
        }
    }
    if (directory) {
        closedir(directory);
    }
    return err;
}

int source_path_open(const char *directories, struct source_path **out)
{
    struct source_path *path = calloc(1, sizeof *path);
    int err = path ? 0 : -ENOMEM;
    *out = NULL;
    if (!err && directories) {
        err = add_given(path, directories);
        unsigned given = path->count;
        for (unsigned i = 0; i < given && !err; i++) {
            err = add_modules(path, path->roots[i]);
        }
    }
    if (err) {
        source_path_close(path);
        return err;
    }
    *out = path;
    return 0;
}

void source_path_close(struct source_path *path)
{
    if (!path) {
        return;
    }
    for (unsigned i = 0; i < path->count; i++) {
        free(path->roots[i]);
    }
    free(path->roots);
    free(path);
}

const char *source_path_root(struct source_path *path, const char *file)
{
    for (unsigned i = 0; i < path->count && path->has_files; i++) {
        char full[PATH_MAX];
        int size = snprintf(full, sizeof full, "%s/%s", path->roots[i], file);
        if (size < (int)sizeof full && access(full, R_OK) == 0) {
            return path->roots[i];
        }
    }
    return path->count ? path->roots[0] : NULL;
}

/* ---- Their texts ---- */

#define ARCHIVES_MAX 128 /* a JDK has 70 jmods */
#define TEXT_MAX     ((off_t)16 * 1024 * 1024)

struct source_texts {
    struct source_path *path;
    struct zip_file *archives[ARCHIVES_MAX];
    char *homes[ARCHIVES_MAX]; /* of the JDKs, those without an archive included */
    uint32_t count;
    pthread_mutex_t lock; /* several results are written at the same time */
};

static int add_archive(struct source_texts *texts, const char *path)
{
    if (texts->count == ARCHIVES_MAX) {
        error_message("failed to look for sources in %s: more than %d archives", path,
                      ARCHIVES_MAX);
        return -E2BIG;
    }
    int err = zip_file_open(path, &texts->archives[texts->count]);
    if (err && err != -ENOMEM) {
        error_message("failed to look for sources in %s: %s", path,
                      err == -EBADMSG ? "it is not an archive" : strerror(-err));
    }
    texts->homes[texts->count++] = NULL;
    return err;
}

/* What of a source path is a file. */
static int add_archives(struct source_texts *texts, const char *path)
{
    char *copy = strdup(path);
    char *rest = copy;
    int err = copy ? 0 : -ENOMEM;
    for (char *given; !err && (given = path_list_next(&rest));) {
        struct stat status;
        if (stat(given, &status) == 0 && S_ISREG(status.st_mode)) {
            err = add_archive(texts, given);
        }
    }
    free(copy);
    return err;
}

int source_texts_open(const char *path, struct source_texts **out)
{
    struct source_texts *texts = calloc(1, sizeof *texts);
    if (texts) {
        (void)pthread_mutex_init(&texts->lock, NULL);
    }
    int err = texts ? source_path_open(path, &texts->path) : -ENOMEM;
    if (!err && path) {
        err = add_archives(texts, path);
    }
    if (err == -ENOMEM) {
        failed_to(-ENOMEM, "look for sources");
    }
    if (err) {
        source_texts_close(texts);
        return err;
    }
    *out = texts;
    return 0;
}

void source_texts_close(struct source_texts *texts)
{
    if (!texts) {
        return;
    }
    for (uint32_t i = 0; i < texts->count; i++) {
        zip_file_close(texts->archives[i]);
        free(texts->homes[i]);
    }
    source_path_close(texts->path);
    (void)pthread_mutex_destroy(&texts->lock);
    free(texts);
}

/* HOME/lib/server/libjvm.so, or HOME/jre/lib/amd64/server/libjvm.so in JDK 8. */
static int add_jdk(struct source_texts *texts, const struct module *module)
{
    static const char *const tails[] = {"/lib/server/libjvm.so", "/jre/lib/amd64/server/libjvm.so",
                                        "/jre/lib/aarch64/server/libjvm.so"};
    static const char *const places[] = {"lib/src.zip", "src.zip"};
    size_t size = module && module->path ? strlen(module->path) : 0;
    char *home = NULL;
    for (size_t i = 0; i < sizeof tails / sizeof *tails && !home; i++) {
        size_t tail = strlen(tails[i]);
        if (size > tail && strcmp(module->path + size - tail, tails[i]) == 0) {
            home = strndup(module->path, size - tail);
            if (!home) {
                return -ENOMEM;
            }
        }
    }
    for (uint32_t i = 0; home && i < texts->count; i++) {
        if (texts->homes[i] && strcmp(texts->homes[i], home) == 0) {
            free(home);
            return 0;
        }
    }
    if (!home || texts->count == ARCHIVES_MAX) {
        free(home);
        return 0;
    }
    for (size_t i = 0; i < 2 && !texts->archives[texts->count]; i++) {
        char path[PATH_MAX];
        if (snprintf(path, sizeof path, "%s/%s", home, places[i]) < (int)sizeof path &&
            zip_file_open(path, &texts->archives[texts->count]) == -ENOMEM) {
            free(home);
            return -ENOMEM;
        }
    }
    texts->homes[texts->count++] = home;
    return 0;
}

/* Whether a name stays below the directory it is looked for in. */
static bool is_below(const char *file)
{
    if (file[0] == '\0' || file[0] == '/') {
        return false;
    }
    for (const char *part = file; *part;) {
        size_t size = strcspn(part, "/");
        if (size == 2 && part[0] == '.' && part[1] == '.') {
            return false;
        }
        part += size + (part[size] == '/');
    }
    return true;
}

static int read_file(const char *path, char **text, size_t *size)
{
    struct stat status;
    /* A name from a dump may be that of a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return 0;
    }
    int err = 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= TEXT_MAX) {
        char *made = malloc((size_t)status.st_size + 1);
        size_t got = 0;
        ssize_t n = 1;
        while (made && n > 0 && got < (size_t)status.st_size) {
            n = read(fd, made + got, (size_t)status.st_size - got);
            got += n > 0 ? (size_t)n : 0;
        }
        err = made ? 0 : -ENOMEM;
        if (made) {
            made[got] = '\0';
            *text = made;
            *size = got;
        }
    }
    close(fd);
    return err;
}

/* Kotlin's and Scala's sources may lie anywhere: customarily the directories that all packages of a
 * project have in common are left out. */
static bool may_lie_elsewhere(const char *file)
{
    const char *end = strrchr(file, '.');
    return end && (strcmp(end, ".kt") == 0 || strcmp(end, ".scala") == 0);
}

/* Whether a text is of the package that the file's directory stands for: "package a.b", or in Scala
 * "package a" and "package b" on lines of their own. */
static bool is_of_package(const char *text, const char *file)
{
    static const char clause[] = "package ";
    const char *end = strrchr(file, '/');
    const char *wanted = file;
    for (const char *line = text; line && wanted < end; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, clause, sizeof clause - 1) != 0) {
            continue;
        }
        line += sizeof clause - 1;
        line += strspn(line, " \t");
        for (; wanted < end && (*line == '`' || *line == (*wanted == '/' ? '.' : *wanted));
             line++) {
            wanted += *line != '`';
        }
        if (wanted < end && *wanted++ != '/') {
            return false;
        }
        line += *line == '`';
        if (!strchr(" \t\r\n:;{", *line)) {
            return false; /* a longer name */
        }
    }
    return wanted == end;
}

/* Below a directory of the path without the first ones of its package, as many as there are. */
static int read_elsewhere(struct source_texts *texts, const char *file, char **text, size_t *size)
{
    char path[PATH_MAX];
    int err = 0;
    for (const char *rest = strchr(file, '/'); rest && !*text && !err; rest = strchr(rest, '/')) {
        rest++;
        for (unsigned i = 0; i < texts->path->count && !*text && !err; i++) {
            if (snprintf(path, sizeof path, "%s/%s", texts->path->roots[i], rest) <
                (int)sizeof path) {
                err = read_file(path, text, size);
            }
            if (*text && !is_of_package(*text, file)) {
                free(*text);
                *text = NULL;
            }
        }
    }
    return err;
}

static int read_text(struct source_texts *texts, const char *file, char **text, size_t *size)
{
    *text = NULL;
    if (!is_below(file)) {
        return 0;
    }
    char path[PATH_MAX];
    const char *root = source_path_root(texts->path, file);
    if (root && snprintf(path, sizeof path, "%s/%s", root, file) < (int)sizeof path) {
        int err = read_file(path, text, size);
        if (err || *text) {
            return err;
        }
    }
    for (uint32_t i = 0; i < texts->count && !*text; i++) {
        if (texts->archives[i] && zip_file_read(texts->archives[i], file, text, size) == -ENOMEM) {
            return -ENOMEM;
        }
    }
    return *text || !may_lie_elsewhere(file) ? 0 : read_elsewhere(texts, file, text, size);
}

int source_texts_add_jdk(struct source_texts *texts, const struct module *module)
{
    pthread_mutex_lock(&texts->lock);
    int err = add_jdk(texts, module);
    pthread_mutex_unlock(&texts->lock);
    return err;
}

int source_texts_read(struct source_texts *texts, const char *file, char **text, size_t *size)
{
    pthread_mutex_lock(&texts->lock);
    int err = read_text(texts, file, text, size);
    pthread_mutex_unlock(&texts->lock);
    return err;
}
