#include "jdtool/perf/processes.h"

#include "jdtool/base/array.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define FORK_EXEC                                                                                  \
    (1u << 13) /* PERF_RECORD_MISC_FORK_EXEC: made up by perf, maps are not cloned                 \
                */

enum event_kind { EVENT_FORK, EVENT_EXEC, EVENT_MAP };

/* What changes a process, kept until all are there and can be put in order. */
struct event {
    uint64_t time;
    uint32_t order; /* in the file */
    enum event_kind kind;
    uint32_t pid;
    uint32_t parent; /* EVENT_FORK; UINT32_MAX: do not take over its mappings */
    struct mapping mapping;
};

struct processes {
    struct process **list; /* by pid, then by time, once sorted */
    uint32_t count;
    uint32_t room;
    struct process **slots; /* pid -> the latest process, while events are replayed */
    uint32_t slot_count;

    struct event *events;
    uint32_t event_count;
    uint32_t event_room;

    struct intern paths; /* many processes map the same files */
    struct losses losses;
    struct time_conversion conversion;
};

/*
 * The same few pages are asked for again and again. An answer holds for the whole page, and for the
 * time from the mapping's beginning to the next one's over that page.
 */
#define ANSWERS     1024
#define PAGE_SHIFT  12
#define ANSWERS_PAY 8 /* with fewer mappings looking is as fast */

struct mapping_answer {
    uint64_t page; /* plus one; 0: empty */
    uint64_t from;
    uint64_t until;
    const struct mapping *mapping;
};

/* ---- Records ---- */

static int add_event(struct processes *processes, struct event event)
{
    int err = array_reserve(&processes->events, processes->event_count, &processes->event_room,
                            sizeof *processes->events) < 0
                  ? -ENOMEM
                  : 0;
    if (!err) {
        event.order = processes->event_count;
        processes->events[processes->event_count++] = event;
    }
    return err;
}

static int add_record(struct processes *processes, const struct perf_data *data,
                      const struct perf_record *record)
{
    struct event event = {0};
    switch (record->type) {
    case PERF_RECORD_MMAP:
    case PERF_RECORD_MMAP2:
        if (!mapping_decode(data, record, &event.mapping, &event.pid) ||
            !event.mapping.executable) {
            return 0;
        }
        event.kind = EVENT_MAP;
        event.time = event.mapping.from;
        event.mapping.path = intern(&processes->paths, event.mapping.path);
        return event.mapping.path ? add_event(processes, event) : -ENOMEM;
    case PERF_RECORD_FORK:
        event.kind = EVENT_FORK;
        event.time = perf_record_u64(record, 24);
        event.pid = perf_record_u32(record, 8);
        event.parent = record->misc & FORK_EXEC ? UINT32_MAX : perf_record_u32(record, 12);
        return event.pid == perf_record_u32(record, 12)
                   ? 0
                   : add_event(processes, event); /* a thread */
    case PERF_RECORD_COMM:
        event.kind = EVENT_EXEC;
        event.time = perf_record_id(data, record).time;
        event.pid = perf_record_u32(record, 8);
        return record->misc & PERF_RECORD_MISC_COMM_EXEC ? add_event(processes, event) : 0;
    case PERF_RECORD_LOST:
        processes->losses.records += perf_record_u64(record, 16);
        return 0;
    case PERF_RECORD_LOST_SAMPLES:
        processes->losses.samples += perf_record_u64(record, 8);
        return 0;
    case PERF_USER_TIME_CONV:
        processes->conversion = (struct time_conversion){
            .known = perf_record_u64(record, 16) > 0 && perf_record_u64(record, 8) < 64,
            .shift = perf_record_u64(record, 8),
            .mult = perf_record_u64(record, 16),
            .zero = perf_record_u64(record, 24),
        };
        return 0;
    default:
        return 0;
    }
}

/* ---- Replaying the events ---- */

