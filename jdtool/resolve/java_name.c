#include "jdtool/resolve/java_name.h"

#include <string.h>

/* Behind what belongs to the name: the agent's tier=on puts " [C1]", " [C2]", " [OSR]" there. */
static const char *end_of(const char *from)
{
    const char *end = from + strlen(from);
    while (end - from > 4 && end[-1] == ']') {
        const char *start = end - 1;
        while (start > from && *start != '[') {
            start--;
        }
        if (start <= from || start[-1] != ' ') {
            break;
        }
        end = start - 1;
    }
    return end;
}

/* Lpkg/Cls;m(I)V */
static bool split_jvm(const char *name, const char *end, struct java_name *out)
{
    const char *semicolon = memchr(name, ';', (size_t)(end - name));
    const char *open = semicolon ? memchr(semicolon, '(', (size_t)(end - semicolon)) : NULL;
    if (name[0] != 'L' || !semicolon) {
        return false;
    }
    const char *method_end = open ? open : end;
    *out = (struct java_name){.class_name = name + 1,
                              .class_size = (size_t)(semicolon - name - 1),
                              .method = semicolon + 1,
                              .method_size = (size_t)(method_end - semicolon - 1),
                              .descriptor = open,
                              .descriptor_size = open ? (size_t)(end - open) : 0};
    return true;
}

bool java_name_split(const char *name, struct java_name *out)
{
    const char *end = end_of(name);
    memset(out, 0, sizeof *out);
    if (split_jvm(name, end, out)) {
        return out->class_size && out->method_size;
    }
    const char *open = memchr(name, '(', (size_t)(end - name));
    const char *method_end = open ? open : end;
    const char *dot = method_end; /* hidden classes have a slash in their names, and no dot in it */
    while (dot > name && dot[-1] != '.') {
        dot--;
    }
    if (dot <= name + 1 || dot == method_end) {
        return false;
    }
    *out = (struct java_name){.class_name = name,
                              .class_size = (size_t)(dot - 1 - name),
                              .method = dot,
                              .method_size = (size_t)(method_end - dot),
                              .descriptor = open,
                              .descriptor_size = open ? (size_t)(end - open) : 0};
    return true;
}
