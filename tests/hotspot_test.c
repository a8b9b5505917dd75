/* Reads HotSpot's structures, right and wrong ones. */
#include "test.h"

#include "agent/hotspot/hotspot_workspace.h"
#include "agent/methods/inline_record.h"

#include "tests/random.h"
#include "writer/message.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t at(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

/* ---- Memory ---- */

TEST(what_is_there_is_read)
{
    enum { COUNT = 3000, BYTES = 400000 };
    struct memory *reader = memory_own_new();
    static uint8_t from[BYTES];
    static uint8_t to[BYTES];
    static struct memory_piece pieces[COUNT];
    uint64_t random = 1;
    for (size_t i = 0; i < BYTES; i++) {
        from[i] = (uint8_t)random_below(&random, 256);
    }
    assert_true(memory_read(reader, at(from), to, BYTES)); /* more than a pipe takes */
    assert_memory_equal(from, to, BYTES);
    memset(to, 0, BYTES);
    size_t offset = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = random_below(&random, 256);
        size = size < 30 ? 0 : size - 30;
        size = size > BYTES - offset ? BYTES - offset : size;
        pieces[i] = (struct memory_piece){at(from + offset), to + offset, size};
        offset += size;
    }
    assert_true(memory_read_pieces(reader, pieces, COUNT));
    assert_memory_equal(from, to, offset);
    assert_true(memory_read_pieces(reader, pieces, 0));
    memory_free(reader);
}

/* Near ones are read together, with what lies between. */
TEST(pieces_may_stand_in_any_order)
{
    enum { COUNT = 2000, BYTES = 60000, SIZE_MAX_HERE = 64 };
    struct memory *reader = memory_own_new();
    static uint8_t from[BYTES];
    static uint8_t to[COUNT][SIZE_MAX_HERE + 1];
    static struct memory_piece pieces[COUNT];
    uint64_t random = 7;
    for (size_t i = 0; i < BYTES; i++) {
        from[i] = (uint8_t)random_below(&random, 256);
    }
    size_t offset = 0;
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = random_below(&random, SIZE_MAX_HERE + 1);
        offset = random_below(&random, 10) == 0 ? random_below(&random, BYTES)
                                                : offset + random_below(&random, 400) - 20;
        offset = offset > BYTES - size ? i : offset;
        memset(to[i], 'x', sizeof to[i]);
        pieces[i] = (struct memory_piece){at(from + offset), to[i], size};
        offset += size;
    }
    assert_true(memory_read_pieces(reader, pieces, COUNT));
    for (size_t i = 0; i < COUNT; i++) {
        assert_memory_equal(to[i], (const void *)(uintptr_t)pieces[i].from, pieces[i].size);
        assert_int_equal(to[i][pieces[i].size], 'x');
    }
    memory_free(reader);
}

/* Of what lasts nothing goes through the pipe, which gives what lies beside it; each comes to its
 * place, in whatever order, and a page of it may be missing. */
TEST(what_lasts_is_read_where_it_is)
{
    enum { PAGES = 6, LACKING = 2, FROM = 1, COUNT = 600, EACH = 40 };
    struct memory *reader = memory_own_new();
    char *pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    static char to[COUNT][EACH];
    static struct memory_piece pieces[COUNT];
    uint64_t random = 3;
    for (size_t i = 0; i < (size_t)PAGES * PAGE; i++) {
        pages[i] = (char)random_below(&random, 256);
    }
    /* Neither a range that is none nor a second one is taken. */
    memory_lasts(reader, at(pages) + 1, at(pages) + PAGE);
    memory_lasts(reader, at(pages) + PAGE, at(pages));
    memory_lasts(reader, at(pages) + FROM * PAGE, at(pages) + (PAGES - 1) * PAGE - 8);
    memory_lasts(reader, at(pages), UINT64_MAX - PAGE + 1);
    for (size_t i = 0; i < COUNT; i++) {
        size_t offset = random_below(&random, PAGES * PAGE - EACH);
        pieces[i] = (struct memory_piece){at(pages) + offset, to[i], random_below(&random, EACH)};
    }
    assert_true(memory_read_pieces(reader, pieces, COUNT));
    for (size_t i = 0; i < COUNT; i++) {
        assert_memory_equal(to[i], pages + (pieces[i].from - at(pages)), pieces[i].size);
    }
    memory_free(reader);
    reader = memory_own_new();
    memory_lasts(reader, at(pages) + FROM * PAGE, at(pages) + PAGES * PAGE);
    assert_int_equal(mprotect(pages + LACKING * PAGE, PAGE, PROT_NONE), 0);
    assert_true(memory_read(reader, at(pages) + LACKING * PAGE - 8, to[0], 8));
    assert_false(memory_read(reader, at(pages) + LACKING * PAGE - 8, to[0], 9));
    assert_false(memory_read(reader, at(pages) + LACKING * PAGE, to[0], 1));
    assert_true(memory_read(reader, at(pages) + (LACKING + 1) * PAGE, to[0], EACH));
    assert_memory_equal(to[0], pages + (LACKING + 1) * PAGE, EACH);
    munmap(pages, (size_t)PAGES * PAGE);
    memory_free(reader);
}

