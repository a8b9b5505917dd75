/*
 * One copy of each string, so that equal strings have equal addresses.
 *
 *     intern           the copy lives until intern_free
 *     intern_hold      until it was released as often as it was held
 *     intern_release
 */
#ifndef JD_TOOL_INTERN_H
#define JD_TOOL_INTERN_H

#include <stdint.h>

/* Zero one to start. */
struct intern {
    struct intern_string **slots;
    uint32_t count;
    uint32_t room;
};

/* The copy; NULL: no memory. */
const char *intern(struct intern *strings, const char *text);
const char *intern_hold(struct intern *strings, const char *text);

/* As intern; what is no UTF-8 in the text becomes U+FFFD, which export formats demand. */
const char *intern_utf8(struct intern *strings, const char *text);

/* text: what intern_hold returned; NULL is fine. */
void intern_release(struct intern *strings, const char *text);

void intern_free(struct intern *strings);

/* Strings by dense numbers: the string tables of the export formats. Zero one to start. */
struct string_table {
    const char **list; /* by number; valid UTF-8 */
    uint32_t count;
    uint32_t room;
    struct intern strings;
    int error; /* 0 or -ENOMEM: what came since is number 0 */
};

/* The number of a string, in the order of their first coming; NULL is "". */
uint32_t string_table_add(struct string_table *table, const char *text);

void string_table_free(struct string_table *table);

#endif
