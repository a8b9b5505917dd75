/*
 * Kotlin. What stands in no class is in one that is named after the file ("UtilKt", or
 * "CollectionsKt__IterablesKt" where a class is made of several). A function inside of another is a
 * private static method "outer$inner"; a name with a '$' that is not private and static has what
 * keeps modules apart behind it ("restock$app_debug").
 */
#include "agent/methods/source_parts.h"

static const struct part no_number = {"", 0};

/* "name-7GrsaN8" and "name-impl": what a function is called when its signature has inline classes.
 */
static struct part without_hash(struct part name)
{
    enum { HASH = 7 };
    if (part_ends(name, "-impl") && name.size > 5) {
        return part_without(name, 5);
    }
    if (part_ends(name, "-impl0") && name.size > 6) {
        return part_without(name, 6);
    }
    if (name.size <= HASH + 1 || name.at[name.size - HASH - 1] != '-') {
        return name;
    }
    /* Base64; a word of small letters is rather one that the user wrote. */
    for (size_t i = name.size - HASH; i < name.size; i++) {
        if (name.at[i] < 'a' || name.at[i] > 'z') {
            return part_without(name, HASH + 1);
        }
    }
    return name;
}

/* What stands behind a name's first '$': lambdas, functions inside, defaults, a module's name. */
static void put_inner(struct source_text *text, struct part rest, bool is_local)
{
    bool in_lambda = false;
    while (rest.size > 0) {
        struct part part = next_part(&rest);
        if (part_is(part, "lambda")) {
            in_lambda = true;
            if (rest.size > 0 && part_is_number((struct part){rest.at, part_find(rest, "$")})) {
                continue;
            }
            part = no_number;
        } else if (part_starts(part, "lambda-")) { /* before Kotlin 2.0 */
            in_lambda = true;
            part = part_behind(part, sizeof("lambda-") - 1);
        }
        if (in_lambda && (part.size == 0 || part_is_number(part))) {
            put_string(text, ".");
            put_made(text, "lambda", part);
        } else if (part_is(part, "default")) {
            put_string(text, ".");
            put_made(text, "default", no_number);
        } else if (is_local && part.size > 0) {
            put_string(text, ".");
            put_part(text, part);
            in_lambda = false;
        }
    }
}

static void put_method(struct source_text *text, struct part method, bool is_local)
{
    static const struct spelling made[] = {
        {"constructor-impl", "<init>"},
        {"unbox-impl", "{unbox}"},
        {"box-impl", "{box}"},
        {"$values", "{values}"},
        {NULL, NULL},
    };
    const struct spelling *known = spelled_at(made, method);
    if (known && part_is(method, known->token)) {
        put_string(text, known->meaning);
        return;
    }
    if (part_starts(method, "access$")) {
        method = part_behind(method, sizeof("access$") - 1);
    }
    if (part_starts(method, "$")) { /* somebody else's spelling */
        put_part(text, method);
        return;
    }
    struct part rest = method;
    struct part name = without_hash(next_part(&rest));
    if (part_ends(name, "_delegate") && part_starts(rest, "lambda")) { /* by lazy { … } */
        name = part_without(name, sizeof("_delegate") - 1);
    }
    put_part(text, name);
    put_inner(text, rest, is_local);
}

/* How Kotlin's own function types and coroutines are called. */
static bool is_call(struct part method)
{
    return part_is(method, "invoke") || part_is(method, "invokeSuspend");
}

bool put_kotlin(struct source_text *text, const struct source_method *method)
{
    struct part class_name = part_of(method->class_name);
    struct part name = part_of(method->method);
    put_part(text, take_package(&class_name));
    struct part file = {class_name.at, part_find(class_name, "$")};
    if (file.size > 2 && part_ends(file, "Kt")) { /* what stands in no class */
        next_part(&class_name);
    }
    struct part part = {"", 0};
    bool first = true;
    while (class_name.size > 0) {
        part = next_part(&class_name);
        if (part.size == 0 || part_is(part, "inlined") || part_is(part, "DefaultImpls")) {
            continue;
        }
        put_string(text, first ? "" : ".");
        first = false;
        if (part_is_number(part)) {
            put_made(text, is_call(name) ? "lambda" : "object", part);
        } else {
            put_part(text, part);
        }
    }
    if (!part_is_number(part) || !is_call(name)) {
        put_string(text, first ? "" : ".");
        put_method(text, name, method->is_private_static);
    }
    return false;
}
