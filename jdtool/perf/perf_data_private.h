/* What the files behind perf_data.h share. */
#ifndef JD_TOOL_PERF_DATA_PRIVATE_H
#define JD_TOOL_PERF_DATA_PRIVATE_H

#include "jdtool/perf/perf_data.h"

struct perf_section {
    uint64_t offset;
    uint64_t size;
};

struct perf_file_header {
    uint64_t magic;
    uint64_t size;
    uint64_t attr_size; /* bytes of an attribute and the section behind it that holds its ids */
    struct perf_section attrs;
    struct perf_section data;
    struct perf_section event_types; /* unused since Linux 3.x */
    uint64_t features[PERF_FEATURE_BITS / 64];
};
_Static_assert(sizeof(struct perf_file_header) == 104, "perf_file_header");

#define PERF_FILE_MAGIC UINT64_C(0x32454c4946524550) /* "PERFILE2" */

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

struct perf_data {
    int fd;
    char *path;
    struct perf_file_header header; /* data.size corrected to what is there */
    uint8_t *raw_attrs;             /* attrs.size bytes as they stand in the file */
    uint64_t *ids;                  /* of all events */
    struct perf_event *events;
    uint32_t event_count;

    /* id -> event, open addressing; an empty slot has event 0, the others index + 1. */
    struct id_slot {
        uint64_t id;
        uint32_t event;
    } * id_slots;
    uint32_t id_mask;
    int id_at;       /* of the id in a sample, in 8-byte words; -1: events have no ids */
    int id_from_end; /* of the id in other records, counted from the end; -1: none */

    struct perf_section features[PERF_FEATURE_BITS]; /* size 0: absent */
    char *strings[PERF_FEATURE_BITS];                /* read by perf_data_string */
    uint8_t *feature_bytes[PERF_FEATURE_BITS];       /* read by perf_data_feature */

    uint8_t *window;
    uint64_t window_at; /* offset of the window in the file */
    size_t window_size; /* valid bytes */
    uint64_t next;      /* offset of the next record */
    bool told_cut_off;
    struct perf_unpack *unpack; /* NULL: no packed record was met yet */
};

/* The event with this id, or NULL. */
const struct perf_event *perf_data_event_by_id(const struct perf_data *data, uint64_t id);

/* Reads exactly size bytes at an offset. 0 or a negative errno (-ENODATA: the file ends). */
int perf_data_read(const struct perf_data *data, uint64_t offset, void *to, size_t size);

#endif