TEST(what_is_not_there_is_no_crash)
{
    struct memory *reader = memory_own_new();
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    memset(pages, 'x', 3 * page);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0); /* mincore finds it in order */
    char to[64] = {0};
    assert_true(memory_read(reader, at(pages) + page - 8, to, 8));
    assert_false(memory_read(reader, at(pages) + page - 8, to, 9));
    assert_false(memory_read(reader, at(pages) + page, to, 1));
    assert_false(memory_read(reader, 0, to, 1));
    assert_false(memory_read(reader, UINT64_MAX, to, 8));
    assert_false(memory_read(reader, 0x4000000000000000, to, 8));
    const struct memory_piece pieces[] = {
        {at(pages), to, 8}, {at(pages + page), to + 8, 8}, {at(pages + 2 * page), to + 16, 8}};
    assert_false(memory_read_pieces(reader, pieces, 3));
    const struct memory_piece near[] = {{at(pages) + page - 16, to, 8},
                                        {at(pages) + page + 8, to + 8, 8}};
    assert_false(memory_read_pieces(reader, near, 2));
    assert_memory_equal(to, "xxxxxxxx", 8);
    /* And what was on its way then does not come in place of something else. */
    memset(to, 0, sizeof to);
    pages[2 * page] = 'y';
    assert_true(memory_read(reader, at(pages) + 2 * page, to, 2));
    assert_memory_equal(to, "yx", 3);
    munmap(pages, 3 * page);
    assert_false(memory_read(reader, at(pages), to, 1));
    memory_free(reader);
}

TEST(nothing_is_left_open)
{
    int before = dup(0);
    close(before);
    for (int i = 0; i < 100; i++) {
        memory_free(memory_own_new());
    }
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    memory_free(NULL);
}

/* ---- Scopes ---- */

/* An nmethod with two places, one of them in an inlined method, and JVMTI's record of it. */
struct fake_code {
    struct hotspot hotspot;
    struct {
        int32_t pc, scope, object, flags;
    } pcs[4];
    uint8_t scopes[32];
    uint64_t metadata[3];
    char bytes[64];
    struct hotspot_nmethod nmethod;
    PCStackInfo info[2];
    jmethodID ids[2][2];
    jint bcis[2][2];
    jvmtiCompiledMethodLoadInlineRecord record;
    /* What has been read. */
    uint32_t range_count;
    const struct method *in[2];
    uint32_t ends[2];
};

static const char method_a, method_b, klass;

