/*
 * A name is a chain of parts between '$' (and the dots of the package). Each language has a
 * function that writes a class's chain and one that writes a method's; a part that is but a number
 * was made by the compiler, and shows in braces.
 */
#include "agent/source_name.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct text {
    char *out;
    size_t room;
    size_t length;
};

/* A piece of a name. */
struct part {
    const char *at;
    size_t size;
};

static struct part whole(const char *string)
{
    return (struct part){string, strlen(string)};
}

static void put(struct text *text, const char *bytes, size_t size)
{
    if (size > 0 && text->length < text->room) {
        size_t fits = text->room - text->length;
        memcpy(text->out + text->length, bytes, size < fits ? size : fits);
    }
    text->length += size;
}

static void put_string(struct text *text, const char *string)
{
    put(text, string, strlen(string));
}

static void put_part(struct text *text, struct part part)
{
    put(text, part.at, part.size);
}

/* Ends the string, at a character's end. */
static size_t finish(struct text *text)
{
    if (text->room > 0) {
        size_t end = text->length < text->room ? text->length : text->room - 1;
        if (end < text->length) {
            while (end > 0 && ((unsigned char)text->out[end] & 0xc0) == 0x80) {
                end--;
            }
        }
        text->out[end] = '\0';
    }
    return text->length;
}

static bool is(struct part part, const char *string)
{
    return part.size == strlen(string) && memcmp(part.at, string, part.size) == 0;
}

static bool starts(struct part part, const char *prefix)
{
    size_t n = strlen(prefix);
    return part.size >= n && memcmp(part.at, prefix, n) == 0;
}

static bool ends(struct part part, const char *suffix)
{
    size_t n = strlen(suffix);
    return part.size >= n && memcmp(part.at + part.size - n, suffix, n) == 0;
}

static struct part without_start(struct part part, size_t n)
{
    return (struct part){part.at + n, part.size - n};
}

static struct part without_end(struct part part, size_t n)
{
    return (struct part){part.at, part.size - n};
}

/* Where `what` first stands in the part, or its size. */
static size_t find(struct part part, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; i + n <= part.size; i++) {
        if (memcmp(part.at + i, what, n) == 0) {
            return i;
        }
    }
    return part.size;
}

static bool is_number(struct part part)
{
    for (size_t i = 0; i < part.size; i++) {
        if (part.at[i] < '0' || part.at[i] > '9') {
            return false;
        }
    }
    return part.size > 0;
}

/* Takes the next part, up to a '$', off the front of *rest. */
static struct part next_part(struct part *rest)
{
    size_t n = find(*rest, "$");
    struct part part = {rest->at, n};
    *rest = without_start(*rest, n < rest->size ? n + 1 : n);
    return part;
}

static void put_made(struct text *text, const char *what, struct part number)
{
    put_string(text, "{");
    put_string(text, what);
    if (number.size > 0) {
        put_string(text, "#");
        put_part(text, number);
    }
    put_string(text, "}");
}

/* The package of a dotted class name, with its last dot, comes off the front. */
static struct part take_package(struct part *class_name)
{
    size_t n = class_name->size;
    while (n > 0 && class_name->at[n - 1] != '.') {
        n--;
    }
    struct part package = {class_name->at, n};
    *class_name = without_start(*class_name, n);
    return package;
}

/* A token of a compiler's spelling and what it stands for. */
struct spelling {
    const char *token;
    const char *meaning;
};

static const struct spelling *spelled_at(const struct spelling *table, struct part part)
{
    for (; table->token; table++) {
        if (starts(part, table->token)) {
            return table;
        }
    }
    return NULL;
}

