/*
 * A recording is laid out anew: header, ids, attributes, records, features. Nothing in the features
 * depends on where they stand (those that do, AUXTRACE and DIR_FORMAT, are refused by the reader),
 * so they are copied as they are but for two: HEADER_BUILD_ID gets our files, and
 * HEADER_EVENT_DESC, a second copy of the attributes, is changed as they are.
 */
#include "jdtool/perf/perf_data_private.h"

#include "jdtool/base/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COPY_SIZE  ((size_t)64 * 1024)
#define USER_STATE ((uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER))
#define NAME_ALIGN 64 /* of file names in HEADER_BUILD_ID */

struct perf_writer {
    struct perf_data *source;
    char *path;
    char *temporary;
    FILE *file;
    bool drop_user_stacks;
    struct perf_file_header header;
    uint64_t at; /* bytes written */
    int error;   /* the first one, negative errno */
    uint8_t *build_ids;
    size_t build_ids_size;
};

void perf_writer_put(struct perf_writer *writer, const void *bytes, size_t size)
{
    if (writer->error || size == 0) {
        return;
    }
    if (fwrite(bytes, 1, size, writer->file) != size) {
        writer->error = errno ? -errno : -EIO;
        return;
    }
    writer->at += size;
}

/* Copies [offset, offset + size) of the source. */
static void copy(struct perf_writer *writer, uint64_t offset, uint64_t size)
{
    uint8_t *buffer = malloc(COPY_SIZE);
    if (!buffer) {
        writer->error = -ENOMEM;
        return;
    }
    while (size > 0 && !writer->error) {
        size_t n = size < COPY_SIZE ? (size_t)size : COPY_SIZE;
        int err = perf_data_read(writer->source, offset, buffer, n);
        if (err) {
            writer->error = err;
            break;
        }
        perf_writer_put(writer, buffer, n);
        offset += n;
        size -= n;
    }
    free(buffer);
}

/* Changes an attribute, `size` bytes of it, so that it says what is in the samples now. */
static void change_attr(uint8_t *bytes, size_t size)
{
    struct perf_event_attr attr = {0};
    size_t known = size < sizeof attr ? size : sizeof attr;
    memcpy(&attr, bytes, known);
    if (attr.sample_type & USER_STATE) {
        attr.exclude_callchain_user = 0;
    }
    attr.sample_type &= ~USER_STATE;
    attr.sample_regs_user = 0;
    attr.sample_stack_user = 0;
    memcpy(bytes, &attr, known);
}

static void put_events(struct perf_writer *writer)
{
    const struct perf_data *source = writer->source;
    size_t attr_size = source->header.attr_size;
    size_t attrs_size = source->event_count * attr_size;
    uint8_t *attrs = malloc(attrs_size);
    if (!attrs) {
        writer->error = -ENOMEM;
        return;
    }
    memcpy(attrs, source->raw_attrs, attrs_size);
    for (uint32_t i = 0; i < source->event_count; i++) {
        const struct perf_event *event = &source->events[i];
        struct perf_section ids = {writer->at, event->id_count * sizeof(uint64_t)};
        uint8_t *attr = attrs + i * attr_size;
        perf_writer_put(writer, event->ids, ids.size);
        if (writer->drop_user_stacks) {
            change_attr(attr, attr_size - sizeof ids);
        }
        memcpy(attr + attr_size - sizeof ids, &ids, sizeof ids);
    }
    writer->header.attrs = (struct perf_section){writer->at, attrs_size};
    perf_writer_put(writer, attrs, attrs_size);
    free(attrs);
}

static int start(struct perf_writer *writer)
{
    if (asprintf(&writer->temporary, "%s.XXXXXX", writer->path) < 0) {
        writer->temporary = NULL;
        return -ENOMEM;
    }
    int fd = mkstemp(writer->temporary); /* mode 0600 */
    if (fd < 0) {
        int err = -errno;
        free(writer->temporary);
        writer->temporary = NULL;
        return err;
    }
    writer->file = fdopen(fd, "w");
    if (!writer->file) {
        int err = -errno;
        close(fd);
        return err;
    }
    writer->header = writer->source->header;
    writer->header.event_types = (struct perf_section){0};
    /* The reader has unpacked them. */
    writer->header.features[PERF_FEATURE_COMPRESSED / 64] &=
        ~(UINT64_C(1) << PERF_FEATURE_COMPRESSED % 64);
    perf_writer_put(writer, &writer->header, sizeof writer->header);
    put_events(writer);
    writer->header.data = (struct perf_section){writer->at, 0};
    return writer->error;
}

int perf_writer_open(const char *path, struct perf_data *source, bool drop_user_stacks,
                     struct perf_writer **out)
{
    int err = -ENOMEM;
    struct perf_writer *writer = calloc(1, sizeof *writer);
    *out = NULL;
    if (writer) {
        writer->source = source;
        writer->drop_user_stacks = drop_user_stacks;
        writer->path = strdup(path);
        if (writer->path) {
            err = start(writer);
        }
    }
    if (err) {
        error_message("failed to create %s: %s", path, strerror(-err));
        perf_writer_abort(writer);
        return err;
    }
    *out = writer;
    return 0;
}

