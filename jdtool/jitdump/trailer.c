#include "jdtool/jitdump/trailer.h"

#include "format/leb128.h"
#include "jdtool/base/array.h"
#include "jdtool/base/hash_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Names ---- */

/*
 * The methods and source files that a dump defines, by id. Ids come from the file, so they may be
 * anything.
 */

struct file {
    uint64_t id;
    char *path;
};

struct method {
    uint64_t id;
    char *name;
    struct trailer_method seen; /* as callers get it */
};

struct trailer_names {
    struct hash_map file_map, method_map; /* by id */
    struct file *files;
    struct method **methods; /* each its own allocation: callers keep pointers into them */
    uint32_t file_count, file_room;
    uint32_t method_count, method_room;
};

static const struct trailer_method unknown_method = {.name = "?"};

struct trailer_names *trailer_names_new(void)
{
    return calloc(1, sizeof(struct trailer_names));
}

void trailer_names_free(struct trailer_names *names)
{
    if (!names) {
        return;
    }
    for (uint32_t i = 0; i < names->file_count; i++) {
        free(names->files[i].path);
    }
    for (uint32_t i = 0; i < names->method_count; i++) {
        free(names->methods[i]->name);
        free(names->methods[i]);
    }
    free(names->files);
    free(names->methods);
    hash_map_free(&names->file_map);
    hash_map_free(&names->method_map);
    free(names);
}

/* NULL: there is none. */
static const struct method *find_method(const struct trailer_names *names, uint64_t id)
{
    uint32_t at;
    HASH_MAP_FIND(at, &names->method_map, id, names->methods[at]->id == id);
    return at == HASH_MAP_NONE ? NULL : names->methods[at];
}

const char *trailer_names_file(const struct trailer_names *names, uint64_t id)
{
    uint32_t at;
    HASH_MAP_FIND(at, &names->file_map, id, names->files[at].id == id);
    return at == HASH_MAP_NONE ? NULL : names->files[at].path;
}

bool trailer_names_has_method(const struct trailer_names *names, uint64_t id)
{
    return find_method(names, id) != NULL;
}

const struct trailer_method *trailer_names_method(const struct trailer_names *names, uint64_t id)
{
    const struct method *found = find_method(names, id);
    return found ? &found->seen : &unknown_method;
}

uint64_t trailer_names_method_count(const struct trailer_names *names)
{
    return names->method_count;
}

int trailer_names_add_file(struct trailer_names *names, uint64_t id, const char *path,
                           const char **why)
{
    const char *known = trailer_names_file(names, id);
    if (known) {
        *why = "a file id is defined twice with different paths";
        return strcmp(known, path) == 0 ? 0 : -EINVAL;
    }
    if (id == 0) {
        *why = "file id 0 is defined";
        return -EINVAL;
    }
    char *copy =
        ARRAY_RESERVE(names->files, names->file_count, names->file_room) ? NULL : strdup(path);
    if (!copy || hash_map_add(&names->file_map, id, names->file_count)) {
        free(copy);
        *why = "no memory";
        return -ENOMEM;
    }
    names->files[names->file_count++] = (struct file){.id = id, .path = copy};
    return 0;
}

int trailer_names_add_method(struct trailer_names *names, uint64_t id,
                             const struct trailer_method *method, const char **why)
{
    const struct method *found = find_method(names, id);
    if (found) {
        const struct trailer_method *known = &found->seen;
        *why = "a method id is defined twice with different contents";
        return strcmp(known->name, method->name) == 0 && known->file_id == method->file_id &&
                       known->first_line == method->first_line
                   ? 0
                   : -EINVAL;
    }
    if (id == 0) {
        *why = "method id 0 is defined";
        return -EINVAL;
    }
    // NOLINTNEXTLINE(bugprone-sizeof-expression): the elements are pointers.
    int error = ARRAY_RESERVE(names->methods, names->method_count, names->method_room);
    struct method *added = error ? NULL : calloc(1, sizeof(*added));
    char *copy = added ? strdup(method->name) : NULL;
    if (!copy || hash_map_add(&names->method_map, id, names->method_count)) {
        free(copy);
        free(added);
        *why = "no memory";
        return -ENOMEM;
    }
    added->id = id;
    added->name = copy;
    added->seen.name = copy;
    added->seen.file = trailer_names_file(names, method->file_id);
    added->seen.file_id = method->file_id;
    added->seen.first_line = method->first_line;
    names->methods[names->method_count++] = added;
    return 0;
}

