#include "jdtool/jitdump/method_names.h"

#include "format/leb128.h"
#include "format/methods.h"
#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/message.h"
#include "jdtool/base/numbered.h"
#include "jdtool/base/packed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The agent's own limit for a record, and some. */
#define RECORD_MAX (UINT32_C(32) << 20)
#define SOURCE_MAX 8192

/* So much is read at once: a record has a few hundred bytes. */
#define WINDOW_SIZE ((size_t)64 << 10)

/* The methods that were at one address, one after the other: nearly always it is one. */
struct method_place {
    uint64_t address;
    union {
        uint32_t method;   /* with no room */
        uint32_t *methods; /* with room for so many */
    };
    uint32_t count;
    uint32_t room : 31;
    uint32_t sorted : 1; /* by time */
};

struct table {
    int fd;         /* -1: it was let go */
    uint64_t until; /* once the next one is read */
    uint64_t last;  /* the largest stamp of its classes, as it stands there */
    bool whole;     /* it has told of all that live, whatever those before it say */
};

struct method_names {
    struct table *files; /* the last one is being read; those before it are of earlier segments */
    uint32_t file_count;
    uint32_t file_room;
    uint32_t let_go; /* of these, the first ones */
    uint32_t living; /* methods, when what was gone was forgotten */
    char *path;
    char program[METHODS_PROGRAM_MAX];
    uint64_t (*clock)(const void *context, uint64_t stamp);
    const void *context;
    uint64_t next;          /* offset of the next record */
    struct chunks methods;  /* of struct named_method, in the file's order */
    struct numbered places; /* of struct method_place, by address */
    uint32_t *by_bytecode;  /* methods, the first by_bytecode_count, by their first bytecode */
    uint32_t by_bytecode_count;
    uint64_t left_out;
    bool told_left_out;
    unsigned lacks;
};

/* Reads [offset, offset + size), or as much of it as there is; how much that is. */
static size_t read_some(const struct method_names *names, uint32_t file, uint8_t *to, size_t size,
                        uint64_t offset)
{
    ssize_t n = descriptor_read_at(names->files[file].fd, to, size, offset);
    return n > 0 ? (size_t)n : 0;
}

/* Reads all of it, or fails. */
static bool read_at(const struct method_names *names, uint32_t file, void *out, size_t size,
                    uint64_t offset)
{
    return read_some(names, file, out, size, offset) == size;
}

static struct named_method *method(const struct method_names *names, uint32_t number)
{
    return chunks_at(&names->methods, number);
}

static struct named_method *method_there(const struct method_names *names,
                                         const struct method_place *place, uint32_t at)
{
    return method(names, place->room ? place->methods[at] : place->method);
}

static int add_there(struct method_place *place, uint32_t number)
{
    if (place->count == 0) {
        place->method = number;
    } else if (place->count >= place->room) {
        uint32_t room = place->room ? place->room * 2 : 2;
        uint32_t first = place->method;
        uint32_t *grown = realloc(place->room ? place->methods : NULL, room * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        grown[0] = place->room ? grown[0] : first;
        place->methods = grown;
        place->room = room;
    }
    if (place->room) {
        place->methods[place->count] = number;
    }
    place->count++;
    return 0;
}

/* Whether a segment before this one has told the same of the method. */
static bool is_told_again(const struct method_names *names, const struct method_place *place,
                          const struct named_method *added, const uint8_t *detail)
{
    if (!added->found || added->file == 0 || !place || place->count == 0) {
        return false;
    }
    struct named_method *last = method_there(names, place, place->count - 1);
    uint8_t *bytes = NULL;
    bool same = last->file != added->file && last->bytecodes == added->bytecodes &&
                last->bytecode_size == added->bytecode_size &&
                last->detail_size == added->detail_size && (bytes = malloc(last->detail_size)) &&
                read_at(names, last->file, bytes, last->detail_size, last->detail_offset) &&
                memcmp(bytes, detail, last->detail_size) == 0;
    free(bytes);
    if (same) { /* it is read from here from now on */
        last->file = added->file;
        last->detail_offset = added->detail_offset;
        last->source_offset = added->source_offset;
    }
    return same;
}

static int add(struct method_names *names, const struct named_method *added, const uint8_t *detail)
{
    if (names->methods.count >= METHOD_NAMES_MAX) {
        names->left_out++;
        return 0;
    }
    if (is_told_again(names, numbered_find(&names->places, added->address), added, detail)) {
        return 0;
    }
    bool is_new;
    struct method_place *place = numbered_get(&names->places, added->address, &is_new);
    if (!place) {
        return -ENOMEM;
    }
    place->sorted = place->sorted || is_new;
    struct named_method *kept = chunks_add(&names->methods);
    if (!kept) {
        return -ENOMEM;
    }
    *kept = *added;
    kept->number = names->methods.count - 1;
    if (place->count && method_there(names, place, place->count - 1)->from > kept->from) {
        place->sorted = false;
    }
    return add_there(place, kept->number);
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
        address += (uint64_t)distance;
        const struct named_method added = {
            .address = address,
            .from = from,
            .bytecodes = address + (uint64_t)bytecodes,
            .bytecode_size = (uint32_t)size,
            .found = record->id == METHODS_FOUND,
            .detail_size = (uint32_t)(at - detail),
            .detail_offset = offset + (uint64_t)(detail - bytes),
            .source_offset = offset,
            .file = names->file_count - 1,
        };
        int err = add(names, &added, detail);
        if (err) {
            return err;
        }
    }
    return 0;
}

