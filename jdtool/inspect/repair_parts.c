#include "jdtool/inspect/repair_parts.h"

#include "jdtool/base/array.h"
#include "jdtool/base/text.h"
#include "jdtool/jitdump/jitdump_reader.h"
#include "jdtool/jitdump/samply_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_UNIT UINT32_MAX

/* The records since the last LOAD that describe the next one, and DEBUG_INFOs that still wait. */
struct search {
    struct jitdump_reader *reader;
    const struct repair_output *output;
    struct repair_result *result;
    struct repair_parts *found;
    struct jitdump_group_tracker tracker;
    struct repair_part *waiting; /* all but DEBUG_INFOs */
    uint32_t waiting_count;
    uint32_t waiting_room;
    struct debug_record {
        uint64_t offset;
        uint32_t size;
        bool used;    /* it is part of a unit */
        bool foreign; /* of a LOAD of another process */
    } * debugs;
    uint32_t debug_count;
    uint32_t debug_room;
};

void repair_tell(const struct repair_output *output, uint64_t offset, const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    output->say(output->context, offset, what);
}

static int add_part(struct search *search, const struct repair_part *part)
{
    struct repair_parts *found = search->found;
    if (ARRAY_RESERVE(found->parts, found->part_count, found->part_room)) {
        return -ENOMEM;
    }
    found->parts[found->part_count] = *part;
    found->parts[found->part_count++].unit = found->unit_count;
    return 0;
}

/* Ends a unit whose parts, from first_part on, have been added. */
static int add_unit(struct search *search, uint32_t first_part, uint64_t stamp, uint64_t code_index)
{
    struct repair_parts *found = search->found;
    if (ARRAY_RESERVE(found->units, found->unit_count, found->unit_room)) {
        return -ENOMEM;
    }
    found->units[found->unit_count++] =
        (struct repair_unit){.first_part = first_part,
                             .part_count = found->part_count - first_part,
                             .stamp = stamp,
                             .code_index = code_index,
                             .new_code_index = code_index};
    return 0;
}

/* The DEBUG_INFO that stands at an offset; they were added in ascending order. */
static struct debug_record *find_debug(const struct search *search, uint64_t offset)
{
    for (uint32_t i = search->debug_count; i-- > 0;) {
        if (search->debugs[i].offset == offset) {
            return &search->debugs[i];
        }
        if (search->debugs[i].offset < offset) {
            break;
        }
    }
    return NULL;
}

/* What waits belongs to a LOAD that is lost; embedded sources belong to nobody and wait on. */
static void forget_waiting(struct search *search)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < search->waiting_count; i++) {
        if (search->waiting[i].id == SAMPLY_EMBEDDED_SOURCE_FILE) {
            search->waiting[kept++] = search->waiting[i];
        } else {
            repair_tell(search->output, search->waiting[i].offset, "left out a %s without its LOAD",
                        text_record_id(search->waiting[i].id));
        }
    }
    search->waiting_count = kept;
}

static int take_load(struct search *search, const struct jitdump_record_view *record, uint32_t size)
{
    struct jitdump_group group = jitdump_group_add(&search->tracker, record);
    struct debug_record *debug = group.debug_offset ? find_debug(search, group.debug_offset) : NULL;
    uint32_t expected = jitdump_reader_header(search->reader)->pid;
    if (record->load.pid != expected) {
        repair_tell(search->output, record->offset,
                    "left out a LOAD of process %u: the dump is of process %u", record->load.pid,
                    expected);
        search->result->dropped_loads++;
        if (debug) {
            debug->foreign = true;
        }
        forget_waiting(search);
        return 0;
    }
    uint32_t first_part = search->found->part_count;
    int error = 0;
    for (uint32_t i = 0; i < search->waiting_count && !error; i++) {
        error = add_part(search, &search->waiting[i]);
    }
    search->waiting_count = 0;
    if (debug && !error) {
        debug->used = true;
        error = add_part(search, &(struct repair_part){.offset = debug->offset,
                                                       .id = JIT_CODE_DEBUG_INFO,
                                                       .size = debug->size});
    }
    if (!error) {
        error = add_part(search, &(struct repair_part){
                                     .offset = record->offset, .id = JIT_CODE_LOAD, .size = size});
    }
    if (record->load.code_index > search->found->highest_code_index) {
        search->found->highest_code_index = record->load.code_index;
    }
    return error ? error : add_unit(search, first_part, record->timestamp, record->load.code_index);
}

