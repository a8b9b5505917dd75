/*
 * A process lives as long as one of its threads does. Recordings tell of a thread by FORK, or, when
 * it was there before, by COMM alone ('perf record -p'); of a process by any of them or a mapping.
 *
 * Samples of a thread come also after its EXIT, while the kernel takes it apart, and when the
 * buffers of other processors are read later. So the last few threads and processes that have ended
 * are kept, processes for some seconds of the recording's time.
 */
#include "jdtool/perf/process_table.h"

#include "jdtool/base/chunks.h"
#include "jdtool/base/hash_map.h"
#include "jdtool/base/intern.h"
#include "jdtool/perf/address_space.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORK_EXEC                                                                                  \
    (1u << 13) /* PERF_RECORD_MISC_FORK_EXEC: made up by perf, maps are not cloned                 \
                */
#define ENDED_KEPT 256

/* Buffers are read some times a second, and samples come in the order of time: with a process goes
 * what others keep of it, which of a JVM is much. */
#define ENDED_KEPT_NS (UINT64_C(10) * 1000 * 1000 * 1000)

struct thread {
    uint32_t tid;
    uint32_t number;  /* no other thread has it, had it or will have it */
    uint32_t entry;   /* its process, */
    uint32_t process; /* if that entry still has this number */
    bool has_ended;   /* stands in `ended_threads`; nobody else's has it */
    const char *comm; /* held; NULL: not known */
};

/* Elements of `entries` that are free are linked by their pid, plus one. */
struct entry {
    struct process process; /* the first member; of a free one all but the pid is zero */
    uint32_t threads;       /* that are its and live */
    bool is_current;        /* is in by_pid */
    bool has_ended;         /* stands in `ended` */
};

struct process_table {
    struct chunks entries; /* of struct entry */
    uint32_t free_entry;   /* plus one; 0: none */
    struct hash_map by_pid;
    struct chunks threads; /* of struct thread */
    uint32_t free_thread;
    struct hash_map by_tid;
    struct spaces spaces;
    const struct process_listener *listener; /* NULL: nobody listens */
    struct intern comms;
    struct ended {
        uint32_t entry;
        uint64_t time;
    } ended[ENDED_KEPT];                /* a ring, */
    uint32_t ended_first, ended_next;   /* of which these count; they only grow */
    uint64_t time;                      /* of the latest record */
    uint32_t ended_threads[ENDED_KEPT]; /* the same */
    uint32_t ended_threads_next;
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
    uint32_t at;
    HASH_MAP_FIND(at, &table->by_pid, pid, entry_at(table, at)->process.pid == pid);
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
    assert(entry->process.space && entry->process.index == at);
    if (table->listener) {
        table->listener->process_gone(table->listener->context, &entry->process);
    }
    if (entry->is_current) {
        (void)hash_map_remove(&table->by_pid, entry->process.pid, at);
    }
    space_let_go(&table->spaces, entry->process.space);
    memset(entry, 0, sizeof *entry);
    entry->process.pid = table->free_entry;
    table->free_entry = at + 1;
    table->process_count--;
}

static void forget_oldest(struct process_table *table)
{
    uint32_t at = table->ended[table->ended_first++ % ENDED_KEPT].entry;
    if (entry_at(table, at)->threads) {
        entry_at(table, at)->has_ended = false;
    } else {
        forget(table, at);
    }
}

/* It has ended, or its pid is another one's: it is forgotten when enough others have followed, or
 * enough time. One that has got a thread again by then is not. */
static void end(struct process_table *table, uint32_t at)
{
    if (entry_at(table, at)->has_ended) {
        return;
    }
    if (table->ended_next - table->ended_first == ENDED_KEPT) {
        forget_oldest(table);
    }
    table->ended[table->ended_next++ % ENDED_KEPT] =
        (struct ended){.entry = at, .time = table->time};
    entry_at(table, at)->has_ended = true;
}

static void take_time(struct process_table *table, uint64_t time)
{
    if (time != UINT64_MAX && time > table->time) { /* else it is not recorded, or an older one's */
        table->time = time;
    }
    while (table->ended_first != table->ended_next &&
           table->ended[table->ended_first % ENDED_KEPT].time + ENDED_KEPT_NS < table->time) {
        forget_oldest(table);
    }
}

/* A process with this pid, with no threads and no mappings yet. Sets *made. 0; -ENOMEM; -ENOSPC: it
 * is beyond the limit, and counted as left out. */
