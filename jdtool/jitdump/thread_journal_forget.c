#include "jdtool/jitdump/thread_journal_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Takes the first elements out of a list, and gives memory back. */
static void drop_first(void *list, uint32_t *count, uint32_t *room, size_t element, uint32_t first)
{
    char *elements;
    memcpy(&elements, list, sizeof elements);
    if (first == 0) {
        return;
    }
    *count -= first;
    memmove(elements, elements + first * element, *count * element);
    if (*room > 16 && *count < *room / 4) {
        char *smaller = realloc(elements, *room / 2 * element);
        if (smaller) {
            *room /= 2;
            memcpy(list, &smaller, sizeof smaller);
        }
    }
}

/* What stands before that time but for the last, which holds then. */
static uint32_t outdated(const void *list, uint32_t count, size_t element, uint64_t before)
{
    uint32_t until = times_until(list, count, element, before);
    return until ? until - 1 : 0;
}

static void forget_labels(struct label_list *list, uint64_t before)
{
    times_sort(list->changes, list->count, sizeof *list->changes, &list->sorted);
    drop_first(&list->changes, &list->count, &list->room, sizeof *list->changes,
               outdated(list->changes, list->count, sizeof *list->changes, before));
}

void journal_free_thread(struct thread *thread)
{
    free(thread->blocks);
    free(thread->names);
    free(thread->labels.changes);
    free(thread->slots);
}

/* What is kept of the things, in tables of their own; the others stay owned by those they are in.
 */
struct kept {
    struct intern strings;
    struct numbered threads, virtuals, labels;
};

static int keep_thread(struct kept *kept, struct thread *thread, uint64_t before)
{
    times_sort(thread->blocks, thread->block_count, sizeof *thread->blocks, &thread->blocks_sorted);
    times_sort(thread->names, thread->name_count, sizeof *thread->names, &thread->names_sorted);
    drop_first(&thread->blocks, &thread->block_count, &thread->block_room, sizeof *thread->blocks,
               outdated(thread->blocks, thread->block_count, sizeof *thread->blocks, before));
    drop_first(&thread->names, &thread->name_count, &thread->name_room, sizeof *thread->names,
               outdated(thread->names, thread->name_count, sizeof *thread->names, before));
    forget_labels(&thread->labels, before);
    for (uint32_t i = 0; i < thread->name_count; i++) {
        const char *name = intern(&kept->strings, thread->names[i].name);
        if (!name) {
            return -ENOMEM;
        }
        thread->names[i].name = name;
    }
    struct thread *to = numbered_get(&kept->threads, thread->tid, NULL);
    if (to) {
        *to = *thread;
    }
    return to ? 0 : -ENOMEM;
}

static int keep_virtual(struct kept *kept, struct virtual_thread *virtual, uint64_t before)
{
    const char *name = intern(&kept->strings, virtual->name);
    struct virtual_thread *to = name ? numbered_get(&kept->virtuals, virtual->id, NULL) : NULL;
    if (!to) {
        return -ENOMEM;
    }
    forget_labels(&virtual->labels, before);
    virtual->name = name;
    *to = *virtual;
    return 0;
}

static int keep_label(struct kept *kept, const struct label_text *label)
{
    const char *text = intern(&kept->strings, label->text);
    struct label_text *to = text ? numbered_get(&kept->labels, label->label, NULL) : NULL;
    if (to) {
        *to = *label;
        to->text = text;
    }
    return to ? 0 : -ENOMEM;
}

static bool has_ended(const struct thread *thread, uint64_t before)
{
    return thread->ended && thread->ended < before;
}

/* Whether the writer would tell its name again. */
static bool is_forgotten(const struct thread_journal *journal, const struct virtual_thread *virtual,
                         uint64_t before)
{
    return virtual->seen < before && journal->newest_virtual - virtual->id >= THREADS_TOLD_AGAIN;
}

/* Of labels the writer tells once; more than that are a new one each time. */
static bool is_needless(const struct thread_journal *journal, const struct label_text *label,
                        uint64_t before)
{
    return label->seen < before && journal->labels.list.count > THREADS_TOLD_AGAIN;
}

static int keep(struct thread_journal *journal, struct kept *kept, uint64_t before)
{
    int err = 0;
    for (uint32_t i = 0; i < journal->threads.list.count && !err; i++) {
        struct thread *thread = chunks_at(&journal->threads.list, i);
        err = has_ended(thread, before) ? 0 : keep_thread(kept, thread, before);
    }
    for (uint32_t i = 0; i < journal->virtuals.list.count && !err; i++) {
        struct virtual_thread *virtual = chunks_at(&journal->virtuals.list, i);
        err = is_forgotten(journal, virtual, before) ? 0 : keep_virtual(kept, virtual, before);
    }
    for (uint32_t i = 0; i < journal->labels.list.count && !err; i++) {
        const struct label_text *label = chunks_at(&journal->labels.list, i);
        err = is_needless(journal, label, before) ? 0 : keep_label(kept, label);
    }
    return err;
}

int journal_forget(struct thread_journal *journal, uint64_t age)
{
    uint64_t before = journal->newest > age ? journal->newest - age : 0;
    struct kept kept = {.threads = NUMBERED(struct thread),
                        .virtuals = NUMBERED(struct virtual_thread),
                        .labels = NUMBERED(struct label_text)};
    int err = keep(journal, &kept, before);
    intern_free(&journal->old_strings);
    if (err) { /* names may be of either */
        journal->old_strings = kept.strings;
        numbered_free(&kept.threads);
        numbered_free(&kept.virtuals);
        numbered_free(&kept.labels);
        return err;
    }
    for (uint32_t i = 0; i < journal->threads.list.count; i++) {
        struct thread *thread = chunks_at(&journal->threads.list, i);
        if (has_ended(thread, before)) {
            journal_free_thread(thread);
        }
    }
    for (uint32_t i = 0; i < journal->virtuals.list.count; i++) {
        struct virtual_thread *virtual = chunks_at(&journal->virtuals.list, i);
        if (is_forgotten(journal, virtual, before)) {
            free(virtual->labels.changes);
        }
    }
    numbered_free(&journal->threads);
    numbered_free(&journal->virtuals);
    numbered_free(&journal->labels);
    journal->old_strings = journal->strings;
    journal->strings = kept.strings;
    journal->threads = kept.threads;
    journal->virtuals = kept.virtuals;
    journal->labels = kept.labels;
    return 0;
}
