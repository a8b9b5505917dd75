/*
 * Fuzzes jdtool inject with recordings and dumps. The input is a byte that chooses options, two
 * with the size of the recording, the recording, the dump. Beside what the sanitizers find: the
 * result must be a recording that can be read.
 */
#include "jdtool/base/verb.h"
#include "jdtool/perf/perf_data.h"
#include "tests/fuzz/silent.h"

#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char directory[] = "/dev/shm/inject-fuzz-XXXXXX";

static void leave(void)
{
    if (chdir("/") == 0) {
        char command[64];
        snprintf(command, sizeof command, "rm -rf %s", directory);
        (void)!system(command);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    if (!freopen("/dev/null", "w", stdout) || !mkdtemp(directory) || chdir(directory)) {
        abort();
    }
    atexit(leave);
    return 0;
}

static void write_file(const char *name, const uint8_t *data, size_t size)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    close(fd);
}

static void read_result(void)
{
    struct perf_data *data;
    struct perf_record record;
    struct perf_sample sample;
    int more;
    if (perf_data_open("r.data", &data)) {
        fprintf(stderr, "the result cannot be opened\n");
        abort();
    }
    while ((more = perf_data_next(data, &record)) > 0) {
        (void)perf_sample_decode(data, &record, &sample);
    }
    if (more < 0) {
        fprintf(stderr, "the result cannot be read\n");
        abort();
    }
    perf_data_close(data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char *const modes[] = {"expand", "dwarf", "off", "expand"};
    if (size < 3) {
        return 0;
    }
    size_t recording = data[1] | (size_t)data[2] << 8;
    if (recording > size - 3) {
        recording = size - 3;
    }
    write_file("p.data", data + 3, recording);
    write_file("jit-4242.dump", data + 3 + recording, size - 3 - recording);
    char *argv[16] = {"inject",      "-q",        "-i",       "p.data",
                      "-o",          "r.data",    "--dump",   "jit-4242.dump",
                      "--scorecard", "card.json", "--inline", modes[data[0] & 3]};
    int argc = 12;
    if (data[0] & 4) {
        argv[argc++] = "--leaf";
    }
    if (data[0] & 8) {
        argv[argc++] = "--keep-all";
    }
    if (data[0] & 16) {
        argv[argc++] = "--keep-stacks";
    }
    optind = 0;
    if (verb_inject.run(&verb_inject, argc, argv) == STATUS_DONE) {
        read_result();
    }
    unlink("r.data");
    return 0;
}
