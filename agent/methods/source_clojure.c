/*
 * Clojure. A function is a class "namespace$function", and one inside of it
 * "namespace$function$fn__7"; characters are spelt out ("_QMARK_"), and '-' is '_', so that a '_'
 * of the source comes out as '-'.
 */
#include "agent/methods/source_parts.h"

/* clojure.lang.Compiler's CHAR_MAP. */
static const struct spelling characters[] = {
    {"_COLON_", ":"},  {"_PLUS_", "+"},        {"_GT_", ">"},           {"_LT_", "<"},
    {"_EQ_", "="},     {"_TILDE_", "~"},       {"_BANG_", "!"},         {"_CIRCA_", "@"},
    {"_SHARP_", "#"},  {"_SINGLEQUOTE_", "'"}, {"_DOUBLEQUOTE_", "\""}, {"_PERCENT_", "%"},
    {"_CARET_", "^"},  {"_AMPERSAND_", "&"},   {"_STAR_", "*"},         {"_BAR_", "|"},
    {"_LBRACE_", "{"}, {"_RBRACE_", "}"},      {"_LBRACK_", "["},       {"_RBRACK_", "]"},
    {"_SLASH_", "/"},  {"_BSLASH_", "\\"},     {"_QMARK_", "?"},        {"_DOT_", "."},
    {NULL, NULL},
};

/* Running numbers stand behind functions without a name, those inside others, and "name#". */
static struct part without_numbers(struct part part)
{
    for (;;) {
        size_t digits = part_digits_at_end(part);
        size_t stem = part.size - digits;
        if (digits > 0 && stem > 2 && part.at[stem - 1] == '_' && part.at[stem - 2] == '_') {
            part.size = stem - 2;
        } else if (part_ends(part, "__auto__")) {
            part.size -= sizeof("__auto__") - 1;
        } else {
            return part;
        }
    }
}

static void put_decoded(struct source_text *text, struct part part)
{
    part = without_numbers(part);
    while (part.size > 0) {
        const struct spelling *character = spelled_at(characters, part);
        put_string(text, character ? character->meaning : "");
        if (!character) {
            put(text, part.at[0] == '_' ? "-" : part.at, 1);
        }
        part = part_behind(part, character ? part_of(character->token).size : 1);
    }
}

/* Whether the method is how a function is called, rather than one with a name of its own. */
static bool is_call(struct part method)
{
    static const char *const calls[] = {"invoke", "invokeStatic", "doInvoke", "invokePrim",
                                        "applyTo"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        if (part_is(method, calls[i])) {
            return true;
        }
    }
    return false;
}

/* Functions' parameters are all Object, and not told. */
bool put_clojure(struct source_text *text, const struct source_method *method)
{
    struct part class_name = part_of(method->class_name);
    struct part name = part_of(method->method);
    bool is_function = part_find(class_name, "$") < class_name.size;
    struct part space = next_part(&class_name);
    bool is_loader = !is_function && part_ends(space, "__init"); /* what loads a namespace */
    put_decoded(text, is_loader ? part_without(space, sizeof("__init") - 1) : space);
    while (class_name.size > 0) {
        put_string(text, "/");
        put_decoded(text, next_part(&class_name));
    }
    if (is_function && is_call(name)) {
        return true;
    }
    put_string(text, is_loader ? ".{init}." : ".");
    if (part_starts(name, "__init")) {
        put_part(text, name);
    } else {
        put_decoded(text, name);
    }
    return false;
}
