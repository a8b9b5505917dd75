/* Finds which code was at an address at a time, compared with a model that remembers everything. */
#include "dump_builder.h"
#include "random.h"
#include "sanitized.h"
#include "test.h"

#include "jdtool/jitdump/code_index.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

OWNED(struct code_index *, code_index_close)

static struct code_index *open_index(struct dump_builder *dump)
{
    struct code_index *index;
    assert_int_equal(code_index_follow("test", dump_fd(dump), &index), 0);
    assert_return_code(code_index_update(index, true), 0);
    dump_free(dump);
    return index;
}

static const char *name_at(const struct code_index *index, uint64_t address, uint64_t time)
{
    const struct code_stay *stay = code_index_at(index, address, time, NULL);
    return stay ? code_index_blob(index, stay->blob)->name : "-";
}

TEST(later_code_hides_what_it_covers)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, BUILDER_START + 10, 0x1000, 0x100, 1, "old");
    dump_load(&dump, BUILDER_START + 20, 0x1040, 0x20, 2, "new");
    dump_load(&dump, BUILDER_START + 30, 0x1100, 0, 3, "empty");
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    uint64_t t = BUILDER_START;
    assert_string_equal(name_at(index, 0x1000, t + 9), "-");
    assert_string_equal(name_at(index, 0x1000, t + 10), "old");
    assert_string_equal(name_at(index, 0x1050, t + 19), "old");
    assert_string_equal(name_at(index, 0x1050, t + 20), "new");
    assert_string_equal(name_at(index, 0x103f, t + 99), "old");
    assert_string_equal(name_at(index, 0x1060, t + 99), "old");
    assert_string_equal(name_at(index, 0x10ff, t + 99), "old");
    assert_string_equal(name_at(index, 0x1100, t + 99), "-");
    assert_string_equal(name_at(index, 0xfff, t + 99), "-");
    assert_null(code_index_warning(index));
}

TEST(stamps_may_go_backwards)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, BUILDER_START + 50, 0x1000, 16, 1, "late");
    dump_load(&dump, BUILDER_START + 10, 0x1000, 16, 2, "early");
    dump_load(&dump, BUILDER_START + 50, 0x1000, 8, 3, "as late, behind");
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    assert_int_equal(code_index_stay_count(index), 3);
    assert_int_equal(code_index_stay(index, 0)->blob, 0);
    assert_int_equal(code_index_stay(index, 1)->blob, 1);
    assert_int_equal(code_index_stay(index, 2)->blob, 2);
    assert_string_equal(name_at(index, 0x1000, BUILDER_START + 49), "early");
    assert_string_equal(name_at(index, 0x1000, BUILDER_START + 50), "as late, behind");
    assert_string_equal(name_at(index, 0x1008, BUILDER_START + 50), "late");
}

TEST(moves)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, BUILDER_START + 1, 0x1000, 0x100, 7, "mover");
    dump_move(&dump, BUILDER_START + 5, 0x1000, 0x1080, 0x100, 7);
    dump_move(&dump, BUILDER_START + 9, 0x1080, 0x5000, 0x100, 7);
    dump_move(&dump, BUILDER_START + 9, 0x1080, 0x5000, 0x100, 8); /* never loaded */
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    assert_string_equal(name_at(index, 0x1000, BUILDER_START + 4), "mover");
    assert_string_equal(name_at(index, 0x1000, BUILDER_START + 5), "-");
    assert_string_equal(name_at(index, 0x1080, BUILDER_START + 5), "mover");
    assert_string_equal(name_at(index, 0x117f, BUILDER_START + 8), "mover");
    assert_string_equal(name_at(index, 0x1080, BUILDER_START + 9), "-");
    assert_string_equal(name_at(index, 0x5000, BUILDER_START + 9), "mover");
    assert_non_null(code_index_warning(index));
}

