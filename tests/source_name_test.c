/* Names as in Kotlin, Scala, Clojure and Groovy sources. */
#include "test.h"

#include "agent/methods/source_name.h"

#include <string.h>

static char out[512];

static const char *name(enum source_language language, const char *class_name, const char *method,
                        const char *parameters)
{
    size_t n = source_name(out, sizeof(out), language,
                           &(struct source_method){class_name, method, parameters, false});
    assert_int_equal(n, strlen(out));
    return out;
}

TEST(languages_by_extension)
{
    assert_int_equal(source_language("Main.kt"), SOURCE_KOTLIN);
    assert_int_equal(source_language("build.gradle.kts"), SOURCE_KOTLIN);
    assert_int_equal(source_language("Vec.scala"), SOURCE_SCALA);
    assert_int_equal(source_language("core.clj"), SOURCE_CLOJURE);
    assert_int_equal(source_language("core.cljc"), SOURCE_CLOJURE);
    assert_int_equal(source_language("NO_SOURCE_FILE"), SOURCE_CLOJURE);
    assert_int_equal(source_language("Market.groovy"), SOURCE_GROOVY);
    assert_int_equal(source_language("build.gradle"), SOURCE_GROOVY);
    assert_int_equal(source_language("Main.java"), SOURCE_OTHER);
    assert_int_equal(source_language("kt"), SOURCE_OTHER);
    assert_int_equal(source_language(""), SOURCE_OTHER);
    assert_int_equal(source_language(NULL), SOURCE_OTHER);
}

static const struct expectation {
    enum source_language language;
    const char *class_name, *method, *parameters, *expected;
} expectations[] = {
    {SOURCE_OTHER, "a.B$C", "m$plus", "(int)", "a.B$C.m$plus(int)"},

    {SOURCE_SCALA, "a.Vec", "$plus$plus", "(int)", "a.Vec.++(int)"},
    {SOURCE_SCALA, "a.Vec$", "apply", "()", "a.Vec.apply()"},
    {SOURCE_SCALA, "a.Outer$Inner$", "size_$eq", "(int)", "a.Outer.Inner.size_=(int)"},
    {SOURCE_SCALA, "a.$colon$colon", "head", "()", "a.::.head()"},
    {SOURCE_SCALA, "a.Vec", "$anonfun$map$3", "(int)", "a.Vec.map.{lambda#3}(int)"},
    {SOURCE_SCALA, "a.Vec$", "$anonfun$map$3$adapted", "()", "a.Vec.map.{lambda#3}()"},
    {SOURCE_SCALA, "a.Vec$$anon$1", "next", "()", "a.Vec.{anon#1}.next()"},
    {SOURCE_SCALA, "a.Vec$$anonfun$map$1", "apply", "()", "a.Vec.map.{lambda#1}.apply()"},
    {SOURCE_SCALA, "a.Vec$", "copy$default$2", "()", "a.Vec.copy.{default#2}()"},
    {SOURCE_SCALA, "a.Vec", "lines$lzycompute", "()", "a.Vec.lines.{lazy}()"},
    {SOURCE_SCALA, "a.Vec$", "hash$extension", "(int)", "a.Vec.hash(int)"},
    {SOURCE_SCALA, "a.Vec", "a$Vec$$secret", "()", "a.Vec.secret()"},
    {SOURCE_SCALA, "a.Vec", "$init$", "()", "a.Vec.{init}()"},
    {SOURCE_SCALA, "a.Vec", "<init>", "()", "a.Vec.<init>()"},
    {SOURCE_SCALA, "a.Vec", "is$u0028odd", "()", "a.Vec.is(odd()"},
    {SOURCE_SCALA, "a.Vec", "is$u00zz", "()", "a.Vec.is.u00zz()"},

    {SOURCE_KOTLIN, "a.UtilKt", "greet", "(int)", "a.greet(int)"},
    {SOURCE_KOTLIN, "UtilKt", "main", "()", "main()"},
    {SOURCE_KOTLIN, "a.Kt", "main", "()", "a.Kt.main()"},
    {SOURCE_KOTLIN, "a.UtilKt$greet$1", "invoke", "()", "a.greet.{lambda#1}()"},
    {SOURCE_KOTLIN, "a.Shop$sell$1", "invokeSuspend", "()", "a.Shop.sell.{lambda#1}()"},
    {SOURCE_KOTLIN, "a.Shop$sell$1", "compare", "()", "a.Shop.sell.{object#1}.compare()"},
    {SOURCE_KOTLIN, "a.Shop$Companion", "open", "()", "a.Shop.Companion.open()"},
    {SOURCE_KOTLIN, "a.Shop", "sell$lambda$2", "()", "a.Shop.sell.{lambda#2}()"},
    {SOURCE_KOTLIN, "a.Shop", "sell$lambda-2", "()", "a.Shop.sell.{lambda#2}()"},
    {SOURCE_KOTLIN, "a.Shop", "sell$default", "()", "a.Shop.sell.{default}()"},
    {SOURCE_KOTLIN, "a.Shop", "access$sell", "()", "a.Shop.sell()"},
    {SOURCE_KOTLIN, "a.Shop", "stock$app_debug", "()", "a.Shop.stock()"},
    {SOURCE_KOTLIN, "a.Shop", "price-7GrsaN8", "()", "a.Shop.price()"},
    {SOURCE_KOTLIN, "a.Money", "plus-impl", "()", "a.Money.plus()"},
    {SOURCE_KOTLIN, "a.Money", "constructor-impl", "(long)", "a.Money.<init>(long)"},

    {SOURCE_CLOJURE, "my_app.core$valid_QMARK_", "invoke", "(x)", "my-app.core/valid?"},
    {SOURCE_CLOJURE, "my_app.core$swap_BANG_", "invokeStatic", "(x)", "my-app.core/swap!"},
    {SOURCE_CLOJURE, "my_app.core$a__GT_b", "doInvoke", "(x)", "my-app.core/a->b"},
    {SOURCE_CLOJURE, "my_app.core$go$fn__1234", "invoke", "()", "my-app.core/go/fn"},
    {SOURCE_CLOJURE, "my_app.core$go$step__12$fn__13", "invoke", "()", "my-app.core/go/step/fn"},
    {SOURCE_CLOJURE, "my_app.core.Point", "to_string", "()", "my-app.core.Point.to-string()"},
    {SOURCE_CLOJURE, "my_app.core$reify__55", "close", "()", "my-app.core/reify.close()"},
};

