/* The basic parts of jdtool: hash map, trees, output files, times and sizes. */
#include "test.h"

#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/output_file.h"
#include "jdtool/base/text.h"
#include "jdtool/base/tree.h"
#include "jdtool/base/unique.h"
#include "jdtool/base/units.h"
#include "tests/random.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool map_has(const struct hash_map *map, uint64_t hash, uint32_t value)
{
    struct hash_map_cursor cursor = hash_map_start(map, hash);
    uint32_t at;
    while ((at = hash_map_next(map, &cursor)) != HASH_MAP_NONE) {
        if (at == value) {
            return true;
        }
    }
    return false;
}

/* Held against an array that says what is in it, while things come and go. */
TEST(test_map_against_truth)
{
    enum { VALUES = 4096, STEPS = 200000 };
    static bool in[VALUES];
    struct hash_map map = {0};
    uint64_t random = 7;
    size_t count = 0;
    for (int step = 0; step < STEPS; step++) {
        random = hash_mix(random + 1);
        uint32_t value = (uint32_t)(random % VALUES);
        uint64_t hash = value / 3; /* several values a hash */
        assert_int_equal(map_has(&map, hash, value), in[value]);
        if (in[value]) {
            assert_true(hash_map_remove(&map, hash, value));
            count--;
        } else {
            assert_int_equal(hash_map_add(&map, hash, value), 0);
            count++;
        }
        in[value] = !in[value];
        assert_int_equal(map.count, count);
    }
    for (uint32_t value = 0; value < VALUES; value++) {
        assert_int_equal(map_has(&map, value / 3, value), in[value]);
    }
    assert_true(map.room <= (size_t)VALUES * 2); /* what comes and goes leaves nothing behind */
    hash_map_clear(&map);
    assert_false(map_has(&map, 0, 0));
    hash_map_free(&map);
    assert_false(hash_map_remove(&map, 1, 1));
}

/* One value under many hashes, of which one is taken away: the others stay. */
TEST(test_one_value_under_many_hashes)
{
    enum { HASHES = 5000 };
    static uint64_t hashes[HASHES]; /* numbers in a row would have homes of their own */
    struct hash_map map = {0};
    for (uint64_t i = 0; i < HASHES; i++) {
        hashes[i] = hash_mix(hash_mix(i) >> 7) >> 5;
        assert_int_equal(hash_map_add(&map, hashes[i], 7), 0);
    }
    for (size_t i = 0; i < HASHES; i++) {
        assert_true(map_has(&map, hashes[i], 7));
        assert_true(hash_map_remove(&map, hashes[i], 7));
        assert_false(map_has(&map, hashes[i], 7));
    }
    assert_int_equal(map.count, 0);
    hash_map_free(&map);
}

static size_t read_all(const char *path, char *bytes, size_t room)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, room, file);
    fclose(file);
    return size;
}

static unsigned files_in(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(directory);
    return count;
}

/* Strings that are held and released at random: each is there once, and gone with its last holder.
 */
TEST(test_strings_go_with_their_holders)
{
    enum { TEXTS = 700, STEPS = 100000 };
    static const char *copies[TEXTS];
    static uint32_t holders[TEXTS];
    struct intern strings = {0};
    uint64_t random = 11;
    uint32_t count = 1;
    const char *kept = intern(&strings, "kept");
    for (int step = 0; step < STEPS; step++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t i = (uint32_t)(random >> 33) % TEXTS;
        char text[16];
        snprintf(text, sizeof text, "text %u", i);
        if (random >> 63 || holders[i] == 0) {
            const char *copy = intern_hold(&strings, text);
            assert_string_equal(copy, text);
            assert_true(holders[i] == 0 || copy == copies[i]);
            copies[i] = copy;
            count += holders[i]++ == 0;
        } else {
            intern_release(&strings, copies[i]);
            count -= --holders[i] == 0;
        }
        assert_int_equal(strings.count, count);
    }
    intern_release(&strings, intern_hold(&strings, "kept"));
    assert_ptr_equal(intern(&strings, "kept"), kept);
    intern_free(&strings);
}

