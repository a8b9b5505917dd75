/*
 * Each block says which virtual thread was mounted before its first record, so that a block is
 * understood without those before it. Blocks are read once for the index, which takes out names and
 * labels, and a block again when a sample falls into it: samples come in the order of time, so the
 * last block of each thread is kept.
 */
#include "jdtool/jitdump/thread_journal.h"

#include "format/threads.h"
#include "jdtool/base/array.h"
#include "jdtool/base/descriptor.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/message.h"
#include "jdtool/base/numbered.h"
#include "jdtool/base/packed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct block {
    uint64_t from; /* its first record */
    uint64_t offset;
    uint64_t base;
    uint64_t mounted;   /* before its first record; THREADS_NOT_KNOWN */
    uint64_t lost_from; /* 0: nothing was left out before it */
    uint32_t slots;
};

struct label_change {
    uint64_t time, label;
};

/* The labels of one thread, platform or virtual. */
struct label_list {
    struct label_change *changes;
    uint32_t count, room;
    bool sorted;
};

/* A name, and when it was read. */
struct name_read {
    uint64_t time;
    uint64_t id; /* in Java; another one: another thread that got the same tid */
    const char *name;
};

struct thread {
    uint64_t tid;
    struct block *blocks;
    uint32_t block_count, block_room;
    struct name_read *names;
    uint32_t name_count, name_room;
    bool blocks_sorted, names_sorted;
    uint64_t ended; /* when; 0: it goes on */
    struct label_list labels;
    /* The block that was fetched last. */
    uint64_t fetched; /* its offset; 0: none */
    struct threads_slot *slots;
};

struct virtual_thread {
    uint64_t id;
    uint64_t seen; /* the time of its latest mount or name */
    const char *name;
    struct label_list labels;
};

struct label_text {
    uint64_t label;
    uint64_t seen; /* when it was set last */
    const char *text;
};

struct thread_journal {
    int fd;
    char *path;
    struct threads_header header;
    uint64_t next; /* offset of the next block */
    bool broken;
    uint64_t newest;         /* the time of a record */
    uint64_t newest_virtual; /* the highest id */
    uint64_t forgotten_at;   /* journal->next then */
    struct intern strings;
    struct intern old_strings; /* of before the last forgetting */
    struct numbered threads;   /* of struct thread, by tid */
    struct numbered virtuals;  /* of struct virtual_thread, by id */
    struct numbered labels;    /* of struct label_text, by label */
};

/* ---- Lists by time ---- */

/* Their elements begin with one. */
static uint64_t time_of(const void *element)
{
    uint64_t time;
    memcpy(&time, element, sizeof time);
    return time;
}

/* The number of elements up to that time, of a sorted list. */
static uint32_t times_until(const void *list, uint32_t count, size_t element, uint64_t time)
{
    uint32_t at;
    ARRAY_FIRST(at, count, time_of((const char *)list + at * element) <= time);
    return at;
}

static int by_time(const void *a, const void *b)
{
    uint64_t first = time_of(a);
    uint64_t second = time_of(b);
    return ORDER(first, second);
}

/* Sorts a list that is not: *sorted. */
static void times_sort(void *list, uint32_t count, size_t element, bool *sorted)
{
    if (!*sorted) {
        qsort(list, count, element, by_time);
        *sorted = true;
    }
}

/* ---- Forgetting ---- */

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

static void free_thread(struct thread *thread)
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

/*
 * Forgets what was older than `age` ns when the newest record was made: changes before the last
 * one, threads that have ended, virtual ones that the writer would tell of again, labels of too
 * many. Strings that were asked for stay until the next time. 0 or -ENOMEM.
 */
static int forget(struct thread_journal *journal, uint64_t age)
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
            free_thread(thread);
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

/* The agent ends its file long before, unless that has no end. */
#define SIZE_MAX_READ (UINT64_C(8) << 30)

/* Of a journal without end old things are forgotten each time that so many bytes have been read:
 * what is older than that many seconds. No sample waits so long. */
#define FORGET_EVERY   (UINT64_C(8) << 20)
#define FORGET_SECONDS 15

/* ---- What is known by its number ---- */

/* NULL: no memory, as of the next two. */
static struct thread *get_thread(struct thread_journal *journal, uint32_t tid)
{
    bool is_new;
    struct thread *thread = numbered_get(&journal->threads, tid, &is_new);
    if (thread && is_new) {
        thread->blocks_sorted = thread->names_sorted = thread->labels.sorted = true;
    }
    return thread;
}

