/* One copy of each string, so that equal strings have equal addresses. */
#ifndef JD_TOOL_INTERN_H
#define JD_TOOL_INTERN_H

#include <stdint.h>

/* Zero one to start. */
struct intern {
    struct intern_string **slots;
    uint32_t count;
    uint32_t room;
};

/* The copy, which lives until intern_free; NULL: no memory. */
const char *intern(struct intern *strings, const char *text);
void intern_free(struct intern *strings);

#endif
