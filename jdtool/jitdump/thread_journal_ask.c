#include "jdtool/jitdump/thread_journal_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Lists by time ---- */

uint32_t times_until(const void *list, uint32_t count, size_t element, uint64_t time)
{
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        uint64_t at;
        memcpy(&at, (const char *)list + middle * element, sizeof at);
        if (at <= time) {
            low = middle + 1;
        } else {
            count = middle;
        }
    }
    return low;
}

static int by_time(const void *a, const void *b)
{
    uint64_t first;
    uint64_t second;
    memcpy(&first, a, sizeof first);
    memcpy(&second, b, sizeof second);
    return first < second ? -1 : first > second;
}

void times_sort(void *list, uint32_t count, size_t element, bool *sorted)
{
    if (!*sorted) {
        qsort(list, count, element, by_time);
        *sorted = true;
    }
}

/* ---- Asking ---- */

/* The records of a block; NULL: they cannot be read any more, or there is no memory. */
static const struct threads_slot *fetch(struct thread_journal *journal, struct thread *thread,
                                        const struct block *block)
{
    if (!thread->slots) {
        thread->slots = calloc(THREADS_BLOCK_SLOTS, sizeof *thread->slots);
    }
    if (!thread->slots) {
        return NULL;
    }
    if (thread->fetched != block->offset) {
        thread->fetched = 0;
        if (!journal_read_at(journal, thread->slots, block->slots * sizeof *thread->slots,
                             block->offset + sizeof(struct threads_block))) {
            return NULL;
        }
        thread->fetched = block->offset;
    }
    return thread->slots;
}

/* What the thread carried then. False: not to be had. */
static bool mounted_at(struct thread_journal *journal, struct thread *thread, uint64_t time,
                       uint64_t *mounted)
{
    if (!thread->blocks) { /* only others have told of it */
        *mounted = THREADS_NOT_KNOWN;
        return true;
    }
    times_sort(thread->blocks, thread->block_count, sizeof *thread->blocks, &thread->blocks_sorted);
    uint32_t next = times_until(thread->blocks, thread->block_count, sizeof *thread->blocks, time);
    const struct block *behind = next < thread->block_count ? &thread->blocks[next] : NULL;
    if (behind && behind->lost_from && time >= behind->lost_from) {
        return false;
    }
    if (next == 0) {
        *mounted = behind ? behind->mounted : THREADS_NOT_KNOWN;
        return true;
    }
    const struct block *block = &thread->blocks[next - 1];
    const struct threads_slot *slots = fetch(journal, thread, block);
    if (!slots) {
        return false;
    }
    *mounted = block->mounted;
    for (uint32_t i = 0; i < block->slots && block->base + (slots[i].stamp >> 8) <= time; i++) {
        uint64_t kind = slots[i].stamp & 0xff;
        struct threads_text text;
        if (kind == THREADS_MOUNT) {
            *mounted = slots[i].value;
        } else if (kind == THREADS_UNMOUNT) {
            *mounted = 0;
        } else if (journal_has_text(kind)) {
            i += journal_text_slots(slots + i, block->slots - i, &text);
        }
    }
    return true;
}

static const char *labels_at(const struct thread_journal *journal, struct label_list *list,
                             uint64_t time)
{
    times_sort(list->changes, list->count, sizeof *list->changes, &list->sorted);
    uint32_t next = times_until(list->changes, list->count, sizeof *list->changes, time);
    uint64_t label = next ? list->changes[next - 1].label : 0;
    const struct label_text *text = label ? numbered_find(&journal->labels, label) : NULL;
    return text && *text->text ? text->text : NULL;
}

/*
 * Whether the kernel would have this name as comm: its first 15 bytes or, since JDK 22, the first 7
 * and the last 6 with two points between (os::Linux, os_linux.cpp: set_native_thread_name).
 */
static bool is_comm_of(const char *comm, const char *name)
{
    enum { COMM = 15, HEAD = 7, TAIL = 6 };
    size_t length = strlen(name);
    if (length <= COMM) {
        return strcmp(comm, name) == 0;
    }
    char middle_out[COMM + 1];
    memcpy(middle_out, name, HEAD);
    memcpy(middle_out + HEAD, "..", 2);
    memcpy(middle_out + HEAD + 2, name + length - TAIL, TAIL + 1);
    return (strlen(comm) == COMM && strncmp(comm, name, COMM) == 0) ||
           strcmp(comm, middle_out) == 0;
}

/*
 * The name that was read last; if the kernel had another one then, the thread had renamed itself,
 * and the whole name was read later. NULL: it never was.
 */
static const char *name_at(struct thread *thread, uint64_t time, const char *comm,
                           const char *process)
{
    times_sort(thread->names, thread->name_count, sizeof *thread->names, &thread->names_sorted);
    if (thread->name_count == 0) {
        return NULL;
    }
    uint32_t next = times_until(thread->names, thread->name_count, sizeof *thread->names, time);
    uint32_t last = next ? next - 1 : 0;
    const struct name_read *names = thread->names;
    if (is_comm_of(comm, names[last].name) || !*comm || strcmp(comm, process) == 0) {
        return names[last].name;
    }
    for (uint32_t i = last + 1; i < thread->name_count && names[i].id == names[last].id; i++) {
        if (is_comm_of(comm, names[i].name)) {
            return names[i].name;
        }
    }
    for (uint32_t i = last; i > 0 && names[i - 1].id == names[last].id; i--) {
        if (is_comm_of(comm, names[i - 1].name)) {
            return names[i - 1].name;
        }
    }
    return NULL;
}

static void name_virtual(struct thread_journal *journal, uint64_t id, uint64_t time,
                         struct thread_identity *out)
{
    struct virtual_thread *virtual = numbered_find(&journal->virtuals, id);
    out->virtual_id = id;
    out->virtual_name = virtual ? virtual->name : "";
    out->labels = virtual ? labels_at(journal, &virtual->labels, time) : NULL;
}

int thread_journal_at(struct thread_journal *journal, uint32_t tid, uint64_t time, const char *comm,
                      const char *process, struct thread_identity *out)
{
    struct thread *thread = numbered_find(&journal->threads, tid);
    uint64_t mounted = 0;
    *out = (struct thread_identity){0};
    if (!thread) {
        return 0;
    }
    out->name = name_at(thread, time, comm, process);
    if (!mounted_at(journal, thread, time, &mounted)) {
        out->is_unknown = true;
        return thread->slots ? 0 : -ENOMEM;
    }
    if (mounted == 0 || mounted == THREADS_NOT_KNOWN) {
        out->labels = labels_at(journal, &thread->labels, time);
        return 0;
    }
    name_virtual(journal, mounted, time, out);
    return 0;
}

void thread_journal_virtual_at(struct thread_journal *journal, uint64_t id, uint64_t time,
                               struct thread_identity *out)
{
    *out = (struct thread_identity){0};
    name_virtual(journal, id, time, out);
}
