/* What is read of HotSpot's structures, with structures that the test makes, true and false. */
#include "agent/hotspot/hotspot_fields.h"

#include "tests/random.h"
#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Memory ---- */

static void what_is_there_is_read(void **state)
{
    (void)state;
    enum { COUNT = 3000, BYTES = 400000 };
    struct memory_reader *reader = memory_reader_new();
    static uint8_t from[BYTES];
    static uint8_t to[BYTES];
    static struct memory_piece pieces[COUNT];
    uint64_t random = 1;
    for (size_t i = 0; i < BYTES; i++) {
        from[i] = (uint8_t)random_below(&random, 256);
    }
    assert_true(memory_read(reader, from, to, BYTES)); /* more than a pipe takes */
    assert_memory_equal(from, to, BYTES);
    memset(to, 0, BYTES);
    size_t at = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = random_below(&random, 256);
        size = size < 30 ? 0 : size - 30;
        size = size > BYTES - at ? BYTES - at : size;
        pieces[i] = (struct memory_piece){from + at, to + at, size};
        at += size;
    }
    assert_true(memory_read_pieces(reader, pieces, COUNT));
    assert_memory_equal(from, to, at);
    assert_true(memory_read_pieces(reader, pieces, 0));
    memory_reader_free(reader);
}

static void what_is_not_there_is_no_crash(void **state)
{
    (void)state;
    struct memory_reader *reader = memory_reader_new();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    memset(pages, 'x', 3 * page);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0); /* mincore finds it in order */
    char to[64] = {0};
    assert_true(memory_read(reader, pages + page - 8, to, 8));
    assert_false(memory_read(reader, pages + page - 8, to, 9));
    assert_false(memory_read(reader, pages + page, to, 1));
    assert_false(memory_read(reader, NULL, to, 1));
    assert_false(memory_read(reader, (void *)(uintptr_t)-1, to, 8)); // NOLINT: no address
    assert_false(memory_read(reader, (void *)(uintptr_t)0x4000000000000000, to, 8)); // NOLINT
    const struct memory_piece pieces[] = {
        {pages, to, 8}, {pages + page, to + 8, 8}, {pages + 2 * page, to + 16, 8}};
    assert_false(memory_read_pieces(reader, pieces, 3));
    /* And what was on its way then does not come in place of something else. */
    memset(to, 0, sizeof to);
    pages[2 * page] = 'y';
    assert_true(memory_read(reader, pages + 2 * page, to, 2));
    assert_memory_equal(to, "yx", 3);
    munmap(pages, 3 * page);
    assert_false(memory_read(reader, pages, to, 1));
    memory_reader_free(reader);
}

static void nothing_is_left_open(void **state)
{
    (void)state;
    int before = dup(0);
    close(before);
    for (int i = 0; i < 100; i++) {
        memory_reader_free(memory_reader_new());
    }
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    memory_reader_free(NULL);
}

/* ---- Scopes ---- */

/* An nmethod with two places, one of them in an inlined method, and JVMTI's record of it. */
struct fake_code {
    struct hotspot hotspot;
    struct {
        int32_t pc, scope, object, flags;
    } pcs[4];
    uint8_t scopes[32];
    const void *metadata[3];
    char bytes[64];
    struct hotspot_nmethod nmethod;
    PCStackInfo info[2];
    jmethodID ids[2][2];
    jint bcis[2][2];
    jvmtiCompiledMethodLoadInlineRecord record;
};

static const char method_a, method_b, klass;

