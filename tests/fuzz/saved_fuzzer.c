/* Fuzzes the reader of saved samples. The first byte chooses which. */
#include "fuzz_directory.h"

#include "jdtool/exports/export.h"
#include "jdtool/pipeline/replay.h"
#include "tests/fuzz/silent.h"

#include <stdio.h>
#include <stdlib.h>

static int file;

static void begin(void)
{
    file = make_file("saved");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint32_t formats = 0;
    struct export_memory memory = {0};
    struct sample_sink *sink;
    if (size < 1) {
        return 0;
    }
    fill_file(file, data + 1, size - 1);
    while (export_formats[formats]) {
        formats++;
    }
    struct export_order order = {.format = export_formats[data[0] % formats],
                                 .settings = {.path = "made", .memory = &memory}};
    if (export_sink_new(&order, 1, &sink) == 0) {
        const struct replay_options options = {.input = "saved"};
        if (replay_run(&options, sink) == 0 && !memory.bytes) {
            fprintf(stderr, "a result that is not there\n");
            abort();
        }
    }
    free(memory.bytes);
    return 0;
}