/* An index that is given twice means the later code from then on. */
TEST(an_index_given_again_moves_the_later)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, BUILDER_START + 1, 0x1000, 0x100, 7, "first");
    dump_load(&dump, BUILDER_START + 2, 0x2000, 0x100, 7, "second");
    dump_move(&dump, BUILDER_START + 5, 0x2000, 0x3000, 0x100, 7);
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    assert_string_equal(name_at(index, 0x3000, BUILDER_START + 6), "second");
    assert_string_equal(name_at(index, 0x2000, BUILDER_START + 6), "-");
    assert_string_equal(name_at(index, 0x1000, BUILDER_START + 6), "first");
}

/* Writers with a lock for each record mix the groups; the address tells them apart. */
TEST(mixed_groups)
{
    struct dump_builder dump = dump_start();
    dump_begin_debug(&dump, BUILDER_START, 0x1000, 1);
    dump_entry(&dump, 0x1000, 1, "first.java");
    dump_end(&dump);
    dump_begin_debug(&dump, BUILDER_START, 0x2000, 1);
    dump_entry(&dump, 0x2000, 2, "second.java");
    dump_end(&dump);
    dump_load(&dump, BUILDER_START, 0x1000, 16, 1, "first");
    dump_load(&dump, BUILDER_START, 0x2000, 16, 2, "second");
    dump_load(&dump, BUILDER_START, 0x3000, 16, 3, "third");
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    struct code_details details = {0};
    assert_int_equal(code_index_fetch(index, 0, &details), 0);
    assert_int_equal(details.entry_count, 1);
    assert_string_equal(details.entries[0].file, "first.java");
    assert_int_equal(code_index_fetch(index, 1, &details), 0);
    assert_string_equal(details.entries[0].file, "second.java");
    assert_int_equal(code_index_fetch(index, 2, &details), 0);
    assert_int_equal(details.entry_count, 0);
    assert_int_equal(details.trailer.node_count, 0);
    assert_int_equal(details.trailer.facts[JITDUMP_CODE_KIND], -1);
    code_details_free(&details);
}

TEST(fetches_details)
{
    struct dump_builder dump = {.swapped = true};
    dump_header(&dump);
    dump_group(&dump, BUILDER_START, 0x1000, 64, 2, "a.A.one()");
    dump_begin(&dump, JIT_CODE_UNWINDING_INFO, BUILDER_START);
    dump_u64(&dump, 8);
    dump_u64(&dump, 3);
    dump_u64(&dump, 0);
    dump_bytes(&dump, "12345678", 8);
    dump_end(&dump);
    dump_group(&dump, BUILDER_START, 0x2000, 32, 3, "a.A.two()");
    dump_begin(&dump, JIT_CODE_LOAD, BUILDER_START);
    dump_load_fields(&dump, 0x3000, 64, 9);
    dump_string(&dump, "no code");
    dump_end(&dump);
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    assert_int_equal(code_index_blob_count(index), 3);
    struct code_details details = {0};
    for (int round = 0; round < 2; round++) {
        assert_int_equal(code_index_fetch(index, 1, &details), 0);
        assert_int_equal(details.bytes[31], 31);
        assert_int_equal(details.unwinding_size, 8);
        assert_int_equal(details.eh_frame_hdr_size, 3);
        assert_memory_equal(details.unwinding, "12345678", 8);
        assert_int_equal(details.entry_count, 3);
        assert_string_equal(details.entries[0].file, "a/A.java");
        assert_string_equal(details.entries[1].file, "b/B.java");
        assert_ptr_equal(details.entries[1].file, details.entries[2].file);
        assert_int_equal(details.trailer.node_count, 2);
        assert_string_equal(
            trailer_names_method(code_index_names(index), details.trailer.nodes[1].method)->name,
            "a.A.one()");
        assert_int_equal(code_index_fetch(index, 2, &details), 0);
        assert_null(details.bytes);
        assert_null(details.unwinding);
        assert_int_equal(details.entry_count, 0);
        assert_int_equal(details.trailer.node_count, 0);
        assert_false(code_index_blob(index, 2)->has_bytes);
        assert_int_equal(code_index_blob(index, 2)->size, 64);
    }
    code_details_free(&details);
}

struct slices {
    uint64_t end;
    uint64_t time;
    const struct code_index *index;
    uint32_t count;
};