static struct fake_code *new_code(int major)
{
    struct fake_code *code = calloc(1, sizeof *code);
    assert_non_null(code);
    code->hotspot.major = major;
    code->hotspot.memory = memory_reader_new();
    code->hotspot.pc = sizeof code->pcs[0];
    code->hotspot.places[PC_OFFSET] = (struct place){.known = true, .is_signed = true, .width = 4};
    code->hotspot.places[PC_SCOPE] =
        (struct place){.known = true, .is_signed = true, .width = 4, .offset = 4};
    code->pcs[0].pc = -1; /* as HotSpot puts one before all, without a scope */
    code->pcs[1].pc = 16;
    code->pcs[1].scope = 1;
    code->pcs[2].pc = 40;
    code->pcs[2].scope = 4;
    code->pcs[3].pc = 64;
    /* From JDK 20 on every byte is one more. The bcis are 5, and 300 inside of 5's caller at 7. */
    const uint8_t x = major >= 20;
    const uint8_t scopes[] = {0,
                              (uint8_t)(0 + x),
                              (uint8_t)(1 + x),
                              (uint8_t)(6 + x),
                              (uint8_t)(9 + x),
                              (uint8_t)(3 + x),
                              (uint8_t)(192 + 45 + x), /* 301 = 237 + (1 << 6) */
                              (uint8_t)(1 + x),
                              0xff,
                              (uint8_t)(0 + x),
                              (uint8_t)(1 + x),
                              (uint8_t)(8 + x)};
    memcpy(code->scopes, scopes, sizeof scopes);
    code->metadata[0] = &method_a;
    code->metadata[1] = &klass;
    code->metadata[2] = &method_b;
    code->nmethod = (struct hotspot_nmethod){
        .method = &method_a,
        .data = (const char *)code->pcs,
        .data_size = sizeof code->pcs + sizeof code->scopes,
        .pcs_at = 0,
        .scopes_at = sizeof code->pcs,
        .metadata = (const char *)code->metadata,
        .metadata_count = 3,
    };
    code->bcis[0][0] = 5;
    code->bcis[1][0] = 300;
    code->bcis[1][1] = 7;
    for (int i = 0; i < 2; i++) {
        code->info[i] = (PCStackInfo){.pc = code->bytes + (i ? 40 : 16),
                                      .numstackframes = 1 + i,
                                      .methods = code->ids[i],
                                      .bcis = code->bcis[i]};
    }
    code->record.numpcs = 2;
    code->record.pcinfo = code->info;
    return code;
}

static bool read_scopes(struct fake_code *code, struct hotspot_scopes *scopes)
{
    return hotspot_scopes_read(&code->hotspot, NULL, &code->nmethod, code->bytes, &code->record,
                               scopes);
}

static void free_code(struct fake_code *code)
{
    memory_reader_free(code->hotspot.memory);
    free(code);
}

static void scopes_name_each_frame(void **state)
{
    (void)state;
    for (int major = 17; major <= 21; major += 4) {
        struct fake_code *code = new_code(major);
        struct hotspot_scopes scopes = {0};
        assert_true(read_scopes(code, &scopes));
        assert_int_equal(scopes.count, 3);
        assert_ptr_equal(scopes.methods[0], &method_a);
        assert_ptr_equal(scopes.methods[1], &method_b);
        assert_ptr_equal(scopes.methods[2], &method_a);
        assert_true(read_scopes(code, &scopes));
        hotspot_scopes_free(&scopes);
        free_code(code);
    }
}

/* A place inside of a method that was inlined, and one behind the call in its caller. */
static struct fake_code *new_neighbours(void)
{
    struct fake_code *code = new_code(21);
    code->pcs[1].scope = 4;
    code->pcs[2].scope = 9;
    code->bcis[0][0] = 300;
    code->bcis[0][1] = 7;
    code->bcis[1][0] = 7;
    code->info[0].numstackframes = 2;
    code->info[1].numstackframes = 1;
    return code;
}

static void neighbours_share_their_outer_scopes(void **state)
{
    (void)state;
    struct hotspot_scopes scopes = {0};
    struct fake_code *code = new_neighbours();
    assert_true(read_scopes(code, &scopes));
    assert_int_equal(scopes.count, 3);
    assert_ptr_equal(scopes.methods[0], &method_b);
    assert_ptr_equal(scopes.methods[1], &method_a);
    assert_ptr_equal(scopes.methods[2], &method_a);
    free_code(code);
    code = new_neighbours();
    code->bcis[1][0] = 8; /* the record does not bear out what is taken over, either */
    assert_false(read_scopes(code, &scopes));
    free_code(code);
    hotspot_scopes_free(&scopes);
}

