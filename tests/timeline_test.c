/* The timeline against a model that remembers each byte of a small address space by itself. */
#include "random.h"
#include "sanitized.h"

#include "writer/timeline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { SESSION_START = 1000, SPACE = 96, BASE = 0x7000 };

static uint64_t load(struct timeline *timeline, uint64_t address, uint64_t size, int32_t id,
                     uint64_t now)
{
    struct code code = {.address = address, .size = size, .name = "x", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = id;
    return timeline_load(timeline, &code, (uint64_t)id, now);
}

static void counts_from_the_start_where_nobody_was(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    assert_int_equal(load(timeline, 100, 50, 1, 2000), SESSION_START);
    assert_int_equal(load(timeline, 150, 50, 2, 2001), SESSION_START);
    timeline_free(timeline);
}

static void counts_from_the_retirement_of_what_was_there(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 50, 1, 2000);
    load(timeline, 150, 50, 2, 2001);
    assert_int_equal(timeline_unload(timeline, 100, -1, 3000), TIMELINE_GONE);
    assert_int_equal(timeline_unload(timeline, 150, -1, 3500), TIMELINE_GONE);
    assert_int_equal(load(timeline, 110, 20, 3, 4000), 3000);
    assert_int_equal(load(timeline, 130, 40, 4, 4001), 3500);
    timeline_free(timeline);
}

static void counts_from_an_earlier_moment_when_that_is_known(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 50, 1, 2000);
    assert_int_equal(timeline_unload(timeline, 100, -1, 2500), TIMELINE_GONE);
    assert_int_equal(load(timeline, 100, 50, 2, 4000), 2500);
    /* From before its own stamp: that came too late, then, and so must not the next one's. */
    assert_int_equal(timeline_unload(timeline, 100, -1, 2400), TIMELINE_GONE);
    assert_int_equal(load(timeline, 100, 50, 3, 6000), 2501);
    timeline_free(timeline);
}

static void rest_of_a_retired_range_keeps_its_time(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 100, 1, 2000);
    timeline_unload(timeline, 100, -1, 3000);
    assert_int_equal(load(timeline, 100, 50, 2, 4000), 3000);
    /* The half that was left: not the session's start, which would be over code 1's samples. */
    assert_int_equal(load(timeline, 150, 50, 3, 5000), 3000);
    timeline_free(timeline);
}

static void overlap_without_unload_retires_now(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 100, 1, 2000);
    assert_int_equal(load(timeline, 120, 20, 2, 3000), 3000);
    timeline_unload(timeline, 100, -1, 4000); /* both of what is left of code 1 */
    assert_int_equal(load(timeline, 180, 10, 3, 5000), 4000);
    assert_int_equal(load(timeline, 105, 10, 4, 5001), 4000);
    assert_int_equal(timeline_unload(timeline, 100, -1, 5002), TIMELINE_UNKNOWN);
    timeline_free(timeline);
}

static void move_carries_the_index(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    uint64_t index = 0;
    load(timeline, 100, 50, 7, 2000);
    assert_true(timeline_move(timeline, 100, 120, 3000, &index));
    assert_int_equal(index, 7);
    assert_false(timeline_move(timeline, 100, 300, 3001, &index));
    assert_int_equal(load(timeline, 100, 10, 8, 4000), 3000);
    assert_int_equal(timeline_unload(timeline, 120, -1, 5000), TIMELINE_GONE);
    timeline_free(timeline);
}

static void knows_what_it_was_told(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    struct code code = {
        .address = 100, .size = 50, .name = "stub", .facts = CODE_FACTS_UNKNOWN, .replayed = true};
    assert_false(timeline_knows(timeline, &code));
    timeline_load(timeline, &code, 1, 2000);
    assert_true(timeline_knows(timeline, &code));
    code.name = "other";
    assert_false(timeline_knows(timeline, &code));
    code.name = "stub";
    code.size = 51;
    assert_false(timeline_knows(timeline, &code));
    code.size = 50;
    code.replayed = false; /* a new stub of the same name, for all we know */
    assert_false(timeline_knows(timeline, &code));
    code.facts.compile_id = 4;
    timeline_load(timeline, &code, 2, 3000);
    assert_true(timeline_knows(timeline, &code));
    timeline_unload(timeline, 100, -1, 4000);
    assert_false(timeline_knows(timeline, &code));
    timeline_free(timeline);
}

/*
 * A replay has told of new code before the end of the old one in its place is told; and once its
 * class is redefined nothing but what is in use tells whose end it is.
 */