static struct fake_code *new_code(int major)
{
    struct fake_code *code = calloc(1, sizeof *code);
    assert_non_null(code);
    code->hotspot.major = major;
    code->hotspot.memory = memory_own_new();
    code->hotspot.layout.pc = sizeof code->pcs[0];
    code->hotspot.layout.places[PC_OFFSET] =
        (struct place){.known = true, .is_signed = true, .width = 4};
    code->hotspot.layout.places[PC_SCOPE] =
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
    code->metadata[0] = at(&method_a);
    code->metadata[1] = at(&klass);
    code->metadata[2] = at(&method_b);
    code->nmethod = (struct hotspot_nmethod){
        .method = at(&method_a),
        .data = at(code->pcs),
        .data_size = sizeof code->pcs + sizeof code->scopes,
        .pcs_at = 0,
        .scopes_at = sizeof code->pcs,
        .metadata = at(code->metadata),
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

static struct java_method known_a, known_b;

static const struct java_method *resolve(void *unused, method_key key, const void *id)
{
    (void)unused;
    (void)id;
    return key == at(&method_b) ? &known_b : NULL;
}

/* Into an inline tree; the compiled method is A. */
static bool read_scopes(struct fake_code *code, struct inline_scopes *scopes)
{
    static char the_id;
    const struct inline_code inlined = {.address = code->bytes,
                                        .size = sizeof code->bytes,
                                        .method = (jmethodID)&the_id,
                                        .record = &code->record,
                                        .nmethod = &code->nmethod};
    struct inline_builder *builder = inline_builder_new();
    assert_non_null(builder);
    inline_builder_begin(builder, INLINE_FULL, inlined.size, at(&the_id), &known_a, resolve, NULL);
    bool read = inline_record_add_scopes(&code->hotspot, NULL, &inlined, scopes, builder);
    struct code built = {.size = inlined.size};
    assert_int_equal(inline_builder_finish(builder, &built), 0);
    code->range_count = built.range_count;
    for (uint32_t i = 0; i < built.range_count && i < 2; i++) {
        code->in[i] = built.nodes[built.ranges[i].node].method;
        code->ends[i] = i + 1 < built.range_count ? built.ranges[i + 1].offset : built.ranges_end;
    }
    inline_builder_free(builder);
    return read;
}

static void assert_in(const struct fake_code *code, uint32_t i, const struct java_method *method,
                      uint32_t end)
{
    assert_true(i < code->range_count);
    assert_ptr_equal(code->in[i], &method->method);
    assert_int_equal(code->ends[i], end);
}

static void free_code(struct fake_code *code)
{
    memory_free(code->hotspot.memory);
    free(code);
}

TEST(scopes_name_each_frame)
{
    for (int major = 17; major <= 21; major += 4) {
        struct fake_code *code = new_code(major);
        struct inline_scopes scopes;
        assert_true(inline_scopes_init(&scopes));
        assert_true(read_scopes(code, &scopes));
        assert_int_equal(code->range_count, 2);
        assert_in(code, 0, &known_a, 16);
        assert_in(code, 1, &known_b, 40);
        /* One that agrees proves nothing yet; one that does not breaks nothing any more. */
        code->bcis[1][0]++;
        assert_false(read_scopes(code, &scopes));
        code->bcis[1][0]--;
        for (int more = 1; more < 16; more++) {
            assert_int_equal(atomic_load(&code->hotspot.scopes), TRUST_UNPROVEN);
            assert_true(read_scopes(code, &scopes));
        }
        assert_int_equal(atomic_load(&code->hotspot.scopes), TRUST_PROVEN);
        code->info[0].bcis = code->info[1].bcis = NULL; /* they have been seen to be the scopes' */
        assert_true(read_scopes(code, &scopes));
        assert_int_equal(code->range_count, 2);
        assert_in(code, 1, &known_b, 40);
        inline_scopes_free(&scopes);
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

TEST(neighbours_share_their_outer_scopes)
{
    struct inline_scopes scopes;
    assert_true(inline_scopes_init(&scopes));
    struct fake_code *code = new_neighbours();
    assert_true(read_scopes(code, &scopes));
    assert_int_equal(code->range_count, 2);
    assert_in(code, 0, &known_b, 16);
    assert_in(code, 1, &known_a, 40);
    free_code(code);
    for (int change = 0; change < 2; change++) { /* nor is a known scope believed for nothing */
        code = new_neighbours();
        if (change == 0) {
            code->bcis[1][0] = 8;
        } else {
            code->info[1].numstackframes = 2;
        }
        assert_false(read_scopes(code, &scopes));
        free_code(code);
    }
    inline_scopes_free(&scopes);
}

/* What the JVM's record does not bear out is not believed, and after the first time nothing is. */
TEST(scopes_that_contradict_the_record)
{
    struct inline_scopes scopes;
    assert_true(inline_scopes_init(&scopes));
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
            code->nmethod.method = at(&method_b);
            break;
        case 5:
            code->nmethod.metadata_count = 2;
            break;
        case 6:
            code->nmethod.data = 4096;
            break;
        case 7:
            code->nmethod.metadata = 4096;
            break;
        case 8:
            code->pcs[2].scope = 1 << 20;
            break;
        case 9:
            code->pcs[2].scope = -5;
            break;
        case 10:
            code->hotspot.layout.places[PC_SCOPE].offset = 8;
            break;
        case 11:
            code->hotspot.layout.places[PC_SCOPE].offset = 16;
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
    inline_scopes_free(&scopes);
}

/* Code without inlined methods is its own method's, wherever that one's scopes are. */
TEST(nothing_inlined_needs_no_scopes)
{
    struct inline_scopes scopes;
    assert_true(inline_scopes_init(&scopes));
    struct fake_code *code = new_code(21);
    code->record.numpcs = 1;
    code->nmethod.data = 4096;
    assert_true(read_scopes(code, &scopes));
    assert_int_equal(code->range_count, 1);
    assert_in(code, 0, &known_a, 16);
    assert_int_equal(atomic_load(&code->hotspot.scopes), TRUST_UNPROVEN);
    free_code(code);
    inline_scopes_free(&scopes);
}

/* Pages are asked for once for a callback, or a replay; what cannot be read is asked for again. */
TEST(what_is_there_is_read_in_place)
{
    const size_t page = 4096;
    struct hotspot hotspot = {.memory = memory_own_new()};
    struct hotspot_nearby *nearby = hotspot_nearby_new();
    char *memory = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char to[100];
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + 2 * page, page, PROT_NONE), 0);
    memset(memory, 1, 2 * page);
    /* Before the layout is believed: copies, by way of the kernel. */
    hotspot_nearby_begin(&hotspot, nearby, 7, 0, 0);
    assert_false(hotspot_nearby_in_place(nearby));
    assert_null(hotspot_view(&hotspot, nearby, at(memory), 1));
    assert_true(hotspot_read_near(&hotspot, nearby, at(memory) + page - 50, to, sizeof(to)));
    assert_true(to[0] == 1 && to[99] == 1);
    assert_false(hotspot_read_near(&hotspot, nearby, at(memory) + 2 * page - 50, to, sizeof(to)));
    atomic_store(&hotspot.nmethods, TRUST_PROVEN);
    for (uint64_t replay = 0; replay < 10; replay += 9) {
        hotspot_nearby_begin(&hotspot, nearby, replay, 0, 0);
        assert_true(hotspot_nearby_in_place(nearby));
        assert_ptr_equal(hotspot_view(&hotspot, nearby, at(memory) + page - 50, 100),
                         memory + page - 50);
        assert_ptr_equal(hotspot_view(&hotspot, nearby, at(memory) + page, page), memory + page);
        assert_non_null(hotspot_view(&hotspot, nearby, at(memory) + page, 0));
        assert_true(hotspot_read_near(&hotspot, nearby, at(memory) + page - 50, to, sizeof(to)));
        assert_true(to[0] == 1 && to[99] == 1);
        assert_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page - 50, 51));
        assert_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
        assert_false(hotspot_read_near(&hotspot, nearby, at(memory) + 2 * page - 50, to, 51));
        assert_null(hotspot_view(&hotspot, nearby, 0, 1));
        assert_null(hotspot_view(&hotspot, nearby, 0, 0));
        assert_null(hotspot_view(&hotspot, nearby, page, 1));
        assert_null(hotspot_view(&hotspot, nearby, (uint64_t)-8, 9));
        assert_null(hotspot_view(&hotspot, nearby, 0x4000000000000000, 8));
        /* What came meanwhile is there; what went is, to a new callback, gone. */
        assert_int_equal(mprotect(memory + 2 * page, page, PROT_READ), 0);
        assert_non_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
        assert_int_equal(mprotect(memory + 2 * page, page, PROT_NONE), 0);
        assert_non_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
        hotspot_nearby_begin(&hotspot, nearby, replay ? replay + 1 : 0, 0, 0);
        assert_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
    }
    /* Nor does it know what one long ago did that went by the same number. */
    assert_int_equal(mprotect(memory + 2 * page, page, PROT_READ), 0);
    nearby->asker = 0;
    hotspot_nearby_begin(&hotspot, nearby, 0, 0, 0);
    assert_true(nearby->asker != 0);
    assert_non_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
    assert_int_equal(mprotect(memory + 2 * page, page, PROT_NONE), 0);
    nearby->asker = 0 - nearby->asker;
    hotspot_nearby_begin(&hotspot, nearby, 0, 0, 0);
    assert_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
    /* The pages that the code is on are not asked for: so says who tells of it. */
    hotspot_nearby_begin(&hotspot, nearby, 0, at(memory) + 2 * page, 1);
    assert_non_null(hotspot_view(&hotspot, nearby, at(memory) + 2 * page, 1));
    /* Without any, all is copied. */
    assert_null(hotspot_view(&hotspot, NULL, at(memory), 1));
    assert_true(hotspot_read_near(&hotspot, NULL, at(memory), to, 1));
    munmap(memory, 3 * page);
    hotspot_nearby_free(nearby);
    memory_free(hotspot.memory);
}

