/* Splits method names into their parts, and stores each method once. */
#include "test.h"

#include "jdtool/resolve/methods.h"

#include <stdio.h>

static const char *split(const char *name)
{
    static char text[256];
    struct java_name parts;
    if (!java_name_split(name, &parts)) {
        return "-";
    }
    snprintf(text, sizeof text, "%.*s|%.*s|%.*s", (int)parts.class_size, parts.class_name,
             (int)parts.method_size, parts.method, (int)parts.descriptor_size,
             parts.descriptor ? parts.descriptor : "");
    return text;
}

TEST(names_of_all_forms)
{
    assert_string_equal(split("java.util.ArrayList.add(java.lang.Object)"),
                        "java.util.ArrayList|add|(java.lang.Object)");
    assert_string_equal(split("Main.main(java.lang.String[]) [C2]"),
                        "Main|main|(java.lang.String[])");
    assert_string_equal(split("a.B.loop(int) [C2] [OSR]"), "a.B|loop|(int)");
    assert_string_equal(split("a.B.<init>()"), "a.B|<init>|()");
    assert_string_equal(split("ArrayList.add"), "ArrayList|add|");
    assert_string_equal(split("ArrayList.add [C1]"), "ArrayList|add|");
    assert_string_equal(split("Ljava/util/List;add(Ljava/lang/Object;)Z"),
                        "java/util/List|add|(Ljava/lang/Object;)Z");
    assert_string_equal(split("LMain;<clinit>()V [C1]"), "Main|<clinit>|()V");
    assert_string_equal(split("a.B$$Lambda/0x00007f8c0c000a00.run()"),
                        "a.B$$Lambda/0x00007f8c0c000a00|run|()");
    /* Scala and Kotlin have names with anything in them but . ; [ / */
    assert_string_equal(split("a.B.$colon$colon(java.lang.Object)"),
                        "a.B|$colon$colon|(java.lang.Object)");
}

TEST(what_is_no_method)
{
    static const char *const names[] = {"",  ".",   "a.",      ".a", "Interpreter", "call_stub",
                                        "L", "L;x", "Lpkg/A;", "()", "a.(int)",     "[C2]"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_string_equal(split(names[i]), "-");
    }
}

TEST(a_method_is_known_once)
{
    struct methods *methods = methods_new();
    struct module *jvm = methods_add_module(methods, MODULE_JVM, "[java 1]");
    struct module *other = methods_add_module(methods, MODULE_JVM, "[java 2]");
    char name[] = "pkg.A.m(int)";
    struct method_facts facts = {
        .kind = RESOLVED_COMPILED, .name = name, .file = "pkg/A.java", .module = jvm};
    const struct resolved_method *method = methods_of(methods, &facts);
    facts.name = "pkg.A.m(int)";
    facts.first_line = 9; /* told later: it is the same one */
    assert_ptr_equal(methods_of(methods, &facts), method);
    assert_string_equal(method->name, "pkg.A.m(int)");
    assert_string_equal(method->class_name, "pkg.A");
    assert_string_equal(method->method_name, "m");
    assert_string_equal(method->descriptor, "(int)");
    facts.kind = RESOLVED_INTERPRETED;
    const struct resolved_method *interpreted = methods_of(methods, &facts);
    assert_ptr_not_equal(interpreted, method);
    assert_ptr_equal(interpreted->class_name, method->class_name);
    assert_int_equal(interpreted->id, 1);
    facts.module = other;
    assert_ptr_not_equal(methods_of(methods, &facts), interpreted);

    facts = (struct method_facts){.kind = RESOLVED_COMPILED, .name = "Lpkg/B;m()V", .module = jvm};
    method = methods_of(methods, &facts);
    assert_string_equal(method->class_name, "pkg.B");
    assert_string_equal(method->descriptor, "()V");
    facts = (struct method_facts){.kind = RESOLVED_STUB, .name = "a.stub", .module = jvm};
    assert_null(methods_of(methods, &facts)->class_name);

    uint8_t id[20] = {1, 2, 3};
    const struct module *file = methods_file_module(methods, "/lib/a.so", id, 20);
    assert_ptr_equal(methods_file_module(methods, "/lib/a.so", id, 20), file);
    assert_ptr_not_equal(methods_file_module(methods, "/lib/a.so", NULL, 0), file);
    id[2] = 4;
    assert_ptr_not_equal(methods_file_module(methods, "/lib/a.so", id, 20), file);
    assert_int_equal(file->id, 2);
    methods_free(methods);
}

TEST_MAIN(NULL, NULL)
