#include "jdtool/perf/perf_data_private.h"

#include "jdtool/base/message.h"
#include "jdtool/perf/perf_unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW_SIZE   ((size_t)256 * 1024)
#define SKIP_READ     ((size_t)4 * 1024) /* read-ahead while stepping over samples */
#define MAX_EVENTS    65536
#define ATTR_SIZE_MAX 4096

static int refuse(const struct perf_data *data, const char *what, const char *remedy)
{
    error_message("cannot take %s: %s; %s", data->path, what, remedy);
    return -ENOTSUP;
}

static int malformed(const struct perf_data *data, const char *what)
{
    error_message("failed to read %s: %s", data->path, what);
    return -EINVAL;
}

int perf_data_read(const struct perf_data *data, uint64_t offset, void *to, size_t size)
{
    uint8_t *at = to;
    while (size > 0) {
        ssize_t n = pread(data->fd, at, size, (off_t)offset);
        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }
            return -errno;
        }
        if (n == 0) {
            return -ENODATA;
        }
        at += n;
        offset += (uint64_t)n;
        size -= (size_t)n;
    }
    return 0;
}

static bool inside(const struct perf_section *section, uint64_t file_size)
{
    return section->offset <= file_size && section->size <= file_size - section->offset;
}

/* ---- The header ---- */

static int check_magic(struct perf_data *data)
{
    struct perf_file_header *header = &data->header;
    int err = perf_data_read(data, 0, header, 16);
    if (err) {
        return malformed(data, "it is too short to be a perf.data file");
    }
    if (header->magic == __builtin_bswap64(PERF_FILE_MAGIC)) {
        return refuse(data, "it was recorded on a machine of the other byte order",
                      "run jdtool on a machine like that one");
    }
    if (header->magic != PERF_FILE_MAGIC) {
        return malformed(data, "it is not a perf.data file");
    }
    if (header->size == 16) {
        return refuse(data, "it is in pipe mode",
                      "record with 'perf record -o FILE', not to a pipe");
    }
    if (header->size != sizeof *header || perf_data_read(data, 0, header, sizeof *header)) {
        return malformed(data, "unknown header size");
    }
    return 0;
}

/* perf completes the header when recording ends: a recording that was killed says 0 bytes. */
static int check_sections(struct perf_data *data, uint64_t file_size)
{
    struct perf_section *records = &data->header.data;
    if (records->offset > file_size) {
        return malformed(data, "it ends before its records");
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
    return data->header.features[feature / 64] >> (feature % 64) & 1;
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
        return refuse(data, "it is part of a recording in directory format",
                      "record without --threads");
    }
    if (has_feature(data, PERF_FEATURE_AUXTRACE)) {
        return refuse(data, "it holds AUX area data (Intel PT, CoreSight, SPE)",
                      "record another event, or use 'perf inject --itrace' first");
    }
    return 0;
}

/* ---- Events ---- */

static int count_bits(uint64_t bits)
{
    return __builtin_popcountll(bits);
}

/* perf_sample_decode and struct perf_event_attr have the order of the fields. */
static int id_position(uint64_t sample_type)
{
    if (sample_type & PERF_SAMPLE_IDENTIFIER) {
        return 0;
    }
    if (!(sample_type & PERF_SAMPLE_ID)) {
        return -1;
    }
    return count_bits(sample_type &
                      (PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR));
}

static int id_position_from_end(uint64_t sample_type)
{
    if (sample_type & PERF_SAMPLE_IDENTIFIER) {
        return 1;
    }
    if (!(sample_type & PERF_SAMPLE_ID)) {
        return -1;
    }
    return 1 + count_bits(sample_type & (PERF_SAMPLE_CPU | PERF_SAMPLE_STREAM_ID));
}

