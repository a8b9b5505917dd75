/* Every allocation fails once and for ever: files stay sound, nothing crashes or leaks. */
#include "decoded_dump.h"
#include "sanitized.h"
#include "scratch.h"
#include "test.h"

#include "one_sink.h"
#include "writer/message.h"
#include "writer/occupancy/range_map.h"

#include <errno.h>

static int allocations_left = -1; /* -1: as many as there are */
static bool comes_back;           /* only one allocation fails */

static bool runs_out(void)
{
    if (allocations_left > 0) {
        allocations_left--;
    }
    bool out = allocations_left == 0;
    if (out && comes_back) {
        allocations_left = -1;
    }
    return out;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);

void *__wrap_malloc(size_t size)
{
    return runs_out() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return runs_out() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return runs_out() ? NULL : __real_realloc(memory, size);
}

static int set_up(void **state)
{
    message_set_level(-1);
    return scratch_create(state);
}

static struct source_file file = {.path = "a/A.java", .id = 1};
static struct method outer = {.name = "a.A.outer()", .file = &file, .id = 1};
static struct method inner = {.name = "a.A.inner()", .file = &file, .id = 2};
static const uint8_t bytes[20000];

enum { LOADS = SANITIZED ? 300 : 600 };

/* Code enough to make every buffer grow, some of it in the place of other code. Returns how much
 * of it arrived. */
static unsigned load_all(struct occupancy *sink)
{
    const struct code_row rows[] = {{0, 1, &file}, {8, 2, &file}};
    const struct inline_node nodes[] = {{.method = &outer}, {.method = &inner, .call_line = 1}};
    const struct inline_range ranges[] = {{0, 0, 1}, {8, 1, 2}};
    unsigned loaded = 0;
    for (uint64_t i = 0; i < LOADS; i++) {
        const struct code code = {
            .address = 0x10000 + i % 500 * 4000,
            .size = i % 100 == 0 ? 20000 : 4000,
            .bytes = bytes,
            .name = outer.name,
            .method = &outer,
            .facts = CODE_FACTS_UNKNOWN,
            .rows = rows,
            .row_count = 2,
            .nodes = nodes,
            .node_count = 2,
            .ranges = ranges,
            .range_count = 2,
            .ranges_end = 4000,
        };
        loaded += occupancy_load(sink, &code, NULL) == 0;
        if (i % 7 == 0) {
            occupancy_unload(sink, code.address, -1);
        }
    }
    return loaded;
}

static void check_dump(const char *path, unsigned loaded)
{
    OWN_DECODED_DUMP dump;
    decoded_dump_read(&dump, path);
    assert_false(dump.torn);
    assert_int_equal(decoded_dump_check_groups(&dump), loaded);
    if (loaded > 0) {
        /* The first group that arrived brought the definitions, whatever was lost before it. */
        struct decoded_entry entries[3];
        struct decoded_bytes trailer;
        struct decoded_bytes section;
        decoded_entries(&dump.records[0], entries, 3, &trailer);
        assert_true(decoded_section(trailer, JITDUMP_TRAILER_METHODS, &section));
    }
}

TEST_WITH(a_dump_stays_sound, set_up, scratch_remove)
{
    char name[32];
    snprintf(name, sizeof(name), "jit-%d.dump", getpid());
    unsigned opened = 0;
    unsigned complete = 0;
    for (int n = 1; n < 80; n++) {
        comes_back = n % 2 == 0;
        const struct jitdump_sink_options options = {.log.directory = *state,
                                                     .log.directory_fd = AT_FDCWD};
        struct occupancy *sink = NULL;
        allocations_left = (n + 1) / 2;
        int error = open_jitdump(&options, &sink);
        if (error) {
            allocations_left = -1;
            assert_int_equal(error, -ENOMEM);
            assert_int_equal(access(scratch_path(state, name), F_OK), -1);
            continue;
        }
        opened++;
        unsigned loaded = load_all(sink);
        occupancy_close(sink);
        allocations_left = -1;
        complete += loaded == LOADS;
        check_dump(scratch_path(state, name), loaded);
        assert_int_equal(unlink(scratch_path(state, name)), 0);
    }
    assert_true(opened > complete && complete > 0); /* both kinds were there */
}

static int by_start(const void *a, const void *b)
{
    const struct range *left = a;
    const struct range *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static void check_map(const char *path)
{
    char *text = (char *)scratch_read(path, NULL);
    static struct range ranges[4000];
    size_t count = 0;
    for (char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (*line != '\n') {
            char *end;
            uint64_t start = strtoull(line, &end, 16);
            uint64_t size = strtoull(end, &end, 16);
            assert_true(size > 0 && *end == ' ' && count < sizeof(ranges) / sizeof(ranges[0]));
            ranges[count++] = (struct range){start, start + size};
        }
    }
    free(text);
    qsort(ranges, count, sizeof(ranges[0]), by_start);
    for (size_t i = 1; i < count; i++) {
        assert_true(ranges[i - 1].end <= ranges[i].start);
    }
}

TEST_WITH(a_map_stays_sound, set_up, scratch_remove)
{
    unsigned opened = 0;
    unsigned complete = 0;
    for (int n = 1; n < 80; n++) {
        comes_back = n % 2 == 0;
        const struct perf_map_sink_options options = {.log.path = scratch_path(state, "map"),
                                                      .style = {.mode = UNFOLD_LEAF}};
        struct occupancy *sink = NULL;
        allocations_left = (n + 1) / 2;
        int error = open_perf_map(&options, &sink);
        if (error) {
            allocations_left = -1;
            assert_int_equal(error, -ENOMEM);
            continue;
        }
        opened++;
        unsigned loaded = load_all(sink);
        occupancy_close(sink);
        allocations_left = -1;
        complete += loaded == LOADS;
        check_map(options.log.path);
    }
    assert_true(opened > complete && complete > 0);
}

TEST_MAIN(NULL, NULL)
