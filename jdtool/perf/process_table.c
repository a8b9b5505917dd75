/*
 * Samples of a process may still come when its last thread has ended (the kernel's buffers of other
 * processors are read later), so the last few that have ended are kept.
 */
#include "jdtool/perf/process_table.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/perf/address_space.h"
#include "jdtool/perf/mapped_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORK_EXEC                                                                                  \
    (1u << 13) /* PERF_RECORD_MISC_FORK_EXEC: made up by perf, maps are not cloned                 \
                */
#define ENDED_KEPT 256

struct thread {
    uint32_t tid;
    uint32_t pid;
    uint32_t number; /* no other thread has it, had it or will have it */
    const char *comm;
};

/* Elements of `entries` that are free are linked by their pid, plus one. */
struct entry {
    struct process process; /* the first member */
    uint32_t threads;       /* known and alive */
    bool is_current;        /* is in by_pid */
};

struct process_table {
    struct chunks entries; /* of struct entry */
    uint32_t free_entry;   /* plus one; 0: none */
    struct hash_map by_pid;
    struct chunks threads; /* of struct thread */
    uint32_t free_thread;
    struct hash_map by_tid;
    struct mapped_files files;
    struct spaces spaces;
    struct intern comms;
    uint32_t ended[ENDED_KEPT]; /* entries plus one, a ring */
    uint32_t ended_next;
    uint32_t next_number;
    uint32_t process_count;
    uint32_t thread_count;
    uint32_t thread_numbers; /* that were given */
    uint64_t left_out;       /* processes and threads */
};

/* ---- Processes ---- */

static struct entry *entry_at(const struct process_table *table, uint32_t number)
{
    return chunks_at(&table->entries, number);
}

/* The place of the process that has the pid; HASH_MAP_NONE: none. */
static uint32_t find_pid(const struct process_table *table, uint32_t pid)
{
    struct hash_map_cursor cursor = hash_map_start(&table->by_pid, pid);
    uint32_t at;
    do {
        at = hash_map_next(&table->by_pid, &cursor);
    } while (at != HASH_MAP_NONE && entry_at(table, at)->process.pid != pid);
    return at;
}

struct process *process_table_at(const struct process_table *table, uint32_t pid)
{
    uint32_t at = find_pid(table, pid);
    return at == HASH_MAP_NONE ? NULL : &entry_at(table, at)->process;
}

static void forget(struct process_table *table, uint32_t at)
{
    struct entry *entry = entry_at(table, at);
    if (entry->is_current) {
        (void)hash_map_remove(&table->by_pid, entry->process.pid, at);
    }
    space_let_go(&table->spaces, entry->process.space);
    memset(entry, 0, sizeof *entry);
    entry->process.pid = table->free_entry;
    table->free_entry = at + 1;
    table->process_count--;
}

/* It has ended, or its pid is another one's: it is forgotten when enough others have followed. */
static void end(struct process_table *table, uint32_t at)
{
    uint32_t *slot = &table->ended[table->ended_next++ % ENDED_KEPT];
    if (*slot) {
        forget(table, *slot - 1);
    }
    *slot = at + 1;
}

/* A process with this pid, with no mappings yet. NULL: no memory, or, with left_out counted, beyond
 * the limit. */
static struct entry *new_process(struct process_table *table, uint32_t pid, uint64_t from)
{
    if (table->process_count >= PROCESSES_MAX) {
        table->left_out++;
        return NULL;
    }
    uint32_t before = find_pid(table, pid);
    struct space *space = space_new(&table->spaces);
    uint32_t at = table->free_entry;
    struct entry *entry = at ? entry_at(table, at - 1) : space ? chunks_add(&table->entries) : NULL;
    if (!space || !entry) {
        space_let_go(&table->spaces, space);
        return NULL;
    }
    if (at) {
        table->free_entry = entry->process.pid;
    } else {
        at = table->entries.count;
    }
    at--;
    uint32_t threads = 0;
    if (before != HASH_MAP_NONE) {
        struct entry *old = entry_at(table, before);
        threads = old->threads;
        (void)hash_map_remove(&table->by_pid, pid, before);
        bool has_ended = !old->threads;
        old->is_current = false;
        if (!has_ended) { /* else it stands among these already */
            end(table, before);
        }
    }
    *entry = (struct entry){
        .process = {.pid = pid,
                    .number = ++table->next_number,
                    .from = from,
                    .space = space,
                    .code_until = UINT64_MAX},
        .threads = threads ? threads : 1,
        .is_current = true,
    };
    table->process_count++;
    if (hash_map_add(&table->by_pid, pid, at)) {
        entry->is_current = false;
        forget(table, at);
        return NULL;
    }
    return entry;
}

