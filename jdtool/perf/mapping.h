/*
 * What a PERF_RECORD_MMAP or _MMAP2 record says.
 */
#ifndef JD_TOOL_MAPPING_H
#define JD_TOOL_MAPPING_H

#include "jdtool/perf/perf_data.h"

/* A mapping as a record tells of it. */
struct mapping {
    uint32_t pid;
    bool kernel; /* the kernel's own: itself, its modules, its BPF programs */
    uint64_t start;
    uint64_t end;
    uint64_t file_offset; /* of start */
    uint64_t from;        /* time; 0 when it was there before the recording */
    uint64_t inode;       /* 0: not recorded */
    uint32_t major;       /* of its device */
    uint32_t minor;
    uint8_t build_id[BUILD_ID_MAX]; /* in place of the inode (perf record --buildid-mmap) */
    uint8_t build_id_size;          /* 0: not recorded */
    const char *path;               /* as the process sees it; in the record */
    const char *file;               /* where it is to be read here; NULL at first */
    bool executable;
    bool anonymous; /* memory without a file: where JVMs put the code they generate */
};

/* Does this record map memory into a process or the kernel, and what? Fills *mapping; its path
 * points into the record. perf_data_next has done so. */
bool mapping_decode(const struct perf_record *record, struct mapping *mapping);

/* Integers and strings in a record, at an offset of its bytes; 0 and NULL behind its end. */
uint32_t perf_record_u32(const struct perf_record *record, size_t offset);
uint64_t perf_record_u64(const struct perf_record *record, size_t offset);
const char *perf_record_string(const struct perf_record *record, size_t offset);

#endif
