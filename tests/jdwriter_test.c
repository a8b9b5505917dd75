/* libjdwriter.a works with its public header alone. */
#include "test.h"

#include <jdwriter.h>

#include "tests/scratch.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

/* Would clash with the writer's own, were those not hidden. */
int sink_load(void);
int sink_load(void)
{
    return 1;
}

static uint8_t *dump_of(const char *path, size_t *size)
{
    *size = 0;
    uint8_t *bytes = scratch_read(path, size);
    assert_non_null(bytes);
    assert_true(*size >= 40);
    assert_memory_equal(bytes, &(uint32_t){0x4A695444}, 4);
    return bytes;
}

/* Counts the records of an id; the last one ends where the file does. */
static size_t count_records(const uint8_t *bytes, size_t size, uint32_t id)
{
    size_t count = 0;
    size_t at = 40;
    while (at < size) {
        uint32_t prefix[2];
        memcpy(prefix, bytes + at, sizeof(prefix));
        assert_true(prefix[1] >= 16 && prefix[1] <= size - at);
        count += prefix[0] == id;
        at += prefix[1];
    }
    return count;
}

static struct jdwriter *open_writer(void **state, unsigned outputs)
{
    struct jdwriter *writer = NULL;
    struct jdwriter_options options = {.outputs = outputs, .directory = *state};
    assert_int_equal(jdwriter_open(&options, &writer), 0);
    assert_non_null(writer);
    return writer;
}

TEST_WITH(life_of_a_function, scratch_create, scratch_remove)
{
    static const struct jdwriter_row rows[] = {
        {2, 10, "toy.x"}, {4, 10, NULL}, {6, 11, NULL}, {8, 1, "other.x"}};
    struct jdwriter *writer = open_writer(state, JDWRITER_JITDUMP);
    char path[300];
    snprintf(path, sizeof(path), "%s", jdwriter_dump_path(writer));
    struct jdwriter_code code = {.name = "f",
                                 .address = (void *)0x10000,
                                 .size = 16,
                                 .bytes = "0123456789abcdef",
                                 .rows = rows,
                                 .row_count = 4};
    assert_int_equal(jdwriter_load(writer, &code), 0);
    assert_int_equal(jdwriter_move(writer, (void *)0x10000, (void *)0x20000, 16), 0);
    assert_int_equal(jdwriter_move(writer, (void *)0x10000, (void *)0x30000, 16), -ENOENT);
    assert_int_equal(jdwriter_unload(writer, (void *)0x20000), 0);
    assert_int_equal(jdwriter_unload(writer, (void *)0x40000), 0);
    code.row_count = 0;
    code.bytes = NULL;
    assert_int_equal(jdwriter_load(writer, &code), 0);
    jdwriter_close(writer);
    jdwriter_close(NULL);

    size_t size;
    uint8_t *bytes = dump_of(path, &size);
    assert_int_equal(count_records(bytes, size, 0), 2); /* LOAD */
    assert_int_equal(count_records(bytes, size, 1), 1); /* MOVE */
    assert_int_equal(count_records(bytes, size, 2), 1); /* DEBUG_INFO */
    assert_int_equal(count_records(bytes, size, 3), 1); /* CLOSE */
    uint64_t entries;
    memcpy(&entries, bytes + 40 + 24, sizeof(entries));
    assert_int_equal(entries, 4); /* 0: line 10, 6: line 11, 8: other.x, and the end */
    uint64_t first;
    memcpy(&first, bytes + 40 + 32, sizeof(first));
    assert_int_equal(first, 0x10000);
    free(bytes);
}