/* ---- Threads ---- */

static struct thread *thread_at(const struct process_table *table, uint32_t number)
{
    return chunks_at(&table->threads, number);
}

static uint32_t find_tid(const struct process_table *table, uint32_t tid)
{
    struct hash_map_cursor cursor = hash_map_start(&table->by_tid, tid);
    uint32_t at;
    do {
        at = hash_map_next(&table->by_tid, &cursor);
    } while (at != HASH_MAP_NONE && thread_at(table, at)->tid != tid);
    return at;
}

const char *process_table_comm(const struct process_table *table, uint32_t tid)
{
    uint32_t at = find_tid(table, tid);
    return at == HASH_MAP_NONE ? "" : thread_at(table, at)->comm;
}

uint32_t process_table_thread_number(const struct process_table *table, uint32_t tid)
{
    uint32_t at = find_tid(table, tid);
    return at == HASH_MAP_NONE ? 0 : thread_at(table, at)->number;
}

/* Gives a thread its name; begins: whatever had its tid is another one; *is_new: nobody known had.
 * 0 or -ENOMEM. */
static int name_thread(struct process_table *table, uint32_t pid, uint32_t tid, const char *comm,
                       bool begins, bool *is_new)
{
    uint32_t at = find_tid(table, tid);
    *is_new = at == HASH_MAP_NONE;
    if (at == HASH_MAP_NONE) {
        if (table->thread_count >= THREADS_MAX) {
            table->left_out++;
            return 0;
        }
        if (table->free_thread) {
            at = table->free_thread - 1;
            table->free_thread = thread_at(table, at)->tid;
        } else if (chunks_add(&table->threads)) {
            at = table->threads.count - 1;
        } else {
            return -ENOMEM;
        }
        if (hash_map_add(&table->by_tid, tid, at)) {
            return -ENOMEM;
        }
        table->thread_count++;
    }
    struct thread *thread = thread_at(table, at);
    uint32_t number = *is_new || begins ? ++table->thread_numbers : thread->number;
    *thread = (struct thread){.tid = tid, .pid = pid, .number = number, .comm = comm};
    return 0;
}

/* False: it was not known. */
static bool end_thread(struct process_table *table, uint32_t tid)
{
    uint32_t at = find_tid(table, tid);
    if (at == HASH_MAP_NONE) {
        return false;
    }
    (void)hash_map_remove(&table->by_tid, tid, at);
    struct thread *thread = thread_at(table, at);
    thread->tid = table->free_thread;
    table->free_thread = at + 1;
    table->thread_count--;
    return true;
}

/* ---- Records ---- */

static int add_map(struct process_table *table, const struct perf_data *data,
                   const struct perf_record *record, struct process_change *change)
{
    struct mapping mapping;
    uint32_t pid;
    if (!mapping_decode(data, record, &mapping, &pid) || !mapping.executable) {
        return 0;
    }
    struct process *process = process_table_at(table, pid);
    if (!process) {
        uint64_t left_out = table->left_out;
        struct entry *entry = new_process(table, pid, 0);
        if (!entry) {
            return table->left_out > left_out ? 0 : -ENOMEM;
        }
        process = &entry->process;
    }
    struct mapped_file *file = mapped_files_of(&table->files, &mapping);
    struct mapped added = {mapping.start, mapping.end, mapping.file_offset, file};
    int err = file ? space_unshare(&table->spaces, &process->space) : -ENOMEM;
    if (!err) {
        err = space_map(&table->spaces, process->space, &added);
    }
    if (!err) {
        const char *name = strrchr(file->path, '/');
        process->has_jvm |= name && strcmp(name, "/libjvm.so") == 0;
        *change = (struct process_change){.process = process, .mapped = file};
    }
    return err;
}

