#include "writer/log/record_log.h"

#include "writer/disk_room.h"
#include "writer/log/record_log_private.h"
#include "writer/message.h"
#include "writer/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The place of a dump ---- */

/*
 * Finds a place for a dump where nobody's file is in the way: DIRECTORY/jit-PID.dump, or, when
 * there is one already, DIRECTORY/session-2/jit-PID.dump, session-3 and so on. In containers every
 * process is number 1, and several may share one directory at the same time; so what is there is
 * never removed or taken over.
 */

/* More sessions than this in one directory are somebody's mistake. */
enum { SESSIONS_MAX = 1000000 };

/* Whether what stands there keeps us away: a file does, and a link or device is a trap. */
static int look_at(int directory, const char *path, const char *name)
{
    struct stat there;
    if (fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW) != 0) {
        return 0;
    }
    if (!S_ISREG(there.st_mode)) {
        message(MESSAGE_ERROR,
                "failed to create %s/%s: something other than a file is in its place", path, name);
        return -EISDIR;
    }
    return -EEXIST;
}

static int create_in(int directory, const char *path, unsigned pid, struct output_file *file)
{
    /* What stands beside a dump: without it, it would be taken to belong to ours. */
    static const char *const suffixes[] = {"dump", "methods", "threads", "log"};
    char full[PATH_MAX];
    int error = 0;
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes) && !error; i++) {
        char name[64];
        snprintf(name, sizeof(name), "jit-%u.%s", pid, suffixes[i]);
        error = look_at(directory, path, name);
    }
    int n = snprintf(full, sizeof(full), "%s/jit-%u.dump", path, pid);
    if (!error && (n < 0 || (size_t)n >= sizeof(full))) {
        error = -ENAMETOOLONG;
        message(MESSAGE_ERROR, "failed to create a dump in %s: %s", path, strerror(-error));
    }
    return error ? error : output_file_create(file, directory, full, OUTPUT_FILE_REFUSE_QUIETLY);
}

