/*
 * Who may touch what: `lock` guards what is said to be under it. All else, the files above all, is
 * the thread's, or, without one, whoever's calls it is, one at a time.
 */
#include "writer/record_log.h"

#include "writer/disk_room.h"
#include "writer/dump_place.h"
#include "writer/living_records.h"
#include "writer/log_queue.h"
#include "writer/message.h"
#include "writer/output_file.h"
#include "writer/segment_dirs.h"
#include "writer/stamp.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    QUEUE_BYTES = 4 * 1024 * 1024,
    STACK_BYTES = 256 * 1024,
    PIECES_AT_ONCE = 1024,
    LOOK_AGAIN_MS = 500, /* for room on the disk */
    COPY_BYTES = 256 * 1024,
    WANT_AGAIN_MS = 1000, /* between two askings for everything, at least, and twice that next … */
    WANT_AGAIN_MAX_MS = 64000,
};

enum kind { KIND_RECORD, KIND_UNLOAD, KIND_END };

enum state {
    CLOSED, /* or never opened */
    OPEN,
    FULL, /* max was reached: it is to be closed */
};

struct file {
    struct record_log_header header;
    struct output_file output;
    void *marker; /* the mapping that perf looks for */
    size_t marker_size;
    uint64_t last_stamp;
    enum state state;  /* under the lock */
    uint64_t accepted; /* bytes; under the lock */
    uint64_t lost;     /* records; under the lock */
};

struct record_log {
    struct record_log_options options;
    struct file files[RECORD_LOG_FILES];
    struct log_queue *queue; /* NULL: no thread */
    pthread_t thread;
    struct segment_dirs *dirs; /* NULL: no segments */
    struct living_records *living;
    uint64_t full_at;     /* bytes of a segment */
    uint64_t table_bytes; /* of the last segment's table */
    void (*wanted)(void *context, enum record_log_want want);
    void *context;
    uint64_t wanted_at;
    uint64_t want_again_ms;

    pthread_mutex_t lock; /* of these, and what is said to be above */
    bool refused;         /* something, since everything was asked for */
    bool table_begun;
    bool paused;
    bool has_paused;
    uint64_t segments;
    char path[PATH_MAX];
};

static bool is_full_disk(int error)
{
    return error == -ENOSPC || error == -EDQUOT;
}

/* ---- One file ---- */

static const char *suffix_of(enum record_log_file file)
{
    return file == RECORD_LOG_DUMP ? "dump" : "methods";
}

static enum state state_of(struct record_log *log, const struct file *file)
{
    pthread_mutex_lock(&log->lock);
    enum state state = file->state;
    pthread_mutex_unlock(&log->lock);
    return state;
}

static void set_state(struct record_log *log, struct file *file, enum state state)
{
    pthread_mutex_lock(&log->lock);
    file->state = state;
    pthread_mutex_unlock(&log->lock);
}

static void unmap_marker(struct file *file)
{
    if (file->marker) {
        munmap(file->marker, file->marker_size);
        file->marker = NULL;
    }
}

/* perf learns of the dump from the event of this mapping; nobody reads or runs what it maps. */
static int map_marker(struct file *file)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *marker = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_PRIVATE, file->output.fd, 0);
    if (marker == MAP_FAILED) {
        int error = errno;
        message(MESSAGE_ERROR, "failed to map %s executable, which is how perf finds it: %s%s",
                file->output.path, strerror(error),
                error == EPERM ? "; is its file system mounted noexec?" : "");
        return -error;
    }
    file->marker = marker;
    file->marker_size = size;
    return 0;
}

static int write_header(struct file *file)
{
    return output_file_append(&file->output, file->header.bytes, file->header.size);
}

/* Stamps go back in time where code is told of late; the end has the latest. */
static void note_stamp(struct file *file, const void *prefix)
{
    struct jitdump_record record;
    memcpy(&record, prefix, sizeof(record));
    file->last_stamp = record.timestamp > file->last_stamp ? record.timestamp : file->last_stamp;
}

