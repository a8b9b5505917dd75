#include "jdtool/profile/normal_name.h"

#include <stdbool.h>
#include <string.h>

static const char digits[] = "0123456789";
static const char hex_and_lines[] = "0123456789abcdef_";
static const char letters_and_digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

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

/* What a generator writes before what is a class's own in one run, and of which signs that is. */
static const struct generated {
    const char *word, *signs;
} generated[] = {
    {"$Proxy", digits},
    {"GeneratedMethodAccessor", digits},
    {"GeneratedConstructorAccessor", digits},
    {"GeneratedSerializationConstructorAccessor", digits},
    {"$ByteBuddy$", letters_and_digits},
    {"$auxiliary$", letters_and_digits}, /* of Byte Buddy's, too */
    {"$HibernateProxy$", letters_and_digits},
    {"$MockitoMock$", letters_and_digits},
    {"CGLIB$$", hex_and_lines},
    {"ByGuice$$", hex_and_lines},
    {"_$$_jvst", hex_and_lines}, /* Javassist's */
};

/* Clojure counts all that it compiles: "user$eval140$fn__141.invoke". */
static bool is_counted(const char *begin, const char *end, const char *at)
{
    const char *behind = at + strspn(at, digits);
    return behind > at && (!*behind || strchr("$_.(", *behind)) &&
           (ends_with(begin, end, "$eval") ||
            (ends_with(begin, end, "__") && memchr(begin, '$', (size_t)(end - begin))));
}

/* What a library has by chance that Java unpacks into a temporary file: File.createTempFile's
 * number (Netty, JNA, zstd-jni), a UUID (snappy-java), and the kernel's mark when it was removed
 * since. */
static const char *past_chance(const char *at)
{
    enum { DIGITS_LEAST = 10 };
    static const size_t uuid[] = {8, 4, 4, 4, 12};
    static const char deleted[] = " (deleted)";
    size_t count = strspn(at, digits);
    if (count >= DIGITS_LEAST) {
        return at + count;
    }
    if (strncmp(at, deleted, sizeof deleted - 1) == 0) {
        return at + sizeof deleted - 1;
    }
    const char *behind = at;
    for (size_t i = 0; i < sizeof uuid / sizeof *uuid; i++) {
        if ((i && *behind++ != '-') || strspn(behind, "0123456789abcdef") != uuid[i]) {
            return at;
        }
        behind += uuid[i];
    }
    return behind;
}

/* Behind what is to be left out at `at`; `at` itself where nothing is. [begin, end) is what was
 * kept before it. */
static const char *past_number(const char *begin, const char *end, const char *at)
{
    if (*begin == '[') { /* a file of which no symbol is known */
        return past_chance(at);
    }
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
        if (ends_with(begin, end, generated[i].word)) {
            return at + strspn(at, generated[i].signs);
        }
    }
    return is_counted(begin, end, at) ? at + strspn(at, digits) : at;
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
