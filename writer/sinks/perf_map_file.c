#include "writer/sinks/perf_map_file.h"

#include "writer/disk_room.h"
#include "writer/message.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    TEXT_LIMIT = 64 * 1024 * 1024,
    COMPACT_MIN = 64 * 1024, /* bytes; fewer blanks are not worth a new file */
    COPY_CHUNK = 64 * 1024,
    SMALLEST_PAGE = 4096,
    LINE_NUMBERS_MAX = 16 + 1 + 16 + 1, /* "START SIZE " */
};

struct line {
    struct range range;
    uint64_t offset; /* in the file; at or behind its end while the line waits in `text` */
    uint32_t length; /* bytes, the newline included */
    uint32_t name_at;
};

int perf_map_file_create(struct perf_map_file *map, const char *path)
{
    *map = (struct perf_map_file){
        .file.fd = -1,
        .lines = range_map_new(sizeof(struct line)),
        .text = BUFFER_INIT(TEXT_LIMIT),
        .name = BUFFER_INIT(TEXT_LIMIT),
        .blanks = BUFFER_INIT(TEXT_LIMIT),
        .moved = BUFFER_INIT(TEXT_LIMIT),
        .compact_at = COMPACT_MIN,
    };
    if (!map->lines) {
        message(MESSAGE_ERROR, "failed to start %s: out of memory", path);
        return -ENOMEM;
    }
    int error = output_file_create(&map->file, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE);
    if (error) {
        perf_map_file_abandon(map);
    }
    return error;
}

/* Appends a line to the text and notes where in the file it will be. */
static int add_line(struct perf_map_file *map, struct range range, const char *name,
                    size_t name_size)
{
    if (!range_map_reserve(map->lines, 1)) {
        return -ENOMEM;
    }
    char numbers[LINE_NUMBERS_MAX + 1];
    int name_at = snprintf(numbers, sizeof(numbers), "%" PRIx64 " %" PRIx64 " ", range.start,
                           range.end - range.start);
    size_t start = map->text.size;
    size_t length = (size_t)name_at + name_size + 1;
    char *at = (char *)buffer_extend(&map->text, length);
    if (!at) {
        return -ENOMEM;
    }
    memcpy(at, numbers, (size_t)name_at);
    for (size_t i = 0; i < name_size; i++) {
        unsigned char c = (unsigned char)name[i];
        at[(size_t)name_at + i] = (char)(c < ' ' || c == 0x7f ? '?' : c);
    }
    at[length - 1] = '\n';
    struct line *line = range_map_insert(map->lines, range);
    line->offset = map->file.size + start;
    line->length = (uint32_t)length;
    line->name_at = (uint32_t)name_at;
    return 0;
}

static bool is_waiting(const struct perf_map_file *map, const struct line *line)
{
    return line->offset >= map->file.size;
}

static uint8_t *waiting_text(const struct perf_map_file *map, const struct line *line)
{
    return map->text.bytes + (line->offset - map->file.size);
}

/* Appends n bytes of a line, from `skip` on, to a buffer. */
static int copy_from_line(const struct perf_map_file *map, const struct line *line, size_t skip,
                          size_t n, struct buffer *out)
{
    if (is_waiting(map, line)) {
        buffer_put(out, waiting_text(map, line) + skip, n);
        return out->failed ? -ENOMEM : 0;
    }
    uint8_t *at = buffer_extend(out, n);
    if (!at) {
        return -ENOMEM;
    }
    ssize_t got;
    do {
        got = pread(map->file.fd, at, n, (off_t)(line->offset + skip));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)n ? 0 : got < 0 ? -errno : -EIO;
}

static int read_name(struct perf_map_file *map, const struct line *line)
{
    buffer_clear(&map->name);
    return copy_from_line(map, line, line->name_at, line->length - line->name_at - 1, &map->name);
}

/*
 * Turns a line of the file into newlines. A kill can come between two pages of a write, so a line
 * that reaches over several is blanked page by page from its end: what may be left is then a line
 * with a shorter name, never the end of a name for a line of its own.
 */
static int blank_in_file(struct perf_map_file *map, const struct line *line)
{
    buffer_clear(&map->blanks);
    uint8_t *newlines = buffer_extend(&map->blanks, line->length);
    if (!newlines) {
        return -ENOMEM;
    }
    memset(newlines, '\n', line->length);
    uint64_t end = line->offset + line->length;
    while (end > line->offset) {
        uint64_t page = (end - 1) / SMALLEST_PAGE * SMALLEST_PAGE;
        uint64_t start = page > line->offset ? page : line->offset;
        int error = output_file_overwrite(&map->file, start, newlines, end - start);
        if (error) {
            return error;
        }
        end = start;
    }
    return 0;
}

static int blank_out(struct perf_map_file *map, const struct line *line)
{
    map->blank_bytes += line->length;
    if (is_waiting(map, line)) {
        memset(waiting_text(map, line), '\n', line->length);
        return 0;
    }
    return blank_in_file(map, line);
}

/* Takes the range out of a line: blanks it, and adds lines for what it has on either side. */
static int cut(struct perf_map_file *map, struct line *line, struct range range)
{
    const struct range old = line->range;
    bool left = old.start < range.start;
    bool right = old.end > range.end;
    int error = left || right ? read_name(map, line) : 0;
    if (!error) {
        error = blank_out(map, line);
    }
    if (error) {
        return error;
    }
    range_map_remove(map->lines, line);
    const char *name = (const char *)map->name.bytes;
    if (left) {
        error = add_line(map, (struct range){old.start, range.start}, name, map->name.size);
    }
    if (right && !error) {
        error = add_line(map, (struct range){range.end, old.end}, name, map->name.size);
    }
    return error;
}