static int new_process(struct process_table *table, uint32_t pid, uint64_t from, uint32_t *made)
{
    if (table->process_count >= PROCESSES_MAX) {
        table->left_out++;
        return -ENOSPC;
    }
    uint32_t before = find_pid(table, pid);
    struct space *space = space_new(&table->spaces);
    uint32_t at = table->free_entry;
    struct entry *entry = at ? entry_at(table, at - 1) : space ? chunks_add(&table->entries) : NULL;
    if (!space || !entry) {
        space_let_go(&table->spaces, space);
        return -ENOMEM;
    }
    if (at) {
        table->free_entry = entry->process.pid;
    } else {
        at = table->entries.count;
    }
    at--;
    if (before != HASH_MAP_NONE) {
        struct entry *old = entry_at(table, before);
        (void)hash_map_remove(&table->by_pid, pid, before);
        old->is_current = false;
        old->threads = 0;
        end(table, before);
    }
    *entry = (struct entry){
        .process =
            {.pid = pid, .index = at, .number = ++table->next_number, .from = from, .space = space},
        .is_current = true,
    };
    table->process_count++;
    if (hash_map_add(&table->by_pid, pid, at)) {
        entry->is_current = false;
        forget(table, at);
        return -ENOMEM;
    }
    *made = at;
    return 0;
}

/* ---- Threads ---- */

static struct thread *thread_at(const struct process_table *table, uint32_t number)
{
    return chunks_at(&table->threads, number);
}

static uint32_t find_tid(const struct process_table *table, uint32_t tid)
{
    uint32_t at;
    HASH_MAP_FIND(at, &table->by_tid, tid, thread_at(table, at)->tid == tid);
    return at;
}

const char *process_table_comm(const struct process_table *table, uint32_t tid)
{
    uint32_t at = find_tid(table, tid);
    const char *comm = at == HASH_MAP_NONE ? NULL : thread_at(table, at)->comm;
    return comm ? comm : "";
}

uint32_t process_table_thread_number(const struct process_table *table, uint32_t tid)
{
    uint32_t at = find_tid(table, tid);
    return at == HASH_MAP_NONE ? 0 : thread_at(table, at)->number;
}

/* The thread is no longer its process', which has ended with the last one. */
static void leave(struct process_table *table, const struct thread *thread)
{
    struct entry *entry = entry_at(table, thread->entry);
    if (entry->process.number == thread->process && entry->threads > 0 && --entry->threads == 0) {
        end(table, thread->entry);
    }
}

/* 0 or -ENOMEM. */
static int new_thread(struct process_table *table, uint32_t tid, uint32_t *at)
{
    *at = table->free_thread ? table->free_thread - 1 : table->threads.count;
    if ((!table->free_thread && !chunks_add(&table->threads)) ||
        hash_map_add(&table->by_tid, tid, *at)) {
        table->threads.count -= *at + 1 == table->threads.count && !table->free_thread;
        return -ENOMEM;
    }
    if (table->free_thread) {
        table->free_thread = thread_at(table, *at)->tid;
    }
    table->thread_count++;
    return 0;
}

/* Makes a thread one of the process', with that name; begins: whatever had its tid is another one.
 * 0 or -ENOMEM. */
static int join(struct process_table *table, uint32_t entry, uint32_t tid, const char *comm,
                bool begins)
{
    uint32_t process = entry_at(table, entry)->process.number;
    uint32_t at = find_tid(table, tid);
    bool is_new = at == HASH_MAP_NONE;
    if (is_new && table->thread_count >= THREADS_MAX) {
        table->left_out++;
        return 0;
    }
    const char *held = *comm ? intern_hold(&table->comms, comm) : NULL;
    int err = *comm && !held ? -ENOMEM : is_new ? new_thread(table, tid, &at) : 0;
    if (err) {
        intern_release(&table->comms, held);
        return err;
    }
    struct thread *thread = thread_at(table, at);
    intern_release(&table->comms, thread->comm); /* `comm` may be that one */
    bool is_there = !is_new && thread->entry == entry && thread->process == process;
    entry_at(table, entry)->threads += !is_there;
    if (!is_new && !is_there) {
        leave(table, thread);
    }
    *thread = (struct thread){
        .tid = tid,
        .number = is_new || begins || thread->has_ended ? ++table->thread_numbers : thread->number,
        .entry = entry,
        .process = process,
        .comm = held};
    return 0;
}

static void forget_thread(struct process_table *table, uint32_t at)
{
    struct thread *thread = thread_at(table, at);
    (void)hash_map_remove(&table->by_tid, thread->tid, at);
    intern_release(&table->comms, thread->comm);
    *thread = (struct thread){.tid = table->free_thread};
    table->free_thread = at + 1;
    table->thread_count--;
}

static void end_thread(struct process_table *table, uint32_t tid)
{
    uint32_t at = find_tid(table, tid);
    struct thread *thread = at == HASH_MAP_NONE ? NULL : thread_at(table, at);
    if (!thread || thread->has_ended) {
        return;
    }
    uint32_t *slot = &table->ended_threads[table->ended_threads_next++ % ENDED_KEPT];
    leave(table, thread);
    thread->process = 0;
    thread->has_ended = true;
    if (*slot && thread_at(table, *slot - 1)->has_ended) { /* else its tid was given again */
        forget_thread(table, *slot - 1);
    }
    *slot = at + 1;
}