TEST(names_as_in_the_source)
{
    for (size_t i = 0; i < sizeof(expectations) / sizeof(*expectations); i++) {
        const struct expectation *e = &expectations[i];
        assert_string_equal(name(e->language, e->class_name, e->method, e->parameters),
                            e->expected);
    }
}

/* Whatever the parts are: no byte is read outside of them (sanitizers watch), the NUL is there. */
TEST(strange_parts)
{
    static const char *const parts[] = {"",
                                        "$",
                                        "$$",
                                        "$$$",
                                        "$u00",
                                        "-impl",
                                        "-",
                                        "$lambda",
                                        "access$",
                                        "__1",
                                        "1",
                                        "$1",
                                        "_",
                                        "_GT",
                                        "$default",
                                        "$anon",
                                        "Kt",
                                        "a.",
                                        "_closure1",
                                        "_a_closure1",
                                        "__init",
                                        "__auto__",
                                        "lambda",
                                        "a$lambda$",
                                        "$_setter_$",
                                        "a$$anonfun$",
                                        "mcI$sp",
                                        "package",
                                        "lzyINIT1",
                                        "$$anonfun$adapted$1",
                                        "Trait$Helper",
                                        "super$1",
                                        "trait$super$",
                                        "__a$get",
                                        "$anonfun$",
                                        "$u0041",
                                        "a$lambda",
                                        "\xc3\xa9$\xc3\xa9"};
    const size_t n = sizeof(parts) / sizeof(*parts);
    for (size_t i = 0; i < n * n * 4; i++) {
        name((enum source_language)(1 + i % 4), parts[i / 4 % n], parts[i / 4 / n], "()");
    }
}

TEST(short_room)
{
    const struct source_method method = {"a.\xc3\xa9", "\xe2\x82\xac", "()", false};
    const char *full = "a.\xc3\xa9.\xe2\x82\xac()";
    for (size_t room = 0; room <= 12; room++) {
        memset(out, '#', sizeof(out));
        assert_int_equal(source_name(out, room, SOURCE_KOTLIN, &method), 10);
        assert_int_equal(out[room], '#');
        if (room > 0) {
            size_t length = strlen(out);
            assert_memory_equal(out, full, length);
            /* No character is cut in two: what follows does not go on with one. */
            assert_true(((unsigned char)full[length] & 0xc0) != 0x80);
        }
    }
}

TEST_MAIN(NULL, NULL)
