#include "jdtool/base/text.h"

#include "format/jitdump.h"
#include "format/samply.h"
#include "jdtool/base/array.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t text_utf8_size(const char *text, size_t room)
{
    const unsigned char *at = (const unsigned char *)text;
    if (room == 0 || at[0] < 0x80) {
        return room > 0;
    }
    size_t size = at[0] >= 0xf0 ? 4 : at[0] >= 0xe0 ? 3 : 2;
    if (at[0] < 0xc2 || at[0] > 0xf4 || size > room) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) { /* a NUL ends up here too */
            return 0;
        }
    }
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool surrogate = at[0] == 0xed && at[1] >= 0xa0;
    bool too_large = at[0] == 0xf4 && at[1] >= 0x90;
    return overlong || surrogate || too_large ? 0 : size;
}

/* The same in a string that ends with a NUL, which ends no sequence. */
static size_t sequence(const unsigned char *at)
{
    return text_utf8_size((const char *)at, SIZE_MAX);
}

bool text_is_utf8(const char *string)
{
    const unsigned char *at = (const unsigned char *)string;
    while (*at) {
        size_t size = sequence(at);
        if (size == 0) {
            return false;
        }
        at += size;
    }
    return true;
}

char *text_mended(const char *string)
{
    size_t size = strlen(string);
    char *mended = malloc(size * (sizeof REPLACEMENT - 1) + 1);
    char *to = mended;
    for (size_t at = 0; mended && at < size;) {
        size_t length = text_utf8_size(string + at, size - at);
        const char *from = length ? string + at : REPLACEMENT;
        size_t copied = length ? length : sizeof REPLACEMENT - 1;
        memcpy(to, from, copied);
        to += copied;
        at += length ? length : 1;
    }
    if (mended) {
        *to = '\0';
    }
    return mended;
}

bool text_is_control(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    return at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0);
}

void text_print(FILE *out, const char *string)
{
    const unsigned char *at = (const unsigned char *)string;
    while (*at) {
        size_t size = sequence(at);
        if (size == 0 || text_is_control((const char *)at)) {
            size = size ? size : 1;
            for (size_t i = 0; i < size; i++) {
                fprintf(out, "\\x%02x", at[i]);
            }
        } else {
            fwrite(at, 1, size, out);
        }
        at += size;
    }
}

const char *text_machine(uint32_t elf_mach)
{
    switch (elf_mach) {
    case EM_386:
        return "i386";
    case EM_PPC64:
        return "ppc64";
    case EM_S390:
        return "s390x";
    case EM_ARM:
        return "arm";
    case EM_X86_64:
        return "x86-64";
    case EM_AARCH64:
        return "aarch64";
    case EM_RISCV:
        return "riscv";
    default:
        return "unknown";
    }
}

const char *text_record_id(uint32_t id)
{
    switch (id) {
    case JIT_CODE_LOAD:
        return "LOAD";
    case JIT_CODE_MOVE:
        return "MOVE";
    case JIT_CODE_DEBUG_INFO:
        return "DEBUG_INFO";
    case JIT_CODE_CLOSE:
        return "CLOSE";
    case JIT_CODE_UNWINDING_INFO:
        return "UNWINDING_INFO";
    case SAMPLY_JIT_CODE_DEBUG_INFO2:
        return "SAMPLY_DEBUG_INFO2";
    case SAMPLY_JIT_TIER:
        return "SAMPLY_TIER";
    case SAMPLY_EMBEDDED_SOURCE_FILE:
        return "SAMPLY_SOURCE";
    default:
        return "unknown";
    }
}

void text_base64(const uint8_t *from, size_t size, char to[4])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t group = (uint32_t)from[0] << 16;
    group |= size > 1 ? (uint32_t)from[1] << 8 : 0;
    group |= size > 2 ? from[2] : 0;
    to[0] = digits[group >> 18];
    to[1] = digits[group >> 12 & 63];
    to[2] = (char)(size > 1 ? digits[group >> 6 & 63] : '=');
    to[3] = (char)(size > 2 ? digits[group & 63] : '=');
}

void text_size(uint64_t bytes, char *text)
{
    static const char units[] = "BKMGTP";
    double size = (double)bytes;
    int unit = 0;
    while (size >= 1024 && unit < 5) {
        size /= 1024;
        unit++;
    }
    if (unit == 0) {
        snprintf(text, TEXT_SIZE_MAX, "%" PRIu64 "B", bytes);
    } else {
        snprintf(text, TEXT_SIZE_MAX, size < 10 ? "%.1f%cB" : "%.0f%cB", size, units[unit]);
    }
}

bool text_weight(uint64_t weight, const char *unit, char *text)
{
    if (strcmp(unit, "nanoseconds") == 0) {
        snprintf(text, TEXT_SIZE_MAX, "%.2f s", (double)weight / 1e9);
        return true;
    }
    if (strcmp(unit, "bytes") == 0) {
        text_size(weight, text);
        return true;
    }
    snprintf(text, TEXT_SIZE_MAX, "%" PRIu64, weight);
    return false;
}

/* ---- Words ---- */

char *path_list_next(char **rest)
{
    char *path = *rest;
    char *to = path;
    if (!path) {
        return NULL;
    }
    for (char *at = path; *at && *at != ':'; *rest = ++at) {
        at += at[0] == '\\' && at[1] == ':';
        *to++ = *at;
    }
    *rest = **rest ? *rest + 1 : NULL;
    *to = '\0';
    return path;
}

char *path_list_with(const char *list, const char *directory, const char *name)
{
    char *all = malloc((list ? strlen(list) + 1 : 0) + 2 * strlen(directory) + strlen(name) + 2);
    char *to = all;
    if (!all) {
        return NULL;
    }
    if (list) {
        to = stpcpy(stpcpy(to, list), ":");
    }
    for (const char *at = directory; *at; at++) {
        if (*at == ':') {
            *to++ = '\\';
        }
        *to++ = *at;
    }
    stpcpy(stpcpy(to, "/"), name);
    return all;
}

const char *text_line(const char **rest, size_t *size)
{
    const char *line = *rest;
    *size = strcspn(line, "\n");
    *rest += *size + (line[*size] == '\n');
    return *line ? line : NULL;
}

void text_hex(const uint8_t *bytes, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

void words_add(struct words *words, const char *format, const char *text)
{
    const char *mark = strstr(format, "%s");
    char *word = NULL;
    if (ARRAY_RESERVE(words->list, words->count + 1, words->room) ||
        (mark ? asprintf(&word, "%.*s%s%s", (int)(mark - format), format, text, mark + 2)
              : asprintf(&word, "%s", format)) < 0) {
        words->failed = true;
        return;
    }
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

void words_add_list(struct words *words, const char *const *list)
{
    for (; list && *list; list++) {
        words_add(words, "%s", *list);
    }
}

void words_free(struct words *words)
{
    for (uint32_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
    free(words->list);
    *words = (struct words){0};
}
