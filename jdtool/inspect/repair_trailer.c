#include "jdtool/inspect/repair_parts.h"

#include <byteswap.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add_section(struct bytes *buffer, enum jitdump_trailer_tag tag,
                        const struct bytes *contents)
{
    if (contents->size > 0) {
        bytes_uleb(buffer, tag);
        bytes_uleb(buffer, contents->size);
        bytes_put(buffer, contents->at, contents->size);
    }
    buffer->failed |= contents->failed;
}

/* What a trailer lacks. */
struct carry {
    const struct trailer_names *all;
    struct trailer_names *written;
    struct bytes files;
    struct bytes methods;
    int64_t count;
};

static void carry_file(struct carry *carry, uint64_t id)
{
    if (id == 0 || trailer_names_file(carry->written, id)) {
        return;
    }
    const char *why;
    const char *path = trailer_names_file(carry->all, id);
    path = path ? path : "?";
    bytes_uleb(&carry->files, id);
    bytes_string(&carry->files, path);
    carry->files.failed |= trailer_names_add_file(carry->written, id, path, &why) < 0;
    carry->count++;
}

static void carry_method(struct carry *carry, uint64_t id)
{
    if (id == 0 || trailer_names_has_method(carry->written, id)) {
        return;
    }
    const char *why;
    const struct trailer_method *method = trailer_names_method(carry->all, id);
    carry_file(carry, method->file_id);
    bytes_uleb(&carry->methods, id);
    bytes_uleb(&carry->methods, method->file_id);
    bytes_uleb(&carry->methods, method->first_line);
    bytes_string(&carry->methods, method->name);
    carry->methods.failed |= trailer_names_add_method(carry->written, id, method, &why) < 0;
    carry->count++;
}

/* The files that the trailer's own methods name. */
static void carry_files_of_methods(struct carry *carry, const uint8_t *at, const uint8_t *end)
{
    struct trailer_section section;
    const char *why;
    while (trailer_section_next(&at, end, &section, &why) > 0) {
        uint64_t id;
        struct trailer_method method;
        while (section.tag == JITDUMP_TRAILER_METHODS &&
               trailer_method_next(&section, &id, &method, &why) > 0) {
            carry_file(carry, method.file_id);
        }
    }
}

static void add_u32(struct bytes *buffer, const struct jitdump_reader *reader, uint32_t value)
{
    value = jitdump_reader_swapped(reader) ? bswap_32(value) : value;
    bytes_put(buffer, &value, sizeof(value));
}

int64_t repair_add_trailer(struct bytes *buffer, const struct jitdump_reader *reader,
                           const uint8_t *bytes, size_t size, const struct trailer_names *all,
                           struct trailer_names *written, struct trailer *scratch)
{
    const uint8_t *at;
    const uint8_t *end;
    const char *why;
    if (trailer_find(reader, bytes, size, &at, &end, &why) <= 0 ||
        trailer_decode(reader, bytes, size, written, scratch, &why) < 0) {
        return -EINVAL;
    }
    struct carry carry = {.all = all, .written = written};
    carry_files_of_methods(&carry, at, end);
    for (uint32_t i = 0; i < scratch->node_count; i++) {
        carry_method(&carry, scratch->nodes[i].method);
    }
    struct bytes added = {0};
    add_section(&added, JITDUMP_TRAILER_FILES, &carry.files);
    add_section(&added, JITDUMP_TRAILER_METHODS, &carry.methods);
    add_u32(buffer, reader, JITDUMP_TRAILER_MAGIC);
    add_u32(buffer, reader, JITDUMP_TRAILER_VERSION);
    add_u32(buffer, reader,
            (uint32_t)(sizeof(struct jitdump_trailer) + added.size + (size_t)(end - at)));
    bytes_put(buffer, added.at, added.size);
    bytes_put(buffer, at, (size_t)(end - at));
    buffer->failed |= added.failed;
    bytes_free(&added);
    bytes_free(&carry.files);
    bytes_free(&carry.methods);
    return carry.count;
}
