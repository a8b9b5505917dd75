/*
 * When each LOAD of a jitdump can be read by somebody who follows the file: readable OUT DIRECTORY
 * COMMAND... runs the command with JITDUMPDIR=DIRECTORY, follows the dump that appears below it
 * (.debug/jit/NAME/jit-PID.dump, where perf's agent and ours both put it), and writes a line for
 * each LOAD that is there to its last byte:
 *
 *   FOUND BEFORE ADDRESS NAME
 *
 * FOUND is when it was first seen, in nanoseconds of CLOCK_MONOTONIC, BEFORE when it was looked for
 * the last time in vain: the true time is between the two. Exits with the command's status.
 */
#include "format/jitdump.h"

#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define POLL_NS 100000

struct followed {
    int file;       /* -1 while there is none */
    off_t next;     /* where the next record starts */
    uint64_t found; /* the last look at the file's size, ns */
    uint64_t before;
};

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int open_dump(const char *directory)
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/.debug/jit/*/jit-*.dump", directory);
    glob_t found;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) != 0) {
        return -1;
    }
    int file = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
    globfree(&found);
    return file;
}

static void note_load(const struct followed *dump, FILE *out)
{
    struct {
        struct jitdump_load load;
        char name[2048];
    } record;
    ssize_t got = pread(dump->file, &record, sizeof record - 1, dump->next);
    if (got <= (ssize_t)sizeof record.load) {
        return;
    }
    record.name[got - (ssize_t)sizeof record.load] = '\0';
    fprintf(out, "%llu %llu %#llx %s\n", (unsigned long long)dump->found,
            (unsigned long long)dump->before, (unsigned long long)record.load.code_addr,
            record.name);
}

/* Notes what became whole since the last look. */
static void look(struct followed *dump, const char *directory, FILE *out)
{
    if (dump->file < 0) {
        dump->file = open_dump(directory);
        dump->next = sizeof(struct jitdump_header);
    }
    struct stat status;
    if (dump->file < 0 || fstat(dump->file, &status) != 0) {
        return;
    }
    dump->before = dump->found;
    dump->found = now();
    struct jitdump_record record;
    while (dump->next + (off_t)sizeof record <= status.st_size &&
           pread(dump->file, &record, sizeof record, dump->next) == (ssize_t)sizeof record &&
           record.total_size >= sizeof record &&
           dump->next + (off_t)record.total_size <= status.st_size) {
        if (record.id == JIT_CODE_LOAD) {
            note_load(dump, out);
        }
        dump->next += record.total_size;
    }
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: readable OUT DIRECTORY COMMAND...\n");
        return 2;
    }
    FILE *out = fopen(argv[1], "we");
    if (out == NULL || setenv("JITDUMPDIR", argv[2], 1) != 0) {
        perror(argv[1]);
        return 1;
    }
    pid_t command = fork();
    if (command == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(argv[3], argv + 3);
        perror(argv[3]);
        _exit(127);
    }
    if (command < 0) {
        perror("readable: failed to fork");
        return 1;
    }
    /* Waiting for a processor would count as the agent's delay. Not everybody may do this; what it
     * costs shows as the time between FOUND and BEFORE. */
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    prctl(PR_SET_TIMERSLACK, 1); /* the default adds 50 us to each sleep */
    struct followed dump = {.file = -1};
    int status = 0;
    bool ended = false;
    while (!ended) {
        ended = waitpid(command, &status, WNOHANG) != 0;
        look(&dump, argv[2], out);
        nanosleep(&(struct timespec){0, POLL_NS}, NULL);
    }
    if (dump.file < 0) {
        fprintf(stderr, "readable: no dump appeared below %s\n", argv[2]);
    }
    bool fine = fclose(out) == 0 && dump.file >= 0 && WIFEXITED(status);
    return fine ? WEXITSTATUS(status) : 1;
}
