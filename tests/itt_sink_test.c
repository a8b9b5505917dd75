/* The calls to Intel's API follow its rules, as a checking collector sees them. */
#include "one_sink.h"
#include "test.h"

#include "tests/inlined_code.h"
#include "tests/sanitized.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char log_path[] = "/tmp/jd-itt-XXXXXX";
static char *received; /* what the collector wrote */

static const struct itt_sink_options options = {.method_module = "methods", .stub_module = "stubs"};

/*
 * Runs body in a process of its own, since a collector and its ids last as long as a process, and
 * takes the log into `received`. Returns the body's result.
 */
static int in_process(int (*body)(void), const char *collector)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("JD_ITT_LOG", log_path, 1);
        if (collector) {
            setenv("INTEL_JIT_PROFILER64", collector, 1);
        } else {
            unsetenv("INTEL_JIT_PROFILER64");
        }
        _exit(body());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));

    free(received);
    FILE *log = fopen(log_path, "re");
    assert_non_null(log);
    received = calloc(1, 1 << 20);
    assert_non_null(received);
    assert_true(fread(received, 1, (1 << 20) - 1, log) > 0 || feof(log));
    fclose(log);
    return WEXITSTATUS(status);
}

static int reports_a_tree(void)
{
    struct occupancy *sink = NULL;
    if (open_itt(&options, &sink) != 0) {
        return 1;
    }
    int failed = occupancy_load(sink, &inlined_code, NULL) != 0;
    occupancy_unload(sink, inlined_code.address, -1);
    occupancy_unload(sink, 0xdead, -1);
    occupancy_close(sink);
    return failed;
}

TEST(tree_reaches_the_collector)
{
    assert_int_equal(in_process(reports_a_tree, ITT_COLLECTOR), 0);
    assert_string_equal(
        received,
        "load\t1000\t7f0000001000\t90\tpkg.Outer.outer()\tpkg.Outer\tpkg/Outer.java\tmethods\n"
        "line\t10\t1\n"
        "line\t50\t2\n"
        "line\t60\t4\n"
        "line\t70\t1\n"
        "line\t75\t3\n"
        "line\t80\t4\n"
        "inline\t1001\t1000\t7f000000100a\t40\tpkg.Left.left(int)\tpkg.Left\tpkg/Left.java\n"
        "line\t10\t11\n"
        "line\t20\t15\n"
        "line\t30\t11\n"
        "line\t40\t12\n"
        "inline\t1002\t1001\t7f0000001014\t10\tpkg.Left.leaf()\tpkg.Left\tpkg/Left.java\n"
        "line\t10\t21\n"
        "inline\t1003\t1000\t7f0000001032\t10\tgen.Right.right()\tgen.Right\t-\n"
        "line\t10\t0\n"
        "inline\t1004\t1000\t7f000000104b\t5\tgen.Right.right()\tgen.Right\t-\n"
        "line\t5\t0\n"
        "unload\t1000\n"
        "end\t7\t0\n");
}

static int reports_rows_and_stubs(void)
{
    struct occupancy *sink = NULL;
    if (open_itt(&options, &sink) != 0) {
        return 1;
    }
    static const struct code_row rows[] = {
        {.offset = 0, .line = 7, .file = &outer_file},
        {.offset = 4, .line = 9, .file = &left_file}, /* of an inlined method */
        {.offset = 8, .line = 8, .file = &outer_file},
    };
    struct code method = {.facts = CODE_FACTS_UNKNOWN,
                          .address = 0x1000,
                          .size = 16,
                          .name = "pkg.Outer.outer() [C1]",
                          .method = &outer_method,
                          .rows = rows,
                          .row_count = 3};
    struct code stub = {
        .facts = CODE_FACTS_UNKNOWN, .address = 0x2000, .size = 32, .name = "StubRoutines (1)"};
    struct code empty = {
        .facts = CODE_FACTS_UNKNOWN, .address = 0x3000, .size = 0, .name = "empty"};
    int failed = occupancy_load(sink, &method, NULL) != 0 ||
                 occupancy_load(sink, &stub, NULL) != 0 || occupancy_load(sink, &empty, NULL) != 0;
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    failed |= stats.records != 2 || stats.dropped != 1 || stats.path || stats.failed;

    /* Known already; another name at the address is news, and invalidates what was there. */
    stub.replayed = true;
    failed |= occupancy_load(sink, &stub, NULL) != 0;
    stub.replayed = false;
    stub.name = "StubRoutines (2)";
    failed |= occupancy_load(sink, &stub, NULL) != 0;

    /* Of a compilation with a number, being told once more is nothing new, replay or not. */
    struct code numbered = {.facts = CODE_FACTS_UNKNOWN,
                            .address = 0x7000,
                            .size = 32,
                            .name = "numbered",
                            .method = &outer_method};
    numbered.facts.compile_id = 17;
    failed |=
        occupancy_load(sink, &numbered, NULL) != 0 || occupancy_load(sink, &numbered, NULL) != 0;
    numbered.facts.compile_id = 18;
    failed |= occupancy_load(sink, &numbered, NULL) != 0;

    /* The blob around a known stub, replayed: only what the stub has left. */
    struct code blob = {.facts = CODE_FACTS_UNKNOWN,
                        .address = 0x1ff0,
                        .size = 64,
                        .name = "blob",
                        .replayed = true};
    failed |= occupancy_load(sink, &blob, NULL) != 0;
    occupancy_close(sink);

    /* A second session: ids go on. */
    if (open_itt(&options, &sink) != 0) {
        return 1;
    }
    failed |= occupancy_load(sink, &stub, NULL) != 0;
    failed |= occupancy_move(sink, 0x2000, 0x5000, 32) == 0;
    occupancy_close(sink);
    return failed;
}

