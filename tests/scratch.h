/* A directory of its own for each test that needs files, and what is done with files there. */
#ifndef JD_TESTS_SCRATCH_H
#define JD_TESTS_SCRATCH_H

#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* cmocka set-up and tear-down: *state is the directory's path. */
static inline int scratch_create(void **state)
{
    char *path = strdup("/tmp/jdagent-test-XXXXXX");
    *state = path;
    return path && mkdtemp(path) ? 0 : -1;
}

static inline int scratch_remove_one(const char *path, const struct stat *status, int kind,
                                     struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline int scratch_remove(void **state)
{
    char *path = *state;
    int error = nftw(path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(path);
    return error;
}

/* The path of a file in the scratch directory; valid until the fourth next call. */
static inline const char *scratch_path(void **state, const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    int length = snprintf(path, sizeof(paths[0]), "%s/%s", (const char *)*state, name);
    if (length < 0 || (size_t)length >= sizeof(paths[0])) {
        abort(); /* another file than the test means */
    }
    return path;
}

/* The contents of a file, NUL behind them; the caller frees. NULL when it cannot be read. */
static inline uint8_t *scratch_read(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        return NULL;
    }
    uint8_t *bytes = NULL;
    size_t n = 0;
    size_t room = 0;
    do {
        if (n + 1 >= room) {
            room = room ? room * 2 : 4096;
            bytes = realloc(bytes, room);
        }
        size_t got = fread(bytes + n, 1, room - n - 1, file);
        if (got == 0) {
            break;
        }
        n += got;
    } while (1);
    bytes[n] = 0;
    fclose(file);
    if (size) {
        *size = n;
    }
    return bytes;
}

/* The same in `text`, of which `room` bytes are there: its beginning. */
static inline void scratch_read_text(const char *path, char *text, size_t room)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        abort();
    }
    text[fread(text, 1, room - 1, file)] = '\0';
    fclose(file);
}

static inline void write_bytes(const char *path, const void *bytes, size_t size)
{
    FILE *out = fopen(path, "we");
    if (!out || fwrite(bytes, 1, size, out) != size || fclose(out)) {
        abort();
    }
}

static inline void scratch_write(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

#endif
