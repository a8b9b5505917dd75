/*
 * Mappings of a process stand in a sorted array without overlaps: a new one cuts what it covers.
 * The array belongs to a struct space, which a fork shares with its parent until one of them maps
 * something.
 *
 * Samples of a process may still come when its last thread has ended (the kernel's buffers of other
 * processors are read later), so the last few that have ended are kept.
 */
#include "jdtool/perf/process_table.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORK_EXEC                                                                                  \
    (1u << 13) /* PERF_RECORD_MISC_FORK_EXEC: made up by perf, maps are not cloned                 \
                */
#define ENDED_KEPT 256

struct space {
    uint32_t references;
    uint32_t count;
    uint32_t room;
    uint64_t state;
    struct mapped *mappings;
};

struct thread {
    uint32_t tid;
    uint32_t pid;
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
    struct chunks files; /* of struct mapped_file */
    struct hash_map by_file;
    struct intern strings;
    uint32_t ended[ENDED_KEPT]; /* entries plus one, a ring */
    uint32_t ended_next;
    uint32_t next_number;
    uint64_t next_state;
    uint32_t process_count;
    uint32_t thread_count;
    uint32_t mapping_count;
    uint64_t left_out;
};

/* ---- Address spaces ---- */

static struct space *new_space(struct process_table *table)
{
    struct space *space = calloc(1, sizeof *space);
    if (space) {
        space->references = 1;
        space->state = ++table->next_state;
    }
    return space;
}

static void let_go(struct process_table *table, struct space *space)
{
    if (space && --space->references == 0) {
        table->mapping_count -= space->count;
        free(space->mappings);
        free(space);
    }
}

/* Makes the process' space its own. 0 or -ENOMEM. */
static int unshare(struct process_table *table, struct process *process)
{
    struct space *shared = process->space;
    if (shared->references == 1) {
        return 0;
    }
    struct space *own = new_space(table);
    if (!own) {
        return -ENOMEM;
    }
    if (shared->count) {
        if (shared->count > MAPPINGS_MAX - table->mapping_count) {
            table->left_out += shared->count;
        } else {
            own->mappings = malloc(shared->count * sizeof *own->mappings);
            if (!own->mappings) {
                let_go(table, own);
                return -ENOMEM;
            }
            memcpy(own->mappings, shared->mappings, shared->count * sizeof *own->mappings);
            own->count = shared->count;
            own->room = shared->count;
            table->mapping_count += own->count;
        }
    }
    process->space = own;
    let_go(table, shared);
    return 0;
}