static struct process **slot_of(const struct processes *processes, uint32_t pid)
{
    uint32_t mask = processes->slot_count - 1;
    uint32_t slot = (pid * 2654435769u) & mask;
    while (processes->slots[slot] && processes->slots[slot]->pid != pid) {
        slot = (slot + 1) & mask;
    }
    return &processes->slots[slot];
}

static struct process *new_process(struct processes *processes, uint32_t pid, uint64_t from,
                                   const struct process *parent)
{
    if (array_reserve(&processes->list, processes->count, &processes->room,
                      sizeof(struct process *))) {
        return NULL;
    }
    struct process *process = calloc(1, sizeof *process);
    if (process) {
        *process = (struct process){.pid = pid, .from = from, .parent = parent};
        if (parent) {
            process->has_jvm = parent->has_jvm;
        }
        processes->list[processes->count++] = process;
        *slot_of(processes, pid) = process;
    }
    return process;
}

static int add_mapping(struct process *process, const struct mapping *mapping)
{
    int err = array_reserve(&process->mappings, process->mapping_count, &process->mapping_room,
                            sizeof *process->mappings) < 0
                  ? -ENOMEM
                  : 0;
    if (!err) {
        process->mappings[process->mapping_count++] = *mapping;
        const char *name = strrchr(mapping->path, '/');
        process->has_jvm |= name && strcmp(name, "/libjvm.so") == 0;
    }
    return err;
}

static int replay(struct processes *processes, const struct event *event)
{
    struct process *process = *slot_of(processes, event->pid);
    switch (event->kind) {
    case EVENT_FORK: {
        struct process *parent =
            event->parent == UINT32_MAX ? NULL : *slot_of(processes, event->parent);
        if (process && !parent && event->time == process->from) {
            return 0; /* perf lists who is there already, in any order, all with time 0 */
        }
        return new_process(processes, event->pid, event->time, parent) ? 0 : -ENOMEM;
    }
    case EVENT_EXEC:
        return new_process(processes, event->pid, event->time, NULL) ? 0 : -ENOMEM;
    case EVENT_MAP:
        if (!process) {
            process = new_process(processes, event->pid, 0, NULL);
        }
        return process ? add_mapping(process, &event->mapping) : -ENOMEM;
    }
    return 0;
}

static int by_time(const void *left, const void *right)
{
    const struct event *a = left;
    const struct event *b = right;
    if (a->time != b->time) {
        return a->time < b->time ? -1 : 1;
    }
    return a->order < b->order ? -1 : 1;
}

static int by_pid(const void *left, const void *right)
{
    const struct process *a = *(struct process *const *)left;
    const struct process *b = *(struct process *const *)right;
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    return (a->from > b->from) - (a->from < b->from);
}

static int replay_all(struct processes *processes)
{
    processes->slot_count = 64;
    while (processes->slot_count < processes->event_count * UINT64_C(2)) {
        processes->slot_count *= 2;
    }
    processes->slots = calloc(processes->slot_count, sizeof(struct process *));
    if (!processes->slots) {
        return -ENOMEM;
    }
    if (processes->event_count) {
        qsort(processes->events, processes->event_count, sizeof *processes->events, by_time);
    }
    int err = 0;
    for (uint32_t i = 0; i < processes->event_count && !err; i++) {
        err = replay(processes, &processes->events[i]);
    }
    if (processes->count) {
        qsort(processes->list, processes->count, sizeof(struct process *), by_pid);
    }
    for (uint32_t i = 0; i < processes->count; i++) {
        struct process *process = processes->list[i];
        if (process->mapping_count > ANSWERS_PAY) {
            process->answers = calloc(ANSWERS, sizeof *process->answers); /* NULL: slower */
        }
    }
    free(processes->events);
    free(processes->slots);
    processes->events = NULL;
    processes->slots = NULL;
    return err;
}

