/*
 * What the languages of names=source have in common: a name read part by part, and the text that is
 * written (source_name.c). For its one file a language.
 */
#ifndef JD_AGENT_SOURCE_PARTS_H
#define JD_AGENT_SOURCE_PARTS_H

#include "agent/methods/source_name.h"

#include <stdbool.h>
#include <stddef.h>

/* What is written; `length` also counts what there was no room for. */
struct source_text {
    char *out;
    size_t room;
    size_t length;
};

/* A piece of a name; not NUL-terminated. */
struct part {
    const char *at;
    size_t size;
};

void put(struct source_text *text, const char *bytes, size_t size);
void put_string(struct source_text *text, const char *string);
void put_part(struct source_text *text, struct part part);

/* Something that a compiler made: "{lambda#3}", or "{lambda}" where the number is empty. */
void put_made(struct source_text *text, const char *what, struct part number);

struct part part_of(const char *string);
struct part part_behind(struct part part, size_t n);  /* without its first n bytes */
struct part part_without(struct part part, size_t n); /* without its last n bytes */
bool part_is(struct part part, const char *string);
bool part_starts(struct part part, const char *prefix);
bool part_ends(struct part part, const char *suffix);
bool part_is_number(struct part part);

/* Where `what` first stands in the part, or its size. */
size_t part_find(struct part part, const char *what);

/* How many digits the part ends with. */
size_t part_digits_at_end(struct part part);

/* Takes the next part, up to a '$', off the front of *rest. */
struct part next_part(struct part *rest);

/* Takes the package, with its last dot, off the front of a dotted class name. */
struct part take_package(struct part *class_name);

/* A token of a compiler's spelling and what it stands for; a table ends with a NULL token. */
struct spelling {
    const char *token;
    const char *meaning;
};

/* The token that the part starts with, or NULL. */
const struct spelling *spelled_at(const struct spelling *table, struct part part);

/* The languages. True: the parameters are not worth telling. */
bool put_kotlin(struct source_text *text, const struct source_method *method);
bool put_scala(struct source_text *text, const struct source_method *method);
bool put_clojure(struct source_text *text, const struct source_method *method);
bool put_groovy(struct source_text *text, const struct source_method *method);

#endif
