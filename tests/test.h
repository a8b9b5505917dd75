/*
 * How a unit test is written:
 *
 *     TEST(a_dump_is_read)
 *     {
 *         assert_int_equal(…);
 *     }
 *
 *     TEST_MAIN(NULL, NULL)
 *
 * TEST puts it into the list of its program, in the order of the file, so that none is forgotten.
 */
#ifndef JD_TESTS_TEST_H
#define JD_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { TESTS_MAX = 64 };

static struct CMUnitTest test_list[TESTS_MAX];
static size_t test_count;

/* With what is done before and behind it (cmocka's fixtures; NULL: nothing). `state` is theirs. */
#define TEST_WITH(name, before, after)                                                             \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void name##_is_listed(void)                                \
    {                                                                                              \
        test_list[test_count++ % TESTS_MAX] =                                                      \
            (struct CMUnitTest){#name, name, before, after, NULL};                                 \
    }                                                                                              \
    static void name(__attribute__((unused)) void **state)

#define TEST(name) TEST_WITH(name, NULL, NULL)

/* Below the includes OWNED(struct thing *, thing_free), and then in a test, where it ends by
 * itself: OWN(thing_free) struct thing *thing = …; */
#define OWNED(type, end)                                                                           \
    static inline void end##_of(type *owned)                                                       \
    {                                                                                              \
        end(*owned);                                                                               \
    }
#define OWN(end) __attribute__((cleanup(end##_of)))

/* All of them: what main returns. */
static inline int tests_run(CMFixtureFunction before, CMFixtureFunction after)
{
    return test_count > TESTS_MAX
               ? 1
               : _cmocka_run_group_tests("tests", test_list, test_count, before, after);
}

#define TEST_MAIN(before, after)                                                                   \
    int main(void)                                                                                 \
    {                                                                                              \
        return tests_run(before, after);                                                           \
    }

#endif