static struct virtual_thread *get_virtual(struct thread_journal *journal, uint64_t id)
{
    bool is_new;
    struct virtual_thread *thread = numbered_get(&journal->virtuals, id, &is_new);
    if (thread && is_new) {
        thread->name = "";
        thread->labels.sorted = true;
    }
    return thread;
}

/* ---- Reading ---- */

static int add_label(struct label_list *list, uint64_t time, uint64_t label)
{
    if (list->count == list->room) { /* most virtual threads have one or two */
        uint32_t room = list->room ? list->room * 2 : 2;
        struct label_change *grown = realloc(list->changes, room * sizeof *grown);
        if (!grown) {
            return -ENOMEM;
        }
        list->changes = grown;
        list->room = room;
    }
    list->sorted = list->sorted && (!list->count || list->changes[list->count - 1].time <= time);
    list->changes[list->count++] = (struct label_change){time, label};
    return 0;
}

/* Modified UTF-8 has no NUL, and what has one is cut there. NULL: no memory. */
static const char *keep_text(struct thread_journal *journal, const struct threads_slot *slots,
                             const struct threads_text *head)
{
    char text[THREADS_TEXT_MAX + sizeof "…"];
    size_t length = head->length;
    memcpy(text, slots, length);
    text[length] = '\0';
    if (head->flags & THREADS_TEXT_CUT) {
        memcpy(text + length, "…", sizeof "…");
    }
    return intern(&journal->strings, text);
}

static int take_text(struct thread_journal *journal, uint64_t kind, uint64_t value, uint64_t time,
                     const struct threads_text *head, const struct threads_slot *slots)
{
    const char *text = keep_text(journal, slots, head);
    if (!text) {
        return -ENOMEM;
    }
    if (kind == THREADS_VIRTUAL) {
        struct virtual_thread *thread = get_virtual(journal, value);
        if (thread) {
            thread->name = text;
            thread->seen = time > thread->seen ? time : thread->seen;
        }
        journal->newest_virtual = value > journal->newest_virtual ? value : journal->newest_virtual;
        return thread ? 0 : -ENOMEM;
    }
    if (kind == THREADS_LABEL_TEXT) {
        struct label_text *label = numbered_get(&journal->labels, value, NULL);
        if (label) {
            label->text = text;
            label->seen = time;
        }
        return label ? 0 : -ENOMEM;
    }
    struct thread *thread = get_thread(journal, head->tid);
    if (!thread || ARRAY_RESERVE(thread->names, thread->name_count, thread->name_room)) {
        return -ENOMEM;
    }
    thread->names_sorted =
        thread->names_sorted &&
        (!thread->name_count || thread->names[thread->name_count - 1].time <= time);
    thread->names[thread->name_count++] = (struct name_read){time, value, text};
    thread->ended = 0;
    return 0;
}

static bool journal_has_text(uint64_t kind)
{
    return kind == THREADS_VIRTUAL || kind == THREADS_PLATFORM || kind == THREADS_LABEL_TEXT;
}

/* Slots behind the first that belong to the text there; 0: they are not all in the block. */
static uint32_t journal_text_slots(const struct threads_slot *slots, uint32_t count,
                                   struct threads_text *head)
{
    if (count < 2) {
        return 0;
    }
    memcpy(head, slots + 1, sizeof *head);
    uint32_t needed = 1 + (uint32_t)((head->length + sizeof *slots - 1) / sizeof *slots);
    return head->length <= THREADS_TEXT_MAX && needed < count ? needed : 0;
}

/* What a thread carried before its block, where the block's head does not know: what it unmounts
 * first was there. */
static uint64_t infer_mounted(const struct threads_slot *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t kind = slots[i].stamp & 0xff;
        struct threads_text text;
        if (kind == THREADS_UNMOUNT) {
            return slots[i].value;
        }
        if (kind == THREADS_MOUNT) {
            return 0;
        }
        i += journal_has_text(kind) ? journal_text_slots(slots + i, count - i, &text) : 0;
    }
    return THREADS_NOT_KNOWN;
}

static int take_label(struct thread_journal *journal, struct thread *thread, uint64_t mounted,
                      uint64_t time, uint64_t label)
{
    if (mounted == 0 || mounted == THREADS_NOT_KNOWN) {
        return add_label(&thread->labels, time, label);
    }
    struct virtual_thread *virtual = get_virtual(journal, mounted);
    return virtual ? add_label(&virtual->labels, time, label) : -ENOMEM;
}

