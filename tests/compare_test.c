/*
 * The statistics of the comparison: distributions, false discovery rates, names, methods and
 * frames. And over 200 pairs of equal groups, that they alarm in no more than 5 %, while a planted
 * change is found.
 */
#include "test.h"

#include "jdtool/compare/comparison.h"
#include "jdtool/compare/runs.h"
#include "jdtool/compare/statistics.h"
#include "jdtool/profile/normal_name.h"

#include "tests/random.h"
#include "tests/sanitized.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void near(double value, double expected, double within)
{
    if (!(fabs(value - expected) <= within)) {
        fail_msg("%.9g is not %.9g", value, expected);
    }
}

/* Two groups whose Welch's t and degrees of freedom are known: of means 0 and t, so scattered that
 * the change's standard error is 1. */
TEST(student_is_as_in_tables)
{
    static const struct {
        uint32_t count; /* a side; equal scatter: 2 count - 2 degrees of freedom */
        double t, p;
    } table[] = {{2, 4.302653, 0.05},  {2, 9.924843, 0.01}, {4, 2.446912, 0.05},
                 {4, 5.958816, 0.001}, {7, 2.178813, 0.05}, {7, 4.317791, 0.001}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        uint32_t n = table[i].count;
        double before[8] = {0}, after[8];
        /* One run above and one below the mean, the others on it. */
        double off = sqrt(n * (n - 1) / 4.0);
        before[0] = off;
        before[1] = -off;
        for (uint32_t k = 0; k < n; k++) {
            after[k] = before[k] + table[i].t;
        }
        struct difference made = difference_of(before, n, after, n);
        near(made.change, table[i].t, 1e-9);
        near(made.p, table[i].p, 2e-6);
        if (table[i].p == 0.05) { /* the interval just reaches 0 */
            near(made.low, 0, 1e-5);
            near(made.high, 2 * table[i].t, 1e-5);
        }
    }
}

TEST(welch_takes_unequal_groups)
{
    /* Variances 1 and 16, of 4 runs each. */
    const double a = sqrt(1.5), before[] = {10 - a, 10 + a, 10, 10},
                 after[] = {15 - 4 * a, 15 + 4 * a, 15, 15};
    struct difference made = difference_of(before, 4, after, 4);
    near(made.before, 10, 1e-9);
    near(made.after, 15, 1e-9);
    /* error = sqrt(1/4 + 16/4) = 2.0616, degrees of freedom = 4.25^2 / ((1/16 + 256/16) / 3)
     * = 3.3735 */
    near(made.p, 0.084226, 1e-5); /* the density added up by Simpson's rule */
    assert_true(made.low < 0 && made.high > 10);
    near(made.high - made.change, made.change - made.low, 1e-9);
}

TEST(what_is_common_is_taken_out)
{
    /* Values are 3 (10 after) + 2 common + one run above and one below. */
    double common[] = {-1, 3, 1, 1, 0, 4, 2, 2}, values[8];
    const double off[] = {0, 0, 1, -1, 0, 0, 1, -1};
    for (int i = 0; i < 8; i++) {
        values[i] = (i < 4 ? 3 : 10) + 2 * common[i] + off[i];
    }
    struct difference made = difference_adjusted(values, common, 4, 4);
    near(made.change, 7, 1e-9);
    near(made.before, 3 + 2 * 1.5, 1e-9); /* of all runs common is 1.5 on average */
    /* Residuals 4 over 5 degrees of freedom; common is 1 apart and scatters by 16. */
    double error = sqrt(4.0 / 5 * (1.0 / 4 + 1.0 / 4 + 1.0 / 16));
    near(made.high - made.change, 2.570582 * error, 1e-5);
    near(values[0], 3 + 2 * 1.5, 1e-9);
    near(values[6], 11 + 2 * 1.5, 1e-9);
    /* Of a row without scatter nothing is taken. */
    const double none[8] = {0};
    double same[] = {1, 2, 3, 4, 5, 6, 7, 8};
    made = difference_adjusted(same, none, 4, 4);
    near(made.change, 4, 1e-9);
    near(same[7], 8, 0);
}

