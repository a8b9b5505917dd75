/* Several outputs share one memory area, and each gets the events that it needs. */
#include "test.h"

#include "writer/occupancy/occupancy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The clock, 0: the real one. */
static uint64_t frozen;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!frozen) {
        return __real_clock_gettime(clock, now);
    }
    *now = (struct timespec){.tv_sec = (time_t)(frozen / 1000000000),
                             .tv_nsec = (long)(frozen % 1000000000)};
    return 0;
}

/* A sink that takes note. */
struct notes {
    struct sink sink;
    unsigned loads, moves;
    uint64_t address, size, from, index;
    int error; /* what the next load answers */
    bool dies; /* with it */
    bool *closed;
};

static int note_load(struct sink *sink, const struct code *code, const struct stay *stay)
{
    struct notes *notes = (struct notes *)sink;
    notes->loads++;
    notes->address = code->address;
    notes->size = code->size;
    notes->from = stay->from;
    notes->index = stay->index;
    sink->failed = notes->dies;
    return notes->error;
}

static int note_move(struct sink *sink, uint64_t from, uint64_t to, uint64_t size,
                     const struct stay *stay)
{
    struct notes *notes = (struct notes *)sink;
    (void)from;
    notes->moves++;
    notes->address = to;
    notes->size = size;
    notes->from = stay->from;
    notes->index = stay->index;
    return 0;
}

static void note_stats(struct sink *sink, struct sink_stats *stats)
{
    *stats = (struct sink_stats){.records = ((const struct notes *)sink)->loads};
}

static void note_close(struct sink *sink, bool in_fork)
{
    struct notes *notes = (struct notes *)sink;
    *notes->closed = !in_fork;
    free(notes);
}

static const struct sink_ops ops = {
    .load = note_load, .move = note_move, .stats = note_stats, .close = note_close};

static bool closed[2];

static struct occupancy *open_two(struct notes *notes[2])
{
    struct occupancy *occupancy = NULL;
    assert_int_equal(occupancy_new(false, &occupancy), 0);
    for (int i = 0; i < 2; i++) {
        notes[i] = calloc(1, sizeof(*notes[i]));
        assert_non_null(notes[i]);
        notes[i]->sink.ops = &ops;
        notes[i]->closed = &closed[i];
        closed[i] = false;
        occupancy_add(occupancy, &notes[i]->sink);
    }
    return occupancy;
}

static struct code code_at(uint64_t address, int32_t compile_id)
{
    struct code code = {.address = address, .size = 64, .name = "x", .facts = CODE_FACTS_UNKNOWN};
    code.facts.compile_id = compile_id;
    return code;
}

TEST(all_get_the_same_stamp_and_index)
{
    struct notes *notes[2];
    struct occupancy *occupancy = open_two(notes);
    struct code code = code_at(0x1000, 1);
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0);
    assert_int_equal(notes[0]->from, occupancy_start(occupancy));
    assert_int_equal(notes[0]->index, notes[1]->index);
    uint64_t index = notes[0]->index;
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0); /* known */
    assert_int_equal(notes[0]->loads, 1);
    assert_int_equal(occupancy_move(occupancy, 0x1000, 0x2000, 64), 0);
    assert_int_equal(occupancy_move(occupancy, 0x1000, 0x3000, 64), -ENOENT);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(notes[i]->moves, 1);
        assert_int_equal(notes[i]->index, index);
        assert_true(notes[i]->from > occupancy_start(occupancy));
    }
    occupancy_unload(occupancy, 0x2000, -1);
    assert_int_equal(occupancy_move(occupancy, 0x2000, 0x3000, 64), -ENOENT);
    occupancy_close(occupancy);
    assert_true(closed[0] && closed[1]);
}

static unsigned ends;

static void count_end(struct kept *kept, enum occupant_event event)
{
    (void)kept;
    ends += event == OCCUPANT_GONE || event == OCCUPANT_OVER;
}

/* Whatever comes of the code, what is kept of it ends once. */
TEST(what_is_kept_ends)
{
    struct notes *notes[2];
    struct occupancy *occupancy = open_two(notes);
    struct kept kept[5] = {{0}};
    struct code code = code_at(0x1000, 1);
    for (int i = 0; i < 5; i++) {
        kept[i].tell = count_end;
    }
    ends = 0;
    code.kept = &kept[0];
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0);
    assert_int_equal(ends, 0);
    code.kept = &kept[1];
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0); /* known */
    assert_int_equal(ends, 1);
    occupancy_unload(occupancy, 0x1000, -1);
    assert_int_equal(ends, 2);
    code.kept = &kept[2];
    notes[0]->error = -ENOBUFS;
    assert_int_equal(occupancy_load(occupancy, &code, NULL), -ENOBUFS);
    code.kept = &kept[3];
    notes[0]->error = 0;
    notes[0]->dies = notes[1]->dies = true;
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0); /* told of again */
    assert_int_equal(ends, 3);
    code.kept = &kept[4];
    assert_int_equal(occupancy_load(occupancy, &code, NULL), -EPIPE);
    assert_int_equal(ends, 4);
    occupancy_close(occupancy);
    assert_int_equal(ends, 5);
}

