/* Reads single fields out of a JSON object: what a viewer sends. */
#ifndef JD_TOOL_JSON_FIELDS_H
#define JD_TOOL_JSON_FIELDS_H

#include <stdbool.h>
#include <stddef.h>

/* The text of a field that is a string, into `value`, with its escapes resolved. False: the object
 * is none, or has no such field, or its text does not fit. */
bool json_field_text(const char *object, const char *key, char *value, size_t room);

/* Whether a field is true. */
bool json_field_is_true(const char *object, const char *key);

#endif
