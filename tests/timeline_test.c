/* The timeline of code, compared with a model that remembers each byte of a small address space. */
#include "random.h"
#include "sanitized.h"
#include "test.h"

#include "writer/occupancy/timeline.h"
#include "writer/pool.h"

#include <string.h>

enum { SESSION_START = 1000, SPACE = 96, BASE = 0x7000 };

static uint64_t load(struct timeline *timeline, uint64_t address, uint64_t size, int32_t id,
                     uint64_t now)
{
    struct code code = {.address = address, .size = size, .name = "x", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = id;
    return timeline_load(timeline, &code, NULL, (uint64_t)id, now).from;
}

TEST(counts_from_the_start_where_nobody_was)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    assert_int_equal(load(timeline, 100, 50, 1, 2000), SESSION_START);
    assert_int_equal(load(timeline, 150, 50, 2, 2001), SESSION_START);
    timeline_free(timeline);
}

TEST(counts_from_the_retirement_of_what_was_there)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 50, 1, 2000);
    load(timeline, 150, 50, 2, 2001);
    assert_int_equal(timeline_unload(timeline, 100, -1, 3000), TIMELINE_GONE);
    assert_int_equal(timeline_unload(timeline, 150, -1, 3500), TIMELINE_GONE);
    assert_int_equal(load(timeline, 110, 20, 3, 4000), 3000);
    assert_int_equal(load(timeline, 130, 40, 4, 4001), 3500);
    timeline_free(timeline);
}

TEST(counts_from_an_earlier_moment_when_that_is_known)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 50, 1, 2000);
    assert_int_equal(timeline_unload(timeline, 100, -1, 2500), TIMELINE_GONE);
    assert_int_equal(load(timeline, 100, 50, 2, 4000), 2500);
    /* From before its own stamp: that came too late, then, and so must not the next one's. */
    assert_int_equal(timeline_unload(timeline, 100, -1, 2400), TIMELINE_GONE);
    assert_int_equal(load(timeline, 100, 50, 3, 6000), 2501);
    timeline_free(timeline);
}

TEST(rest_of_a_retired_range_keeps_its_time)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 100, 1, 2000);
    timeline_unload(timeline, 100, -1, 3000);
    assert_int_equal(load(timeline, 100, 50, 2, 4000), 3000);
    /* The half that was left: not the session's start, which would be over code 1's samples. */
    assert_int_equal(load(timeline, 150, 50, 3, 5000), 3000);
    timeline_free(timeline);
}

TEST(overlap_without_unload_retires_now)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    load(timeline, 100, 100, 1, 2000);
    assert_int_equal(load(timeline, 120, 20, 2, 3000), 3000);
    timeline_unload(timeline, 100, -1, 4000); /* both of what is left of code 1 */
    assert_int_equal(load(timeline, 180, 10, 3, 5000), 4000);
    assert_int_equal(load(timeline, 105, 10, 4, 5001), 4000);
    assert_int_equal(timeline_unload(timeline, 100, -1, 5002), TIMELINE_UNKNOWN);
    timeline_free(timeline);
}

TEST(move_carries_the_index)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct stay stay;
    load(timeline, 100, 50, 7, 2000);
    assert_true(timeline_move(timeline, 100, 120, 3000, &stay));
    assert_int_equal(stay.index, 7);
    assert_int_equal(stay.from, 3000);
    assert_false(timeline_move(timeline, 100, 300, 3001, &stay));
    assert_int_equal(load(timeline, 100, 10, 8, 4000), 3000);
    assert_int_equal(timeline_unload(timeline, 120, -1, 5000), TIMELINE_GONE);
    timeline_free(timeline);
}

TEST(knows_what_it_was_told)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct code code = {
        .address = 100, .size = 50, .name = "stub", .facts = CODE_FACTS_UNKNOWN, .replayed = true};
    assert_false(timeline_knows(timeline, &code, NULL));
    timeline_load(timeline, &code, NULL, 1, 2000);
    assert_true(timeline_knows(timeline, &code, NULL));
    code.name = "other";
    assert_false(timeline_knows(timeline, &code, NULL));
    code.name = "stub";
    code.size = 51;
    assert_false(timeline_knows(timeline, &code, NULL));
    code.size = 50;
    code.replayed = false; /* a new stub of the same name, for all we know */
    assert_false(timeline_knows(timeline, &code, NULL));
    code.facts.compile_id = 4;
    timeline_load(timeline, &code, NULL, 2, 3000);
    assert_true(timeline_knows(timeline, &code, NULL));
    timeline_unload(timeline, 100, -1, 4000);
    assert_false(timeline_knows(timeline, &code, NULL));
    timeline_free(timeline);
}

/*
 * A replay has told of new code before the end of the old one in its place is told; and once its
 * class is redefined nothing but what is in use tells whose end it is.
 */
