/* Method names in each style, from descriptors and modified UTF-8, cut at their limits. */
#include "test.h"

#include "agent/methods/symbol_name.h"

#include <stdlib.h>
#include <string.h>

static char out[4096];

static const char *method(enum name_style style, bool normalize, const char *class_signature,
                          const char *name, const char *descriptor)
{
    size_t n =
        symbol_method_name(out, sizeof(out), style, normalize, class_signature, name, descriptor);
    assert_int_equal(n, strlen(out));
    return out;
}

static const char *java(const char *class_signature, const char *name, const char *descriptor)
{
    return method(NAMES_JAVA, false, class_signature, name, descriptor);
}

static const char *text(const char *in)
{
    size_t n = symbol_text(out, sizeof(out), in);
    assert_int_equal(n, strlen(out));
    return out;
}

TEST(three_styles)
{
    const char *class = "Lpkg/sub/Cls$Inner;";
    const char *descriptor = "(I[[Ljava/lang/String;J)V";
    assert_string_equal(java(class, "m", descriptor),
                        "pkg.sub.Cls$Inner.m(int, java.lang.String[][], long)");
    assert_string_equal(method(NAMES_SHORT, false, class, "m", descriptor), "Cls$Inner.m");
    assert_string_equal(method(NAMES_JVM, false, class, "m", descriptor),
                        "Lpkg/sub/Cls$Inner;m(I[[Ljava/lang/String;J)V");
}

TEST(every_type)
{
    assert_string_equal(java("LA;", "<init>", "()V"), "A.<init>()");
    assert_string_equal(java("LA;", "m", "(ZBCSIJFD)Z"),
                        "A.m(boolean, byte, char, short, int, long, float, double)");
    assert_string_equal(java("LA;", "m", "([ZLb/C;[D)Lb/C;"), "A.m(boolean[], b.C, double[])");
}

TEST(descriptors_that_are_none)
{
    assert_string_equal(java("LA;", "m", ""), "A.m()");
    assert_string_equal(java("LA;", "m", "(I"), "A.m(int)");
    assert_string_equal(java("LA;", "m", "(Lb/C"), "A.m(b.C)");
    assert_string_equal(java("LA;", "m", "([[["), "A.m()");
    assert_string_equal(java("LA;", "m", "(?I)V"), "A.m(?, int)");
    assert_string_equal(java("LA;", "m", "(\xff)V"), "A.m(\xef\xbf\xbd)");
    assert_string_equal(java("", "m", "()V"), ".m()");
    assert_string_equal(java("L", "m", "()V"), "L.m()");
    assert_string_equal(java(";", "m", "()V"), ";.m()");
    assert_string_equal(java("L;", "m", "()V"), ".m()");
}

TEST(hidden_classes)
{
    const char *lambda = "Lpkg/Main$$Lambda$14.0x0000000800c03000;";
    assert_string_equal(java(lambda, "apply", "()V"),
                        "pkg.Main$$Lambda$14/0x0000000800c03000.apply()");
    assert_string_equal(method(NAMES_SHORT, false, lambda, "apply", "()V"),
                        "Main$$Lambda$14/0x0000000800c03000.apply");
    assert_string_equal(method(NAMES_JVM, false, lambda, "apply", "()V"),
                        "Lpkg/Main$$Lambda$14.0x0000000800c03000;apply()V");
    /* JDK 8's VM anonymous classes, and HotSpot's own separator. */
    assert_string_equal(java("LMain$$Lambda$1/471910020;", "run", "()V"),
                        "Main$$Lambda$1/471910020.run()");
    assert_string_equal(java("La/B+0x12;", "run", "()V"), "a.B/0x12.run()");
}

