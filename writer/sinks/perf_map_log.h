/*
 * Who writes a perf map (perf_map_file.h): with a `thread` one of its own, which alone touches the
 * disk and gets what it is to write through a bounded queue, else the caller. As a record log
 * (record_log.h) does it, and with the same words: where the queue is full, lines are refused, and
 * the owner is asked to tell of everything once more when there is room again; the file system
 * keeps its `reserve`; with `waits` the map pauses where there is no more room but for that.
 *
 * All functions but settle and make_room: one at a time.
 */
#ifndef JD_WRITER_PERF_MAP_LOG_H
#define JD_WRITER_PERF_MAP_LOG_H

#include "writer/log/record_log.h"
#include "writer/occupancy/range_map.h"

struct perf_map_log;

struct perf_map_log_options {
    const char *path;
    bool thread;
    bool waits;         /* for room on the disk */
    uint64_t reserve;   /* bytes of the file system, or DISK_ROOM_DEFAULT */
    uint64_t max_bytes; /* the map ends before it is larger; 0: no limit */
};

struct perf_map_log_stats {
    uint64_t bytes; /* in the file */
    bool failed;    /* ended for good */
    bool paused;
    bool has_paused; /* at some time, and told so */
};

/* 0 or a negative errno after a message. */
int perf_map_log_open(const struct perf_map_log_options *options, struct perf_map_log **out);

/* As record_log_on_want; RECORD_LOG_WANTS_ALL is all that is wanted. */
void perf_map_log_on_want(struct perf_map_log *log,
                          bool (*wanted)(void *context, enum record_log_want want), void *context);

/* A line of the group that the next commit hands over. Without memory the commit fails. */
void perf_map_log_put(struct perf_map_log *log, struct range range, const char *name);

/* Hands the lines over, all or none: 0; -ENOBUFS: refused; -ENOMEM: these only; any other negative
 * errno: the map has ended, after a message. */
int perf_map_log_commit(struct perf_map_log *log);

/* What was told of a range is elsewhere now. As commit. */
int perf_map_log_move(struct perf_map_log *log, struct range from, uint64_t to);

/* As record_log_make_room and record_log_settle. */
void perf_map_log_make_room(struct perf_map_log *log, bool patient);
bool perf_map_log_settle(struct perf_map_log *log);

void perf_map_log_stats(struct perf_map_log *log, struct perf_map_log_stats *stats);

/* Ends the map and frees the log. A disk that does not answer within half a second is not waited
 * for, which is told. */
void perf_map_log_close(struct perf_map_log *log);

/* In a fork of the process: frees what can be, and leaves the file alone. */
void perf_map_log_abandon(struct perf_map_log *log);

#endif
