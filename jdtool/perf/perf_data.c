#include "jdtool/perf/perf_data.h"

#include "jdtool/base/message.h"
#include "jdtool/perf/perf_data_private.h"
#include "jdtool/perf/perf_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int perf_data_refuse(const struct perf_data *data, const char *what, const char *remedy)
{
    error_message("cannot take %s: %s; %s", data->path, what, remedy);
    return -ENOTSUP;
}

int perf_data_malformed(const struct perf_data *data, const char *what)
{
    error_message("failed to read %s: %s", data->path, what);
    return -EINVAL;
}

int perf_data_read(const struct perf_data *data, uint64_t offset, void *to, size_t size)
{
    return perf_input_read_at(data->input, offset, to, size);
}

static bool inside(const struct perf_section *section, uint64_t file_size)
{
    return section->offset <= file_size && section->size <= file_size - section->offset;
}

/* ---- The header ---- */

static int check_magic(struct perf_data *data)
{
    struct perf_file_header *header = &data->header;
    const uint8_t *at;
    int64_t have = perf_input_need(data->input, 16, &at);
    if (have < 0) {
        error_message("failed to read %s: %s", data->path, strerror((int)-have));
        return (int)have;
    }
    if (have < 16) {
        return perf_data_malformed(data, "it is too short to be a perf.data file");
    }
    memcpy(header, at, 16);
    perf_input_skip(data->input, 16);
    if (header->magic == __builtin_bswap64(PERF_FILE_MAGIC)) {
        return perf_data_refuse(data, "it was recorded on a machine of the other byte order",
                                "run jdtool on a machine like that one");
    }
    if (header->magic != PERF_FILE_MAGIC) {
        return perf_data_malformed(data, "it is not a perf.data file");
    }
    data->in_pipe_format = header->size == 16;
    if (data->in_pipe_format) {
        return 0;
    }
    if (!perf_input_is_file(data->input)) {
        return perf_data_refuse(data, "its parts stand anywhere in a file, and this is a pipe",
                                "name the file with -i");
    }
    if (header->size != sizeof *header || perf_data_read(data, 0, header, sizeof *header)) {
        return perf_data_malformed(data, "unknown header size");
    }
    return 0;
}

/* perf completes the header when recording ends: a recording that was killed says 0 bytes. */
static int check_sections(struct perf_data *data, uint64_t file_size)
{
    struct perf_section *records = &data->header.data;
    if (records->offset > file_size) {
        return perf_data_malformed(data, "it ends before its records");
    }
    if (records->size == 0) {
        records->size = file_size - records->offset;
        memset(data->header.features, 0, sizeof data->header.features);
        warning_message("%s was not completed (was perf record killed?); reading what is there",
                        data->path);
    } else if (!inside(records, file_size)) {
        records->size = file_size - records->offset;
        memset(data->header.features, 0, sizeof data->header.features);
        warning_message("%s is cut off; reading what is there", data->path);
    }
    return 0;
}

static bool has_feature(const struct perf_data *data, unsigned feature)
{
    return perf_features_has(&data->header, feature);
}

/* They come last, so a copy that was cut off may have all records and not all of them. */
static int read_features(struct perf_data *data, uint64_t file_size)
{
    uint64_t at = data->header.data.offset + data->header.data.size;
    unsigned lost = 0;
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        if (!has_feature(data, i)) {
            continue;
        }
        struct perf_section *section = &data->features[i];
        if (perf_data_read(data, at, section, sizeof *section) || !inside(section, file_size)) {
            *section = (struct perf_section){0};
            data->header.features[i / 64] &= ~(UINT64_C(1) << (i % 64));
            lost++;
        }
        at += sizeof *section;
    }
    if (lost) {
        warning_message("%s is cut off behind its records; %u of its sections about the machine "
                        "are missing",
                        data->path, lost);
    }
    if (has_feature(data, PERF_FEATURE_DIR_FORMAT)) {
        return perf_data_refuse(data, "it is part of a recording in directory format",
                                "record without --threads");
    }
    if (has_feature(data, PERF_FEATURE_AUXTRACE)) {
        return perf_data_refuse(data, "it holds AUX area data (Intel PT, CoreSight, SPE)",
                                "record another event, or use 'perf inject --itrace' first");
    }
    return 0;
}

/* ---- Events ---- */