/* What the JVM's record does not bear out is not believed, and after the first time nothing is. */
static void scopes_that_contradict_the_record(void **state)
{
    (void)state;
    struct hotspot_scopes scopes = {0};
    for (int change = 0; change < 14; change++) {
        struct fake_code *code = new_code(21);
        switch (change) {
        case 0:
            code->bcis[1][0] = 299;
            break;
        case 1:
            code->info[1].pc = code->bytes + 41;
            break;
        case 2:
            code->info[0].numstackframes = 2;
            break;
        case 3:
            code->record.pcinfo = &code->info[1];
            code->record.numpcs = 1;
            break;
        case 4:
            code->nmethod.method = &method_b;
            break;
        case 5:
            code->nmethod.metadata_count = 2;
            break;
        case 6:
            code->nmethod.data = (const char *)(uintptr_t)4096;
            break; // NOLINT: none
        case 7:
            code->nmethod.metadata = (const char *)(uintptr_t)4096;
            break; // NOLINT: none
        case 8:
            code->pcs[2].scope = 1 << 20;
            break;
        case 9:
            code->pcs[2].scope = -5;
            break;
        case 10:
            code->hotspot.places[PC_SCOPE].offset = 8;
            break;
        case 11:
            code->hotspot.places[PC_SCOPE].offset = 16;
            break;
        case 12:
            code->nmethod.data_size = SIZE_MAX / 2;
            break;
        default:
            code->hotspot.major = 17;
            break;
        }
        assert_false(read_scopes(code, &scopes));
        free_code(code);
        code = new_code(21);
        atomic_store(&code->hotspot.scopes, TRUST_BROKEN);
        assert_false(read_scopes(code, &scopes));
        free_code(code);
    }
    hotspot_scopes_free(&scopes);
}

/* Code without inlined methods is its own method's, wherever that one's scopes are. */
static void nothing_inlined_needs_no_scopes(void **state)
{
    (void)state;
    struct hotspot_scopes scopes = {0};
    struct fake_code *code = new_code(21);
    code->record.numpcs = 1;
    code->nmethod.data = (const char *)(uintptr_t)4096; // NOLINT: none
    assert_true(read_scopes(code, &scopes));
    assert_int_equal(scopes.count, 1);
    assert_ptr_equal(scopes.methods[0], &method_a);
    assert_int_equal(atomic_load(&code->hotspot.scopes), TRUST_UNPROVEN);
    free_code(code);
    hotspot_scopes_free(&scopes);
}

/* Pages are asked for once for a callback, or a replay; what cannot be read is asked for again. */
static void what_is_there_is_read_in_place(void **state)
{
    (void)state;
    const size_t page = 4096;
    struct hotspot hotspot = {.memory = memory_reader_new()};
    struct hotspot_nearby *nearby = hotspot_nearby_new();
    char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char to[100];
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + 2 * page, page, PROT_NONE), 0);
    memset(memory, 1, 2 * page);
    /* Before the layout is believed: copies, by way of the kernel. */
    hotspot_nearby_begin(&hotspot, nearby, 7, NULL, 0);
    assert_false(hotspot_nearby_in_place(nearby));
    assert_null(hotspot_view(&hotspot, nearby, memory, 1));
    assert_true(hotspot_read_near(&hotspot, nearby, memory + page - 50, to, sizeof(to)));
    assert_true(to[0] == 1 && to[99] == 1);
    assert_false(hotspot_read_near(&hotspot, nearby, memory + 2 * page - 50, to, sizeof(to)));
    atomic_store(&hotspot.nmethods, TRUST_PROVEN);
    for (uint64_t replay = 0; replay < 10; replay += 9) {
        hotspot_nearby_begin(&hotspot, nearby, replay, NULL, 0);
        assert_true(hotspot_nearby_in_place(nearby));
        assert_ptr_equal(hotspot_view(&hotspot, nearby, memory + page - 50, 100),
                         memory + page - 50);
        assert_ptr_equal(hotspot_view(&hotspot, nearby, memory + page, page), memory + page);
        assert_non_null(hotspot_view(&hotspot, nearby, memory + page, 0));
        assert_true(hotspot_read_near(&hotspot, nearby, memory + page - 50, to, sizeof(to)));
        assert_true(to[0] == 1 && to[99] == 1);
        assert_null(hotspot_view(&hotspot, nearby, memory + 2 * page - 50, 51));
        assert_null(hotspot_view(&hotspot, nearby, memory + 2 * page, 1));
        assert_false(hotspot_read_near(&hotspot, nearby, memory + 2 * page - 50, to, 51));
        assert_null(hotspot_view(&hotspot, nearby, NULL, 1));
        assert_null(hotspot_view(&hotspot, nearby, NULL, 0));
        assert_null(hotspot_view(&hotspot, nearby, (void *)(uintptr_t)page, 1)); // NOLINT
        assert_null(hotspot_view(&hotspot, nearby, (void *)(uintptr_t)-8, 9));   // NOLINT
        assert_null(
            hotspot_view(&hotspot, nearby, (void *)(uintptr_t)0x4000000000000000, 8)); // NOLINT
        /* What came meanwhile is there; what went is, to a new callback, gone. */
        assert_int_equal(mprotect(memory + 2 * page, page, PROT_READ), 0);
        assert_non_null(hotspot_view(&hotspot, nearby, memory + 2 * page, 1));
        assert_int_equal(mprotect(memory + 2 * page, page, PROT_NONE), 0);
        hotspot_nearby_begin(&hotspot, nearby, replay ? replay + 1 : 0, NULL, 0);
        assert_null(hotspot_view(&hotspot, nearby, memory + 2 * page, 1));
    }
    /* The pages that the code is on are not asked for: so says who tells of it. */
    hotspot_nearby_begin(&hotspot, nearby, 0, memory + 2 * page, 1);
    assert_non_null(hotspot_view(&hotspot, nearby, memory + 2 * page, 1));
    /* Without any, all is copied. */
    assert_null(hotspot_view(&hotspot, NULL, memory, 1));
    assert_true(hotspot_read_near(&hotspot, NULL, memory, to, 1));
    munmap(memory, 3 * page);
    hotspot_nearby_free(nearby);
    memory_reader_free(hotspot.memory);
}

