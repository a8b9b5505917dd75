/* The tables for walking stacks in the kernel: their rows, and code that comes and goes. */
#include "sanitized.h"
#include "test.h"

#include "jdtool/walk/tables.h"

#include <elf.h>
#include <stdlib.h>

#define LOW UINT64_C(0x7f0000000000)

static struct walk_program program;
static struct walk_jvm *jvm;
static struct tables tables;

static int set_up(void **state)
{
    (void)state;
    program = (struct walk_program){
        .room = {WALK_JVMS, WALK_PAGES, WALK_BLOBS, WALK_ROWS},
        .pages = calloc(WALK_PAGES, sizeof *program.pages),
        .blobs = calloc(WALK_BLOBS, sizeof *program.blobs),
        .rows = calloc(WALK_ROWS, sizeof *program.rows),
        .full_rows = calloc(WALK_FULL_ROWS, sizeof *program.full_rows),
        .jvms = calloc(WALK_JVMS, sizeof *program.jvms),
    };
    jvm = program.jvms;
    jvm->code_low = LOW;
    tables_new(&tables, &program, EM_X86_64);
    return program.pages && program.blobs && program.rows && program.full_rows && jvm ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(tables.free_pages.list);
    free(tables.free_blobs.list);
    for (int i = 0; i < TABLES_ROW_SIZES; i++) {
        free(tables.free_rows[i].list);
    }
    free(tables.going.list);
    free(tables.gone.list);
    free(program.pages);
    free(program.blobs);
    free(program.rows);
    free(program.full_rows);
    free(program.jvms);
    return 0;
}

/* What blob_number of walk.bpf.c does. */
static const struct walk_blob *blob_at(uint64_t address)
{
    uint64_t slot = (address - LOW) >> WALK_SLOT_SHIFT;
    uint32_t page = program.pages[jvm->directories[slot >> 20]].words[slot >> 10 & 1023];
    uint32_t number = program.pages[page].words[slot & 1023];
    const struct walk_blob *behind = NULL;
    for (int i = 0; i < 8 && number; i++) {
        const struct walk_blob *blob = &program.blobs[number];
        if (address - blob->start < blob->size) {
            return blob;
        }
        behind = address >= blob->start && blob->shape == FRAMES_COMPILED ? blob : behind;
        number = blob->next;
    }
    return behind;
}

static uint32_t add(uint64_t address, uint64_t size, uint32_t id, const struct frames *frames)
{
    const struct blob_frames about = {.frames = *frames,
                                      .shape = FRAMES_COMPILED,
                                      .told_frame_size = 32,
                                      .compile_id = id,
                                      .is_method = true};
    return tables_add_code(&tables, jvm, address, size, &about);
}

static struct frame_row usual_row(uint32_t offset, int32_t cfa, uint8_t fp)
{
    return (struct frame_row){.offset = offset,
                              .cfa = FRAME_CFA_SP,
                              .cfa_offset = cfa,
                              .ra = FRAME_AT_CFA,
                              .ra_offset = -8,
                              .fp = fp,
                              .fp_offset = -16};
}

TEST_WITH(test_rows, set_up, tear_down)
{
    struct frame_row list[] = {
        usual_row(0, 8, FRAME_SAME),
        usual_row(1, 16, FRAME_AT_CFA),
        usual_row(4, 16, FRAME_AT_CFA), /* the same once more */
        usual_row(8, 4096, FRAME_NOWHERE),
        usual_row(12, 8, FRAME_SAME),
        {.offset = 16, .cfa = FRAME_CFA_INTERPRETER},
    };
    list[4].ra = FRAME_IN_REG;
    list[4].ra_reg = 13;
    struct frames frames = {.rows = list, .count = sizeof list / sizeof *list};
    (void)add(LOW + 0x1000, 64, 7, &frames);
    const struct walk_blob *blob = blob_at(LOW + 0x1010);
    assert_non_null(blob);
    assert_int_equal(blob->id, 7);
    assert_int_equal(blob->frame, 32);
    assert_int_equal((uint32_t)blob->rows, 5);
    static const struct walk_row expected[] = {
        {.offset = 0, .cfa = 1, .fp = 0, .rule = WALK_BY_SP},
        {.offset = 1, .cfa = 2, .fp = -2, .rule = WALK_BY_SP},
        {.offset = 8, .cfa = 512, .fp = WALK_FP_LOST, .rule = WALK_BY_SP},
        {.offset = 12, .rule = WALK_FULL},
        {.offset = 16, .rule = WALK_INTERPRETED},
    };
    assert_memory_equal(&program.rows[blob->rows >> 32], expected, sizeof expected);
    assert_int_equal(program.full_rows[0].ra, FRAME_IN_REG);
    assert_int_equal(program.full_rows[0].ra_reg, 13);
    assert_ptr_equal(blob_at(LOW + 0x1040 + 100), blob); /* its stub section */
    assert_null(blob_at(LOW + 0x1040 + 1024));
}