static uint32_t id_hash(uint64_t id)
{
    return (uint32_t)((id * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static int index_ids(struct perf_data *data, uint64_t id_count)
{
    uint32_t slots = 16;
    while (slots < id_count * 2) {
        slots *= 2;
    }
    data->id_slots = calloc(slots, sizeof *data->id_slots);
    if (!data->id_slots) {
        return -ENOMEM;
    }
    data->id_mask = slots - 1;
    for (uint32_t i = 0; i < data->event_count; i++) {
        for (uint32_t j = 0; j < data->events[i].id_count; j++) {
            uint64_t id = data->events[i].ids[j];
            uint32_t slot = id_hash(id) & data->id_mask;
            while (data->id_slots[slot].event && data->id_slots[slot].id != id) {
                slot = (slot + 1) & data->id_mask;
            }
            data->id_slots[slot] = (struct id_slot){id, i + 1};
        }
    }
    return 0;
}

const struct perf_event *perf_data_event_by_id(const struct perf_data *data, uint64_t id)
{
    uint32_t slot = id_hash(id) & data->id_mask;
    while (data->id_slots[slot].event) {
        if (data->id_slots[slot].id == id) {
            return &data->events[data->id_slots[slot].event - 1];
        }
        slot = (slot + 1) & data->id_mask;
    }
    return NULL;
}

static int read_ids(struct perf_data *data, uint64_t file_size)
{
    size_t attr_size = data->header.attr_size;
    uint64_t total = 0;
    for (uint32_t i = 0; i < data->event_count; i++) {
        struct perf_section section;
        memcpy(&section, data->raw_attrs + (i + 1) * attr_size - sizeof section, sizeof section);
        if (!inside(&section, file_size) || section.size % sizeof(uint64_t)) {
            return malformed(data, "the ids of an event lie outside the file");
        }
        data->events[i].id_count = (uint32_t)(section.size / sizeof(uint64_t));
        total += data->events[i].id_count;
    }
    if (total > file_size / sizeof(uint64_t)) { /* sections may overlap in a hostile file */
        return malformed(data, "more ids of events than the file has room for");
    }
    data->ids = calloc(total + 1, sizeof *data->ids);
    if (!data->ids) {
        return -ENOMEM;
    }
    uint64_t *ids = data->ids;
    for (uint32_t i = 0; i < data->event_count; i++) {
        struct perf_section section;
        memcpy(&section, data->raw_attrs + (i + 1) * attr_size - sizeof section, sizeof section);
        if (perf_data_read(data, section.offset, ids, section.size)) {
            return malformed(data, "the ids of an event cannot be read");
        }
        data->events[i].ids = ids;
        ids += data->events[i].id_count;
    }
    return index_ids(data, total);
}

static int read_events(struct perf_data *data, uint64_t file_size)
{
    const struct perf_file_header *header = &data->header;
    size_t attr_size = header->attr_size;
    if (attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct perf_section) ||
        attr_size > ATTR_SIZE_MAX || attr_size % 8 || header->attrs.size < attr_size ||
        header->attrs.size / attr_size > MAX_EVENTS || !inside(&header->attrs, file_size)) {
        return malformed(data, "it has no sound list of events");
    }
    data->event_count = (uint32_t)(header->attrs.size / attr_size);
    data->raw_attrs = malloc(data->event_count * attr_size);
    data->events = calloc(data->event_count, sizeof *data->events);
    if (!data->raw_attrs || !data->events) {
        return -ENOMEM;
    }
    if (perf_data_read(data, header->attrs.offset, data->raw_attrs,
                       data->event_count * attr_size)) {
        return malformed(data, "its list of events cannot be read");
    }
    size_t known = attr_size - sizeof(struct perf_section);
    if (known > sizeof(struct perf_event_attr)) {
        known = sizeof(struct perf_event_attr);
    }
    for (uint32_t i = 0; i < data->event_count; i++) {
        memcpy(&data->events[i].attr, data->raw_attrs + i * attr_size, known);
    }

    uint64_t type = data->events[0].attr.sample_type;
    data->id_at = id_position(type);
    data->id_from_end = id_position_from_end(type);
    for (uint32_t i = 1; i < data->event_count; i++) {
        uint64_t other = data->events[i].attr.sample_type;
        if (id_position(other) != data->id_at || (data->id_at < 0 && other != type)) {
            return malformed(data, "its events cannot be told apart (ids at different places)");
        }
    }
    return read_ids(data, file_size);
}

/* ---- Opening ---- */

static int read_head(struct perf_data *data)
{
    struct stat status;
    if (fstat(data->fd, &status)) {
        return -errno;
    }
    if (S_ISDIR(status.st_mode)) {
        return refuse(data, "it is a recording in directory format", "record without --threads");
    }
    if (!S_ISREG(status.st_mode)) {
        return refuse(data, "it is not a regular file",
                      "record with 'perf record -o FILE', not to a pipe");
    }
    uint64_t file_size = (uint64_t)status.st_size;
    int err = check_magic(data);
    if (!err) {
        err = check_sections(data, file_size);
    }
    if (!err) {
        err = read_features(data, file_size);
    }
    if (!err) {
        err = read_events(data, file_size);
    }
    return err;
}

int perf_data_open(const char *path, struct perf_data **out)
{
    struct perf_data *data = calloc(1, sizeof *data);
    int err = -ENOMEM;
    *out = NULL;
    if (!data) {
        goto no_memory;
    }
    data->fd = -1;
    data->path = strdup(path);
    data->window = malloc(WINDOW_SIZE);
    if (!data->path || !data->window) {
        goto no_memory;
    }
    if (strcmp(path, "-") == 0) {
        err = refuse(data, "it is in pipe mode", "record with 'perf record -o FILE'");
        goto fail;
    }
    data->fd =
        open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO is refused, not waited for */
    if (data->fd < 0) {
        err = -errno;
        error_message("failed to open %s: %s", path, strerror(-err));
        goto fail;
    }
    err = read_head(data);
    if (err == -ENOMEM) {
        goto no_memory;
    }
    if (err) {
        goto fail;
    }
    perf_data_rewind(data);
    *out = data;
    return 0;

no_memory:
    error_message("failed to read %s: %s", path, strerror(ENOMEM));
fail:
    perf_data_close(data);
    return err;
}

void perf_data_close(struct perf_data *data)
{
    if (!data) {
        return;
    }
    if (data->fd >= 0) {
        close(data->fd);
    }
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        free(data->strings[i]);
        free(data->feature_bytes[i]);
    }
    perf_unpack_free(data->unpack);
    free(data->window);
    free(data->id_slots);
    free(data->ids);
    free(data->events);
    free(data->raw_attrs);
    free(data->path);
    free(data);
}

const char *perf_data_path(const struct perf_data *data)
{
    return data->path;
}

uint64_t perf_data_size(const struct perf_data *data)
{
    return data->header.data.size;
}

uint32_t perf_data_event_count(const struct perf_data *data)
{
    return data->event_count;
}

const struct perf_event *perf_data_event(const struct perf_data *data, uint32_t index)
{
    return &data->events[index];
}

bool perf_data_has(const struct perf_data *data, uint64_t sample_type)
{
    for (uint32_t i = 0; i < data->event_count; i++) {
        if (data->events[i].attr.sample_type & sample_type) {
            return true;
        }
    }
    return false;
}

/* A string feature is its room in bytes, 32 bits wide, and the text padded with NULs. */
const char *perf_data_string(struct perf_data *data, enum perf_feature feature)
{
    const struct perf_section *section = &data->features[feature];
    if (data->strings[feature] || section->size <= 4 || section->size > 65536) {
        return data->strings[feature];
    }
    size_t size = section->size - 4;
    char *text = malloc(size + 1);
    if (!text) {
        return NULL;
    }
    if (perf_data_read(data, section->offset + 4, text, size)) {
        free(text);
        return NULL;
    }
    text[size] = '\0';
    data->strings[feature] = text;
    return text;
}

/* Of the build-ids of all files of a machine; others have a few KB. */
#define FEATURE_SIZE_MAX ((uint64_t)256 << 20)

bool perf_data_has_feature(const struct perf_data *data, unsigned feature)
{
    return feature < PERF_FEATURE_BITS && has_feature(data, feature);
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

/* ---- Records ---- */

void perf_data_rewind(struct perf_data *data)
{
    data->next = data->header.data.offset;
    data->window_at = data->next;
    data->window_size = 0;
    if (data->unpack) {
        perf_unpack_rewind(data->unpack);
    }
}

/* Makes [at, at + size) lie in the window; size is at most 64 KB, and the file has that much. */
static int fill_window(struct perf_data *data, uint64_t at, size_t size, size_t read_ahead)
{
    if (at >= data->window_at && at + size <= data->window_at + data->window_size) {
        return 0;
    }
    uint64_t left = data->header.data.offset + data->header.data.size - at;
    if (read_ahead < size) {
        read_ahead = size;
    }
    if (read_ahead > left) {
        read_ahead = (size_t)left;
    }
    int err = perf_data_read(data, at, data->window, read_ahead);
    if (err) {
        data->window_size = 0;
        error_message("failed to read %s: %s", data->path,
                      err == -ENODATA ? "it became shorter" : strerror(-err));
        return err;
    }
    data->window_at = at;
    data->window_size = read_ahead;
    return 0;
}

static int check_type(const struct perf_data *data, uint32_t type)
{
    switch (type) {
    case PERF_RECORD_AUX:
    case PERF_USER_AUXTRACE_INFO:
    case PERF_USER_AUXTRACE:
        return refuse(data, "it holds AUX area data (Intel PT, CoreSight, SPE)",
                      "record another event, or use 'perf inject --itrace' first");
    case PERF_USER_TRACING_DATA: /* only in pipe mode do its contents follow the record */
        return refuse(data, "it is in pipe mode",
                      "record with 'perf record -o FILE', not to a pipe");
    default:
        return 0;
    }
}

/* Told once, however often the file is read. */
static int cut_off(struct perf_data *data)
{
    if (!data->told_cut_off) {
        warning_message("the last record of %s, at offset %" PRIu64 ", is cut off; it is left out",
                        data->path, data->next);
        data->told_cut_off = true;
    }
    data->next = data->header.data.offset + data->header.data.size;
    return 0;
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
            error_message("failed to read %s: %s", data->path, strerror(ENOMEM));
            return -ENOMEM;
        }
    }
    perf_unpack_feed(data->unpack, record->bytes + at, end - at);
    return 0;
}

