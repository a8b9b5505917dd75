/* Finds sources for samply in directories and archives, or uses bytecodes instead. */
#include "test.h"

#include "jdtool/inspect/convert.h"

#include "format/samply.h"
#include "tests/class_file.h"
#include "tests/scratch.h"

#include <byteswap.h>

struct world {
    struct source_texts *texts;
    struct samply_sources *sources;
    struct bytes out;
};

static struct world open_world(const char *path)
{
    struct world world = {0};
    assert_int_equal(source_texts_open(path, &world.texts), 0);
    world.sources = samply_sources_new(world.texts);
    assert_non_null(world.sources);
    return world;
}

static void close_world(struct world *world)
{
    samply_sources_free(world->sources);
    source_texts_close(world->texts);
    bytes_free(&world->out);
}

static void put(struct world *world, const char *file, const char *method)
{
    world->out.size = 0;
    assert_int_equal(samply_sources_put(world->sources, file, method, 77, false, &world->out), 0);
}

/* What was put is one record, of that path and text. */
static void assert_embedded(const struct world *world, const char *path, const char *text)
{
    const struct samply_embedded_source *record = (const void *)world->out.at;
    size_t path_size = (strlen(path) + 4) / 4 * 4;
    size_t text_size = (strlen(text) + 3) / 4 * 4;
    assert_int_equal(world->out.size, sizeof(*record) + path_size + text_size);
    assert_int_equal(record->prefix.id, 827346261);
    assert_int_equal(record->prefix.total_size, world->out.size);
    assert_int_equal(record->prefix.timestamp, 77);
    assert_int_equal(record->path_size, path_size);
    assert_int_equal(record->text_size, strlen(text));
    assert_string_equal((const char *)(record + 1), path);
    assert_memory_equal((const char *)(record + 1) + path_size, text, strlen(text));
}

/* SCRATCH/pkg with a source and a class. */
static void write_files(void **state)
{
    assert_int_equal(mkdir(scratch_path(state, "pkg"), 0700), 0);
    scratch_write(scratch_path(state, "pkg/Outer.java"), "class Outer {}");
    write_bytes(scratch_path(state, "pkg/Left$In.class"), class_bytes, sizeof(class_bytes));
}

TEST_WITH(sources_come_once, scratch_create, scratch_remove)
{
    write_files(state);
    struct world world = open_world(*state);
    put(&world, "pkg/Outer.java", "pkg.Outer.outer()");
    assert_embedded(&world, "pkg/Outer.java", "class Outer {}");
    for (int i = 0; i < 1000; i++) {
        char file[32];
        snprintf(file, sizeof(file), "pkg/None%d.java", i);
        put(&world, i < 999 ? file : "pkg/Outer.java", "pkg.Outer.outer()");
        assert_int_equal(world.out.size, 0);
    }
    assert_int_equal(samply_sources_count(world.sources), 1);
    close_world(&world);

    world = open_world(*state);
    assert_int_equal(samply_sources_have(world.sources, "pkg/Outer.java"), 0);
    put(&world, "pkg/Outer.java", NULL);
    assert_int_equal(world.out.size, 0); /* the dump had it */
    close_world(&world);
}

TEST_WITH(the_other_byte_order, scratch_create, scratch_remove)
{
    write_files(state);
    struct world world = open_world(*state);
    assert_int_equal(
        samply_sources_put(world.sources, "pkg/Outer.java", NULL, 77, true, &world.out), 0);
    const struct samply_embedded_source *record = (const void *)world.out.at;
    assert_int_equal(bswap_32(record->prefix.id), 827346261);
    assert_int_equal(bswap_32(record->prefix.total_size), world.out.size);
    assert_int_equal(bswap_64(record->prefix.timestamp), 77);
    assert_int_equal(bswap_32(record->text_size), 14);
    close_world(&world);
}

