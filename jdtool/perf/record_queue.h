/*
 * Puts records in the order of their times. perf writes what it takes out of the buffers of each
 * processor one after the other, so that of two records the later may stand first; but when it has
 * been through all buffers it says so (PERF_RECORD_FINISHED_ROUND), and no record behind the end of
 * a round is older than the newest one before the end of the round before it. (That is also how
 * perf itself sorts: tools/perf/util/ordered-events.c.)
 *
 * What waits here is a copy. It has a budget: without rounds, or with very long ones, the oldest
 * have to go before order is certain.
 */
#ifndef JD_TOOL_RECORD_QUEUE_H
#define JD_TOOL_RECORD_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_queue;

/* A record that waits. Arrival, kind and pid are the caller's, and come back as they were given; so
 * are the bytes. */
struct queued_record {
    uint64_t time;
    uint64_t order;   /* in which it was put in */
    uint64_t arrival; /* when, on whatever clock */
    void *bytes;
    void *block; /* the queue's: where the bytes lie */
    uint32_t size;
    uint32_t kind;
    uint32_t pid;
};

/* budget: bytes that may wait. NULL: no memory. */
struct record_queue *record_queue_new(size_t budget);
void record_queue_free(struct record_queue *queue); /* NULL is fine */

/*
 * Takes a record in: its time, size and what is the caller's. Returns where its bytes go, aligned
 * to 16, for the caller to fill in. A time of 0 is before all others. NULL: no memory.
 */
void *record_queue_put(struct record_queue *queue, const struct queued_record *record);

/* A round has ended; or nothing more will come. */
void record_queue_round(struct record_queue *queue);
void record_queue_finish(struct record_queue *queue);

/* The oldest record, when nothing older can come; it lives until the next call. NULL: there is none
 * that is due. */
const struct queued_record *record_queue_first(struct record_queue *queue);

/* Takes the first one out. Its bytes live until it is given back, which all are before the queue is
 * freed. */
void record_queue_take(struct record_queue *queue, struct queued_record *taken);
void record_queue_give_back(struct record_queue *queue, const struct queued_record *taken);

/* Whether more waits than the budget allows; the first record is then due, whatever comes later. */
bool record_queue_is_full(const struct record_queue *queue);

/* How many records came that are older than one that had been taken. */
uint64_t record_queue_late(const struct record_queue *queue);

#endif
