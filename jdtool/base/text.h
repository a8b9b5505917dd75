/*
 * Strings from a dump on their way out. They are anything at all, and must not move a terminal's
 * cursor or end a line early.
 */
#ifndef JD_TOOL_TEXT_H
#define JD_TOOL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the valid UTF-8 sequence that starts here, in at most `room` bytes; 0: none does. */
size_t text_utf8_size(const char *text, size_t room);

/* Whether a control character begins here, which a terminal may obey: C0, DEL, C1. */
bool text_is_control(const char *text);

static inline bool text_begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static inline bool text_ends(const char *text, const char *with)
{
    size_t size = strlen(text);
    size_t length = strlen(with);
    return size >= length && strcmp(text + size - length, with) == 0;
}

/* Whether it is valid UTF-8 (RFC 3629: no overlong forms, no surrogates). */
bool text_is_utf8(const char *string);

/* A copy in which U+FFFD stands for what is no UTF-8; the caller frees. NULL: no memory. */
char *text_mended(const char *string);

/* Prints it with control characters and invalid UTF-8 as \xNN. */
void text_print(FILE *out, const char *string);

/* The first three bytes of so many, from 1, as four characters of base64. */
void text_base64(const uint8_t *from, size_t size, char to[4]);

/* A number of bytes as people read it, 1.5KB or 20MB, in `text` of TEXT_SIZE_MAX bytes. */
#define TEXT_SIZE_MAX 32
void text_size(uint64_t bytes, char *text);

/* A weight of samples as people read it, in such a `text`: nanoseconds as "1.25 s", bytes as
 * "3.4MB"; of another unit the number alone. False: that. */
bool text_weight(uint64_t weight, const char *unit, char *text);

/* The field's names for e_machine and a record's id; "unknown" if there is none. */
const char *text_machine(uint32_t elf_mach);
const char *text_record_id(uint32_t id);

/* ---- Lists of paths ---- */

/* As strsep cuts "A:B:C", in place; "\\:" is a colon in a path. */
char *path_list_next(char **rest);

/* The list, NULL is an empty one, and "DIRECTORY/NAME" behind it; the caller frees. NULL: no
 * memory. */
char *path_list_with(const char *list, const char *directory, const char *name);

/* The next of its lines, of so many bytes; *rest is moved behind it. NULL: there are no more. */
const char *text_line(const char **rest, size_t *size);

/* Two hexadecimal digits for each byte, and an end, into text, which has room for them. */
void text_hex(const uint8_t *bytes, size_t size, char *text);

/* ---- Words ---- */

/* The words of a command line, as they come together. */

/* Zeroed: none. Freed by words_free. */
struct words {
    char **list; /* NULL behind the last */
    uint32_t count, room;
    bool failed; /* there was no memory for one */
};

/* One more; the format has one %s, for the text, or none. */
void words_add(struct words *words, const char *format, const char *text);

/* Those of a list, up to its NULL, as they are; those given. */
void words_add_list(struct words *words, const char *const *list);
#define WORDS_ADD(words, ...) words_add_list(words, (const char *const[]){__VA_ARGS__, NULL})

void words_free(struct words *words);

#endif
