#include "jdtool/jitdump/trailer.h"

#include "format/leb128.h"
#include "jdtool/base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    int error = array_reserve(&trailer->nodes, trailer->node_count, &trailer->node_room,
                              sizeof(*trailer->nodes));
    if (!error) {
        trailer->nodes[trailer->node_count++] = *node;
    }
    return error;
}

int trailer_add_range(struct trailer *trailer, const struct trailer_range *range)
{
    int error = array_reserve(&trailer->ranges, trailer->range_count, &trailer->range_room,
                              sizeof(*trailer->ranges));
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