TEST(a_page_is_there_or_not)
{
    const size_t page = 4096;
    struct memory *reader = memory_own_new();
    char *memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory + page, page, PROT_NONE), 0);
    sigset_t before;
    sigset_t after;
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &before), 0);
    errno = 0;
    assert_true(reader->is_there(reader, at(memory)));
    assert_true(reader->is_there(reader, at(memory + page - 1)));
    assert_false(reader->is_there(reader, at(memory + page)));
    assert_false(reader->is_there(reader, 0));
    assert_false(reader->is_there(reader, (uint64_t)-8));
    assert_false(reader->is_there(reader, 0x4000000000000000));
    assert_int_equal(errno, 0);
    memset(memory, 255, page); /* as a mask: every signal */
    assert_true(reader->is_there(reader, at(memory)));
    assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
    assert_memory_equal(&before, &after, 8);
    munmap(memory, 2 * page);
    assert_false(reader->is_there(reader, at(memory)));
    memory_free(reader);
}

/* ---- Another process's memory ---- */

/* A method of a JVM whose memory is not ours: addresses are AWAY, and nothing is mapped there. */
#define AWAY UINT64_C(0x100000000000)

struct away_method {
    uint64_t const_method;
    int32_t access;
};
struct away_constants {
    uint64_t pool;
    int32_t words;
    uint16_t code_size, name, signature, idnum, flags;
    uint8_t code[5], lines[9];
};
struct away_pool {
    uint64_t holder;
    int32_t length;
    uint64_t entries[4];
};
struct away_symbol {
    uint16_t length;
    char body[14];
};
struct away_place {
    int32_t pc, scope;
};
static struct {
    struct away_method method;
    struct away_constants constants;
    struct away_pool pool;
    struct away_symbol symbols[2];
    uint64_t metadata;
    struct away_place place;
    uint8_t scopes[16];
} away;

