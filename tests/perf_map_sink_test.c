/* Perf maps have no overlaps while code comes and goes, compared byte for byte with a model. */
#include "random.h"
#include "sanitized.h"
#include "scratch.h"
#include "test.h"

#include "one_sink.h"
#include "writer/occupancy/range_map.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

static struct occupancy *open_map(const char *path)
{
    struct perf_map_sink_options options = {.log.path = path};
    struct occupancy *sink = NULL;
    assert_int_equal(open_perf_map(&options, &sink), 0);
    return sink;
}

static int load(struct occupancy *sink, uint64_t address, uint64_t size, const char *name,
                bool replayed)
{
    struct code code = {.address = address,
                        .size = size,
                        .name = name,
                        .facts = CODE_FACTS_UNKNOWN,
                        .replayed = replayed};
    return occupancy_load(sink, &code, NULL);
}

static void assert_map_is(const char *path, const char *expected)
{
    char *text = (char *)scratch_read(path, NULL);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

TEST_WITH(lines_are_there_when_the_call_returns, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    assert_int_equal(load(sink, 0x7f0010, 0x40, "java.util.HashMap.get(java.lang.Object)", false),
                     0);
    assert_map_is(path, "7f0010 40 java.util.HashMap.get(java.lang.Object)\n");
    assert_int_equal(load(sink, 0x7f0100, 0xa, "Stub", false), 0);
    assert_map_is(path, "7f0010 40 java.util.HashMap.get(java.lang.Object)\n7f0100 a Stub\n");
    occupancy_close(sink);
    struct stat file;
    assert_int_equal(stat(path, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0600);
}

TEST_WITH(a_name_is_one_line, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    load(sink, 0x1000, 1, "evil\n2000 10 fake\r\x7f", false);
    load(sink, 0x3000, 1, "gr\xc3\xbc\xc3\x9f", false);
    load(sink, 0x4000, 0, "empty", false);
    occupancy_close(sink);
    assert_map_is(path, "1000 1 evil?2000 10 fake??\n3000 1 gr\xc3\xbc\xc3\x9f\n");
}

TEST_WITH(unloaded_code_keeps_its_line_until_reuse, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    load(sink, 0x1000, 0x100, "first", false);
    occupancy_unload(sink, 0x1000, -1);
    assert_map_is(path, "1000 100 first\n");
    load(sink, 0x1040, 0x40, "second", false);
    assert_map_is(path, "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
                        "1000 40 first\n1080 80 first\n1040 40 second\n");
    occupancy_close(sink);
    assert_map_is(path, "1000 40 first\n1040 40 second\n1080 80 first\n");
}

TEST_WITH(replay_does_not_repeat_what_is_known, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    load(sink, 0x1010, 0x10, "stub a", false);
    load(sink, 0x1040, 0x10, "stub b", true);
    load(sink, 0x1010, 0x10, "stub a", true);
    load(sink, 0x1000, 0x100, "blob around", true);
    load(sink, 0x1000, 0x100, "blob around", true);
    occupancy_close(sink);
    assert_map_is(path, "1010 10 stub a\n1040 10 stub b\n1000 10 blob around\n"
                        "1020 20 blob around\n1050 b0 blob around\n");
}

/* Code whose inlined parts have entries of their own moves with all of them. */
TEST_WITH(moved_code_takes_all_its_entries_along, scratch_create, scratch_remove)
{
    static struct source_file file = {.path = "A.java", .id = 1};
    static struct method outer = {.name = "outer", .file = &file, .first_line = 1, .id = 1};
    static struct method inner = {.name = "inner", .file = &file, .first_line = 9, .id = 2};
    static const struct inline_node nodes[] = {{.method = &outer}, {.method = &inner}};
    static const struct inline_range ranges[] = {
        {.offset = 0, .node = 0}, {.offset = 0x40, .node = 1}, {.offset = 0x60, .node = 0}};
    const char *path = scratch_path(state, "map");
    struct perf_map_sink_options options = {.log.path = path, .style = {.mode = UNFOLD_SIMPLE}};
    struct occupancy *sink = NULL;
    assert_int_equal(open_perf_map(&options, &sink), 0);
    const struct code code = {.address = 0x1000,
                              .size = 0x100,
                              .name = "outer",
                              .method = &outer,
                              .nodes = (struct inline_node *)nodes,
                              .node_count = 2,
                              .ranges = (struct inline_range *)ranges,
                              .range_count = 3,
                              .ranges_end = 0x100,
                              .facts = CODE_FACTS_UNKNOWN};
    assert_int_equal(occupancy_load(sink, &code, NULL), 0);
    assert_int_equal(occupancy_move(sink, 0x1000, 0x8000, 0x100), 0);
    occupancy_close(sink);
    assert_map_is(path, "8000 40 outer\n8040 20 inner\n8060 a0 outer\n");
}

TEST_WITH(moved_code_takes_its_name_along, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    load(sink, 0x1000, 0x100, "wanderer", false);
    load(sink, 0x1180, 0x100, "settler", false);
    assert_int_equal(occupancy_move(sink, 0x1000, 0x1080, 0x100), 0);
    assert_int_not_equal(occupancy_move(sink, 0x1000, 0x2000, 0x100), 0);
    assert_int_equal(occupancy_move(sink, 0x1180, 0x1190, 0x100), 0);
    occupancy_close(sink);
    assert_map_is(path, "1080 100 wanderer\n1190 100 settler\n");
}

/* Random operations, the same ones for the same seed, on a space so small that ranges are used
 * again all the time. A model holds for each byte the number of the code that was there last. */
enum { SPACE = 512, BASE = 0x7f000000 };

struct operation {
    uint32_t number;
    uint32_t at;
    uint32_t size;
    bool unload;
};

static struct operation next_operation(uint64_t *seed, uint32_t number)
{
    struct operation operation = {.number = number};
    operation.at = random_below(seed, SPACE);
    uint32_t most = SPACE - operation.at < 64 ? SPACE - operation.at : 64;
    operation.size = 1 + random_below(seed, most);
    operation.unload = random_below(seed, 4) == 0;
    return operation;
}

/* Names of very different lengths, so that blanks make many sizes of holes. */
static const char *name_of(uint32_t number)
{
    static char name[600];
    int n = snprintf(name, sizeof(name), "code %u ", number);
    memset(name + n, 'x', number % 500);
    name[n + (int)(number % 500)] = '\0';
    return name;
}

static void apply(struct occupancy *sink, const struct operation *operation)
{
    if (operation->unload) {
        occupancy_unload(sink, BASE + operation->at, -1);
    } else {
        assert_int_equal(
            load(sink, BASE + operation->at, operation->size, name_of(operation->number), false),
            0);
    }
}

static void apply_to_model(uint32_t *model, const struct operation *operation)
{
    for (uint32_t i = 0; !operation->unload && i < operation->size; i++) {
        model[operation->at + i] = operation->number;
    }
}

/* Takes a line apart as readers do. False: it is not whole. */
static bool read_line(const char *line, struct range *range, uint32_t *number)
{
    char *end;
    uint64_t start = strtoull(line, &end, 16);
    if (*end != ' ') {
        return false;
    }
    uint64_t size = strtoull(end + 1, &end, 16);
    *range = (struct range){start, start + size};
    if (strncmp(end, " code ", 6) != 0) {
        return false;
    }
    *number = (uint32_t)strtoull(end + 6, NULL, 10);
    return strcmp(end + 1, name_of(*number)) == 0;
}

/* Reads the map into a model's cells. Returns how many lines a kill has left without their whole
 * name; they do not count. */
static unsigned read_map(const char *path, uint32_t *cells)
{
    unsigned torn = 0;
    char *text = (char *)scratch_read(path, NULL);
    assert_non_null(text);
    memset(cells, 0, SPACE * sizeof(*cells));
    for (char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        bool whole = line[length] == '\n';
        line[length] = '\0';
        struct range range;
        uint32_t number;
        if (length > 0 && (!whole || !read_line(line, &range, &number))) {
            torn++;
        } else if (length > 0) {
            assert_true(range.start >= BASE && range.end <= BASE + SPACE);
            for (uint64_t i = range.start - BASE; i < range.end - BASE; i++) {
                if (cells[i] != 0) {
                    fail_msg("code %u and code %u overlap", cells[i], number);
                }
                cells[i] = number;
            }
        }
        line += length + whole;
    }
    free(text);
    return torn;
}

TEST_WITH(random_operations_leave_the_last_occupants, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    uint64_t seed = random_seed();
    print_message("JDAGENT_SEED=%llu\n", (unsigned long long)seed);
    struct occupancy *sink = open_map(path);
    uint32_t model[SPACE] = {0};
    uint32_t cells[SPACE];
    off_t largest = 0;
    uint32_t operations = getenv("JDAGENT_LONG") ? 1000000 : SANITIZED ? 5000 : 20000;
    for (uint32_t number = 1; number <= operations; number++) {
        struct operation operation = next_operation(&seed, number);
        apply(sink, &operation);
        apply_to_model(model, &operation);
        if (number % 16 == 0) {
            assert_int_equal(read_map(path, cells), 0);
            assert_memory_equal(cells, model, sizeof(model));
            struct stat file;
            assert_int_equal(stat(path, &file), 0);
            largest = file.st_size > largest ? file.st_size : largest;
        }
    }
    /* Some 50 lines of 250 bytes on average; the rest is blanks, and they have a bound. */
    assert_true(largest < 250000);
    occupancy_close(sink);
    assert_int_equal(read_map(path, cells), 0);
    assert_memory_equal(cells, model, sizeof(model));
    char *text = (char *)scratch_read(path, NULL);
    assert_null(strstr(text, "\n\n"));
    free(text);
}

/* Runs operations until it is killed, telling how many are done. */
static void run_until_killed(const char *path, uint64_t seed, atomic_uint *done)
{
    struct occupancy *sink = open_map(path);
    for (uint32_t number = 1;; number++) {
        struct operation operation = next_operation(&seed, number);
        apply(sink, &operation);
        atomic_store(done, number);
    }
}

static void check_after_kill(const char *path, uint64_t seed, uint32_t done)
{
    uint32_t before[SPACE] = {0};
    struct operation operation;
    for (uint32_t number = 1; number <= done; number++) {
        operation = next_operation(&seed, number);
        apply_to_model(before, &operation);
    }
    operation = next_operation(&seed, done + 1); /* the one that was under way */
    uint32_t after[SPACE];
    memcpy(after, before, sizeof(after));
    apply_to_model(after, &operation);
    uint32_t cells[SPACE];
    assert_true(read_map(path, cells) <= 1);
    for (uint32_t i = 0; i < SPACE; i++) {
        /* Missing is only what shares a line with the range that was being replaced. */
        bool touched = false;
        for (uint32_t j = operation.at; j < operation.at + operation.size; j++) {
            touched = touched || before[j] == before[i];
        }
        if (cells[i] != before[i] && cells[i] != after[i] && !(cells[i] == 0 && touched)) {
            fail_msg("byte %u after %u operations: code %u, not %u or %u", i, done, cells[i],
                     before[i], after[i]);
        }
    }
}

TEST_WITH(a_kill_at_any_moment_leaves_a_true_map, scratch_create, scratch_remove)
{
    uint64_t seed = random_seed();
    atomic_uint *done =
        mmap(NULL, sizeof(*done), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(done, MAP_FAILED);
    int kills = getenv("JDAGENT_LONG") ? 1000 : 50;
    for (int i = 0; i < kills; i++) {
        const char *path = scratch_path(state, "map");
        uint64_t child_seed = random_next(&seed);
        atomic_store(done, 0);
        pid_t child = fork();
        if (child == 0) {
            run_until_killed(path, child_seed, done);
        }
        while (atomic_load(done) == 0) {
        }
        struct timespec delay = {.tv_nsec = random_below(&seed, 20000000)};
        nanosleep(&delay, NULL);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        check_after_kill(path, child_seed, atomic_load(done));
    }
    munmap(done, sizeof(*done));
}

struct loader {
    pthread_t thread;
    struct occupancy *sink;
    uint64_t seed;
    bool failed;
};

static void *load_many(void *argument)
{
    struct loader *loader = argument;
    for (uint32_t number = 1; number <= 500; number++) {
        struct operation operation = next_operation(&loader->seed, number);
        static const char name[] = "code 500 "; /* one that read_line takes for whole */
        if (operation.unload) {
            occupancy_unload(loader->sink, BASE + operation.at, -1);
        } else if (load(loader->sink, BASE + operation.at, operation.size, name, false) != 0) {
            loader->failed = true;
        }
    }
    return NULL;
}

TEST_WITH(many_threads_never_overlap, scratch_create, scratch_remove)
{
    enum { THREADS = 8 };
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    struct loader loaders[THREADS];
    for (size_t i = 0; i < THREADS; i++) {
        loaders[i] = (struct loader){.sink = sink, .seed = i};
        assert_int_equal(pthread_create(&loaders[i].thread, NULL, load_many, &loaders[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(loaders[i].thread, NULL);
        assert_false(loaders[i].failed);
    }
    struct sink_stats stats;
    occupancy_stats(sink, 0, &stats);
    assert_false(stats.failed);
    assert_true(stats.records > 500);
    uint32_t cells[SPACE];
    assert_int_equal(read_map(path, cells), 0);
    occupancy_close(sink);
    assert_int_equal(read_map(path, cells), 0);
}

TEST_WITH(a_fork_leaves_the_map_alone, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    struct occupancy *sink = open_map(path);
    load(sink, 0x1000, 0x10, "parent", false);
    pid_t child = fork();
    if (child == 0) {
        bool refused = load(sink, 0x1000, 0x10, "child", false) != 0;
        occupancy_close(sink);
        _exit(refused ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_map_is(path, "1000 10 parent\n");
    assert_int_equal(load(sink, 0x1000, 0x10, "parent again", false), 0);
    occupancy_close(sink);
    assert_map_is(path, "1000 10 parent again\n");
}

TEST_WITH(a_failed_compaction_costs_nothing, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "map");
    assert_int_equal(mkdir(scratch_path(state, "map.new"), 0700), 0);
    struct occupancy *sink = open_map(path);
    uint64_t seed = random_seed();
    uint32_t model[SPACE] = {0};
    for (uint32_t number = 1; number <= 3000; number++) {
        struct operation operation = next_operation(&seed, number);
        apply(sink, &operation);
        apply_to_model(model, &operation);
    }
    occupancy_close(sink);
    uint32_t cells[SPACE];
    assert_int_equal(read_map(path, cells), 0);
    assert_memory_equal(cells, model, sizeof(model));
}

TEST_MAIN(NULL, NULL)
