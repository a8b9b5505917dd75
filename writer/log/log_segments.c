/*
 * The files of a segment, how records get into them, and how the next segment begins:
 *
 *   segment-000001/jit-7.dump   [header | a b c d e f g ... | CLOSE]
 *                                          |   |     |        b, d, g: of code that still lives
 *                                          v   v     v
 *   segment-000002/jit-7.dump   [header |  b   d     g | h i ...
 *
 *   S1  A segment's dump begins with the records of all code that lives, and they are in it where
 *       their owners say: the segments before can go.
 *   S2  A segment is never full of what it begins with.
 *   S3  Of each kind of file one is written to, which is the newest segment's.
 */
#include "writer/log/record_log_private.h"

#include "writer/disk_room.h"
#include "writer/invariant.h"
#include "writer/message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COPY_BYTES = 256 * 1024 };

uint64_t log_segments_bytes(const struct record_log *log)
{
    return log->files[RECORD_LOG_DUMP].output.size + log->files[RECORD_LOG_TABLE].output.size;
}

/* ---- Segments ---- */

int log_segments_create(struct record_log *log, enum record_log_file which, int directory,
                        const char *path, struct output_file *out)
{
    char full[PATH_MAX];
    int n = snprintf(full, sizeof(full), "%s/jit-%u.%s", path, log->options.pid,
                     log_file_suffix(which));
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
static int copy(const struct output_file *from, uint64_t offset, uint64_t size,
                struct output_file *to, uint8_t *bytes)
{
    for (uint64_t done = 0; done < size;) {
        uint64_t left = size - done;
        ssize_t n = pread(from->fd, bytes, left < COPY_BYTES ? (size_t)left : COPY_BYTES,
                          (off_t)(offset + done));
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
    const struct living_record *at = log->living.first;
    const uint64_t moved_to = to->size;
    uint64_t offset;
    uint64_t size;
    uint8_t *bytes = malloc(COPY_BYTES);
    int error = bytes ? 0 : -ENOMEM;
    while (!error && living_records_stretch(&at, &offset, &size)) {
        error = copy(&log->files[RECORD_LOG_DUMP].output, offset, size, to, bytes);
    }
    if (!error) {
        living_records_move(&log->living, moved_to);
        invariant(S1, !log->living.last ||
                          log->living.last->offset + log->living.last->size == to->size);
    }
    free(bytes);
    return error;
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
        struct log_file *file = &log->files[i];
        struct output_file old = file->output;
        if (atomic_load(&file->state) != LOG_FILE_OPEN) {
            continue;
        }
        error = log_segments_create(log, (enum record_log_file)i, directory, path, &fresh[i]);
        if (!error) {
            file->output = fresh[i];
            error = log_file_write_header(file);
            fresh[i] = file->output;
            file->output = old;
        }
    }
    error = error ? error : write_living(log, &fresh[RECORD_LOG_DUMP]);
    if (error) {
        segment_dirs_abandon(log->dirs); /* S3: the old ones are the newest's again */
        for (int i = 0; i < RECORD_LOG_FILES; i++) {
            output_file_release(&fresh[i]);
        }
    }
    return error;
}

/* Closes the old files and goes on in the new ones. */
static int change_over(struct record_log *log, struct output_file fresh[RECORD_LOG_FILES])
{
    uint64_t bytes = log_segments_bytes(log);
    int error = 0;
    log->table_bytes = log->files[RECORD_LOG_TABLE].output.size;
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        struct log_file *file = &log->files[i];
        if (!fresh[i].path) {
            continue;
        }
        struct log_file old = {.output = file->output,
                               .marker = file->marker,
                               .marker_size = file->marker_size,
                               .last_stamp = file->last_stamp};
        file->marker = NULL;
        file->output = fresh[i];
        if (i == RECORD_LOG_DUMP) {
            error = log_file_map_marker(
                file); /* before the other goes: perf, looking now, finds either */
            log_file_write_end(log, &old);
        }
        log_file_unmap_marker(&old);
        output_file_release(&old.output);
        invariant(S3, old.output.fd < 0 && file->output.fd >= 0);
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
void log_segments_set_full_at(struct record_log *log)
{
    uint64_t begun = log_segments_bytes(log) + log->table_bytes;
    uint64_t least = begun + (begun > log->options.segment ? begun : log->options.segment) / 4;
    log->full_at = least > log->options.segment ? least : log->options.segment;
    invariant(S2, log->full_at >= log->options.segment && log->full_at >= log_segments_bytes(log));
}

static int next_segment(struct record_log *log)
{
    struct output_file fresh[RECORD_LOG_FILES] = {{.fd = -1}, {.fd = -1}};
    uint64_t needed = living_records_prune(&log->living);
    while (disk_room(log->files[RECORD_LOG_DUMP].output.fd, log->options.reserve) < needed) {
        if (!segment_dirs_give_way(log->dirs)) {
            return -ENOSPC;
        }
    }
    int error = begin_segment(log, fresh);
    error = error ? error : change_over(log, fresh);
    if (!error) {
        log_segments_set_full_at(log);
    } else if (!disk_is_full(error)) {
        message(MESSAGE_ERROR, "failed to begin the segment after %s: %s", log->path,
                strerror(-error));
    }
    return error;
}

/* ---- Records reach the files ---- */

/* Whether so many bytes may be written; older segments give way. */
static bool has_room(struct record_log *log, const struct log_file *file, uint64_t size)
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

int log_segments_write(struct record_log *log, struct log_file *file, struct iovec *pieces,
                       int count, uint64_t hole)
{
    uint64_t size = 0;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    int error = 0;
    if (log->dirs && log_segments_bytes(log) + size > log->full_at) {
        error = next_segment(log);
        if (error && !disk_is_full(error)) {
            log_file_close(log, file);
            return error;
        }
    }
    if (!error) {
        error = has_room(log, file, size)
                    ? output_file_append_pieces(&file->output, pieces, count, hole)
                    : -ENOSPC;
    }
    if (error && (!disk_is_full(error) || !log->options.waits)) {
        if (error == -ENOSPC && file->output.fd >= 0) {
            message(MESSAGE_ERROR, "failed to write %s: %s; it ends here", file->output.path,
                    strerror(-error));
        }
        log_file_close(log, file);
    }
    return error;
}