static void a_page_is_there_or_not(void **state)
{
    (void)state;
    const size_t page = 4096;
    struct memory_reader *reader = memory_reader_new();
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
    sigset_t before;
    sigset_t after;
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
    errno = 0;
    assert_true(memory_is_there(reader, memory));
    assert_true(memory_is_there(reader, memory + page - 1));
    assert_false(memory_is_there(reader, memory + page));
    assert_false(memory_is_there(reader, NULL));
    assert_false(memory_is_there(reader, (void *)(uintptr_t)-8));                 // NOLINT
    assert_false(memory_is_there(reader, (void *)(uintptr_t)0x4000000000000000)); // NOLINT
    assert_int_equal(errno, 0);
    memset(memory, 255, page); /* as a mask: every signal */
    assert_true(memory_is_there(reader, memory));
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    assert_memory_equal(&before, &after, 8);
    munmap(memory, 2 * page);
    assert_false(memory_is_there(reader, memory));
    memory_reader_free(reader);
}

static void any_scopes_are_read_without_harm(void **state)
{
    (void)state;
    struct hotspot_scopes scopes = {0};
    struct fake_code *code = new_code(21);
    const struct fake_code good = *code;
    uint64_t random = 7;
    for (int i = 0; i < 100000; i++) {
        memcpy(code->pcs, good.pcs, sizeof good.pcs);
        memcpy(code->scopes, good.scopes, sizeof good.scopes);
        atomic_store(&code->hotspot.scopes, TRUST_PROVEN);
        for (uint32_t n = random_below(&random, 4); n > 0; n--) {
            ((uint8_t *)code->pcs)[random_below(&random, sizeof code->pcs)] =
                (uint8_t)random_below(&random, 256);
            code->scopes[random_below(&random, sizeof code->scopes)] =
                (uint8_t)random_below(&random, 256);
        }
        (void)read_scopes(code, &scopes);
    }
    hotspot_scopes_free(&scopes);
    free_code(code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_is_read),
        cmocka_unit_test(what_is_not_there_is_no_crash),
        cmocka_unit_test(nothing_is_left_open),
        cmocka_unit_test(scopes_name_each_frame),
        cmocka_unit_test(neighbours_share_their_outer_scopes),
        cmocka_unit_test(scopes_that_contradict_the_record),
        cmocka_unit_test(nothing_inlined_needs_no_scopes),
        cmocka_unit_test(what_is_there_is_read_in_place),
        cmocka_unit_test(a_page_is_there_or_not),
        cmocka_unit_test(any_scopes_are_read_without_harm),
    };
    message_set_level(0); /* what is false is to be told of once each */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