TEST(normalized_names_do_not_change_from_run_to_run)
{
    static const struct {
        const char *class, *java, *jvm;
    } names[] = {
        {"Lp/M$$Lambda$14.0x0000000800c03000;", "p.M$$Lambda.m()", "Lp/M$$Lambda;m()V"},
        {"Lp/M$$Lambda.0x00007f0001c03000;", "p.M$$Lambda.m()", "Lp/M$$Lambda;m()V"},
        {"Lp/M$$Lambda$1/471910020;", "p.M$$Lambda.m()", "Lp/M$$Lambda;m()V"},
        {"Ljava/lang/invoke/LambdaForm$MH.0x1;", "java.lang.invoke.LambdaForm$MH.m()",
         "Ljava/lang/invoke/LambdaForm$MH;m()V"},
        {"Ljdk/proxy2/$Proxy17;", "jdk.proxy2.$Proxy.m()", "Ljdk/proxy2/$Proxy;m()V"},
        {"Lj/GeneratedMethodAccessor9;", "j.GeneratedMethodAccessor.m()",
         "Lj/GeneratedMethodAccessor;m()V"},
        {"Lp/Base64;", "p.Base64.m()", "Lp/Base64;m()V"},
        {"Lp/Outer$1;", "p.Outer$1.m()", "Lp/Outer$1;m()V"},
        {"L42;", "42.m()", "L42;m()V"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        assert_string_equal(method(NAMES_JAVA, true, names[i].class, "m", "()V"), names[i].java);
        assert_string_equal(method(NAMES_JVM, true, names[i].class, "m", "()V"), names[i].jvm);
    }
}

TEST(classes_and_sources)
{
    assert_int_equal(symbol_class_name(out, sizeof(out), false, "Ljava/util/Map$Entry;"),
                     strlen("java.util.Map$Entry"));
    assert_string_equal(out, "java.util.Map$Entry");
    symbol_source_path(out, sizeof(out), "Ljava/util/Map$Entry;", "Map.java");
    assert_string_equal(out, "java/util/Map.java");
    symbol_source_path(out, sizeof(out), "LMain;", "Main.java");
    assert_string_equal(out, "Main.java");
    symbol_source_path(out, sizeof(out), "Lp/Main$$Lambda$1/4711;", "Main.java");
    assert_string_equal(out, "p/Main.java");
    symbol_source_path(out, sizeof(out), "Lp/Gen;", "/src/Gen.java");
    assert_string_equal(out, "/src/Gen.java");
    symbol_source_path(out, sizeof(out), "Lp/Gen;", "a\nb.java");
    assert_string_equal(out, "p/a\\u000ab.java");
}

TEST(modified_utf8_becomes_utf8)
{
    assert_string_equal(text("plain"), "plain");
    assert_string_equal(text("gr\xc3\xbc\xc3\x9f \xe2\x82\xac"), "gr\xc3\xbc\xc3\x9f \xe2\x82\xac");
    assert_string_equal(text("\xed\xa0\xbd\xed\xb8\x80!"),
                        "\xf0\x9f\x98\x80!"); /* two surrogates */
    assert_string_equal(text("\xed\xaf\xbf\xed\xbf\xbf"), "\xf4\x8f\xbf\xbf");
    assert_string_equal(text("\xf0\x9f\x98\x80"), "\xf0\x9f\x98\x80"); /* standard UTF-8 as it is */
    assert_string_equal(text("a\xc0\x80z"), "a\\u0000z");
}

TEST(what_is_invalid_is_replaced)
{
#define R "\xef\xbf\xbd"
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"\xff", R},
        {"a\x80z", "a" R "z"},
        {"\xc3", R},
        {"\xc3(", R "("},
        {"\xe2\x82", R R},
        {"\xe2(\xac", R "(" R},
        {"\xed\xa0\xbd", R R R},                   /* a high surrogate alone */
        {"\xed\xb8\x80", R R R},                   /* a low one */
        {"\xed\xa0\xbd\xed\xa0\xbd", R R R R R R}, /* two high ones */
        {"\xed\xa0\xbd\xed\xb8", R R R R R},       /* cut */
        {"\xc1\xbf", R R},                         /* overlong */
        {"\xe0\x80\xaf", R R R},
        {"\xf0\x80\x80\xaf", R R R R},
        {"\xf4\x90\x80\x80", R R R R},
        {"\xf8\x88\x80\x80\x80", R R R R R},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_string_equal(text(cases[i].in), cases[i].out);
    }
#undef R
}

TEST(control_characters_are_spelt_out)
{
    assert_string_equal(text("a\nb\tc\x1b[0m\x7f"), "a\\u000ab\\u0009c\\u001b[0m\\u007f");
    assert_string_equal(text("\xc2\x85"), "\\u0085");
    assert_string_equal(text("\xe2\x80\xa8"), "\\u2028");
    assert_string_equal(java("La\nb;", "m\r", "()V"), "a\\u000ab.m\\u000d()");
}

TEST(a_small_buffer_is_never_overrun)
{
    const char *class = "Lp\xc3\xa4/\xed\xa0\xbd\xed\xb8\x80;";
    const char *whole = java(class, "m\n", "(I)V");
    char expected[64];
    strcpy(expected, whole);
    size_t length = strlen(expected);
    for (size_t room = 0; room <= length + 1; room++) {
        char *small = malloc(room + 1);
        assert_non_null(small);
        memset(small, '#', room + 1);
        assert_int_equal(symbol_method_name(small, room, NAMES_JAVA, false, class, "m\n", "(I)V"),
                         length);
        assert_int_equal(small[room], '#');
        if (room > 0) {
            size_t n = strlen(small);
            assert_true(n < room);
            assert_memory_equal(small, expected, n);
            assert_true((expected[n] & 0xc0) != 0x80); /* no character was cut */
        }
        free(small);
    }
}

TEST_MAIN(NULL, NULL)