/* A part of the newest file. */
struct window {
    uint8_t *bytes;
    size_t room;
    uint64_t at;
    size_t size;
};

/* The file's bytes [at, at + size), which end before `end`. NULL: *err says why. */
static const uint8_t *window_get(const struct method_names *names, struct window *window,
                                 uint64_t at, size_t size, uint64_t end, int *err)
{
    if (at < window->at || at + size > window->at + window->size) {
        size_t wanted = size > WINDOW_SIZE ? size : WINDOW_SIZE;
        if (wanted > window->room) {
            uint8_t *grown = realloc(window->bytes, wanted);
            if (!grown) {
                *err = -ENOMEM;
                return NULL;
            }
            window->bytes = grown;
            window->room = wanted;
        }
        wanted = wanted < end - at ? wanted : (size_t)(end - at);
        errno = 0;
        window->at = at;
        window->size = read_some(names, names->file_count - 1, window->bytes, wanted, at);
        if (window->size < size) {
            *err = errno ? -errno : -EIO;
            return NULL;
        }
    }
    return window->bytes + (at - window->at);
}

/* What was told of all since a time is in this table only if none of the one before is as late. */
static void note_all(const struct method_names *names, uint64_t since)
{
    struct table *table = &names->files[names->file_count - 1];
    table->whole = table->whole || names->file_count == 1 || since > table[-1].last;
}

/* From names->next up to size. */
static int read_records(struct method_names *names, uint64_t size, bool is_all)
{
    struct window window = {0};
    const uint8_t *bytes;
    int err = 0;
    while (!err && names->next < size) {
        struct methods_record record = {0};
        uint64_t at = names->next;
        bytes = size - at >= sizeof record
                    ? window_get(names, &window, at, sizeof record, size, &err)
                    : NULL;
        if (bytes) {
            memcpy(&record, bytes, sizeof record);
        }
        if (record.total_size < sizeof record || record.total_size > RECORD_MAX ||
            record.total_size > size - at) {
            if (is_all && err != -ENOMEM) {
                warning_message("%s ends inside a record, at byte %" PRIu64, names->path, at);
            }
            err = err == -ENOMEM ? err : 0;
            break;
        }
        size_t payload = record.total_size - sizeof record;
        bytes = window_get(names, &window, at + sizeof record, payload, size, &err);
        if (bytes && payload && (record.id == METHODS_PREPARED || record.id == METHODS_FOUND)) {
            struct table *table = &names->files[names->file_count - 1];
            table->last = record.timestamp > table->last ? record.timestamp : table->last;
            err = take_record(names, &record, bytes, at + sizeof record);
        } else if (record.id == METHODS_ALL) {
            note_all(names, record.timestamp);
        } else if (bytes && payload && record.id == METHODS_LACKS) {
            names->lacks |= bytes[0];
        }
        if (err == -EINVAL) {
            warning_message("%s: the record at byte %" PRIu64 " is broken", names->path, at);
            err = 0;
        }
        names->next += record.total_size;
    }
    free(window.bytes);
    if (names->left_out && !names->told_left_out) {
        names->told_left_out = true;
        warning_message("%s has more than %u methods; the others have no names", names->path,
                        METHOD_NAMES_MAX);
    }
    return err;
}

static int by_time(const void *left, const void *right, void *context)
{
    const struct named_method *a = method(context, *(const uint32_t *)left);
    const struct named_method *b = method(context, *(const uint32_t *)right);
    return ORDER(a->from, b->from) ?: ORDER(a->number, b->number);
}

static int by_bytecode(const void *left, const void *right, void *context)
{
    uint64_t a = method(context, *(const uint32_t *)left)->bytecodes;
    uint64_t b = method(context, *(const uint32_t *)right)->bytecodes;
    return ORDER(a, b);
}

