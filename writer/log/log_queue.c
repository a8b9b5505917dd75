/*
 * Two lists of messages: one is filled by whoever posts, the other emptied by the thread, which
 * exchanges them when it is through. The lock is held for copying a record, never during a write.
 * Records stand one behind the other, apart from their heads, so that many are one piece to write.
 *
 *     post, by anybody                              take ... release, by the thread
 *     -----------------> [ waiting: m m m m    ] ......
 *                                               exchanged
 *     make_room, settle  [ taken:   m m m      ] ......> the disk
 *     wait for progress
 *
 * What always holds while the lock is free:
 *
 *   Q1  `waiting` is whole messages, of `limit` bytes at most or a single one.
 *   Q2  `taken` is the thread's alone, without the lock, from take to release: it is busy.
 *   Q3  The thread sleeps only while nothing waits, so that whoever posts first wakes it.
 *   Q4  Once it has ended it was told to stop, and nothing waits.
 *   Q5  `crowded` says whether half of the room is taken.
 */
#include "writer/log/log_queue.h"

#include "writer/buffer.h"
#include "writer/disk_room.h"
#include "writer/invariant.h"
#include "writer/message.h"
#include "writer/process.h"
#include "writer/stamp.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Before the thread sleeps: whoever posts a burst wakes it once, and the burst goes out in few
     * writes. With shorter ones the looking costs more than the writing, in a burst above all. */
    LOOKS = 2,
    LOOK_MS = 1,
    LOOK_IN_BURST_MS = 5,
    BURST_BYTES = 64 * 1024, /* taken at once */
    PATIENCE_MS = 500,
    SHORT_PATIENCE_MS = 10,
    SETTLE_MS = 2000,
    STEP_MS = 5,
    STOP_MS = 2000,
    STARVED_MS = 10000, /* nobody waits longer for a thread that wants a processor and gets none */
};

#define NS_IN_MS UINT64_C(1000000)

struct messages {
    struct buffer heads; /* struct log_head */
    struct buffer bytes;
};

struct log_queue {
    size_t limit;
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t posted;
    pthread_cond_t progress;
    struct messages waiting;
    struct messages taken; /* the thread's while `busy` */
    bool busy;
    bool burst; /* so was what was taken last */
    bool sleeping;
    bool stopping;
    bool ended;
    bool left_alone;
    pid_t thread;        /* who takes; 0: nobody yet */
    bool waited_in_vain; /* somebody in a hurry, since half of it was free */
    uint64_t progress_at;
    atomic_bool crowded; /* changed under the lock, and looked at without */
};

static size_t size_of(const struct messages *messages)
{
    return messages->heads.size + messages->bytes.size;
}

static struct log_batch batch_of(const struct messages *messages)
{
    const struct log_head *heads = (const struct log_head *)messages->heads.bytes;
    const size_t count = messages->heads.size / sizeof(*heads);
    /* Nothing may be added to NULL, not even 0. */
    return (struct log_batch){heads, count ? heads + count : heads, messages->bytes.bytes};
}

/* The lock is held. */
static void check(struct log_queue *queue)
{
    lock_is_held(&queue->lock);
#ifdef JD_CHECK_INVARIANTS
    const size_t waiting = size_of(&queue->waiting);
    struct log_batch batch = batch_of(&queue->waiting);
    struct log_message message;
    size_t count = 0;
    size_t bytes = 0;
    while (count < 16 && log_batch_next(&batch, &message)) {
        bytes += message.head.size;
        invariant(Q1, bytes <= queue->waiting.bytes.size);
        count++;
    }
    invariant(Q1, batch.at != batch.end || bytes == queue->waiting.bytes.size);
    invariant(Q1, waiting <= queue->limit || (count == 1 && batch.at == batch.end));
    invariant(Q2, queue->busy || size_of(&queue->taken) == 0);
    invariant(Q3, !queue->sleeping || (waiting == 0 && !queue->busy));
    invariant(Q4, !queue->ended || (queue->stopping && waiting == 0));
    invariant(Q5, atomic_load(&queue->crowded) == (waiting > queue->limit / 2));
#endif
}