TEST(groups_without_scatter)
{
    const double ones[] = {1, 1, 1, 1, 1, 1, 1}, twos[] = {2, 2, 2, 2, 2, 2, 2}, none[7] = {0};
    near(difference_of(ones, 7, ones, 7).p, 1, 0);
    near(difference_of(none, 7, none, 7).p, 1, 0);
    near(difference_of(ones, 7, twos, 7).p, 2 / 3432.0, 1e-12);
    near(difference_of(ones, 2, twos, 2).p, 2 / 6.0, 1e-12);
}

TEST(rates_are_held)
{
    double p[] = {0.9, 0.01, 0.04, 0.001, 0.035}, q[5]; /* the last one by the one before it */
    const double expected[] = {0.9, 0.025, 0.05, 0.005, 0.05};
    assert_int_equal(false_discovery_rates(p, 5, q), 0);
    for (int i = 0; i < 5; i++) {
        near(q[i], expected[i], 1e-12);
    }
    assert_int_equal(false_discovery_rates(p, 5, p), 0); /* in place */
    near(p[3], 0.005, 1e-12);
    assert_int_equal(false_discovery_rates(p, 0, p), 0);
}

TEST(names_lose_their_numbers)
{
    static const char *const names[][2] = {
        {"A$$Lambda$14/0x00007f42f8000a10.run()", "A$$Lambda.run()"},
        {"A$$Lambda/0x00007f42f8000a10.run()", "A$$Lambda.run()"},
        {"A$$Lambda$14/123.run()", "A$$Lambda.run()"},
        {"jdk.proxy2.$Proxy17.call(int)", "jdk.proxy2.$Proxy.call(int)"},
        {"jdk.internal.reflect.GeneratedMethodAccessor3.invoke(X)",
         "jdk.internal.reflect.GeneratedMethodAccessor.invoke(X)"},
        {"a.B+0x00f1.c()", "a.B.c()"},
        {"user$eval140$fn__141.invoke()", "user$eval$fn__.invoke()"},
        {"a.b$fn__8229$G__8224__8238.c()", "a.b$fn__$G____.c()"},
        {"a$evaluate.b()", "a$evaluate.b()"},
        {"__x__64", "__x__64"},
        {"A$HibernateProxy$Xy12AbCd.a()", "A$HibernateProxy$.a()"},
        {"A$ByteBuddy$0aZ9$auxiliary$Ab0.a()", "A$ByteBuddy$$auxiliary$.a()"},
        {"A$MockitoMock$123.a(int)", "A$MockitoMock$.a(int)"},
        {"A$$EnhancerBySpringCGLIB$$1a2b3c.a()", "A$$EnhancerBySpringCGLIB$$.a()"},
        {"A$$FastClassByGuice$$77.a()", "A$$FastClassByGuice$$.a()"},
        {"A_$$_jvst1a2_0.a()", "A_$$_jvst.a()"},
        {"a.Vec3.add(int[])", "a.Vec3.add(int[])"},
        {"lib/12abc", "lib/12abc"},
        {"Foo/77", "Foo"},
        {"[libc.so.6]", "[libc.so.6]"},
        {"[jna2091806938731694127.tmp (deleted)]", "[jna.tmp]"},
        {"[libzstd-jni-1.5.6-43126484420155632.so]", "[libzstd-jni-1.5.6-.so]"},
        {"[snappy-1.1.10-0a1b2c3d-1234-4abc-8def-0123456789ab-libsnappyjava.so]",
         "[snappy-1.1.10--libsnappyjava.so]"},
        {"[lib-0a1b2c3d-1234-4abc-8def.so]", "[lib-0a1b2c3d-1234-4abc-8def.so]"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s", names[i][0]);
        normal_name(name);
        assert_string_equal(name, names[i][1]);
    }
}

/* ---- Runs that are made up ---- */

enum { METHODS = 60, SIDE = 7 };

/* main calls METHODS leaves, of this kind; the last one recurses once. Numbers of lambdas differ by
 * run. */
struct made_up {
    struct profile profile;
    struct recording recording;
    struct recorded_event event;
    struct profile_function functions[METHODS + 1];
    struct profile_line lines[METHODS + 1];
    struct profile_location locations[METHODS + 1];
    struct profile_node nodes[METHODS + 2];
    struct profile_sample samples[METHODS + 1];
    struct profile_thread thread;
    char names[METHODS + 1][64];
};

static void make_up_of(struct made_up *made, uint32_t run, const uint64_t weights[METHODS],
                       enum resolved_kind kind)
{
    struct profile *profile = &made->profile;
    memset(made, 0, sizeof *made);
    made->event = (struct recorded_event){.name = "cpu-clock", .unit = "nanoseconds"};
    made->recording = (struct recording){.events = &made->event, .event_count = 1};
    for (uint32_t i = 0; i <= METHODS; i++) {
        snprintf(made->names[i], sizeof made->names[i], "M%c%c$$Lambda$%u/0x7f%x.run()",
                 'a' + i / 26, 'a' + i % 26, run + i, run);
        made->functions[i] = (struct profile_function){.name = made->names[i]};
        made->lines[i] = (struct profile_line){.function = i, .line = i, .kind = kind};
        made->locations[i] = (struct profile_location){.first_line = i, .line_count = 1};
        made->nodes[i] = (struct profile_node){i ? 0 : PROFILE_NONE, i};
        if (i) {
            made->samples[i - 1] =
                (struct profile_sample){.weight = weights[i - 1], .count = 1, .node = i};
        }
    }
    made->nodes[METHODS + 1] = (struct profile_node){METHODS, METHODS};
    made->samples[METHODS] = (struct profile_sample){.weight = 5, .count = 1, .node = METHODS + 1};
    profile->recording = &made->recording;
    profile->functions = made->functions;
    profile->lines = made->lines;
    profile->locations = made->locations;
    profile->nodes = made->nodes;
    profile->samples = made->samples;
    profile->threads = &made->thread;
    profile->function_count = profile->line_count = profile->location_count = METHODS + 1;
    profile->node_count = METHODS + 2;
    profile->sample_count = METHODS + 1;
    profile->thread_count = 1;
}

static void make_up(struct made_up *made, uint32_t run, const uint64_t weights[METHODS])
{
    make_up_of(made, run, weights, RESOLVED_UNKNOWN);
}

/* Nearly normal, of mean 0 and scatter 1. */
static double noise(uint64_t *random)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        sum += (double)random_below(random, 1 << 20) / (1 << 20);
    }
    return sum;
}