TEST(end_of_what_is_not_in_use)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct code code = {.address = 100, .size = 50, .name = "m", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = 7;
    timeline_load(timeline, &code, NULL, 1, 2000);
    code.facts.compile_id = 8;
    code.replayed = true;
    assert_int_equal(timeline_load(timeline, &code, NULL, 2, 3000).from, 3000);
    assert_int_equal(timeline_unload(timeline, 100, 8, 4000), TIMELINE_SUPERSEDED);
    assert_true(timeline_knows(timeline, &code, NULL));
    assert_int_equal(timeline_unload(timeline, 100, 9, 5000), TIMELINE_GONE);
    assert_int_equal(timeline_unload(timeline, 100, 9, 6000), TIMELINE_UNKNOWN);
    code.facts.compile_id = 9;
    assert_int_equal(timeline_load(timeline, &code, NULL, 3, 7000).from, 5000);
    /* Without a number nothing is held against the one that is in use. */
    code.address = 200;
    code.facts.compile_id = -1;
    timeline_load(timeline, &code, NULL, 4, 8000);
    assert_int_equal(timeline_unload(timeline, 200, 9, 9000), TIMELINE_GONE);
    timeline_free(timeline);
}

/* What could not be written is told of again, and counts from when it did. */
TEST(forgotten_code_keeps_its_time)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct code code = {
        .address = 100, .size = 50, .name = "stub", .facts = CODE_FACTS_UNKNOWN, .replayed = true};
    timeline_load(timeline, &code, NULL, 1, 2000);
    timeline_unload(timeline, 100, -1, 2500);
    struct stay stay = timeline_load(timeline, &code, NULL, 2, 3000);
    assert_int_equal(stay.from, 2500);
    timeline_forget(stay.occupant);
    assert_false(timeline_knows(timeline, &code, NULL));
    uint64_t start = 0;
    uint64_t end = 0;
    assert_true(timeline_next_gap(timeline, 90, 200, &start, &end));
    assert_int_equal(start, 90);
    assert_int_equal(end, 200);
    assert_int_equal(timeline_load(timeline, &code, NULL, 3, 4000).from, 2500);
    assert_true(timeline_knows(timeline, &code, NULL));
    assert_true(timeline_move(timeline, 100, 300, 5000, &stay));
    assert_int_equal(stay.index, 3);
    /* Other code in the place of forgotten code is other code. */
    timeline_forget(stay.occupant);
    timeline_forget(NULL);
    code.address = 300;
    code.name = "other";
    assert_int_equal(timeline_load(timeline, &code, NULL, 4, 6000).from, 6000);
    timeline_free(timeline);
}

/* What is kept of code, and takes note of what it is told. */
struct noted {
    struct kept kept;
    unsigned overlapped, moved, gone, over;
};

static void take_note(struct kept *kept, enum occupant_event event)
{
    struct noted *noted = (struct noted *)kept;
    assert_int_equal(noted->gone + noted->over, 0); /* nothing behind the end */
    noted->overlapped += event == OCCUPANT_OVERLAPPED;
    noted->moved += event == OCCUPANT_MOVED;
    noted->gone += event == OCCUPANT_GONE;
    noted->over += event == OCCUPANT_OVER;
}

static uint64_t noted_load(struct timeline *timeline, struct noted *noted, uint64_t address,
                           uint64_t size, int32_t id, uint64_t now)
{
    struct code code = {.address = address, .size = size, .name = "x", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = id;
    *noted = (struct noted){.kept.tell = take_note};
    const struct stay stay = timeline_load(timeline, &code, NULL, (uint64_t)id, now);
    occupant_keep(stay.occupant, &noted->kept);
    return stay.from;
}

TEST(what_is_kept_is_told_how_it_ends)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct noted a, a2, b, c, d, e;
    noted_load(timeline, &a, 100, 50, 1, 2000);
    a2 = (struct noted){.kept.tell = take_note};
    occupant_keep(NULL, &a2.kept); /* of code that lives nowhere */
    assert_int_equal(a2.gone, 1);
    noted_load(timeline, &b, 200, 50, 2, 2001);
    timeline_unload(timeline, 100, -1, 3000);
    assert_int_equal(a.gone, 1);
    assert_int_equal(a.overlapped, 0);
    noted_load(timeline, &c, 210, 10, 3, 3001); /* in the middle */
    noted_load(timeline, &d, 230, 10, 4, 3002); /* and again */
    assert_int_equal(b.overlapped, 1);
    assert_int_equal(b.gone, 0);
    noted_load(timeline, &e, 190, 100, 5, 3003); /* over all */
    assert_int_equal(b.gone, 1);
    assert_int_equal(c.overlapped, 1);
    assert_int_equal(c.gone, 1);
    assert_int_equal(d.gone, 1);
    struct stay stay;
    assert_true(timeline_move(timeline, 190, 500, 4000, &stay));
    assert_int_equal(e.moved, 1);
    assert_int_equal(e.gone, 0);
    timeline_free(timeline);
    assert_int_equal(e.gone, 0);
    assert_int_equal(e.over, 1);
}