static void end_of_what_is_not_in_use(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    struct code code = {.address = 100, .size = 50, .name = "m", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = 7;
    timeline_load(timeline, &code, 1, 2000);
    code.facts.compile_id = 8;
    code.replayed = true;
    assert_int_equal(timeline_load(timeline, &code, 2, 3000), 3000);
    assert_int_equal(timeline_unload(timeline, 100, 8, 4000), TIMELINE_SUPERSEDED);
    assert_true(timeline_knows(timeline, &code));
    assert_int_equal(timeline_unload(timeline, 100, 9, 5000), TIMELINE_GONE);
    assert_int_equal(timeline_unload(timeline, 100, 9, 6000), TIMELINE_UNKNOWN);
    code.facts.compile_id = 9;
    assert_int_equal(timeline_load(timeline, &code, 3, 7000), 5000);
    /* Without a number nothing is held against the one that is in use. */
    code.address = 200;
    code.facts.compile_id = -1;
    timeline_load(timeline, &code, 4, 8000);
    assert_int_equal(timeline_unload(timeline, 200, 9, 9000), TIMELINE_GONE);
    timeline_free(timeline);
}

/* What could not be written is told of again, and counts from when it did. */
static void forgotten_code_keeps_its_time(void **state)
{
    (void)state;
    struct timeline *timeline = timeline_new(SESSION_START);
    struct code code = {
        .address = 100, .size = 50, .name = "stub", .facts = CODE_FACTS_UNKNOWN, .replayed = true};
    timeline_load(timeline, &code, 1, 2000);
    timeline_unload(timeline, 100, -1, 2500);
    assert_int_equal(timeline_load(timeline, &code, 2, 3000), 2500);
    timeline_forget(timeline, 100);
    assert_false(timeline_knows(timeline, &code));
    uint64_t start = 0;
    uint64_t end = 0;
    assert_true(timeline_next_gap(timeline, 90, 200, &start, &end));
    assert_int_equal(start, 90);
    assert_int_equal(end, 200);
    assert_int_equal(timeline_load(timeline, &code, 3, 4000), 2500);
    assert_true(timeline_knows(timeline, &code));
    uint64_t index = 0;
    assert_true(timeline_move(timeline, 100, 300, 5000, &index));
    assert_int_equal(index, 3);
    /* Other code in the place of forgotten code is other code. */
    timeline_forget(timeline, 300);
    code.address = 300;
    code.name = "other";
    assert_int_equal(timeline_load(timeline, &code, 4, 6000), 6000);
    timeline_free(timeline);
}

/* One byte of the model. */
struct cell {
    uint32_t live;    /* compile id, 0: nobody */
    uint64_t vacated; /* when nobody */
    uint32_t start;   /* of the code that lives here */
    uint32_t end;
    uint64_t from; /* when it counts from */
};

static void check_gaps(struct timeline *timeline, const struct cell *cells, uint32_t from,
                       uint32_t end)
{
    uint64_t at = BASE + from;
    uint64_t gap_start;
    uint64_t gap_end;
    uint32_t model = from;
    while (timeline_next_gap(timeline, at, BASE + end, &gap_start, &gap_end)) {
        while (cells[model].live) {
            model++;
        }
        assert_int_equal(gap_start, BASE + model);
        while (model < end && !cells[model].live) {
            model++;
        }
        assert_int_equal(gap_end, BASE + model);
        at = gap_end;
    }
    while (model < end && cells[model].live) {
        model++;
    }
    assert_int_equal(model, end);
}

static void unload_in_model(struct cell *cells, uint32_t at, uint64_t left)
{
    const struct cell gone = cells[at];
    uint64_t vacated = left > gone.from ? left : gone.from + 1;
    for (uint32_t i = gone.start; i < gone.end; i++) {
        if (cells[i].live == gone.live) {
            cells[i] = (struct cell){.vacated = vacated};
        }
    }
}

/* Returns the time from which the model says that code at [at, at + size) counts. */
static uint64_t load_in_model(struct cell *cells, uint32_t at, uint32_t size, uint32_t id,
                              uint64_t now)
{
    uint64_t from = SESSION_START;
    for (uint32_t i = at; i < at + size; i++) {
        uint64_t vacated = cells[i].live ? now : cells[i].vacated;
        from = vacated > from ? vacated : from;
        cells[i] = (struct cell){.live = id, .start = at, .end = at + size};
    }
    for (uint32_t i = at; i < at + size; i++) {
        cells[i].from = from;
    }
    return from;
}

static void random_operations_agree_with_a_model(void **state)
{
    (void)state;
    uint64_t seed = random_seed();
    print_message("JDAGENT_SEED=%llu\n", (unsigned long long)seed);
    uint32_t rounds = getenv("JDAGENT_LONG") ? 50000 : SANITIZED ? 400 : 2000;
    uint32_t id = 0;
    for (uint32_t round = 0; round < rounds; round++) {
        struct timeline *timeline = timeline_new(SESSION_START);
        struct cell cells[SPACE] = {{0}};
        uint64_t now = SESSION_START;
        for (int step = 0; step < 1000; step++) {
            now++;
            uint32_t at = random_below(&seed, SPACE);
            uint32_t most = SPACE - at < 24 ? SPACE - at : 24;
            uint32_t size = 1 + random_below(&seed, most);
            switch (random_below(&seed, 5)) {
            case 0:
            case 1:
                id++;
                assert_int_equal(load(timeline, BASE + at, size, (int32_t)id, now),
                                 load_in_model(cells, at, size, id, now));
                break;
            case 2:
            case 3: {
                bool there = cells[at].live && cells[at].start == at;
                uint64_t left = now - random_below(&seed, 8);
                assert_int_equal(timeline_unload(timeline, BASE + at, -1, left),
                                 there ? TIMELINE_GONE : TIMELINE_UNKNOWN);
                if (there) {
                    unload_in_model(cells, at, left);
                }
                break;
            }
            default:
                check_gaps(timeline, cells, at, at + size);
            }
            assert_true(timeline_range_count(timeline) <= SPACE);
        }
        timeline_free(timeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_from_the_start_where_nobody_was),
        cmocka_unit_test(counts_from_the_retirement_of_what_was_there),
        cmocka_unit_test(counts_from_an_earlier_moment_when_that_is_known),
        cmocka_unit_test(rest_of_a_retired_range_keeps_its_time),
        cmocka_unit_test(overlap_without_unload_retires_now),
        cmocka_unit_test(move_carries_the_index),
        cmocka_unit_test(knows_what_it_was_told),
        cmocka_unit_test(end_of_what_is_not_in_use),
        cmocka_unit_test(forgotten_code_keeps_its_time),
        cmocka_unit_test(random_operations_agree_with_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
