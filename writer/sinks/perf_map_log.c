#include "writer/sinks/perf_map_log.h"

#include "writer/disk_room.h"
#include "writer/log/log_queue.h"
#include "writer/message.h"
#include "writer/own_thread.h"
#include "writer/sinks/perf_map_file.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    QUEUE_BYTES = 4 * 1024 * 1024,
    STACK_BYTES = 256 * 1024,
    WRITE_BYTES = 64 * 1024, /* at once */
    GROUP_LIMIT = 16 * 1024 * 1024,
};

enum message_kind { MAP_PUT, MAP_MOVE };

/* What a message is made of: heads, each with a name of so many bytes behind it. */
struct line_head {
    struct range range;
    uint64_t to; /* of MAP_MOVE */
    size_t name_size;
};

struct perf_map_log {
    struct perf_map_log_options options;
    char path[PATH_MAX];
    struct buffer group;      /* the owner's */
    struct perf_map_file map; /* the thread's, or, without one, the owner's */
    struct log_queue *queue;  /* NULL: no thread */
    pthread_t thread;
    struct log_again again; /* the thread's */
    bool (*wanted)(void *context, enum record_log_want want);
    void *context;

    pthread_mutex_t lock; /* of these */
    struct perf_map_log_stats stats;
    bool refused; /* something, since everything was asked for */
};

/* ---- Who writes ---- */

static void set_stats(struct perf_map_log *log, bool paused)
{
    pthread_mutex_lock(&log->lock);
    log->stats.bytes = log->map.file.size;
    log->stats.failed = log->map.file.fd < 0;
    log->stats.paused = paused;
    log->stats.has_paused |= paused;
    pthread_mutex_unlock(&log->lock);
}

/* Puts the lines of a message into the map; twice is as good as once. 0 or a negative errno. */
static int apply(struct perf_map_log *log, uint32_t kind, const uint8_t *bytes, size_t size)
{
    int error = 0;
    for (size_t at = 0; at < size && !error;) {
        struct line_head head;
        memcpy(&head, bytes + at, sizeof(head));
        at += sizeof(head);
        error = kind == MAP_MOVE
                    ? perf_map_file_move(&log->map, head.range, head.to)
                    : perf_map_file_put(&log->map, head.range, (const char *)bytes + at);
        at += head.name_size;
    }
    return error;
}

/* Writes what is in the map's memory. 0 or a negative errno; what log_again_has_room is for can be
 * tried again where the log waits, anything else has ended the map, after a message. */
static int write_text(struct perf_map_log *log)
{
    struct output_file *file = &log->map.file;
    const uint64_t max = log->options.max_bytes;
    const uint64_t size = log->map.text.size;
    int error = 0;
    if (file->fd < 0) {
        error = -EPIPE;
    } else if (max && size > 0 && file->size + size > max) {
        message(MESSAGE_WARNING, "stopped writing %s: it has reached max=%llu bytes", log->path,
                (unsigned long long)max);
        error = -EFBIG;
    } else if (size > 0 && log->options.reserve &&
               disk_room(file->fd, log->options.reserve) < size) {
        error = -ENOSPC;
        if (!log->options.waits) {
            message(MESSAGE_ERROR, "failed to write %s: %s; it ends here", log->path,
                    strerror(-error));
        }
    } else {
        error = perf_map_file_commit(&log->map);
    }
    if (error && !(disk_is_full(error) && log->options.waits)) {
        output_file_close(file);
    }
    return error;
}

/* Waits for room on the disk. False: nobody waits for it any more. */
static bool pause_for_room(struct perf_map_log *log, int error)
{
    bool first = !log->stats.has_paused; /* which only this thread changes */
    set_stats(log, true);
    return log_again_has_room(log->queue, &log->map.file, log->options.reserve, first ? error : 0);
}

/* On the log's thread: until it is done, or nobody waits for it, or the map has ended. */
static void write_until_done(struct perf_map_log *log)
{
    int error = write_text(log);
    while (disk_is_full(error) && log->map.file.fd >= 0 && pause_for_room(log, error)) {
        error = write_text(log);
    }
    set_stats(log, log->stats.paused && error);
}

static void apply_until_done(struct perf_map_log *log, const struct log_message *lines)
{
    int error;
    do {
        error = log->map.file.fd < 0 ? -EPIPE
                                     : apply(log, lines->head.kind, lines->bytes, lines->head.size);
    } while (disk_is_full(error) && log->map.file.fd >= 0 && pause_for_room(log, error));
    if (error == -ENOMEM) {
        message(MESSAGE_DEBUG, "no memory for a line of %s", log->path);
    }
}

/* What was refused is asked for again, where there is room for it. */
static void ask_owner(struct perf_map_log *log)
{
    pthread_mutex_lock(&log->lock);
    bool ask = log_again_ask(&log->again, log->refused && !log->stats.paused);
    log->refused = log->refused && !ask;
    pthread_mutex_unlock(&log->lock);
    if (ask && log->wanted && !log->wanted(log->context, RECORD_LOG_WANTS_ALL)) {
        pthread_mutex_lock(&log->lock);
        log->refused = true;
        pthread_mutex_unlock(&log->lock);
    }
}