static void write_end(struct file *file)
{
    const struct jitdump_close record = {
        .prefix = {JIT_CODE_CLOSE, sizeof(record), file->last_stamp},
    };
    if (file->output.fd >= 0) {
        (void)output_file_append(&file->output, &record, sizeof(record));
    }
}

/* The file ends, whole. */
static void close_file(struct record_log *log, struct file *file)
{
    if (file == &log->files[RECORD_LOG_DUMP]) {
        write_end(file);
    }
    unmap_marker(file);
    output_file_close(&file->output);
    set_state(log, file, CLOSED);
}

static uint64_t bytes_now(const struct record_log *log)
{
    return log->files[RECORD_LOG_DUMP].output.size + log->files[RECORD_LOG_TABLE].output.size;
}

/* ---- Segments ---- */

/* Creates a file in a segment's directory. */
static int create_in(struct record_log *log, enum record_log_file which, int directory,
                     const char *path, struct output_file *out)
{
    char full[PATH_MAX];
    int n = snprintf(full, sizeof(full), "%s/jit-%u.%s", path, log->options.pid, suffix_of(which));
    if (n < 0 || (size_t)n >= sizeof(full)) {
        return -ENAMETOOLONG;
    }
    int error = output_file_create(out, directory, full, OUTPUT_FILE_REFUSE);
    if (!error) {
        out->outlives_full_disk = log->options.waits;
        segment_dirs_add_file(log->dirs, strrchr(full, '/') + 1, out->fd);
    }
    return error;
}

/* Copies a stretch of one file to the end of another. */
static int copy(const struct output_file *from, struct living_stretch *stretch,
                struct output_file *to, uint8_t *bytes)
{
    stretch->moved_to = to->size;
    for (uint64_t done = 0; done < stretch->size;) {
        uint64_t left = stretch->size - done;
        ssize_t n = pread(from->fd, bytes, left < COPY_BYTES ? (size_t)left : COPY_BYTES,
                          (off_t)(stretch->offset + done));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        int error = n > 0 ? output_file_append(to, bytes, (size_t)n) : n < 0 ? -errno : -EIO;
        if (error) {
            return error;
        }
        done += (uint64_t)n;
    }
    return 0;
}

/* Writes the records of living code. */
static int write_living(struct record_log *log, struct output_file *to)
{
    size_t count = 0;
    struct living_stretch *list = living_records_list(log->living, &count);
    uint8_t *bytes = malloc(COPY_BYTES);
    int error = bytes && (list || count == 0) ? 0 : -ENOMEM;
    for (size_t i = 0; i < count && !error; i++) {
        error = copy(&log->files[RECORD_LOG_DUMP].output, &list[i], to, bytes);
    }
    if (!error) {
        living_records_move(log->living, list, count);
    }
    free(bytes);
    free(list);
    return error;
}

static uint64_t living_bytes(const struct record_log *log)
{
    size_t count = 0;
    struct living_stretch *list = living_records_list(log->living, &count);
    uint64_t bytes = 0;
    for (size_t i = 0; list && i < count; i++) {
        bytes += list[i].size;
    }
    free(list);
    return bytes;
}

/* The next segment's files, with all that they begin with. On an error nothing is left of them. */
static int begin_segment(struct record_log *log, struct output_file fresh[RECORD_LOG_FILES])
{
    char path[PATH_MAX];
    int directory = -1;
    int error = segment_dirs_begin(log->dirs, path, &directory);
    if (error) {
        return error;
    }
    for (int i = 0; i < RECORD_LOG_FILES && !error; i++) {
        struct file *file = &log->files[i];
        struct output_file old = file->output;
        if (state_of(log, file) != OPEN) {
            continue;
        }
        error = create_in(log, (enum record_log_file)i, directory, path, &fresh[i]);
        if (!error) {
            file->output = fresh[i];
            error = write_header(file);
            fresh[i] = file->output;
            file->output = old;
        }
    }
    error = error ? error : write_living(log, &fresh[RECORD_LOG_DUMP]);
    if (error) {
        segment_dirs_abandon(log->dirs);
        for (int i = 0; i < RECORD_LOG_FILES; i++) {
            output_file_release(&fresh[i]);
        }
    }
    return error;
}