/* A pair of groups: each run has its own scatter of 5 % in each method and a common one of all
 * (the machine). slower: by how much the first method, of 20 %, took longer after. */
static void compare_pair(uint64_t *random, double slower, bool by_work, struct comparisons *made)
{
    static struct made_up up;
    struct runs runs;
    assert_int_equal(runs_init(&runs, SIDE, SIDE), 0);
    for (uint32_t run = 0; run < 2 * SIDE; run++) {
        uint64_t weights[METHODS];
        double machine = 1 + (by_work ? 0.02 : 0.2) * noise(random);
        for (uint32_t i = 0; i < METHODS; i++) {
            double mean = (i ? 80e6 / (METHODS - 1) : 20e6) * fabs(machine);
            double planted = i == 0 && run >= SIDE ? 1 + slower : 1;
            weights[i] = (uint64_t)fabs(mean * planted * (1 + 0.05 * noise(random)));
        }
        make_up(&up, run, weights);
        assert_int_equal(runs_add(&runs, run, &up.profile), 0);
        runs.work[run] = by_work ? 10 : 0;
    }
    assert_int_equal(runs.name_count, METHODS + 1); /* the same names in all runs */
    assert_int_equal(runs.node_count, METHODS + 2);
    assert_int_equal(compare_methods(&runs, made), 0);
    struct comparisons frames = {0};
    assert_int_equal(compare_frames(&runs, 0, &frames), 0);
    for (uint32_t i = 0; i < frames.count; i++) {
        near(frames.list[i].values[0] <= 100 + 1e-9, 1, 0);
    }
    comparisons_free(&frames);
    runs_free(&runs);
}

static bool has_changed(const struct comparisons *made, uint32_t id)
{
    bool found = false, changed = false;
    for (uint32_t i = 0; i < made->count; i++) {
        if (made->list[i].what == COMPARED_SELF && made->list[i].id == id) {
            found = true;
            changed = made->list[i].is_change && made->list[i].impact > 0;
        }
    }
    assert_true(found);
    return changed;
}