/* The lock is held, and what waits has changed. */
static void note_size(struct log_queue *queue)
{
    bool crowded = size_of(&queue->waiting) > queue->limit / 2;
    queue->waited_in_vain = queue->waited_in_vain && crowded;
    atomic_store_explicit(&queue->crowded, crowded, memory_order_relaxed);
    check(queue);
}

bool log_batch_next(struct log_batch *batch, struct log_message *message)
{
    if (batch->at == batch->end) {
        return false;
    }
    message->head = *batch->at++;
    message->bytes = batch->bytes;
    if (message->head.size > 0) {
        batch->bytes += message->head.size;
    }
    return true;
}

struct log_queue *log_queue_new(size_t limit)
{
    struct log_queue *queue = calloc(1, sizeof(*queue));
    if (!queue) {
        return NULL;
    }
    queue->limit = limit;
    queue->waiting = (struct messages){BUFFER_INIT(SIZE_MAX / 4), BUFFER_INIT(SIZE_MAX / 4)};
    queue->taken = queue->waiting;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->posted, &monotonic);
    pthread_cond_init(&queue->progress, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&queue->lock, NULL);
    return queue;
}

static void free_messages(struct messages *messages)
{
    buffer_free(&messages->heads);
    buffer_free(&messages->bytes);
}

void log_queue_free(struct log_queue *queue)
{
    if (queue) {
        pthread_cond_destroy(&queue->posted);
        pthread_cond_destroy(&queue->progress);
        pthread_mutex_destroy(&queue->lock);
        free_messages(&queue->waiting);
        free_messages(&queue->taken);
        free(queue);
    }
}

/* False: the time has passed. */
static bool wait_ms(struct log_queue *queue, pthread_cond_t *condition, unsigned ms)
{
    const struct timespec at = stamp_in_ms(ms);
    return pthread_cond_timedwait(condition, &queue->lock, &at) != ETIMEDOUT;
}

/*
 * Waits a step for the thread to get on. On a busy machine it may be a second without a processor,
 * which says nothing of the disk: such a step is no part of the time for which it has been at the
 * same thing. Returns how long it was then; 0: it counts.
 */
static uint64_t wait_for_progress(struct log_queue *queue)
{
    const pid_t thread = queue->thread;
    const uint64_t before = stamp_monotonic();
    if (wait_ms(queue, &queue->progress, STEP_MS) || !thread) {
        return 0;
    }
    pthread_mutex_unlock(&queue->lock);
    const bool starves = process_thread_is_runnable(thread);
    pthread_mutex_lock(&queue->lock);
    if (!starves) {
        return 0;
    }
    const uint64_t now = stamp_monotonic();
    queue->progress_at += now - before;
    queue->progress_at = queue->progress_at < now ? queue->progress_at : now;
    return now - before;
}

/* The lock is held. */
static bool append(struct log_queue *queue, struct log_head head, const struct iovec *pieces,
                   int count)
{
    lock_is_held(&queue->lock);
    head.size = 0;
    for (int i = 0; i < count; i++) {
        head.size += pieces[i].iov_len;
    }
    struct messages *waiting = &queue->waiting;
    const size_t before = size_of(waiting);
    if (before > 0 && before + sizeof(head) + (size_t)head.size > queue->limit) {
        return false;
    }
    uint8_t *at = head.size > 0 ? buffer_extend(&waiting->bytes, (size_t)head.size) : NULL;
    if (head.size > 0 && !at) {
        waiting->bytes.failed = false; /* what is there already is as good as before */
        return false;
    }
    buffer_put(&waiting->heads, &head, sizeof(head));
    if (waiting->heads.failed) {
        waiting->heads.failed = false;
        waiting->bytes.size -= (size_t)head.size;
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len > 0) {
            memcpy(at, pieces[i].iov_base, pieces[i].iov_len);
            at += pieces[i].iov_len;
        }
    }
    return true;
}

