#include "jdtool/resolve/source_path.h"

#include "jdtool/base/message.h"
#include "jdtool/base/others_file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
    for (char *given; !err && (given = strsep(&rest, ":"));) {
        if (!*given) {
            continue;
        }
        char *absolute = directory_path(given);
        if (!absolute) {
            err = -errno;
            error_message("failed to find source directory %s: %s", given, strerror(errno));
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