static int take_move(struct search *search, const struct jitdump_record_view *record, uint32_t size)
{
    forget_waiting(search);
    uint32_t first_part = search->found->part_count;
    int error = add_part(
        search, &(struct repair_part){.offset = record->offset, .id = JIT_CODE_MOVE, .size = size});
    return error ? error : add_unit(search, first_part, record->timestamp, record->move.code_index);
}

static int take_debug_info(struct search *search, const struct jitdump_record_view *record,
                           uint32_t size)
{
    jitdump_group_add(&search->tracker, record);
    if (ARRAY_RESERVE(search->debugs, search->debug_count, search->debug_room)) {
        return -ENOMEM;
    }
    search->debugs[search->debug_count++] =
        (struct debug_record){.offset = record->offset, .size = size};
    return 0;
}

static int take_waiting(struct search *search, const struct jitdump_record_view *record,
                        uint32_t size)
{
    if (ARRAY_RESERVE(search->waiting, search->waiting_count, search->waiting_room)) {
        return -ENOMEM;
    }
    search->waiting[search->waiting_count++] = (struct repair_part){
        .offset = record->offset, .id = record->id, .size = size, .unit = NO_UNIT};
    return 0;
}

static int take_record(struct search *search, const struct jitdump_record_view *record,
                       uint32_t size)
{
    switch (record->id) {
    case JIT_CODE_LOAD:
        return take_load(search, record, size);
    case JIT_CODE_MOVE:
        return take_move(search, record, size);
    case JIT_CODE_DEBUG_INFO:
        return take_debug_info(search, record, size);
    case JIT_CODE_CLOSE:
        search->found->closed = true;
        search->found->close_stamp = record->timestamp;
        search->found->close_offset = record->offset;
        return 0;
    default:
        return take_waiting(search, record, size);
    }
}

/* Bytes of a record that its contents need; the rest, if any, belongs to nothing. */
static uint32_t real_size(const struct jitdump_reader *reader,
                          const struct jitdump_record_view *record)
{
    if (record->id == JIT_CODE_LOAD) {
        return record->total_size - (uint32_t)record->load.excess;
    }
    if (record->id == JIT_CODE_MOVE) {
        return sizeof(struct jitdump_move);
    }
    if (record->id == JIT_CODE_CLOSE) {
        return sizeof(struct jitdump_close);
    }
    if (record->id != JIT_CODE_DEBUG_INFO) {
        return record->total_size;
    }
    const uint8_t *behind;
    size_t size;
    if (jitdump_behind_entries(reader, record, &behind, &size) < 0) {
        return record->total_size;
    }
    const uint8_t *at;
    const uint8_t *end;
    const char *why;
    if (trailer_find(reader, behind, size, &at, &end, &why) > 0) {
        size -= (size_t)(end - behind);
    }
    return record->total_size - (uint32_t)size;
}

/*
 * Goes to the next record that can be believed in. Where the present one, at `offset`, ends by its
 * own account (`behind`; 0: it has none), another one often stands; else its size is not to be
 * trusted and the search starts inside it.
 */
static void skip_broken(struct search *search, uint64_t offset, uint64_t behind, const char *why)
{
    struct jitdump_reader *reader = search->reader;
    uint64_t file_size = jitdump_reader_file_size(reader);
    bool trusted = behind == file_size;
    if (behind && !trusted) {
        jitdump_reader_seek(reader, behind);
        trusted = jitdump_reader_resync(reader, behind + 1);
    }
    if (trusted) {
        jitdump_reader_seek(reader, behind);
    } else {
        jitdump_reader_seek(reader, offset + 1);
        jitdump_reader_resync(reader, file_size);
    }
    uint64_t skipped = jitdump_reader_offset(reader) - offset;
    repair_tell(search->output, offset, "left out %" PRIu64 " bytes: %s", skipped, why);
    search->result->dropped_bytes += skipped;
    forget_waiting(search);
}

