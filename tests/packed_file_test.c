/* Files that are packed as a whole: what is packed and what is not, and what is refused. */
#include "test.h"

#include "jdtool/base/packed_file.h"

#include "jdtool/jitdump/code_index.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "tests/dump_builder.h"
#include "tests/scratch.h"

#include <errno.h>
#include <stdbool.h>
#include <zstd.h>

enum { SIZE = 3 << 20 };

/* Of text and of noise. */
static uint8_t *make_content(void)
{
    uint8_t *content = malloc(SIZE);
    uint32_t noise = 1;
    assert_non_null(content);
    for (size_t i = 0; i < SIZE; i++) {
        noise = noise * 1664525 + 1013904223;
        content[i] =
            (uint8_t)(i / 4096 % 2 ? "java.util.HashMap.get"[i % 21] : (char)(noise >> 24));
    }
    return content;
}

static bool is_packed(const char *path)
{
    size_t size = 0;
    uint8_t *bytes = scratch_read(path, &size);
    uint32_t magic = 0;
    assert_non_null(bytes);
    memcpy(&magic, bytes, size < 4 ? size : 4);
    free(bytes);
    return magic == ZSTD_MAGICNUMBER;
}

static int unpack(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return packed_file_unpack(fd, path);
}

/* Whether it was packed; what it held stays until the packed file takes its place. */
static bool pack(const char *path)
{
    struct packing *packing = packing_new(path);
    struct output_file *packed = packing ? packing_end(packing) : NULL;
    assert_false(packed && is_packed(path));
    assert_true(!packed || output_file_finish(packed) == 0);
    return packed != NULL;
}

TEST_WITH(comes_back_as_it_was, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "jit-1.dump");
    uint8_t *content = make_content();
    write_bytes(path, content, SIZE);
    struct stat after, plain;
    assert_true(pack(path));
    assert_int_equal(stat(path, &after), 0);
    assert_true(is_packed(path));
    assert_true(after.st_size < SIZE * 2 / 3);
    assert_int_equal(after.st_mode & 07777, 0600);

    int fd = unpack(path);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &plain), 0);
    assert_int_equal(plain.st_size, SIZE);
    uint8_t *again = malloc(SIZE);
    assert_int_equal(pread(fd, again, SIZE, 0), SIZE);
    assert_memory_equal(again, content, SIZE);
    close(fd);

    assert_false(pack(path)); /* it is packed already */
    fd = unpack(path);
    assert_int_equal(fstat(fd, &plain), 0);
    assert_int_equal(plain.st_size, SIZE);
    close(fd);
    free(again);
    free(content);
}

TEST_WITH(leaves_what_is_not_to_be_packed, scratch_create, scratch_remove)
{
    uint8_t *content = make_content();
    const char *path = scratch_path(state, "small");
    write_bytes(path, content, PACKED_FILE_MIN - 1);
    assert_false(pack(path));
    assert_false(is_packed(path));

    path = scratch_path(state, "noise");
    uint32_t noise = 1;
    for (size_t i = 0; i < SIZE; i++) {
        noise = noise * 1664525 + 1013904223;
        content[i] = (uint8_t)(noise >> 24);
    }
    write_bytes(path, content, SIZE);
    assert_false(pack(path));
    assert_false(is_packed(path));

    /* What is written behind it would be lost. */
    free(content);
    content = make_content();
    path = scratch_path(state, "written");
    write_bytes(path, content, SIZE);
    int writer = open(path, O_WRONLY | O_CLOEXEC);
    assert_false(pack(path));
    assert_false(is_packed(path));
    close(writer);
    assert_true(pack(path));

    /* Links are not followed. */
    path = scratch_path(state, "target");
    const char *link = scratch_path(state, "link");
    write_bytes(path, content, SIZE);
    assert_int_equal(symlink(path, link), 0);
    assert_false(pack(link));
    assert_false(is_packed(path));
    assert_false(pack(scratch_path(state, "none")));
    free(content);
}

