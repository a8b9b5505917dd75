#include "jdtool/compare/normal_name.h"

#include <stdbool.h>
#include <string.h>

static const char digits[] = "0123456789";

/* Behind addresses like "/0x00007f42f8000a10" that begin at `at`. */
static const char *past_addresses(const char *at)
{
    while (*at && strchr("/+.", *at) && strncmp(at + 1, "0x", 2) == 0) {
        size_t size = strspn(at + 3, "0123456789abcdef");
        if (size == 0) {
            break;
        }
        at += 3 + size;
    }
    return at;
}

static bool ends_with(const char *begin, const char *end, const char *word)
{
    size_t size = strlen(word);
    return (size_t)(end - begin) >= size && memcmp(end - size, word, size) == 0;
}

/* Behind what is to be left out at `at`; `at` itself where nothing is. [begin, end) is what was
 * kept before it. */
static const char *past_number(const char *begin, const char *end, const char *at)
{
    static const char *const generated[] = {"$Proxy", "GeneratedMethodAccessor",
                                            "GeneratedConstructorAccessor",
                                            "GeneratedSerializationConstructorAccessor"};
    const char *behind = past_addresses(at);
    if (behind > at) {
        return behind;
    }
    if (*at == '/') {
        behind = at + 1 + strspn(at + 1, digits);
        const char *next = past_addresses(behind);
        return behind > at + 1 && (*next == '.' || *next == '(' || !*next) ? behind : at;
    }
    if (*at == '$' && ends_with(begin, end, "$$Lambda")) {
        return at + 1 + strspn(at + 1, digits);
    }
    for (size_t i = 0; i < sizeof generated / sizeof *generated; i++) {
        if (ends_with(begin, end, generated[i])) {
            return at + strspn(at, digits);
        }
    }
    return at;
}

void normal_name(char *name)
{
    char *to = name;
    for (const char *at = name; *at;) {
        const char *behind = past_number(name, to, at);
        if (behind > at) {
            at = behind;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
}