/* Told of again, code is kept by whoever keeps it then. */
TEST(what_was_kept_of_forgotten_code_ends)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct noted first = {.kept.tell = take_note};
    struct noted second = {.kept.tell = take_note};
    struct code code = {
        .address = 100, .size = 50, .name = "stub", .facts = CODE_FACTS_UNKNOWN, .replayed = true};
    struct stay stay = timeline_load(timeline, &code, NULL, 1, 2000);
    occupant_keep(stay.occupant, &first.kept);
    timeline_forget(stay.occupant);
    stay = timeline_load(timeline, &code, NULL, 2, 3000);
    assert_int_equal(first.overlapped, 1);
    assert_int_equal(first.gone, 1);
    occupant_keep(stay.occupant, &second.kept);
    timeline_unload(timeline, 100, -1, 4000);
    assert_int_equal(second.overlapped, 0);
    assert_int_equal(second.gone, 1);
    timeline_free(timeline);
}

/* One look-up serves all that follow, until something changes. */
TEST(a_spot_is_used_while_it_is_right)
{
    struct timeline *timeline = timeline_new(SESSION_START);
    struct timeline_spot spot = {0};
    struct code code = {.address = 100, .size = 50, .name = "m", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = 7;
    assert_false(timeline_knows(timeline, &code, &spot));
    assert_int_equal(timeline_load(timeline, &code, &spot, 7, 2000).from, SESSION_START);
    assert_true(timeline_knows(timeline, &code, &spot)); /* a new look: it is another one now */
    code.facts.compile_id = 8;
    assert_false(timeline_knows(timeline, &code, &spot));
    load(timeline, 90, 20, 9, 2500); /* cuts what the spot has found */
    timeline_unload(timeline, 90, -1, 2600);
    assert_false(timeline_knows(timeline, &code, &spot));
    load(timeline, 90, 100, 10, 2700); /* takes it away */
    assert_int_equal(timeline_load(timeline, &code, &spot, 8, 3000).from, 3000);
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

/* Code has ended when none of its bytes is its own any more, and been overlapped when one was taken
 * before. */
static void check_kept(const struct cell *cells, const struct noted *noted, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        uint32_t live = 0;
        uint32_t size = 0;
        for (uint32_t at = 0; at < SPACE; at++) {
            live += cells[at].live == i;
            size = cells[at].live == i ? cells[at].end - cells[at].start : size;
        }
        assert_int_equal(noted[i].gone, live == 0);
        assert_true(noted[i].overlapped <= 1);
        assert_true(live == 0 || noted[i].overlapped == (live < size));
    }
}

TEST(random_operations_agree_with_a_model)
{
    uint64_t seed = random_seed();
    print_message("JDAGENT_SEED=%llu\n", (unsigned long long)seed);
    uint32_t rounds = getenv("JDAGENT_LONG") ? 50000 : SANITIZED ? 400 : 2000;
    for (uint32_t round = 0; round < rounds; round++) {
        struct timeline *timeline = timeline_new(SESSION_START);
        struct cell cells[SPACE] = {{0}};
        static struct noted noted[1001]; /* by number */
        uint32_t id = 0;
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
                assert_int_equal(
                    noted_load(timeline, &noted[id], BASE + at, size, (int32_t)id, now),
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
        }
        check_kept(cells, noted, id);
        timeline_free(timeline);
        for (uint32_t i = 1; i <= id; i++) {
            assert_int_equal(noted[i].gone + noted[i].over, 1);
        }
    }
}

/* What the method cache takes for all that it knows. */
TEST(memory_of_any_size_comes_and_goes)
{
    enum { THINGS = 300 };
    struct pools pools = {0};
    uint8_t *things[THINGS] = {0};
    size_t sizes[THINGS];
    uint64_t random = 1;
    for (int round = 0; round < 20000; round++) {
        uint32_t i = random_below(&random, THINGS);
        if (things[i]) {
            for (size_t at = 0; at < sizes[i]; at++) {
                assert_int_equal(things[i][at], i & 0xff);
            }
            pools_give_back(&pools, things[i], sizes[i]);
        }
        sizes[i] = 1 + random_below(&random, 2 * POOLS_LARGEST);
        things[i] = pools_take(&pools, sizes[i]);
        assert_non_null(things[i]);
        memset(things[i], (int)i, sizes[i]);
    }
    pools_free(&pools); /* with what was not given back, or the sanitizer tells of it */
}

TEST_MAIN(NULL, NULL)
