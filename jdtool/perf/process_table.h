/*
 * Who runs, and what is mapped where: the present state of a recording's processes, kept up to date
 * by its records, which have to come in the order of time. Nothing is kept of the past: a process
 * that has ended is forgotten, so memory depends on how many live at a time.
 *
 * A process that executes another program, and a pid that is given to another process, are new
 * processes here. One that was forked starts with its parent's mappings; they share them until one
 * of the two changes its own.
 */
#ifndef JD_TOOL_PROCESS_TABLE_H
#define JD_TOOL_PROCESS_TABLE_H

#include "jdtool/perf/perf_data.h"

/* What a recording may hold at a time; what is beyond is left out, and counted. */
#define PROCESSES_MAX (UINT32_C(1) << 20)
#define THREADS_MAX   (UINT32_C(1) << 22)
#define MAPPINGS_MAX  (UINT32_C(1) << 23) /* of all processes */
#define PROCESS_MAPPINGS_MAX                                                                       \
    (UINT32_C(1) << 16) /* executable ones of one process; HotSpot has hundreds */

/* A file, or memory without one, as mappings know it: one object for all mappings of the same, as
 * long as there is one. */
struct mapped_file {
    struct file_identity identity;
    uint32_t index;  /* small; another file has it when this one is gone */
    uint32_t number; /* no other file has it, had it or will have it */
    bool anonymous;
};

/* Part of an address space: [start, end) is the file's from file_offset on. */
struct mapped {
    uint64_t start;
    uint64_t end;
    uint64_t file_offset;
    struct mapped_file *file;
};

struct process {
    uint32_t pid;        /* as perf sees it, outside all namespaces */
    uint32_t index;      /* small; another process has it when this one is gone */
    uint32_t number;     /* no other process has it, had it or will have it */
    uint64_t from;       /* when it was forked, or began to run its program; 0: before */
    struct space *space; /* what is mapped */
    bool has_jvm;        /* a libjvm.so was mapped */
};

/*
 * Whoever keeps something of processes or files has an array of its own, by their `index`, and is
 * told when one is gone, while it still has that index. Nothing may be asked of the table then.
 */
struct process_listener {
    void (*process_gone)(void *context, const struct process *process);
    void (*file_gone)(void *context, const struct mapped_file *file);
    void *context;
};

struct process_table;

struct process_table *process_table_new(void);        /* NULL: no memory */
void process_table_free(struct process_table *table); /* nobody is told */

/* The listener, which lives as long as the table does or is replaced; NULL: none. */
void process_table_tell(struct process_table *table, const struct process_listener *listener);

/* What a record has changed. */
struct process_change {
    struct process *process;          /* NULL: nothing */
    const struct process *parent;     /* it is a fork of this one; NULL: not, or not known */
    const struct mapped_file *mapped; /* it has mapped this executable, or NULL */
    bool is_new;                      /* it was forked, or executed another program */
};

/*
 * Takes a record into account: MMAP, MMAP2, COMM, FORK, EXIT; others change nothing. 0 or -ENOMEM.
 * *change lives until the next call.
 */
int process_table_add(struct process_table *table, const struct perf_record *record,
                      struct process_change *change);

/* Who has this pid now; NULL: nobody known. Lives until the next call of process_table_add. */
struct process *process_table_at(const struct process_table *table, uint32_t pid);

/* The name of a thread now, "" when it is not known. Lives until the next record. */
const char *process_table_comm(const struct process_table *table, uint32_t tid);

/* Which of the threads that had this tid one after the other has it now; 0: none that is known. */
uint32_t process_table_thread_number(const struct process_table *table, uint32_t tid);

/* What covers an address; NULL: nothing. Lives as the process does. */
const struct mapped *process_mapped_at(const struct process *process, uint64_t address);

/* Changes whenever the process' mappings do; no two states of any processes have the same. */
uint64_t process_mappings_state(const struct process *process);

/* Processes, threads and mappings that were beyond the limits. */
uint64_t process_table_left_out(const struct process_table *table);

#endif
