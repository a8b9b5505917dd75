/*
 * The writer alone, without a JVM: writer-bench DIRECTORY RECORDS THREADS METHODS writes that many
 * records of an ordinary method (1.8 KB of code, 40 rows, an inline tree of 12 nodes) into a dump,
 * METHODS distinct ones taking turns, and prints "RECORDS SECONDS BYTES".
 */
#include "tests/one_sink.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CODE_SIZE 1800
#define ROWS      40
#define NODES     12
#define INLINED   64 /* methods that get inlined everywhere */

static struct occupancy *sink;
static struct source_file *files;
static struct method *methods;
static uint32_t method_count;
static unsigned long per_thread;
static unsigned char bytes[CODE_SIZE];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *work(void *argument)
{
    unsigned long thread = (unsigned long)argument;
    struct code_row rows[ROWS];
    struct inline_node nodes[NODES];
    struct inline_range ranges[ROWS];
    for (unsigned long i = 0; i < per_thread; i++) {
        unsigned long number = thread * per_thread + i;
        struct method *method = &methods[INLINED + number % method_count];
        for (uint32_t k = 0; k < NODES; k++) {
            nodes[k].method = k == 0 ? method : &methods[(number + k) % INLINED];
            nodes[k].parent = k / 2;
            nodes[k].call_line = k == 0 ? 0 : 100 + k;
        }
        for (uint32_t k = 0; k < ROWS; k++) {
            uint32_t node = k % NODES;
            rows[k] = (struct code_row){k * 44, 10 + k * 3, nodes[node].method->file};
            ranges[k] = (struct inline_range){k * 44, node, 10 + k * 3};
        }
        struct code code = {.address = 0x7f0000000000 + number * 2048,
                            .size = CODE_SIZE,
                            .bytes = bytes,
                            .name = method->name,
                            .method = method,
                            .facts = CODE_FACTS_UNKNOWN,
                            .rows = rows,
                            .row_count = ROWS,
                            .nodes = nodes,
                            .node_count = NODES,
                            .ranges = ranges,
                            .range_count = ROWS,
                            .ranges_end = CODE_SIZE};
        code.facts.kind = JITDUMP_KIND_NMETHOD;
        code.facts.tier = 4;
        if (occupancy_load(sink, &code, NULL) != 0) {
            exit(1);
        }
    }
    return NULL;
}

static char *text(const char *format, unsigned number)
{
    char line[200];
    snprintf(line, sizeof line, format, number, number);
    return strdup(line);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: writer-bench DIRECTORY RECORDS THREADS METHODS\n");
        return 2;
    }
    unsigned long threads = strtoul(argv[3], NULL, 10);
    method_count = (uint32_t)strtoul(argv[4], NULL, 10);
    if (threads == 0 || threads > 64 || method_count == 0) {
        return 2;
    }
    per_thread = strtoul(argv[2], NULL, 10) / threads;
    uint32_t all = INLINED + method_count;
    uint32_t file_count = all / 10 + 1;
    files = calloc(file_count, sizeof *files);
    methods = calloc(all, sizeof *methods);
    if (files == NULL || methods == NULL) {
        return 1;
    }
    for (uint32_t i = 0; i < file_count; i++) {
        files[i] =
            (struct source_file){.path = text("com/example/part/Class%u.java", i), .id = i + 1};
    }
    for (uint32_t i = 0; i < all; i++) {
        methods[i] = (struct method){
            .name = text("com.example.part.Class%u.method%u(java.lang.String, int)", i),
            .file = &files[i / 10],
            .class_name = "com.example.part.Class",
            .first_line = 10,
            .id = i + 1};
    }
    struct jitdump_sink_options options = {.log.directory = argv[1], .log.directory_fd = AT_FDCWD};
    if (open_jitdump(&options, &sink) != 0) {
        return 1;
    }
    pthread_t handles[64];
    double start = now();
    for (unsigned long i = 0; i < threads; i++) {
        if (pthread_create(&handles[i], NULL, work, (void *)i) != 0) {
            return 1;
        }
    }
    for (unsigned long i = 0; i < threads; i++) {
        pthread_join(handles[i], NULL);
    }
    double time = now() - start;
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    printf("%lu %.6f %llu\n", per_thread * threads, time, (unsigned long long)stats.bytes);
    occupancy_close(sink);
    return 0;
}
