#include "jdtool/jitdump/method_names.h"

#include "format/leb128.h"
#include "format/methods.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The agent's own limit for a record, and some. */
#define RECORD_MAX (UINT32_C(32) << 20)
#define SOURCE_MAX 8192

struct method_names {
    int fd;
    char *path;
    uint64_t (*clock)(const void *context, uint64_t stamp);
    const void *context;
    struct named_method *methods; /* by address, then by time */
    uint32_t count;
    uint32_t room;
    uint32_t *by_bytecode; /* places in methods, by address of the first bytecode */
};

/* Reads all of [offset, offset + size), or fails. */
static bool read_at(const struct method_names *names, void *out, size_t size, uint64_t offset)
{
    uint8_t *to = out;
    while (size) {
        ssize_t n = pread(names->fd, to, size, (off_t)offset);
        if (n <= 0) {
            if (n < 0 && errno == EINTR) {
                continue;
            }
            return false;
        }
        to += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

static struct named_method *add(struct method_names *names)
{
    if (names->count == names->room) {
        uint32_t room = names->room ? names->room * 2 : 4096;
        struct named_method *methods =
            names->room > UINT32_MAX / 2 ? NULL : realloc(names->methods, room * sizeof *methods);
        if (!methods) {
            return NULL;
        }
        names->methods = methods;
        names->room = room;
    }
    struct named_method *method = &names->methods[names->count++];
    memset(method, 0, sizeof *method);
    return method;
}

static bool skip_string(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *nul = memchr(*at, 0, (size_t)(end - *at));
    if (!nul) {
        return false;
    }
    *at = nul + 1;
    return true;
}

static bool skip_lines(const uint8_t **at, const uint8_t *end)
{
    uint64_t count;
    uint64_t bci;
    int64_t line;
    if (uleb128_get(at, end, &count) || count > (uint64_t)(end - *at)) {
        return false;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (uleb128_get(at, end, &bci) || sleb128_get(at, end, &line)) {
            return false;
        }
    }
    return true;
}

/* 0, -EINVAL when the record is broken, -ENOMEM. */
static int take_record(struct method_names *names, const struct methods_record *record,
                       const uint8_t *bytes, uint64_t offset)
{
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + record->total_size - sizeof *record;
    uint64_t address = 0;
    uint64_t from =
        names->clock ? names->clock(names->context, record->timestamp) : record->timestamp;
    if (!skip_string(&at, end)) {
        return -EINVAL;
    }
    while (at < end) {
        int64_t distance;
        int64_t bytecodes;
        uint64_t size;
        if (sleb128_get(&at, end, &distance) || sleb128_get(&at, end, &bytecodes) ||
            uleb128_get(&at, end, &size) || size > UINT32_MAX) {
            return -EINVAL;
        }
        const uint8_t *detail = at;
        if (!skip_string(&at, end) || !skip_lines(&at, end)) {
            return -EINVAL;
        }
        struct named_method *method = add(names);
        if (!method) {
            return -ENOMEM;
        }
        address += (uint64_t)distance;
        method->address = address;
        method->from = from;
        method->bytecodes = address + (uint64_t)bytecodes;
        method->bytecode_size = (uint32_t)size;
        method->found = record->id == METHODS_FOUND;
        method->detail_size = (uint32_t)(at - detail);
        method->detail_offset = offset + (uint64_t)(detail - bytes);
        method->source_offset = offset;
    }
    return 0;
}

static int read_records(struct method_names *names, uint64_t at, uint64_t size)
{
    uint8_t *bytes = NULL;
    size_t room = 0;
    int error = 0;
    while (!error && at < size) {
        struct methods_record record;
        if (size - at < sizeof record || !read_at(names, &record, sizeof record, at) ||
            record.total_size < sizeof record || record.total_size > RECORD_MAX ||
            record.total_size > size - at) {
            warning_message("%s ends inside a record, at byte %" PRIu64, names->path, at);
            break;
        }
        size_t payload = record.total_size - sizeof record;
        if (payload > room) {
            uint8_t *grown = realloc(bytes, payload);
            if (!grown) {
                error = -ENOMEM;
                break;
            }
            bytes = grown;
            room = payload;
        }
        if (payload && !read_at(names, bytes, payload, at + sizeof record)) {
            error = errno ? -errno : -EIO;
        } else if (payload && (record.id == METHODS_PREPARED || record.id == METHODS_FOUND)) {
            error = take_record(names, &record, bytes, at + sizeof record);
        }
        if (error == -EINVAL) {
            warning_message("%s: the record at byte %" PRIu64 " is broken", names->path, at);
            error = 0;
        }
        at += record.total_size;
    }
    free(bytes);
    return error;
}

static int by_address_and_time(const void *left, const void *right)
{
    const struct named_method *a = left;
    const struct named_method *b = right;
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    if (a->from != b->from) {
        return a->from < b->from ? -1 : 1;
    }
    return (a->detail_offset > b->detail_offset) - (a->detail_offset < b->detail_offset);
}

static int by_bytecode(const void *left, const void *right, void *context)
{
    const struct named_method *methods = context;
    uint64_t a = methods[*(const uint32_t *)left].bytecodes;
    uint64_t b = methods[*(const uint32_t *)right].bytecodes;
    return (a > b) - (a < b);
}

static int sort_methods(struct method_names *names)
{
    qsort(names->methods, names->count, sizeof *names->methods, by_address_and_time);
    names->by_bytecode = malloc(names->count * sizeof *names->by_bytecode);
    if (!names->by_bytecode) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < names->count; i++) {
        names->by_bytecode[i] = i;
    }
    qsort_r(names->by_bytecode, names->count, sizeof *names->by_bytecode, by_bytecode,
            names->methods);
    return 0;
}

static int read_table(struct method_names *names)
{
    struct stat about;
    struct methods_header header;
    if (fstat(names->fd, &about) != 0) {
        return -errno;
    }
    if (!S_ISREG(about.st_mode) || (uint64_t)about.st_size < sizeof header ||
        !read_at(names, &header, sizeof header, 0) || header.magic != METHODS_MAGIC ||
        header.version != METHODS_VERSION || header.total_size < sizeof header) {
        return -EINVAL;
    }
    int error = read_records(names, header.total_size, (uint64_t)about.st_size);
    if (!error && names->count) {
        error = sort_methods(names);
    }
    return error;
}

int method_names_open(const char *path, uint64_t (*clock)(const void *context, uint64_t stamp),
                      const void *context, struct method_names **out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT) {
        return -ENOENT;
    }
    int error = fd < 0 ? -errno : 0;
    struct method_names *names = calloc(1, sizeof *names);
    if (!names) {
        if (fd >= 0) {
            (void)close(fd);
        }
        error = -ENOMEM;
    } else {
        names->fd = fd;
        names->clock = clock;
        names->context = context;
        names->path = strdup(path);
        if (!error) {
            error = names->path ? read_table(names) : -ENOMEM;
        }
    }
    if (error) {
        error_message("failed to read the table of methods %s: %s", path,
                      error == -EINVAL ? "it is none, or of another version or byte order"
                                       : strerror(-error));
        method_names_close(names);
        return error;
    }
    *out = names;
    return 0;
}