/* scala.reflect.NameTransformer. */
static const struct spelling scala_operators[] = {
    {"$tilde", "~"},   {"$eq", "="},      {"$less", "<"}, {"$greater", ">"}, {"$bang", "!"},
    {"$hash", "#"},    {"$percent", "%"}, {"$up", "^"},   {"$amp", "&"},     {"$bar", "|"},
    {"$times", "*"},   {"$div", "/"},     {"$plus", "+"}, {"$minus", "-"},   {"$colon", ":"},
    {"$bslash", "\\"}, {"$qmark", "?"},   {"$at", "@"},   {NULL, NULL},
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "$u005B": a printable ASCII character; others stay as they are. 0: none. */
static char scala_escape(struct part part)
{
    if (part.size < 6 || !starts(part, "$u00")) {
        return 0;
    }
    int high = hex_digit(part.at[4]);
    int low = hex_digit(part.at[5]);
    int c = high < 0 || low < 0 ? 0 : high * 16 + low;
    return (char)(c > ' ' && c < 0x7f ? c : 0);
}

/* Undoes the operators in a part into `out`, of at least its size. */
static struct part scala_decode(struct part part, char *out)
{
    size_t n = 0;
    while (part.size > 0) {
        const struct spelling *op = spelled_at(scala_operators, part);
        char escaped = scala_escape(part);
        if (op) {
            out[n++] = op->meaning[0];
            part = without_start(part, strlen(op->token));
        } else if (escaped) {
            out[n++] = escaped;
            part = without_start(part, 6);
        } else {
            out[n++] = part.at[0];
            part = without_start(part, 1);
        }
    }
    return (struct part){out, n};
}

/*
 * The parts of a class or of a local name behind each other: empty ones are an object's mark or a
 * separator, "anonfun" and "anon" begin what the compiler made.
 */
static void put_scala_chain(struct text *text, struct part rest)
{
    bool first = true;
    const char *made = NULL;
    while (rest.size > 0) {
        struct part part = next_part(&rest);
        if (part.size == 0 || is(part, "adapted") || is(part, "extension")) {
            continue;
        }
        if (is(part, "anonfun") || is(part, "anon")) {
            made = is(part, "anon") ? "anon" : "lambda";
            continue;
        }
        if (is(part, "default") || is(part, "lzycompute")) {
            made = is(part, "default") ? "default" : "lazy";
            if (rest.size > 0) {
                continue; /* its number follows */
            }
            part.size = 0;
        }
        put_string(text, first ? "" : ".");
        if (made && (part.size == 0 || is_number(part))) {
            put_made(text, made, part);
        } else {
            put_part(text, part);
        }
        first = false;
    }
}

static void put_scala(struct text *text, struct part class_name, struct part method)
{
    char decoded[1024];
    put_part(text, take_package(&class_name));
    if (class_name.size <= sizeof(decoded)) {
        class_name = scala_decode(class_name, decoded);
    }
    put_scala_chain(text, class_name);
    put_string(text, ".");
    size_t expanded = find(method, "$$"); /* pkg$Cls$$name: private, yet called from elsewhere */
    if (expanded > 0 && expanded + 2 < method.size) {
        method = without_start(method, expanded + 2);
    }
    if (method.size <= sizeof(decoded)) {
        method = scala_decode(method, decoded);
    }
    if (is(method, "$init$")) {
        put_made(text, "init", (struct part){NULL, 0});
    } else {
        put_scala_chain(text, method);
    }
}

/* "name-7GrsaN8" and "name-impl": what a function is called when its signature has inline classes.
 */
static struct part without_kotlin_hash(struct part name)
{
    enum { HASH = 7 };
    if (ends(name, "-impl") && name.size > 5) {
        return without_end(name, 5);
    }
    if (name.size > HASH + 1 && name.at[name.size - HASH - 1] == '-') {
        return without_end(name, HASH + 1);
    }
    return name;
}

static void put_kotlin_method(struct text *text, struct part method)
{
    if (is(method, "constructor-impl")) {
        put_string(text, "<init>");
        return;
    }
    if (starts(method, "access$")) {
        method = without_start(method, strlen("access$"));
    }
    size_t lambda = find(method, "$lambda");
    bool defaults = ends(method, "$default");
    put_part(text, without_kotlin_hash((struct part){method.at, find(method, "$")}));
    if (lambda < method.size) {
        struct part number = without_start(method, lambda + strlen("$lambda"));
        number = number.size > 0 ? without_start(number, 1) : number; /* "-0" or "$0" */
        put_string(text, ".");
        put_made(text, "lambda", is_number(number) ? number : (struct part){NULL, 0});
    } else if (defaults) {
        put_string(text, ".");
        put_made(text, "default", (struct part){NULL, 0});
    }
}

static bool is_kotlin_function(struct part method)
{
    return is(method, "invoke") || is(method, "invokeSuspend");
}

static void put_kotlin(struct text *text, struct part class_name, struct part method)
{
    put_part(text, take_package(&class_name));
    struct part file = {class_name.at, find(class_name, "$")};
    if (file.size > 2 && ends(file, "Kt")) { /* what stands in no class */
        next_part(&class_name);
    }
    struct part part = {NULL, 0};
    bool first = true;
    while (class_name.size > 0) {
        part = next_part(&class_name);
        if (part.size == 0) {
            continue;
        }
        put_string(text, first ? "" : ".");
        first = false;
        if (is_number(part)) {
            put_made(text, is_kotlin_function(method) ? "lambda" : "object", part);
        } else {
            put_part(text, part);
        }
    }
    if (!is_number(part) || !is_kotlin_function(method)) {
        put_string(text, first ? "" : ".");
        put_kotlin_method(text, method);
    }
}

/* clojure.lang.Compiler's CHAR_MAP. */
static const struct spelling clojure_characters[] = {
    {"_COLON_", ":"},  {"_PLUS_", "+"},        {"_GT_", ">"},           {"_LT_", "<"},
    {"_EQ_", "="},     {"_TILDE_", "~"},       {"_BANG_", "!"},         {"_CIRCA_", "@"},
    {"_SHARP_", "#"},  {"_SINGLEQUOTE_", "'"}, {"_DOUBLEQUOTE_", "\""}, {"_PERCENT_", "%"},
    {"_CARET_", "^"},  {"_AMPERSAND_", "&"},   {"_STAR_", "*"},         {"_BAR_", "|"},
    {"_LBRACE_", "{"}, {"_RBRACE_", "}"},      {"_LBRACK_", "["},       {"_RBRACK_", "]"},
    {"_SLASH_", "/"},  {"_BSLASH_", "\\"},     {"_QMARK_", "?"},        {"_DOT_", "."},
    {NULL, NULL},
};

static void put_clojure_part(struct text *text, struct part part)
{
    /* A running number stands behind functions without a name, and those inside others. */
    size_t n = part.size;
    while (n > 0 && part.at[n - 1] >= '0' && part.at[n - 1] <= '9') {
        n--;
    }
    if (n < part.size && n > 2 && part.at[n - 1] == '_' && part.at[n - 2] == '_') {
        part.size = n - 2;
    }
    while (part.size > 0) {
        const struct spelling *character = spelled_at(clojure_characters, part);
        put_string(text, character ? character->meaning : "");
        if (!character) {
            put(text, part.at[0] == '_' ? "-" : part.at, 1);
        }
        part = without_start(part, character ? strlen(character->token) : 1);
    }
}

/* Whether the method is how a function is called, rather than one with a name of its own. */
static bool is_clojure_call(struct part method)
{
    static const char *const calls[] = {"invoke", "invokeStatic", "doInvoke", "invokePrim",
                                        "applyTo"};
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        if (is(method, calls[i])) {
            return true;
        }
    }
    return false;
}

