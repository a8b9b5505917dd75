#include "jdtool/pipeline/reader.h"

#include "jdtool/base/clock.h"
#include "jdtool/base/message.h"
#include "jdtool/base/threads.h"

#include <errno.h>
#include <stdlib.h>

/* So much goes from one thread to the other at once, and half of the ring is read at once: each
 * time that one sleeps and is woken costs as much as some samples. */
#define BATCH_ITEMS 512
#define BATCH_BYTES ((size_t)256 * 1024)
#define BATCHES     8

_Static_assert(BATCH_BYTES > PERF_SAMPLE_WHOLE_MAX, "a batch has room for one");

struct batch {
    struct read_item items[BATCH_ITEMS];
    uint32_t count;
    int more; /* what reader_next returns behind the items; 1: there is a next batch */
    size_t used;
    _Alignas(16) uint8_t bytes[BATCH_BYTES]; /* records of perf's own, and copies of stacks */
};

struct reader {
    struct perf_data *data;
    struct record_queue *queue;
    bool cut;
    bool live;
    uint64_t records;
    uint64_t malformed;
    struct perf_record own;   /* the last one of perf's */
    bool lets_go;             /* of a file: what is due goes, before more is read */
    bool has_ended;           /* and nothing more is read */
    struct queued_record due; /* without a thread: to be given back; block NULL: none */

    /* Of a thread, which alone uses all of the above from then on. */
    struct batch *batches; /* a ring; NULL: there is no thread */
    pthread_t thread;
    pthread_mutex_t lock; /* of the three behind it */
    pthread_cond_t changed;
    uint64_t filled;  /* so many batches have been, */
    uint64_t emptied; /* and so many of those are used up */
    bool stops;

    /* The taker's. */
    const struct batch *batch; /* that it takes from; NULL: the next one */
    uint64_t begun;            /* so many batches; the last two are not used up */
    uint32_t taken;            /* of its items */
};

/* ---- Reading ---- */

static int no_memory(const struct reader *reader)
{
    return failed_to(-ENOMEM, "read %s", perf_data_path(reader->data));
}

static int queue_record(struct reader *reader, const struct perf_record *record,
                        struct read_item *item)
{
    uint64_t time = record->id.time;
    const struct queued_record queued = {.time = time == UINT64_MAX ? 0 : time,
                                         .kind = QUEUED_RECORD,
                                         .size = (uint32_t)perf_record_kept_size(record)};
    void *kept = record_queue_put(reader->queue, &queued);
    if (!kept) {
        return no_memory(reader);
    }
    item->kind = READ_RECORD;
    item->record = perf_record_keep(record, kept);
    return 1;
}

static int queue_sample(struct reader *reader, const struct perf_record *record,
                        struct read_item *item)
{
    struct perf_sample sample;
    if (perf_sample_decode(reader->data, record, &sample)) {
        item->kind = READ_NOTHING;
        reader->malformed++;
        return 1;
    }
    const struct queued_record queued = {.time = sample.time,
                                         .arrival = reader->live ? clock_ns(CLOCK_MONOTONIC) : 0,
                                         .size =
                                             (uint32_t)perf_sample_kept_size(&sample, reader->cut),
                                         .kind = QUEUED_SAMPLE,
                                         .pid = sample.pid};
    void *kept = record_queue_put(reader->queue, &queued);
    if (!kept) {
        return no_memory(reader);
    }
    item->kind = READ_SAMPLE;
    item->sample = perf_sample_keep(&sample, reader->cut, kept);
    item->arrival = queued.arrival;
    return 1;
}

/* As reader_next. Records of perf's own have no time; those of the kernel may have none. */
static int read_one(struct reader *reader, struct read_item *item)
{
    static const struct read_item none;
    struct perf_record record;
    *item = none;
    int more = perf_data_next(reader->data, &record);
    if (more <= 0) {
        return more;
    }
    reader->records++;
    if (perf_record_has_sample(&record)) {
        return queue_sample(reader, &record, item);
    }
    if (record.type == PERF_USER_FINISHED_ROUND) {
        item->kind = READ_ROUND;
        record_queue_round(reader->queue);
        return 1;
    }
    if (record.type >= PERF_USER_FIRST) {
        item->kind = READ_OWN;
        reader->own = record;
        item->record = &reader->own;
        return 1;
    }
    return queue_record(reader, &record, item);
}

/* What is due of a file: 1, or 0 when nothing is. */
static int take_due(struct reader *reader, struct read_item *item)
{
    if (!reader->lets_go || !record_queue_first(reader->queue)) {
        reader->lets_go = false;
        return 0;
    }
    *item = (struct read_item){.kind = READ_DUE};
    record_queue_take(reader->queue, &item->due);
    return 1;
}

/* The next of a file, as reader_next; what is due is given back by the caller. */
static int read_file(struct reader *reader, struct read_item *item)
{
    int more = take_due(reader, item);
    if (more || reader->has_ended) {
        return more;
    }
    more = read_one(reader, item);
    if (more == 0) {
        reader->has_ended = true;
        reader->lets_go = true;
        record_queue_finish(reader->queue);
        return take_due(reader, item);
    }
    reader->lets_go = item->kind == READ_ROUND || record_queue_is_full(reader->queue);
    return more;
}

/* ---- By a thread ---- */

/* What the taker looks at. The rest was of use to the queue. */
static bool is_wanted(const struct read_item *item)
{
    return item->kind == READ_OWN || item->kind == READ_RECORD || item->kind == READ_DUE;
}

/* Whatever does not live as long as the batch gets a copy there, and what was left of a stack's
 * copy in the file is read to there. 0 or a negative errno after a message. */
