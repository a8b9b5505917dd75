/*
 * Memory for many things that come and go, of one size or of several: taken from blocks that are
 * given back at the end, all at once. Not thread-safe.
 */
#ifndef JD_WRITER_POOL_H
#define JD_WRITER_POOL_H

#include <stdbool.h>
#include <stddef.h>

struct pool_block;
struct pool_item;
struct pool_large;

/* Start with POOL_INIT. */
struct pool {
    size_t item_size;        /* bytes, a multiple of a pointer's */
    struct pool_item *spare; /* given back */
    size_t spare_count;
    size_t fresh; /* never taken, at the end of the newest block */
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

/* Shows each of them, also those that were given back or never taken: these are as they were left
 * (all zeroes at first), but for the first word. */
void pool_visit(const struct pool *pool, void (*visit)(void *item));

/* Frees all, also what was not given back. */
void pool_free(struct pool *pool);

/* The same for things of any size; most of them are small. Zeroed: empty. */
enum { POOLS_STEP = 16, POOLS_LARGEST = 512 };
struct pools {
    struct pool of_size[POOLS_LARGEST / POOLS_STEP];
    struct pool_large *large; /* each in a block of its own */
};

/* `size` bytes, 1 or more, as they were left. NULL: no memory. */
void *pools_take(struct pools *pools, size_t size);

/* `size` is what was asked for. */
void pools_give_back(struct pools *pools, void *item, size_t size);

void pools_free(struct pools *pools);

#endif
