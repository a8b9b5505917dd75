#include "agent/methods/source_name.h"

#include "agent/methods/source_parts.h"

#include <string.h>

/* ---- What the languages have in common ---- */

void put(struct source_text *text, const char *bytes, size_t size)
{
    if (size > 0 && text->length < text->room) {
        size_t fits = text->room - text->length;
        memcpy(text->out + text->length, bytes, size < fits ? size : fits);
    }
    text->length += size;
}

void put_string(struct source_text *text, const char *string)
{
    put(text, string, strlen(string));
}

void put_part(struct source_text *text, struct part part)
{
    put(text, part.at, part.size);
}

void put_made(struct source_text *text, const char *what, struct part number)
{
    put_string(text, "{");
    put_string(text, what);
    if (number.size > 0) {
        put_string(text, "#");
        put_part(text, number);
    }
    put_string(text, "}");
}

struct part part_of(const char *string)
{
    return (struct part){string, strlen(string)};
}

struct part part_behind(struct part part, size_t n)
{
    return (struct part){part.at + n, part.size - n};
}

struct part part_without(struct part part, size_t n)
{
    return (struct part){part.at, part.size - n};
}

bool part_is(struct part part, const char *string)
{
    return part.size == strlen(string) && memcmp(part.at, string, part.size) == 0;
}

bool part_starts(struct part part, const char *prefix)
{
    size_t n = strlen(prefix);
    return part.size >= n && memcmp(part.at, prefix, n) == 0;
}

bool part_ends(struct part part, const char *suffix)
{
    size_t n = strlen(suffix);
    return part.size >= n && memcmp(part.at + part.size - n, suffix, n) == 0;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t part_digits_at_end(struct part part)
{
    size_t n = 0;
    while (n < part.size && is_digit(part.at[part.size - n - 1])) {
        n++;
    }
    return n;
}

bool part_is_number(struct part part)
{
    return part.size > 0 && part_digits_at_end(part) == part.size;
}

size_t part_find(struct part part, const char *what)
{
    size_t n = strlen(what);
    for (size_t i = 0; i + n <= part.size; i++) {
        if (memcmp(part.at + i, what, n) == 0) {
            return i;
        }
    }
    return part.size;
}

struct part next_part(struct part *rest)
{
    size_t n = part_find(*rest, "$");
    struct part part = {rest->at, n};
    *rest = part_behind(*rest, n < rest->size ? n + 1 : n);
    return part;
}

struct part take_package(struct part *class_name)
{
    size_t n = class_name->size;
    while (n > 0 && class_name->at[n - 1] != '.') {
        n--;
    }
    struct part package = {class_name->at, n};
    *class_name = part_behind(*class_name, n);
    return package;
}

const struct spelling *spelled_at(const struct spelling *table, struct part part)
{
    for (; table->token; table++) {
        if (part_starts(part, table->token)) {
            return table;
        }
    }
    return NULL;
}

/* ---- The name ---- */

/* Ends the string, at a character's end. */
static size_t finish(struct source_text *text)
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

enum source_language source_language(const char *source_file)
{
    static const struct {
        const char *extension;
        enum source_language language;
    } extensions[] = {
        {".kt", SOURCE_KOTLIN},     {".kts", SOURCE_KOTLIN},    {".scala", SOURCE_SCALA},
        {".sc", SOURCE_SCALA},      {".clj", SOURCE_CLOJURE},   {".cljc", SOURCE_CLOJURE},
        {".groovy", SOURCE_GROOVY}, {".gradle", SOURCE_GROOVY},
    };
    for (size_t i = 0; source_file && i < sizeof(extensions) / sizeof(*extensions); i++) {
        if (part_ends(part_of(source_file), extensions[i].extension)) {
            return extensions[i].language;
        }
    }
    /* What Clojure calls that which was typed in. */
    return source_file && part_is(part_of(source_file), "NO_SOURCE_FILE") ? SOURCE_CLOJURE
                                                                          : SOURCE_OTHER;
}

static bool put_other(struct source_text *text, const struct source_method *method)
{
    put_string(text, method->class_name);
    put_string(text, ".");
    put_string(text, method->method);
    return false;
}

size_t source_name(char *out, size_t room, enum source_language language,
                   const struct source_method *method)
{
    static bool (*const languages[])(struct source_text *, const struct source_method *) = {
        [SOURCE_OTHER] = put_other,     [SOURCE_KOTLIN] = put_kotlin, [SOURCE_SCALA] = put_scala,
        [SOURCE_CLOJURE] = put_clojure, [SOURCE_GROOVY] = put_groovy,
    };
    struct source_text text = {.out = out, .room = room};
    if (!languages[language](&text, method)) {
        put_string(&text, method->parameters);
    }
    return finish(&text);
}
