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

bool pool_reserve(struct pool *pool, size_t n)
{
    while (pool->spare_count < n) {
        const size_t count = (BLOCK_BYTES - sizeof(struct pool_block)) / pool->item_size;
        struct pool_block *block = malloc(sizeof(*block) + count * pool->item_size);
        if (!block) {
            return false;
        }
        block->next = pool->blocks;
        pool->blocks = block;
        for (size_t i = count; i-- > 0;) { /* the first is taken first */
            pool_give_back(pool, (char *)block->items + i * pool->item_size);
        }
    }
    return true;
}

void *pool_take(struct pool *pool)
{
    if (!pool->spare) {
        (void)pool_reserve(pool, 1);
    }
    struct pool_item *item = pool->spare;
    if (!item) {
        return NULL;
    }
    pool->spare = item->next;
    pool->spare_count--;
    return item;
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