static void append(const char *path, const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

/* What was there when it was looked at before is packed while the file grows, the rest at its end.
 * One that was cut meanwhile is left as it is. */
TEST_WITH(is_packed_while_it_grows, scratch_create, scratch_remove)
{
    enum { HALF = SIZE / 2 + 5 };
    uint8_t *content = make_content();
    uint8_t *again = malloc(SIZE);
    for (int cut = 0; cut < 2; cut++) {
        const char *path = scratch_path(state, cut ? "cut" : "grown");
        write_bytes(path, content, HALF);
        struct packing *packing = packing_new(path);
        assert_non_null(packing);
        assert_false(packing_go_on(packing)); /* there for the first time */
        append(path, content + HALF, SIZE - HALF);
        assert_false(packing_go_on(packing));
        assert_false(packing_go_on(packing)); /* of all */
        assert_false(is_packed(path));
        if (cut) {
            assert_int_equal(truncate(path, HALF), 0);
        }
        struct output_file *packed = packing_end(packing);
        assert_true(cut ? !packed : packed && output_file_finish(packed) == 0);
        int fd = unpack(path);
        assert_int_equal(pread(fd, again, SIZE, 0), cut ? HALF : SIZE);
        assert_memory_equal(again, content, cut ? HALF : SIZE);
        assert_true(is_packed(path) == !cut);
        close(fd);
    }
    free(again);
    free(content);
}

/* Bytes that say they are packed: as many as `size` in a frame that says `says`. */
static size_t pack_zeros(uint8_t *to, size_t room, uint64_t size, bool says)
{
    static uint8_t zeros[1 << 20];
    ZSTD_CCtx *stream = ZSTD_createCCtx();
    ZSTD_outBuffer out = {.dst = to, .size = room};
    if (says) {
        (void)ZSTD_CCtx_setPledgedSrcSize(stream, size);
    }
    for (uint64_t left = size; left > 0;) {
        ZSTD_inBuffer in = {.src = zeros, .size = left < sizeof zeros ? left : sizeof zeros};
        left -= in.size;
        while (in.pos < in.size) {
            assert_false(ZSTD_isError(ZSTD_compressStream2(stream, &out, &in, ZSTD_e_continue)));
        }
    }
    ZSTD_inBuffer none = {0};
    assert_int_equal(ZSTD_compressStream2(stream, &out, &none, ZSTD_e_end), 0);
    (void)ZSTD_freeCCtx(stream);
    return out.pos;
}

TEST_WITH(refuses_what_is_hostile, scratch_create, scratch_remove)
{
    enum { ROOM = 1 << 20 };
    const char *path = scratch_path(state, "hostile");
    uint8_t *packed = malloc(ROOM);
    size_t size;

    /* More than anybody may hold: refused by what it says, before a byte is unpacked. */
    size = pack_zeros(packed, ROOM, PACKED_FILE_MAX + 1, true);
    write_bytes(path, packed, size);
    assert_int_equal(unpack(path), -EINVAL);
    size = pack_zeros(packed, ROOM, PACKED_FILE_MAX, true);
    write_bytes(path, packed, size);
    int fd = unpack(path);
    assert_true(fd >= 0);
    close(fd);

    /* It does not say how much. */
    size = pack_zeros(packed, ROOM, 1 << 20, false);
    write_bytes(path, packed, size);
    assert_int_equal(unpack(path), -EINVAL);

    /* It says less than there is: a second frame behind the first, and a changed size. */
    size = pack_zeros(packed, ROOM / 2, 1 << 20, true);
    memcpy(packed + size, packed, size);
    write_bytes(path, packed, 2 * size);
    assert_int_equal(unpack(path), -EINVAL);
    packed[7] = 8; /* of the size, behind the magic number and the descriptor */
    assert_int_equal(ZSTD_getFrameContentSize(packed, size), 1 << 19);
    write_bytes(path, packed, size);
    assert_int_equal(unpack(path), -EINVAL);

    /* Cut anywhere, and something behind it. */
    size = pack_zeros(packed, ROOM, 5 << 20, true);
    for (size_t cut = 4; cut < size; cut++) {
        write_bytes(path, packed, cut);
        assert_int_equal(unpack(path), -EINVAL);
    }
    packed[size] = 'x';
    write_bytes(path, packed, size + 1);
    assert_int_equal(unpack(path), -EINVAL);

    /* A megabyte of zeros, as eight blocks, through a window of 64 MB. */
    static const uint8_t head[] = {0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x80, 0x00, 0x00, 0x10, 0x00};
    memcpy(packed, head, sizeof head);
    size = sizeof head;
    for (unsigned i = 0; i < 8; i++) {
        const uint8_t block[] = {i < 7 ? 0x02 : 0x03, 0x00, 0x10, 0x00};
        memcpy(packed + size, block, sizeof block);
        size += sizeof block;
    }
    write_bytes(path, packed, size);
    assert_int_equal(unpack(path), -EINVAL);
    packed[5] = 0x50; /* of 1 MB: the same is sound */
    write_bytes(path, packed, size);
    fd = unpack(path);
    assert_true(fd >= 0);
    close(fd);
    free(packed);
}

TEST_WITH(leaves_what_is_not_packed, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "plain");
    static const char *const contents[] = {"", "x", "plain text"};
    for (size_t i = 0; i < sizeof contents / sizeof *contents; i++) {
        scratch_write(path, contents[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_int_equal(packed_file_unpack(fd, path), fd);
        close(fd);
    }
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(packed_file_unpack(null, "null"), null);
    close(null);
}

/* A dump is read packed as it is plain; one that may still be written is none. */
TEST_WITH(dumps_may_be_packed, scratch_create, scratch_remove)
{
    const char *path = scratch_path(state, "jit-4242.dump");
    OWN_DUMP_BUILDER dump = dump_start();
    for (uint64_t i = 0; i < 1000; i++) {
        dump_load(&dump, BUILDER_START + i, 0x10000 * (i + 1), 1024, i + 2, "a.A.method()");
    }
    write_bytes(path, dump.bytes, dump.size);
    assert_true(pack(path));
    struct code_index *index;
    assert_int_equal(code_index_open(path, &index), 0);
    assert_int_equal(code_index_stay_count(index), 1000);
    code_index_close(index);
    struct jitdump_reader *reader;
    assert_int_equal(jitdump_reader_open(path, &reader), 0);
    assert_int_equal(jitdump_reader_file_size(reader), dump.size);
    jitdump_reader_close(reader);
    assert_int_equal(jitdump_reader_follow(path, &reader), -EINVAL);
    assert_int_equal(code_index_follow(path, -1, &index), -EINVAL);
}

TEST_MAIN(NULL, NULL)