/* aarch64 has frame pointer and return address side by side, anywhere in a frame. */
TEST_WITH(test_rows_aarch64, set_up, tear_down)
{
    enum { LR = 30 };
    struct frame_row list[] = {
        {.offset = 0, .cfa = FRAME_CFA_SP, .ra = FRAME_IN_REG, .ra_reg = LR},
        usual_row(4, 64, FRAME_AT_CFA),
        usual_row(8, 96, FRAME_AT_CFA),
        usual_row(12, 4096, FRAME_AT_CFA),
        usual_row(16, 32, FRAME_SAME), /* the return address alone is saved */
        usual_row(20, 16, FRAME_AT_CFA),
        {.offset = 24, .cfa = FRAME_CFA_SP, .ra = FRAME_IN_REG, .ra_reg = 8},
        {.offset = 28,
         .cfa = FRAME_CFA_SP,
         .cfa_offset = 48,
         .ra = FRAME_AT_SP,
         .ra_offset = 24,
         .fp = FRAME_AT_SP,
         .fp_offset = 16},
        usual_row(30, 48, FRAME_AT_CFA), /* both, with something in between */
        {.offset = 32, .cfa = FRAME_CFA_INTERPRETER},
    };
    list[8].fp_offset = -24;
    list[2].fp_offset = -96;
    list[2].ra_offset = -88;
    list[3].fp_offset = -4096; /* too far for a byte */
    list[3].ra_offset = -4088;
    list[5].cfa = FRAME_CFA_FP;
    struct frames frames = {.rows = list, .count = sizeof list / sizeof *list};
    tables.machine = EM_AARCH64;
    (void)add(LOW + 0x1000, 64, 7, &frames);
    const struct walk_blob *blob = blob_at(LOW + 0x1010);
    assert_non_null(blob);
    static const struct walk_row expected[] = {
        {.offset = 0, .rule = WALK_BY_SP},
        {.offset = 4, .cfa = 8, .fp = -2, .rule = WALK_BY_SP},
        {.offset = 8, .cfa = 12, .fp = -12, .rule = WALK_BY_SP},
        {.offset = 12, .cfa = 0, .rule = WALK_FULL},
        {.offset = 16, .cfa = 1, .rule = WALK_FULL},
        {.offset = 20, .cfa = 2, .fp = -2, .rule = WALK_BY_FP},
        {.offset = 24, .cfa = 2, .rule = WALK_FULL},
        {.offset = 28, .cfa = 6, .fp = -4, .rule = WALK_BY_SP},
        {.offset = 30, .cfa = 3, .rule = WALK_FULL},
        {.offset = 32, .rule = WALK_INTERPRETED},
    };
    assert_int_equal((uint32_t)blob->rows, sizeof expected / sizeof *expected);
    assert_memory_equal(&program.rows[blob->rows >> 32], expected, sizeof expected);
    assert_int_equal(program.full_rows[0].fp_offset, -4096);
    assert_int_equal(program.full_rows[0].ra_offset, -4088);
    assert_int_equal(program.full_rows[1].fp, FRAME_SAME);
    assert_int_equal(program.full_rows[2].ra_reg, 8);
}

/* What was added without rows has them when they are made: once, and not when it is over. */
TEST_WITH(test_rows_on_demand, set_up, tear_down)
{
    const struct frames none = {0};
    struct frame_row list[] = {usual_row(0, 8, FRAME_SAME), usual_row(4, 48, FRAME_AT_CFA)};
    struct blob_frames made = {.frames = {.rows = list, .count = 2, .frame_size = 48},
                               .shape = FRAMES_COMPILED,
                               .told_frame_size = -1};
    uint32_t number = add(LOW + 0x1000, 64, 7, &none);
    uint32_t other = add(LOW + 0x2000, 64, 8, &none);
    const struct walk_blob *blob = blob_at(LOW + 0x1010);
    assert_ptr_equal(blob, &program.blobs[number]);
    assert_int_equal(blob->rows, 0);
    assert_int_equal(blob->frame, 32);
    tables_add_rows(&tables, number, &made);
    assert_int_equal((uint32_t)blob->rows, 2);
    assert_int_equal(blob->frame, 48);
    uint32_t first = (uint32_t)(blob->rows >> 32);
    assert_int_equal(program.rows[first + 1].cfa, 6);
    uint32_t given = tables.rows;
    made.frames.frame_size = 64;
    tables_add_rows(&tables, number, &made); /* again */
    assert_int_equal(blob->frame, 48);
    (void)add(LOW + 0x2000, 64, 9, &none); /* in the other one's place */
    tables_add_rows(&tables, other, &made);
    assert_int_equal(program.blobs[other].rows, 0);
    assert_int_equal(tables.rows, given);
    tables_remove_code(&tables, jvm);
    tables_settle(&tables);
    tables_settle(&tables);
    assert_int_equal(tables.free_rows[1].count, 1);
    assert_int_equal(tables.free_rows[1].list[0], first);
}

