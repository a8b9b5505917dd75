#include "jdtool/objects/kallsyms.h"

#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is read of the file at a time; no line is as long. */
#define CHUNK ((size_t)64 << 10)

/* The name, of `size` bytes with its NUL, goes behind those that are kept. Its place, or 0: there
 * is no memory. */
static uint32_t keep_name(struct kallsyms *kallsyms, const char *name, size_t size)
{
    if (kallsyms->text.size == 0) {
        bytes_u8(&kallsyms->text, 0);
    }
    uint32_t at = (uint32_t)kallsyms->text.size;
    bytes_put(&kallsyms->text, name, size);
    return kallsyms->text.failed ? 0 : at;
}

static uint16_t module_of(struct kallsyms *kallsyms, const char *name)
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
    if (count >= UINT16_MAX - 1 || ARRAY_RESERVE(kallsyms->modules, count, kallsyms->module_room)) {
        return 0;
    }
    char *kept = strdup(name);
    if (!kept) {
        return 0;
    }
    kallsyms->modules[kallsyms->module_count++] = kept;
    return (uint16_t)kallsyms->module_count;
}

/* A number in lower-case hexadecimal, as the kernel writes them. *rest: behind it. */
static uint64_t read_address(char *text, char **rest)
{
    uint64_t address = 0;
    for (;; text++) {
        char c = *text;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                                                : 16;
        if (digit > 15) {
            *rest = text;
            return address;
        }
        address = address << 4 | digit;
    }
}

/* "ffffffff81000000 T _text" or "ffffffffc0001000 t function\t[module]"; the line is without its
 * newline and is cut into strings. False: it is no such line. */