static int complete(const struct reader *reader, struct batch *batch, struct read_item *item)
{
    uint8_t *to = batch->bytes + batch->used;
    size_t size = 0;
    int err = 0;
    if (item->kind == READ_OWN) {
        size = perf_record_kept_size(item->record);
        item->record = perf_record_keep(item->record, to);
    } else if (item->kind == READ_DUE && item->due.kind == QUEUED_SAMPLE) {
        const struct perf_sample *sample = item->due.bytes;
        if (sample->stack_at) {
            err = perf_sample_complete(reader->data, sample, to);
            size = perf_sample_kept_size((const struct perf_sample *)(void *)to, true);
            item->due.bytes = to;
        }
    }
    batch->used += (size + 15) & ~(size_t)15;
    return err;
}

static void fill(struct reader *reader, struct batch *batch)
{
    batch->more = 1;
    while (batch->more > 0 && batch->count < BATCH_ITEMS &&
           BATCH_BYTES - batch->used >= PERF_SAMPLE_WHOLE_MAX + sizeof(struct perf_record)) {
        struct read_item *item = &batch->items[batch->count];
        batch->more = read_file(reader, item);
        int err = batch->more > 0 ? complete(reader, batch, item) : 0;
        if (err) {
            record_queue_give_back(reader->queue, &item->due);
            batch->more = err;
        }
        batch->count += batch->more > 0 && is_wanted(item);
    }
}

static void empty(struct reader *reader, struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->items[i].kind == READ_DUE) {
            record_queue_give_back(reader->queue, &batch->items[i].due);
        }
    }
    batch->count = 0;
    batch->used = 0;
}

static void *read_ahead(void *context)
{
    struct reader *reader = context;
    int more = 1;
    pthread_mutex_lock(&reader->lock);
    while (more > 0) {
        while (reader->filled - reader->emptied == BATCHES && !reader->stops) {
            pthread_cond_wait(&reader->changed, &reader->lock);
        }
        if (reader->stops) {
            break;
        }
        struct batch *batch = &reader->batches[reader->filled % BATCHES];
        pthread_mutex_unlock(&reader->lock);
        empty(reader, batch);
        fill(reader, batch);
        more = batch->more;
        pthread_mutex_lock(&reader->lock);
        reader->filled++;
        pthread_cond_signal(&reader->changed);
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

/* The taker's next batch, once there is one; the one before that it has is used up. */
static void take_batch(struct reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    if (reader->begun > 1) {
        reader->emptied++;
        if (reader->filled - reader->emptied <= BATCHES / 2) { /* it is woken for several at once */
            pthread_cond_signal(&reader->changed);
        }
    }
    while (reader->filled == reader->begun) {
        pthread_cond_wait(&reader->changed, &reader->lock);
    }
    reader->batch = &reader->batches[reader->begun++ % BATCHES];
    reader->taken = 0;
    pthread_mutex_unlock(&reader->lock);
}

static int next_of_thread(struct reader *reader, struct read_item *item)
{
    while (!reader->batch || (reader->taken == reader->batch->count && reader->batch->more > 0)) {
        take_batch(reader);
    }
    if (reader->taken == reader->batch->count) {
        return reader->batch->more;
    }
    *item = reader->batch->items[reader->taken++];
    return 1;
}

/* Where there is a processor for it. What describes the recording must not change meanwhile, which
 * the records of a pipe do, in a file, too. */
static void read_by_thread(struct reader *reader)
{
    if (!perf_data_is_described(reader->data) || threads_at_once() < 2) {
        return;
    }
    reader->batches = calloc(BATCHES, sizeof *reader->batches);
    if (reader->batches && !threads_start(&reader->thread, read_ahead, reader)) {
        free(reader->batches);
        reader->batches = NULL;
    }
}

/* ---- By whoever takes it ---- */

static int next_here(struct reader *reader, struct read_item *item)
{
    if (reader->due.block) {
        record_queue_give_back(reader->queue, &reader->due);
        reader->due.block = NULL;
    }
    int more = reader->live ? read_one(reader, item) : read_file(reader, item);
    if (more > 0 && item->kind == READ_DUE) {
        reader->due = item->due;
    }
    return more;
}

bool reader_is_ahead(const struct reader *reader)
{
    return reader->batches != NULL;
}

bool reader_is_at_end(const struct reader *reader)
{
    return reader->batch && reader->taken == reader->batch->count;
}

int reader_next(struct reader *reader, struct read_item *item)
{
    return reader->batches ? next_of_thread(reader, item) : next_here(reader, item);
}

/* ---- All of it ---- */

struct reader *reader_new(struct perf_data *data, struct record_queue *queue, bool cut)
{
    struct reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        return NULL;
    }
    reader->data = data;
    reader->queue = queue;
    reader->cut = cut;
    reader->live = perf_data_is_live(data);
    (void)pthread_mutex_init(&reader->lock, NULL);
    (void)pthread_cond_init(&reader->changed, NULL);
    read_by_thread(reader);
    return reader;
}

void reader_count(const struct reader *reader, uint64_t *records, uint64_t *malformed)
{
    *records = reader->records;
    *malformed = reader->malformed;
}

void reader_free(struct reader *reader)
{
    if (!reader) {
        return;
    }
    if (reader->batches) {
        pthread_mutex_lock(&reader->lock);
        reader->stops = true;
        pthread_cond_signal(&reader->changed);
        pthread_mutex_unlock(&reader->lock);
        (void)pthread_join(reader->thread, NULL);
        for (uint32_t i = 0; i < BATCHES; i++) {
            empty(reader, &reader->batches[i]);
        }
        free(reader->batches);
    } else if (reader->due.block) {
        record_queue_give_back(reader->queue, &reader->due);
    }
    (void)pthread_mutex_destroy(&reader->lock);
    (void)pthread_cond_destroy(&reader->changed);
    free(reader);
}
