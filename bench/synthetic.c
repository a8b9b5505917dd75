/*
 * A JIT without a JVM, for measuring injectors: synthetic DIRECTORY BLOBS SECONDS makes that many
 * pieces of machine code, describes each through the writer, and runs them in turns for a while.
 * Recorded with perf, it gives a perf.data and a dump of any size that belong together.
 */
#include "tests/one_sink.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ROOM 2048 /* for each piece of code */
#define ROWS 40

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* push rbp; mov rbp,rsp; mov ecx,N; loop: dec ecx; jnz loop; pop rbp; ret; then nothing but nops */
static void emit(unsigned char *at, size_t size)
{
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0x08, 0x00,
                                         0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
    memset(at, 0x90, size);
    memcpy(at, code, sizeof code);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: synthetic DIRECTORY BLOBS SECONDS\n");
        return 2;
    }
    size_t blobs = strtoul(argv[2], NULL, 10);
    double seconds = strtod(argv[3], NULL);
    unsigned char *heap = mmap(NULL, blobs * ROOM, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct occupancy *sink = NULL;
    struct jitdump_sink_options options = {.log.directory = argv[1], .log.directory_fd = AT_FDCWD};
    if (blobs == 0 || heap == MAP_FAILED || open_jitdump(&options, &sink) != 0) {
        return 1;
    }
    struct source_file *files = calloc(blobs / 10 + 1, sizeof *files);
    struct method *methods = calloc(blobs, sizeof *methods);
    if (files == NULL || methods == NULL) {
        return 1;
    }
    for (size_t i = 0; i < blobs; i++) {
        char line[200];
        struct source_file *file = &files[i / 10];
        if (file->path == NULL) {
            snprintf(line, sizeof line, "com/example/part/Class%zu.java", i / 10);
            file->path = strdup(line);
            file->id = (uint32_t)(i / 10) + 1;
        }
        snprintf(line, sizeof line, "com.example.part.Class%zu.method%zu(java.lang.String, int)",
                 i / 10, i);
        methods[i] = (struct method){
            .name = strdup(line), .file = file, .first_line = 10, .id = (uint32_t)i + 1};

        size_t size = 800 + i * 7 % 1200;
        emit(heap + i * ROOM, size);
        struct code_row rows[ROWS];
        struct inline_range ranges[ROWS];
        struct inline_node nodes[3] = {
            {&methods[i], 0, 0}, {&methods[i / 2], 0, 12}, {&methods[i / 3], 1, 14}};
        for (uint32_t k = 0; k < ROWS; k++) {
            ranges[k] = (struct inline_range){k * 20, k % 3, 10 + k};
            rows[k] = (struct code_row){k * 20, 10 + k, nodes[k % 3].method->file};
        }
        struct code code = {.address = (uint64_t)(uintptr_t)(heap + i * ROOM),
                            .size = size,
                            .bytes = heap + i * ROOM,
                            .name = methods[i].name,
                            .method = &methods[i],
                            .facts = CODE_FACTS_UNKNOWN,
                            .rows = rows,
                            .row_count = ROWS,
                            .nodes = nodes,
                            .node_count = 3,
                            .ranges = ranges,
                            .range_count = ROWS,
                            .ranges_end = (uint32_t)size};
        code.facts.kind = JITDUMP_KIND_NMETHOD;
        if (occupancy_load(sink, &code, NULL) != 0) {
            return 1;
        }
    }
    double until = now() + seconds;
    for (size_t i = 0; now() < until; i = (i + 7919) % blobs) {
        ((void (*)(void))(void *)(heap + i * ROOM))();
    }
    occupancy_close(sink);
    return 0;
}