static void check_slice(void *context, uint64_t address, uint64_t size,
                        const struct code_stay *stay)
{
    struct slices *slices = context;
    assert_true(size > 0);
    assert_true(address >= slices->end);
    assert_ptr_equal(code_index_at(slices->index, address, slices->time, NULL), stay);
    assert_ptr_equal(code_index_at(slices->index, address + size - 1, slices->time, NULL), stay);
    slices->end = address + size;
    slices->count++;
}

static struct dump_builder random_dump(uint64_t *seed, uint32_t loads, uint32_t least_size)
{
    struct dump_builder dump = dump_start();
    for (uint32_t i = 0; i < loads; i++) {
        dump_load(&dump, BUILDER_START + random_below(seed, 30), 0x1000 + random_below(seed, 60),
                  least_size + random_below(seed, 20), i, "x");
        if (random_below(seed, 4) == 0) {
            dump_move(&dump, BUILDER_START + random_below(seed, 30), 0,
                      0x1000 + random_below(seed, 60), 0, random_below(seed, i + 1));
        }
    }
    return dump;
}

/* Against the definition, taken literally. */
TEST(random_stays)
{
    uint64_t seed = random_seed();
    for (int round = 0; round < 60; round++) {
        struct dump_builder dump = random_dump(&seed, 1 + random_below(&seed, 40), 0);
        struct code_index *index = open_index(&dump);
        for (uint64_t time = BUILDER_START; time < BUILDER_START + 31; time++) {
            for (uint64_t address = 0xfff; address < 0x1060; address++) {
                const struct code_stay *expected = NULL;
                for (uint32_t i = 0; i < code_index_stay_count(index); i++) {
                    const struct code_stay *stay = code_index_stay(index, i);
                    if (stay->from <= time && address - stay->address < stay->size &&
                        (!expected || stay->from >= expected->from)) {
                        expected = stay;
                    }
                }
                if (expected && expected->until <= time) {
                    expected = NULL;
                }
                assert_ptr_equal(code_index_at(index, address, time, NULL), expected);
            }
            struct slices slices = {.time = time, .index = index};
            assert_int_equal(code_index_map(index, time, check_slice, &slices), 0);
        }
        code_index_close(index);
    }
}

static uint64_t next_change(const struct code_index *index, uint64_t address, uint64_t time,
                            const struct code_stay *at_time)
{
    for (uint64_t later = time + 1; later < BUILDER_START + 40; later++) {
        if (code_index_at(index, address, later, NULL) != at_time) {
            return later;
        }
    }
    return UINT64_MAX;
}

