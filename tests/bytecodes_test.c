/* Prints the bytecodes of class files as javap does. */
#include "test.h"

#include "jdtool/inspect/bytecodes.h"

#include "tests/class_file.h"
#include "tests/random.h"

#include <stdlib.h>

/* Of "Cls.count:I" as field 1, "text" as a String 7, a long 9 and an int 11. */
static const uint8_t pool_bytes[] = {
    9,  0,    2,    0,    4,                            /* 1: field, class 2, name and type 4 */
    7,  0,    3,                                        /* 2: class */
    1,  0,    3,    'C',  'l',  's',                    /* 3 */
    12, 0,    5,    0,    6,                            /* 4: name and type */
    1,  0,    5,    'c',  'o',  'u',  'n',  't',        /* 5 */
    1,  0,    1,    'I',                                /* 6 */
    8,  0,    8,                                        /* 7: String */
    1,  0,    5,    'a',  '\n', 0xc3, 0xa9, 'b',        /* 8 */
    5,  0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, /* 9 and 10: long -2 */
    3,  0,    0,    1,    0,                            /* 11: int 256 */
};

static void assert_listing(const uint8_t *code, size_t size, const char *expected)
{
    static const struct bytecode_line lines[] = {{0, 12}, {4, 13}, {4, 14}, {1000, 15}};
    struct constant_pool pool;
    assert_true(constant_pool_open(&pool, pool_bytes, sizeof(pool_bytes), 12));
    struct bytes out = {0};
    bytecodes_list(&out, code, size, lines, 4, &pool, SIZE_MAX);
    bytes_put(&out, "", 1);
    assert_string_equal((const char *)out.at, expected);
    bytes_free(&out);
    constant_pool_close(&pool);
}

TEST(instructions_with_constants_and_lines)
{
    static const uint8_t code[] = {
        0x2a,                         /* 0: aload_0 */
        0xb4, 0,    1,                /* 1: getfield */
        0x9c, 0,    5,                /* 4: ifge 9 */
        0x10, 0xff,                   /* 7: bipush -1 */
        0x12, 7,                      /* 9: ldc */
        0x14, 0,    9,                /* 11: ldc2_w */
        0x12, 11,                     /* 14: ldc */
        0x84, 3,    0xfe,             /* 16: iinc 3, -2 */
        0xc4, 0x15, 1,    0,          /* 19: wide iload 256 */
        0xc4, 0x84, 1,    0, 0xff, 0, /* 23: wide iinc 256, -256 */
        0xbc, 10,                     /* 29: newarray int */
        0xb9, 0,    1,    1, 0,       /* 31: invokeinterface */
        0xa7, 0xff, 0xdc,             /* 36: goto 0 */
        0xb1,                         /* 39: return */
    };
    assert_listing(code, sizeof(code),
                   "    0: aload_0  // line 12\n"
                   "    1: getfield #1  // Cls.count:I\n"
                   "    4: ifge 9  // line 14\n"
                   "    7: bipush -1\n"
                   "    9: ldc #7  // \"a\\x0a\xc3\xa9"
                   "b\"\n"
                   "   11: ldc2_w #9  // long -2\n"
                   "   14: ldc #11  // int 256\n"
                   "   16: iinc 3, -2\n"
                   "   19: wide iload 256\n"
                   "   23: wide iinc 256, -256\n"
                   "   29: newarray int\n"
                   "   31: invokeinterface #1  // Cls.count:I\n"
                   "   36: goto 0\n"
                   "   39: return\n");
}

TEST(switches_are_aligned)
{
    static const uint8_t code[] = {
        0x1b,                                                            /* 0: iload_1 */
        0xaa, 0, 0, 0,  0,    0, 30, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, /* 1: tableswitch */
        0,    0, 0, 20, 0,    0, 0,  25,                                 /* -1, 0 */
        0xab, 0, 0, 0,  0,    0, 0,  9,    0,    0,    0,    1, 0, 0, 1,
        0,    0, 0, 0,  0xff, /* 24: lookupswitch */
    };
    assert_listing(code, 24,
                   "    0: iload_1  // line 12\n"
                   "    1: tableswitch -1: 21, 0: 26, default: 31\n");
    struct bytes out = {0};
    bytecodes_list(&out, code + 24, sizeof(code) - 24, NULL, 0, &(struct constant_pool){0},
                   SIZE_MAX);
    bytes_put(&out, "", 1);
    assert_string_equal((const char *)out.at, "    0: lookupswitch 256: 255, default: 9\n");
    bytes_free(&out);
}

TEST(what_is_cut_off_ends_the_listing)
{
    static const uint8_t short_branch[] = {0x03, 0x99, 0};
    static const uint8_t no_opcode[] = {0x03, 0xfe, 0x03};
    static const uint8_t huge_switch[] = {0xaa, 0, 0, 0, 0,    0,    0,    0,
                                          0x80, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff};
    assert_listing(short_branch, 3, "    0: iconst_0  // line 12\n    1: ifeq (cut off)\n");
    assert_listing(no_opcode, 3, "    0: iconst_0  // line 12\n    1: 0xfe (cut off)\n");
    assert_listing(huge_switch, 16, "    0: tableswitch  // line 12 (cut off)\n");
    assert_listing(NULL, 0, "");
}

/* Whatever the bytes are: nothing is read outside of them (sanitizers watch), and it ends. */
TEST(random_bytes)
{
    uint64_t seed = random_seed();
    for (int round = 0; round < 3000; round++) {
        size_t size = random_below(&seed, 64);
        size_t pool_size = random_below(&seed, 64);
        uint8_t *code = malloc(size ? size : 1);
        uint8_t *constants = malloc(pool_size ? pool_size : 1);
        for (size_t i = 0; i < size; i++) {
            code[i] = (uint8_t)random_next(&seed);
        }
        for (size_t i = 0; i < pool_size; i++) {
            constants[i] = (uint8_t)random_below(&seed, random_below(&seed, 2) ? 21 : 256);
        }
        struct constant_pool pool;
        assert_true(constant_pool_open(&pool, constants, pool_size, random_below(&seed, 40)));
        struct bytes out = {0};
        bytecodes_list(&out, code, size, NULL, 0, &pool, SIZE_MAX);
        assert_false(out.failed);
        bytes_free(&out);
        constant_pool_close(&pool);
        free(code);
        free(constants);
    }
}

TEST(methods_of_a_class_file)
{
    struct bytes out = {0};
    assert_int_equal(class_listing(&out, class_bytes, sizeof(class_bytes)), 0);
    bytes_put(&out, "", 1);
    assert_string_equal((const char *)out.at, CLASS_LISTING);
    bytes_free(&out);
    assert_int_equal(class_listing(&out, class_bytes + 1, sizeof(class_bytes) - 1), 0);
    assert_int_equal(out.size, 0); /* no class file */
    bytes_free(&out);
}

/* Nothing is read outside of a class file that ends early or is broken (sanitizers watch). */
TEST(broken_class_files)
{
    uint64_t seed = random_seed();
    for (size_t round = 0; round < 3000; round++) {
        size_t size = round < sizeof(class_bytes) ? round : sizeof(class_bytes);
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, class_bytes, size);
        for (int i = 0; i < 3 && round >= sizeof(class_bytes); i++) {
            copy[random_below(&seed, size)] = (uint8_t)random_next(&seed);
        }
        struct bytes out = {0};
        assert_int_equal(class_listing(&out, copy, size), 0);
        bytes_free(&out);
        free(copy);
    }
}

TEST_MAIN(NULL, NULL)