static bool is_endless(const struct thread_journal *journal)
{
    return journal->header.flags & THREADS_FLAGS_ENDLESS;
}

static void note_label(struct thread_journal *journal, uint64_t number, uint64_t time)
{
    struct label_text *label = is_endless(journal) ? numbered_find(&journal->labels, number) : NULL;
    if (label && label->seen < time) {
        label->seen = time;
    }
}

static void note_mount(struct thread_journal *journal, uint64_t id, uint64_t time)
{
    struct virtual_thread *virtual = is_endless(journal) ? numbered_find(&journal->virtuals, id)
                                                         : NULL;
    if (virtual && virtual->seen < time) {
        virtual->seen = time;
    }
}

/* Takes a block into the index. 0, -ENOMEM, or -EBADMSG where it is none. */
static int take_block(struct thread_journal *journal, const struct threads_block *head,
                      const struct threads_slot *slots, uint64_t offset)
{
    struct thread *thread = get_thread(journal, head->tid);
    if (!thread || ARRAY_RESERVE(thread->blocks, thread->block_count, thread->block_room)) {
        return -ENOMEM;
    }
    uint64_t mounted =
        head->mounted == THREADS_NOT_KNOWN ? infer_mounted(slots, head->slots) : head->mounted;
    const struct block block = {.from = head->base + (slots[0].stamp >> 8),
                                .offset = offset,
                                .base = head->base,
                                .mounted = mounted,
                                .lost_from = head->lost_from,
                                .slots = head->slots};
    int err = 0;
    for (uint32_t i = 0; i < head->slots && !err; i++) {
        uint64_t kind = slots[i].stamp & 0xff;
        uint64_t time = head->base + (slots[i].stamp >> 8);
        journal->newest = time > journal->newest ? time : journal->newest;
        if (journal_has_text(kind)) {
            struct threads_text text;
            uint32_t more = journal_text_slots(slots + i, head->slots - i, &text);
            if (!more) {
                return -EBADMSG;
            }
            err = take_text(journal, kind, slots[i].value, time, &text, slots + i + 2);
            i += more;
        } else if (kind == THREADS_LABEL) {
            note_label(journal, slots[i].value, time);
            err = take_label(journal, thread, mounted, time, slots[i].value);
        } else if (kind == THREADS_MOUNT) {
            mounted = slots[i].value;
            note_mount(journal, mounted, time);
        } else if (kind == THREADS_UNMOUNT) {
            mounted = 0;
        } else if (kind == THREADS_END) {
            thread->ended = time;
        }
    }
    if (!err) {
        thread->blocks_sorted =
            thread->blocks_sorted &&
            (!thread->block_count || thread->blocks[thread->block_count - 1].from <= block.from);
        thread->blocks[thread->block_count++] = block;
    }
    return err;
}

static bool journal_read_at(const struct thread_journal *journal, void *out, size_t size,
                            uint64_t offset)
{
    return descriptor_read_at(journal->fd, out, size, offset) == (ssize_t)size;
}

static void break_off(struct thread_journal *journal, const char *why)
{
    warning_message("%s could be read up to byte %" PRIu64 " only: %s", journal->path,
                    journal->next, why);
    journal->broken = true;
}

/* Takes whole blocks out of bytes that stand at journal->next; *used: how many. 0 or -ENOMEM. */
static int take_bytes(struct thread_journal *journal, const uint8_t *bytes, size_t size,
                      size_t *used)
{
    struct threads_slot slots[THREADS_BLOCK_SLOTS];
    struct threads_block head;
    *used = 0;
    while (!journal->broken && size - *used >= sizeof head) {
        memcpy(&head, bytes + *used, sizeof head);
        if (head.slots == 0 || head.slots > THREADS_BLOCK_SLOTS || head.tid == 0) {
            bool is_hole = is_endless(journal) && !head.slots && !head.tid && !head.base;
            break_off(journal,
                      is_hole ? "what follows was let go before it was read" : "a block is none");
            break;
        }
        size_t whole = sizeof head + head.slots * sizeof *slots;
        if (size - *used < whole) {
            break;
        }
        memcpy(slots, bytes + *used + sizeof head, whole - sizeof head);
        int err = take_block(journal, &head, slots, journal->next);
        if (err == -ENOMEM) {
            return err;
        }
        if (err) {
            break_off(journal, "a text reaches beyond its block");
            break;
        }
        *used += whole;
        journal->next += whole;
    }
    return 0;
}