bool log_queue_post(struct log_queue *queue, const struct log_head *head,
                    const struct iovec *pieces, int count)
{
    pthread_mutex_lock(&queue->lock);
    bool posted = append(queue, *head, pieces, count);
    bool wake = posted && queue->sleeping;
    queue->sleeping = queue->sleeping && !wake; /* one is enough */
    note_size(queue);
    pthread_mutex_unlock(&queue->lock);
    if (wake) {
        pthread_cond_signal(&queue->posted);
    }
    return posted;
}

/* Whether the thread has been at the same thing for longer than so many milliseconds, those without
 * a processor not counted. */
static bool is_stuck(const struct log_queue *queue, unsigned ms)
{
    return queue->busy && stamp_monotonic() - queue->progress_at > ms * NS_IN_MS;
}

void log_queue_make_room(struct log_queue *queue, bool patient)
{
    unsigned patience = patient ? PATIENCE_MS : SHORT_PATIENCE_MS;
    if (!atomic_load_explicit(&queue->crowded, memory_order_relaxed)) {
        return; /* what it was a moment ago is as good: nobody is kept from posting */
    }
    pthread_mutex_lock(&queue->lock);
    while (size_of(&queue->waiting) > queue->limit / 2 && (patient || !queue->waited_in_vain) &&
           !is_stuck(queue, patience)) {
        (void)wait_ms(queue, &queue->progress, STEP_MS);
    }
    /* Else a disk that takes 20 ms a write would hold the program for ten of each. */
    queue->waited_in_vain = size_of(&queue->waiting) > queue->limit / 2;
    pthread_mutex_unlock(&queue->lock);
}

/* What a burst took goes back, now that it is over. The lock is held, and nothing is in either. */
static void give_back(struct log_queue *queue)
{
    buffer_clear(&queue->waiting.heads);
    buffer_clear(&queue->waiting.bytes);
    buffer_clear(&queue->taken.heads);
    buffer_clear(&queue->taken.bytes);
}

bool log_queue_settle(struct log_queue *queue, const char *path)
{
    uint64_t starved = 0;
    if (!queue) {
        return true;
    }
    pthread_mutex_lock(&queue->lock);
    pthread_cond_signal(&queue->posted); /* it may be about to look only in a while */
    while ((size_of(&queue->waiting) > 0 || queue->busy) && !is_stuck(queue, SETTLE_MS) &&
           starved < STARVED_MS * NS_IN_MS) {
        starved += wait_for_progress(queue);
    }
    bool settled = size_of(&queue->waiting) == 0 && !queue->busy;
    if (settled) {
        give_back(queue);
    }
    pthread_mutex_unlock(&queue->lock);
    if (!settled) {
        message(MESSAGE_ERROR, "failed to write %s: the disk accepts no data", path);
    }
    return settled;
}

bool log_queue_stop(struct log_queue *queue, pthread_t thread, const char *path)
{
    uint64_t latest = stamp_monotonic() + STOP_MS * NS_IN_MS;
    uint64_t starved = 0;
    pthread_mutex_lock(&queue->lock);
    queue->stopping = true;
    queue->progress_at = stamp_monotonic(); /* one that naps wakes up only now */
    pthread_cond_signal(&queue->posted);
    while (!queue->ended && !is_stuck(queue, PATIENCE_MS) && stamp_monotonic() < latest + starved &&
           starved < STARVED_MS * NS_IN_MS) {
        starved += wait_for_progress(queue);
    }
    bool ended = queue->ended;
    queue->left_alone = !ended;
    pthread_mutex_unlock(&queue->lock);
    if (ended) {
        pthread_join(thread, NULL);
    } else { /* the queue may be gone by now */
        message(MESSAGE_WARNING,
                "the disk of %s does not respond: records on their way there may be lost", path);
        pthread_detach(thread);
    }
    return ended;
}