/* Closes the old files and goes on in the new ones. */
static int change_over(struct record_log *log, struct output_file fresh[RECORD_LOG_FILES])
{
    uint64_t bytes = bytes_now(log);
    int error = 0;
    log->table_bytes = log->files[RECORD_LOG_TABLE].output.size;
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        struct file *file = &log->files[i];
        if (!fresh[i].path) {
            continue;
        }
        struct file old = *file;
        file->marker = NULL;
        file->output = fresh[i];
        if (i == RECORD_LOG_DUMP) {
            error = map_marker(file); /* before the other goes: perf, looking now, finds either */
            write_end(&old);
        }
        unmap_marker(&old);
        output_file_release(&old.output);
    }
    segment_dirs_closed(log->dirs, bytes);
    segment_dirs_keep(log->dirs, log->options.keep, log->options.keep_bytes);
    pthread_mutex_lock(&log->lock);
    log->segments++;
    log->table_begun = fresh[RECORD_LOG_TABLE].path != NULL;
    snprintf(log->path, sizeof(log->path), "%s", log->files[RECORD_LOG_DUMP].output.path);
    pthread_mutex_unlock(&log->lock);
    return error;
}

/* Where living code and the table alone fill most of a segment, segments are larger: each has to
 * get on, by more than what is told once in each. */
static void set_full_at(struct record_log *log)
{
    uint64_t begun = bytes_now(log) + log->table_bytes;
    uint64_t least = begun + (begun > log->options.segment ? begun : log->options.segment) / 4;
    log->full_at = least > log->options.segment ? least : log->options.segment;
}

static int next_segment(struct record_log *log)
{
    struct output_file fresh[RECORD_LOG_FILES] = {{.fd = -1}, {.fd = -1}};
    uint64_t needed = living_bytes(log);
    while (disk_room(log->files[RECORD_LOG_DUMP].output.fd, log->options.reserve) < needed) {
        if (!segment_dirs_give_way(log->dirs)) {
            return -ENOSPC;
        }
    }
    int error = begin_segment(log, fresh);
    error = error ? error : change_over(log, fresh);
    if (!error) {
        set_full_at(log);
    } else if (!is_full_disk(error)) {
        message(MESSAGE_ERROR, "failed to begin the segment after %s: %s", log->path,
                strerror(-error));
    }
    return error;
}

/* ---- Records reach the files ---- */

/* Whether so many bytes may be written; older segments give way. */
static bool has_room(struct record_log *log, const struct file *file, uint64_t size)
{
    if (log->options.reserve == 0) {
        return true;
    }
    while (disk_room(file->output.fd, log->options.reserve) < size) {
        if (!log->dirs || !segment_dirs_give_way(log->dirs)) {
            return false;
        }
    }
    return true;
}

/* 0, or a negative errno: what is_full_disk says can be tried again, anything else has ended the
 * file. */
static int write_pieces(struct record_log *log, struct file *file, struct iovec *pieces, int count,
                        uint64_t hole)
{
    uint64_t size = 0;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    int error = 0;
    if (log->dirs && bytes_now(log) + size > log->full_at) {
        error = next_segment(log);
        if (error && !is_full_disk(error)) {
            close_file(log, file);
            return error;
        }
    }
    if (!error) {
        error = has_room(log, file, size)
                    ? output_file_append_pieces(&file->output, pieces, count, hole)
                    : -ENOSPC;
    }
    if (error && (!is_full_disk(error) || !log->options.waits)) {
        if (error == -ENOSPC && file->output.fd >= 0) {
            message(MESSAGE_ERROR, "failed to write %s: %s; it ends here", file->output.path,
                    strerror(-error));
        }
        close_file(log, file);
    }
    return error;
}

