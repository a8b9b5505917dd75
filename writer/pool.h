/*
 * Memory for many things of one size that come and go: taken from blocks that are given back at the
 * end, all at once. Not thread-safe.
 */
#ifndef JD_WRITER_POOL_H
#define JD_WRITER_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool_block;
struct pool_item;

/* Start with POOL_INIT. */
struct pool {
    size_t item_size; /* bytes, a multiple of a pointer's */
    struct pool_item *spare;
    size_t spare_count;
    struct pool_block *blocks;
};

/* For things of so many bytes, each where a uint64_t may be. */
#define POOL_INIT(bytes)                                                                           \
    ((struct pool){.item_size = ((bytes) + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *)})

/* Makes sure that the next n can be had. False: no memory. */
bool pool_reserve(struct pool *pool, size_t n);

/* One of them, as it was left. NULL: no memory. */
void *pool_take(struct pool *pool);

void pool_give_back(struct pool *pool, void *item);

/* Frees all, also what was not given back. */
void pool_free(struct pool *pool);

#endif
