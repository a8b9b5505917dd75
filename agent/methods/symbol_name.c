#include "agent/methods/symbol_name.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* What is written, and what would have been. */
struct text {
    char *out;
    size_t room;
    size_t length;
    size_t written;
};

static void put_bytes(struct text *text, const char *bytes, size_t n)
{
    /* A character that does not fit ends the writing for good, or a later, shorter one might. */
    if (text->written == text->length && text->length + n < text->room) {
        memcpy(text->out + text->length, bytes, n);
        text->written += n;
    }
    text->length += n;
}

static void put_string(struct text *text, const char *string)
{
    put_bytes(text, string, strlen(string));
}

static size_t finish(struct text *text)
{
    if (text->room > 0) {
        text->out[text->written] = '\0';
    }
    return text->length;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029;
}

static void put_char(struct text *text, uint32_t c)
{
    char bytes[8];
    size_t n = 0;
    if (is_control(c)) {
        n = (size_t)snprintf(bytes, sizeof(bytes), "\\u%04x", (unsigned)c);
    } else if (c < 0x80) {
        bytes[n++] = (char)c;
    } else if (c < 0x800) {
        bytes[n++] = (char)(0xc0 | c >> 6);
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        bytes[n++] = (char)(0xe0 | c >> 12);
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    } else {
        bytes[n++] = (char)(0xf0 | c >> 18);
        bytes[n++] = (char)(0x80 | (c >> 12 & 0x3f));
        bytes[n++] = (char)(0x80 | (c >> 6 & 0x3f));
        bytes[n++] = (char)(0x80 | (c & 0x3f));
    }
    put_bytes(text, bytes, n);
}

#define REPLACEMENT 0xfffdu

/* The `n` continuation bytes at p shifted behind `c`, or REPLACEMENT; never reads over `end`. */
static uint32_t continued(uint32_t c, const unsigned char *p, const unsigned char *end, int n)
{
    for (int i = 0; i < n; i++) {
        if (p + i >= end || (p[i] & 0xc0) != 0x80) {
            return REPLACEMENT;
        }
        c = c << 6 | (p[i] & 0x3f);
    }
    return c;
}

static bool is_high_surrogate(uint32_t c)
{
    return c >= 0xd800 && c < 0xdc00;
}

static bool is_low_surrogate(uint32_t c)
{
    return c >= 0xdc00 && c < 0xe000;
}

/* Reads one character at *at, modified or standard UTF-8, and moves *at behind it. */
static uint32_t next_char(const char **at, const char *limit)
{
    const unsigned char *p = (const unsigned char *)*at;
    const unsigned char *end = (const unsigned char *)limit;
    uint32_t c = REPLACEMENT;
    int n = 1;
    if (p[0] < 0x80) {
        c = p[0];
    } else if (p[0] >= 0xc0 && p[0] < 0xe0) {
        n = 2;
        c = continued(p[0] & 0x1f, p + 1, end, 1);
        if (c < 0x80 && c != 0) { /* C0 80 is the JVM's NUL, other overlong forms are nobody's */
            c = REPLACEMENT;
        }
    } else if (p[0] >= 0xe0 && p[0] < 0xf0) {
        n = 3;
        c = continued(p[0] & 0xf, p + 1, end, 2);
        if (is_high_surrogate(c)) {
            uint32_t low = end - p >= 6 && p[3] == 0xed ? continued(0xd, p + 4, end, 2) : 0;
            if (is_low_surrogate(low)) {
                n = 6;
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            } else {
                c = REPLACEMENT;
            }
        } else if (c < 0x800 || is_low_surrogate(c)) {
            c = REPLACEMENT;
        }
    } else if (p[0] >= 0xf0 && p[0] < 0xf5) {
        n = 4;
        c = continued(p[0] & 7, p + 1, end, 3);
        if (c < 0x10000 || c > 0x10ffff) {
            c = REPLACEMENT;
        }
    }
    *at += c == REPLACEMENT ? 1 : n;
    return c;
}

/* Puts what comes as it is, up to the first byte that wants a closer look, or `stop`. */
static const char *put_plain(struct text *text, const char *from, const char *end, char stop)
{
    const char *p = from;
    while (p < end && *p >= ' ' && *p < 0x7f && *p != stop) {
        p++;
    }
    size_t n = (size_t)(p - from);
    if (text->length + n < text->room) {
        put_bytes(text, from, n);
        return p;
    }
    for (; from < p; from++) {
        put_bytes(text, from, 1); /* as much as there is room for */
    }
    return p;
}

static void put_text(struct text *text, const char *from, const char *end)
{
    while ((from = put_plain(text, from, end, '\0')) < end) {
        put_char(text, next_char(&from, end));
    }
}

/* An internal class name as Java writes it: dots for the packages' slashes. */
static void put_dotted(struct text *text, const char *from, const char *end)
{
    while ((from = put_plain(text, from, end, '/')) < end) {
        uint32_t c = next_char(&from, end);
        put_char(text, c == '/' ? '.' : c);
    }
}

/* A class signature taken apart: its internal name and where the suffix of a hidden class starts.
 */