/* Of whatever style the symbol is. */
TEST_WITH(classes_without_source_come_as_bytecodes, scratch_create, scratch_remove)
{
    static const char *const methods[] = {"pkg.Left$In.leaf(int, java.lang.String)", "Left$In.leaf",
                                          "Lpkg/Left$In;leaf(I)V", "pkg.Left$In.leaf() [C2]"};
    write_files(state);
    for (size_t i = 0; i < sizeof(methods) / sizeof(*methods); i++) {
        struct world world = open_world(*state);
        put(&world, "pkg/Left.java", methods[i]);
        assert_embedded(&world, "pkg/Left$In.bytecode", CLASS_LISTING);
        put(&world, "pkg/Left.java", methods[i]);
        assert_int_equal(world.out.size, 0);
        assert_int_equal(samply_listings_count(world.sources), 1);
        put(&world, "pkg/Right.java", "no method's name");
        put(&world, "pkg/Right.java", "");
        put(&world, "pkg/Right.java", ".();");
        assert_int_equal(world.out.size, 0);
        close_world(&world);
    }
}

/* A name in a dump leads nowhere else. */
TEST_WITH(names_stay_inside_their_directories, scratch_create, scratch_remove)
{
    static const char *const files[] = {
        "../Outer.java", "a/../../Outer.java", "/etc/hostname", "..", "", "../Left.java"};
    write_files(state);
    assert_int_equal(mkdir(scratch_path(state, "pkg/inside"), 0700), 0);
    struct world world = open_world(scratch_path(state, "pkg/inside"));
    for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
        put(&world, files[i], "pkg.Left$In.leaf()");
        assert_int_equal(world.out.size, 0);
    }
    close_world(&world);
}

static void put_file_header(struct bytes *out, const char *magic, const char *name, uint32_t size)
{
    bytes_put(out, magic, 4);
    if (magic[2] == 1) {
        bytes_u16(out, 20); /* made by */
    }
    bytes_u16(out, 20);
    bytes_u32(out, 0); /* flags, stored */
    bytes_u32(out, 0); /* time */
    bytes_u32(out, 0); /* CRC */
    bytes_u32(out, size);
    bytes_u32(out, size);
    bytes_u16(out, (uint16_t)strlen(name));
    bytes_u16(out, 0);
}

/* An archive with a source below its first directory, behind a header of its own as a jmod's. */
static void write_jmod(const char *path)
{
    static const char name[] = "classes/pkg/Far.java";
    static const char text[] = "class Far {}";
    struct bytes out = {0};
    bytes_put(&out, "JM\1\0", 4);
    put_file_header(&out, "PK\3\4", name, sizeof(text) - 1);
    bytes_put(&out, name, sizeof(name) - 1);
    bytes_put(&out, text, sizeof(text) - 1);
    uint32_t directory = (uint32_t)out.size - 4;
    put_file_header(&out, "PK\1\2", name, sizeof(text) - 1);
    bytes_put(&out, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 14); /* and the file's offset, 0 */
    bytes_put(&out, name, sizeof(name) - 1);
    uint32_t end = (uint32_t)out.size - 4;
    bytes_put(&out, "PK\5\6\0\0\0\0\1\0\1\0", 12);
    bytes_u32(&out, end - directory);
    bytes_u32(&out, directory);
    bytes_u16(&out, 0);
    assert_false(out.failed);
    write_bytes(path, out.at, out.size);
    bytes_free(&out);
}

TEST_WITH(archives_are_looked_into, scratch_create, scratch_remove)
{
    char path[600];
    write_files(state);
    write_jmod(scratch_path(state, "far.jmod"));
    snprintf(path, sizeof(path), "%s:%s", (const char *)*state, scratch_path(state, "far.jmod"));
    struct world world = open_world(path);
    put(&world, "pkg/Far.java", NULL);
    assert_embedded(&world, "pkg/Far.java", "class Far {}");
    put(&world, "pkg/Outer.java", NULL);
    assert_embedded(&world, "pkg/Outer.java", "class Outer {}");
    close_world(&world);
    struct source_texts *texts;
    assert_true(source_texts_open(scratch_path(state, "pkg/Outer.java"), &texts) < 0);
}

TEST_MAIN(NULL, NULL)
