/*
 * The journal of threads (format/threads.h), as the threads themselves write it: one at a time in a
 * process. Needs no JVM.
 *
 * A thread puts its records into a chunk of its own, without a lock, a system call or memory to be
 * found, but for the first record of a thread. A thread of the journal's takes them to the file,
 * some ten milliseconds later, and the chunk back from a thread that has told nothing since; it
 * alone waits for the disk. So threads may be any number: JOURNAL_CHUNKS of them can have records
 * within a tenth of a second. Where they are more, or the disk is so slow that all chunks are in
 * use, records are left out: the file says from when to when, and a message how many.
 *
 * Records may come at any time on any thread, also while the journal is opened or closed; without a
 * journal they are dropped. Chunks are memory of the process for good, 32 MB at most and only as
 * many as were in use at once, so that nobody has to be waited for; what no thread uses is given
 * back when the journal is closed.
 */
#ifndef JD_AGENT_JOURNAL_H
#define JD_AGENT_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JOURNAL_CHUNKS = 16384, JOURNAL_CHUNK_BYTES = 2048 };

struct journal_options {
    int directory;    /* where the file is to be made, which is not there yet; or AT_FDCWD */
    const char *path; /* of it */
    uint32_t pid;
    bool tsc;           /* stamp as the dump does */
    uint64_t max_bytes; /* of the file, which ends before it is larger; 0: JOURNAL_BYTES */
    bool endless;       /* no end: it keeps what is newest (THREADS_FLAGS_ENDLESS) */
    uint64_t reserve;   /* of the file system, see writer/disk_room.h */
};

/* A file grows to so much where nobody says otherwise: five minutes of 100,000 mounts a second. */
#define JOURNAL_BYTES (UINT64_C(1) << 30)

/* 0 or a negative errno after one message. */
int journal_open(const struct journal_options *options);

/* Whether records are taken at the moment. */
bool journal_is_open(void);

/* Takes the last records to the file and closes it. Waits two seconds at most: a disk that does
 * not answer then gets them when it does, or never, which is told. */
void journal_close(void);

/* ---- Records of the calling thread ---- */

/* It begins, and ceases, to run the virtual thread with this id in Java. */
void journal_mount(uint64_t id);
void journal_unmount(uint64_t id);

/* The label of what it runs; 0: none. */
void journal_label(uint64_t label);

/* It ends, and has no more records. */
void journal_thread_end(void);

/* ---- Texts: `length` bytes, of which THREADS_TEXT_MAX are kept ---- */

/*
 * Whether this journal has been told of the virtual thread; it counts as told from now on. Of more
 * than 65,536 at a time some are asked for again.
 */
bool journal_knows_virtual(uint64_t id);
bool journal_knows_label(uint64_t label); /* the same for a label's text */

void journal_virtual_name(uint64_t id, const char *name, size_t length);

/* The name of a platform thread from now on; tid: as the kernel knows it, 0: the calling one. */
void journal_platform_name(uint64_t id, uint32_t tid, const char *name, size_t length);

void journal_label_text(uint64_t label, const char *text, size_t length);

#endif
