/* A recording's JVM and its dump as files of a test's scratch directory. */
#ifndef JD_TESTS_RECORDING_FILES_H
#define JD_TESTS_RECORDING_FILES_H

#include "tests/recording_builder.h"
#include "tests/scratch.h"

/* Frees it. */
static inline void write_dump(void **state, struct dump_builder *dump, const char *name)
{
    write_bytes(scratch_path(state, name), dump->bytes, dump->size);
    dump_free(dump);
}

/* That of build_simple_dump. */
static inline void write_simple_dump(void **state)
{
    struct dump_builder dump = {0};
    build_simple_dump(&dump);
    write_dump(state, &dump, "jit-4242.dump");
}

/* The mapping by which it is found. */
static inline void put_marker(struct perf_file *file, void **state)
{
    put_mmap2(file, PID, 1000050, 0x7f0000000000, 4096, scratch_path(state, "jit-4242.dump"));
}

/* A recording whose JVM has that dump and has mapped it. */
static inline struct perf_file recording_of_jvm(void **state)
{
    struct perf_file file = recording();
    write_simple_dump(state);
    put_marker(&file, state);
    return file;
}

#endif
