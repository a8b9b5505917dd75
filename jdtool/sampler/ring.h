/*
 * A buffer that the kernel fills with records and we read in place (perf_event_mmap_page). Records
 * stand at multiples of 8 and wrap around at the buffer's end; so what is read of one goes through
 * here. Positions only grow.
 */
#ifndef JD_TOOL_SAMPLER_RING_H
#define JD_TOOL_SAMPLER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct perf_event_mmap_page;

struct ring {
    struct perf_event_mmap_page *page; /* NULL: not open */
    const uint8_t *data;
    size_t size; /* of the data, a power of two */
    size_t page_size;
    int event; /* its own; others write into it by PERF_EVENT_IOC_SET_OUTPUT */
};

/* Maps the buffer of an event; size in bytes, made a power of two of pages. 0 or a negative errno:
 * -EPERM beyond what one may lock. */
int ring_open(struct ring *ring, int event, size_t size);
void ring_close(struct ring *ring); /* one that is not open is fine; the event stays open */

/* Where the next record to be read stands, and where they end now. Both equal: there is none. */
uint64_t ring_from(const struct ring *ring);
uint64_t ring_until(const struct ring *ring);

/* 8 bytes at a position that is a multiple of 8, and any number of bytes. */
uint64_t ring_u64(const struct ring *ring, uint64_t at);
void ring_copy(const struct ring *ring, uint64_t at, void *to, size_t size);

/* What stands before `until` has been read: the kernel may write over it. */
void ring_release(struct ring *ring, uint64_t until);

/* What an event counts. */
struct ring_counts {
    uint64_t value;
    uint64_t enabled, running; /* ns */
    uint64_t lost;             /* samples, for there was no room; 0 before Linux 6.0 */
};

/* The read_format of events that are counted so. */
uint64_t ring_read_format(void);

/* False: the event has another format. */
bool ring_read(int event, struct ring_counts *counts);
uint64_t ring_lost(int event); /* 0 then */

#endif
