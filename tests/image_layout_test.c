/* Where code goes in the images: offsets, layers, regions, limits. */
#include "test.h"

#include "jdtool/images/image_layout.h"
#include "tests/random.h"
#include "tests/sanitized.h"

#include <stdlib.h>
#include <string.h>

#define CODE UINT64_C(0x7f0000010000)

static uint64_t same(void *context, uint64_t address)
{
    (void)context;
    return address;
}

static uint64_t given(void *context, uint64_t address)
{
    uint64_t start = *(uint64_t *)context;
    assert_true(start <= address);
    return start;
}

static uint32_t add(struct image_layout *layout, uint64_t address, uint64_t size)
{
    uint32_t file;
    assert_int_equal(image_layout_add(layout, address, size, same, NULL, &file), 0);
    return file;
}

TEST(code_that_took_a_place_over_goes_into_a_further_layer)
{
    struct image_layout *layout = image_layout_new();
    assert_int_equal(add(layout, CODE, 100), 0);
    assert_int_equal(add(layout, CODE + 100, 100), 0); /* behind it */
    assert_int_equal(add(layout, CODE + 50, 10), 1);
    assert_int_equal(add(layout, CODE + 60, 10), 1);
    assert_int_equal(add(layout, CODE + 0x100000, 10), 0);
    assert_int_equal(add(layout, CODE + 55, 10), 2); /* over both layers' */
    assert_int_equal(add(layout, CODE + 199, 1000), 1);
    assert_int_equal(add(layout, CODE - 1, 1), 0);
    assert_int_equal(image_layout_file_of(layout, 2), 1);
    assert_int_equal(image_layout_file_count(layout), 3);
    uint64_t bases[3];
    for (uint32_t i = 0; i < 3; i++) {
        bases[i] = image_layout_file(layout, i)->base;
        assert_true(CODE - 1 - bases[i] >= 0x1000);         /* room for the file's headers */
        assert_true(CODE - bases[i] > UINT64_C(0x8000000)); /* and for libraries */
        assert_int_equal(bases[i] % 0x1000, 0);
        assert_true(i == 0 || bases[i - 1] - bases[i] == IMAGE_BASE_ROOM);
    }
    assert_true(image_layout_file(layout, 0)->end == CODE + 0x100000 + 10);
    image_layout_free(layout);
}

/* A code cache whose middle is touched first is one file, when somebody knows where it begins. */
TEST(a_region_begins_where_code_may_begin)
{
    uint64_t lowest = CODE;
    uint32_t file;
    struct image_layout *layout = image_layout_new();
    assert_int_equal(image_layout_add(layout, CODE + 0x8000000, 16, given, &lowest, &file), 0);
    assert_int_equal(file, 0);
    assert_int_equal(add(layout, CODE, 16), 0);
    assert_int_equal(add(layout, CODE - 0x100000, 16), 0); /* a little slack */
    assert_int_equal(add(layout, CODE - 0x40000000, 16), 1);
    assert_int_equal(add(layout, CODE + UINT64_C(0x1000000000), 16), 2);
    assert_int_equal(add(layout, CODE + UINT64_C(0x1000000000), 16), 3);
    image_layout_free(layout);
}

TEST(what_no_image_can_have_is_in_none)
{
    struct image_layout *layout = image_layout_new();
    assert_int_equal(add(layout, CODE, 0), IMAGE_NONE);
    assert_int_equal(add(layout, CODE, IMAGE_PIECE_MAX + 1), IMAGE_NONE);
    assert_int_equal(add(layout, CODE, UINT64_MAX), IMAGE_NONE);
    assert_int_equal(add(layout, UINT64_MAX - 10, 16), IMAGE_NONE);
    assert_int_equal(add(layout, 0, 16), IMAGE_NONE);
    assert_int_equal(add(layout, 0x1000, 16), IMAGE_NONE);
    assert_int_equal(add(layout, 0x2000000, 16), 0); /* low, but it can be */
    assert_int_equal(image_layout_file_count(layout), 1);
    assert_int_equal(add(layout, CODE, IMAGE_PIECE_MAX), 1);
    /* A hostile dump: ever new code at one place. */
    uint32_t last = 0;
    for (uint32_t i = 0; i < 5000; i++) {
        uint32_t file = add(layout, CODE + 8, 16);
        last = file == IMAGE_NONE ? last : file;
    }
    assert_true(image_layout_file_count(layout) <= 4096);
    assert_int_equal(add(layout, CODE + 8, 16), IMAGE_NONE);
    assert_true(last > 255);
    image_layout_free(layout);
}

static void note(void *context, uint32_t piece)
{
    ((bool *)context)[piece] = true;
}

/* Whatever comes: no two pieces of a file overlap, and overlaps are found. */
TEST(pieces_of_a_file_never_overlap)
{
    enum { COUNT = SANITIZED ? 1000 : 3000 };
    static struct {
        uint64_t address, size;
        uint32_t file;
    } pieces[COUNT];
    static bool found[COUNT];
    struct image_layout *layout = image_layout_new();
    uint64_t seed = 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        pieces[i].address = CODE + random_below(&seed, 400000);
        pieces[i].size = 1 + random_below(&seed, i % 100 == 0 ? 100000 : 1000);
        pieces[i].file = add(layout, pieces[i].address, pieces[i].size);
        assert_int_not_equal(pieces[i].file, IMAGE_NONE);
        assert_true(pieces[i].address > image_layout_file(layout, pieces[i].file)->base);
        memset(found, 0, sizeof found);
        image_layout_overlaps(layout, pieces[i].address, pieces[i].size, note, found);
        for (uint32_t j = 0; j < i; j++) {
            bool over = pieces[j].address < pieces[i].address + pieces[i].size &&
                        pieces[i].address < pieces[j].address + pieces[j].size;
            assert_int_equal(over, found[j]);
            assert_false(over && pieces[i].file == pieces[j].file);
        }
    }
    memset(found, 0, sizeof found);
    image_layout_overlaps(layout, 0x1000, UINT64_C(1) << 62, note, found); /* a heap */
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_true(found[i]);
    }
    image_layout_free(layout);
}

TEST_MAIN(NULL, NULL)
