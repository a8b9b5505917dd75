/*
 * Reads the journal of a JVM's threads (format/threads.h) and tells who ran on a thread at a time:
 * the thread's full name, the virtual thread that it carried, the label that was set. The file is
 * taken for hostile; what of it is broken ends the reading with a warning.
 *
 * In memory is an index of blocks, 56 bytes each, and all names and changes of labels; the records
 * of a block are fetched when they are asked for. The journal grows while its JVM runs:
 * thread_journal_update takes in what has come. Of a journal without end it forgets what is old.
 */
#ifndef JD_TOOL_THREAD_JOURNAL_H
#define JD_TOOL_THREAD_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>

struct thread_journal;

/* Who ran. Strings live as long as the journal, or of one without end until the second update. */
struct thread_identity {
    const char *name;         /* the thread's full one; NULL: not known */
    uint64_t virtual_id;      /* Thread.threadId() of the virtual thread; 0: none, or not known */
    const char *virtual_name; /* "": it has none; NULL: there is no virtual thread */
    const char *labels;       /* lines of "key=value"; NULL: none */
    bool is_unknown;          /* the journal lacks what this thread did then */
};

/*
 * Opens the journal at `path` and reads what is there. is_all: nothing more will come, and it may
 * be packed (packed_file.h). 0; -ENOENT without a message when there is none; or a negative errno
 * after a message.
 */
int thread_journal_open(const char *path, bool is_all, struct thread_journal **out);
void thread_journal_close(struct thread_journal *journal); /* NULL is fine */

/* Reads what was appended since; with is_all an end inside a block is told of. 1: it has grown; 0:
 * it has not; or a negative errno after a message. */
int thread_journal_update(struct thread_journal *journal, bool is_all);

/* The process as it sees itself; thread ids are as it sees them. */
uint32_t thread_journal_pid(const struct thread_journal *journal);

/* Whether its stamps are the processor's own. */
bool thread_journal_has_arch_stamps(const struct thread_journal *journal);

/*
 * Who ran on the thread at that time of the journal's clock. comm: the thread's name as the kernel
 * had it then, at most 15 bytes, which tells which of its names it was; process: that of a thread
 * that never was given one. 0 or -ENOMEM.
 */
int thread_journal_at(struct thread_journal *journal, uint32_t tid, uint64_t time, const char *comm,
                      const char *process, struct thread_identity *out);

/* What is known of a virtual thread at that time, whether a thread carried it then or none. */
void thread_journal_virtual_at(struct thread_journal *journal, uint64_t id, uint64_t time,
                               struct thread_identity *out);

#endif
