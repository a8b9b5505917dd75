#include "writer/source_text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool leads_out(const char *path)
{
    if (*path == '/') {
        return true;
    }
    for (const char *part = path; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0')) {
            return true;
        }
    }
    return false;
}

static char *read_all(int fd, size_t size)
{
    char *text = malloc(size ? size : 1);
    size_t have = 0;
    while (text && have < size) {
        ssize_t got = read(fd, text + have, size - have);
        if (got <= 0) { /* an error, or it has shrunk since */
            free(text);
            return NULL;
        }
        have += (size_t)got;
    }
    return text;
}

static char *read_file(const char *path, size_t *size)
{
    /* Not blocking: it may turn out to be a FIFO. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return NULL;
    }
    char *text = NULL;
    struct stat st;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SOURCE_TEXT_MAX) {
        *size = (size_t)st.st_size;
        text = read_all(fd, *size);
    }
    close(fd);
    return text;
}

/*
 * Writes into `full` where the file would be in the first directory of *source_path, and moves that
 * behind it. False: there is no directory left. An empty name: it would be too long.
 */
static bool next_place(const char **source_path, const char *path, char full[PATH_MAX])
{
    if (!**source_path) {
        return false;
    }
    size_t length = strcspn(*source_path, ":");
    int n = snprintf(full, PATH_MAX, "%.*s/%s", (int)length, *source_path, path);
    if (length == 0 || n < 0 || n >= PATH_MAX) {
        full[0] = '\0';
    }
    *source_path += length + ((*source_path)[length] == ':');
    return true;
}

char *source_text_read(const char *source_path, const char *path, size_t *size)
{
    char full[PATH_MAX];
    char *text = NULL;
    while (!text && !leads_out(path) && next_place(&source_path, path, full)) {
        text = read_file(full, size);
    }
    return text;
}

bool source_text_exists(const char *source_path, const char *path)
{
    char full[PATH_MAX];
    while (!leads_out(path) && next_place(&source_path, path, full)) {
        if (access(full, R_OK) == 0) {
            return true;
        }
    }
    return false;
}