struct class_parts {
    const char *name;
    const char *simple; /* behind the package */
    const char *suffix; /* at its separator; == end when there is none */
    const char *end;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static struct class_parts take_apart(const char *signature, bool normalize)
{
    struct class_parts parts = {.name = signature, .end = signature + strlen(signature)};
    if (parts.end - parts.name >= 2 && parts.name[0] == 'L' && parts.end[-1] == ';') {
        parts.name++;
        parts.end--;
    }
    /*
     * Hidden classes: "pkg/Main$$Lambda.0x00007f…" to JVMTI, '+' inside HotSpot; neither can be
     * in a binary name. JDK 8 to 14 had VM anonymous classes, "pkg/Main$$Lambda$1/471910020".
     */
    parts.suffix = parts.end;
    for (const char *p = parts.name; p < parts.end; p++) {
        if (*p == '.' || *p == '+') {
            parts.suffix = p;
            break;
        }
        if (*p == '/' && is_digit(p[1])) {
            parts.suffix = p;
        } else if (*p == '/') {
            parts.suffix = parts.end;
        }
    }
    parts.simple = parts.name;
    for (const char *p = parts.name; p < parts.suffix; p++) {
        if (*p == '/') {
            parts.simple = p + 1;
        }
    }
    if (!normalize) {
        return parts;
    }
    parts.end = parts.suffix;
    const char *number = parts.end;
    while (number > parts.simple && is_digit(number[-1])) {
        number--;
    }
    static const char *const numbered[] = {"$$Lambda$", "$Proxy", "GeneratedMethodAccessor",
                                           "GeneratedConstructorAccessor",
                                           "GeneratedSerializationConstructorAccessor"};
    for (size_t i = 0; number < parts.end && i < sizeof(numbered) / sizeof(*numbered); i++) {
        size_t n = strlen(numbered[i]);
        if ((size_t)(number - parts.simple) >= n && memcmp(number - n, numbered[i], n) == 0) {
            parts.end = numbered[i][n - 1] == '$' ? number - 1 : number;
            break;
        }
    }
    parts.suffix = parts.end;
    return parts;
}

static void put_class(struct text *text, const struct class_parts *parts, const char *from)
{
    put_dotted(text, from, parts->suffix);
    if (parts->suffix < parts->end) {
        put_string(text, "/");
        put_text(text, parts->suffix + 1, parts->end);
    }
}

/* Puts the type at `p` of a descriptor as Java writes it; returns the place behind it. */
static const char *put_type(struct text *text, const char *p, const char *end)
{
    size_t dimensions = 0;
    for (; p < end && *p == '['; p++) {
        dimensions++;
    }
    if (p == end) {
        return end;
    }
    static const struct {
        char letter;
        const char *name;
    } primitives[] = {{'Z', "boolean"}, {'B', "byte"},   {'C', "char"},
                      {'S', "short"},   {'I', "int"},    {'J', "long"},
                      {'F', "float"},   {'D', "double"}, {'V', "void"}};
    const char *next = p + 1;
    if (*p == 'L') {
        const char *semicolon = memchr(p, ';', (size_t)(end - p));
        put_dotted(text, p + 1, semicolon ? semicolon : end);
        next = semicolon ? semicolon + 1 : end;
    } else {
        const char *name = NULL;
        for (size_t i = 0; i < sizeof(primitives) / sizeof(*primitives); i++) {
            if (primitives[i].letter == *p) {
                name = primitives[i].name;
            }
        }
        if (name) {
            put_string(text, name);
        } else {
            put_char(text, next_char(&p, end));
            next = p;
        }
    }
    while (dimensions-- > 0) {
        put_string(text, "[]");
    }
    return next;
}

static void put_parameters(struct text *text, const char *descriptor)
{
    put_string(text, "(");
    const char *p = descriptor[0] == '(' ? descriptor + 1 : descriptor;
    const char *end = strchr(p, ')');
    if (!end) {
        end = p + strlen(p);
    }
    for (bool first = true; p < end; first = false) {
        if (!first) {
            put_string(text, ", ");
        }
        p = put_type(text, p, end);
    }
    put_string(text, ")");
}

size_t symbol_method_name(char *out, size_t room, enum name_style style, bool normalize,
                          const char *class_signature, const char *method, const char *descriptor)
{
    struct text text = {.out = out, .room = room};
    struct class_parts parts = take_apart(class_signature, normalize);
    switch (style) {
    case NAMES_JVM:
        put_string(&text, "L");
        put_text(&text, parts.name, parts.end);
        put_string(&text, ";");
        break;
    case NAMES_SHORT:
        put_class(&text, &parts, parts.simple);
        put_string(&text, ".");
        break;
    case NAMES_JAVA:
    case NAMES_SOURCE:
        put_class(&text, &parts, parts.name);
        put_string(&text, ".");
        break;
    }
    put_text(&text, method, method + strlen(method));
    if (style == NAMES_JVM) {
        put_text(&text, descriptor, descriptor + strlen(descriptor));
    } else if (style != NAMES_SHORT) {
        put_parameters(&text, descriptor);
    }
    return finish(&text);
}

size_t symbol_class_name(char *out, size_t room, bool normalize, const char *class_signature)
{
    struct text text = {.out = out, .room = room};
    struct class_parts parts = take_apart(class_signature, normalize);
    put_class(&text, &parts, parts.name);
    return finish(&text);
}

size_t symbol_source_path(char *out, size_t room, const char *class_signature,
                          const char *source_file)
{
    struct text text = {.out = out, .room = room};
    struct class_parts parts = take_apart(class_signature, false);
    if (source_file[0] != '/') { /* some generators put the whole path there */
        put_text(&text, parts.name, parts.simple);
    }
    put_text(&text, source_file, source_file + strlen(source_file));
    return finish(&text);
}

size_t symbol_text(char *out, size_t room, const char *text_in)
{
    struct text text = {.out = out, .room = room};
    put_text(&text, text_in, text_in + strlen(text_in));
    return finish(&text);
}
