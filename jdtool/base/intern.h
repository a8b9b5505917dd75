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

/* text: what intern_hold returned; NULL is fine. */
void intern_release(struct intern *strings, const char *text);

void intern_free(struct intern *strings);

#endif