static int read_event(struct perf_data *data, const uint8_t *attr, uint64_t file_size)
{
    struct perf_section section;
    size_t attr_size = data->header.attr_size - sizeof section;
    memcpy(&section, attr + attr_size, sizeof section);
    if (!inside(&section, file_size) || section.size % sizeof(uint64_t)) {
        return perf_data_malformed(data, "the ids of an event lie outside the file");
    }
    uint64_t count = section.size / sizeof(uint64_t);
    int err = perf_events_reserve_ids(data, count);
    if (err) {
        return err;
    }
    if (perf_data_read(data, section.offset, data->ids + data->id_count, section.size)) {
        return perf_data_malformed(data, "the ids of an event cannot be read");
    }
    return perf_events_add(data, attr, attr_size, (uint32_t)count);
}

static int read_events(struct perf_data *data, uint64_t file_size)
{
    const struct perf_file_header *header = &data->header;
    uint8_t attr[PERF_ATTR_SIZE_MAX];
    if (header->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_section) ||
        header->attr_size > sizeof attr || header->attr_size % 8 ||
        header->attrs.size / header->attr_size > PERF_EVENTS_MAX ||
        !inside(&header->attrs, file_size)) {
        return perf_data_malformed(data, "it has no sound list of events");
    }
    uint64_t count = header->attrs.size / header->attr_size;
    int err = 0;
    for (uint64_t i = 0; i < count && !err; i++) {
        if (perf_data_read(data, header->attrs.offset + i * header->attr_size, attr,
                           header->attr_size)) {
            return perf_data_malformed(data, "its list of events cannot be read");
        }
        err = read_event(data, attr, file_size);
    }
    return err ? err : perf_events_finish(data);
}

/* ---- Opening ---- */

static int read_file_head(struct perf_data *data)
{
    uint64_t file_size = perf_input_size(data->input);
    int err = check_sections(data, file_size);
    if (!err) {
        err = read_features(data, file_size);
    }
    if (!err) {
        err = read_events(data, file_size);
    }
    if (!err) {
        perf_records_start_file(data);
    }
    return err;
}

static int open_input(struct perf_data *data)
{
    int err = perf_input_open(data->path, &data->input);
    if (err == -EISDIR) {
        return perf_data_refuse(data, "it is a recording in directory format",
                                "record without --threads");
    }
    if (err == -EINVAL) {
        return perf_data_refuse(data, "it is not a regular file", "a pipe comes by stdin, as '-'");
    }
    return failed_to(err, "open %s", data->path);
}

int perf_data_open(const char *path, struct perf_data **out)
{
    struct perf_data *data = malloc(sizeof *data);
    int err = -ENOMEM;
    *out = NULL;
    if (data) {
        memset(data, 0, offsetof(struct perf_data, aligned));
        data->path = strdup(path);
    }
    if (!data || !data->path) {
        failed_to(-ENOMEM, "read %s", path);
        perf_data_close(data);
        return err;
    }
    err = open_input(data);
    if (!err) {
        err = check_magic(data);
        if (!err && data->in_pipe_format) {
            memset(&data->header, 0, sizeof data->header);
            data->header.magic = PERF_FILE_MAGIC;
            data->header.size = sizeof data->header;
            err = perf_records_start_pipe(data);
        } else if (!err) {
            err = read_file_head(data);
        }
        if (err == -ENOMEM) {
            failed_to(-ENOMEM, "read %s", path);
        }
    }
    if (err) {
        perf_data_close(data);
        return err;
    }
    *out = data;
    return 0;
}

void perf_data_close(struct perf_data *data)
{
    if (!data) {
        return;
    }
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        free(data->strings[i]);
        free(data->feature_bytes[i]);
    }
    perf_input_close(data->input);
    perf_unpack_free(data->unpack);
    perf_events_free(data);
    free(data->path);
    free(data);
}

const char *perf_data_path(const struct perf_data *data)
{
    return data->path;
}

bool perf_data_is_live(const struct perf_data *data)
{
    return !perf_input_is_file(data->input);
}

bool perf_data_is_described(const struct perf_data *data)
{
    return !data->in_pipe_format;
}

/* ---- Features ---- */

/* Of the build-ids of all files of a machine; others have a few KB. */
#define FEATURE_SIZE_MAX ((uint64_t)256 << 20)

bool perf_data_has_feature(const struct perf_data *data, unsigned feature)
{
    return feature < PERF_FEATURE_BITS && has_feature(data, feature);
}

