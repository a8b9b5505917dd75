/*
 * Records lie in blocks, each given back when the last one in it is gone. What a processor has
 * written comes in order, so those that do are linked, and of such a run the first one alone stands
 * in a heap, whose own first is the oldest.
 */
#include "jdtool/perf/record_queue.h"

#include "jdtool/base/array.h"

#include <stdlib.h>

/* So large that it has pages of its own (main.c), which go when it goes. */
#define BLOCK_SIZE ((size_t)512 * 1024)

/* So many that are empty are kept for what comes next. After a time in which nobody read, a hundred
 * may have been full, once. */
#define FREE_MAX 8

/* In front of its bytes. */
struct waiting {
    struct queued_record record;
    struct waiting *behind; /* in its run; NULL: it is the last one */
};

_Static_assert(sizeof(struct waiting) % 16 == 0, "bytes behind it are aligned");

struct block {
    struct block *next; /* among those that are free */
    size_t room;
    size_t used;
    uint32_t waiting; /* of its records */
    uint32_t records; /* that wait, or were taken and not given back */
    bool open;        /* new ones go here */
    _Alignas(16) char bytes[];
};

struct record_queue {
    size_t budget;
    struct waiting **heap; /* the first of each run */
    uint32_t count;
    uint32_t room;
    struct waiting *last; /* that was put in, the last of its run; NULL: it was taken */
    struct block *block;  /* for the next record; NULL: none yet */
    struct block *free_blocks;
    uint32_t free_count;
    size_t held;     /* bytes of all blocks in which something waits */
    uint64_t next;   /* order */
    uint64_t newest; /* time */
    uint64_t round;  /* the newest when the last round ended */
    uint64_t limit;  /* what is not newer is due */
    uint64_t let_go; /* the newest that was taken */
    uint64_t late;
};

struct record_queue *record_queue_new(size_t budget)
{
    struct record_queue *queue = calloc(1, sizeof *queue);
    if (queue) {
        queue->budget = budget;
    }
    return queue;
}

/* ---- Blocks ---- */

/* Whatever was taken counts no more for the budget, however long its taker needs it: so what is let
 * go early does not depend on that. */
static void settle(struct record_queue *queue, struct block *block)
{
    if (block->waiting == 0 && !block->open) {
        queue->held -= block->room;
    }
}

static void give_back(struct record_queue *queue, struct block *block)
{
    if (block->records || block->open) {
        return;
    }
    if (block->room == BLOCK_SIZE && queue->free_count < FREE_MAX) {
        block->next = queue->free_blocks;
        queue->free_blocks = block;
        queue->free_count++;
    } else {
        free(block);
    }
}

/* No more goes into the one that is open. */
static void close_block(struct record_queue *queue)
{
    struct block *block = queue->block;
    if (block) {
        block->open = false;
        settle(queue, block);
        give_back(queue, block);
    }
}

static struct block *open_block(struct record_queue *queue, size_t size)
{
    size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
    struct block *block = room == BLOCK_SIZE ? queue->free_blocks : NULL;
    if (block) {
        queue->free_blocks = block->next;
        queue->free_count--;
    } else {
        block = malloc(sizeof *block + room);
        if (!block) {
            return NULL;
        }
    }
    *block = (struct block){.room = room, .open = true};
    queue->held += room;
    close_block(queue);
    queue->block = block;
    return block;
}

/* ---- The heap ---- */

static bool is_older(const struct queued_record *a, const struct queued_record *b)
{
    return a->time < b->time || (a->time == b->time && a->order < b->order);
}

static void sift_up(struct record_queue *queue, uint32_t at, struct waiting *moved)
{
    while (at > 0 && is_older(&moved->record, &queue->heap[(at - 1) / 2]->record)) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = moved;
}

static void sift_down(struct record_queue *queue, struct waiting *moved)
{
    uint32_t at = 0;
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= queue->count) {
            break;
        }
        if (child + 1 < queue->count &&
            is_older(&queue->heap[child + 1]->record, &queue->heap[child]->record)) {
            child++;
        }
        if (!is_older(&queue->heap[child]->record, &moved->record)) {
            break;
        }
        queue->heap[at] = queue->heap[child];
        at = child;
    }
    queue->heap[at] = moved;
}

/* ---- In and out ---- */

void *record_queue_put(struct record_queue *queue, const struct queued_record *record)
{
    size_t taken = sizeof(struct waiting) + (((size_t)record->size + 15) & ~(size_t)15);
    bool goes_on = queue->last && queue->last->record.time <= record->time;
    struct block *block = queue->block;
    if (!goes_on && ARRAY_RESERVE(queue->heap, queue->count, queue->room)) {
        return NULL;
    }
    if (!block || block->room - block->used < taken) {
        block = open_block(queue, taken);
        if (!block) {
            return NULL;
        }
    }
    struct waiting *waiting = (struct waiting *)(void *)(block->bytes + block->used);
    block->used += taken;
    block->waiting++;
    block->records++;
    waiting->record = *record;
    waiting->record.order = queue->next++;
    waiting->record.bytes = waiting + 1;
    waiting->record.block = block;
    waiting->behind = NULL;
    if (goes_on) {
        queue->last->behind = waiting;
    } else {
        sift_up(queue, queue->count++, waiting);
    }
    queue->last = waiting;
    if (record->time > queue->newest) {
        queue->newest = record->time;
    }
    queue->late += record->time && record->time < queue->let_go;
    return waiting + 1;
}

void record_queue_round(struct record_queue *queue)
{
    queue->limit = queue->round > queue->limit ? queue->round : queue->limit;
    queue->round = queue->newest;
}

void record_queue_finish(struct record_queue *queue)
{
    queue->limit = UINT64_MAX;
}

bool record_queue_is_full(const struct record_queue *queue)
{
    return queue->held > queue->budget;
}

const struct queued_record *record_queue_first(struct record_queue *queue)
{
    if (queue->count == 0) {
        return NULL;
    }
    const struct queued_record *first = &queue->heap[0]->record;
    return first->time <= queue->limit || record_queue_is_full(queue) ? first : NULL;
}

void record_queue_take(struct record_queue *queue, struct queued_record *taken)
{
    const struct waiting *first = queue->heap[0];
    struct waiting *next = first->behind ? first->behind : queue->heap[--queue->count];
    *taken = first->record;
    if (taken->time > queue->let_go) {
        queue->let_go = taken->time;
    }
    queue->last = queue->last == first ? NULL : queue->last;
    if (queue->count > 0) {
        sift_down(queue, next);
    }
    struct block *block = taken->block;
    block->waiting--;
    settle(queue, block);
}

void record_queue_give_back(struct record_queue *queue, const struct queued_record *taken)
{
    struct block *block = taken->block;
    block->records--;
    give_back(queue, block);
}

uint64_t record_queue_late(const struct record_queue *queue)
{
    return queue->late;
}

void record_queue_free(struct record_queue *queue)
{
    if (!queue) {
        return;
    }
    while (queue->count) {
        struct queued_record taken;
        record_queue_take(queue, &taken);
        record_queue_give_back(queue, &taken);
    }
    close_block(queue);
    while (queue->free_blocks) {
        struct block *next = queue->free_blocks->next;
        free(queue->free_blocks);
        queue->free_blocks = next;
    }
    free(queue->heap);
    free(queue);
}