TEST(test_file_appears_when_finished)
{
    char directory[] = "/tmp/jd-base-XXXXXX";
    char path[64];
    char bytes[64];
    struct output_file *file;
    struct stat status;
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/result", directory);

    assert_int_equal(output_file_open(path, &file), 0);
    output_file_put(file, "hello 7", 7);
    assert_int_equal(output_file_tell(file), 7);
    assert_int_not_equal(access(path, F_OK), 0);
    output_file_put_at(file, 0, "H", 1);
    assert_int_equal(output_file_finish(file), 0);
    assert_int_equal(read_all(path, bytes, sizeof bytes), 7);
    assert_memory_equal(bytes, "Hello 7", 7);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);

    /* The name that it would have on its way is taken. */
    char taken[96];
    snprintf(taken, sizeof taken, "%s.%d-1", path, (int)getpid());
    FILE *other = fopen(taken, "wbe");
    assert_non_null(other);
    fclose(other);
    assert_int_equal(output_file_open(path, &file), 0);
    output_file_put(file, "Hello 8", 7);
    assert_int_equal(output_file_finish(file), 0);
    assert_int_equal(access(taken, F_OK), 0);
    assert_int_equal(unlink(taken), 0);

    /* Another one in its place, given up: the first stays. */
    assert_int_equal(output_file_open(path, &file), 0);
    output_file_put(file, "no", 2);
    output_file_abort(file);
    assert_int_equal(read_all(path, bytes, sizeof bytes), 7);
    assert_int_equal(files_in(directory), 1);

    /* Replaced, with a hole in it and more than the buffer holds. */
    static uint8_t large[600000];
    memset(large, 'x', sizeof large);
    assert_int_equal(output_file_open(path, &file), 0);
    output_file_put(file, "a", 1);
    output_file_seek(file, 8192);
    output_file_put(file, large, sizeof large);
    assert_int_equal(output_file_finish(file), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 8192 + sizeof large);
    assert_int_equal(read_all(path, bytes, 2), 2);
    assert_memory_equal(bytes, "a", 2); /* a byte, then nothing */
    assert_int_equal(files_in(directory), 1);

    /* A link that leads nowhere is replaced, not followed. */
    char aside[96];
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(output_file_open(path, &file), 0);
    assert_int_equal(output_file_finish(file), 0);
    assert_int_equal(lstat(path, &status), 0);
    assert_true(S_ISREG(status.st_mode));
    assert_int_equal(files_in(directory), 2);
    assert_int_equal(rename(aside, path), 0);

    /* A writer's own error: what was there stays. */
    assert_int_equal(output_file_open(path, &file), 0);
    output_file_fail(file, -7);
    assert_int_equal(output_file_finish(file), -7);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, 8192 + sizeof large);
    assert_int_equal(files_in(directory), 1);
    unlink(path);
    rmdir(directory);
}

TEST(test_no_file_in_place_of_a_device)
{
    struct output_file *file;
    assert_true(output_file_open("/dev/null", &file) < 0);
    assert_true(output_file_open("/tmp", &file) < 0);
    assert_true(output_file_open("/nonexistent/x", &file) < 0);
    /* Said before the work is done. */
    assert_int_equal(output_path_check("/nonexistent/x"), -ENOENT);
    assert_int_equal(output_path_check("/tmp/nothing-is-there"), 0);
    assert_int_equal(output_path_check("nothing-is-there"), 0);
}

TEST(test_units)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } times[] = {
        {"1.5", 1500000000},
        {"30s", UINT64_C(30000000000)},
        {"300ms", 300000000},
        {"7us", 7000},
        {"3ns", 3},
        {"2m", UINT64_C(120000000000)},
        {"24h", UINT64_C(86400000000000)},
        {"7d", UINT64_C(604800000000000)},
        {"1e30", UINT64_C(1000000000000000000)},
    };
    uint64_t number = 0;
    unsigned seconds = 0;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        assert_true(units_time(times[i].text, &number));
        assert_int_equal(number, times[i].ns);
    }
    static const char *const no_times[] = {"", "x", "-1", "+1", " 1", "1x", "1 s", "nan", "1e999"};
    for (size_t i = 0; i < sizeof no_times / sizeof *no_times; i++) {
        assert_false(units_time(no_times[i], &number));
    }
    assert_true(units_seconds("5m", 300, &seconds));
    assert_int_equal(seconds, 300);
    static const char *const no_seconds[] = {"0", "0s", "301", "6m", "1.5", "500ms"};
    for (size_t i = 0; i < sizeof no_seconds / sizeof *no_seconds; i++) {
        assert_false(units_seconds(no_seconds[i], 300, &seconds));
    }
    assert_true(units_size("64M", &number));
    assert_int_equal(number, 64 << 20);
    assert_true(units_size("1k", &number));
    assert_int_equal(number, 1024);
    assert_true(units_size("8192", &number));
    assert_int_equal(number, 8192);
    static const char *const no_sizes[] = {"",         "0",
                                           "M",        "-1",
                                           "1MB",      "1X",
                                           "1.5M",     "9223372036854775808",
                                           "8388608T", "99999999999999999999"};
    for (size_t i = 0; i < sizeof no_sizes / sizeof *no_sizes; i++) {
        assert_false(units_size(no_sizes[i], &number));
    }
}

