/* Strings by dense numbers, each kept once: the string tables of the export formats. */
#ifndef JD_TOOL_STRING_TABLE_H
#define JD_TOOL_STRING_TABLE_H

#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"

/* Zero one to start. */
struct string_table {
    const char **list; /* by number; valid UTF-8 */
    uint32_t count;
    uint32_t room;
    struct intern strings;
    struct hash_map numbers;
    int error; /* 0 or -ENOMEM: what came since is number 0 */
};

/* The number of a string, in the order of their first coming; NULL is "". What is no UTF-8 in it
 * becomes U+FFFD, since the formats demand it. */
uint32_t string_table_add(struct string_table *table, const char *text);

void string_table_free(struct string_table *table);

#endif
