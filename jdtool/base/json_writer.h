/*
 * Writes JSON without a tree of it in memory: commas and quotes are put where they belong.
 *
 *     json_object(json, NULL);
 *     json_text(json, "name", name);
 *     json_array(json, "times");
 *     json_uint(json, NULL, time);       an element has no key
 *     json_end(json);
 *     json_end(json);
 */
#ifndef JD_TOOL_JSON_WRITER_H
#define JD_TOOL_JSON_WRITER_H

#include "jdtool/base/packed_output.h"

#define JSON_DEPTH_MAX 32

struct json_writer {
    struct packed_output *output;
    uint32_t depth;
    bool has_elements[JSON_DEPTH_MAX]; /* by depth */
    bool has_lines[JSON_DEPTH_MAX];
    bool is_spaced; /* blanks behind ':' and ',' */
    char close[JSON_DEPTH_MAX];
};

/* What is written goes to output, which stays the caller's. */
void json_start(struct json_writer *json, struct packed_output *output);

/* Key: NULL for elements of an array. */
void json_object(struct json_writer *json, const char *key);
void json_array(struct json_writer *json, const char *key);

/* The same, each element on a line of its own: for documents that people read, too. The outermost
 * one is such a one, then, and ends with a line. */
void json_object_lines(struct json_writer *json, const char *key);
void json_array_lines(struct json_writer *json, const char *key);

void json_end(struct json_writer *json); /* of the innermost object or array */

/* text NULL: null. What is no UTF-8 becomes U+FFFD. */
void json_text(struct json_writer *json, const char *key, const char *text);
void json_text_sized(struct json_writer *json, const char *key, const char *text, size_t size);
void json_uint(struct json_writer *json, const char *key, uint64_t value);
void json_int(struct json_writer *json, const char *key, int64_t value);
void json_bool(struct json_writer *json, const char *key, bool value);
void json_null(struct json_writer *json, const char *key);

/* value / 10^places, exactly: times of nanoseconds as milliseconds. places: at most 9. */
void json_decimal(struct json_writer *json, const char *key, int64_t value, uint32_t places);

/* With so many places behind the point. NAN: null. */
void json_real(struct json_writer *json, const char *key, double value, int places);

/* An array of `count` times the same: "0", "null", "-1". */
void json_fill(struct json_writer *json, const char *key, const char *what, uint64_t count);

#endif
