/*
 * The records, one after the other, unpacked; and what of a pipe's records describes the recording
 * and is taken in here: attributes, features, the formats of tracepoints, build-ids.
 */
#include "jdtool/perf/perf_data_private.h"

#include "jdtool/base/message.h"
#include "jdtool/perf/perf_input.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>

/* ---- What stands in a record ---- */

uint32_t perf_record_u32(const struct perf_record *record, size_t offset)
{
    uint32_t value = 0;
    if (offset + sizeof value <= record->size) {
        memcpy(&value, record->bytes + offset, sizeof value);
    }
    return value;
}

uint64_t perf_record_u64(const struct perf_record *record, size_t offset)
{
    uint64_t value = 0;
    if (offset + sizeof value <= record->size) {
        memcpy(&value, record->bytes + offset, sizeof value);
    }
    return value;
}

const char *perf_record_string(const struct perf_record *record, size_t offset)
{
    if (offset >= record->size || !memchr(record->bytes + offset, '\0', record->size - offset)) {
        return NULL;
    }
    return (const char *)record->bytes + offset;
}

/* The names the kernel and perf give to memory without a file (map__new in tools/perf/util/map.c);
 * code caches of large pages (-XX:+UseLargePages) have names of their own. */
static bool is_anonymous(const char *path)
{
    static const char *const starts[] = {
        "//anon", "[anon:", "/memfd:", "/anon_hugepage", "/SYSV", "/dev/zero",
    };
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(path, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool mapping_decode(const struct perf_record *record, struct mapping *mapping)
{
    bool extended = record->type == PERF_RECORD_MMAP2;
    uint16_t mode = record->misc & PERF_RECORD_MISC_CPUMODE_MASK;
    if ((!extended && record->type != PERF_RECORD_MMAP) ||
        (mode != PERF_RECORD_MISC_USER && mode != PERF_RECORD_MISC_KERNEL)) {
        return false;
    }
    const char *path = perf_record_string(record, extended ? 72 : 40);
    uint64_t start = perf_record_u64(record, 16);
    uint64_t size = perf_record_u64(record, 24);
    if (!path || size == 0 || size > UINT64_MAX - start) {
        return false;
    }
    bool has_id = extended && record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID;
    bool has_inode = extended && !has_id;
    *mapping = (struct mapping){
        .pid = perf_record_u32(record, 8),
        .kernel = mode == PERF_RECORD_MISC_KERNEL,
        .start = start,
        .end = start + size,
        .file_offset = perf_record_u64(record, 32),
        .from = record->id.time,
        .file = {.path = path,
                 .inode = has_inode ? perf_record_u64(record, 48) : 0,
                 .major = has_inode ? perf_record_u32(record, 40) : 0,
                 .minor = has_inode ? perf_record_u32(record, 44) : 0},
        .executable = extended ? (perf_record_u32(record, 64) & PROT_EXEC) != 0
                               : !(record->misc & PERF_RECORD_MISC_MMAP_DATA),
        .anonymous = is_anonymous(path),
    };
    /* A byte with the size, three reserved ones, the id. */
    uint8_t id_size = has_id ? record->bytes[40] : 0;
    if (id_size > 0 && id_size <= BUILD_ID_MAX) {
        memcpy(mapping->file.build_id, record->bytes + 44, id_size);
        mapping->file.build_id_size = id_size;
    }
    return true;
}

/* ---- One after the other ---- */

void perf_records_start_file(struct perf_data *data)
{
    const struct perf_section *records = &data->header.data;
    perf_input_seek(data->input, records->offset, records->offset + records->size);
}

static int check_type(const struct perf_data *data, uint32_t type)
{
    switch (type) {
    case PERF_RECORD_AUX:
    case PERF_USER_AUXTRACE_INFO:
    case PERF_USER_AUXTRACE:
        return perf_data_refuse(data, "it holds AUX area data (Intel PT, CoreSight, SPE)",
                                "record another event, or use 'perf inject --itrace' first");
    case PERF_USER_TRACING_DATA: /* only in a pipe do its contents follow the record */
        return data->in_pipe_format ? 0 : perf_data_malformed(data, "a pipe's record is in it");
    default:
        return 0;
    }
}

/* Told once, however often the end is asked for. */
static int cut_off(struct perf_data *data)
{
    if (!data->told_cut_off) {
        warning_message("the last record of %s, at offset %" PRIu64 ", is cut off; it is left out",
                        data->path, perf_input_offset(data->input));
        data->told_cut_off = true;
    }
    data->has_ended = true;
    return 0;
}

static int read_failed(const struct perf_data *data, int64_t err)
{
    error_message("failed to read %s: %s", data->path, strerror((int)-err));
    return (int)err;
}

void perf_data_leave_copies(struct perf_data *data)
{
    data->leaves_copies = perf_input_is_file(data->input);
}

/* Of a record that is read in part: so much at its beginning and at its end. What is behind one is
 * read with the beginning of the next. Smaller ones are read whole. */
#define PART_HEAD ((size_t)2048)
#define PART_TAIL ((size_t)512)
#define PART_OF   ((size_t)16384)

/* Is all between those parts of the copy of a stack? */
static bool is_of_copy(const struct perf_data *data, const struct perf_record *record)
{
    struct perf_sample sample;
    if (perf_sample_decode(data, record, &sample) || !sample.stack) {
        return false;
    }
    size_t from = (size_t)(sample.stack - record->bytes);
    return from <= PART_HEAD && from + sample.stack_size >= record->size - PART_TAIL;
}

/* The next one, which is large and a sample. As perf_data_next. */
static int next_in_part(struct perf_data *data, const struct perf_event_header *header,
                        struct perf_record *record)
{
    const uint8_t *at = NULL;
    uint64_t offset = perf_input_offset(data->input);
    size_t end = header->size - PART_TAIL;
    perf_input_by_pieces(data->input, PART_TAIL + PART_HEAD);
    int64_t have = perf_input_need(data->input, PART_HEAD, &at);
    if (have < (int64_t)PART_HEAD) {
        return have < 0 ? read_failed(data, have) : cut_off(data);
    }
    memcpy(data->aligned, at, PART_HEAD);
    perf_input_skip(data->input, end);
    have = perf_input_need(data->input, PART_TAIL, &at);
    if (have < (int64_t)PART_TAIL) {
        return have < 0 ? read_failed(data, have) : cut_off(data);
    }
    memcpy(data->aligned + end, at, PART_TAIL);
    perf_input_skip(data->input, PART_TAIL);
    *record = (struct perf_record){.type = header->type,
                                   .misc = header->misc,
                                   .size = header->size,
                                   .bytes = data->aligned,
                                   .left_at = offset};
    if (is_of_copy(data, record)) {
        return 1;
    }
    record->left_at = 0;
    int err = perf_input_read_at(data->input, offset + PART_HEAD, data->aligned + PART_HEAD,
                                 end - PART_HEAD);
    return err ? read_failed(data, err) : 1;
}

/* The next record as it stands in the input. As perf_data_next. */
static int next_in_input(struct perf_data *data, struct perf_record *record)
{
    const uint8_t *at = NULL;
    struct perf_event_header header;
    int64_t have = data->has_ended ? 0 : perf_input_need(data->input, sizeof header, &at);
    if (have < (int64_t)sizeof header) {
        return have < 0 ? read_failed(data, have) : have > 0 ? cut_off(data) : 0;
    }
    memcpy(&header, at, sizeof header);
    if (header.size < sizeof header) {
        error_message("failed to read %s: the record at offset %" PRIu64 " has size %u", data->path,
                      perf_input_offset(data->input), header.size);
        return -EINVAL;
    }
    int err = check_type(data, header.type);
    if (err) {
        return err;
    }
    const struct perf_section *records = &data->header.data;
    if (data->leaves_copies && header.type == PERF_RECORD_SAMPLE && header.size >= PART_OF &&
        perf_input_offset(data->input) + header.size <= records->offset + records->size) {
        return next_in_part(data, &header, record);
    }
    have = perf_input_need(data->input, header.size, &at);
    if (have < header.size) {
        return have < 0 ? read_failed(data, have) : cut_off(data);
    }
    perf_input_skip(data->input, header.size);
    if ((uintptr_t)at % 8) { /* not in files that perf wrote, but in its pipes */
        memcpy(data->aligned, at, header.size);
        at = data->aligned;
    }
    *record = (struct perf_record){
        .type = header.type, .misc = header.misc, .size = header.size, .bytes = at};
    return 1;
}

/* ---- Packed records ---- */

static bool is_packed(uint32_t type)
{
    return type == PERF_USER_COMPRESSED || type == PERF_USER_COMPRESSED2;
}

/* Hands a packed record to the unpacker. */
static int feed(struct perf_data *data, const struct perf_record *record)
{
    size_t at = sizeof(struct perf_event_header);
    size_t end = record->size;
    if (record->type == PERF_USER_COMPRESSED2) { /* since 6.15: padded, with the size before it */
        uint64_t size = 0;
        if (end - at >= sizeof size) {
            memcpy(&size, record->bytes + at, sizeof size);
            at += sizeof size;
        }
        end = size < end - at ? at + size : end;
    }
    if (!data->unpack) {
        data->unpack = perf_unpack_new();
        if (!data->unpack) {
            return read_failed(data, -ENOMEM);
        }
    }
    perf_unpack_feed(data->unpack, record->bytes + at, end - at);
    return 0;
}

/* The next one out of packed records. As perf_data_next, but 0 means that one has to be fed. */
static int next_unpacked(struct perf_data *data, struct perf_record *record)
{
    int more = data->unpack ? perf_unpack_next(data->unpack, record) : 0;
    if (more < 0 ||
        (more > 0 && (is_packed(record->type) || record->type == PERF_USER_TRACING_DATA))) {
        return perf_data_malformed(data, "its compressed records cannot be unpacked");
    }
    int err = more > 0 ? check_type(data, record->type) : 0;
    return err ? err : more;
}

static int next_record(struct perf_data *data, struct perf_record *record)
{
    for (;;) {
        int more = next_unpacked(data, record);
        if (more != 0) {
            return more;
        }
        more = next_in_input(data, record);
        if (more == 0 && data->unpack && perf_unpack_is_cut_off(data->unpack)) {
            more = cut_off(data);
        }
        if (more <= 0 || !is_packed(record->type)) {
            return more;
        }
        int err = feed(data, record);
        if (err) {
            return err;
        }
    }
}

/* ---- A pipe's own records ---- */

/* An attribute, as long as it says itself, then the event's ids. */
static int take_attr(struct perf_data *data, const struct perf_record *record)
{
    const uint8_t *attr = record->bytes + sizeof(struct perf_event_header);
    size_t left = record->size - sizeof(struct perf_event_header);
    uint32_t size = 0;
    if (data->has_started) {
        return perf_data_malformed(data, "an event is described behind its first records");
    }
    if (left >= PERF_ATTR_SIZE_VER0) {
        memcpy(&size, attr + 4, sizeof size);
        size = size ? size : PERF_ATTR_SIZE_VER0;
    }
    if (size < PERF_ATTR_SIZE_VER0 || size > PERF_ATTR_SIZE_MAX || size % 8 || size > left) {
        return perf_data_malformed(data, "it has no sound list of events");
    }
    uint32_t ids = (uint32_t)((left - size) / sizeof(uint64_t));
    int err = perf_events_reserve_ids(data, ids);
    if (err) {
        return err;
    }
    memcpy(data->ids + data->id_count, attr + size, ids * sizeof(uint64_t));
    return perf_events_add(data, attr, size, ids);
}

static int take_feature(struct perf_data *data, const struct perf_record *record)
{
    uint64_t feature;
    size_t at = sizeof(struct perf_event_header);
    if (record->size - at < sizeof feature) {
        return 0;
    }
    memcpy(&feature, record->bytes + at, sizeof feature);
    at += sizeof feature;
    /* One without bytes is HEADER_LAST_FEATURE, the mark behind the last: to a later perf, which
     * would miss the bytes, that number is a feature. */
    if (record->size == at || feature >= PERF_FEATURE_BITS || feature == PERF_FEATURE_AUXTRACE ||
        feature == PERF_FEATURE_COMPRESSED || data->features[feature].size) {
        return 0;
    }
    return perf_data_append_feature(data, (unsigned)feature, record->bytes + at, record->size - at);
}

/* A file's entry of HEADER_BUILD_ID, but for its type. */
static int take_build_id(struct perf_data *data, const struct perf_record *record)
{
    uint8_t entry[PERF_RECORD_SIZE_MAX + 8];
    if (record->size <= sizeof(struct perf_build_id_entry)) {
        return 0;
    }
    struct perf_event_header header = {.misc = record->misc, .size = record->size};
    memcpy(entry, record->bytes, record->size);
    memcpy(entry, &header, sizeof header);
    return perf_data_append_feature(data, PERF_FEATURE_BUILD_ID, entry, record->size);
}

/* What follows the record, as many bytes as it says. */
static int take_tracing_data(struct perf_data *data, const struct perf_record *record)
{
    uint32_t size = 0;
    if (record->size < sizeof(struct perf_event_header) + sizeof size) {
        return perf_data_malformed(data, "its description of tracepoints is cut off");
    }
    memcpy(&size, record->bytes + sizeof(struct perf_event_header), sizeof size);
    while (size > 0) {
        const uint8_t *at;
        size_t wanted = size < PERF_INPUT_NEED_MAX ? size : PERF_INPUT_NEED_MAX;
        int64_t have = perf_input_need(data->input, wanted, &at);
        if (have <= 0) {
            return have < 0 ? read_failed(data, have) : cut_off(data);
        }
        int err = perf_data_append_feature(data, PERF_FEATURE_TRACING_DATA, at, (size_t)have);
        if (err) {
            return err;
        }
        perf_input_skip(data->input, (uint64_t)have);
        size -= (uint32_t)have;
    }
    return 0;
}

/* 1: it was one of those, and is taken in; 0: it is for others; or a negative errno. */
static int take_in(struct perf_data *data, const struct perf_record *record)
{
    int err = 0;
    switch (record->type) {
    case PERF_USER_ATTR:
        err = take_attr(data, record);
        break;
    case PERF_USER_FEATURE:
        err = take_feature(data, record);
        break;
    case PERF_USER_TRACING_DATA:
        err = take_tracing_data(data, record);
        break;
    case PERF_USER_BUILD_ID:
        err = take_build_id(data, record);
        break;
    default:
        return 0;
    }
    return err ? err : 1;
}

static int next_of_pipe(struct perf_data *data, struct perf_record *record)
{
    int more;
    int taken = 0;
    do {
        more = next_record(data, record);
        taken = more > 0 ? take_in(data, record) : 0;
    } while (taken > 0);
    if (taken == -ENOMEM) {
        return read_failed(data, taken);
    }
    return taken < 0 ? taken : more;
}

int perf_records_start_pipe(struct perf_data *data)
{
    struct perf_record record;
    int more = next_of_pipe(data, &record);
    if (more < 0) {
        return more;
    }
    int err = perf_events_finish(data);
    data->has_started = true;
    if (!err && more > 0) {
        memmove(data->aligned, record.bytes, record.size);
        data->first = record;
        data->first.bytes = data->aligned;
    }
    return err;
}

/*
 * A mapping that claims a build-id, where nobody has asked for one, has an inode there: the kernel
 * (5.12 to at least 6.18) leaves the flag set from who heard of the mapping before
 * (perf_event_mmap_output). perf inject puts ids in, too, but whole ones. perf crashes at such a
 * record, so it loses the flag for who reads what we write, too.
 */
static void take_false_flag(struct perf_data *data, struct perf_record *record)
{
    enum { SIZE_AT = 40, SIZE_LEAST = 16 };
    bool claims = record->type == PERF_RECORD_MMAP2 &&
                  record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && record->size > SIZE_AT;
    if (!claims || data->asks_build_ids ||
        (record->bytes[SIZE_AT] >= SIZE_LEAST && record->bytes[SIZE_AT] <= BUILD_ID_MAX)) {
        return;
    }
    if (record->bytes != data->aligned) {
        memcpy(data->aligned, record->bytes, record->size);
        record->bytes = data->aligned;
    }
    record->misc &= (uint16_t)~PERF_RECORD_MISC_MMAP_BUILD_ID;
    memcpy(data->aligned + offsetof(struct perf_event_header, misc), &record->misc,
           sizeof record->misc);
}

int perf_data_next(struct perf_data *data, struct perf_record *record)
{
    int more = 1;
    if (data->first.bytes) {
        *record = data->first;
        data->first.bytes = NULL;
    } else if (data->in_pipe_format) {
        more = next_of_pipe(data, record);
    } else {
        more = next_record(data, record);
    }
    if (more > 0 && record->type == PERF_USER_EVENT_UPDATE) {
        perf_events_update(data, record);
    }
    if (more > 0 && !perf_record_has_sample(record)) {
        take_false_flag(data, record);
        record->id = perf_record_id(data, record);
        record->mapping = mapping_decode(record, &data->mapping) ? &data->mapping : NULL;
    }
    return more;
}

/* ---- Records that outlive the next one ---- */

/* [the record][what it maps, if it does][its bytes] */
struct kept_record {
    struct perf_record record;
    struct mapping mapping[];
};

size_t perf_record_kept_size(const struct perf_record *record)
{
    return sizeof(struct kept_record) + (record->mapping ? sizeof(struct mapping) : 0) +
           record->size;
}

struct perf_record *perf_record_keep(const struct perf_record *record, void *to)
{
    struct kept_record *kept = to;
    uint8_t *bytes = (uint8_t *)&kept->mapping[record->mapping != NULL];
    memcpy(bytes, record->bytes, record->size);
    kept->record = *record;
    kept->record.bytes = bytes;
    if (record->mapping) {
        size_t path = (size_t)((const uint8_t *)record->mapping->file.path - record->bytes);
        kept->mapping[0] = *record->mapping;
        kept->mapping[0].file.path = (const char *)bytes + path;
        kept->record.mapping = kept->mapping;
    }
    return &kept->record;
}

bool perf_data_wait(const struct perf_data *data, int milliseconds)
{
    return data->first.bytes || perf_input_wait(data->input, milliseconds);
}
