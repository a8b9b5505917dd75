/*
 * The text, line by line (JSR 45, "Resolved SMAP"):
 *
 *     SMAP                 always
 *     Shop.kt              the class's SourceFile
 *     Kotlin               the stratum that counts
 *     *S Kotlin            a stratum: a way to see the lines
 *     *F                   its files
 *     + 2 Discount.kt      number and name, and because of the '+' ...
 *     market/DiscountKt    ... its path
 *     *L                   its lines
 *     11#2,3:201,1         lines 11, 12, 13 of file 2 are lines 201, 202, 203 of the class
 *     *S KotlinDebug       where Kotlin has the calls
 *     *L
 *     87#1:201,3           lines 201 to 203 of the class were called from line 87 of file 1
 *     *E                   the end
 *
 * Whoever writes class files may write anything there: what is no number ends the reading.
 */
#include "agent/methods/source_map.h"

#include "agent/methods/symbol_name.h"
#include "writer/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 1 << 20,
    PLACES_MAX = 1 << 10,
    RANGES_MAX = 1 << 16,
    LINE_MAX = 1 << 24,
};

/* Lines [out, out + count) of the class; each `step` of them are one line, the first is `in`. */
struct source_range {
    uint32_t out, count, step, in;
    uint32_t place;
};

struct file_number {
    uint32_t number; /* in the map */
    uint32_t place;
};

struct reader {
    struct source_map *map;
    char *rest;
    size_t place_room, range_room, call_room;
    struct file_number *numbers; /* of the stratum */
    uint32_t number_count;
    size_t number_room;
};

/* Takes the next line off; NULL behind the last one. */
static char *next_line(struct reader *reader)
{
    char *line = reader->rest;
    if (!line || !*line) {
        return NULL;
    }
    char *end = line + strcspn(line, "\r\n");
    reader->rest = *end ? end + 1 + (end[0] == '\r' && end[1] == '\n') : end;
    *end = '\0';
    return line;
}

/* Reads a number at *at and moves behind it. False: there is none, or none that makes sense. */
static bool take_number(char **at, uint32_t *number)
{
    char *p = *at;
    uint32_t n = 0;
    for (; *p >= '0' && *p <= '9' && n <= LINE_MAX; p++) {
        n = n * 10 + (uint32_t)(*p - '0');
    }
    if (p == *at || n > LINE_MAX) {
        return false;
    }
    *at = p;
    *number = n;
    return true;
}

/* Room for one more of at most so many. */
#define ROOM(array, room, count, most) ((count) < (most) && ARRAY_RESERVE(array, room, (count) + 1))

static bool add_place(struct reader *reader, uint32_t number, const char *file, const char *path)
{
    struct source_map *map = reader->map;
    if (!ROOM(map->places, reader->place_room, map->place_count, PLACES_MAX) ||
        !ROOM(reader->numbers, reader->number_room, reader->number_count, PLACES_MAX)) {
        return false;
    }
    reader->numbers[reader->number_count++] =
        (struct file_number){.number = number, .place = map->place_count};
    map->places[map->place_count++] = (struct source_place){.file = file, .path = path};
    return true;
}

/* "+ 2 Discount.kt" with the path in the next line, or "2 Discount.kt". */
static bool read_file(struct reader *reader, char *line)
{
    bool has_path = line[0] == '+';
    uint32_t number;
    line += has_path ? 1 : 0;
    line += strspn(line, " ");
    if (!take_number(&line, &number)) {
        return false;
    }
    const char *path = has_path ? next_line(reader) : "";
    return path && add_place(reader, number, line + strspn(line, " "), path);
}

/* The place of a file's number in this stratum; false: it has not been named. */
static bool find_place(const struct reader *reader, uint32_t number, uint32_t *place)
{
    /* They are numbered from 1 on, mostly. */
    uint32_t first = number > 0 && number <= reader->number_count ? number - 1 : 0;
    first = first && reader->numbers[first].number == number ? first : 0;
    for (uint32_t i = first; i < reader->number_count; i++) {
        if (reader->numbers[i].number == number) {
            *place = reader->numbers[i].place;
            return true;
        }
    }
    return false;
}

/* "in#file,count:out,step"; without "#file" it is the line's before. */
static bool read_range(const struct reader *reader, char *line, uint32_t *file,
                       struct source_range *range)
{
    uint32_t count = 1;
    *range = (struct source_range){.step = 1};
    if (!take_number(&line, &range->in) || (*line == '#' && (line++, !take_number(&line, file))) ||
        (*line == ',' && (line++, !take_number(&line, &count))) || *line++ != ':' ||
        !take_number(&line, &range->out) ||
        (*line == ',' && (line++, !take_number(&line, &range->step)))) {
        return false;
    }
    uint64_t lines = (uint64_t)count * range->step;
    range->count = (uint32_t)lines;
    return lines > 0 && lines <= LINE_MAX && find_place(reader, *file, &range->place);
}

enum section { SECTION_OTHER, SECTION_FILES, SECTION_LINES };