/* What happens one after the other has stamps that say so, whatever the clock's grain. */
TEST(no_two_stamps_are_the_same)
{
    struct notes *notes[2];
    frozen = 5000;
    struct occupancy *occupancy = open_two(notes);
    uint64_t last = occupancy_start(occupancy);
    for (int32_t i = 1; i < 10; i++) {
        struct code code = code_at(0x1000, i); /* in the place of the one before */
        assert_int_equal(occupancy_load(occupancy, &code, NULL), 0);
        assert_true(i == 1 || notes[0]->from > last);
        last = notes[0]->from;
    }
    frozen = 4000; /* nor where it goes back */
    assert_int_equal(occupancy_move(occupancy, 0x1000, 0x2000, 64), 0);
    assert_true(notes[0]->from > last);
    occupancy_close(occupancy);
    frozen = 0;
}

/* From JDK 20 on code is gone when a collection has swept it, not when the JVM says so. */
TEST(swept_code_left_when_it_was_swept)
{
    struct notes *notes[2];
    frozen = 1000;
    struct occupancy *occupancy = open_two(notes);
    struct code code = code_at(0x1000, 1);
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0);
    frozen = 20000;
    occupancy_swept(occupancy);
    frozen = 30000;
    occupancy_unload(occupancy, 0x1000, -1);
    frozen = 40000;
    code = code_at(0x1000, 2);
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0);
    assert_int_equal(notes[0]->from, 20000);
    occupancy_close(occupancy);
    frozen = 0;
}

TEST(known_by_number_alone_before_anything_is_looked_up)
{
    struct notes *notes[2];
    struct occupancy *occupancy = open_two(notes);
    struct code code = code_at(0x1000, 7);
    occupancy_load(occupancy, &code, NULL);
    code.name = NULL;
    assert_true(occupancy_knows(occupancy, &code, NULL));
    code.facts.compile_id = 8;
    assert_false(occupancy_knows(occupancy, &code, NULL));
    code.facts.compile_id = -1;
    code.replayed = true;
    assert_false(occupancy_knows(occupancy, &code, NULL));
    code.name = "x";
    assert_false(occupancy_knows(occupancy, &code, NULL)); /* it had a number then */
    occupancy_close(occupancy);
}

TEST(what_one_could_not_write_is_told_of_again)
{
    struct notes *notes[2];
    struct occupancy *occupancy = open_two(notes);
    struct code code = code_at(0x1000, 1);
    notes[1]->error = -ENOBUFS;
    assert_int_equal(occupancy_load(occupancy, &code, NULL), -ENOBUFS);
    uint64_t from = notes[0]->from;
    assert_false(occupancy_knows(occupancy, &code, NULL));
    struct sink_stats stats;
    occupancy_stats(occupancy, 1, &stats);
    assert_int_equal(stats.dropped, 1);
    occupancy_stats(occupancy, 0, &stats);
    assert_int_equal(stats.dropped, 0);
    notes[1]->error = 0;
    assert_int_equal(occupancy_load(occupancy, &code, NULL), 0);
    assert_int_equal(notes[1]->loads, 2);
    assert_int_equal(notes[1]->from, from);
    assert_true(occupancy_knows(occupancy, &code, NULL));
    /* A piece of a blob, too: the rest of what a replay tells of once more. */
    struct code blob = code_at(0xfc0, -1);
    blob.size = 192;
    blob.replayed = true;
    notes[0]->error = -ENOBUFS;
    assert_int_equal(occupancy_load(occupancy, &blob, NULL), -ENOBUFS);
    notes[0]->error = 0;
    assert_int_equal(notes[0]->loads, 3);
    assert_int_equal(occupancy_load(occupancy, &blob, NULL), 0);
    assert_int_equal(notes[0]->loads, 5);
    assert_int_equal(occupancy_load(occupancy, &blob, NULL), 0);
    assert_int_equal(notes[0]->loads, 5);
    occupancy_close(occupancy);
}

TEST(a_dead_sink_is_left_alone)
{
    struct notes *notes[2];
    struct occupancy *occupancy = open_two(notes);
    struct code code = code_at(0x1000, 1);
    notes[0]->error = -EIO;
    notes[0]->dies = true;
    assert_int_equal(occupancy_load(occupancy, &code, NULL), -EIO);
    assert_true(occupancy_knows(occupancy, &code, NULL)); /* nobody is waiting for it */
    code = code_at(0x2000, 2);
    assert_int_equal(occupancy_load(occupancy, &code, NULL), -EPIPE);
    assert_int_equal(notes[0]->loads, 1);
    assert_int_equal(notes[1]->loads, 2);
    assert_false(occupancy_is_dead(occupancy));
    notes[1]->error = -EIO;
    notes[1]->dies = true;
    code = code_at(0x3000, 3);
    assert_int_not_equal(occupancy_load(occupancy, &code, NULL), 0);
    assert_true(occupancy_is_dead(occupancy));
    assert_int_equal(occupancy_load(occupancy, &code, NULL), -EPIPE);
    assert_int_equal(occupancy_move(occupancy, 0x1000, 0x5000, 64), -EPIPE);
    occupancy_close(occupancy);
}

TEST(a_fork_hears_nothing)
{
    struct notes *notes[2];
    struct occupancy *occupancy = open_two(notes);
    pid_t child = fork();
    if (child == 0) {
        struct code code = code_at(0x1000, 1);
        bool silent = occupancy_load(occupancy, &code, NULL) == -EPIPE &&
                      occupancy_move(occupancy, 1, 2, 3) == -EPIPE &&
                      occupancy_is_dead(occupancy) && notes[0]->loads == 0;
        occupancy_unload(occupancy, 0x1000, -1);
        occupancy_close(occupancy);
        _exit(silent && !closed[0] && !closed[1] ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    occupancy_close(occupancy);
}

TEST_MAIN(NULL, NULL)