static int read_blocks(struct thread_journal *journal, bool is_all)
{
    enum { PIECE = 1 << 18 };
    struct stat about;
    int err = 0;
    if (journal->broken || fstat(journal->fd, &about) != 0 ||
        (uint64_t)about.st_size <= journal->next) {
        return 0;
    }
    if ((uint64_t)about.st_size > SIZE_MAX_READ && !is_endless(journal)) {
        break_off(journal, "it is too large");
        return 0;
    }
    uint8_t *bytes = malloc(PIECE);
    if (!bytes) {
        return -ENOMEM;
    }
    while (!err && !journal->broken && journal->next < (uint64_t)about.st_size) {
        uint64_t left = (uint64_t)about.st_size - journal->next;
        size_t size = left < PIECE ? (size_t)left : PIECE;
        size_t used = 0;
        if (!journal_read_at(journal, bytes, size, journal->next)) {
            break_off(journal, "it cannot be read");
            break;
        }
        err = take_bytes(journal, bytes, size, &used);
        if (!err && !used && !journal->broken) {
            if (is_all) {
                break_off(journal, "its last block is cut");
            }
            break; /* the rest is on its way */
        }
    }
    free(bytes);
    return err;
}

/* ---- Opening, going on, closing ---- */

static int tell(const char *path, int err)
{
    error_message("failed to read the journal of threads %s: %s", path,
                  err == -EINVAL ? "it is none, or of another version or byte order"
                                 : strerror(-err));
    return err;
}

int thread_journal_update(struct thread_journal *journal, bool is_all)
{
    uint64_t before = journal->next;
    int err = read_blocks(journal, is_all);
    if (!err && is_endless(journal) && journal->next - journal->forgotten_at >= FORGET_EVERY) {
        journal->forgotten_at = journal->next;
        err = forget(journal, FORGET_SECONDS * UINT64_C(1000000000));
    }
    return err ? tell(journal->path, err) : journal->next > before;
}

static int read_header(struct thread_journal *journal)
{
    struct threads_header *header = &journal->header;
    struct stat about;
    if (fstat(journal->fd, &about) != 0 || !S_ISREG(about.st_mode) ||
        !journal_read_at(journal, header, sizeof *header, 0) || header->magic != THREADS_MAGIC ||
        header->version != THREADS_VERSION || header->total_size < sizeof *header) {
        return -EINVAL;
    }
    journal->next = header->total_size;
    return 0;
}

int thread_journal_open(const char *path, bool is_all, struct thread_journal **out)
{
    struct thread_journal *journal = calloc(1, sizeof *journal);
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int err = fd >= 0 ? 0 : -errno;
    if (fd >= 0 && is_all) {
        fd = packed_file_unpack(fd, path);
        if (fd < 0) {
            free(journal);
            return fd;
        }
    }
    if (err || !journal) {
        free(journal);
        descriptor_close(fd);
        return err == -ENOENT ? err : tell(path, err ? err : -ENOMEM);
    }
    journal->fd = fd;
    journal->threads = NUMBERED(struct thread);
    journal->virtuals = NUMBERED(struct virtual_thread);
    journal->labels = NUMBERED(struct label_text);
    journal->path = strdup(path);
    err = journal->path ? read_header(journal) : -ENOMEM;
    err = err ? err : read_blocks(journal, is_all);
    if (err) {
        thread_journal_close(journal);
        return tell(path, err);
    }
    *out = journal;
    return 0;
}

void thread_journal_close(struct thread_journal *journal)
{
    if (!journal) {
        return;
    }
    for (uint32_t i = 0; i < journal->threads.list.count; i++) {
        free_thread(chunks_at(&journal->threads.list, i));
    }
    for (uint32_t i = 0; i < journal->virtuals.list.count; i++) {
        free(((struct virtual_thread *)chunks_at(&journal->virtuals.list, i))->labels.changes);
    }
    numbered_free(&journal->threads);
    numbered_free(&journal->virtuals);
    numbered_free(&journal->labels);
    intern_free(&journal->strings);
    intern_free(&journal->old_strings);
    (void)close(journal->fd);
    free(journal->path);
    free(journal);
}

uint32_t thread_journal_pid(const struct thread_journal *journal)
{
    return journal->header.pid;
}

bool thread_journal_has_arch_stamps(const struct thread_journal *journal)
{
    return journal->header.flags & THREADS_FLAGS_ARCH_TIMESTAMP;
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