/* Brings the order by bytecodes up to date; it is seldom asked for. */
static bool sort_by_bytecode(struct method_names *names)
{
    uint32_t count = names->methods.count;
    if (names->by_bytecode_count == count) {
        return true;
    }
    uint32_t *grown = realloc(names->by_bytecode, count * sizeof *grown);
    if (!grown) {
        return false;
    }
    names->by_bytecode = grown;
    for (uint32_t i = names->by_bytecode_count; i < count; i++) {
        grown[i] = i;
    }
    names->by_bytecode_count = count;
    qsort_r(grown, count, sizeof *grown, by_bytecode, names);
    return true;
}

static int read_table(struct method_names *names, bool is_all)
{
    struct stat about;
    struct methods_header header;
    if (fstat(names->files[names->file_count - 1].fd, &about) != 0) {
        return -errno;
    }
    if (!S_ISREG(about.st_mode) || (uint64_t)about.st_size < sizeof header ||
        !read_at(names, names->file_count - 1, &header, sizeof header, 0) ||
        header.magic != METHODS_MAGIC || header.version != METHODS_VERSION ||
        header.total_size < sizeof header) {
        return -EINVAL;
    }
    names->next = header.total_size;
    size_t more = header.total_size - sizeof header;
    more = more < sizeof names->program ? more : sizeof names->program - 1;
    if (more && !read_at(names, names->file_count - 1, names->program, more, sizeof header)) {
        names->program[0] = '\0';
    }
    return read_records(names, (uint64_t)about.st_size, is_all);
}

static int add_file(struct method_names *names, int fd)
{
    int err = ARRAY_RESERVE(names->files, names->file_count, names->file_room);
    if (!err) {
        names->files[names->file_count++] = (struct table){.fd = fd};
    }
    return err;
}

static int open_table(const char *path, int fd,
                      uint64_t (*clock)(const void *context, uint64_t stamp), const void *context,
                      bool is_all, struct method_names **out)
{
    struct method_names *names = calloc(1, sizeof *names);
    int err = -ENOMEM;
    if (!names || add_file(names, fd)) {
        (void)close(fd);
    } else {
        names->clock = clock;
        names->context = context;
        names->methods.element = sizeof(struct named_method);
        names->places = NUMBERED(struct method_place);
        names->path = strdup(path);
        err = names->path ? read_table(names, is_all) : -ENOMEM;
    }
    if (err) {
        error_message("failed to read the table of methods %s: %s", path,
                      err == -EINVAL ? "it is none, or of another version or byte order"
                                     : strerror(-err));
        method_names_close(names);
        return err;
    }
    *out = names;
    return 0;
}

static int open_file(const char *path, int *fd)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0 && errno != ENOENT) {
        return failed_to(-errno, "read the table of methods %s", path);
    }
    return *fd < 0 ? -ENOENT : 0;
}

int method_names_open(const char *path, uint64_t (*clock)(const void *context, uint64_t stamp),
                      const void *context, struct method_names **out)
{
    int fd;
    int err = open_file(path, &fd);
    fd = err ? -1 : packed_file_unpack(fd, path);
    err = !err && fd < 0 ? fd : err;
    return err ? err : open_table(path, fd, clock, context, true, out);
}

int method_names_follow(const char *path, int fd,
                        uint64_t (*clock)(const void *context, uint64_t stamp), const void *context,
                        struct method_names **out)
{
    int err = fd < 0 ? open_file(path, &fd) : 0;
    return err ? err : open_table(path, fd, clock, context, false, out);
}

int method_names_update(struct method_names *names, bool is_all)
{
    struct stat about;
    uint32_t before = names->methods.count;
    if (fstat(names->files[names->file_count - 1].fd, &about) != 0) {
        return 0;
    }
    int err = read_records(names, (uint64_t)about.st_size, is_all);
    return failed_to(err, "read the table of methods %s", names->path)
               ? err
               : names->methods.count > before;
}

int method_names_continue(struct method_names *names, const char *path, uint64_t until, bool is_all)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return 0;
    }
    if (add_file(names, fd)) {
        (void)close(fd);
        return failed_to(-ENOMEM, "read the table of methods %s", path);
    }
    int err = read_table(names, is_all);
    if (err == -EINVAL) { /* none of ours */
        (void)close(fd);
        names->file_count--;
        return 0;
    }
    failed_to(err, "read the table of methods %s", path);
    names->files[names->file_count - 2].until = until;
    return err ? err : 1;
}

/* The newest table that has told of all that live, or the oldest. */
static uint32_t last_whole(const struct method_names *names)
{
    uint32_t whole = names->file_count - 1;
    while (whole > names->let_go && !names->files[whole].whole) {
        whole--;
    }
    return whole;
}

bool method_names_is_whole(const struct method_names *names)
{
    return names->files[last_whole(names)].whole;
}

void method_names_let_go(struct method_names *names, uint64_t time)
{
    uint32_t whole = last_whole(names);
    while (names->let_go < whole && names->files[names->let_go].until < time) {
        struct table *table = &names->files[names->let_go++];
        (void)close(table->fd);
        table->fd = -1;
    }
}

