/*
 * Where records go: the dump of a session and the table of methods beside it, in one file each, or
 * segment by segment.
 *
 * With a `thread`, records go through a bounded queue (log_queue.h) to a thread of the log's own,
 * which is the only one to touch the disk from then on: whoever reports code never waits for it. A
 * record is in the kernel's hands some hundred microseconds later where the disk is quick. Where
 * the queue is full, because the disk is slow or hangs, records are refused; as soon as there is
 * room again the owner is asked to tell of everything once more. Without a thread each record is in
 * the kernel's hands when record_log_append returns.
 *
 * The file system keeps its `reserve` free. With `waits` the log pauses when there is no more room
 * but for that, says so once, and goes on when there is; without, and on any other error, the file
 * ends for good at a record boundary, after one message.
 *
 * With `segment` bytes, the files end at that size, both of them together, and go on in a directory
 * of their own (segment_dirs.h) that begins with the records of all code that is still there. They
 * have to be understood by themselves. The table begins empty, and the owner is asked for it.
 *
 * append: any thread, one at a time for each file.
 */
#ifndef JD_WRITER_RECORD_LOG_H
#define JD_WRITER_RECORD_LOG_H

#include "format/jitdump.h"
#include "writer/log/living_records.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct record_log;

enum record_log_file { RECORD_LOG_DUMP, RECORD_LOG_TABLE, RECORD_LOG_FILES };

/* What the owner is asked for. */
enum record_log_want {
    RECORD_LOG_WANTS_ALL,   /* records were refused: of all code, and all methods not told of */
    RECORD_LOG_WANTS_TABLE, /* it begins anew: of all methods */
};

struct record_log_options {
    uint64_t start;        /* no stamp is earlier */
    bool tsc;              /* what clock stamps are of (stamp.h); the header says so */
    const char *directory; /* an existing one; the file in it is jit-PID.dump */
    int directory_fd;      /* of it, or AT_FDCWD: its name is all there is */
    uint32_t pid;
    bool thread;
    bool waits;          /* for room on the disk */
    uint64_t reserve;    /* bytes of the file system, or DISK_ROOM_DEFAULT */
    uint64_t max_bytes;  /* of each file, which ends before it is larger; 0: no limit */
    uint64_t segment;    /* bytes; 0: one file */
    uint32_t keep;       /* segments, the one being written among them; 0: any number */
    uint64_t keep_bytes; /* of closed segments; 0: any number */
};

/* What each file begins with, those of later segments, too: so a reader knows whose they are. */
enum { RECORD_LOG_HEADER_MAX = 160 };

struct record_log_header {
    uint8_t bytes[RECORD_LOG_HEADER_MAX];
    size_t size;
};

struct record_log_stats {
    uint64_t bytes; /* of whole records in all files, those that wait included */
    uint64_t lost;  /* records that were taken, and are not in the file all the same */
    bool failed;    /* ended for good */
    bool paused;
    bool has_paused;   /* at some time, and told so */
    uint64_t segments; /* begun until now; 0: there are none */
};

/*
 * Creates the dump, writes its header and maps its first page executable, which is how perf finds
 * it. 0 or a negative errno after one message.
 */
int record_log_open(const struct record_log_options *options,
                    const struct record_log_header *header, struct record_log **out);

/* Creates the table of methods beside it, before the first record. As record_log_open. */
int record_log_add_table(struct record_log *log, const struct record_log_header *header);

/* The present dump's. */
void record_log_path(struct record_log *log, char path[PATH_MAX]);

/*
 * Where a file of the session's goes that is one for all segments: beside the dump, or beside its
 * segments. Its path goes to `path`. Returns a descriptor, which stays the log's, of the directory
 * to make it in, which whoever moves things meanwhile does not change; or -ENAMETOOLONG.
 */
int record_log_beside(struct record_log *log, const char *suffix, char path[PATH_MAX]);

/*
 * The process is about to end, and code that has been told of runs in it until then: the dump's end
 * mark, which readers take for the end of that code, is stamped some seconds later.
 */
void record_log_process_ends(struct record_log *log);

/*
 * Has `wanted` called, on a thread of the log's that must not wait for anything, and without
 * anybody's lock. False from it: it cannot be seen to now, and is asked for again. Once, before the
 * first record.
 */
void record_log_on_want(struct record_log *log,
                        bool (*wanted)(void *context, enum record_log_want want), void *context);

/* Waits a moment for room in the queue where the disk is quick, longer where `patient`. Not with a
 * lock held that others wait for. */
void record_log_make_room(struct record_log *log, bool patient);

/*
 * Appends a record, or a group of them that belong together, made of pieces, which are used up;
 * then `hole` bytes of zero. `living` is who knows how long the code lives that it tells of, and
 * the log's hold on it the log's to give back (NULL: it tells of none, or there are no segments).
 * 0; -ENOBUFS: it was refused; -EFBIG: the file would grow beyond `max`, and has ended, after a
 * message; -EPIPE: it had ended before; or the error that it ended with, after a message.
 */
int record_log_append(struct record_log *log, enum record_log_file file,
                      struct living_record *living, struct iovec *pieces, int count, uint64_t hole);

/* As the stats have it, for whoever asks before each record. */
uint64_t record_log_lost(const struct record_log *log, enum record_log_file file);

void record_log_stats(struct record_log *log, enum record_log_file file,
                      struct record_log_stats *stats);

/* Waits until all is in the kernel's hands, for as long as the disk gets on. False: it is not,
 * which has been told. */
bool record_log_settle(struct record_log *log);

/* The file ends here; nothing is appended to it any more. */
void record_log_end(struct record_log *log, enum record_log_file file);

/*
 * Writes the ends, closes the files and frees the log. A disk that does not answer within half a
 * second is not waited for: the thread does it when it can, which is told.
 */
void record_log_close(struct record_log *log);

/* In a fork of the process: frees what can be, and leaves the files alone. */
void record_log_abandon(struct record_log *log);

#endif
