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
    uint64_t file_offset;      /* of start */
    uint64_t from;             /* time; 0 when it was there before the recording */
    struct file_identity file; /* its path is in the record */
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