/* True: the parameters, which are all Object, are not worth telling. */
static bool put_clojure(struct text *text, struct part class_name, struct part method)
{
    bool function = find(class_name, "$") < class_name.size;
    put_clojure_part(text, next_part(&class_name));
    while (class_name.size > 0) {
        put_string(text, "/");
        put_clojure_part(text, next_part(&class_name));
    }
    if (function && is_clojure_call(method)) {
        return true;
    }
    put_string(text, ".");
    put_clojure_part(text, method);
    return false;
}

enum source_language source_language(const char *source_file)
{
    static const struct {
        const char *extension;
        enum source_language language;
    } extensions[] = {
        {".kt", SOURCE_KOTLIN}, {".kts", SOURCE_KOTLIN},  {".scala", SOURCE_SCALA},
        {".sc", SOURCE_SCALA},  {".clj", SOURCE_CLOJURE}, {".cljc", SOURCE_CLOJURE},
    };
    for (size_t i = 0; source_file && i < sizeof(extensions) / sizeof(*extensions); i++) {
        if (ends(whole(source_file), extensions[i].extension)) {
            return extensions[i].language;
        }
    }
    return SOURCE_OTHER;
}

size_t source_name(char *out, size_t room, enum source_language language, const char *class_name,
                   const char *method, const char *parameters)
{
    struct text text = {.out = out, .room = room};
    bool called = false;
    switch (language) {
    case SOURCE_KOTLIN:
        put_kotlin(&text, whole(class_name), whole(method));
        break;
    case SOURCE_SCALA:
        put_scala(&text, whole(class_name), whole(method));
        break;
    case SOURCE_CLOJURE:
        called = put_clojure(&text, whole(class_name), whole(method));
        break;
    case SOURCE_OTHER:
        put_string(&text, class_name);
        put_string(&text, ".");
        put_string(&text, method);
        break;
    }
    if (!called) {
        put_string(&text, parameters);
    }
    return finish(&text);
}