static void index_record(struct record_log *log, const struct log_head *head, uint64_t offset,
                         uint64_t size)
{
    if (log->living && head->file == RECORD_LOG_DUMP && head->extent > 0 &&
        !living_records_add(log->living, head->address, head->extent, offset, size)) {
        message(MESSAGE_DEBUG, "no memory to know the code that lives");
    }
}

/* ---- The thread ---- */

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

/* As many records for one file as go out in one write, up to one with a hole. */
static int collect(const struct record_log *log, struct log_batch *batch, uint32_t file,
                   struct iovec pieces[PIECES_AT_ONCE], uint64_t *hole)
{
    struct log_batch next = *batch;
    struct log_message message;
    uint64_t size = bytes_now(log);
    int count = 0;
    *hole = 0;
    while (count < PIECES_AT_ONCE && *hole == 0 && next_for(&next, file, &message) &&
           message.head.kind == KIND_RECORD) {
        size += message.head.size;
        if (log->dirs && count > 0 && size > log->full_at) {
            break;
        }
        pieces[count++] = (struct iovec){(void *)message.bytes, message.head.size};
        *hole = message.head.hole;
        *batch = next;
    }
    return count;
}

static int write_run(struct record_log *log, struct log_batch *batch, uint32_t which)
{
    struct iovec pieces[PIECES_AT_ONCE];
    struct log_batch written = *batch;
    struct log_batch behind = *batch;
    struct file *file = &log->files[which];
    uint64_t hole;
    int count = collect(log, &behind, which, pieces, &hole);
    uint64_t size = hole;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    int error = -EPIPE;
    if (file->output.fd >= 0) {
        for (int i = 0; i < count; i++) {
            note_stamp(file, pieces[i].iov_base);
        }
        error = write_pieces(log, file, pieces, count, hole);
    }
    if (error && is_full_disk(error) && log->options.waits) {
        return error;
    }
    *batch = behind;
    struct log_message message;
    uint64_t offset = file->output.size - size;
    for (int i = 0; i < count && !error && next_for(&written, which, &message); i++) {
        index_record(log, &message.head, offset, message.head.size + message.head.hole);
        offset += message.head.size + message.head.hole;
    }
    if (error || log->paused) { /* which only this thread changes */
        pthread_mutex_lock(&log->lock);
        file->lost += error ? (uint64_t)count : 0;
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
    if (any && message.head.kind == KIND_RECORD) {
        int error = write_run(log, batch, file);
        return is_full_disk(error) && log->options.waits ? error : 0;
    }
    if (any && message.head.kind == KIND_UNLOAD) {
        living_records_remove(log->living, message.head.address);
    } else if (any && log->files[file].output.fd >= 0) {
        close_file(log, &log->files[file]);
    }
    *batch = next;
    return 0;
}

static void set_paused(struct record_log *log, int error, const struct file *file)
{
    pthread_mutex_lock(&log->lock);
    bool first = !log->has_paused;
    log->paused = true;
    log->has_paused = true;
    pthread_mutex_unlock(&log->lock);
    if (first) {
        message(MESSAGE_WARNING,
                "pauses writing %s: %s but for the reserve; it goes on when there is room",
                file->output.path, strerror(-error));
    }
}

/* Waits for room on the disk. False: nobody waits for it any more. */
static bool wait_for_room(struct record_log *log, int error)
{
    const struct file *dump = &log->files[RECORD_LOG_DUMP];
    const struct file *file = dump->output.fd >= 0 ? dump : &log->files[RECORD_LOG_TABLE];
    set_paused(log, error, file);
    bool go_on = true;
    do {
        go_on = log_queue_nap(log->queue, LOOK_AGAIN_MS);
    } while (go_on && disk_room(file->output.fd, log->options.reserve) <
                          disk_room_to_go_on(file->output.fd));
    return go_on;
}

/* The rest of a batch will not be in the file. */
static void lose(struct record_log *log, struct log_batch *batch, uint32_t file)
{
    struct log_message message;
    pthread_mutex_lock(&log->lock);
    while (next_for(batch, file, &message)) {
        log->files[file].lost += message.head.kind == KIND_RECORD;
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

/* Asks the owner for what is missing, where there is anything, and not too often. */
static void ask_owner(struct record_log *log)
{
    uint64_t now = stamp_monotonic();
    bool may = now - log->wanted_at >= log->want_again_ms * 1000000;
    pthread_mutex_lock(&log->lock);
    bool all = log->refused && may && !log->paused;
    bool table = log->table_begun;
    log->refused = log->refused && !all;
    log->table_begun = false;
    pthread_mutex_unlock(&log->lock);
    if (all) {
        log->wanted_at = now;
        log->want_again_ms = log->want_again_ms ? log->want_again_ms * 2 : WANT_AGAIN_MS;
        if (log->want_again_ms > WANT_AGAIN_MAX_MS) {
            log->want_again_ms = WANT_AGAIN_MAX_MS;
        }
    }
    if (table && log->wanted) {
        log->wanted(log->context, RECORD_LOG_WANTS_TABLE);
    }
    if (all && log->wanted) {
        log->wanted(log->context, RECORD_LOG_WANTS_ALL);
    }
}

static void close_files(struct record_log *log)
{
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        if (log->files[i].output.fd >= 0) {
            close_file(log, &log->files[i]);
        }
    }
}

static void free_log(struct record_log *log)
{
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        unmap_marker(&log->files[i]);
        output_file_release(&log->files[i].output);
    }
    segment_dirs_close(log->dirs);
    living_records_free(log->living);
    log_queue_free(log->queue);
    pthread_mutex_destroy(&log->lock);
    free(log);
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
        ask_owner(log);
    }
    close_files(log);
    if (log_queue_ended(log->queue)) {
        free_log(log);
    }
    return NULL;
}