/* ---- Trailers ---- */

int trailer_find(const struct jitdump_reader *reader, const uint8_t *bytes, size_t size,
                 const uint8_t **at, const uint8_t **end, const char **why)
{
    /* Not ours when the magic is missing: V8 pads its records, others may do what they like. */
    if (size < sizeof(struct jitdump_trailer) ||
        jitdump_reader_u32(reader, bytes) != JITDUMP_TRAILER_MAGIC) {
        return 0;
    }
    if (jitdump_reader_u32(reader, bytes + offsetof(struct jitdump_trailer, version)) !=
        JITDUMP_TRAILER_VERSION) {
        return 0;
    }
    uint32_t claimed = jitdump_reader_u32(reader, bytes + offsetof(struct jitdump_trailer, size));
    if (claimed < sizeof(struct jitdump_trailer) || claimed > size) {
        *why = "its size does not fit the record";
        return -EINVAL;
    }
    *at = bytes + sizeof(struct jitdump_trailer);
    *end = bytes + claimed;
    return 1;
}

int trailer_section_next(const uint8_t **at, const uint8_t *end, struct trailer_section *section,
                         const char **why)
{
    if (*at == end) {
        return 0;
    }
    uint64_t length;
    if (uleb128_get(at, end, &section->tag) < 0 || uleb128_get(at, end, &length) < 0 ||
        length > (uint64_t)(end - *at)) {
        *why = "a section does not fit in it";
        return -EINVAL;
    }
    section->at = *at;
    section->end = *at + length;
    *at = section->end;
    return 1;
}

static int get_string(struct trailer_section *section, const char **string)
{
    const uint8_t *nul = memchr(section->at, 0, (size_t)(section->end - section->at));
    if (!nul) {
        return -EINVAL;
    }
    *string = (const char *)section->at;
    section->at = nul + 1;
    return 0;
}

static int get_u32(struct trailer_section *section, uint32_t *out)
{
    uint64_t value;
    if (uleb128_get(&section->at, section->end, &value) < 0 || value > UINT32_MAX) {
        return -EINVAL;
    }
    *out = (uint32_t)value;
    return 0;
}

int trailer_file_next(struct trailer_section *section, uint64_t *id, const char **path,
                      const char **why)
{
    if (section->at == section->end) {
        return 0;
    }
    if (uleb128_get(&section->at, section->end, id) < 0 || get_string(section, path) < 0) {
        *why = "a file's definition is cut off";
        return -EINVAL;
    }
    return 1;
}

int trailer_method_next(struct trailer_section *section, uint64_t *id,
                        struct trailer_method *method, const char **why)
{
    if (section->at == section->end) {
        return 0;
    }
    memset(method, 0, sizeof(*method));
    if (uleb128_get(&section->at, section->end, id) < 0 ||
        uleb128_get(&section->at, section->end, &method->file_id) < 0 ||
        get_u32(section, &method->first_line) < 0 || get_string(section, &method->name) < 0) {
        *why = "a method's definition is cut off";
        return -EINVAL;
    }
    return 1;
}

static int decode_files(struct trailer_section *section, struct trailer_names *names,
                        const char **why)
{
    uint64_t id;
    const char *path;
    int more;
    while ((more = trailer_file_next(section, &id, &path, why)) > 0) {
        int error = trailer_names_add_file(names, id, path, why);
        if (error) {
            return error;
        }
    }
    return more;
}

static int decode_methods(struct trailer_section *section, struct trailer_names *names,
                          struct trailer *trailer, const char **why)
{
    uint64_t id;
    struct trailer_method method;
    int more;
    while ((more = trailer_method_next(section, &id, &method, why)) > 0) {
        int error = trailer_names_add_method(names, id, &method, why);
        if (error) {
            return error;
        }
        if (method.file_id && !trailer_names_file(names, method.file_id)) {
            trailer->undefined_files++;
        }
    }
    return more;
}

int trailer_add_node(struct trailer *trailer, const struct trailer_node *node)
{
    int error = ARRAY_RESERVE(trailer->nodes, trailer->node_count, trailer->node_room);
    if (!error) {
        trailer->nodes[trailer->node_count++] = *node;
    }
    return error;
}

int trailer_add_range(struct trailer *trailer, const struct trailer_range *range)
{
    int error = ARRAY_RESERVE(trailer->ranges, trailer->range_count, trailer->range_room);
    if (!error) {
        trailer->ranges[trailer->range_count++] = *range;
    }
    return error;
}