/* One stratum, up to the next one's line. `*name` becomes that one's, NULL at the end. */
static bool read_stratum(struct reader *reader, struct source_range **ranges, uint32_t *count,
                         size_t *room, const char **name)
{
    enum section section = SECTION_OTHER;
    uint32_t file = 0;
    char *line;
    reader->number_count = 0;
    *name = NULL;
    while ((line = next_line(reader))) {
        if (line[0] == '*') {
            section = line[1] == 'F'   ? SECTION_FILES
                      : line[1] == 'L' ? SECTION_LINES
                                       : SECTION_OTHER;
            if (line[1] == 'E') {
                return true;
            }
            if (line[1] == 'S') {
                *name = line + 2 + strspn(line + 2, " ");
                return true;
            }
        } else if (section == SECTION_FILES) {
            if (!read_file(reader, line)) {
                return false;
            }
        } else if (section == SECTION_LINES) {
            if (!ROOM(*ranges, *room, *count, RANGES_MAX) ||
                !read_range(reader, line, &file, &(*ranges)[*count])) {
                return false;
            }
            (*count)++;
        }
    }
    return true;
}

static int by_line(const void *a, const void *b)
{
    const struct source_range *left = a;
    const struct source_range *right = b;
    return (left->out > right->out) - (left->out < right->out);
}

/* The strata: the default one, and where Kotlin keeps its calls. */
static bool read_map(struct reader *reader)
{
    struct source_map *map = reader->map;
    const char *head = next_line(reader);
    if (!head || strcmp(head, "SMAP") != 0 || !next_line(reader)) {
        return false;
    }
    const char *wanted = next_line(reader);
    const char *name = NULL;
    struct source_range *ignored = NULL;
    uint32_t ignored_count = 0;
    size_t ignored_room = 0;
    bool sound =
        wanted && read_stratum(reader, &ignored, &ignored_count, &ignored_room, &name); /* to *S */
    map->inlines = sound && strcmp(wanted, "Kotlin") == 0;
    while (sound && name) {
        if (strcmp(name, wanted) == 0) {
            sound =
                read_stratum(reader, &map->ranges, &map->range_count, &reader->range_room, &name);
        } else if (strcmp(name, "KotlinDebug") == 0) {
            uint32_t places = map->place_count;
            sound = read_stratum(reader, &map->calls, &map->call_count, &reader->call_room, &name);
            map->place_count = places; /* these are the class's own file */
        } else {
            sound = read_stratum(reader, &ignored, &ignored_count, &ignored_room, &name);
        }
    }
    free(ignored);
    return sound && map->range_count > 0;
}

/*
 * The class's own lines say nothing new, but for those of a function of its own that was inlined:
 * they are at another line then.
 */
static bool is_own(const struct source_map *map, const struct source_range *range,
                   const char *signature)
{
    const char *path = map->places[range->place].path;
    size_t size = strlen(path);
    return range->in == range->out && signature[0] == 'L' &&
           strncmp(signature + 1, path, size) == 0 && strcmp(signature + 1 + size, ";") == 0;
}

struct source_map *source_map_new(const char *text, const char *class_signature)
{
    size_t size = text ? strlen(text) + 1 : 0;
    struct source_map *map = size && size <= TEXT_MAX ? calloc(1, sizeof(*map)) : NULL;
    if (!map) {
        return NULL;
    }
    map->text = malloc(size);
    struct reader reader = {.map = map, .rest = map->text};
    bool sound = map->text && (memcpy(map->text, text, size), read_map(&reader));
    free(reader.numbers);
    uint32_t kept = 0;
    for (uint32_t i = 0; sound && i < map->range_count; i++) {
        if (!map->inlines || !is_own(map, &map->ranges[i], class_signature)) {
            map->ranges[kept++] = map->ranges[i];
        }
    }
    if (kept == 0) {
        source_map_free(map);
        return NULL;
    }
    map->range_count = kept;
    qsort(map->ranges, map->range_count, sizeof(*map->ranges), by_line);
    if (map->call_count > 0) {
        qsort(map->calls, map->call_count, sizeof(*map->calls), by_line);
    }
    return map;
}

size_t source_map_path(char *out, size_t room, const struct source_map *map)
{
    const struct source_place *from = &map->places[0];
    return symbol_text(out, room, from->path[0] ? from->path : from->file);
}

void source_map_free(struct source_map *map)
{
    if (map) {
        for (uint32_t i = 0; i < map->place_count; i++) {
            free(map->places[i].strings);
        }
        free(map->places);
        free(map->ranges);
        free(map->calls);
        free(map->text);
        free(map);
    }
}

/* The range with that line of the class, or NULL. */
static const struct source_range *find(const struct source_range *ranges, uint32_t count,
                                       uint32_t line)
{
    uint32_t low = 0;
    uint32_t high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (ranges[middle].out <= line) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct source_range *range = low > 0 ? &ranges[low - 1] : NULL;
    return range && line - range->out < range->count ? range : NULL;
}

static uint32_t line_in(const struct source_range *range, uint32_t line)
{
    return range->in + (line - range->out) / range->step;
}

struct source_line source_map_find(const struct source_map *map, uint32_t line)
{
    const struct source_range *range =
        map && line ? find(map->ranges, map->range_count, line) : NULL;
    if (!map || (map->inlines && !range)) {
        return (struct source_line){.line = line};
    }
    if (!map->inlines) { /* another file's lines cannot be told */
        return (struct source_line){.line = range && range->place == 0 ? line_in(range, line) : 0};
    }
    const struct source_range *call = find(map->calls, map->call_count, line);
    const struct source_place *place = &map->places[range->place];
    /* What Kotlin calls code that stands in no file. */
    bool is_fake = strcmp(place->path, "kotlin/jvm/internal/FakeKt") == 0;
    return (struct source_line){
        .line = call ? line_in(call, line) : 0,
        .inlined = is_fake ? NULL : &place->method,
        .inlined_line = line_in(range, line),
    };
}
