/* The agent's hash table, compared with a plain list. */
#include "test.h"

#include "writer/hash_table.h"

#include "tests/random.h"
#include "tests/sanitized.h"

#include <stdlib.h>

enum { ENTRIES = 3000, KEYS = 700, STEPS = SANITIZED ? 12000 : 60000 };

struct item {
    struct hash_table_entry entry;
    bool in;
};

static bool is_found(const struct hash_table *table, const struct item *item)
{
    const struct hash_table_entry *entry = hash_table_find(table, item->entry.key);
    while (entry && entry != &item->entry) {
        assert_int_equal(entry->key, item->entry.key);
        entry = hash_table_find_next(entry);
    }
    return entry != NULL;
}

/* Few keys, so that some are there several times, and `spread` apart, so that homes collide. */
static void as_a_list_would(uint64_t spread, unsigned grain)
{
    static struct item items[ENTRIES];
    struct hash_table table = {.grain = grain};
    uint64_t random = spread;
    size_t count = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        items[i] = (struct item){.entry = {.key = random_below(&random, KEYS) * spread}};
    }
    for (size_t step = 0; step < STEPS; step++) {
        struct item *item = &items[random_below(&random, ENTRIES)];
        assert_int_equal(is_found(&table, item), item->in);
        if (item->in) {
            hash_table_remove(&table, &item->entry);
            count--;
        } else {
            assert_true(hash_table_add(&table, &item->entry));
            count++;
        }
        item->in = !item->in;
        assert_int_equal(is_found(&table, item), item->in);
    }
    for (size_t i = 0; i < ENTRIES; i++) {
        assert_int_equal(is_found(&table, &items[i]), items[i].in);
    }
    for (; count > 0; count--) {
        struct item *item = (struct item *)hash_table_drain(&table);
        assert_true(item->in);
        item->in = false;
    }
    assert_null(hash_table_drain(&table));
    assert_null(table.slots);
}

TEST(entries_are_found_again)
{
    as_a_list_would(1, 0);
    as_a_list_would(8, 3);
    as_a_list_would(8, 10); /* few homes: long rows of slots */
    as_a_list_would(4096, 3);
    as_a_list_would(UINT64_C(1) << 54, 0);
}

/* Entries that come and go for as long as the JVM runs do not make it grow. */
TEST(what_is_gone_takes_no_room)
{
    struct hash_table table = {.grain = 3};
    static struct item items[64];
    for (uint64_t step = 0; step < (SANITIZED ? 20000 : 100000); step++) {
        struct item *item = &items[step % 64];
        if (item->in) {
            hash_table_remove(&table, &item->entry);
        }
        *item = (struct item){.entry = {.key = step * 8}, .in = true};
        assert_true(hash_table_add(&table, &item->entry));
    }
    assert_true(table.slot_count <= 256);
    assert_int_equal(table.used, 64);
    while (hash_table_drain(&table)) {
    }
}

/* Look-ups pass few slots, in whatever order the keys came: of a table that was read from front to
 * back, too. */
TEST(what_is_read_and_added_again_lies_near_its_home)
{
    enum { MANY = 40000 };
    static struct item items[MANY];
    static struct hash_table_entry *read[MANY + 1];
    struct hash_table table = {.grain = 3};
    for (uint64_t i = 0; i < MANY; i++) {
        items[i] = (struct item){.entry = {.key = i * 88}};
        assert_true(hash_table_add(&table, &items[i].entry));
    }
    size_t slots = table.slot_count;
    size_t count = 0;
    while ((read[count] = hash_table_drain(&table))) {
        count++;
        assert_true(count <= MANY);
    }
    assert_int_equal(count, MANY);
    assert_true(hash_table_reserve(&table, count));
    assert_int_equal(table.slot_count, slots);
    while (count > 0) {
        assert_true(hash_table_add(&table, read[--count]));
        assert_int_equal(table.slot_count, slots);
    }
    assert_true(hash_table_reserve(&table, 1));
    assert_int_equal(table.slot_count, slots);
    while (hash_table_drain(&table)) {
    }
}

TEST(an_empty_table)
{
    struct hash_table table = {0};
    assert_null(hash_table_find(&table, 0));
    assert_null(hash_table_drain(&table));
    struct hash_table_entry in = {.key = 7};
    struct hash_table_entry out = {.key = 7};
    assert_true(hash_table_add(&table, &in));
    hash_table_remove(&table, &out);
    assert_ptr_equal(hash_table_find(&table, 7), &in);
    hash_table_remove(&table, &in);
    assert_null(hash_table_find(&table, 7));
    assert_null(hash_table_drain(&table));
    assert_true(hash_table_add(&table, &in));
    hash_table_free(&table);
    assert_null(hash_table_find(&table, 7));
    assert_true(hash_table_add(&table, &out));
    assert_ptr_equal(hash_table_find(&table, 7), &out);
    hash_table_free(&table);
}

TEST_MAIN(NULL, NULL)
