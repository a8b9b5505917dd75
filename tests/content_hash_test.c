/* Equal images have equal build-ids, and different ones do not. */
#include "test.h"

#include "jdtool/images/image_elf.h"

/* MurmurHash3_x64_128 with seed 0, as its reference implementation has it. */
TEST(known_values)
{
    struct content_hash hash = {0};
    static const char text[] = "The quick brown fox jumps over the lazy dog";
    content_hash_add(&hash, text, sizeof text - 1);
    assert_true(hash.low == UINT64_C(0xe34bbc7bbc071b6c));
    assert_true(hash.high == UINT64_C(0x7a433ca9c49a9347));
}

TEST(every_byte_and_every_border_counts)
{
    uint8_t bytes[40] = {0};
    struct content_hash plain = {0};
    content_hash_add(&plain, bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        struct content_hash other = {0};
        bytes[i] = 1;
        content_hash_add(&other, bytes, sizeof bytes);
        bytes[i] = 0;
        assert_true(other.low != plain.low && other.high != plain.high);

        struct content_hash parted = {0};
        content_hash_add(&parted, bytes, i);
        content_hash_add(&parted, bytes + i, sizeof bytes - i);
        assert_true(i == 0 || parted.low != plain.low);
    }
}

TEST_MAIN(NULL, NULL)