/* A record is larger than its contents: its total_size may be wrong and hide others. */
static void look_into_excess(struct search *search, const struct jitdump_record_view *record,
                             uint32_t size)
{
    uint64_t start = record->offset + size;
    jitdump_reader_seek(search->reader, start);
    jitdump_reader_resync(search->reader, record->offset + record->total_size);
    uint64_t skipped = jitdump_reader_offset(search->reader) - start;
    if (record->id != JIT_CODE_DEBUG_INFO || skipped >= sizeof(uint64_t)) { /* V8 pads to 8 */
        repair_tell(search->output, start, "left out %" PRIu64 " bytes behind what the %s needs",
                    skipped, text_record_id(record->id));
        search->result->dropped_bytes += skipped;
    }
}

static int find_records(struct search *search)
{
    struct jitdump_record_view record;
    int error = 0;
    while (!error) {
        enum jitdump_status status = jitdump_reader_next(search->reader, &record);
        if (status == JITDUMP_END) {
            break;
        }
        char why[200];
        snprintf(why, sizeof(why), "%s", jitdump_reader_error(search->reader));
        bool known = record.id <= JIT_CODE_UNWINDING_INFO || samply_knows(record.id);
        if (status == JITDUMP_RECORD && known) {
            uint32_t size = real_size(search->reader, &record);
            error = take_record(search, &record, size);
            if (size < record.total_size) {
                look_into_excess(search, &record, size);
            }
            continue;
        }
        if (status == JITDUMP_RECORD) {
            snprintf(why, sizeof(why), "a record of an unknown kind %u", record.id);
        } else if (record.id == JITDUMP_MAGIC) {
            snprintf(why, sizeof(why), "the header of another dump");
        }
        bool ends = status == JITDUMP_RECORD || status == JITDUMP_BROKEN;
        skip_broken(search, record.offset, ends ? record.offset + record.total_size : 0, why);
    }
    forget_waiting(search);
    return error;
}

static int take_definitions(struct search *search, const struct debug_record *debug,
                            struct trailer *trailer)
{
    struct jitdump_record_view record;
    jitdump_reader_seek(search->reader, debug->offset);
    if (jitdump_reader_next(search->reader, &record) != JITDUMP_RECORD) {
        return -EIO;
    }
    const uint8_t *behind;
    size_t size;
    const char *why;
    if (jitdump_behind_entries(search->reader, &record, &behind, &size) == 0) {
        trailer_decode(search->reader, behind, size, search->found->names, trailer, &why);
    }
    return 0;
}

/*
 * All definitions: first those of the records that are kept, then those of DEBUG_INFOs whose LOAD
 * is lost. Another process has other ids, so its definitions stay out.
 */
static int find_definitions(struct search *search)
{
    struct trailer trailer = {0};
    int error = 0;
    for (int used = 1; used >= 0; used--) {
        for (uint32_t i = 0; i < search->debug_count && !error; i++) {
            if (search->debugs[i].used == used && !search->debugs[i].foreign) {
                error = take_definitions(search, &search->debugs[i], &trailer);
            }
        }
    }
    trailer_free(&trailer);
    return error;
}

int repair_find_parts(struct jitdump_reader *reader, const struct repair_output *output,
                      struct repair_result *result, struct repair_parts *found)
{
    struct search search = {.reader = reader, .output = output, .result = result, .found = found};
    found->names = trailer_names_new();
    int error = found->names ? find_records(&search) : -ENOMEM;
    if (!error) {
        error = find_definitions(&search);
    }
    for (uint32_t i = 0; i < search.debug_count; i++) {
        if (!search.debugs[i].used) {
            repair_tell(search.output, search.debugs[i].offset,
                        "left out a DEBUG_INFO without its LOAD");
        }
    }
    free(search.waiting);
    free(search.debugs);
    return error;
}

void repair_parts_free(struct repair_parts *found)
{
    free(found->parts);
    free(found->units);
    trailer_names_free(found->names);
    memset(found, 0, sizeof(*found));
}

/* ---- Trailers ---- */

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
    const uint32_t head[] = {
        JITDUMP_TRAILER_MAGIC, JITDUMP_TRAILER_VERSION,
        (uint32_t)(sizeof(struct jitdump_trailer) + added.size + (size_t)(end - at))};
    for (size_t i = 0; i < sizeof head / sizeof *head; i++) {
        bytes_u32(buffer, jitdump_in_order32(reader, head[i]));
    }
    bytes_put(buffer, added.at, added.size);
    bytes_put(buffer, at, (size_t)(end - at));
    buffer->failed |= added.failed;
    bytes_free(&added);
    bytes_free(&carry.files);
    bytes_free(&carry.methods);
    return carry.count;
}
