#include "agent/methods/source_parts.h"

#include <string.h>

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
