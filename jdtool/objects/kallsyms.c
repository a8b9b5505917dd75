#include "jdtool/objects/kallsyms.h"

#include "jdtool/base/array.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Files of /proc have no size: read until the end. NULL with *err. */
static char *read_all(int fd, size_t *size, int *err)
{
    size_t room = (size_t)4 << 20;
    char *text = malloc(room);
    *size = 0;
    while (text) {
        ssize_t got = read(fd, text + *size, room - 1 - *size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            *err = got < 0 ? -errno : 0;
            break;
        }
        *size += (size_t)got;
        if (*size == room - 1) {
            char *grown = room < KALLSYMS_SIZE_MAX ? realloc(text, room * 2) : NULL;
            if (!grown) {
                *err = room < KALLSYMS_SIZE_MAX ? -ENOMEM : -EINVAL;
                break;
            }
            text = grown;
            room *= 2;
        }
    }
    if (!text) {
        *err = -ENOMEM;
        return NULL;
    }
    if (*err) {
        free(text);
        return NULL;
    }
    text[*size] = '\0';
    return text;
}

static uint16_t module_of(struct kallsyms *kallsyms, char *name)
{
    uint32_t count = kallsyms->module_count;
    if (count && strcmp(kallsyms->modules[count - 1], name) == 0) {
        return (uint16_t)count; /* they come in rows */
    }
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(kallsyms->modules[i], name) == 0) {
            return (uint16_t)(i + 1);
        }
    }
    if (count >= UINT16_MAX - 1 ||
        array_reserve(&kallsyms->modules, count, &kallsyms->module_room, sizeof(char *)) < 0) {
        return 0;
    }
    kallsyms->modules[kallsyms->module_count++] = name;
    return (uint16_t)kallsyms->module_count;
}

/* "ffffffff81000000 T _text" or "ffffffffc0001000 t function\t[module]"; the line is without its
 * newline and is cut into strings. False: it is no such line. */
static bool take_line(struct kallsyms *kallsyms, char *line, uint64_t *highest)
{
    char *rest;
    uint64_t address = strtoull(line, &rest, 16);
    if (rest == line || rest[0] != ' ' || rest[1] == '\0' || rest[2] != ' ') {
        return false;
    }
    char type = rest[1];
    char *name = rest + 3;
    char *tab = strchr(name, '\t');
    char *module = NULL;
    if (tab) {
        *tab = '\0';
        module = tab[1] == '[' ? tab + 1 : NULL;
    }
    if (address > *highest) {
        *highest = address;
    }
    if (strchr("tTwW", type) && name[0] && name[0] != '$' && address) {
        struct symbol symbol = {
            .address = address,
            .name = (uint32_t)(name - kallsyms->text),
            .binding = type == 't'   ? STB_LOCAL
                       : type == 'T' ? STB_GLOBAL
                                     : STB_WEAK,
            .module = module ? module_of(kallsyms, module) : 0,
        };
        symbols_add(&kallsyms->symbols, &symbol);
    }
    return true;
}

/* Names alone are kept, one behind the other: 30 bytes a function instead of 50 a line. */
static void pack_names(struct kallsyms *kallsyms)
{
    struct symbols *symbols = &kallsyms->symbols;
    size_t size = 1;
    for (uint32_t i = 0; i < symbols->count; i++) {
        size += strlen(kallsyms->text + symbols->list[i].name) + 1;
    }
    for (uint32_t i = 0; i < kallsyms->module_count; i++) {
        size += strlen(kallsyms->modules[i]) + 1;
    }
    char *packed = malloc(size);
    if (!packed) {
        symbols->names[0].size = KALLSYMS_SIZE_MAX;
        return; /* the whole text serves as well */
    }
    size_t at = 0;
    packed[at++] = '\0';
    for (uint32_t i = 0; i < symbols->count; i++) {
        const char *name = kallsyms->text + symbols->list[i].name;
        symbols->list[i].name = (uint32_t)at;
        at += (size_t)(stpcpy(packed + at, name) - (packed + at)) + 1;
    }
    for (uint32_t i = 0; i < kallsyms->module_count; i++) {
        char *name = packed + at;
        at += (size_t)(stpcpy(name, kallsyms->modules[i]) - name) + 1;
        kallsyms->modules[i] = name;
    }
    free(kallsyms->text);
    kallsyms->text = packed;
    symbols->names[0].size = size;
}

/* What lies behind the last function of the kernel, and of a module, is anybody's: a page of it, as
 * perf has it. */
static void end_modules(struct symbols *symbols)
{
    for (uint32_t i = 0; i < symbols->count; i++) {
        struct symbol *symbol = &symbols->list[i];
        uint64_t end = (symbol->address & ~UINT64_C(4095)) + 2 * UINT64_C(4096);
        if ((i + 1 == symbols->count || symbol[1].module != symbol->module) &&
            symbol->size > end - symbol->address) {
            symbol->size = (uint32_t)(end - symbol->address);
        }
    }
}

static int take_text(struct kallsyms *kallsyms, size_t size)
{
    uint64_t highest = 0;
    bool any = false;
    for (char *line = kallsyms->text; line < kallsyms->text + size;) {
        char *end = strchrnul(line, '\n');
        *end = '\0';
        if (*line && !take_line(kallsyms, line, &highest)) {
            return -EINVAL;
        }
        any = any || *line;
        line = end + 1;
    }
    if (!any) {
        return -EINVAL;
    }
    if (highest == 0) {
        return -EPERM;
    }
    symbols_finish(&kallsyms->symbols, UINT64_MAX, true);
    end_modules(&kallsyms->symbols);
    return kallsyms->symbols.failed ? -ENOMEM : 0;
}

int kallsyms_read(const char *path, struct kallsyms *out)
{
    struct stat status;
    size_t size = 0;
    int err = 0;
    *out = (struct kallsyms){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    if (fstat(fd, &status) || !S_ISREG(status.st_mode)) {
        err = -EINVAL;
    } else {
        out->text = read_all(fd, &size, &err);
    }
    (void)close(fd);
    if (!err) {
        out->symbols.names[0].bytes = out->text;
        out->symbols.names[0].size = size + 1;
        err = take_text(out, size);
    }
    if (err) {
        kallsyms_free(out);
        return err;
    }
    pack_names(out);
    out->symbols.names[0].bytes = out->text;
    return 0;
}

void kallsyms_free(struct kallsyms *kallsyms)
{
    symbols_free(&kallsyms->symbols);
    free(kallsyms->modules);
    free(kallsyms->text);
    *kallsyms = (struct kallsyms){0};
}