TEST(rows_stubs_and_replays)
{
    assert_int_equal(in_process(reports_rows_and_stubs, ITT_COLLECTOR), 0);
    assert_string_equal(
        received,
        "load\t1000\t1000\t16\tpkg.Outer.outer() [C1]\tpkg.Outer\tpkg/Outer.java\tmethods\n"
        "line\t4\t7\n"
        "line\t8\t0\n"
        "line\t16\t8\n"
        "load\t1001\t2000\t32\tStubRoutines (1)\t-\t-\tstubs\n"
        "load\t1002\t2000\t32\tStubRoutines (2)\t-\t-\tstubs\n"
        "load\t1003\t7000\t32\tnumbered\tpkg.Outer\tpkg/Outer.java\tmethods\n"
        "load\t1004\t7000\t32\tnumbered\tpkg.Outer\tpkg/Outer.java\tmethods\n"
        "load\t1005\t1ff0\t16\tblob\t-\t-\tstubs\n"
        "load\t1006\t2020\t16\tblob\t-\t-\tstubs\n"
        "end\t8\t0\n"
        "load\t1007\t2000\t32\tStubRoutines (2)\t-\t-\tstubs\n"
        "unload\t1007\n"
        "end\t11\t0\n");
}

/* Many addresses, with unloads in between: the table grows, shrinks and finds everything. */
enum { MANY = SANITIZED ? 2100 : 6000 };

static int reports_many(void)
{
    struct occupancy *sink = NULL;
    if (open_itt(&options, &sink) != 0) {
        return 1;
    }
    int failed = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        struct code code = {
            .facts = CODE_FACTS_UNKNOWN, .address = 0x10000 + i * 64, .size = 64, .name = "many"};
        failed |= occupancy_load(sink, &code, NULL) != 0;
        if (i % 3 == 2) {
            occupancy_unload(sink, 0x10000 + (i - 1) * 64, -1);
        }
    }
    for (uint64_t i = 0; i < MANY; i++) {
        struct code code = {.facts = CODE_FACTS_UNKNOWN,
                            .address = 0x10000 + i * 64,
                            .size = 64,
                            .name = "many",
                            .replayed = true};
        failed |= occupancy_load(sink, &code, NULL) != 0;
    }
    for (uint64_t i = 0; i < MANY; i++) {
        occupancy_unload(sink, 0x10000 + i * 64, -1);
    }
    occupancy_close(sink);
    return failed;
}

static size_t count_lines(const char *prefix)
{
    size_t count = 0;
    size_t length = strlen(prefix);
    /* By lines: a sanitizer's strstr looks for the end of the whole text each time. */
    for (const char *line = received; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        count += strncmp(line, prefix, length) == 0;
    }
    return count;
}

TEST(many_are_known_and_unloaded)
{
    assert_int_equal(in_process(reports_many, ITT_COLLECTOR), 0);
    enum { LOADED = MANY + MANY / 3 };
    char end[32];
    assert_int_equal(count_lines("load\t"), LOADED);
    assert_int_equal(count_lines("unload\t"), LOADED);
    snprintf(end, sizeof end, "end\t%d\t0\n", 2 * LOADED + 1);
    assert_non_null(strstr(received, end));
}

static int opens(void)
{
    struct occupancy *sink = NULL;
    return -open_itt(&options, &sink);
}

static int opens_idle(void)
{
    setenv("JD_ITT_IDLE", "1", 1);
    return opens();
}

TEST(missing_collectors_are_told)
{
    assert_int_equal(in_process(opens, NULL), ENOENT);
    assert_int_equal(in_process(opens, ""), ENOENT);
    assert_int_equal(in_process(opens, "/nonexistent/collector.so"), ELIBBAD);
    assert_int_equal(in_process(opens, "libpthread.so.0"), ELIBBAD);
    assert_int_equal(in_process(opens_idle, ITT_COLLECTOR), EBUSY);
}

static int set_up(void **state)
{
    (void)state;
    int fd = mkstemp(log_path);
    return fd < 0 ? -1 : close(fd);
}

static int tear_down(void **state)
{
    (void)state;
    free(received);
    return unlink(log_path);
}

TEST_MAIN(set_up, tear_down)
