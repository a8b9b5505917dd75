#include "jdtool/sampler/stack_ends.h"

#include "jdtool/base/array.h"
#include "jdtool/base/clock.h"
#include "jdtool/base/processes.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Reading the mappings of a JVM costs a tenth of a millisecond. */
#define READ_EVERY UINT64_C(1000000000)

/* A JVM has some thousands. */
#define MAPPINGS_READ_MAX (UINT32_C(1) << 16)

/* Of so many threads it is known when they began; then it is asked anew where their stacks end. */
#define THREADS_KNOWN_MAX (UINT32_C(1) << 13)

struct mapping_extent {
    uint64_t start, end;
};

struct stacks_process {
    uint64_t pid;                /* the first member */
    uint64_t read_at;            /* 0: not yet */
    struct mapping_extent *list; /* in the order of addresses */
    uint32_t count, room;
};

struct stacks_thread {
    uint64_t tid; /* the first member */
    uint64_t began;
};

void stack_ends_new(struct stack_ends *ends)
{
    ends->processes = NUMBERED(struct stacks_process);
    ends->threads = NUMBERED(struct stacks_thread);
    ends->forgot = 0;
}

static void clear(struct stacks_process *process)
{
    free(process->list);
    *process = (struct stacks_process){.pid = process->pid};
}

void stack_ends_free(struct stack_ends *ends)
{
    for (uint32_t i = 0; i < ends->processes.list.count; i++) {
        clear(chunks_at(&ends->processes.list, i));
    }
    numbered_free(&ends->processes);
    numbered_free(&ends->threads);
}

void stack_ends_thread(struct stack_ends *ends, uint32_t tid, uint64_t time)
{
    if (ends->threads.list.count >= THREADS_KNOWN_MAX) {
        numbered_free(&ends->threads);
        ends->forgot = time;
    }
    struct stacks_thread *thread = numbered_get(&ends->threads, tid, NULL);
    if (thread) {
        thread->began = time;
    }
}

void stack_ends_forget(struct stack_ends *ends, uint32_t pid)
{
    struct stacks_process *process = numbered_find(&ends->processes, pid);
    if (process) {
        clear(process);
    }
}

static bool add_mapping(void *context, struct process_mapping *mapping)
{
    struct stacks_process *process = context;
    if (process->count >= MAPPINGS_READ_MAX ||
        ARRAY_RESERVE(process->list, process->count, process->room)) {
        return false;
    }
    process->list[process->count++] = (struct mapping_extent){mapping->start, mapping->end};
    return true;
}

static void read_mappings(struct stacks_process *process)
{
    char path[32];
    snprintf(path, sizeof path, "/proc/%u/maps", (unsigned)process->pid);
    process->read_at =
        clock_ns(CLOCK_MONOTONIC); /* a thread that begins from here on may be missing */
    process->count = 0;
    process_mappings(open(path, O_RDONLY | O_CLOEXEC), add_mapping, process);
}

uint64_t stack_ends_of(struct stack_ends *ends, uint32_t pid, uint32_t tid, uint64_t sp,
                       uint64_t time)
{
    struct stacks_process *process = numbered_get(&ends->processes, pid, NULL);
    const struct stacks_thread *thread = numbered_find(&ends->threads, tid);
    if (!process) {
        return UINT64_MAX;
    }
    uint64_t began = thread ? thread->began : ends->forgot;
    bool is_known = process->read_at > began;
    if (!is_known && (!process->read_at || time > process->read_at + READ_EVERY)) {
        read_mappings(process);
        is_known = process->read_at > began;
    }
    uint32_t low; /* the first that ends behind it */
    ARRAY_FIRST(low, is_known ? process->count : 0, process->list[low].end <= sp);
    bool is_there = is_known && low < process->count && process->list[low].start <= sp;
    return is_there ? process->list[low].end : UINT64_MAX;
}