void method_names_close(struct method_names *names)
{
    if (!names) {
        return;
    }
    for (uint32_t i = 0; i < names->count; i++) {
        free(names->methods[i].detail);
    }
    free(names->methods);
    free(names->by_bytecode);
    free(names->path);
    if (names->fd >= 0) {
        (void)close(names->fd);
    }
    free(names);
}

uint32_t method_names_count(const struct method_names *names)
{
    return names->count;
}

struct named_method *method_names_at(const struct method_names *names, uint64_t address,
                                     uint64_t time)
{
    uint32_t low = 0;
    uint32_t high = names->count;
    while (low < high) { /* the first one that is later */
        uint32_t middle = low + (high - low) / 2;
        const struct named_method *method = &names->methods[middle];
        if (method->address < address || (method->address == address && method->from <= time)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0 && names->methods[low - 1].address == address) {
        return &names->methods[low - 1];
    }
    if (low < names->count && names->methods[low].address == address && names->methods[low].found) {
        return &names->methods[low];
    }
    return NULL;
}

/* Methods lie apart, but over time several may have begun near one address: so many are looked at.
 */
#define NEIGHBOURS 64

struct named_method *method_names_by_bytecode(const struct method_names *names, uint64_t bcp,
                                              uint64_t time)
{
    uint32_t low = 0;
    uint32_t high = names->count;
    while (low < high) { /* the first one behind */
        uint32_t middle = low + (high - low) / 2;
        if (names->methods[names->by_bytecode[middle]].bytecodes <= bcp) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (uint32_t tries = 0; low > 0 && tries < NEIGHBOURS; tries++) {
        struct named_method *method = &names->methods[names->by_bytecode[--low]];
        if (bcp - method->bytecodes < method->bytecode_size &&
            method_names_at(names, method->address, time) == method) {
            return method;
        }
    }
    return NULL;
}

/* The class's source file, as long as it ends inside of `size` bytes. */
static void read_source(const struct method_names *names, const struct named_method *method,
                        char *out, size_t size)
{
    size_t have = (size_t)(method->detail_offset - method->source_offset);
    have = have < size ? have : size;
    if (!read_at(names, out, have, method->source_offset) || !memchr(out, 0, have)) {
        out[0] = 0;
    }
}

/* Takes apart what a record says of a method behind its addresses; `bytes` was walked before. */
static struct method_detail *decode_detail(const uint8_t *bytes, size_t size, const char *source)
{
    const uint8_t *at = bytes;
    const uint8_t *end = bytes + size;
    uint64_t count;
    if (!skip_string(&at, end) || uleb128_get(&at, end, &count) || count > (uint64_t)(end - at)) {
        return NULL; /* the file has changed since */
    }
    size_t name_size = strlen((const char *)bytes) + 1;
    size_t source_size = strlen(source) + 1;
    struct method_detail *detail =
        malloc(sizeof *detail + count * sizeof detail->lines[0] + name_size + source_size);
    if (!detail) {
        return NULL;
    }
    uint64_t bci = 0;
    uint64_t line = 0;
    uint64_t bci_step;
    int64_t line_step;
    detail->line_count = 0;
    while (detail->line_count < count && !uleb128_get(&at, end, &bci_step) &&
           !sleb128_get(&at, end, &line_step)) {
        bci += bci_step;
        line += (uint64_t)line_step;
        detail->lines[detail->line_count].bci = (uint32_t)bci;
        detail->lines[detail->line_count++].line = (uint32_t)line;
    }
    char *strings = (char *)&detail->lines[count];
    memcpy(strings, bytes, name_size);
    memcpy(strings + name_size, source, source_size);
    detail->name = strings;
    detail->file = source_size > 1 ? strings + name_size : NULL;
    return detail;
}

const struct method_detail *method_names_detail(struct method_names *names,
                                                struct named_method *method)
{
    if (method->detail) {
        return method->detail;
    }
    char source[SOURCE_MAX];
    uint8_t *bytes = malloc(method->detail_size);
    if (bytes && read_at(names, bytes, method->detail_size, method->detail_offset)) {
        read_source(names, method, source, sizeof source);
        method->detail = decode_detail(bytes, method->detail_size, source);
    }
    free(bytes);
    if (!method->detail) {
        error_message("failed to read a method's name in %s", names->path);
    }
    return method->detail;
}

uint32_t method_detail_line(const struct method_detail *detail, uint32_t bci)
{
    uint32_t line = 0;
    for (uint32_t i = 0; i < detail->line_count && detail->lines[i].bci <= bci; i++) {
        line = detail->lines[i].line;
    }
    return line;
}
