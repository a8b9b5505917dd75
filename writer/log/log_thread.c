/* The thread that writes: records one file after the other, and waits for room on the disk. */
#include "writer/log/record_log_private.h"

#include "writer/disk_room.h"
#include "writer/message.h"
#include "writer/own_thread.h"

#include <errno.h>

enum {
    QUEUE_BYTES = 4 * 1024 * 1024,
    STACK_BYTES = 256 * 1024,
    PIECES_AT_ONCE = 256,
    BYTES_AT_ONCE = 1024 * 1024, /* then it has got on (log_queue_progress) */
};

/* Goes to the next message for a file. False: there is none. */
static bool next_for(struct log_batch *batch, uint32_t file, struct log_message *message)
{
    while (log_batch_next(batch, message)) {
        if (message->head.file == file) {
            return true;
        }
    }
    return false;
}

/* What goes out in one write. */
struct run {
    struct iovec pieces[PIECES_AT_ONCE];
    int count;
    uint64_t records;
    uint64_t size; /* bytes, the hole included */
    uint64_t hole;
};

/* As many records for one file as go out in one write, up to one with a hole. Neighbours are one
 * piece: the kernel copies few large pieces in half of the time that it takes for many. */
static void collect(const struct record_log *log, struct log_batch *batch, uint32_t which,
                    struct run *run)
{
    struct log_batch next = *batch;
    struct log_message message;
    const uint64_t segment = log_segments_bytes(log);
    run->count = 0;
    run->records = run->size = run->hole = 0;
    while (run->hole == 0 && next_for(&next, which, &message) && message.head.kind == LOG_RECORD) {
        struct iovec *last = run->count > 0 ? &run->pieces[run->count - 1] : NULL;
        const uint64_t size = run->size + message.head.size;
        if (last && (size > BYTES_AT_ONCE || (log->dirs && segment + size > log->full_at))) {
            break;
        }
        if (last && (const uint8_t *)last->iov_base + last->iov_len == message.bytes) {
            last->iov_len += message.head.size;
        } else if (run->count < PIECES_AT_ONCE) {
            run->pieces[run->count++] = (struct iovec){(void *)message.bytes, message.head.size};
        } else {
            break;
        }
        run->hole = message.head.hole;
        run->size = size + run->hole;
        run->records++;
        *batch = next;
    }
}

static int write_run(struct record_log *log, struct log_batch *batch, uint32_t which)
{
    struct run run;
    struct log_batch written = *batch;
    struct log_batch behind = *batch;
    struct log_file *file = &log->files[which];
    struct log_message message;
    collect(log, &behind, which, &run);
    int error = -EPIPE;
    if (file->output.fd >= 0) {
        error = log_segments_write(log, file, run.pieces, run.count, run.hole);
    }
    if (error && disk_is_full(error) && log->options.waits) {
        return error;
    }
    *batch = behind;
    uint64_t offset = file->output.size - run.size;
    for (uint64_t i = 0; i < run.records && next_for(&written, which, &message); i++) {
        const uint64_t size = message.head.size + message.head.hole;
        if (error) {
            living_record_drop(message.head.living);
        } else {
            log_file_note_stamp(file, message.bytes);
            living_records_add(&log->living, message.head.living, offset, size);
        }
        offset += size;
    }
    if (error || log->paused) { /* which only this thread changes */
        pthread_mutex_lock(&log->lock);
        file->lost += error ? run.records : 0;
        log->paused = log->paused && error; /* that there was room is no proof: this is */
        pthread_mutex_unlock(&log->lock);
    }
    return error;
}

/* Takes a message for a file, or several. 0, or why it has to be tried again. */
static int take_some(struct record_log *log, struct log_batch *batch, uint32_t file)
{
    struct log_batch next = *batch;
    struct log_message message;
    bool any = next_for(&next, file, &message);
    if (any && message.head.kind == LOG_RECORD) {
        int error = write_run(log, batch, file);
        return disk_is_full(error) && log->options.waits ? error : 0;
    }
    if (any && log->files[file].output.fd >= 0) {
        log_file_close(log, &log->files[file]);
    }
    *batch = next;
    return 0;
}

/* Waits for room on the disk. False: nobody waits for it any more. */
static bool wait_for_room(struct record_log *log, int error)
{
    const struct log_file *dump = &log->files[RECORD_LOG_DUMP];
    const struct log_file *file = dump->output.fd >= 0 ? dump : &log->files[RECORD_LOG_TABLE];
    pthread_mutex_lock(&log->lock);
    bool first = !log->has_paused;
    log->paused = true;
    log->has_paused = true;
    pthread_mutex_unlock(&log->lock);
    return log_again_has_room(log->queue, &file->output, log->options.reserve, first ? error : 0);
}

/* The rest of a batch will not be in the file. */
static void lose(struct record_log *log, struct log_batch *batch, uint32_t file)
{
    struct log_message message;
    pthread_mutex_lock(&log->lock);
    while (next_for(batch, file, &message)) {
        log->files[file].lost += message.head.kind == LOG_RECORD;
        living_record_drop(message.head.living);
    }
    log->paused = true;
    pthread_mutex_unlock(&log->lock);
}

/* One file after the other: so many records go out in one write, however they came. */
static void take_for(struct record_log *log, struct log_batch batch, uint32_t file)
{
    while (batch.at != batch.end) {
        int error = take_some(log, &batch, file);
        if (!error) { /* who waits for this thread does not wait for room on the disk */
            log_queue_progress(log->queue);
        }
        if (error && !wait_for_room(log, error) && take_some(log, &batch, file) != 0) {
            lose(log, &batch, file);
        }
    }
}

void log_thread_ask_owner(struct record_log *log)
{
    pthread_mutex_lock(&log->lock);
    bool all = log_again_ask(&log->again, log->refused && !log->paused);
    bool table = log->table_begun;
    log->refused = log->refused && !all;
    log->table_begun = false;
    pthread_mutex_unlock(&log->lock);
    table = table && log->wanted && !log->wanted(log->context, RECORD_LOG_WANTS_TABLE);
    all = all && log->wanted && !log->wanted(log->context, RECORD_LOG_WANTS_ALL);
    if (table || all) { /* still wanted */
        pthread_mutex_lock(&log->lock);
        log->table_begun = log->table_begun || table;
        log->refused = log->refused || all;
        pthread_mutex_unlock(&log->lock);
    }
}

static void *run(void *argument)
{
    struct record_log *log = argument;
    struct log_batch batch;
    pthread_setname_np(pthread_self(), "jdagent writer");
    while (log_queue_take(log->queue, &batch)) {
        for (uint32_t file = 0; file < RECORD_LOG_FILES; file++) {
            take_for(log, batch, file);
        }
        log_queue_release(log->queue);
        log_thread_ask_owner(log);
    }
    record_log_close_files(log);
    if (log_queue_ended(log->queue)) {
        record_log_free(log);
    }
    return NULL;
}

int log_thread_start(struct record_log *log)
{
    log->queue = log_queue_new(QUEUE_BYTES);
    int error = log->queue ? own_thread_start(run, log, STACK_BYTES, &log->thread) : -ENOMEM;
    if (error) {
        log_queue_free(log->queue);
        log->queue = NULL;
    }
    return error;
}