int perf_data_append_feature(struct perf_data *data, unsigned feature, const void *bytes,
                             size_t size)
{
    struct perf_section *section = &data->features[feature];
    perf_features_add(&data->header, feature); /* some have no bytes */
    if (size == 0 || section->size + size > FEATURE_SIZE_MAX) {
        return 0;
    }
    /* It grows by doubling, so that many small pieces are not copied again and again. */
    uint64_t room = section->size ? UINT64_C(1) << (64 - __builtin_clzll(section->size)) : 0;
    if (section->size + size > room) {
        uint64_t wanted = UINT64_C(1) << (64 - __builtin_clzll(section->size + size));
        uint8_t *grown = realloc(data->feature_bytes[feature], wanted);
        if (!grown) {
            return -ENOMEM;
        }
        data->feature_bytes[feature] = grown;
    }
    memcpy(data->feature_bytes[feature] + section->size, bytes, size);
    section->size += size;
    return 0;
}

const uint8_t *perf_data_feature(struct perf_data *data, unsigned feature, size_t *size)
{
    *size = 0;
    if (feature >= PERF_FEATURE_BITS || data->features[feature].size == 0) {
        return NULL;
    }
    const struct perf_section *section = &data->features[feature];
    if (!data->feature_bytes[feature]) {
        uint8_t *bytes = section->size <= FEATURE_SIZE_MAX ? malloc(section->size) : NULL;
        if (!bytes || perf_data_read(data, section->offset, bytes, section->size)) {
            warning_message("cannot read section %u of %s, %" PRIu64 " bytes; it is left out",
                            feature, data->path, section->size);
            free(bytes);
            return NULL;
        }
        data->feature_bytes[feature] = bytes;
    }
    *size = section->size;
    return data->feature_bytes[feature];
}

/* A string feature is its room in bytes, 32 bits wide, and the text padded with NULs. */
const char *perf_data_string(struct perf_data *data, enum perf_feature feature)
{
    size_t size;
    if (!data->strings[feature]) {
        const uint8_t *bytes = perf_data_feature(data, feature, &size);
        if (bytes && size > 4 && size <= 65536) {
            data->strings[feature] = strndup((const char *)bytes + 4, size - 4);
        }
    }
    return data->strings[feature];
}

/* ---- Build-ids ---- */

/* The size of the entry that [bytes, bytes + size) begins with; 0: there is none, or no sound one.
 */
static int take_entry(const uint8_t *bytes, size_t size,
                      int (*take)(void *context, const struct listed_build_id *listed),
                      void *context, size_t *entry_size)
{
    struct perf_build_id_entry entry;
    *entry_size = 0;
    if (size <= sizeof entry) {
        return 0;
    }
    memcpy(&entry, bytes, sizeof entry);
    if (entry.header.size <= sizeof entry || entry.header.size > size) {
        return 0;
    }
    *entry_size = entry.header.size;
    uint16_t mode = entry.header.misc & PERF_RECORD_MISC_CPUMODE_MASK;
    struct listed_build_id listed = {
        .path = (const char *)bytes + sizeof entry,
        .id = bytes + offsetof(struct perf_build_id_entry, build_id),
        .id_size = entry.header.misc & PERF_BUILD_ID_SIZE ? entry.size : BUILD_ID_MAX,
        .kernel = mode == PERF_RECORD_MISC_KERNEL || mode == PERF_RECORD_MISC_GUEST_KERNEL,
    };
    if (listed.id_size < 2 || listed.id_size > BUILD_ID_MAX ||
        !memchr(listed.path, '\0', entry.header.size - sizeof entry)) {
        return 0;
    }
    return take(context, &listed);
}

int perf_data_build_ids(struct perf_data *data,
                        int (*take)(void *context, const struct listed_build_id *listed),
                        void *context)
{
    size_t size;
    size_t entry = 1;
    int err = 0;
    const uint8_t *list = perf_data_feature(data, PERF_FEATURE_BUILD_ID, &size);
    for (size_t at = 0; list && !err && entry; at += entry) {
        err = take_entry(list + at, size - at, take, context, &entry);
    }
    return err;
}

int perf_record_build_id(const struct perf_record *record,
                         int (*take)(void *context, const struct listed_build_id *listed),
                         void *context)
{
    size_t entry;
    return take_entry(record->bytes, record->size, take, context, &entry);
}