static int decode_nodes(struct trailer_section *section, struct trailer *trailer, const char **why)
{
    uint64_t count;
    if (uleb128_get(&section->at, section->end, &count) < 0 ||
        count > (uint64_t)(section->end - section->at) || count > UINT32_MAX / 2) {
        *why = "the inline tree claims more nodes than it has room for";
        return -EINVAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct trailer_node node = {0};
        if (uleb128_get(&section->at, section->end, &node.method) < 0 ||
            (i > 0 &&
             (get_u32(section, &node.parent) < 0 || get_u32(section, &node.call_line) < 0))) {
            *why = "a node of the inline tree is cut off";
            return -EINVAL;
        }
        if (i > 0 && node.parent >= i) {
            *why = "a node of the inline tree stands before its parent";
            return -EINVAL;
        }
        if (trailer_add_node(trailer, &node) < 0) {
            *why = "no memory";
            return -ENOMEM;
        }
    }
    return 0;
}

static int decode_ranges(struct trailer_section *section, struct trailer *trailer, const char **why)
{
    uint64_t offset = 0;
    int64_t line = 0;
    while (section->at < section->end) {
        uint32_t size;
        uint32_t node;
        int64_t step;
        if (get_u32(section, &size) < 0 || get_u32(section, &node) < 0 ||
            sleb128_get(&section->at, section->end, &step) < 0) {
            *why = "a range of the inline tree is cut off";
            return -EINVAL;
        }
        if (step > UINT32_MAX || step < -(int64_t)UINT32_MAX || line + step < 0 ||
            line + step > UINT32_MAX) {
            *why = "a range of the inline tree has an impossible line";
            return -EINVAL;
        }
        line += step;
        if (node >= trailer->node_count) {
            *why = "a range of the inline tree belongs to no node";
            return -EINVAL;
        }
        if (offset + size > UINT32_MAX) {
            *why = "the ranges of the inline tree cover more than 4 GB";
            return -EINVAL;
        }
        struct trailer_range range = {
            .offset = (uint32_t)offset, .size = size, .node = node, .line = (uint32_t)line};
        if (trailer_add_range(trailer, &range) < 0) {
            *why = "no memory";
            return -ENOMEM;
        }
        offset += size;
    }
    return 0;
}

static int decode_inlines(struct trailer_section *section, struct trailer *trailer,
                          const char **why)
{
    if (trailer->node_count > 0) {
        *why = "there are two inline trees";
        return -EINVAL;
    }
    int error = decode_nodes(section, trailer, why);
    return error ? error : decode_ranges(section, trailer, why);
}

static int decode_facts(struct trailer_section *section, int64_t facts[JITDUMP_CODE_KEYS],
                        const char **why)
{
    while (section->at < section->end) {
        uint64_t key;
        uint64_t value;
        if (uleb128_get(&section->at, section->end, &key) < 0 ||
            uleb128_get(&section->at, section->end, &value) < 0) {
            *why = "a fact about the code is cut off";
            return -EINVAL;
        }
        if (key < JITDUMP_CODE_KEYS && value <= INT64_MAX) {
            facts[key] = (int64_t)value;
        }
    }
    return 0;
}

static void clear_facts(int64_t facts[JITDUMP_CODE_KEYS])
{
    for (size_t i = 0; i < JITDUMP_CODE_KEYS; i++) {
        facts[i] = -1;
    }
}

void trailer_clear(struct trailer *trailer)
{
    trailer->node_count = 0;
    trailer->range_count = 0;
    trailer->tree_rows = false;
    trailer->undefined_files = 0;
    clear_facts(trailer->facts);
}

int trailer_facts(const struct jitdump_reader *reader, const uint8_t *bytes, size_t size,
                  int64_t facts[JITDUMP_CODE_KEYS], const char **why)
{
    struct trailer_section section;
    const uint8_t *at;
    const uint8_t *end;
    clear_facts(facts);
    int status = trailer_find(reader, bytes, size, &at, &end, why);
    while (status > 0 && (status = trailer_section_next(&at, end, &section, why)) > 0) {
        if (section.tag == JITDUMP_TRAILER_CODE && decode_facts(&section, facts, why)) {
            status = -EINVAL;
        }
    }
    return status;
}