/* The process' signals are for threads that it knows. */
static int start_thread(struct record_log *log)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigset_t before;
    log->queue = log_queue_new(QUEUE_BYTES);
    if (!log->queue) {
        return -ENOMEM;
    }
    int error = pthread_attr_init(&attributes);
    if (!error) {
        pthread_attr_setstacksize(&attributes, STACK_BYTES);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&log->thread, &attributes, run, log);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }
    if (error) {
        log_queue_free(log->queue);
        log->queue = NULL;
    }
    return -error;
}

/* ---- The owner's side ---- */

void record_log_make_room(struct record_log *log, bool patient)
{
    if (log->queue) {
        log_queue_make_room(log->queue, patient);
    }
}

static int append_now(struct record_log *log, const struct log_head *head, struct iovec *pieces,
                      int count)
{
    struct file *file = &log->files[head->file];
    uint64_t size = head->hole;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    note_stamp(file, pieces[0].iov_base);
    int error = write_pieces(log, file, pieces, count, head->hole);
    if (!error) {
        index_record(log, head, file->output.size - size, size);
        ask_owner(log);
    }
    return error;
}

/* Counts a record in, where it is still wanted. */
static int admit(struct record_log *log, struct file *file, uint64_t size)
{
    uint64_t max = log->options.max_bytes;
    int error = 0;
    pthread_mutex_lock(&log->lock);
    if (file->state != OPEN) {
        error = -EPIPE;
    } else if (max && file->accepted + size + sizeof(struct jitdump_close) > max) {
        file->state = FULL;
        error = -EFBIG;
    } else {
        file->accepted += size;
    }
    pthread_mutex_unlock(&log->lock);
    if (error == -EFBIG) {
        message(MESSAGE_WARNING, "stopped writing %s: it has reached max=%llu bytes",
                file->output.path, (unsigned long long)max);
    }
    return error;
}

