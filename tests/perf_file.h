/*
 * Makes perf.data files for tests, record by record.
 */
#ifndef JD_TESTS_PERF_FILE_H
#define JD_TESTS_PERF_FILE_H

#include "jdtool/perf/perf_data_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct perf_file {
    struct perf_event_attr attrs[4];
    uint32_t attr_count;
    uint8_t *records;
    size_t size;
    size_t room;
    uint64_t feature_bits;
    struct {
        const void *bytes;
        size_t size;
    } features[64];
};

static inline void perf_file_free(struct perf_file *file)
{
    free(file->records);
}

/* One that is freed where its scope ends. */
#define OWN_PERF_FILE __attribute__((cleanup(perf_file_free))) struct perf_file

static inline void perf_file_put(struct perf_file *file, const void *bytes, size_t size)
{
    if (file->room - file->size < size) { /* by halves: a sanitizer's realloc copies */
        file->room += file->room / 2 + size + 1024;
        file->records = realloc(file->records, file->room);
    }
    if (size) {
        memcpy(file->records + file->size, bytes, size);
    }
    file->size += size;
}

/* fwrite must not be given NULL, not even for no bytes. */
static inline void perf_file_write_bytes(FILE *out, const void *bytes, size_t size)
{
    if (size) {
        fwrite(bytes, 1, size, out);
    }
}

/* Appends a record with the given payload. */
static inline void perf_file_record(struct perf_file *file, uint32_t type, uint16_t misc,
                                    const void *payload, size_t size)
{
    struct perf_event_header header = {type, misc, (uint16_t)(sizeof header + size)};
    perf_file_put(file, &header, sizeof header);
    perf_file_put(file, payload, size);
}

static inline void perf_file_feature(struct perf_file *file, unsigned feature, const void *bytes,
                                     size_t size)
{
    file->feature_bits |= UINT64_C(1) << feature;
    file->features[feature].bytes = bytes;
    file->features[feature].size = size;
}

/* Writes the file; event i has the one id 100 + i. The records stay for another round. */
static inline void perf_file_write(const struct perf_file *file, const char *path)
{
    FILE *out = fopen(path, "w");
    struct perf_file_header header = {
        .magic = PERF_FILE_MAGIC,
        .size = sizeof header,
        .attr_size = sizeof file->attrs[0] + sizeof(struct perf_section),
        .attrs = {sizeof header + file->attr_count * UINT64_C(8),
                  (uint64_t)file->attr_count *
                      (sizeof file->attrs[0] + sizeof(struct perf_section))},
        .features = {file->feature_bits},
    };
    header.data = (struct perf_section){header.attrs.offset + header.attrs.size, file->size};
    fwrite(&header, 1, sizeof header, out);
    for (uint64_t i = 0; i < file->attr_count; i++) {
        uint64_t id = 100 + i;
        fwrite(&id, 1, sizeof id, out);
    }
    for (uint32_t i = 0; i < file->attr_count; i++) {
        struct perf_section ids = {sizeof header + i * UINT64_C(8), 8};
        fwrite(&file->attrs[i], 1, sizeof file->attrs[i], out);
        fwrite(&ids, 1, sizeof ids, out);
    }
    perf_file_write_bytes(out, file->records, file->size);
    uint64_t at = header.data.offset + header.data.size +
                  (uint64_t)__builtin_popcountll(file->feature_bits) * sizeof(struct perf_section);
    for (unsigned i = 0; i < 64; i++) {
        if (file->feature_bits >> i & 1) {
            struct perf_section section = {at, file->features[i].size};
            fwrite(&section, 1, sizeof section, out);
            at += section.size;
        }
    }
    for (unsigned i = 0; i < 64; i++) {
        if (file->feature_bits >> i & 1) {
            perf_file_write_bytes(out, file->features[i].bytes, file->features[i].size);
        }
    }
    fclose(out);
}

/* The same as perf record -o - writes it; event i has the one id 100 + i. */
static inline void perf_file_write_pipe(const struct perf_file *file, FILE *out)
{
    const uint64_t magic[2] = {PERF_FILE_MAGIC, 16};
    fwrite(magic, 1, sizeof magic, out);
    for (uint32_t i = 0; i < file->attr_count; i++) {
        struct perf_event_header header = {PERF_USER_ATTR, 0,
                                           sizeof header + sizeof file->attrs[0] + 8};
        uint64_t id = 100 + (uint64_t)i;
        fwrite(&header, 1, sizeof header, out);
        fwrite(&file->attrs[i], 1, sizeof file->attrs[i], out);
        fwrite(&id, 1, sizeof id, out);
    }
    for (uint64_t i = 0; i < 64; i++) {
        if (!(file->feature_bits >> i & 1)) {
            continue;
        }
        if (i == PERF_FEATURE_TRACING_DATA) { /* 12 bytes, then the contents */
            struct perf_event_header header = {PERF_USER_TRACING_DATA, 0, 12};
            uint32_t size = (uint32_t)file->features[i].size;
            fwrite(&header, 1, sizeof header, out);
            fwrite(&size, 1, sizeof size, out);
        } else {
            struct perf_event_header header = {PERF_USER_FEATURE, 0,
                                               (uint16_t)(16 + file->features[i].size)};
            fwrite(&header, 1, sizeof header, out);
            fwrite(&i, 1, sizeof i, out);
        }
        perf_file_write_bytes(out, file->features[i].bytes, file->features[i].size);
    }
    /* The mark behind the last one is the number that perf 6.1 has for none. */
    const struct perf_event_header end = {PERF_USER_FEATURE, 0, 16};
    const uint64_t last = 32;
    fwrite(&end, 1, sizeof end, out);
    fwrite(&last, 1, sizeof last, out);
    perf_file_write_bytes(out, file->records, file->size);
    fflush(out);
}

#endif
