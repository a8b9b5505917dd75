#include "agent/dump_directory.h"

#include "agent/options.h"
#include "writer/message.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int make(const char *path)
{
    if (mkdir(path, 0700) == 0) {
        return 0;
    }
    struct stat status;
    if (errno == EEXIST && stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode)) {
            return 0;
        }
        errno = ENOTDIR;
    }
    message(MESSAGE_ERROR, "failed to make the directory %s: %s", path, strerror(errno));
    return -1;
}

/* Whether a session of this process, as the dump's name has it, may have left a dump there. */
static bool has_own_dump(const char *directory)
{
    char path[PATH_MAX];
    struct stat status;
    snprintf(path, sizeof(path), "%s/jit-%ld.dump", directory, (long)getpid());
    return lstat(path, &status) == 0;
}

static int use_given(const char *given, char out[PATH_MAX])
{
    static bool used; /* commands come one at a time */
    bool first = !used;
    used = true;
    if (make(given) != 0) {
        return -1;
    }
    snprintf(out, PATH_MAX, "%s", given);
    if (first || !has_own_dump(given)) {
        return 0; /* what stands there now can only be a dead process's that had our pid */
    }
    for (unsigned number = 2; number < 1000000; number++) {
        snprintf(out, PATH_MAX, "%s/session-%u", given, number);
        if (mkdir(out, 0700) == 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    message(MESSAGE_ERROR, "failed to make the directory %s: %s", out, strerror(errno));
    return -1;
}

/* Appends to a path that options_check_path has found short enough. */
static void append(char path[PATH_MAX], const char *more)
{
    size_t n = strlen(path);
    snprintf(path + n, PATH_MAX - n, "%s", more);
}

int dump_directory_make(const char *given, char out[PATH_MAX])
{
    if (given[0]) {
        return use_given(given, out);
    }
    const char *what = "the environment variable JITDUMPDIR";
    const char *base = getenv("JITDUMPDIR");
    if (!base || !*base) {
        what = "the environment variable HOME";
        base = getenv("HOME");
    }
    if (!base || !*base) {
        what = "the current directory";
        base = ".";
    }
    char error[OPTIONS_ERROR_MAX];
    if (options_check_path(what, base, error)) {
        message(MESSAGE_ERROR, "%s", error);
        return -1;
    }
    snprintf(out, PATH_MAX, "%s", base);
    static const char *const parts[] = {"", "/.debug", "/jit"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        append(out, parts[i]);
        if (make(out) != 0) {
            return -1;
        }
    }
    time_t now = time(NULL);
    struct tm day;
    char name[64] = "/java-jit-XXXXXXXX";
    if (localtime_r(&now, &day)) {
        strftime(name, sizeof(name), "/java-jit-%Y%m%d.XXXXXXXX", &day);
    }
    append(out, name);
    if (!mkdtemp(out)) {
        message(MESSAGE_ERROR, "failed to make a directory in %s/.debug/jit: %s", base,
                strerror(errno));
        return -1;
    }
    return 0;
}
