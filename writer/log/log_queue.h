/*
 * What threads that may not wait have to say to one that may: a bounded queue of records.
 *
 * Posting copies a record and makes no system call while the other thread is at work: that one
 * looks again for some milliseconds after the last record before it lies down to sleep, and only a
 * sleeper has to be woken. So a record waits for some hundred microseconds at most where the disk
 * is quick.
 *
 * All functions but take, release, progress, nap and ended, which are the taking thread's, may be
 * called from any thread at the same time.
 */
#ifndef JD_WRITER_LOG_QUEUE_H
#define JD_WRITER_LOG_QUEUE_H

#include "writer/output_file.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct living_record; /* writer/log/living_records.h */
struct log_queue;

/* What goes with a record's bytes. */
struct log_head {
    uint32_t kind;                /* the owner's own affair */
    uint32_t file;                /* likewise */
    struct living_record *living; /* likewise */
    uint64_t hole; /* bytes of zero that follow the record, and are not in the queue */
    uint64_t size; /* of the record in the queue; set by log_queue_post */
};

struct log_message {
    struct log_head head;
    const uint8_t *bytes; /* head.size */
};

struct log_batch {
    const struct log_head *at;
    const struct log_head *end;
    const uint8_t *bytes; /* of the next message; those of all stand one behind the other */
};

/* Goes to the next message of a batch. False: there is none. */
bool log_batch_next(struct log_batch *batch, struct log_message *message);

/* Of at most `limit` bytes; one record alone may have more. NULL: no memory. */
struct log_queue *log_queue_new(size_t limit);
void log_queue_free(struct log_queue *queue); /* NULL is fine */

/* Appends a record made of pieces. False: there is no room, and nothing has changed. */
bool log_queue_post(struct log_queue *queue, const struct log_head *head,
                    const struct iovec *pieces, int count);

/*
 * Waits until half of the queue is free, as long as the other thread gets on: not at all for one
 * that has been at the same record for ten milliseconds, and then not again before half was free;
 * `patient`: for half a second.
 */
void log_queue_make_room(struct log_queue *queue, bool patient);

/* Waits until nothing is left in the queue or in the other thread's hands; two seconds for a thread
 * that does not get on, as nobody but who attaches waits here, not counted those in which it got no
 * processor, ten at most. False, after a message: something is left that is for `path`. queue NULL:
 * nothing is. */
bool log_queue_settle(struct log_queue *queue, const char *path);

/*
 * Has the other thread take what is there and end; waits for it as make_room does, patiently, and
 * two seconds at most in all, and ten more in which it gets no processor; joins it. False, after a
 * message: it has not ended yet, as it writes to `path`, and will get `true` of log_queue_ended.
 */
bool log_queue_stop(struct log_queue *queue, pthread_t thread, const char *path);

/* ---- The taking thread ---- */

/* Waits for records and takes all there are. False: there are none, and will be none. */
bool log_queue_take(struct log_queue *queue, struct log_batch *batch);

/* The batch is done with. */
void log_queue_release(struct log_queue *queue);

/* A part of the batch is. */
void log_queue_progress(struct log_queue *queue);

/* Says that the thread ends. True: nobody waits for it any more, and all is its to free. */
bool log_queue_ended(struct log_queue *queue);

/* ---- When a thread that writes tries again ---- */

/* For room on its disk, and to have its owner tell once more of what found no room. */

/* When the owner was asked last, and how long it is left alone: a second, and twice that each time,
 * up to a minute. Zeroed to start. */
struct log_again {
    uint64_t at;
    uint64_t ms;
};

/* Whether it may be asked now; counts as asked where `wanted` is set as well, which is returned. */
bool log_again_ask(struct log_again *again, bool wanted);

/* Naps until the file's disk has room again beyond `reserve` (writer/disk_room.h). error: of which
 * it is told; 0: it has been. False: log_queue_stop was called. */
bool log_again_has_room(struct log_queue *queue, const struct output_file *file, uint64_t reserve,
                        int error);

#endif