/* The first line that has a part in the range, or NULL. */
static struct line *line_in(const struct perf_map_file *map, struct range range)
{
    struct line *line = range_map_at(map->lines, range.start);
    return line && line->range.start < range.end ? line : NULL;
}

static int put(struct perf_map_file *map, struct range range, const char *name, size_t name_size)
{
    struct line *line;
    while ((line = line_in(map, range))) {
        int error = cut(map, line, range);
        if (error) {
            return error;
        }
    }
    return add_line(map, range, name, name_size);
}

int perf_map_file_put(struct perf_map_file *map, struct range range, const char *name)
{
    return range.start < range.end ? put(map, range, name, strlen(name)) : 0;
}

/* What of a range a move has taken out of the file; its name follows. */
struct moved {
    struct range range;
    size_t name_size;
};

/* Takes all lines of the range out, into map->moved. */
static int take(struct perf_map_file *map, struct range range)
{
    struct line *line;
    while ((line = line_in(map, range))) {
        uint64_t start = line->range.start > range.start ? line->range.start : range.start;
        uint64_t end = line->range.end < range.end ? line->range.end : range.end;
        int error = read_name(map, line);
        if (error) {
            return error;
        }
        const struct moved moved = {{start, end}, map->name.size};
        buffer_put(&map->moved, &moved, sizeof(moved));
        buffer_put(&map->moved, map->name.bytes, map->name.size);
        error = map->moved.failed ? -ENOMEM : cut(map, line, range);
        if (error) {
            return error;
        }
    }
    return 0;
}

int perf_map_file_move(struct perf_map_file *map, struct range from, uint64_t to)
{
    buffer_clear(&map->moved);
    int error = take(map, from);
    for (size_t at = 0; !error && at < map->moved.size;) {
        struct moved moved;
        memcpy(&moved, map->moved.bytes + at, sizeof(moved));
        at += sizeof(moved);
        struct range range = {to + (moved.range.start - from.start),
                              to + (moved.range.end - from.start)};
        error = put(map, range, (const char *)map->moved.bytes + at, moved.name_size);
        at += moved.name_size;
    }
    return error;
}

/* Copies all lines, by address, into an empty file. */
static int copy_lines(struct perf_map_file *map, struct output_file *fresh)
{
    int error = 0;
    buffer_clear(&map->name);
    struct line *line = range_map_at(map->lines, 0);
    while (line && !error) {
        error = copy_from_line(map, line, 0, line->length, &map->name);
        line = range_map_at(map->lines, line->range.end);
        if (!error && (!line || map->name.size >= COPY_CHUNK)) {
            error = output_file_append(fresh, map->name.bytes, map->name.size);
            buffer_clear(&map->name);
        }
    }
    return error;
}

/* Writes the file anew without blanks. When that fails the old one is as good as it was. */
static int compact(struct perf_map_file *map)
{
    char *path;
    if (asprintf(&path, "%s.new", map->file.path) < 0) {
        return -ENOMEM;
    }
    struct output_file fresh;
    int error = output_file_create(&fresh, AT_FDCWD, path, OUTPUT_FILE_REPLACE_STALE);
    free(path);
    if (error) {
        return error;
    }
    error = copy_lines(map, &fresh);
    if (error) {
        output_file_discard(&fresh);
        return error;
    }
    fresh.outlives_full_disk = map->file.outlives_full_disk;
    error = output_file_replace(&map->file, &fresh);
    if (error) {
        return error;
    }
    uint64_t offset = 0;
    struct line *line = range_map_at(map->lines, 0);
    for (; line; line = range_map_at(map->lines, line->range.end)) {
        line->offset = offset;
        offset += line->length;
    }
    map->blank_bytes = 0;
    return 0;
}

/* Whether the disk has room for a second file. */
static bool has_room(const struct perf_map_file *map)
{
    return disk_room(map->file.fd, map->reserve) >= map->file.size - map->blank_bytes;
}

int perf_map_file_commit(struct perf_map_file *map)
{
    int error = 0;
    if (map->text.size > 0) {
        error = output_file_append(&map->file, map->text.bytes, map->text.size);
    }
    if (error && map->file.fd >= 0) {
        return error; /* there may be room later */
    }
    buffer_clear(&map->text);
    if (!error && map->blank_bytes >= map->compact_at && map->blank_bytes > map->file.size / 2 &&
        has_room(map)) {
        /* A disk that has no room for a second file now may have it when this one is larger. */
        map->compact_at = compact(map) == 0 ? COMPACT_MIN : 2 * map->blank_bytes;
    }
    return error;
}

void perf_map_file_close(struct perf_map_file *map)
{
    if (map->file.fd >= 0 && perf_map_file_commit(map) == 0 && map->blank_bytes > 0 &&
        has_room(map)) {
        compact(map);
    }
    perf_map_file_abandon(map);
}

void perf_map_file_abandon(struct perf_map_file *map)
{
    output_file_release(&map->file);
    range_map_free(map->lines);
    buffer_free(&map->text);
    buffer_free(&map->name);
    buffer_free(&map->blanks);
    buffer_free(&map->moved);
    *map = (struct perf_map_file){.file.fd = -1};
}
