/*
 * The bytes lie in blocks, each given back when the last record in it is gone; the records in a
 * heap whose first one is the oldest. Nearly all come in order, so that putting one in is cheap.
 */
#include "jdtool/perf/record_queue.h"

#include "jdtool/base/array.h"

#include <stdlib.h>

/* So large that it has pages of its own (main.c), which go when it goes. */
#define BLOCK_SIZE ((size_t)512 * 1024)

/* So many that are empty are kept for what comes next. After a time in which nobody read, a hundred
 * may have been full, once. */
#define FREE_MAX 8

struct block {
    struct block *next; /* among those that are free */
    size_t room;
    size_t used;
    uint32_t records; /* that are not gone */
    bool open;        /* new ones go here */
    _Alignas(16) char bytes[];
};

struct entry {
    struct queued_record record; /* the first member */
    struct block *block;
};

struct record_queue {
    size_t budget;
    struct entry *heap;
    uint32_t count;
    uint32_t room;
    struct entry popped; /* block NULL: none */
    struct block *block; /* for the next record; NULL: none yet */
    struct block *free_blocks;
    uint32_t free_count;
    size_t held;     /* bytes of all blocks that are in use */
    uint64_t next;   /* order */
    uint64_t newest; /* time */
    uint64_t round;  /* the newest when the last round ended */
    uint64_t limit;  /* what is not newer is due */
    uint64_t let_go; /* the newest that was popped */
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

static void give_back(struct record_queue *queue, struct block *block)
{
    if (block->records || block->open) {
        return;
    }
    queue->held -= block->room;
    if (block->room == BLOCK_SIZE && queue->free_count < FREE_MAX) {
        block->next = queue->free_blocks;
        queue->free_blocks = block;
        queue->free_count++;
    } else {
        free(block);
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
    if (queue->block) {
        queue->block->open = false;
        give_back(queue, queue->block);
    }
    queue->block = block;
    return block;
}

/* ---- The heap ---- */

static bool is_older(const struct entry *a, const struct entry *b)
{
    return a->record.time < b->record.time ||
           (a->record.time == b->record.time && a->record.order < b->record.order);
}

static void sift_up(struct record_queue *queue, uint32_t at)
{
    struct entry moved = queue->heap[at];
    while (at > 0 && is_older(&moved, &queue->heap[(at - 1) / 2])) {
        queue->heap[at] = queue->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    queue->heap[at] = moved;
}

static void sift_down(struct record_queue *queue)
{
    struct entry moved = queue->heap[0];
    uint32_t at = 0;
    for (;;) {
        uint32_t child = at * 2 + 1;
        if (child >= queue->count) {
            break;
        }
        if (child + 1 < queue->count && is_older(&queue->heap[child + 1], &queue->heap[child])) {
            child++;
        }
        if (!is_older(&queue->heap[child], &moved)) {
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
    size_t taken = ((size_t)record->size + 15) & ~(size_t)15;
    struct block *block = queue->block;
    if (ARRAY_RESERVE(queue->heap, queue->count, queue->room)) {
        return NULL;
    }
    if (!block || block->room - block->used < taken) {
        block = open_block(queue, taken);
        if (!block) {
            return NULL;
        }
    }
    char *bytes = block->bytes + block->used;
    block->used += taken;
    block->records++;
    struct entry *entry = &queue->heap[queue->count];
    *entry = (struct entry){.record = *record, .block = block};
    entry->record.order = queue->next++;
    entry->record.bytes = bytes;
    sift_up(queue, queue->count++);
    if (record->time > queue->newest) {
        queue->newest = record->time;
    }
    queue->late += record->time && record->time < queue->let_go;
    return bytes;
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
    const struct queued_record *first = &queue->heap[0].record;
    return first->time <= queue->limit || record_queue_is_full(queue) ? first : NULL;
}

static void drop_popped(struct record_queue *queue)
{
    struct block *block = queue->popped.block;
    if (block) {
        queue->popped.block = NULL;
        block->records--;
        give_back(queue, block);
    }
}

void record_queue_pop(struct record_queue *queue)
{
    drop_popped(queue);
    queue->popped = queue->heap[0];
    if (queue->popped.record.time > queue->let_go) {
        queue->let_go = queue->popped.record.time;
    }
    queue->heap[0] = queue->heap[--queue->count];
    if (queue->count > 1) {
        sift_down(queue);
    }
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
    drop_popped(queue);
    for (uint32_t i = 0; i < queue->count; i++) {
        queue->heap[i].block->records--;
        give_back(queue, queue->heap[i].block);
    }
    if (queue->block) {
        queue->block->open = false;
        give_back(queue, queue->block);
    }
    while (queue->free_blocks) {
        struct block *next = queue->free_blocks->next;
        free(queue->free_blocks);
        queue->free_blocks = next;
    }
    free(queue->heap);
    free(queue);
}