/* However a dump grows, cut anywhere, it is in the end what it is when read at once. */
TEST(grows_with_its_file)
{
    uint64_t seed = random_seed();
    for (int round = 0; round < 40; round++) {
        struct dump_builder dump = random_dump(&seed, 1 + random_below(&seed, 60), 1);
        int fd = memfd_create("growing", MFD_CLOEXEC);
        assert_true(fd >= 0);
        size_t written = sizeof(struct jitdump_header);
        assert_int_equal(write(fd, dump.bytes, written), written);
        struct code_index *growing;
        assert_int_equal(code_index_follow("growing", dup(fd), &growing), 0);
        while (written < dump.size) {
            size_t more = 1 + random_below(&seed, 400);
            more = more > dump.size - written ? dump.size - written : more;
            assert_int_equal(write(fd, dump.bytes + written, more), more);
            written += more;
            uint32_t before = code_index_stay_count(growing);
            int grown = code_index_update(growing, written == dump.size);
            assert_int_equal(grown, code_index_stay_count(growing) > before);
            assert_null(code_index_warning(growing));
        }
        close(fd);
        OWN(code_index_close) struct code_index *index = open_index(&dump);
        assert_int_equal(code_index_stay_count(index), code_index_stay_count(growing));
        for (uint64_t time = BUILDER_START; time < BUILDER_START + 31; time++) {
            for (uint64_t address = 0xfff; address < 0x1060; address += 5) {
                uint64_t until;
                const struct code_stay *grown = code_index_at(growing, address, time, &until);
                const struct code_stay *whole = code_index_at(index, address, time, NULL);
                assert_int_equal(grown != NULL, whole != NULL);
                assert_int_equal(grown ? grown->number : 0, whole ? whole->number : 0);
                /* It may be told early, never late. */
                assert_true(until > time && until <= next_change(growing, address, time, grown));
            }
        }
        code_index_close(growing);
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* As many LOADs as a large application makes in days: seconds, not minutes. */
TEST(hundred_thousand_loads)
{
    enum { LOADS = SANITIZED ? 20000 : 100000 };
    struct dump_builder dump = dump_start();
    for (uint64_t i = 0; i < LOADS; i++) {
        dump_load(&dump, BUILDER_START + i, 0x7f0000000000 + (i * 7919 % LOADS) * 64, 80, i,
                  "com.example.Klass.method(java.lang.String, int)");
    }
    double start = seconds();
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    for (uint64_t i = 0; i < LOADS; i++) {
        const struct code_stay *stay =
            code_index_at(index, 0x7f0000000000 + (i * 7919 % LOADS) * 64 + 20, UINT64_MAX, NULL);
        assert_int_equal(stay->blob, i);
    }
    assert_true(seconds() - start < 20); /* tenths of a second, without sanitizers */
}

TEST(nothing_in_it)
{
    struct dump_builder dump = dump_start();
    struct code_index *index = open_index(&dump);
    assert_null(code_index_at(index, 0, 0, NULL));
    assert_null(code_index_at(index, UINT64_MAX, UINT64_MAX, NULL));
    struct slices slices = {.index = index};
    assert_int_equal(code_index_map(index, UINT64_MAX, check_slice, &slices), 0);
    assert_int_equal(slices.count, 0);
    code_index_close(index);
}

TEST(torn_tail_is_a_warning)
{
    struct dump_builder dump = dump_start();
    dump_load(&dump, BUILDER_START, 0x1000, 16, 1, "whole");
    dump_load(&dump, BUILDER_START, 0x2000, 16, 2, "torn");
    dump.size -= 3;
    OWN(code_index_close) struct code_index *index = open_index(&dump);
    assert_int_equal(code_index_blob_count(index), 1);
    assert_non_null(code_index_warning(index));
    assert_non_null(strstr(code_index_warning(index), "torn"));
}

static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

#define SEGMENTS UINT32_C(40)

static uint64_t end_of(uint32_t segment)
{
    return BUILDER_START + 10000 * (uint64_t)(segment + 1);
}

/* Code that lives through all segments, and some that is gone with each. */
static int make_segment(uint32_t segment)
{
    OWN_DUMP_BUILDER dump = dump_start();
    dump_group(&dump, BUILDER_START + 10, 0x1000, 16, 2, "lives");
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t id = 3 + 2 * segment + i;
        dump_group(&dump, end_of(segment) - 5000, 0x100 * id, 16, id,
                   i ? "touched" : "not touched");
    }
    dump_load(&dump, end_of(segment) - 1, 0x100, 1, 1000 + segment, "the last");
    dump_close(&dump, end_of(segment));
    int fd = dump_fd(&dump);
    return fd;
}

TEST(segments_that_nobody_refers_to_are_closed)
{
    for (int keep = 0; keep < 2; keep++) {
        struct code_details details = {0};
        struct code_index *index;
        char path[64];
        int before = open_files();
        assert_int_equal(code_index_follow("segments", make_segment(0), &index), 0);
        for (uint32_t segment = 0; segment < SEGMENTS; segment++) {
            uint32_t touched = 2 + 3 * segment;
            assert_string_equal(code_index_blob(index, touched)->name, "touched");
            assert_int_equal(code_index_fetch(index, touched, &details), 0);
            assert_int_equal(code_index_fetch(index, 0, &details), 0);
            assert_int_equal(details.entry_count, 3);
            int next = make_segment(segment + 1);
            snprintf(path, sizeof path, "/proc/self/fd/%d", next);
            assert_int_equal(code_index_continue(index, path, false), 1);
            close(next);
            if (segment > 0) { /* of the last one samples may wait */
                code_index_let_go(index, end_of(segment), keep);
            }
            assert_in_range(open_files() - before, 1, 4);
        }
        for (uint32_t segment = 0; segment + 1 < SEGMENTS; segment++) {
            for (uint32_t i = 0; i < 3; i++) {
                uint32_t blob = 1 + 3 * segment + i;
                bool is_there = keep && i == 1;
                assert_int_equal(code_index_fetch(index, blob, &details), 0);
                assert_int_equal(details.entry_count, is_there ? 3 : 0);
                assert_int_equal(details.bytes != NULL, is_there);
                assert_int_equal(details.trailer.range_count, is_there ? 2 : 0);
                const struct code_stay *stay = code_index_at(
                    index, code_index_blob(index, blob)->address, end_of(segment), NULL);
                assert_non_null(stay);
                assert_int_equal(stay->blob, blob);
            }
        }
        assert_int_equal(code_index_fetch(index, 0, &details), 0);
        assert_int_equal(details.entry_count, 3);
        assert_non_null(details.bytes);
        if (!keep) {
            /* What is of segments that were let go is forgotten, all else found as before. */
            uint32_t last = 3 + 2 * SEGMENTS;
            assert_false(code_index_outgrown(index)); /* it is not worth while */
            assert_int_equal(code_index_forget(index), 0);
            assert_in_range(code_index_blob_count(index), 4, 10);
            assert_null(code_index_at(index, 0x100 * 3, end_of(0), NULL));
            const struct code_stay *stay = code_index_at(index, 0x1000, end_of(SEGMENTS), NULL);
            assert_non_null(stay);
            assert_int_equal(stay->blob, 0);
            assert_int_equal(stay->from, BUILDER_START + 10);
            stay = code_index_at(index, UINT64_C(0x100) * last, end_of(SEGMENTS), NULL);
            assert_non_null(stay);
            assert_string_equal(code_index_blob(index, stay->blob)->name, "not touched");
            assert_int_equal(code_index_fetch(index, stay->blob, &details), 0);
            assert_int_equal(details.trailer.range_count, 2);
            assert_int_equal(code_index_fetch(index, 0, &details), 0);
        }
        assert_int_equal(details.entry_count, 3);
        /* What follows is read where it stands. */
        assert_int_equal(code_index_update(index, true), 0);
        assert_null(code_index_warning(index));
        code_details_free(&details);
        code_index_close(index);
        assert_int_equal(open_files(), before);
    }
}

/* Code of classes that come and go while one lives: what is kept of it is bounded. */
TEST(what_is_gone_is_forgotten_in_time)
{
    enum { FORGOTTEN_SEGMENTS = 100, EACH = 100, MOST = 2000 };
    OWN(code_index_close) struct code_index *index = NULL;
    uint32_t most = 0;
    uint64_t id = 10;
    for (uint32_t segment = 0; segment < FORGOTTEN_SEGMENTS; segment++) {
        OWN_DUMP_BUILDER dump = dump_start();
        dump_load(&dump, BUILDER_START + 10, 0x1000, 16, 2, "lives");
        for (uint64_t i = 0; i < EACH; i++, id++) {
            dump_load(&dump, end_of(segment) - 5000, 0x100000 + 0x100 * id, 16, id, "gone");
        }
        dump_close(&dump, end_of(segment));
        char path[64];
        int fd = dump_fd(&dump);
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (index) {
            assert_int_equal(code_index_continue(index, path, false), 1);
            code_index_let_go(index, end_of(segment), false);
        } else {
            assert_int_equal(code_index_follow(path, -1, &index), 0);
        }
        close(fd);
        uint32_t count = code_index_blob_count(index);
        most = count > most ? count : most;
        if (code_index_outgrown(index)) {
            assert_int_equal(code_index_forget(index), 0);
            assert_in_range(code_index_blob_count(index), 1 + EACH, 1 + 2 * EACH);
        }
        const struct code_stay *stay = code_index_at(index, 0x1000, end_of(segment), NULL);
        assert_non_null(stay);
        assert_string_equal(code_index_blob(index, stay->blob)->name, "lives");
    }
    assert_in_range(most, 1000, MOST);
}

TEST_MAIN(NULL, NULL)
