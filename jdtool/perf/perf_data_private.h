/* What the files behind perf_data.h share. */
#ifndef JD_TOOL_PERF_DATA_PRIVATE_H
#define JD_TOOL_PERF_DATA_PRIVATE_H

#include "jdtool/base/hash_map.h"
#include "jdtool/perf/perf_data.h"
#include "jdtool/perf/perf_input.h"

/* perf's build_id_event: what one file takes in HEADER_BUILD_ID; its name follows. */
struct perf_build_id_entry {
    struct perf_event_header header;
    int32_t pid;
    uint8_t build_id[BUILD_ID_MAX];
    uint8_t size;
    uint8_t reserved[3];
};
_Static_assert(sizeof(struct perf_build_id_entry) == 36, "perf_build_id_entry");
#define PERF_BUILD_ID_SIZE (1u << 15) /* PERF_RECORD_MISC_BUILD_ID_SIZE: its size is in there */

#define PERF_EVENTS_MAX    65536
#define PERF_IDS_MAX       (UINT32_C(1) << 22) /* of all events: one for each and each processor */
#define PERF_ATTR_SIZE_MAX 4096

struct perf_data {
    struct perf_input *input;
    char *path;
    bool in_pipe_format;            /* attributes and features come as records */
    struct perf_file_header header; /* data.size corrected to what is there */

    /* perf_events.c. The attributes as they came, header.attr_size bytes each, the last 16 for the
     * section of ids. */
    uint8_t *raw_attrs;
    struct perf_event *events;
    uint32_t event_count;
    uint32_t event_room;
    uint64_t *ids; /* of all events */
    uint32_t *id_events;
    uint32_t id_count;
    struct hash_map by_id; /* id -> place in ids */
    int id_at;             /* of the id in a sample, in 8-byte words; -1: events have no ids */
    int id_from_end;       /* of the id in other records, counted from the end; -1: none */
    bool asks_build_ids;   /* an event wants them in MMAP2 records */

    struct perf_section features[PERF_FEATURE_BITS]; /* size 0: absent; of a pipe without offset */
    char *strings[PERF_FEATURE_BITS];                /* read by perf_data_string */
    uint8_t *feature_bytes[PERF_FEATURE_BITS];       /* read by perf_data_feature */

    bool leaves_copies;
    bool told_cut_off;
    bool has_ended;
    struct perf_unpack *unpack; /* NULL: no packed record was met yet */
    bool has_started;           /* of a pipe: nothing but records comes any more */
    struct mapping mapping;     /* of the last record */
    struct perf_record first;   /* of a pipe: read when it was opened; bytes NULL: there is none */
    /* A record that does not stand at a multiple of 8, or was read in part. */
    _Alignas(8) uint8_t aligned[65536];
};

/* Of any record that is not a sample; records of perf's own have none. */
struct perf_sample_id perf_record_id(const struct perf_data *data,
                                     const struct perf_record *record);

/* The event with this id, or NULL. */
const struct perf_event *perf_data_event_by_id(const struct perf_data *data, uint64_t id);

/* Messages. -EINVAL, -ENOTSUP. */
int perf_data_malformed(const struct perf_data *data, const char *what);
int perf_data_refuse(const struct perf_data *data, const char *what, const char *remedy);

/*
 * Adds an event whose id_count ids stand behind the others in data->ids already, where
 * perf_events_reserve_ids has made room for them. 0 or a negative errno, -ENOMEM without a message.
 */
int perf_events_reserve_ids(struct perf_data *data, uint64_t count);
int perf_events_add(struct perf_data *data, const uint8_t *attr, size_t attr_size,
                    uint32_t id_count);

/* When all are known. As perf_events_add. */
int perf_events_finish(struct perf_data *data);
void perf_events_free(struct perf_data *data);

/* PERF_RECORD_EVENT_UPDATE. */
void perf_events_update(struct perf_data *data, const struct perf_record *record);

/* Adds to a feature that comes in records. 0 or -ENOMEM. */
int perf_data_append_feature(struct perf_data *data, unsigned feature, const void *bytes,
                             size_t size);

/* Goes to the first record of a file. */
void perf_records_start_file(struct perf_data *data);

/* Of a pipe: takes in what stands before the first record. 0 or a negative errno, -ENOMEM without a
 * message. */
int perf_records_start_pipe(struct perf_data *data);

#endif