TEST_WITH(mistakes_are_refused, scratch_create, scratch_remove)
{
    struct jdwriter *writer = NULL;
    struct jdwriter_options options = {.directory = *state};
    assert_int_equal(jdwriter_open(&options, &writer), -EINVAL);
    options.outputs = 4;
    assert_int_equal(jdwriter_open(&options, &writer), -EINVAL);
    options.outputs = JDWRITER_JITDUMP;
    options.directory = "/nonexistent";
    assert_int_equal(jdwriter_open(&options, &writer), -ENOENT);

    writer = open_writer(state, JDWRITER_JITDUMP);
    struct jdwriter_row rows[] = {{0, 1, "a"}, {4, 2, NULL}};
    struct jdwriter_code code = {
        .name = "f", .address = (void *)0x1000, .size = 8, .rows = rows, .row_count = 2};
    struct jdwriter_code bad = code;
    bad.name = "";
    assert_int_equal(jdwriter_load(writer, &bad), -EINVAL);
    bad.name = "two\nlines";
    assert_int_equal(jdwriter_load(writer, &bad), -EINVAL);
    bad.name = NULL;
    assert_int_equal(jdwriter_load(writer, &bad), -EINVAL);
    rows[1].offset = 8;
    assert_int_equal(jdwriter_load(writer, &code), -EINVAL);
    rows[1].offset = 0;
    assert_int_equal(jdwriter_load(writer, &code), -EINVAL);
    rows[1].offset = 4;
    rows[1].line = 0;
    assert_int_equal(jdwriter_load(writer, &code), -EINVAL);
    rows[1].line = 2;
    rows[0].file = NULL;
    assert_int_equal(jdwriter_load(writer, &code), -EINVAL);
    rows[0].file = "a";
    assert_int_equal(jdwriter_load(writer, &code), 0);
    jdwriter_close(writer);
}

enum { THREADS = 8, LOADS = 500 };

struct work {
    struct jdwriter *writer;
    uintptr_t base;
};

static void *load_many(void *argument)
{
    const struct work *work = argument;
    for (uintptr_t i = 0; i < LOADS; i++) {
        struct jdwriter_row row = {0, 1, "many"};
        struct jdwriter_code code = {.name = "many",
                                     .address = (void *)(work->base + i * 16),
                                     .size = 16,
                                     .bytes = "0123456789abcdef",
                                     .rows = &row,
                                     .row_count = 1};
        if (jdwriter_load(work->writer, &code) != 0 ||
            (i % 2 && jdwriter_unload(work->writer, code.address) != 0)) {
            return argument;
        }
    }
    return NULL;
}

TEST_WITH(threads_do_not_mix, scratch_create, scratch_remove)
{
    struct jdwriter *writer = open_writer(state, JDWRITER_JITDUMP | JDWRITER_MAP);
    char path[300];
    snprintf(path, sizeof(path), "%s", jdwriter_dump_path(writer));
    pthread_t threads[THREADS];
    struct work work[THREADS];
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){writer, 0x100000 * ((uintptr_t)i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, load_many, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    jdwriter_close(writer);
    size_t size;
    uint8_t *bytes = dump_of(path, &size);
    assert_int_equal(count_records(bytes, size, 0), THREADS * LOADS);
    assert_int_equal(count_records(bytes, size, 2), THREADS * LOADS);
    free(bytes);
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
    assert_int_equal(unlink(path), 0);
}

/* A fork inherits the writer, and must not write into its parent's files. */
TEST_WITH(forks_are_silent, scratch_create, scratch_remove)
{
    struct jdwriter *writer = open_writer(state, JDWRITER_JITDUMP);
    char path[300];
    snprintf(path, sizeof(path), "%s", jdwriter_dump_path(writer));
    pid_t child = fork();
    if (child == 0) {
        struct jdwriter_code code = {.name = "child", .address = (void *)0x1000, .size = 8};
        int status = jdwriter_load(writer, &code);
        jdwriter_close(writer);
        _exit(status == -EPIPE ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    size_t size;
    uint8_t *bytes = dump_of(path, &size);
    assert_int_equal(size, 40);
    free(bytes);
    jdwriter_close(writer);
}

int main(void)
{
    if (sink_load() != 1) {
        return 1;
    }
    return tests_run(NULL, NULL);
}