int processes_read(struct perf_data *data, struct processes **out)
{
    struct processes *processes = calloc(1, sizeof *processes);
    struct perf_record record;
    int err = processes ? 0 : -ENOMEM;
    *out = NULL;
    perf_data_rewind(data);
    while (!err) {
        int more = perf_data_next(data, false, &record);
        if (more < 0) {
            processes_free(processes);
            return more;
        }
        if (more == 0) {
            err = replay_all(processes);
            break;
        }
        err = add_record(processes, data, &record);
    }
    if (err) {
        error_message("failed to read %s: %s", perf_data_path(data), strerror(-err));
        processes_free(processes);
        return err;
    }
    *out = processes;
    return 0;
}

void processes_free(struct processes *processes)
{
    if (!processes) {
        return;
    }
    for (uint32_t i = 0; i < processes->count; i++) {
        free(processes->list[i]->mappings);
        free(processes->list[i]->answers);
        free(processes->list[i]);
    }
    intern_free(&processes->paths);
    free(processes->list);
    free(processes->slots);
    free(processes->events);
    free(processes);
}

/* ---- Looking up ---- */

uint32_t processes_count(const struct processes *processes)
{
    return processes->count;
}

struct process *processes_get(const struct processes *processes, uint32_t index)
{
    return processes->list[index];
}

struct process *processes_at(const struct processes *processes, uint32_t pid, uint64_t time)
{
    uint32_t low = 0;
    uint32_t high = processes->count;
    while (low < high) { /* the first that is behind (pid, time) */
        uint32_t middle = low + (high - low) / 2;
        const struct process *process = processes->list[middle];
        if (process->pid < pid || (process->pid == pid && process->from <= time)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low > 0 && processes->list[low - 1]->pid == pid) {
        return processes->list[low - 1];
    }
    if (low < processes->count && processes->list[low]->pid == pid) {
        return processes->list[low];
    }
    return NULL;
}

/* The process' own mapping; *answer gets what else is known of it. */
static const struct mapping *own_mapping(const struct process *process, uint64_t address,
                                         uint64_t time, struct mapping_answer *answer)
{
    const uint64_t page_size = UINT64_C(1) << PAGE_SHIFT;
    bool whole_pages = true;
    *answer = (struct mapping_answer){.page = (address >> PAGE_SHIFT) + 1, .until = UINT64_MAX};
    for (uint32_t i = process->mapping_count; i-- > 0;) {
        const struct mapping *mapping = &process->mappings[i];
        if (address < mapping->start || address >= mapping->end) {
            /* Not of this kernel's making: the page's other bytes would have another answer. */
            whole_pages &= mapping->start % page_size == 0 && mapping->end % page_size == 0;
            continue;
        }
        if (mapping->from > time) {
            answer->until = mapping->from;
            continue;
        }
        answer->from = mapping->from;
        answer->mapping = mapping;
        whole_pages &= mapping->start % page_size == 0 && mapping->end % page_size == 0;
        break;
    }
    if (!whole_pages) {
        answer->page = 0;
    }
    return answer->mapping;
}

static const struct mapping *cached_mapping(const struct process *process, uint64_t address,
                                            uint64_t time)
{
    uint64_t page = address >> PAGE_SHIFT;
    struct mapping_answer fresh;
    if (!process->answers) {
        return own_mapping(process, address, time, &fresh);
    }
    struct mapping_answer *answer = &process->answers[(page ^ page >> 10) % ANSWERS];
    if (answer->page == page + 1 && answer->from <= time && time < answer->until) {
        return answer->mapping;
    }
    const struct mapping *mapping = own_mapping(process, address, time, &fresh);
    *answer = fresh;
    return mapping;
}

const struct mapping *process_mapping_at(const struct process *process, uint64_t address,
                                         uint64_t time)
{
    while (process) {
        const struct mapping *mapping = cached_mapping(process, address, time);
        if (mapping) {
            return mapping;
        }
        if (process->from < time) {
            time = process->from;
        }
        process = process->parent;
    }
    return NULL;
}

struct losses processes_losses(const struct processes *processes)
{
    return processes->losses;
}

struct time_conversion processes_time_conversion(const struct processes *processes)
{
    return processes->conversion;
}