static bool is_packed(uint32_t type)
{
    return type == PERF_USER_COMPRESSED || type == PERF_USER_COMPRESSED2;
}

/* The next record as it stands in the file. As perf_data_next. */
static int next_in_file(struct perf_data *data, bool want_samples, struct perf_record *record)
{
    size_t read_ahead = want_samples ? WINDOW_SIZE : SKIP_READ;
    for (;;) {
        uint64_t left = data->header.data.offset + data->header.data.size - data->next;
        if (left == 0) {
            return 0;
        }
        struct perf_event_header header;
        if (left < sizeof header) {
            return cut_off(data);
        }
        int err = fill_window(data, data->next, sizeof header, read_ahead);
        if (err) {
            return err;
        }
        memcpy(&header, data->window + (data->next - data->window_at), sizeof header);
        if (header.size < sizeof header) {
            error_message("failed to read %s: the record at offset %" PRIu64 " has size %u",
                          data->path, data->next, header.size);
            return -EINVAL;
        }
        if (header.size > left) {
            return cut_off(data);
        }
        err = check_type(data, header.type);
        if (err) {
            return err;
        }
        if (header.type == PERF_RECORD_SAMPLE && !want_samples) {
            data->next += header.size;
            continue;
        }
        err = fill_window(data, data->next, header.size, read_ahead);
        if (err) {
            return err;
        }
        size_t at = (size_t)(data->next - data->window_at);
        if (at % 8) { /* not in files that perf wrote; WINDOW_SIZE has room for any record at 0 */
            memmove(data->window, data->window + at, header.size);
            data->window_at = data->next;
            data->window_size = header.size;
            at = 0;
        }
        *record = (struct perf_record){
            .type = header.type,
            .misc = header.misc,
            .size = header.size,
            .bytes = data->window + at,
        };
        data->next += header.size;
        return 1;
    }
}

/* The next one out of packed records. As perf_data_next, but 0 means that one has to be fed. */
static int next_unpacked(struct perf_data *data, bool want_samples, struct perf_record *record)
{
    int more = 0;
    do {
        more = data->unpack ? perf_unpack_next(data->unpack, record) : 0;
    } while (more > 0 && record->type == PERF_RECORD_SAMPLE && !want_samples);
    if (more < 0 || (more > 0 && is_packed(record->type))) {
        return malformed(data, "its compressed records cannot be unpacked");
    }
    int err = more > 0 ? check_type(data, record->type) : 0;
    return err ? err : more;
}

int perf_data_next(struct perf_data *data, bool want_samples, struct perf_record *record)
{
    for (;;) {
        int more = next_unpacked(data, want_samples, record);
        if (more != 0) {
            return more;
        }
        more = next_in_file(data, want_samples, record);
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
