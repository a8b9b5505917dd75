/*
 * Scala 2.12 to 3. Operators and other characters are spelt out ("$plus", "$u0020"), and '$' also
 * parts names from each other, so that "$plus" in "$anonfun$plus$1" is no operator but a method
 * called plus. What tells them apart: an operator's own '$' stands where a name begins, behind
 * another operator or behind '_' ("size_$eq"), and no letter follows its token.
 */
#include "agent/methods/source_parts.h"

/* scala.reflect.NameTransformer. */
static const struct spelling operators[] = {
    {"$tilde", "~"},   {"$eq", "="},      {"$less", "<"}, {"$greater", ">"}, {"$bang", "!"},
    {"$hash", "#"},    {"$percent", "%"}, {"$up", "^"},   {"$amp", "&"},     {"$bar", "|"},
    {"$times", "*"},   {"$div", "/"},     {"$plus", "+"}, {"$minus", "-"},   {"$colon", ":"},
    {"$bslash", "\\"}, {"$qmark", "?"},   {"$at", "@"},   {NULL, NULL},
};

static const struct part no_number = {"", 0};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "$u005B": an ASCII character that can be seen, or a blank; others stay as they are. 0: none. */
static char escaped_at(struct part part)
{
    if (part.size < 6 || !part_starts(part, "$u00")) {
        return 0;
    }
    int high = hex_digit(part.at[4]);
    int low = hex_digit(part.at[5]);
    int c = high < 0 || low < 0 ? 0 : high * 16 + low;
    return (char)(c >= ' ' && c < 0x7f && c != '$' ? c : 0);
}

/* Undoes the spelling of a name into `out`, of at least its size; the '$' that part names stay. */
static struct part decode(struct part name, char *out)
{
    static const char constructor[] = "$lessinit$greater";
    size_t n = 0;
    bool fresh = true;   /* an operator may begin here */
    bool quoted = false; /* a name in backticks, in which one may begin anywhere */
    while (name.size > 0) {
        const struct spelling *op = fresh || quoted ? spelled_at(operators, name) : NULL;
        struct part behind = op ? part_behind(name, part_of(op->token).size) : name;
        if (op && behind.size > 0 && behind.at[0] != '$' && !quoted) {
            op = NULL; /* the beginning of a word */
        }
        char escaped = escaped_at(name);
        if (part_starts(name, constructor)) {
            struct part init = part_of("<init>");
            for (size_t i = 0; i < init.size; i++) {
                out[n++] = init.at[i];
            }
            name = part_behind(name, sizeof(constructor) - 1);
        } else if (op) {
            out[n++] = op->meaning[0];
            name = behind;
            fresh = true;
        } else if (escaped) {
            out[n++] = escaped;
            name = part_behind(name, 6);
            quoted = true;
        } else {
            fresh = name.at[0] == '$' || name.at[0] == '_';
            quoted = quoted && name.at[0] != '$';
            out[n++] = name.at[0];
            name = part_behind(name, 1);
        }
    }
    return (struct part){out, n};
}

/* "mcII$sp", behind its '$': the same for primitive types. Takes the "sp" off the front of *rest.
 */
static bool is_specialization(struct part part, struct part *rest)
{
    struct part behind = *rest;
    if (!part_starts(part, "mc") || !part_is(next_part(&behind), "sp")) {
        return false;
    }
    *rest = behind;
    return true;
}

/* What the compiler made, by the part that says so; its number follows, if there is one. */
static const char *made_by(struct part part)
{
    static const struct spelling kinds[] = {
        {"anonfun", "lambda"},  {"anon", "anon"},    {"default", "default"},
        {"lzycompute", "lazy"}, {"lzyINIT", "lazy"}, {NULL, NULL},
    };
    const struct spelling *kind = spelled_at(kinds, part);
    size_t rest = kind ? part.size - part_of(kind->token).size : 1;
    bool numbered =
        kind && part_starts(part, "lzyINIT"); /* "lzyINIT1", whose number says nothing */
    return kind && (rest == 0 || numbered) ? kind->meaning : NULL;
}

/*
 * The parts of a decoded name behind each other. Empty ones are an object's mark or a separator. A
 * lambda's number stands behind the method that it is in: "anonfun$map$3"; `made` says that this
 * has begun already.
 */
static void put_chain(struct source_text *text, struct part rest, const char *made, bool first)
{
    while (rest.size > 0) {
        struct part part = next_part(&rest);
        if (part.size == 0 || part_is(part, "adapted") || part_is(part, "extension") ||
            is_specialization(part, &rest)) {
            continue;
        }
        const char *kind = made_by(part);
        bool number_follows =
            rest.size > 0 && part_is_number((struct part){rest.at, part_find(rest, "$")});
        if (kind) {
            made = kind;
            if (number_follows || part_starts(part, "anon")) {
                continue;
            }
            part = no_number;
        }
        put_string(text, first ? "" : ".");
        first = false;
        if (part.size == 0 || part_is_number(part)) {
            put_made(text, made ? made : "local", part);
            made = NULL;
        } else {
            put_part(text, part);
        }
    }
}

/* The class's chain without what only holds the definitions of a package or, in Scala 3, of a file.
 */
static struct part without_package_object(struct part class_name)
{
    struct part rest = class_name;
    if (part_is(next_part(&rest), "package")) {
        return rest;
    }
    return part_is(next_part(&rest), "package") ? rest : class_name;
}

/* "pkg$Cls$$name", private yet called from elsewhere, and "pkg$Trait$_setter_$name". */
static struct part without_expansion(struct part method)
{
    static const char setter[] = "$_setter_$";
    size_t at = part_find(method, setter);
    if (at < method.size) {
        return part_behind(method, at + sizeof(setter) - 1);
    }
    at = part_find(method, "$$");
    if (at == 0 || at + 2 >= method.size || part_starts(part_behind(method, at), "$$anonfun")) {
        return method;
    }
    return part_behind(method, at + 2);
}

bool put_scala(struct source_text *text, const struct source_method *method)
{
    static const char lambda[] = "$anonfun$";
    char decoded[1024];
    struct part class_name = part_of(method->class_name);
    struct part name = part_of(method->method);
    put_part(text, take_package(&class_name));
    class_name = without_package_object(class_name);
    if (class_name.size <= sizeof(decoded)) {
        class_name = decode(class_name, decoded);
    }
    put_chain(text, class_name, NULL, true);
    put_string(text, class_name.size > 0 ? "." : "");
    if (part_is(name, "$init$")) {
        put_made(text, "init", no_number);
        return false;
    }
    if (part_is(name, "$deserializeLambda$")) {
        put_made(text, "deserializeLambda", no_number);
        return false;
    }
    bool is_lambda = part_starts(name, lambda);
    name = without_expansion(is_lambda ? part_behind(name, sizeof(lambda) - 1) : name);
    if (name.size <= sizeof(decoded)) {
        name = decode(name, decoded);
    }
    put_chain(text, name, is_lambda ? "lambda" : NULL, true);
    return false;
}
