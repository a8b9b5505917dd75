#include "jdtool/base/json_writer.h"

#include "jdtool/base/text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

void json_start(struct json_writer *json, struct packed_output *output)
{
    *json = (struct json_writer){.output = output};
}

/* How many bytes at its beginning need no look each: eight at a time, none of which is beyond
 * ASCII, below a blank, a quote or a backslash. */
static size_t json_plain(const char *text, size_t size)
{
    const uint64_t each = UINT64_C(0x0101010101010101);
    size_t plain = 0;
    for (uint64_t part; size - plain >= sizeof part; plain += sizeof part) {
        memcpy(&part, text + plain, sizeof part);
        uint64_t quotes = part ^ each * '"';
        uint64_t slashes = part ^ each * '\\';
        if ((part | (part - each * ' ') | (quotes - each) | (slashes - each)) & each * 0x80) {
            break;
        }
    }
    return plain;
}

static void put_quoted(struct json_writer *json, const char *text, size_t size)
{
    packed_output_put(json->output, "\"", 1);
    size_t plain = 0; /* from here on nothing was put yet */
    for (size_t at = 0; at < size;) {
        unsigned char c = (unsigned char)text[at];
        size_t length = c < 0x80 ? 1 : text_utf8_size(text + at, size - at);
        if (c >= 0x20 && c != '"' && c != '\\' && length > 0) {
            at += length;
            at += json_plain(text + at, size - at);
            continue;
        }
        packed_output_put(json->output, text + plain, at - plain);
        if (length == 0) {
            packed_output_put(json->output, "\xef\xbf\xbd", 3);
        } else if (c == '\n') {
            packed_output_put(json->output, "\\n", 2);
        } else if (c < 0x20) {
            packed_output_printf(json->output, "\\u%04x", c);
        } else {
            packed_output_put(json->output, c == '"' ? "\\\"" : "\\\\", 2);
        }
        plain = ++at;
    }
    packed_output_put(json->output, text + plain, size - plain);
    packed_output_put(json->output, "\"", 1);
}

static void put_line(struct json_writer *json, uint32_t depth)
{
    packed_output_printf(json->output, "\n%*s", 2 * (int)depth, "");
}

static void put_start(struct json_writer *json, const char *key)
{
    bool is_first = !json->has_elements[json->depth];
    json->has_elements[json->depth] = true;
    if (!is_first) {
        packed_output_put(json->output, ",", 1);
    }
    if (json->has_lines[json->depth]) {
        put_line(json, json->depth);
    } else if (json->is_spaced) {
        packed_output_text(json->output, is_first ? "" : " ");
    } else if (key && json->depth <= 2) {
        packed_output_put(json->output, "\n", 1); /* so that an editor can show it */
    }
    if (key) {
        put_quoted(json, key, strlen(key));
        packed_output_text(json->output, json->is_spaced ? ": " : ":");
    }
}

static void nest(struct json_writer *json, const char *key, const char *open, char close,
                 bool has_lines)
{
    put_start(json, key);
    if (json->depth + 1 >= JSON_DEPTH_MAX) {
        packed_output_fail(json->output, -EOVERFLOW);
        return;
    }
    packed_output_put(json->output, open, 1);
    json->close[json->depth] = close;
    json->has_elements[++json->depth] = false;
    json->has_lines[json->depth] = has_lines;
    json->is_spaced |= has_lines;
}

void json_object(struct json_writer *json, const char *key)
{
    nest(json, key, "{", '}', false);
}

void json_object_lines(struct json_writer *json, const char *key)
{
    nest(json, key, "{", '}', true);
}

void json_array(struct json_writer *json, const char *key)
{
    nest(json, key, "[", ']', false);
}

void json_array_lines(struct json_writer *json, const char *key)
{
    nest(json, key, "[", ']', true);
}

void json_end(struct json_writer *json)
{
    if (json->depth == 0) {
        packed_output_fail(json->output, -EINVAL);
        return;
    }
    bool has_lines = json->has_lines[json->depth--];
    if (has_lines) {
        put_line(json, json->depth);
    }
    packed_output_put(json->output, &json->close[json->depth], 1);
    if (has_lines && json->depth == 0) {
        packed_output_put(json->output, "\n", 1);
    }
}

void json_text_sized(struct json_writer *json, const char *key, const char *text, size_t size)
{
    put_start(json, key);
    put_quoted(json, text, size);
}

void json_text(struct json_writer *json, const char *key, const char *text)
{
    if (text) {
        json_text_sized(json, key, text, strlen(text));
    } else {
        json_null(json, key);
    }
}

/* Digits of a number, with at least `least` of them, ending before `end`; returns their start. */
static char *digits(uint64_t value, uint32_t least, char *end)
{
    do {
        *--end = (char)('0' + value % 10);
        value /= 10;
        least -= least > 0;
    } while (value || least);
    return end;
}

static void put_number(struct json_writer *json, const char *key, bool negative, uint64_t value)
{
    char text[24];
    char *end = text + sizeof text;
    char *start = digits(value, 1, end);
    if (negative) {
        *--start = '-';
    }
    put_start(json, key);
    packed_output_put(json->output, start, (size_t)(end - start));
}

static uint64_t magnitude(int64_t value)
{
    return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void json_uint(struct json_writer *json, const char *key, uint64_t value)
{
    put_number(json, key, false, value);
}

void json_int(struct json_writer *json, const char *key, int64_t value)
{
    put_number(json, key, value < 0, magnitude(value));
}

void json_bool(struct json_writer *json, const char *key, bool value)
{
    put_start(json, key);
    packed_output_text(json->output, value ? "true" : "false");
}

void json_null(struct json_writer *json, const char *key)
{
    put_start(json, key);
    packed_output_put(json->output, "null", 4);
}

void json_decimal(struct json_writer *json, const char *key, int64_t value, uint32_t places)
{
    char text[48];
    char *end = text + sizeof text;
    char *point = digits(magnitude(value), places + 1, end); /* a digit before the point */
    size_t count = (size_t)(end - point);
    memmove(point - 1, point, count - places);
    point--;
    point[count - places] = '.';
    /* What is not needed behind the point goes, and so does the point. */
    while (end[-1] == '0') {
        end--;
    }
    end -= end[-1] == '.';
    if (value < 0) {
        *--point = '-';
    }
    put_start(json, key);
    packed_output_put(json->output, point, (size_t)(end - point));
}

void json_real(struct json_writer *json, const char *key, double value, int places)
{
    if (isnan(value)) {
        json_null(json, key);
    } else {
        put_start(json, key);
        packed_output_printf(json->output, "%.*f", places, value);
    }
}

void json_fill(struct json_writer *json, const char *key, const char *what, uint64_t count)
{
    json_array(json, key);
    size_t size = strlen(what);
    for (uint64_t i = 0; i < count; i++) {
        put_start(json, NULL);
        packed_output_put(json->output, what, size);
    }
    json_end(json);
}
