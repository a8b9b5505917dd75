/*
 * What a record log is, for the files that make it one: record_log.c (whoever owns it),
 * log_thread.c (who writes), log_segments.c and log_file.c (where to).
 *
 * Who may touch what: `lock` guards what is said to be under it. All else, the files above all, is
 * the thread's, or, without one, whoever's calls it is, one at a time.
 */
#ifndef JD_WRITER_RECORD_LOG_PRIVATE_H
#define JD_WRITER_RECORD_LOG_PRIVATE_H

#include "writer/log/living_records.h"
#include "writer/log/log_queue.h"
#include "writer/log/record_log.h"
#include "writer/log/segment_dirs.h"
#include "writer/output_file.h"

#include <pthread.h>
#include <stdatomic.h>

enum log_message_kind { LOG_RECORD, LOG_END };

enum log_file_state {
    LOG_FILE_CLOSED, /* or never opened */
    LOG_FILE_OPEN,
    LOG_FILE_FULL, /* max was reached: it is to be closed */
};

struct log_file {
    struct record_log_header header;
    struct output_file output;
    void *marker; /* the mapping that perf looks for */
    size_t marker_size;
    uint64_t last_stamp;
    _Atomic(enum log_file_state) state;
    _Atomic(uint64_t) accepted; /* bytes; whoever appends changes it, one at a time */
    _Atomic(uint64_t) lost;     /* records; the thread's */
};

struct record_log {
    struct record_log_options options;
    struct log_file files[RECORD_LOG_FILES];
    struct log_queue *queue; /* NULL: no thread */
    pthread_t thread;
    struct segment_dirs *dirs;    /* NULL: no segments */
    int place;                    /* without them: a descriptor of the dump's directory */
    struct living_records living; /* with segments */
    uint64_t full_at;             /* bytes of a segment */
    uint64_t table_bytes;         /* of the last segment's table */
    bool (*wanted)(void *context, enum record_log_want want);
    void *context;
    struct log_again again;

    pthread_mutex_t lock; /* of these, and what is said to be above */
    bool process_ends;
    bool refused; /* something, since everything was asked for */
    bool table_begun;
    bool paused;
    bool has_paused;
    uint64_t segments;
    char path[PATH_MAX];
};

/* ---- log_file.c: one file ---- */

/* "dump" or "methods". */
const char *log_file_suffix(enum record_log_file file);

/* Maps its first page executable: perf learns of the dump from the event of this mapping. 0 or a
 * negative errno after a message. */
int log_file_map_marker(struct log_file *file);
void log_file_unmap_marker(struct log_file *file);

/* 0 or a negative errno. */
int log_file_write_header(struct log_file *file);

/* Keeps the latest stamp of the records that are written, of which this is one's beginning. */
void log_file_note_stamp(struct log_file *file, const void *prefix);

/* The record with which a dump ends, where the file is open: stamped now (record_log_process_ends:
 * a while later), and later than all others. */
void log_file_write_end(struct record_log *log, struct log_file *file);

/* The file ends, whole. */
void log_file_close(struct record_log *log, struct log_file *file);

/* ---- log_segments.c: the files of a segment, and of the next one ---- */

/* Creates a file in a segment's directory, which lies at `path`. 0 or a negative errno. */
int log_segments_create(struct record_log *log, enum record_log_file which, int directory,
                        const char *path, struct output_file *out);

/* Says at how many bytes the present segment, which has just begun, is full. */
void log_segments_set_full_at(struct record_log *log);

/* Bytes of the present files. */
uint64_t log_segments_bytes(const struct record_log *log);

/*
 * Writes records at the end of a file, in the next segment where this one is full; older segments
 * give way where the disk keeps its reserve. The pieces are used up. 0, or a negative errno: what
 * disk_is_full says can be tried again where the log waits, anything else has ended the
 * file, after a message.
 */
int log_segments_write(struct record_log *log, struct log_file *file, struct iovec *pieces,
                       int count, uint64_t hole);

/* ---- log_thread.c: who writes ---- */

/* Makes the queue and starts its thread, which frees the log if the owner has left it to itself. 0
 * or a negative errno, without a message. */
int log_thread_start(struct record_log *log);

/* Asks the owner for what is missing, where there is anything, and not too often. */
void log_thread_ask_owner(struct record_log *log);

/* ---- record_log.c: its end ---- */

void record_log_close_files(struct record_log *log);
void record_log_free(struct record_log *log);

#endif