void perf_writer_add_build_id(struct perf_writer *writer, const char *path,
                              const uint8_t build_id[BUILD_ID_MAX])
{
    size_t length = strlen(path);
    size_t name_size = (length + NAME_ALIGN) / NAME_ALIGN * NAME_ALIGN; /* with its NUL */
    struct perf_build_id_entry entry = {
        .header = {.misc = PERF_RECORD_MISC_USER | PERF_BUILD_ID_SIZE,
                   .size = (uint16_t)(sizeof entry + name_size)},
        .pid = -1, /* of the host, not of a guest */
        .size = BUILD_ID_MAX,
    };
    if (name_size > PATH_MAX + NAME_ALIGN) {
        writer->error = -ENAMETOOLONG;
        return;
    }
    memcpy(entry.build_id, build_id, BUILD_ID_MAX);
    uint8_t *grown = realloc(writer->build_ids, writer->build_ids_size + sizeof entry + name_size);
    if (!grown) {
        writer->error = -ENOMEM;
        return;
    }
    writer->build_ids = grown;
    uint8_t *at = grown + writer->build_ids_size;
    memcpy(at, &entry, sizeof entry);
    memset(at + sizeof entry, 0, name_size);
    memcpy(at + sizeof entry, path, length + 1);
    writer->build_ids_size += sizeof entry + name_size;
}

/* ---- Features ---- */

/*
 * HEADER_EVENT_DESC: u32 number of events, u32 bytes of an attribute, and for each event the
 * attribute, u32 number of ids, u32 bytes of the name and the name, the ids. A section that is not
 * like that is left alone.
 */
static void change_event_desc(uint8_t *section, size_t size)
{
    uint32_t head[2];
    if (size < sizeof head) {
        return;
    }
    memcpy(head, section, sizeof head);
    size_t at = sizeof head;
    for (uint32_t i = 0; i < head[0]; i++) {
        uint32_t counts[2]; /* ids, bytes of the name */
        if (head[1] > size - at || sizeof counts > size - at - head[1]) {
            return;
        }
        change_attr(section + at, head[1]);
        memcpy(counts, section + at + head[1], sizeof counts);
        at += head[1] + sizeof counts;
        uint64_t rest = counts[1] + (uint64_t)counts[0] * sizeof(uint64_t);
        if (rest > size - at) {
            return;
        }
        at += rest;
    }
}

static void put_event_desc(struct perf_writer *writer, const struct perf_section *section)
{
    uint8_t *bytes = malloc(section->size);
    if (!bytes) {
        writer->error = -ENOMEM;
        return;
    }
    int err = perf_data_read(writer->source, section->offset, bytes, section->size);
    if (err) {
        writer->error = err;
    } else {
        change_event_desc(bytes, section->size);
        perf_writer_put(writer, bytes, section->size);
    }
    free(bytes);
}

static void put_feature(struct perf_writer *writer, unsigned feature)
{
    const struct perf_section *section = &writer->source->features[feature];
    if (feature == PERF_FEATURE_EVENT_DESC && writer->drop_user_stacks && section->size) {
        put_event_desc(writer, section);
        return;
    }
    copy(writer, section->offset, section->size);
    if (feature == PERF_FEATURE_BUILD_ID) {
        perf_writer_put(writer, writer->build_ids, writer->build_ids_size);
    }
}

/* The table of sections, in the order of their numbers, then the sections. */
static void put_features(struct perf_writer *writer)
{
    uint64_t *bits = writer->header.features;
    struct perf_section table[PERF_FEATURE_BITS];
    unsigned count = 0;
    unsigned numbers[PERF_FEATURE_BITS];

    if (writer->build_ids_size) {
        bits[0] |= UINT64_C(1) << PERF_FEATURE_BUILD_ID;
    }
    for (unsigned i = 0; i < PERF_FEATURE_BITS; i++) {
        if (bits[i / 64] >> (i % 64) & 1) {
            numbers[count++] = i;
        }
    }
    uint64_t table_at = writer->at;
    memset(table, 0, sizeof table);
    perf_writer_put(writer, table, count * sizeof table[0]);
    for (unsigned i = 0; i < count; i++) {
        table[i].offset = writer->at;
        put_feature(writer, numbers[i]);
        table[i].size = writer->at - table[i].offset;
    }
    if (!writer->error && fseeko(writer->file, (off_t)table_at, SEEK_SET)) {
        writer->error = -errno;
    }
    perf_writer_put(writer, table, count * sizeof table[0]);
}

int perf_writer_finish(struct perf_writer *writer)
{
    writer->header.data.size = writer->at - writer->header.data.offset;
    put_features(writer);
    if (!writer->error && fseeko(writer->file, 0, SEEK_SET)) {
        writer->error = -errno;
    }
    perf_writer_put(writer, &writer->header, sizeof writer->header);

    int err = writer->error;
    if (fclose(writer->file) && !err) {
        err = -errno;
    }
    writer->file = NULL;
    if (!err && rename(writer->temporary, writer->path)) {
        err = -errno;
    }
    if (err) {
        error_message("failed to write %s: %s", writer->path, strerror(-err));
    } else {
        free(writer->temporary);
        writer->temporary = NULL;
    }
    perf_writer_abort(writer);
    return err;
}

void perf_writer_abort(struct perf_writer *writer)
{
    if (!writer) {
        return;
    }
    if (writer->file) {
        fclose(writer->file);
    }
    if (writer->temporary) {
        unlink(writer->temporary);
        free(writer->temporary);
    }
    free(writer->build_ids);
    free(writer->path);
    free(writer);
}
