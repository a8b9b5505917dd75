/* What the files of a journal of threads share: reading it and forgetting what is old
 * (thread_journal.c), being asked (thread_journal_ask.c). */
#ifndef JD_TOOL_THREAD_JOURNAL_PRIVATE_H
#define JD_TOOL_THREAD_JOURNAL_PRIVATE_H

#include "format/threads.h"
#include "jdtool/base/intern.h"
#include "jdtool/base/numbered.h"
#include "jdtool/jitdump/thread_journal.h"

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

/* Bytes of the file. False: they are not there, or cannot be read. */
bool journal_read_at(const struct thread_journal *journal, void *out, size_t size, uint64_t offset);

/* Whether a record of that kind has a text behind it, and how many slots that takes. */
bool journal_has_text(uint64_t kind);
uint32_t journal_text_slots(const struct threads_slot *slots, uint32_t count,
                            struct threads_text *text);

/* ---- Lists by time: their elements begin with one (uint64_t) ---- */

/* The number of elements up to that time, of a sorted list. */
uint32_t times_until(const void *list, uint32_t count, size_t element, uint64_t time);

/* Sorts a list that is not: *sorted. */
void times_sort(void *list, uint32_t count, size_t element, bool *sorted);

#endif