static void refuse(struct record_log *log, struct file *file, uint64_t size)
{
    pthread_mutex_lock(&log->lock);
    file->accepted -= size;
    log->refused = true;
    pthread_mutex_unlock(&log->lock);
}

int record_log_append(struct record_log *log, enum record_log_file which, uint64_t address,
                      uint64_t extent, struct iovec *pieces, int count, uint64_t hole)
{
    struct file *file = &log->files[which];
    const struct log_head head = {
        .kind = KIND_RECORD,
        .file = which,
        .address = address,
        .extent = extent,
        .hole = hole,
    };
    uint64_t size = hole;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    int error = admit(log, file, size);
    if (error == -EFBIG) {
        record_log_end(log, which);
    }
    if (error) {
        return error;
    }
    if (!log->queue) {
        error = append_now(log, &head, pieces, count);
    } else if (!log_queue_post(log->queue, &head, pieces, count)) {
        error = -ENOBUFS;
    }
    if (error) {
        refuse(log, file, size);
    }
    return is_full_disk(error) && log->options.waits ? -ENOBUFS : error;
}

void record_log_unload(struct record_log *log, uint64_t address)
{
    const struct log_head head = {.kind = KIND_UNLOAD, .address = address};
    if (!log->living) {
        return;
    }
    if (!log->queue) {
        living_records_remove(log->living, address);
    } else {
        (void)log_queue_post(log->queue, &head, NULL, 0); /* else it lives on in segments */
    }
}

void record_log_end(struct record_log *log, enum record_log_file which)
{
    const struct log_head head = {.kind = KIND_END, .file = which};
    if (!log->queue) {
        close_file(log, &log->files[which]);
    } else {
        set_state(log, &log->files[which], FULL);
        (void)log_queue_post(log->queue, &head, NULL, 0); /* else at the log's end */
    }
}

void record_log_path(struct record_log *log, char path[PATH_MAX])
{
    pthread_mutex_lock(&log->lock);
    memcpy(path, log->path, strlen(log->path) + 1);
    pthread_mutex_unlock(&log->lock);
}

void record_log_on_want(struct record_log *log,
                        void (*wanted)(void *context, enum record_log_want want), void *context)
{
    log->wanted = wanted;
    log->context = context;
}

void record_log_stats(struct record_log *log, enum record_log_file which,
                      struct record_log_stats *stats)
{
    const struct file *file = &log->files[which];
    pthread_mutex_lock(&log->lock);
    *stats = (struct record_log_stats){
        .bytes = file->accepted,
        .lost = file->lost,
        .failed = file->state != OPEN,
        .paused = log->paused,
        .has_paused = log->has_paused,
        .segments = log->segments,
    };
    pthread_mutex_unlock(&log->lock);
}

bool record_log_settle(struct record_log *log)
{
    bool settled = !log->queue || log_queue_settle(log->queue);
    if (!settled) {
        message(MESSAGE_ERROR, "failed to write %s: the disk takes nothing", log->path);
    }
    return settled;
}

/* ---- Life ---- */

static int create_files(struct record_log *log, struct output_file *dump)
{
    const struct record_log_options *options = &log->options;
    if (!options->segment) {
        return dump_place_create(options->directory_fd, options->directory, options->pid, dump);
    }
    char path[PATH_MAX];
    int fd = -1;
    int error = segment_dirs_open(options->directory_fd, options->directory, &log->dirs);
    error = error ? error : segment_dirs_begin(log->dirs, path, &fd);
    if (error) {
        message(MESSAGE_ERROR, "failed to begin a segment in %s: %s", options->directory,
                strerror(-error));
        return error;
    }
    log->segments = 1;
    return create_in(log, RECORD_LOG_DUMP, fd, path, dump);
}

static int open_file(struct record_log *log, struct file *file,
                     const struct record_log_header *header)
{
    file->header = *header;
    int error = write_header(file);
    file->output.outlives_full_disk = log->options.waits;
    file->accepted = file->output.size;
    file->state = error ? CLOSED : OPEN;
    return error;
}