/* The place of the first mapping that ends behind the address. */
static uint32_t first_behind(const struct space *space, uint64_t address)
{
    uint32_t low = 0;
    uint32_t high = space->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (space->mappings[middle].end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Two more than there are: the new mapping, and the rest of one that it cuts in two. */
static int reserve(struct space *space)
{
    if (space->count + 2 > space->room) {
        uint32_t room = space->room < 14 ? 16 : space->room + space->room / 2;
        struct mapped *grown = realloc(space->mappings, room * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        space->mappings = grown;
        space->room = room;
    }
    return 0;
}

static void move(struct space *space, uint32_t from, uint32_t to)
{
    memmove(space->mappings + to, space->mappings + from,
            (space->count - from) * sizeof *space->mappings);
    space->count = space->count - from + to;
}

static int add_mapping(struct process_table *table, struct space *space,
                       const struct mapped *mapping)
{
    if (space->count >= PROCESS_MAPPINGS_MAX || table->mapping_count >= MAPPINGS_MAX) {
        table->left_out++;
        return 0;
    }
    if (reserve(space)) {
        return -ENOMEM;
    }
    uint32_t before = space->count;
    uint32_t at = first_behind(space, mapping->start);
    struct mapped *first = &space->mappings[at];
    if (at < space->count && first->start < mapping->start) {
        if (first->end > mapping->end) { /* it goes on behind */
            move(space, at, at + 1);
            first->end = mapping->start;
            first++;
            first->file_offset += mapping->end - first->start;
            first->start = mapping->end;
            at++;
        } else {
            first->end = mapping->start;
            at++;
        }
    }
    uint32_t end = at;
    while (end < space->count && space->mappings[end].end <= mapping->end) {
        end++;
    }
    if (end < space->count && space->mappings[end].start < mapping->end) {
        struct mapped *last = &space->mappings[end];
        last->file_offset += mapping->end - last->start;
        last->start = mapping->end;
    }
    move(space, end, at + 1);
    space->mappings[at] = *mapping;
    space->state = ++table->next_state;
    table->mapping_count += space->count - before;
    return 0;
}

const struct mapped *process_mapped_at(const struct process *process, uint64_t address)
{
    const struct space *space = process->space;
    uint32_t at = first_behind(space, address);
    return at < space->count && space->mappings[at].start <= address ? &space->mappings[at] : NULL;
}

uint64_t process_mappings_state(const struct process *process)
{
    return process->space->state;
}

/* ---- Files ---- */

static uint64_t hash_file(const char *path, const struct mapping *mapping)
{
    uint64_t id = 0;
    memcpy(&id, mapping->build_id, sizeof id);
    return hash_pair(hash_pair((uintptr_t)path, mapping->inode),
                     id ^ ((uint64_t)mapping->major << 32 | mapping->minor));
}

static bool is_file(const struct mapped_file *file, const char *path, const struct mapping *mapping)
{
    return file->path == path && file->inode == mapping->inode && file->major == mapping->major &&
           file->minor == mapping->minor && file->build_id_size == mapping->build_id_size &&
           memcmp(file->build_id, mapping->build_id, sizeof file->build_id) == 0;
}

static struct mapped_file *find_file(struct process_table *table, const struct mapping *mapping)
{
    const char *path = intern(&table->strings, mapping->path);
    if (!path) {
        return NULL;
    }
    uint64_t hash = hash_file(path, mapping);
    struct hash_map_cursor cursor = hash_map_start(&table->by_file, hash);
    uint32_t at;
    while ((at = hash_map_next(&table->by_file, &cursor)) != HASH_MAP_NONE) {
        struct mapped_file *file = chunks_at(&table->files, at);
        if (is_file(file, path, mapping)) {
            return file;
        }
    }
    struct mapped_file *file = chunks_add(&table->files);
    if (!file || hash_map_add(&table->by_file, hash, table->files.count - 1)) {
        return NULL;
    }
    *file = (struct mapped_file){.path = path,
                                 .inode = mapping->inode,
                                 .major = mapping->major,
                                 .minor = mapping->minor,
                                 .build_id_size = mapping->build_id_size,
                                 .anonymous = mapping->anonymous};
    memcpy(file->build_id, mapping->build_id, sizeof file->build_id);
    return file;
}

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
    let_go(table, entry->process.space);
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
    struct space *space = new_space(table);
    uint32_t at = table->free_entry;
    struct entry *entry = at ? entry_at(table, at - 1) : space ? chunks_add(&table->entries) : NULL;
    if (!space || !entry) {
        let_go(table, space);
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

/* Gives a thread its name; *is_new: it was not known. 0 or -ENOMEM. */
static int name_thread(struct process_table *table, uint32_t pid, uint32_t tid, const char *comm,
                       bool *is_new)
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
    *thread = (struct thread){.tid = tid, .pid = pid, .comm = comm};
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
    struct mapped_file *file = find_file(table, &mapping);
    struct mapped added = {mapping.start, mapping.end, mapping.file_offset, file};
    int err = file ? unshare(table, process) : -ENOMEM;
    if (!err) {
        err = add_mapping(table, process->space, &added);
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
    int err = name_thread(table, pid, tid, comm, &is_new);
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
        let_go(table, process->space);
        process->space = parent->space;
        process->space->references++;
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
    const char *comm = name ? intern(&table->strings, name) : "";
    bool is_new;
    int err = comm ? name_thread(table, pid, tid, comm, &is_new) : -ENOMEM;
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
    return table->left_out;
}

/* ---- Life ---- */

struct process_table *process_table_new(void)
{
    struct process_table *table = calloc(1, sizeof *table);
    if (table) {
        table->entries.element = sizeof(struct entry);
        table->threads.element = sizeof(struct thread);
        table->files.element = sizeof(struct mapped_file);
    }
    return table;
}

void process_table_free(struct process_table *table)
{
    if (!table) {
        return;
    }
    for (uint32_t i = 0; i < table->entries.count; i++) {
        let_go(table, entry_at(table, i)->process.space);
    }
    chunks_free(&table->entries);
    chunks_free(&table->threads);
    chunks_free(&table->files);
    hash_map_free(&table->by_pid);
    hash_map_free(&table->by_tid);
    hash_map_free(&table->by_file);
    intern_free(&table->strings);
    free(table);
}