static uint32_t count_changes(const struct comparisons *made)
{
    uint32_t changes = 0;
    for (uint32_t i = 0; i < made->count; i++) {
        changes += made->list[i].is_change;
    }
    return changes;
}

TEST(alarms_and_finds)
{
    enum { PAIRS = SANITIZED ? 40 : 200 };
    uint64_t random = 1;
    for (int by_work = 0; by_work < 2; by_work++) {
        uint32_t alarms = 0, found = 0;
        for (int i = 0; i < PAIRS; i++) {
            struct comparisons made = {0};
            compare_pair(&random, 0, by_work, &made);
            uint32_t changes = count_changes(&made);
            alarms += changes > 0;
            assert_true(comparisons_losses(&made, 0) <= changes);
            comparisons_free(&made);
            compare_pair(&random, 0.25, by_work, &made);
            found += has_changed(&made, 1);
            assert_true(!has_changed(&made, 1) || comparisons_losses(&made, 1) > 0);
            assert_int_equal(comparisons_losses(&made, 50), 0);
            comparisons_free(&made);
        }
        print_message("%u of %d equal pairs alarm, %u planted changes are found\n", alarms, PAIRS,
                      found);
        assert_true(alarms <= PAIRS / 20);
        assert_true(found >= PAIRS * 9 / 10);
    }
}

enum { COMPILER = METHODS - 1, HOT = 8 };

/* What is made up of compiled methods: how much slower the first one is and how much more than the
 * others it scatters, and by how much the last three scatter together. */
struct compiled {
    double slower, scatter, together;
    enum resolved_kind kind;
};

/* Runs of HOT compiled methods, of which the first has a fifth of all, and of the JVM's compiler,
 * with 30 % but seldom the same. Each method scatters by 1 %. */
static void compare_compiled(uint64_t *random, struct compiled of, struct comparisons *made)
{
    static struct made_up up;
    struct runs runs;
    assert_int_equal(runs_init(&runs, SIDE, SIDE), 0);
    for (uint32_t run = 0; run < 2 * SIDE; run++) {
        uint64_t weights[METHODS] = {0};
        double together = 1 + of.together * noise(random);
        for (uint32_t i = 0; i < HOT; i++) {
            double planted = i == 0 && run >= SIDE ? 1 + of.slower : i >= HOT - 3 ? together : 1;
            planted *= i == 0 ? 1 + of.scatter * noise(random) : 1;
            weights[i] =
                (uint64_t)((i ? 50e6 / (HOT - 1) : 20e6) * planted * (1 + 0.01 * noise(random)));
        }
        weights[COMPILER] = (uint64_t)(30e6 * fabs(1 + 0.3 * noise(random)));
        make_up_of(&up, run, weights, of.kind);
        up.lines[COMPILER + 1].kind = RESOLVED_NATIVE;
        assert_int_equal(runs_add(&runs, run, &up.profile), 0);
    }
    assert_int_equal(compare_methods(&runs, made), 0);
    bool is_measured_by_rest = runs.events[0].rest != NULL;
    assert_int_equal(is_measured_by_rest, of.kind == RESOLVED_COMPILED);
    runs_free(&runs);
}

TEST(methods_are_measured_by_the_rest)
{
    enum { PAIRS = SANITIZED ? 40 : 200 };
    uint64_t random = 2;
    uint32_t alarms = 0, found = 0, found_by_all = 0, others = 0;
    for (int i = 0; i < PAIRS; i++) {
        struct comparisons made = {0};
        compare_compiled(&random, (struct compiled){.slower = 0, .kind = RESOLVED_COMPILED}, &made);
        alarms += count_changes(&made) > 0;
        comparisons_free(&made);
        compare_compiled(&random, (struct compiled){.slower = 0.05, .kind = RESOLVED_COMPILED},
                         &made);
        found += has_changed(&made, 1);
        for (uint32_t k = 0; k < made.count; k++) {
            const struct comparison *of = &made.list[k];
            others += of->what == COMPARED_SELF && of->id != 1 && of->is_change;
            if (of->what == COMPARED_SELF && of->id == 1) {
                /* All of the change, not only what it changes of its share. */
                near(of->difference.change / of->difference.before, 0.05, 0.03);
                near(of->difference.before, 20, 2.5);
            }
        }
        comparisons_free(&made);
        compare_compiled(&random, (struct compiled){.slower = 0.05, .kind = RESOLVED_NATIVE},
                         &made);
        found_by_all += has_changed(&made, 1);
        comparisons_free(&made);
    }
    print_message("%u of %d equal pairs alarm, %u planted changes are found (%u of all samples), "
                  "%u other methods\n",
                  alarms, PAIRS, found, found_by_all, others);
    assert_true(alarms <= PAIRS / 10); /* 1 in 20 on average: so many by chance at most */
    assert_true(found >= PAIRS * 9 / 10);
    assert_true(found_by_all <= PAIRS / 10);
    assert_true(others <= PAIRS / 5);
}

