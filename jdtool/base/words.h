/* The words of a command line, as they come together. */
#ifndef JD_TOOL_WORDS_H
#define JD_TOOL_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: none. Freed by words_free. */
struct words {
    char **list; /* NULL behind the last */
    uint32_t count, room;
    bool failed; /* there was no memory for one */
};

/* One more; the format has one %s, for the text, or none. */
void words_add(struct words *words, const char *format, const char *text);
void words_free(struct words *words);

#endif