static void free_log(struct perf_map_log *log)
{
    log_queue_free(log->queue);
    buffer_free(&log->group);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

static void *run(void *argument)
{
    struct perf_map_log *log = argument;
    struct log_batch batch;
    pthread_setname_np(pthread_self(), "jdagent map");
    while (log_queue_take(log->queue, &batch)) {
        struct log_message next;
        while (log_batch_next(&batch, &next)) {
            apply_until_done(log, &next);
            if (log->map.text.size >= WRITE_BYTES) {
                write_until_done(log);
                log_queue_progress(log->queue);
            }
        }
        write_until_done(log);
        log_queue_release(log->queue);
        ask_owner(log);
    }
    perf_map_file_close(&log->map);
    if (log_queue_ended(log->queue)) {
        free_log(log);
    }
    return NULL;
}

/* ---- The owner's side ---- */

static void put_head(struct buffer *group, struct range range, uint64_t to, const char *name)
{
    const struct line_head head = {.range = range, .to = to, .name_size = strlen(name) + 1};
    buffer_put(group, &head, sizeof(head));
    buffer_put_string(group, name);
}

static int hand_over(struct perf_map_log *log, uint32_t kind)
{
    struct buffer *group = &log->group;
    int error = group->failed ? -ENOMEM : 0;
    if (!error && log->queue) {
        const struct log_head head = {.kind = kind};
        struct iovec piece = {group->bytes, group->size};
        pthread_mutex_lock(&log->lock);
        error = log->stats.failed ? -EPIPE : 0;
        pthread_mutex_unlock(&log->lock);
        error = error || log_queue_post(log->queue, &head, &piece, 1) ? error : -ENOBUFS;
    } else if (!error) {
        error = apply(log, kind, group->bytes, group->size);
        int written = write_text(log);
        error = error ? error : written;
        set_stats(log, false);
    }
    buffer_clear(group);
    if (error == -ENOBUFS) {
        pthread_mutex_lock(&log->lock);
        log->refused = true;
        pthread_mutex_unlock(&log->lock);
    }
    return error;
}

void perf_map_log_put(struct perf_map_log *log, struct range range, const char *name)
{
    put_head(&log->group, range, 0, name);
}

int perf_map_log_commit(struct perf_map_log *log)
{
    return hand_over(log, MAP_PUT);
}

int perf_map_log_move(struct perf_map_log *log, struct range from, uint64_t to)
{
    put_head(&log->group, from, to, "");
    return hand_over(log, MAP_MOVE);
}

void perf_map_log_make_room(struct perf_map_log *log, bool patient)
{
    if (log->queue) {
        log_queue_make_room(log->queue, patient);
    }
}

bool perf_map_log_settle(struct perf_map_log *log)
{
    return log_queue_settle(log->queue, log->path);
}

void perf_map_log_stats(struct perf_map_log *log, struct perf_map_log_stats *stats)
{
    pthread_mutex_lock(&log->lock);
    *stats = log->stats;
    pthread_mutex_unlock(&log->lock);
}

void perf_map_log_on_want(struct perf_map_log *log,
                          bool (*wanted)(void *context, enum record_log_want want), void *context)
{
    log->wanted = wanted;
    log->context = context;
}

static int start_thread(struct perf_map_log *log)
{
    log->queue = log_queue_new(QUEUE_BYTES);
    int error = log->queue ? own_thread_start(run, log, STACK_BYTES, &log->thread) : -ENOMEM;
    if (error) {
        message(MESSAGE_ERROR, "failed to start %s: %s", log->path, strerror(-error));
    }
    return error;
}

int perf_map_log_open(const struct perf_map_log_options *options, struct perf_map_log **out)
{
    struct perf_map_log *log = calloc(1, sizeof(*log));
    if (!log) {
        message(MESSAGE_ERROR, "failed to start %s: out of memory", options->path);
        return -ENOMEM;
    }
    log->options = *options;
    snprintf(log->path, sizeof(log->path), "%s", options->path);
    log->group = BUFFER_INIT(GROUP_LIMIT);
    pthread_mutex_init(&log->lock, NULL);
    int error = perf_map_file_create(&log->map, options->path);
    if (!error) {
        log->map.file.outlives_full_disk = options->waits;
        log->map.reserve = options->reserve;
    }
    if (!error && options->thread && (error = start_thread(log)) != 0) {
        output_file_discard(&log->map.file);
        perf_map_file_abandon(&log->map);
    }
    if (error) {
        free_log(log);
        return error;
    }
    *out = log;
    return 0;
}

void perf_map_log_close(struct perf_map_log *log)
{
    char path[PATH_MAX];
    memcpy(path, log->path, strlen(log->path) + 1);
    if (!log->queue) {
        perf_map_file_close(&log->map);
    } else if (!log_queue_stop(log->queue, log->thread, path)) {
        return;
    }
    free_log(log);
}

void perf_map_log_abandon(struct perf_map_log *log)
{
    perf_map_file_abandon(&log->map);
    buffer_free(&log->group);
    free(log); /* neither the queue's lock nor its thread is ours */
}