int trailer_decode(const struct jitdump_reader *reader, const uint8_t *bytes, size_t size,
                   struct trailer_names *names, struct trailer *trailer, const char **why)
{
    trailer_clear(trailer);
    const uint8_t *at;
    const uint8_t *end;
    int status = trailer_find(reader, bytes, size, &at, &end, why);
    if (status <= 0) {
        return status;
    }
    struct trailer_section section;
    while (status > 0 && (status = trailer_section_next(&at, end, &section, why)) > 0) {
        int error = 0;
        switch (section.tag) {
        case JITDUMP_TRAILER_FILES:
            error = decode_files(&section, names, why);
            break;
        case JITDUMP_TRAILER_METHODS:
            error = decode_methods(&section, names, trailer, why);
            break;
        case JITDUMP_TRAILER_INLINES:
            error = decode_inlines(&section, trailer, why);
            break;
        case JITDUMP_TRAILER_CODE:
            error = decode_facts(&section, trailer->facts, why);
            break;
        case JITDUMP_TRAILER_TREE_ROWS:
            trailer->tree_rows = true;
            break;
        default:
            break;
        }
        if (error) {
            status = error;
        }
    }
    if (status < 0) {
        trailer_clear(trailer);
    }
    return status;
}

void trailer_free(struct trailer *trailer)
{
    free(trailer->nodes);
    free(trailer->ranges);
    memset(trailer, 0, sizeof(*trailer));
}

const struct trailer_range *trailer_range_at(const struct trailer *trailer, uint32_t offset)
{
    /* The ranges are sorted: the last one that starts at or before the offset, if it reaches it. */
    uint32_t low;
    ARRAY_FIRST(low, trailer->range_count, trailer->ranges[low].offset <= offset);
    if (low == 0) {
        return NULL;
    }
    const struct trailer_range *range = &trailer->ranges[low - 1];
    return offset - range->offset < range->size ? range : NULL;
}

/* ---- Rows of the tree ---- */

/* Where a line is; file NULL: unknown. */
struct place {
    const char *file;
    uint64_t file_id;
    uint32_t line;
};

static struct place line_of(const struct trailer_names *names, const struct trailer *trailer,
                            uint32_t node, uint32_t line)
{
    const struct trailer_method *method = trailer_names_method(names, trailer->nodes[node].method);
    return line && method->file ? (struct place){method->file, method->file_id, line}
                                : (struct place){0};
}

static struct place first_line(const struct trailer_names *names, const struct trailer *trailer)
{
    uint64_t root = trailer->nodes[0].method;
    return line_of(names, trailer, 0, trailer_names_method(names, root)->first_line);
}

static struct place place_of(const struct trailer_names *names, const struct trailer *trailer,
                             uint32_t node, uint32_t line)
{
    for (int climbed = 0; climbed <= JITDUMP_TREE_CLIMB; climbed++) {
        struct place place = line_of(names, trailer, node, line);
        if (place.file) {
            return place;
        }
        if (node == 0) {
            break;
        }
        line = trailer->nodes[node].call_line;
        node = trailer->nodes[node].parent;
    }
    return first_line(names, trailer);
}

static int add(struct tree_rows *rows, uint64_t address, struct place place)
{
    if (ARRAY_RESERVE(rows->entries, rows->count, rows->room)) {
        return -ENOMEM;
    }
    rows->entries[rows->count++] =
        (struct jitdump_entry){.address = address, .line = place.line, .file = place.file};
    return 0;
}

int tree_rows_make(const struct trailer *trailer, const struct trailer_names *names,
                   uint64_t address, uint64_t size, struct tree_rows *rows)
{
    rows->count = 0;
    if (trailer->node_count == 0 || trailer->range_count == 0) {
        return 0;
    }
    struct place last = {0};
    uint64_t end = 0;
    /* One more than there are ranges: the code behind them. */
    for (uint32_t i = 0; i <= trailer->range_count && end < size; i++) {
        const struct trailer_range *range = &trailer->ranges[i];
        bool behind = i == trailer->range_count;
        struct place place = behind ? first_line(names, trailer)
                                    : place_of(names, trailer, range->node, range->line);
        uint64_t start = end;
        end += behind ? 0 : range->size;
        if (!place.file || (last.file_id == place.file_id && last.line == place.line)) {
            continue;
        }
        if (add(rows, address + (rows->count ? start : 0), place) < 0) {
            return -ENOMEM;
        }
        last = place;
    }
    return rows->count ? add(rows, address + size, last) : 0;
}