int record_log_open(const struct record_log_options *options,
                    const struct record_log_header *header, struct record_log **out)
{
    struct record_log *log = calloc(1, sizeof(*log));
    if (!log) {
        message(MESSAGE_ERROR, "failed to start a dump in %s: out of memory", options->directory);
        return -ENOMEM;
    }
    struct file *dump = &log->files[RECORD_LOG_DUMP];
    log->options = *options;
    pthread_mutex_init(&log->lock, NULL);
    dump->output.fd = -1;
    dump->last_stamp = options->start;
    log->files[RECORD_LOG_TABLE].output.fd = -1;
    int error = create_files(log, &dump->output);
    if (error) {
        if (log->dirs && log->segments) {
            segment_dirs_abandon(log->dirs);
        }
        free_log(log);
        return error;
    }
    snprintf(log->path, sizeof(log->path), "%s", dump->output.path);
    dump->output.outlives_full_disk = false; /* a start without a header is none */
    error = open_file(log, dump, header);
    error = error ? error : map_marker(dump);
    if (!error && options->segment && !(log->living = living_records_new())) {
        error = -ENOMEM;
    }
    if (!error && options->thread) {
        error = start_thread(log);
    }
    if (error == -ENOMEM || error == -EAGAIN) {
        message(MESSAGE_ERROR, "failed to start %s: %s", log->path, strerror(-error));
    }
    if (error) {
        output_file_discard(&dump->output);
        if (log->dirs) {
            segment_dirs_abandon(log->dirs);
        }
        free_log(log);
        return error;
    }
    set_full_at(log);
    *out = log;
    return 0;
}

int record_log_add_table(struct record_log *log, const struct record_log_header *header)
{
    struct file *file = &log->files[RECORD_LOG_TABLE];
    char path[PATH_MAX];
    record_log_path(log, path);
    size_t stem = strlen(path) - strlen(suffix_of(RECORD_LOG_DUMP));
    if (stem + strlen(suffix_of(RECORD_LOG_TABLE)) >= sizeof(path)) {
        message(MESSAGE_ERROR, "failed to start the table of methods: the path is too long");
        return -ENAMETOOLONG;
    }
    memcpy(path + stem, suffix_of(RECORD_LOG_TABLE), strlen(suffix_of(RECORD_LOG_TABLE)) + 1);
    int error = output_file_create(&file->output, AT_FDCWD, path, OUTPUT_FILE_REFUSE);
    if (error) {
        return error;
    }
    error = open_file(log, file, header);
    if (error) {
        output_file_discard(&file->output);
    } else if (log->dirs) {
        segment_dirs_add_file(log->dirs, strrchr(path, '/') + 1, file->output.fd);
    }
    return error;
}

static void tell_lost(const char *path, uint64_t lost)
{
    if (lost > 0) {
        message(MESSAGE_INFO,
                "%llu records were still waiting for room on the disk of %s, and are "
                "lost",
                (unsigned long long)lost, path);
    }
}

void record_log_close(struct record_log *log)
{
    if (!log->queue) {
        close_files(log);
        free_log(log);
        return;
    }
    char path[PATH_MAX];
    record_log_path(log, path);
    pthread_t thread = log->thread;
    if (!log_queue_stop(log->queue)) {
        message(MESSAGE_WARNING,
                "the disk of %s does not answer: what is still on its way there is left to itself",
                path);
        pthread_detach(thread);
        return;
    }
    pthread_join(thread, NULL);
    tell_lost(path, log->files[RECORD_LOG_DUMP].lost);
    free_log(log);
}

void record_log_abandon(struct record_log *log)
{
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        unmap_marker(&log->files[i]);
        output_file_release(&log->files[i].output);
    }
    segment_dirs_close(log->dirs);
    living_records_free(log->living);
    free(log); /* neither the queue's lock nor its thread is ours */
}