struct leaf {
    uint32_t parent, key, visits;
};

/* Against a search through all nodes; then it is full, and knows those that it has. */
TEST(test_tree_against_truth)
{
    enum { MOST = 500 };
    uint64_t seed = random_seed();
    struct leaf *list = NULL;
    struct hash_map map = {0};
    uint32_t count = 0, room = 0, full = 0;
    for (int i = 0; i < 4000; i++) {
        uint32_t parent = random_below(&seed, count + 1);
        uint32_t key = random_below(&seed, 4);
        parent = parent == count ? TREE_ROOT : parent;
        uint32_t truth = 0;
        while (truth < count && (list[truth].parent != parent || list[truth].key != key)) {
            truth++;
        }
        uint32_t before = count;
        uint32_t child = tree_child(&list, &count, &room, sizeof *list, MOST, &map, parent, key);
        if (truth == MOST) {
            assert_int_equal(child, HASH_MAP_NONE);
            full++;
            continue;
        }
        assert_int_equal(child, truth);
        assert_int_equal(count, before + (truth == before));
        assert_true(list[child].visits++ > 0 || truth == before);
    }
    assert_int_equal(count, MOST);
    assert_true(full > 0);
    hash_map_free(&map);
    free(list);
}

/* Elements by their first bytes, against a search through all of them. */
TEST(test_unique_against_truth)
{
    struct thing {
        uint32_t key[3];
        uint32_t times;
    } *list = NULL;
    uint64_t seed = random_seed();
    struct hash_map map = {0};
    uint32_t count = 0, room = 0;
    for (uint32_t i = 0; i < 2000; i++) {
        const struct thing wanted = {
            .key = {random_below(&seed, 8), random_below(&seed, 8), random_below(&seed, 8)}};
        uint32_t truth = 0;
        while (truth < count && memcmp(list[truth].key, wanted.key, sizeof wanted.key) != 0) {
            truth++;
        }
        uint32_t found = unique_find(list, sizeof *list, &map, &wanted, sizeof wanted.key);
        assert_int_equal(found, truth < count ? truth : HASH_MAP_NONE);
        uint32_t number =
            unique_add(&list, &count, &room, sizeof *list, &map, &wanted, sizeof wanted.key);
        assert_int_equal(number, truth);
        assert_true(list[number].times++ > 0 || number + 1 == count);
    }
    assert_in_range(count, 400, 8 * 8 * 8);
    hash_map_free(&map);
    free(list);
}

/* Strings have the numbers of their first coming; what is no UTF-8 is mended. */
TEST(test_string_table)
{
    struct string_table table = {0};
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 500; i++) {
            char text[16];
            snprintf(text, sizeof text, "name %u", i);
            assert_int_equal(string_table_add(&table, text), i);
            assert_string_equal(table.list[i], text);
        }
    }
    assert_int_equal(table.count, 500);
    assert_int_equal(string_table_add(&table, "a\xff"), 500);
    assert_int_equal(string_table_add(&table, "a\xef\xbf\xbd"), 500);
    assert_int_equal(string_table_add(&table, NULL), 501);
    assert_int_equal(string_table_add(&table, ""), 501);
    assert_int_equal(table.error, 0);
    string_table_free(&table);
}

/* Of what a process has printed: empty lines, and a last one without its end. */
TEST(a_text_is_cut_into_lines)
{
    static const char *const texts[] = {"", "one\n", "one\n\n  two\nthree"};
    static const char *const lines[][5] = {{NULL}, {"one"}, {"one", "", "  two", "three"}};
    for (size_t i = 0; i < 3; i++) {
        const char *rest = texts[i];
        const char *line;
        size_t size;
        size_t k = 0;
        for (; (line = text_line(&rest, &size)); k++) {
            assert_non_null(lines[i][k]);
            assert_int_equal(size, strlen(lines[i][k]));
            assert_memory_equal(line, lines[i][k], size);
        }
        assert_null(lines[i][k]);
    }
}

TEST_MAIN(NULL, NULL)
