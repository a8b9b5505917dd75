/*
 * The processes of a recording: what was mapped where, from when on, and who forked whom. Made of
 * the MMAP, MMAP2, FORK and COMM records, put in the order of their time stamps.
 *
 * A process that executes another program, and a pid that is given to another process, are new
 * processes here. One that was forked has its parent's mappings as of that moment.
 */
#ifndef JD_TOOL_PROCESSES_H
#define JD_TOOL_PROCESSES_H

#include "jdtool/perf/mapping.h"

struct process {
    uint32_t pid; /* as perf sees it, outside all namespaces */
    uint64_t from;
    const struct process *parent; /* the process that was forked; NULL: not known, or exec'd */
    struct mapping *mappings;     /* by time */
    uint32_t mapping_count;
    uint32_t mapping_room;
    bool has_jvm;                   /* a libjvm.so is mapped */
    struct mapping_answer *answers; /* that process_mapping_at gave before */
    void *owner;                    /* for whoever works with the processes; NULL at first */
};

/* What got lost while recording, by the recording's own count. */
struct losses {
    uint64_t records; /* PERF_RECORD_LOST: of any kind */
    uint64_t samples; /* PERF_RECORD_LOST_SAMPLES */
};

/* The parameters of PERF_RECORD_TIME_CONV: processor's time stamps against perf's default clock. */
struct time_conversion {
    bool known;
    uint64_t shift;
    uint64_t mult;
    uint64_t zero;
};

struct processes;

/* Reads all records but the samples, from the beginning. 0 or a negative errno after a message. */
int processes_read(struct perf_data *data, struct processes **out);
void processes_free(struct processes *processes); /* NULL is fine */

uint32_t processes_count(const struct processes *processes);
struct process *processes_get(const struct processes *processes, uint32_t index);

/* Who had this pid at that time; of several with no earlier start the first. NULL: nobody known. */
struct process *processes_at(const struct processes *processes, uint32_t pid, uint64_t time);

/* What covers an address at a time, the parents' mappings included, or NULL. */
const struct mapping *process_mapping_at(const struct process *process, uint64_t address,
                                         uint64_t time);

struct losses processes_losses(const struct processes *processes);
struct time_conversion processes_time_conversion(const struct processes *processes);

#endif
