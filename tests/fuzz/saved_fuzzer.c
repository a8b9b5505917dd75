/*
 * libFuzzer target: a file that claims to be saved samples, not packed, goes into an export. The
 * first byte chooses which.
 */
#include "jdtool/exports/export.h"
#include "jdtool/pipeline/replay.h"
#include "tests/fuzz/silent.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    char path[64];
    uint32_t formats = 0;
    struct export_memory memory = {0};
    struct sample_sink *sink;
    if (fd < 0) {
        fd = memfd_create("saved", MFD_CLOEXEC);
    }
    if (size < 1) {
        return 0;
    }
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, data + 1, size - 1, 0) != (ssize_t)size - 1) {
        abort();
    }
    while (export_formats[formats]) {
        formats++;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct export_order order = {.format = export_formats[data[0] % formats],
                                 .settings = {.path = path, .memory = &memory}};
    if (export_sink_new(&order, 1, &sink) == 0) {
        const struct replay_options options = {.input = path};
        if (replay_run(&options, &sink, 1) == 0 && !memory.bytes) {
            fprintf(stderr, "a result that is not there\n");
            abort();
        }
    }
    free(memory.bytes);
    return 0;
}