static uint64_t away_at(const void *in_it)
{
    return AWAY + (uint64_t)((const char *)in_it - (const char *)&away);
}

static bool read_away(struct memory *memory, const struct memory_piece *pieces, size_t count)
{
    (void)memory;
    for (size_t i = 0; i < count; i++) {
        uint64_t offset = pieces[i].from - AWAY;
        if (offset > sizeof away || pieces[i].size > sizeof away - offset) {
            return false;
        }
        memcpy(pieces[i].to, (const char *)&away + offset, pieces[i].size);
    }
    return true;
}

#define PLACE(member, type)                                                                        \
    {                                                                                              \
        .known = true, .width = sizeof(((type *)0)->member), .offset = offsetof(type, member)      \
    }

TEST(memory_that_is_not_ours_is_copied)
{
    struct memory memory = {.read = read_away};
    struct hotspot hotspot = {
        .memory = &memory,
        .major = 17,
        .nmethods = TRUST_PROVEN,
        .scopes = TRUST_PROVEN,
        .methods = TRUST_PROVEN,
        .layout = {.const_method = offsetof(struct away_constants, code),
                   .pool = offsetof(struct away_pool, entries),
                   .pc = sizeof away.place,
                   .has_lines = 4,
                   .places = {[METHOD_CONST] = PLACE(const_method, struct away_method),
                              [METHOD_ACCESS] = PLACE(access, struct away_method),
                              [CONST_POOL] = PLACE(pool, struct away_constants),
                              [CONST_SIZE] = PLACE(words, struct away_constants),
                              [CONST_CODE_SIZE] = PLACE(code_size, struct away_constants),
                              [CONST_NAME] = PLACE(name, struct away_constants),
                              [CONST_SIGNATURE] = PLACE(signature, struct away_constants),
                              [CONST_FLAGS] = PLACE(flags, struct away_constants),
                              [POOL_HOLDER] = PLACE(holder, struct away_pool),
                              [POOL_LENGTH] = PLACE(length, struct away_pool),
                              [SYMBOL_LENGTH] = PLACE(length, struct away_symbol),
                              [SYMBOL_BODY] = PLACE(body, struct away_symbol),
                              [PC_OFFSET] = PLACE(pc, struct away_place),
                              [PC_SCOPE] = PLACE(scope, struct away_place)}},
    };
    away.method.const_method = away_at(&away.constants);
    away.method.access = 0x100;
    away.constants.pool = away_at(&away.pool);
    away.constants.words = (int32_t)(sizeof away.constants / sizeof(uint64_t));
    away.constants.code_size = sizeof away.constants.code;
    away.constants.name = 1;
    away.constants.signature = 3;
    away.constants.flags = 4;
    away.constants.lines[0] = 2 << 3 | 7; /* bytecode 2, line 7 */
    away.pool.holder = away_at(&klass);
    away.pool.length = 4;
    away.pool.entries[1] = away_at(&away.symbols[0]);
    away.pool.entries[3] = away_at(&away.symbols[1]);
    away.symbols[0].length = 3;
    memcpy(away.symbols[0].body, "run!", 4);
    away.symbols[1].length = 3;
    memcpy(away.symbols[1].body, "()V!", 4);
    away.metadata = away_at(&away.method);
    away.place.pc = 16;
    away.place.scope = 1;
    memcpy(away.scopes, ((uint8_t[]){0, 0, 1, 6}), 4); /* no sender, method 1, bytecode 5 */
    const uint64_t method = away_at(&away.method);
    const struct hotspot_nmethod nmethod = {
        .method = method,
        .data = away_at(&away.place),
        .data_size = sizeof away.place + sizeof away.scopes,
        .scopes_at = sizeof away.place,
        .metadata = away_at(&away.metadata),
        .metadata_count = 1,
    };
    struct hotspot_nearby *nearby = hotspot_nearby_new();
    struct hotspot_methods methods = {0};
    struct hotspot_scopes scopes = {0};
    /* Whatever is believed of it, no address is a pointer. */
    hotspot_nearby_begin(&hotspot, nearby, 7, AWAY, sizeof away);
    assert_false(hotspot_nearby_in_place(nearby));
    assert_true(hotspot_one_method(&hotspot, nearby, method, &methods));
    assert_int_equal(methods.count, 1);
    assert_string_equal(methods.methods->name, "run");
    assert_string_equal(methods.methods->descriptor, "()V");
    assert_true(methods.methods->native);
    assert_int_equal(methods.methods->line_count, 1);
    assert_int_equal(methods.methods->lines[0].bci, 2);
    assert_int_equal(methods.methods->lines[0].line, 7);
    assert_true(methods.methods->bytecodes == away_at(away.constants.code));
    assert_true(hotspot_scopes_begin(&hotspot, nearby, &nmethod, &scopes));
    int32_t end = 0;
    uint32_t number = 0;
    struct hotspot_scope scope;
    assert_true(hotspot_scopes_next(&scopes, &end, &number));
    assert_int_equal(end, 16);
    assert_true(hotspot_scopes_at(&scopes, number, &scope));
    assert_true(scope.method == method);
    assert_int_equal(scope.bci, 5);
    assert_int_equal(scope.sender, 0);
    assert_true(hotspot_scopes_next(&scopes, &end, &number));
    assert_int_equal(number, 0);
    away.pool.entries[3] = at(&away.symbols[1]); /* it is there, but not in that memory */
    assert_false(hotspot_one_method(&hotspot, nearby, method, &methods));
    hotspot_scopes_free(&scopes);
    hotspot_methods_free(&methods);
    hotspot_nearby_free(nearby);
}

TEST(any_scopes_are_read_without_harm)
{
    struct inline_scopes scopes;
    assert_true(inline_scopes_init(&scopes));
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
    inline_scopes_free(&scopes);
    free_code(code);
}

int main(void)
{
    message_set_level(0); /* what is false is to be told of once each */
    return tests_run(NULL, NULL);
}
