#include "writer/log/dump_place.h"

#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* More sessions than this in one directory are somebody's mistake. */
enum { SESSIONS_MAX = 1000000 };

/* Whether what stands there keeps us away: a file does, and a link or device is a trap. */
static int look_at(int directory, const char *path, const char *name)
{
    struct stat there;
    if (fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0;
    }
    if (!S_ISREG(there.st_mode)) {
        message(MESSAGE_ERROR,
                "failed to create %s/%s: something other than a file is in its place", path, name);
        return -EISDIR;
    }
    return -EEXIST;
}

static int create_in(int directory, const char *path, unsigned pid, struct output_file *file)
{
    /* What stands beside a dump: without it, it would be taken to belong to ours. */
    static const char *const suffixes[] = {"dump", "methods", "threads", "log"};
    char full[PATH_MAX];
    int error = 0;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes) && !error; i++) {
        char name[64];
        snprintf(name, sizeof(name), "jit-%u.%s", pid, suffixes[i]);
        error = look_at(directory, path, name);
    }
    int n = snprintf(full, sizeof(full), "%s/jit-%u.dump", path, pid);
    if (!error && (n < 0 || (size_t)n >= sizeof(full))) {
        error = -ENAMETOOLONG;
        message(MESSAGE_ERROR, "failed to create a dump in %s: %s", path, strerror(-error));
    }
    return error ? error : output_file_create(file, directory, full, OUTPUT_FILE_REFUSE_QUIETLY);
}

/* In the first session-N that is not there yet. */
static int create_in_session(int directory, const char *path, unsigned pid,
                             struct output_file *file, int *place)
{
    char session[PATH_MAX];
    int error = -EEXIST;
    for (unsigned number = 2; error == -EEXIST && number < SESSIONS_MAX; number++) {
        int n = snprintf(session, sizeof(session), "%s/session-%u", path, number);
        if (n < 0 || (size_t)n >= sizeof(session)) {
            error = -ENAMETOOLONG;
        } else if (mkdirat(directory, strrchr(session, '/') + 1, 0700) != 0) {
            error = -errno;
        } else {
            int own = openat(directory, strrchr(session, '/') + 1,
                             O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (own < 0) {
                error = -errno;
                break;
            }
            error = create_in(own, session, pid, file);
            if (!error) {
                *place = own;
            } else {
                close(own);
                (void)unlinkat(directory, strrchr(session, '/') + 1, AT_REMOVEDIR);
            }
            return error;
        }
    }
    message(MESSAGE_ERROR, "failed to make the directory %s: %s", session, strerror(-error));
    return error;
}

int dump_place_create(int directory, const char *path, unsigned pid, struct output_file *file,
                      int *place)
{
    *file = (struct output_file){.fd = -1};
    int own =
        openat(directory, directory == AT_FDCWD ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) {
        int error = -errno;
        message(MESSAGE_ERROR, "failed to open the directory %s: %s", path, strerror(-error));
        return error;
    }
    int error = create_in(own, path, pid, file);
    if (!error) {
        *place = own;
        return 0;
    }
    if (error == -EEXIST) {
        error = create_in_session(own, path, pid, file, place);
    }
    close(own);
    return error;
}
