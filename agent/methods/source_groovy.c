/*
 * Groovy. A closure is a class "Outer$_method_closure2", one inside of it
 * "Outer$_method_closure2$_closure3"; a trait's methods are in "Trait$Trait$Helper".
 */
#include "agent/methods/source_parts.h"

static const struct part no_number = {"", 0};

/*
 * "_method_closure2" and "_closure2", also of "lambda": puts "method.{closure#2}". False: it is
 * none.
 */
static bool put_closure(struct source_text *text, struct part part)
{
    static const char *const kinds[] = {"_closure", "_lambda"};
    struct part number = part_behind(part, part.size - part_digits_at_end(part));
    struct part stem = part_without(part, number.size);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && number.size > 0; i++) {
        if (!part_starts(part, "_") || !part_ends(stem, kinds[i])) {
            continue;
        }
        struct part method = part_without(stem, part_of(kinds[i]).size);
        method = part_behind(method, method.size > 0 ? 1 : 0); /* its '_' */
        if (part_is(method, "_clinit_")) {
            method = part_of("<clinit>");
        }
        put_part(text, method);
        put_string(text, method.size > 0 ? "." : "");
        put_made(text, kinds[i] + 1, number);
        return true;
    }
    return false;
}

/* True: the class is a closure. */
static bool put_class(struct source_text *text, struct part class_name)
{
    bool is_closure = false;
    put_part(text, next_part(&class_name));
    while (class_name.size > 0) {
        struct part part = next_part(&class_name);
        if (part_is(part, "Trait") && part_starts(class_name, "Helper")) {
            next_part(&class_name);
            continue;
        }
        put_string(text, ".");
        is_closure = put_closure(text, part);
        if (part_is_number(part)) {
            put_made(text, "anon", part);
        } else if (!is_closure) {
            put_part(text, part);
        }
    }
    return is_closure;
}

static void put_method(struct source_text *text, struct part method)
{
    static const char trait_super[] = "trait$super$";
    size_t at = part_find(method, trait_super);
    size_t field = part_find(method, "__");
    if (part_is(method, "$init$")) {
        put_made(text, "init", no_number);
    } else if (part_is(method, "$static$init$")) {
        put_made(text, "static init", no_number);
    } else if (part_starts(method, "super$")) { /* "super$1$toString" */
        next_part(&method);
        next_part(&method);
        put_string(text, "super.");
        put_part(text, method);
    } else if (at < method.size) { /* "pkg_Traittrait$super$name" */
        put_string(text, "super.");
        put_part(text, part_behind(method, at + sizeof(trait_super) - 1));
    } else if (field < method.size && (part_ends(method, "$get") || part_ends(method, "$set"))) {
        /* "pkg_Trait__field$get" */
        put_part(text, part_without(part_behind(method, field + 2), 4));
        put_string(text, part_ends(method, "$get") ? ".{get}" : ".{set}");
    } else {
        put_part(text, method);
    }
}

bool put_groovy(struct source_text *text, const struct source_method *method)
{
    struct part class_name = part_of(method->class_name);
    struct part name = part_of(method->method);
    put_part(text, take_package(&class_name));
    bool is_closure = put_class(text, class_name);
    if (!is_closure || !(part_is(name, "doCall") || part_is(name, "call"))) {
        put_string(text, ".");
        put_method(text, name);
    }
    return false;
}
