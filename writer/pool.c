#include "writer/pool.h"

#include <stdint.h>
#include <stdlib.h>

enum { BLOCK_BYTES = 16 * 1024 };

struct pool_item {
    struct pool_item *next;
};

struct pool_block {
    struct pool_block *next;
    uint64_t items[];
};

void pool_give_back(struct pool *pool, void *item)
{
    struct pool_item *spare = item;
    spare->next = pool->spare;
    pool->spare = spare;
    pool->spare_count++;
}

/* How many are in a block. */
static size_t block_count(const struct pool *pool)
{
    return (BLOCK_BYTES - sizeof(struct pool_block)) / pool->item_size;
}

/* The first of the newest block that was never taken: they are taken in their order. */
static void *first_fresh(const struct pool *pool)
{
    return (char *)pool->blocks->items + (block_count(pool) - pool->fresh) * pool->item_size;
}

bool pool_reserve(struct pool *pool, size_t n)
{
    while (pool->spare_count + pool->fresh < n) {
        struct pool_block *block = calloc(1, BLOCK_BYTES);
        if (!block) {
            return false;
        }
        for (; pool->fresh > 0; pool->fresh--) {
            pool_give_back(pool, first_fresh(pool));
        }
        block->next = pool->blocks;
        pool->blocks = block;
        pool->fresh = block_count(pool);
    }
    return true;
}

void *pool_take(struct pool *pool)
{
    struct pool_item *item = pool->spare;
    if (item) {
        pool->spare = item->next;
        pool->spare_count--;
        return item;
    }
    if (!pool_reserve(pool, 1)) {
        return NULL;
    }
    item = first_fresh(pool);
    pool->fresh--;
    return item;
}

void pool_visit(const struct pool *pool, void (*visit)(void *item))
{
    for (struct pool_block *block = pool->blocks; block; block = block->next) {
        for (size_t i = 0; i < block_count(pool); i++) {
            visit((char *)block->items + i * pool->item_size);
        }
    }
}

void pool_free(struct pool *pool)
{
    while (pool->blocks) {
        struct pool_block *block = pool->blocks;
        pool->blocks = block->next;
        free(block);
    }
    *pool = (struct pool){.item_size = pool->item_size};
}

struct pool_large {
    struct pool_large *next, *before;
    uint64_t item[];
};

/* Which pool things of that size are from; NULL: none. */
static struct pool *pool_of_size(struct pools *pools, size_t size)
{
    const size_t number = (size - 1) / POOLS_STEP;
    struct pool *pool = size <= POOLS_LARGEST ? &pools->of_size[number] : NULL;
    if (pool) {
        pool->item_size = (number + 1) * POOLS_STEP;
    }
    return pool;
}

void *pools_take(struct pools *pools, size_t size)
{
    struct pool *pool = pool_of_size(pools, size);
    if (pool) {
        return pool_take(pool);
    }
    struct pool_large *large = malloc(sizeof(*large) + size);
    if (!large) {
        return NULL;
    }
    *large = (struct pool_large){.next = pools->large};
    if (large->next) {
        large->next->before = large;
    }
    pools->large = large;
    return large->item;
}

void pools_give_back(struct pools *pools, void *item, size_t size)
{
    struct pool *pool = pool_of_size(pools, size);
    if (pool) {
        pool_give_back(pool, item);
        return;
    }
    struct pool_large *large =
        (struct pool_large *)((char *)item - offsetof(struct pool_large, item));
    *(large->before ? &large->before->next : &pools->large) = large->next;
    if (large->next) {
        large->next->before = large->before;
    }
    free(large);
}

void pools_free(struct pools *pools)
{
    for (size_t i = 0; i < sizeof(pools->of_size) / sizeof(*pools->of_size); i++) {
        pool_free(&pools->of_size[i]);
    }
    while (pools->large) {
        struct pool_large *large = pools->large;
        pools->large = large->next;
        free(large);
    }
}
