/*
 * A directory in memory for a fuzz target's files. Who has no rights may read what is in it (a
 * memfd cannot be opened by its name there), write to what was open before, and make a new file
 * "made", again and again.
 */
#ifndef JD_FUZZ_DIRECTORY_H
#define JD_FUZZ_DIRECTORY_H

#include "confined_fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Not called "/dev/shm/": what is mapped from there is no file to objects.c. */
static char directory[] = "/dev/./shm/jd-fuzz-XXXXXX";

static void leave(void)
{
    if (chdir("/") == 0) {
        char command[64];
        snprintf(command, sizeof command, "rm -rf %s", directory);
        (void)!system(command);
    }
}

/* It is the working directory from then on. */
static void enter(void)
{
    if (!mkdtemp(directory) || chdir(directory)) {
        abort();
    }
    atexit(leave);
}

void fuzz_rights(struct rights *rights)
{
    rights_read(rights, directory);
    rights_write(rights, "made");
}

/* Stays open. */
static inline int make_file(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        abort();
    }
    return fd;
}

/* Writes it over: to make one takes longer than most inputs do. */
static inline void fill_file(int fd, const void *data, size_t size)
{
    if (pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) != 0) {
        abort();
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target's own: what is done once, in the directory, before all inputs. */
static void begin(void);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    enter();
    begin();
    return 0;
}

#endif