/* The lock is held, but not all the time. */
static void wait_for_records(struct log_queue *queue)
{
    lock_is_held(&queue->lock);
    for (int i = 0; i < LOOKS && size_of(&queue->waiting) == 0 && !queue->stopping; i++) {
        (void)wait_ms(queue, &queue->posted, queue->burst ? LOOK_IN_BURST_MS : LOOK_MS);
    }
    if (size_of(&queue->waiting) == 0) {
        give_back(queue);
    }
    while (size_of(&queue->waiting) == 0 && !queue->stopping) {
        queue->sleeping = true;
        pthread_cond_wait(&queue->posted, &queue->lock);
        queue->sleeping = false;
    }
}

bool log_queue_take(struct log_queue *queue, struct log_batch *batch)
{
    pthread_mutex_lock(&queue->lock);
    queue->thread = process_thread_id();
    wait_for_records(queue);
    queue->burst = size_of(&queue->waiting) >= BURST_BYTES;
    const struct messages empty = queue->taken;
    queue->taken = queue->waiting;
    queue->waiting = empty;
    queue->busy = true; /* its end is something to do, too */
    queue->progress_at = stamp_monotonic();
    note_size(queue);
    pthread_cond_broadcast(&queue->progress);
    pthread_mutex_unlock(&queue->lock);
    *batch = batch_of(&queue->taken);
    return batch->at != batch->end;
}

void log_queue_release(struct log_queue *queue)
{
    /* Not buffer_clear: the memory would have to be had, page by page, for the next batch again. */
    queue->taken.heads.size = queue->taken.bytes.size = 0;
    pthread_mutex_lock(&queue->lock);
    queue->busy = false;
    check(queue);
    pthread_cond_broadcast(&queue->progress);
    pthread_mutex_unlock(&queue->lock);
}

void log_queue_progress(struct log_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->progress_at = stamp_monotonic();
    pthread_cond_broadcast(&queue->progress);
    pthread_mutex_unlock(&queue->lock);
}

/* Waits so long. False: log_queue_stop was called. */
static bool nap(struct log_queue *queue, unsigned ms)
{
    pthread_mutex_lock(&queue->lock);
    uint64_t end = stamp_monotonic() + ms * NS_IN_MS;
    while (!queue->stopping && stamp_monotonic() < end) {
        queue->sleeping = false; /* records that come meanwhile have to wait */
        (void)wait_ms(queue, &queue->posted, ms);
    }
    bool go_on = !queue->stopping;
    pthread_mutex_unlock(&queue->lock);
    return go_on;
}

bool log_queue_ended(struct log_queue *queue)
{
    pthread_mutex_lock(&queue->lock);
    queue->ended = true;
    bool left_alone = queue->left_alone;
    pthread_cond_broadcast(&queue->progress);
    pthread_mutex_unlock(&queue->lock);
    return left_alone;
}

/* ---- When a thread that writes tries again ---- */

enum { LOOK_AGAIN_MS = 500, ASK_AGAIN_MS = 1000, ASK_AGAIN_MAX_MS = 64000 };

bool log_again_ask(struct log_again *again, bool wanted)
{
    uint64_t now = stamp_monotonic();
    if (!wanted || now - again->at < again->ms * 1000000) {
        return false;
    }
    again->at = now;
    again->ms = again->ms ? again->ms * 2 : ASK_AGAIN_MS;
    again->ms = again->ms < ASK_AGAIN_MAX_MS ? again->ms : ASK_AGAIN_MAX_MS;
    return true;
}

bool log_again_has_room(struct log_queue *queue, const struct output_file *file, uint64_t reserve,
                        int error)
{
    bool go_on;
    if (error) {
        message(MESSAGE_WARNING,
                "pauses writing %s: %s except the reserve; it continues when there is room",
                file->path, strerror(-error));
    }
    do {
        go_on = nap(queue, LOOK_AGAIN_MS);
    } while (go_on && disk_room(file->fd, reserve) < disk_room_to_go_on(file->fd));
    return go_on;
}