/* Where memory is slow in some runs, what waits for it takes more of the rest, and the others less.
 */
TEST(what_methods_share_between_runs_hides_nothing)
{
    enum { PAIRS = SANITIZED ? 40 : 200 };
    uint64_t random = 3;
    uint32_t alarms = 0, found = 0;
    for (int i = 0; i < PAIRS; i++) {
        struct compiled of = {.together = 0.15, .kind = RESOLVED_COMPILED};
        struct comparisons made = {0};
        compare_compiled(&random, of, &made);
        alarms += count_changes(&made) > 0;
        comparisons_free(&made);
        of.slower = 0.05;
        compare_compiled(&random, of, &made);
        found += has_changed(&made, 1);
        comparisons_free(&made);
    }
    print_message("%u of %d equal pairs alarm, %u planted changes are found\n", alarms, PAIRS,
                  found);
    assert_true(alarms <= PAIRS / 10);
    assert_true(found >= PAIRS * 9 / 10);
}

/* A method that takes 20 times as long is not what all others are measured by, though it scatters
 * more than they do. */
TEST(what_changed_most_is_not_the_measure)
{
    struct compiled of = {.slower = 19, .scatter = 0.1, .kind = RESOLVED_COMPILED};
    uint64_t random = 4;
    for (int i = 0; i < 50; i++) {
        struct comparisons made = {0};
        compare_compiled(&random, of, &made);
        assert_true(has_changed(&made, 1));
        for (uint32_t k = 0; k < made.count; k++) {
            if (made.list[k].what == COMPARED_SELF && made.list[k].id == 1) {
                near(made.list[k].difference.change / made.list[k].difference.before, 19, 5);
            }
        }
        comparisons_free(&made);
    }
}

TEST(recursion_counts_once)
{
    static struct made_up up;
    uint64_t weights[METHODS] = {0};
    struct comparisons made = {0};
    struct runs runs;
    assert_int_equal(runs_init(&runs, 2, 2), 0);
    weights[METHODS - 1] = 45;
    for (uint32_t run = 0; run < 4; run++) {
        make_up(&up, run, weights);
        assert_int_equal(runs_add(&runs, run, &up.profile), 0);
    }
    assert_int_equal(compare_methods(&runs, &made), 0);
    /* main has no self, the last method 50 of 50 with its recursion: one row of each. */
    assert_int_equal(made.count, 2);
    for (uint32_t i = 0; i < made.count; i++) {
        near(made.list[i].difference.before, 100, 1e-9);
        near(made.list[i].q, 1, 0);
        assert_false(made.list[i].is_change);
    }
    comparisons_free(&made);
    runs_free(&runs);
}

TEST(work_is_the_measure_where_it_is_known)
{
    double whole[] = {200, 400};
    struct runs_event event = {.name = "cpu", .unit = "ns", .whole = whole};
    struct runs runs;
    assert_int_equal(runs_init(&runs, 1, 1), 0);
    near(runs_measure(&runs, &event, 0, 50), 25, 1e-9);
    near(runs_measure(&runs, &event, 1, 50), 12.5, 1e-9);
    runs.work[0] = 5;
    runs.work[1] = 10;
    near(runs_measure(&runs, &event, 0, 50), 10, 1e-9);
    near(runs_measure(&runs, &event, 1, 50), 5, 1e-9);
    runs_free(&runs);
}

TEST_MAIN(NULL, NULL)
