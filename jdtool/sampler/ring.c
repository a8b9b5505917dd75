#include "jdtool/sampler/ring.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int ring_open(struct ring *ring, int event, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t wanted = page;
    while (wanted < size) {
        wanted *= 2;
    }
    void *at = mmap(NULL, page + wanted, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
    if (at == MAP_FAILED) {
        return -errno;
    }
    *ring = (struct ring){.page = at,
                          .data = (const uint8_t *)at + page,
                          .size = wanted,
                          .page_size = page,
                          .event = event};
    return 0;
}

void ring_close(struct ring *ring)
{
    if (ring->page) {
        (void)munmap(ring->page, ring->page_size + ring->size);
        ring->page = NULL;
    }
}

uint64_t ring_from(const struct ring *ring)
{
    return ring->page->data_tail; /* we alone write it */
}

uint64_t ring_until(const struct ring *ring)
{
    return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

uint64_t ring_u64(const struct ring *ring, uint64_t at)
{
    uint64_t value;
    memcpy(&value, ring->data + (at & (ring->size - 1)), sizeof value);
    return value;
}

void ring_copy(const struct ring *ring, uint64_t at, void *to, size_t size)
{
    size_t from = at & (ring->size - 1);
    size_t first = ring->size - from < size ? ring->size - from : size;
    memcpy(to, ring->data + from, first);
    memcpy((uint8_t *)to + first, ring->data, size - first);
}

void ring_release(struct ring *ring, uint64_t until)
{
    __atomic_store_n(&ring->page->data_tail, until, __ATOMIC_RELEASE);
}
