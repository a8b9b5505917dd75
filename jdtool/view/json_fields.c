#include "jdtool/view/json_fields.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

static int hexadecimal(const char *at)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdef";
        const char *found = at[i] ? strchr(digits, at[i] | 0x20) : NULL;
        if (!found) {
            return -1;
        }
        value = value * 16 + (int)(found - digits);
    }
    return value;
}

/* Appends a character as UTF-8; false: it does not fit. */
static bool put_character(uint32_t c, char *value, size_t room, size_t *size)
{
    char bytes[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (n == 1) {
        bytes[0] = (char)c;
    } else {
        for (size_t i = n; i-- > 1; c >>= 6) {
            bytes[i] = (char)(0x80 | (c & 0x3f));
        }
        bytes[0] = (char)((0xf00 >> n & 0xff) | c);
    }
    if (*size + n >= room) {
        return false;
    }
    memcpy(value + *size, bytes, n);
    *size += n;
    return true;
}

/* A \ and what follows it; returns what is behind, NULL: it is wrong or does not fit. */
static const char *take_escape(const char *at, char *value, size_t room, size_t *size)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *found = at[1] ? strchr(from, at[1]) : NULL;
    if (found) {
        return put_character((unsigned char)to[found - from], value, room, size) ? at + 2 : NULL;
    }
    int c = at[1] == 'u' ? hexadecimal(at + 2) : -1;
    if (c <= 0) {
        return NULL;
    }
    at += 6;
    if (c >= 0xd800 && c < 0xdc00 && at[0] == '\\' && at[1] == 'u') {
        int low = hexadecimal(at + 2);
        if (low < 0xdc00 || low >= 0xe000) {
            return NULL;
        }
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        at += 6;
    }
    return put_character((uint32_t)c, value, room, size) ? at : NULL;
}

/* A string, into value; returns what is behind it, NULL: it is none or does not fit. */
static const char *take_string(const char *at, char *value, size_t room)
{
    size_t size = 0;
    if (*at != '"') {
        return NULL;
    }
    at++;
    while (at && *at && *at != '"') {
        if (*at == '\\') {
            at = take_escape(at, value, room, &size);
        } else if (size + 1 < room) {
            value[size++] = *at++;
        } else {
            return NULL;
        }
    }
    if (!at || *at != '"') {
        return NULL;
    }
    value[size] = '\0';
    return at + 1;
}

/* Behind a value; NULL: it is wrong, or an object or array. */
static const char *skip_value(const char *at)
{
    if (*at == '"') {
        for (at++; *at && *at != '"'; at++) {
            at += *at == '\\' && at[1];
        }
        return *at ? at + 1 : NULL;
    }
    size_t size = strcspn(at, ",}]{[ \t\r\n");
    return size > 0 ? at + size : NULL;
}

/* Where a field's value begins; NULL: there is none of that name. */
static const char *find(const char *object, const char *key)
{
    char name[64];
    const char *at = skip_blanks(object);
    if (*at != '{') {
        return NULL;
    }
    at = skip_blanks(at + 1);
    while (*at == '"') {
        const char *behind = take_string(at, name, sizeof name);
        if (!behind) { /* a longer name than any that is asked for */
            name[0] = '\0';
            behind = skip_value(at);
        }
        at = behind ? skip_blanks(behind) : "";
        if (*at != ':') {
            return NULL;
        }
        at = skip_blanks(at + 1);
        if (strcmp(name, key) == 0) {
            return at;
        }
        behind = skip_value(at);
        at = behind ? skip_blanks(behind) : "";
        at = *at == ',' ? skip_blanks(at + 1) : at;
    }
    return NULL;
}

bool json_field_text(const char *object, const char *key, char *value, size_t room)
{
    const char *at = find(object, key);
    return at && take_string(at, value, room);
}

bool json_field_is_true(const char *object, const char *key)
{
    const char *at = find(object, key);
    return at && strncmp(at, "true", 4) == 0;
}