static void clear(struct method_names *names)
{
    for (uint32_t i = 0; i < names->methods.count; i++) {
        free(method(names, i)->detail);
    }
    for (uint32_t i = 0; i < names->places.list.count; i++) {
        struct method_place *place = chunks_at(&names->places.list, i);
        free(place->room ? place->methods : NULL);
    }
    chunks_free(&names->methods);
    numbered_free(&names->places);
    free(names->by_bytecode);
    names->by_bytecode = NULL;
    names->by_bytecode_count = 0;
}

bool method_names_outgrown(const struct method_names *names)
{
    return names->let_go > 0 && chunks_outgrown(&names->methods, names->living);
}

int method_names_forget(struct method_names *names)
{
    uint32_t count = names->file_count - names->let_go;
    int err = 0;
    clear(names);
    memmove(names->files, names->files + names->let_go, count * sizeof *names->files);
    names->let_go = 0;
    for (names->file_count = 1; names->file_count <= count && err != -ENOMEM; names->file_count++) {
        err = read_table(names, false); /* it was sound before */
    }
    names->file_count = count;
    names->living = names->methods.count;
    if (err == -ENOMEM) {
        failed_to(err, "read the table of methods %s", names->path);
    }
    return err == -ENOMEM ? err : 0;
}

void method_names_close(struct method_names *names)
{
    if (!names) {
        return;
    }
    clear(names);
    free(names->path);
    for (uint32_t i = 0; i < names->file_count; i++) {
        descriptor_close(names->files[i].fd);
    }
    free(names->files);
    free(names);
}

const char *method_names_program(const struct method_names *names)
{
    return names->program;
}

unsigned method_names_lacks(const struct method_names *names)
{
    return names->lacks;
}

uint32_t method_names_count(const struct method_names *names)
{
    return names->methods.count;
}

/* The first one there that is later; place->count: none. */
static uint32_t first_later(struct method_names *names, struct method_place *place, uint64_t time)
{
    if (!place->sorted && place->room) {
        qsort_r(place->methods, place->count, sizeof *place->methods, by_time, names);
        place->sorted = true;
    }
    uint32_t low;
    ARRAY_FIRST(low, place->count, method_there(names, place, low)->from <= time);
    return low;
}

struct named_method *method_names_at(struct method_names *names, uint64_t address, uint64_t time)
{
    struct method_place *place = numbered_find(&names->places, address);
    if (!place) {
        return NULL;
    }
    uint32_t later = first_later(names, place, time);
    if (later > 0) {
        return method_there(names, place, later - 1);
    }
    struct named_method *first = method_there(names, place, 0);
    return first->found ? first : NULL;
}

uint64_t method_names_until(struct method_names *names, uint64_t address, uint64_t time)
{
    struct method_place *place = numbered_find(&names->places, address);
    uint32_t later = place ? first_later(names, place, time) : 0;
    return place && later < place->count ? method_there(names, place, later)->from : UINT64_MAX;
}

struct named_method *method_names_found_after(struct method_names *names,
                                              const struct named_method *found)
{
    const struct method_place *place = numbered_find(&names->places, found->address);
    for (uint32_t i = 0; place && i + 1 < place->count; i++) {
        if (method_there(names, place, i) == found) {
            struct named_method *next = method_there(names, place, i + 1);
            return next->found ? next : NULL;
        }
    }
    return NULL;
}

/* Methods lie apart, but over time several may have begun near one address: so many are looked at.
 */
#define NEIGHBOURS 64

struct named_method *method_names_by_bytecode(struct method_names *names, uint64_t bcp,
                                              uint64_t time)
{
    uint32_t low;
    ARRAY_FIRST(low, sort_by_bytecode(names) ? names->by_bytecode_count : 0,
                method(names, names->by_bytecode[low])->bytecodes <= bcp);
    for (uint32_t tries = 0; low > 0 && tries < NEIGHBOURS; tries++) {
        struct named_method *found = method(names, names->by_bytecode[--low]);
        if (bcp - found->bytecodes < found->bytecode_size &&
            method_names_at(names, found->address, time) == found) {
            return found;
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
    if (!read_at(names, method->file, out, have, method->source_offset) || !memchr(out, 0, have)) {
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
    if (names->files[method->file].fd < 0) {
        return NULL;
    }
    char source[SOURCE_MAX];
    uint8_t *bytes = malloc(method->detail_size);
    if (bytes && read_at(names, method->file, bytes, method->detail_size, method->detail_offset)) {
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
    uint32_t low;
    ARRAY_FIRST(low, detail->line_count, detail->lines[low].bci <= bci);
    return low ? detail->lines[low - 1].line : 0;
}
