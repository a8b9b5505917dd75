/*
 * The first half of a record's way: read (perf_data_next), decoded, and put in the order of time
 * (record_queue). The second half, from its location to the sinks, is stream.c's.
 *
 * A file is read by a thread of its own, ahead of who takes what it has read; by the taker itself
 * on a machine of one processor, and where no thread can be had. What is taken, and in which order,
 * is the same. A pipe's records are read one at a time, when it has some: what waits there is let
 * go by who knows the JVMs (stream.c).
 *
 *   thread:  file -> decoded -> queue -> [batch][batch][batch] -> taker: resolve -> sinks
 *               ^                            given back               |
 *               '-----------------------------------------------------'
 */
#ifndef JD_TOOL_READER_H
#define JD_TOOL_READER_H

#include "jdtool/perf/perf_data.h"
#include "jdtool/perf/record_queue.h"

/* What has been done with a record. */
enum read_kind {
    READ_NOTHING, /* a sample that is malformed: perf, too, makes nothing of one */
    READ_ROUND,   /* a round's end: perf has been through all buffers */
    READ_OWN,     /* one of perf's own, which has no time and does not wait */
    READ_RECORD,  /* waits in the queue */
    READ_SAMPLE,  /* the same */
    READ_DUE,     /* has waited; of a file alone */
};

/* What waits is decoded, and kept as such: a struct perf_record, or a struct perf_sample. */
enum queued_kind {
    QUEUED_RECORD,
    QUEUED_SAMPLE,
};

struct read_item {
    enum read_kind kind;
    const struct perf_record *record; /* READ_OWN, READ_RECORD */
    const struct perf_sample *sample; /* READ_SAMPLE */
    uint64_t arrival;                 /* its, of a pipe; ns of CLOCK_MONOTONIC */
    struct queued_record due;         /* READ_DUE: given back by the reader */
};

struct reader;

/*
 * Borrows the recording, which must have been opened, and the queue: both are left alone by others
 * until reader_free, but for what of the recording does not change (its events, its features).
 * cut: of a stack's copy only what is valid is kept. NULL: no memory.
 */
struct reader *reader_new(struct perf_data *data, struct record_queue *queue, bool cut);
void reader_free(struct reader *reader); /* NULL is fine */

/* Whether a thread reads ahead. */
bool reader_is_ahead(const struct reader *reader);

/* Whether the last item was the last of its batch, of such a thread. What is due in a batch lives
 * until all of the next one was taken, and one more item is asked for. */
bool reader_is_at_end(const struct reader *reader);

/*
 * The next item, which lives until the next call: 1, 0 behind the last one, or a negative errno
 * after a message. Of a file: what was read, in its order, and whatever is due after it. Of a pipe:
 * what was read.
 */
int reader_next(struct reader *reader, struct read_item *item);

/* How many records it has read, and how many of their samples were malformed. Of a file only when
 * its end has been reached. */
void reader_count(const struct reader *reader, uint64_t *records, uint64_t *malformed);

#endif