/* In the first session-N that is not there yet. */
static int create_in_session(int directory, const char *path, unsigned pid,
                             struct output_file *file, int *place)
{
    char session[PATH_MAX];
    int error = -EEXIST;
    for (unsigned number = 2; error == -EEXIST && number < SESSIONS_MAX; number++) {
        int n = snprintf(session, sizeof(session), "%s/session-%u", path, number);
        if (n < 0 || (size_t)n >= sizeof(session)) {
            error = -ENAMETOOLONG;
        } else if (mkdirat(directory, strrchr(session, '/') + 1, 0700) != 0) {
            error = -errno;
        } else {
            int own = openat(directory, strrchr(session, '/') + 1,
                             O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (own < 0) {
                error = -errno;
                break;
            }
            error = create_in(own, session, pid, file);
            if (!error) {
                *place = own;
            } else {
                close(own);
                (void)unlinkat(directory, strrchr(session, '/') + 1, AT_REMOVEDIR);
            }
            return error;
        }
    }
    message(MESSAGE_ERROR, "failed to make the directory %s: %s", session, strerror(-error));
    return error;
}

/*
 * Creates the dump of process `pid`. `directory` is a descriptor of the directory `path`, or
 * AT_FDCWD. *place is a descriptor of the directory that the dump is in, for the caller to close.
 * 0, or a negative errno after one message.
 */
static int dump_place_create(int directory, const char *path, unsigned pid,
                             struct output_file *file, int *place)
{
    *file = (struct output_file){.fd = -1};
    int own =
        openat(directory, directory == AT_FDCWD ? path : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (own < 0) {
        int error = -errno;
        message(MESSAGE_ERROR, "failed to open the directory %s: %s", path, strerror(-error));
        return error;
    }
    int error = create_in(own, path, pid, file);
    if (!error) {
        *place = own;
        return 0;
    }
    if (error == -EEXIST) {
        error = create_in_session(own, path, pid, file, place);
    }
    close(own);
    return error;
}

/* ---- The log ---- */

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
    struct log_file *file = &log->files[head->file];
    uint64_t size = head->hole;
    for (int i = 0; i < count; i++) {
        size += pieces[i].iov_len;
    }
    log_file_note_stamp(file, pieces[0].iov_base);
    int error = log_segments_write(log, file, pieces, count, head->hole);
    if (!error) {
        living_records_add(&log->living, head->living, file->output.size - size, size);
        log_thread_ask_owner(log);
    }
    return error;
}

/* Counts a record in, where it is still wanted. */
static int admit(struct record_log *log, struct log_file *file, uint64_t size)
{
    uint64_t max = log->options.max_bytes;
    enum log_file_state open = LOG_FILE_OPEN;
    if (atomic_load(&file->state) != LOG_FILE_OPEN) {
        return -EPIPE;
    }
    if (!max || atomic_load(&file->accepted) + size + sizeof(struct jitdump_close) <= max) {
        atomic_fetch_add(&file->accepted, size);
        return 0;
    }
    if (!atomic_compare_exchange_strong(&file->state, &open, LOG_FILE_FULL)) {
        return -EPIPE; /* an error has closed it just now */
    }
    message(MESSAGE_WARNING, "stopped writing %s: it has reached max=%llu bytes", file->output.path,
            (unsigned long long)max);
    return -EFBIG;
}

static void refuse(struct record_log *log, struct log_file *file, uint64_t size)
{
    atomic_fetch_sub(&file->accepted, size);
    pthread_mutex_lock(&log->lock);
    log->refused = true;
    pthread_mutex_unlock(&log->lock);
}

int record_log_append(struct record_log *log, enum record_log_file which,
                      struct living_record *living, struct iovec *pieces, int count, uint64_t hole)
{
    struct log_file *file = &log->files[which];
    const struct log_head head = {
        .kind = LOG_RECORD,
        .file = which,
        .living = living,
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
        living_record_drop(living);
        return error;
    }
    if (!log->queue) {
        error = append_now(log, &head, pieces, count);
    } else if (!log_queue_post(log->queue, &head, pieces, count)) {
        error = -ENOBUFS;
    }
    if (error) {
        living_record_drop(living);
        refuse(log, file, size);
    }
    return disk_is_full(error) && log->options.waits ? -ENOBUFS : error;
}

void record_log_end(struct record_log *log, enum record_log_file which)
{
    const struct log_head head = {.kind = LOG_END, .file = which};
    if (!log->queue) {
        log_file_close(log, &log->files[which]);
    } else {
        atomic_store(&log->files[which].state, LOG_FILE_FULL);
        (void)log_queue_post(log->queue, &head, NULL, 0); /* else at the log's end */
    }
}

void record_log_path(struct record_log *log, char path[PATH_MAX])
{
    pthread_mutex_lock(&log->lock);
    memcpy(path, log->path, strlen(log->path) + 1);
    pthread_mutex_unlock(&log->lock);
}

int record_log_beside(struct record_log *log, const char *suffix, char path[PATH_MAX])
{
    int directory = log->place;
    if (log->dirs) {
        directory = segment_dirs_parent(log->dirs, path);
    } else {
        record_log_path(log, path);
        *strrchr(path, '/') = '\0';
    }
    size_t length = strlen(path);
    int n = snprintf(path + length, PATH_MAX - length, "/jit-%u.%s", log->options.pid, suffix);
    return n < 0 || (size_t)n >= PATH_MAX - length ? -ENAMETOOLONG : directory;
}

void record_log_on_want(struct record_log *log,
                        bool (*wanted)(void *context, enum record_log_want want), void *context)
{
    log->wanted = wanted;
    log->context = context;
}

uint64_t record_log_lost(const struct record_log *log, enum record_log_file which)
{
    return atomic_load(&log->files[which].lost);
}

void record_log_stats(struct record_log *log, enum record_log_file which,
                      struct record_log_stats *stats)
{
    const struct log_file *file = &log->files[which];
    pthread_mutex_lock(&log->lock);
    *stats = (struct record_log_stats){
        .bytes = file->accepted,
        .lost = file->lost,
        .failed = file->state != LOG_FILE_OPEN,
        .paused = log->paused,
        .has_paused = log->has_paused,
        .segments = log->segments,
    };
    pthread_mutex_unlock(&log->lock);
}

void record_log_process_ends(struct record_log *log)
{
    pthread_mutex_lock(&log->lock);
    log->process_ends = true;
    pthread_mutex_unlock(&log->lock);
}

bool record_log_settle(struct record_log *log)
{
    return log_queue_settle(log->queue, log->path);
}

/* ---- Life ---- */

static int create_files(struct record_log *log, struct output_file *dump)
{
    const struct record_log_options *options = &log->options;
    if (!options->segment) {
        return dump_place_create(options->directory_fd, options->directory, options->pid, dump,
                                 &log->place);
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
    return log_segments_create(log, RECORD_LOG_DUMP, fd, path, dump);
}

static int open_file(struct record_log *log, struct log_file *file,
                     const struct record_log_header *header)
{
    file->header = *header;
    int error = log_file_write_header(file);
    file->output.outlives_full_disk = log->options.waits;
    file->accepted = file->output.size;
    file->state = error ? LOG_FILE_CLOSED : LOG_FILE_OPEN;
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
    struct log_file *dump = &log->files[RECORD_LOG_DUMP];
    log->options = *options;
    log->place = -1;
    pthread_mutex_init(&log->lock, NULL);
    dump->output.fd = -1;
    dump->last_stamp = options->start;
    log->files[RECORD_LOG_TABLE].output.fd = -1;
    int error = create_files(log, &dump->output);
    if (error) {
        if (log->dirs && log->segments) {
            segment_dirs_abandon(log->dirs);
        }
        record_log_free(log);
        return error;
    }
    snprintf(log->path, sizeof(log->path), "%s", dump->output.path);
    dump->output.outlives_full_disk = false; /* a start without a header is none */
    error = open_file(log, dump, header);
    error = error ? error : log_file_map_marker(dump);
    if (!error && options->thread) {
        error = log_thread_start(log);
    }
    if (error == -ENOMEM || error == -EAGAIN) {
        message(MESSAGE_ERROR, "failed to start %s: %s", log->path, strerror(-error));
    }
    if (error) {
        output_file_discard(&dump->output);
        if (log->dirs) {
            segment_dirs_abandon(log->dirs);
        }
        record_log_free(log);
        return error;
    }
    log_segments_set_full_at(log);
    *out = log;
    return 0;
}

int record_log_add_table(struct record_log *log, const struct record_log_header *header)
{
    struct log_file *file = &log->files[RECORD_LOG_TABLE];
    char path[PATH_MAX];
    record_log_path(log, path);
    size_t stem = strlen(path) - strlen(log_file_suffix(RECORD_LOG_DUMP));
    if (stem + strlen(log_file_suffix(RECORD_LOG_TABLE)) >= sizeof(path)) {
        message(MESSAGE_ERROR, "failed to start the table of methods: the path is too long");
        return -ENAMETOOLONG;
    }
    memcpy(path + stem, log_file_suffix(RECORD_LOG_TABLE),
           strlen(log_file_suffix(RECORD_LOG_TABLE)) + 1);
    int directory = log->dirs ? segment_dirs_present(log->dirs) : log->place;
    int error = output_file_create(&file->output, directory, path, OUTPUT_FILE_REFUSE);
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

void record_log_close_files(struct record_log *log)
{
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        if (log->files[i].output.fd >= 0) {
            log_file_close(log, &log->files[i]);
        }
    }
}

/* What both the process and a fork of it may let go. */
static void release_files(struct record_log *log)
{
    for (int i = 0; i < RECORD_LOG_FILES; i++) {
        log_file_unmap_marker(&log->files[i]);
        output_file_release(&log->files[i].output);
    }
    segment_dirs_close(log->dirs);
    if (log->place >= 0) {
        close(log->place);
    }
    living_records_free(&log->living);
}

void record_log_free(struct record_log *log)
{
    release_files(log);
    log_queue_free(log->queue);
    pthread_mutex_destroy(&log->lock);
    free(log);
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
        record_log_close_files(log);
        record_log_free(log);
        return;
    }
    char path[PATH_MAX];
    record_log_path(log, path);
    if (!log_queue_stop(log->queue, log->thread, path)) {
        return;
    }
    tell_lost(path, log->files[RECORD_LOG_DUMP].lost);
    record_log_free(log);
}

void record_log_abandon(struct record_log *log)
{
    release_files(log);
    free(log); /* neither the queue's lock nor its thread is ours */
}
