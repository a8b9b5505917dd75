/* Which events of a JFR recording become markers, and with which text. */
#include "test.h"

#include "jdtool/events/jfr_events.h"

#include <errno.h>
#include <stdio.h>

struct told {
    uint32_t count, pid, tid;
    uint64_t from[8], until[8];
    char text[8][64], subject[8][400];
};

static int take(void *context, uint32_t pid, uint32_t tid, const struct resolved_mark *mark)
{
    struct told *told = context;
    uint32_t i = told->count++;
    assert_true(i < 8);
    assert_int_equal(mark->kind, MARK_JFR);
    told->pid = pid;
    told->tid = tid ? tid : told->tid;
    told->from[i] = mark->from;
    told->until[i] = mark->until;
    snprintf(told->text[i], sizeof told->text[i], "%s", mark->text);
    snprintf(told->subject[i], sizeof told->subject[i], "%s", mark->subject);
    return 0;
}

static int read_corpus(const char *name, struct told *told)
{
    char path[512];
    *told = (struct told){0};
    snprintf(path, sizeof path, "%s/%s", JFR_CORPUS, name);
    return jfr_file_read(path, take, told);
}

/* The chunk begins at 1.7e18 ns, at 5000 of a thousand million ticks a second. */
#define START (UINT64_C(1700000000000000000) - 5000)

TEST(test_whole)
{
    struct told told;
    assert_int_equal(read_corpus("whole", &told), 0);
    assert_int_equal(told.count, 2); /* a sample of the JVM's own is none */
    assert_int_equal(told.pid, 4711);
    assert_int_equal(told.tid, 4711);
    assert_string_equal(told.text[0], "ClassLoad");
    assert_true(told.from[0] == START + 5100 && told.until[0] == START + 6000);
    assert_string_equal(told.subject[0], "loadedClass: Lager\u20ac");
    assert_string_equal(told.text[1], "app.Order");
    assert_true(told.from[1] == told.until[1]);
    assert_string_equal(told.subject[1], "paid: true, note: an order?, parts: 3");
}

TEST(test_two_chunks)
{
    struct told told;
    assert_int_equal(read_corpus("two", &told), 0);
    assert_int_equal(told.count, 4);
    assert_int_equal(told.pid, 0); /* the second one does not say whose it is */
}

TEST(test_damaged)
{
    struct told told;
    assert_int_equal(read_corpus("torn", &told), -EBADMSG);
    assert_int_equal(told.count, 0);
    assert_int_equal(read_corpus("uncompressed", &told), -EBADMSG);
    /* A checkpoint INT64_MIN bytes before this one. */
    assert_int_equal(read_corpus("far", &told), -EBADMSG);
    assert_int_equal(read_corpus("nowhere", &told), -ENOENT);
    assert_int_equal(read_corpus("empty", &told), 0);
    assert_int_equal(told.count, 0);
}

TEST_MAIN(NULL, NULL)
