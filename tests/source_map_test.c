/* Source maps (JSR 45): the original file and line of each line of a class file. */
#include "test.h"

#include "agent/methods/source_map.h"

#include "tests/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As Kotlin 2.2 made it for java-tests/languages/Shop.kt. */
static const char kotlin[] = "SMAP\nShop.kt\nKotlin\n*S Kotlin\n*F\n+ 1 Shop.kt\nmarket/Shop\n"
                             "+ 2 fake.kt\nkotlin/jvm/internal/FakeKt\n"
                             "+ 3 _Arrays.kt\nkotlin/collections/ArraysKt___ArraysKt\n"
                             "+ 4 Discount.kt\nmarket/DiscountKt\n"
                             "*L\n1#1,200:1\n1#2:201\n13826#3:202\n13827#3:205\n5#4,2:203\n"
                             "10#4,6:206\n50#1,3:212\n"
                             "*S KotlinDebug\n*F\n+ 1 Shop.kt\nmarket/Shop\n"
                             "*L\n87#1:202\n87#1:205\n87#1:203,2\n88#1:206,6\n90#1:212,3\n*E\n";

static void assert_own(const struct source_map *map, uint32_t line, uint32_t expected)
{
    struct source_line found = source_map_find(map, line);
    assert_null(found.inlined);
    assert_int_equal(found.line, expected);
}

static void assert_inlined(const struct source_map *map, uint32_t line, uint32_t call, int place,
                           uint32_t expected)
{
    struct source_line found = source_map_find(map, line);
    assert_int_equal(found.line, call);
    assert_ptr_equal(found.inlined, &map->places[place].method);
    assert_int_equal(found.inlined_line, expected);
}

TEST(kotlin_inlines)
{
    struct source_map *map = source_map_new(kotlin, "Lmarket/Shop;");
    assert_non_null(map);
    assert_true(map->inlines);
    assert_int_equal(map->place_count, 4);
    assert_string_equal(map->places[3].file, "Discount.kt");
    assert_string_equal(map->places[3].path, "market/DiscountKt");
    assert_own(map, 0, 0);
    assert_own(map, 1, 1);
    assert_own(map, 87, 87);
    assert_own(map, 200, 200);
    assert_own(map, 201, 0); /* in no file */
    assert_inlined(map, 202, 87, 2, 13826);
    assert_inlined(map, 203, 87, 3, 5);
    assert_inlined(map, 204, 87, 3, 6);
    assert_inlined(map, 205, 87, 2, 13827);
    assert_inlined(map, 206, 88, 3, 10);
    assert_inlined(map, 211, 88, 3, 15);
    assert_inlined(map, 213, 90, 0, 51); /* a function of the class's own */
    assert_own(map, 215, 215);
    assert_own(map, UINT32_MAX, UINT32_MAX);
    source_map_free(map);
    /* The same in another class: its file's lines are not those of that class. */
    map = source_map_new(kotlin, "Lmarket/Sho;");
    assert_inlined(map, 87, 0, 0, 87);
    source_map_free(map);
}

TEST(pages_become_classes)
{
    static const char text[] = "SMAP\r\nhello_jsp.java\r\nJSP\r\n*S JSP\r\n*F\r\n"
                               "+ 0 hello.jsp\r\nshop/hello.jsp\r\n1 head.jspf\r\n*L\r\n"
                               "1,5:53\r\n7:58,3\r\n8,2:61,2\r\n4#1,2:65\r\n*E\r\n";
    char path[32];
    struct source_map *map = source_map_new(text, "Lorg/hello_jsp;");
    assert_non_null(map);
    assert_false(map->inlines);
    assert_int_equal(source_map_path(path, sizeof(path), map), strlen("shop/hello.jsp"));
    assert_string_equal(path, "shop/hello.jsp");
    assert_own(map, 53, 1);
    assert_own(map, 57, 5);
    assert_own(map, 58, 7);
    assert_own(map, 60, 7);
    assert_own(map, 61, 8);
    assert_own(map, 63, 9);
    assert_own(map, 64, 9);
    assert_own(map, 65, 0); /* of another file */
    assert_own(map, 52, 0);
    source_map_free(map);
}

TEST(what_says_nothing)
{
    static const char *const texts[] = {
        "",
        "SMAP",
        "SMAP\n",
        "SMAP\na\nKotlin\n",
        "smap\na\nKotlin\n*S Kotlin\n*F\n1 a\n*L\n1:1\n*E\n",
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\nA\n*L\n1#1,9:1\n*E\n", /* the class's own */
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\n",
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ x A.kt\nA\n*L\n1#1:10\n*E\n",
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\nA\n*L\n1#2:10\n*E\n", /* no such file */
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\nA\n*L\n1#1\n*E\n",
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\nA\n*L\n1#1,0:10\n*E\n",
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\nA\n*L\n1#1,16000000:10,16000000\n*E\n",
        "SMAP\na\nKotlin\n*S Kotlin\n*F\n+ 1 A.kt\nA\n*L\n99999999999#1:10\n*E\n",
        "SMAP\na\nKotlin\n*S Other\n*F\n+ 1 A.kt\nA\n*L\n1#1:10\n*E\n",
    };
    assert_null(source_map_new(NULL, "LA;"));
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        if (source_map_new(texts[i], "LA;")) {
            fail_msg("there is something in \"%s\"", texts[i]);
        }
    }
}

/* Far more than any compiler makes: told to be nothing, in little time. */
TEST(too_much)
{
    const size_t size = 4 << 20;
    char *text = malloc(size);
    assert_non_null(text);
    size_t n = (size_t)snprintf(text, size, "SMAP\na\nKotlin\n*S Kotlin\n*F\n");
    for (int i = 1; i < 3000; i++) {
        n += (size_t)snprintf(text + n, size - n, "%d a\n", i);
    }
    snprintf(text + n, size - n, "*L\n1#1:10\n*E\n");
    assert_null(source_map_new(text, "LA;"));
    n = (size_t)snprintf(text, size, "SMAP\na\nKotlin\n*S Kotlin\n*F\n1 a\n*L\n");
    for (int i = 1; i < 100000; i++) {
        n += (size_t)snprintf(text + n, size - n, "1:9\n");
    }
    assert_null(source_map_new(text, "LA;"));
    n = (size_t)snprintf(text, size, "SMAP\na\nKotlin\n*S Kotlin\n*F\n1 ");
    memset(text + n, 'a', size - n - 1);
    text[size - 1] = '\0';
    assert_null(source_map_new(text, "LA;"));
    free(text);
}

/* Damaged maps: no byte is read outside of them (sanitizers watch), and every place is one. */
TEST(damaged)
{
    uint64_t random = random_seed();
    char text[sizeof(kotlin)];
    for (int round = 0; round < 20000; round++) {
        memcpy(text, kotlin, sizeof(text));
        for (int n = (int)random_below(&random, 6); n >= 0; n--) {
            static const char bytes[] = "\n*#,:+0129SLFE a";
            text[random_below(&random, sizeof(text) - 1)] =
                bytes[random_below(&random, sizeof(bytes))];
        }
        struct source_map *map = source_map_new(text, "Lmarket/Shop;");
        for (uint32_t line = 0; map && line < 230; line++) {
            struct source_line found = source_map_find(map, line);
            assert_true(!found.inlined ||
                        (found.inlined >= &map->places[0].method &&
                         found.inlined <= &map->places[map->place_count - 1].method));
        }
        source_map_free(map);
    }
}

TEST_MAIN(NULL, NULL)
