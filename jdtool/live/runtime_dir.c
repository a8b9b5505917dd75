#include "jdtool/live/runtime_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *runtime_dir_path(char path[PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    int n = geteuid() == 0               ? snprintf(path, PATH_MAX, "/run/jdagent")
            : runtime && *runtime == '/' ? snprintf(path, PATH_MAX, "%s/jdagent", runtime)
                                         : -1;
    if (n < 0 || n >= PATH_MAX) {
        path[0] = '\0';
    }
    return path;
}

int runtime_dir_open(bool make)
{
    char path[PATH_MAX];
    struct stat status;
    if (!*runtime_dir_path(path)) {
        return -ENOENT;
    }
    /* XDG_RUNTIME_DIR is to be the user's own (its specification says so): who may write there may
     * rename ours. */
    char parent[PATH_MAX];
    snprintf(parent, sizeof parent, "%s", path);
    *strrchr(parent, '/') = '\0';
    if (stat(parent, &status) != 0) {
        return -errno;
    }
    if (status.st_uid != geteuid() || (status.st_mode & 022)) {
        return -EPERM;
    }
    if (make && mkdir(path, 0755) != 0 && errno != EEXIST) {
        return -errno;
    }
    int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (directory < 0) {
        return -errno;
    }
    if (fstat(directory, &status) != 0 || status.st_uid != geteuid() || (status.st_mode & 022)) {
        close(directory);
        return -EPERM;
    }
    return directory;
}