/* pid, ppid, tid, ptid, time. */
static int add_fork(struct process_table *table, const struct perf_record *record,
                    struct process_change *change)
{
    uint32_t pid = perf_record_u32(record, 8);
    uint32_t parent_pid = perf_record_u32(record, 12);
    uint32_t tid = perf_record_u32(record, 16);
    uint64_t time = perf_record_u64(record, 24);
    bool is_new;
    const char *comm = process_table_comm(table, perf_record_u32(record, 20));
    int err = name_thread(table, pid, tid, comm, true, &is_new);
    if (err) {
        return err;
    }
    if (pid == parent_pid) { /* a thread */
        uint32_t at = find_pid(table, pid);
        if (at != HASH_MAP_NONE) {
            entry_at(table, at)->threads += is_new;
        }
        return 0;
    }
    bool clones = !(record->misc & FORK_EXEC);
    const struct process *there = process_table_at(table, pid);
    if (there && !clones && there->from == time) {
        return 0; /* perf lists who is there already, in any order, all with time 0 */
    }
    uint64_t left_out = table->left_out;
    struct entry *entry = new_process(table, pid, time);
    if (!entry) {
        return table->left_out > left_out ? 0 : -ENOMEM;
    }
    entry->threads = 1;
    struct process *process = &entry->process;
    const struct process *parent = clones ? process_table_at(table, parent_pid) : NULL;
    if (parent) {
        space_let_go(&table->spaces, process->space);
        process->space = space_share(parent->space);
        process->has_jvm = parent->has_jvm;
        process->code = parent->code;
        if (parent->code) {
            process->code_until = time < parent->code_until ? time : parent->code_until;
        }
    }
    *change = (struct process_change){.process = process, .is_new = true};
    return 0;
}

/* pid, tid, name. */
static int add_comm(struct process_table *table, const struct perf_data *data,
                    const struct perf_record *record, struct process_change *change)
{
    uint32_t pid = perf_record_u32(record, 8);
    uint32_t tid = perf_record_u32(record, 12);
    const char *name = perf_record_string(record, 16);
    const char *comm = name ? intern(&table->comms, name) : "";
    bool is_new;
    int err = comm ? name_thread(table, pid, tid, comm, false, &is_new) : -ENOMEM;
    if (err || !(record->misc & PERF_RECORD_MISC_COMM_EXEC)) {
        return err;
    }
    uint64_t left_out = table->left_out;
    struct entry *entry = new_process(table, pid, perf_record_id(data, record).time);
    if (!entry) {
        return table->left_out > left_out ? 0 : -ENOMEM;
    }
    entry->threads = 1; /* the others are gone */
    *change = (struct process_change){.process = &entry->process, .is_new = true};
    return 0;
}

/* As FORK: of a thread; the process has ended with the last of them. */
static void add_exit(struct process_table *table, const struct perf_record *record)
{
    uint32_t at = find_pid(table, perf_record_u32(record, 8));
    (void)end_thread(table, perf_record_u32(record, 16));
    if (at != HASH_MAP_NONE) {
        struct entry *entry = entry_at(table, at);
        if (entry->threads > 0 && --entry->threads == 0) {
            end(table, at);
        }
    }
}

int process_table_add(struct process_table *table, const struct perf_data *data,
                      const struct perf_record *record, struct process_change *change)
{
    *change = (struct process_change){0};
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return add_map(table, data, record, change);
    case PERF_RECORD_FORK:
        return add_fork(table, record, change);
    case PERF_RECORD_COMM:
        return add_comm(table, data, record, change);
    case PERF_RECORD_EXIT:
        add_exit(table, record);
        return 0;
    default:
        return 0;
    }
}

uint64_t process_table_left_out(const struct process_table *table)
{
    return table->left_out + table->spaces.left_out;
}

/* ---- Life ---- */

struct process_table *process_table_new(void)
{
    struct process_table *table = calloc(1, sizeof *table);
    if (table) {
        table->entries.element = sizeof(struct entry);
        table->threads.element = sizeof(struct thread);
        table->files.list.element = sizeof(struct mapped_file);
    }
    return table;
}

void process_table_free(struct process_table *table)
{
    if (!table) {
        return;
    }
    for (uint32_t i = 0; i < table->entries.count; i++) {
        space_let_go(&table->spaces, entry_at(table, i)->process.space);
    }
    chunks_free(&table->entries);
    chunks_free(&table->threads);
    mapped_files_free(&table->files);
    hash_map_free(&table->by_pid);
    hash_map_free(&table->by_tid);
    intern_free(&table->comms);
    free(table);
}