static bool take_line(struct kallsyms *kallsyms, char *line, char *end, uint64_t *highest)
{
    char *rest;
    uint64_t address = read_address(line, &rest);
    if (rest == line || rest[0] != ' ' || rest[1] == '\0' || rest[2] != ' ') {
        return false;
    }
    char type = rest[1];
    char *name = rest + 3;
    char *tab = memchr(name, '\t', (size_t)(end - name));
    char *module = NULL;
    if (tab) {
        *tab = '\0';
        module = tab[1] == '[' ? tab + 1 : NULL;
        end = tab;
    }
    if (address > *highest) {
        *highest = address;
    }
    if (!module && strcmp(name, "_text") == 0) {
        kallsyms->begin = address;
    }
    if (strchr("tTwW", type) && name[0] && name[0] != '$' && address) {
        struct symbol symbol = {
            .address = address,
            .name = keep_name(kallsyms, name, (size_t)(end + 1 - name)),
            .binding = type == 't'   ? STB_LOCAL
                       : type == 'T' ? STB_GLOBAL
                                     : STB_WEAK,
            .module = module ? module_of(kallsyms, module) : 0,
        };
        kallsyms->symbols.failed |= symbol.name == 0;
        symbols_add(&kallsyms->symbols, &symbol);
    }
    return true;
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

/* Whole lines, which are cut into strings. False: one is no such line. */
static bool take_lines(struct kallsyms *kallsyms, char *text, const char *end, uint64_t *highest)
{
    for (char *line = text; line < end;) {
        char *next = memchr(line, '\n', (size_t)(end - line));
        *next = '\0';
        if (*line && !take_line(kallsyms, line, next, highest)) {
            return false;
        }
        line = next + 1;
    }
    return true;
}

/* Files of /proc have no size: reads until the end. */
static int take_all(struct kallsyms *kallsyms, int fd, char *chunk)
{
    uint64_t highest = 0;
    size_t total = 0;
    size_t kept = 0; /* of a line whose rest is to come */
    for (ssize_t got = 1; got > 0;) {
        got = read(fd, chunk + kept, CHUNK - 1 - kept);
        if (got < 0 && errno == EINTR) {
            got = 1;
            continue;
        }
        if (got < 0) {
            return -errno;
        }
        total += (size_t)got;
        kept += (size_t)got;
        if (got == 0 && kept > 0) {
            chunk[kept++] = '\n';
        }
        const char *last = memrchr(chunk, '\n', kept);
        if (total > KALLSYMS_SIZE_MAX || (!last && kept == CHUNK - 1)) {
            return -EINVAL;
        }
        size_t whole = last ? (size_t)(last + 1 - chunk) : 0;
        if (!take_lines(kallsyms, chunk, chunk + whole, &highest)) {
            return -EINVAL;
        }
        kept -= whole;
        memmove(chunk, chunk + whole, kept);
    }
    return total == 0 ? -EINVAL : highest == 0 ? -EPERM : 0;
}

static int take_file(struct kallsyms *kallsyms, int fd)
{
    struct symbols *symbols = &kallsyms->symbols;
    char *chunk = malloc(CHUNK);
    int err = chunk ? take_all(kallsyms, fd, chunk) : -ENOMEM;
    free(chunk);
    if (err) {
        return err;
    }
    bytes_fit(&kallsyms->text);
    symbols->names[0].bytes = (const char *)kallsyms->text.at;
    symbols->names[0].size = kallsyms->text.size;
    symbols_finish(symbols, UINT64_MAX, true);
    end_modules(symbols);
    return symbols->failed ? -ENOMEM : 0;
}

int kallsyms_read(const char *path, struct kallsyms *out)
{
    struct stat status;
    int err = 0;
    *out = (struct kallsyms){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    err = fstat(fd, &status) || !S_ISREG(status.st_mode) ? -EINVAL : take_file(out, fd);
    (void)close(fd);
    if (err) {
        kallsyms_free(out);
    }
    return err;
}

/* ---- Ready to be asked ---- */

struct table_header {
    uint64_t magic;
    uint32_t symbol_size;
    uint32_t count;
    uint64_t names_size;
    uint64_t begin;
};

#define TABLE_MAGIC UINT64_C(0x6a646b65726e656d) /* "jdkernel", and 1: it has `begin` */

void kallsyms_put(const struct kallsyms *kallsyms, struct output_file *file)
{
    const struct symbols *symbols = &kallsyms->symbols;
    struct table_header header = {.magic = TABLE_MAGIC,
                                  .symbol_size = sizeof *symbols->list,
                                  .names_size = symbols->names[0].size,
                                  .begin = kallsyms->begin};
    for (uint32_t i = 0; i < symbols->count; i++) {
        header.count += symbols->list[i].module == 0;
    }
    output_file_put(file, &header, sizeof header);
    for (uint32_t i = 0; i < symbols->count; i++) {
        if (symbols->list[i].module == 0) {
            output_file_put(file, &symbols->list[i], sizeof *symbols->list);
        }
    }
    output_file_put(file, symbols->names[0].bytes, symbols->names[0].size);
}

static bool is_in_order(const struct symbols *symbols)
{
    for (uint32_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->list[i];
        if (symbol->group || symbol->module || symbol->name >= symbols->names[0].size ||
            (i && symbol->address <= symbol[-1].address)) {
            return false;
        }
    }
    return symbols->count > 0;
}

/* Whether a file of that size begins so. */
static bool is_table(const struct table_header *header, size_t size)
{
    size_t each = sizeof(struct symbol);
    return size >= sizeof *header && header->magic == TABLE_MAGIC && header->symbol_size == each &&
           header->count <= SYMBOLS_MAX && header->count * each <= size - sizeof *header &&
           size - sizeof *header - header->count * each == header->names_size;
}

bool kallsyms_is_put(const char *path)
{
    struct stat status;
    struct table_header header;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    bool is_put = fd >= 0 && fstat(fd, &status) == 0 &&
                  pread(fd, &header, sizeof header, 0) == (ssize_t)sizeof header &&
                  is_table(&header, (size_t)status.st_size);
    descriptor_close(fd);
    return is_put;
}

static bool take_table(struct kallsyms *kallsyms)
{
    struct table_header header;
    struct symbols *symbols = &kallsyms->symbols;
    if (kallsyms->mapped_size < sizeof header) {
        return false;
    }
    memcpy(&header, kallsyms->mapped, sizeof header);
    if (!is_table(&header, kallsyms->mapped_size)) {
        return false;
    }
    kallsyms->begin = header.begin;
    symbols->list = (struct symbol *)((uint8_t *)kallsyms->mapped + sizeof header);
    symbols->count = header.count;
    symbols->names[0].bytes = (const char *)(symbols->list + header.count);
    symbols->names[0].size = header.names_size;
    return is_in_order(symbols);
}

int kallsyms_map(const char *path, struct kallsyms *out)
{
    struct stat status;
    *out = (struct kallsyms){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return -errno;
    }
    int err = fstat(fd, &status) || !S_ISREG(status.st_mode) || status.st_size <= 0 ||
                      (uint64_t)status.st_size > KALLSYMS_SIZE_MAX
                  ? -EINVAL
                  : 0;
    void *mapped =
        err ? MAP_FAILED : mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (!err && mapped == MAP_FAILED) {
        err = -errno;
    }
    (void)close(fd);
    if (!err) {
        out->mapped = mapped;
        out->mapped_size = (size_t)status.st_size;
        err = take_table(out) ? 0 : -EINVAL;
    }
    if (err) {
        kallsyms_free(out);
    }
    return err;
}

void kallsyms_free(struct kallsyms *kallsyms)
{
    if (kallsyms->mapped) {
        (void)munmap(kallsyms->mapped, kallsyms->mapped_size);
    } else {
        symbols_free(&kallsyms->symbols);
    }
    for (uint32_t i = 0; i < kallsyms->module_count; i++) {
        free(kallsyms->modules[i]);
    }
    free(kallsyms->modules);
    bytes_free(&kallsyms->text);
    *kallsyms = (struct kallsyms){0};
}