/* Methods anywhere, but none shares 64 bytes with another, as HotSpot has them: each is over when
 * another takes a byte of it: more of them than there are numbers. */
TEST_WITH(test_churn, set_up, tear_down)
{
    enum { GRAIN = 64, GRAINS = 1 << 14, LONGEST = 24, ROUNDS = SANITIZED ? 150000 : 400000 };
    uint32_t *owners = calloc(GRAINS, sizeof *owners); /* of each 64 bytes; 0: none */
    uint32_t *lengths = calloc(ROUNDS + 1, sizeof *lengths);
    uint32_t *starts = calloc(ROUNDS + 1, sizeof *starts);
    struct frame_row list[8];
    uint64_t seed = 1;
    assert_true(owners && lengths && starts);
    for (uint32_t i = 0; i < 8; i++) {
        list[i] = usual_row(i, (int32_t)(8 * (i + 1)), FRAME_SAME);
    }
    for (uint32_t id = 1; id <= ROUNDS; id++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint32_t length = 1 + (uint32_t)(seed >> 33) % LONGEST;
        uint32_t start = (uint32_t)(seed >> 40) % (GRAINS - LONGEST);
        struct frames frames = {.rows = list, .count = 1 + id % 8};
        for (uint32_t i = start; i < start + length; i++) {
            uint32_t old = owners[i];
            for (uint32_t k = old ? starts[old] : 0; old && k < starts[old] + lengths[old]; k++) {
                owners[k] = owners[k] == old ? 0 : owners[k];
            }
        }
        for (uint32_t i = start; i < start + length; i++) {
            owners[i] = id;
        }
        starts[id] = start;
        lengths[id] = length;
        (void)add(LOW + (uint64_t)start * GRAIN, (uint64_t)length * GRAIN, id, &frames);
        if (id % 50 == 0) {
            tables_settle(&tables);
        }
    }
    assert_false(tables.is_full);
    uint32_t missing = 0;
    uint32_t living = 0;
    for (uint32_t i = 0; i < GRAINS; i++) {
        const struct walk_blob *blob = blob_at(LOW + (uint64_t)i * GRAIN + 5);
        bool is_its = blob && blob->id == owners[i];
        bool covers = blob && LOW + (uint64_t)i * GRAIN - blob->start < blob->size;
        living += owners[i] != 0;
        missing += owners[i] && !is_its;
        assert_true(!covers || is_its); /* one that is over, where another is */
    }
    assert_true(living > 1000);
    assert_int_equal(missing, 0);
    tables_remove_code(&tables, jvm);
    tables_settle(&tables);
    tables_settle(&tables);
    assert_int_equal(tables.free_pages.count, tables.pages - 1);
    assert_true(tables.blobs < 10000);
    assert_true(tables.free_blobs.count * 100 > (tables.blobs - 1) * 99);
    free(owners);
    free(lengths);
    free(starts);
}

/* More code than there is room for: it is told, what was there stays, and what goes makes room. */
TEST_WITH(test_full, set_up, tear_down)
{
    enum { DISTANCE = 1024 };
    const struct frames none = {0};
    for (uint32_t i = 1; i < WALK_BLOBS; i++) {
        assert_int_equal(add(LOW + (uint64_t)i * DISTANCE, 64, i, &none), i);
    }
    assert_false(tables.is_full);
    uint64_t behind = LOW + (uint64_t)WALK_BLOBS * DISTANCE;
    assert_int_equal(add(behind, 64, WALK_BLOBS, &none), 0);
    assert_true(tables.is_full);
    assert_null(blob_at(behind));
    assert_int_equal(blob_at(LOW + DISTANCE)->id, 1);
    assert_int_equal(blob_at(behind - DISTANCE)->id, WALK_BLOBS - 1);
    tables_remove_code(&tables, jvm);
    tables_settle(&tables);
    tables_settle(&tables);
    assert_int_not_equal(add(behind, 64, WALK_BLOBS, &none), 0);
    assert_int_equal(blob_at(behind)->id, WALK_BLOBS);
}

TEST_MAIN(NULL, NULL)
