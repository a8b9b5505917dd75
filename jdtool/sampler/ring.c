#include "jdtool/sampler/ring.h"

#include "jdtool/base/descriptor.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

#define FORMAT_TIMES (PERF_FORMAT_TOTAL_TIME_ENABLED | (uint64_t)PERF_FORMAT_TOTAL_TIME_RUNNING)
#define FORMAT_LOST  (UINT64_C(1) << 4) /* PERF_FORMAT_LOST, Linux 6.0 */

uint64_t ring_read_format(void)
{
    static uint64_t format;
    if (!format) {
        struct perf_event_attr attr = {.size = sizeof attr,
                                       .type = PERF_TYPE_SOFTWARE,
                                       .config = PERF_COUNT_SW_DUMMY,
                                       .exclude_kernel = 1,
                                       .exclude_hv = 1,
                                       .disabled = 1,
                                       .read_format = FORMAT_TIMES | FORMAT_LOST};
        int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
        format = fd >= 0 ? attr.read_format : FORMAT_TIMES;
        descriptor_close(fd);
    }
    return format;
}

bool ring_read(int event, struct ring_counts *counts)
{
    ssize_t size = read(event, counts, sizeof *counts);
    if (size == offsetof(struct ring_counts, lost)) {
        counts->lost = 0;
        return true;
    }
    return size == sizeof *counts;
}

uint64_t ring_lost(int event)
{
    struct ring_counts counts;
    return ring_read(event, &counts) ? counts.lost : 0;
}