/*
 * The process with this pid, whatever tells of it. One that nobody has told of before was there
 * already, with its first thread, of which the recording may be silent. Sets *at. 0; -ENOMEM;
 * -ENOSPC: as new_process.
 */
static int process_of(struct process_table *table, uint32_t pid, uint32_t *at)
{
    *at = find_pid(table, pid);
    if (*at != HASH_MAP_NONE) {
        return 0;
    }
    int err = new_process(table, pid, 0, at);
    return err ? err : join(table, *at, pid, process_table_comm(table, pid), false);
}

/* ---- Records ---- */

/* The kernel cuts names that are no path to 15 bytes (perf_event_mmap_event). The one of its own
 * that is longer: */
static const char *whole_name(const char *path)
{
    static const char trampoline[] = "[uprobes-trampoline]";
    return strlen(path) == 15 && strncmp(path, trampoline, 15) == 0 ? trampoline : path;
}

static int add_map(struct process_table *table, const struct mapping *mapping,
                   struct process_change *change)
{
    if (!mapping || mapping->kernel || !mapping->executable) {
        return 0;
    }
    uint32_t at;
    int err = process_of(table, mapping->pid, &at);
    if (err) {
        return err;
    }
    struct process *process = &entry_at(table, at)->process;
    struct mapped_file *file = NULL;
    err = space_unshare(&table->spaces, &process->space);
    struct mapping whole = *mapping;
    whole.file.path = whole_name(mapping->file.path);
    err = err ? err : space_map(&table->spaces, process->space, &whole, &file);
    if (!err && file) {
        const char *name = strrchr(file->identity.path, '/');
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
    const char *comm = process_table_comm(table, perf_record_u32(record, 20));
    uint32_t at;
    if (pid == parent_pid) { /* a thread */
        int err = process_of(table, pid, &at);
        return err ? err : join(table, at, tid, comm, true);
    }
    bool clones = !(record->misc & FORK_EXEC);
    const struct process *there = process_table_at(table, pid);
    if (there && !clones && there->from == time) {
        /* perf lists who is there already, in any order, all with time 0 */
        return join(table, find_pid(table, pid), tid, comm, true);
    }
    int err = new_process(table, pid, time, &at);
    err = err ? err : join(table, at, tid, comm, true);
    if (err) {
        return err;
    }
    struct process *process = &entry_at(table, at)->process;
    const struct process *parent = clones ? process_table_at(table, parent_pid) : NULL;
    if (parent) {
        space_let_go(&table->spaces, process->space);
        process->space = space_share(parent->space);
        process->has_jvm = parent->has_jvm;
    }
    *change = (struct process_change){.process = process, .parent = parent, .is_new = true};
    return 0;
}

/* pid, tid, name. */
static int add_comm(struct process_table *table, const struct perf_record *record,
                    struct process_change *change)
{
    uint32_t pid = perf_record_u32(record, 8);
    uint32_t tid = perf_record_u32(record, 12);
    const char *name = perf_record_string(record, 16);
    const char *comm = name ? name : "";
    uint32_t at;
    bool execs = record->misc & PERF_RECORD_MISC_COMM_EXEC;
    int err = execs ? new_process(table, pid, record->id.time, &at) : process_of(table, pid, &at);
    err = err ? err : join(table, at, tid, comm, false);
    if (!err && execs) {
        *change = (struct process_change){.process = &entry_at(table, at)->process, .is_new = true};
    }
    return err;
}

static int take(struct process_table *table, const struct perf_record *record,
                struct process_change *change)
{
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        return add_map(table, record->mapping, change);
    case PERF_RECORD_FORK:
        return add_fork(table, record, change);
    case PERF_RECORD_COMM:
        return add_comm(table, record, change);
    case PERF_RECORD_EXIT: /* as FORK: of a thread */
        end_thread(table, perf_record_u32(record, 16));
        return 0;
    default:
        return 0;
    }
}

int process_table_add(struct process_table *table, const struct perf_record *record,
                      struct process_change *change)
{
    *change = (struct process_change){0};
    take_time(table, record->id.has_time ? record->id.time : 0);
    int err = take(table, record, change);
    return err == -ENOSPC ? 0 : err;
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
        table->spaces = SPACES_EMPTY;
    }
    return table;
}

void process_table_tell(struct process_table *table, const struct process_listener *listener)
{
    table->listener = listener;
    table->spaces.listener = listener;
}

void process_table_free(struct process_table *table)
{
    if (!table) {
        return;
    }
    process_table_tell(table, NULL);
    for (uint32_t i = 0; i < table->entries.count; i++) {
        space_let_go(&table->spaces, entry_at(table, i)->process.space);
    }
    chunks_free(&table->entries);
    chunks_free(&table->threads);
    spaces_free(&table->spaces);
    hash_map_free(&table->by_pid);
    hash_map_free(&table->by_tid);
    intern_free(&table->comms);
    free(table);
}
