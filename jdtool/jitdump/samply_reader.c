#include "jdtool/jitdump/samply_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What is left of a record. */
struct cursor {
    const struct jitdump_reader *reader;
    const uint8_t *at;
    const uint8_t *end;
};

bool samply_knows(uint32_t id)
{
    return id >= SAMPLY_JIT_CODE_DEBUG_INFO2 && id <= SAMPLY_EMBEDDED_SOURCE_FILE;
}

/* The caller has checked that four bytes are left. */
static uint32_t take_u32(struct cursor *cursor)
{
    uint32_t value = jitdump_reader_u32(cursor->reader, cursor->at);
    cursor->at += sizeof(value);
    return value;
}

static size_t left(const struct cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* A fresh zeroed array in the place of the one before. Its elements are known to fit the record. */
static int renew(void *array_pointer, size_t count, size_t element)
{
    void **array = array_pointer;
    free(*array);
    *array = calloc(count ? count : 1, element);
    return *array ? 0 : -ENOMEM;
}

/* Padding behind `used` bytes of a list that has `size`: up to the next multiple of four, zero. */
static bool padding_is_right(const uint8_t *list, size_t used, size_t size)
{
    if (size % SAMPLY_ALIGN || size - used >= SAMPLY_ALIGN) {
        return false;
    }
    for (size_t i = used; i < size; i++) {
        if (list[i]) {
            return false;
        }
    }
    return true;
}

static int take_strings(struct cursor *cursor, const char ***strings, uint32_t count, uint32_t size,
                        const char **why)
{
    if (size > left(cursor) || count > size) {
        *why = "a list of strings does not fit";
        return -EINVAL;
    }
    if (renew(strings, count, sizeof(**strings)) < 0) {
        *why = "no memory";
        return -ENOMEM;
    }
    const uint8_t *list = cursor->at;
    const uint8_t *end = list + size;
    const uint8_t *at = list;
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *nul = memchr(at, 0, (size_t)(end - at));
        if (!nul) {
            *why = "a list has fewer strings than it claims";
            return -EINVAL;
        }
        (*strings)[i] = (const char *)at;
        at = nul + 1;
    }
    if (!padding_is_right(list, (size_t)(at - list), size)) {
        *why = "a list of strings is not padded to a multiple of four";
        return -EINVAL;
    }
    cursor->at = end;
    return 0;
}

/* An array of structs that are made of uint32_t only. */
static int take_array(struct cursor *cursor, void *array_pointer, uint32_t count, size_t element,
                      const char **why)
{
    if (count > left(cursor) / element) {
        *why = "a list of records does not fit";
        return -EINVAL;
    }
    if (renew(array_pointer, count, element) < 0) {
        *why = "no memory";
        return -ENOMEM;
    }
    uint8_t *out = *(uint8_t **)array_pointer;
    for (size_t i = 0; i < count * element; i += sizeof(uint32_t)) {
        uint32_t value = take_u32(cursor);
        memcpy(out + i, &value, sizeof(value));
    }
    return 0;
}

int samply_decode_inlines(const struct jitdump_reader *reader,
                          const struct jitdump_record_view *record, struct samply_inlines *inlines,
                          const char **why)
{
    struct cursor cursor = {reader, record->payload, record->payload + record->payload_size};
    if (record->total_size < sizeof(struct samply_debug_info2)) {
        *why = "the record has no room for its counts";
        return -EINVAL;
    }
    uint32_t file_count = take_u32(&cursor);
    uint32_t file_list_size = take_u32(&cursor);
    uint32_t name_count = take_u32(&cursor);
    uint32_t name_list_size = take_u32(&cursor);
    inlines->function_count = take_u32(&cursor);
    inlines->call_count = take_u32(&cursor);
    inlines->range_count = take_u32(&cursor);
    inlines->line_count = take_u32(&cursor);
    int error = take_strings(&cursor, &inlines->files, file_count, file_list_size, why);
    if (!error) {
        error = take_strings(&cursor, &inlines->names, name_count, name_list_size, why);
    }
    if (!error) {
        error = take_array(&cursor, &inlines->functions, inlines->function_count,
                           sizeof(*inlines->functions), why);
    }
    if (!error) {
        error =
            take_array(&cursor, &inlines->calls, inlines->call_count, sizeof(*inlines->calls), why);
    }
    if (!error) {
        error = take_array(&cursor, &inlines->ranges, inlines->range_count,
                           sizeof(*inlines->ranges), why);
    }
    if (!error) {
        error =
            take_array(&cursor, &inlines->lines, inlines->line_count, sizeof(*inlines->lines), why);
    }
    if (error) {
        return error;
    }
    inlines->file_count = file_count;
    inlines->name_count = name_count;
    if (left(&cursor) > 0) {
        *why = "bytes behind the last list";
        return -EINVAL;
    }
    return 0;
}

/* A string with its NUL and padding, `size` bytes in all. */
static int take_string(struct cursor *cursor, uint32_t size, const char **string, const char **why)
{
    const uint8_t *nul = size <= left(cursor) ? memchr(cursor->at, 0, size) : NULL;
    if (!nul) {
        *why = "a string does not fit";
        return -EINVAL;
    }
    if (!padding_is_right(cursor->at, (size_t)(nul + 1 - cursor->at), size)) {
        *why = "a string is not padded to a multiple of four";
        return -EINVAL;
    }
    *string = (const char *)cursor->at;
    cursor->at += size;
    return 0;
}

int samply_decode_tier(const struct jitdump_reader *reader,
                       const struct jitdump_record_view *record, struct samply_tier_view *tier,
                       const char **why)
{
    struct cursor cursor = {reader, record->payload, record->payload + record->payload_size};
    if (record->total_size < sizeof(struct samply_tier)) {
        *why = "the record has no room for its fields";
        return -EINVAL;
    }
    tier->color = take_u32(&cursor);
    uint32_t size = take_u32(&cursor);
    if (take_string(&cursor, size, &tier->name, why) < 0) {
        return -EINVAL;
    }
    if (left(&cursor) > 0) {
        *why = "bytes behind the name";
        return -EINVAL;
    }
    return 0;
}

int samply_decode_source(const struct jitdump_reader *reader,
                         const struct jitdump_record_view *record,
                         struct samply_source_view *source, const char **why)
{
    struct cursor cursor = {reader, record->payload, record->payload + record->payload_size};
    if (record->total_size < sizeof(struct samply_embedded_source)) {
        *why = "the record has no room for its fields";
        return -EINVAL;
    }
    uint32_t path_size = take_u32(&cursor);
    source->text_size = take_u32(&cursor);
    if (take_string(&cursor, path_size, &source->path, why) < 0) {
        return -EINVAL;
    }
    source->text = (const char *)cursor.at;
    if (source->text_size > left(&cursor) ||
        !padding_is_right(cursor.at, source->text_size, left(&cursor))) {
        *why = "the text does not fit, or is not padded to a multiple of four";
        return -EINVAL;
    }
    return 0;
}

void samply_inlines_free(struct samply_inlines *inlines)
{
    free(inlines->files);
    free(inlines->names);
    free(inlines->functions);
    free(inlines->calls);
    free(inlines->ranges);
    free(inlines->lines);
    memset(inlines, 0, sizeof(*inlines));
}
